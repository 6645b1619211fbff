"""Nine classifiers on originals and on tables anonymized as a thesis does.

Learners have the defaults of scikit-learn. 70% of the records are for training. Categories are
numbers, in the order of their texts. Numbers are standardized for nearest neighbours only, whose
printed figures need it; those of the others do not.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from anonspark.engine.local.engine import LocalEngine
from anonspark.utility.evaluation import open_evaluation
from quality.adult_releases import PRIVACY, TARGET, make_release
from quality.csv_tables import HOUSING, Texts, read_adult, read_mammographic, read_texts
from quality.first_cut import OPTIMIZED, published_lists
from quality.frequency_groups import published_by_groups
from quality.holders import QUASI_IDENTIFIERS
from quality.uncertainty import places_of_texts

Learners = Mapping[str, Callable[[int], Any]]

MAJORITY = "majority class"
ADULT_NUMBERS = (
    "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"
)  # fmt: skip
LEARNERS: Learners = {
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "extra trees": lambda seed: ExtraTreesClassifier(random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
    "stochastic gradient": lambda seed: SGDClassifier(random_state=seed),
    "support vector machine": lambda _: SVC(),
    "nearest neighbours": lambda _: make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "Gaussian naive Bayes": lambda _: GaussianNB(),
    "small network": lambda seed: MLPClassifier(random_state=seed),
    MAJORITY: lambda _: DummyClassifier(),
}
"""Nine kinds, and what all of them are compared with. Boosting is that of histograms."""

TEST_SHARE = 0.3
MAMMOGRAPHIC_SPLITS = 10
ORIGINAL = "original"
CRITERIA = ("k", "l = 2", "t = 0.2", OPTIMIZED)
"""Of anonymized tables: k alone, or with another criterion."""

Found = dict[str, "Scores"]
"""By learner."""


K = 3
OCEAN = "ocean_proximity"
HOUSING_COLUMNS = (
    "latitude", "longitude", "housing_median_age", "median_house_value", "median_income"
)  # fmt: skip
"""The quasi-identifiers that the thesis names."""


@dataclass(frozen=True)
class Scores:
    """How well one learner did, on one or more splits.

    Parameters
    ----------
    accuracy, f1_macro : float64 ndarray
        One for each split.
    """

    accuracy: npt.NDArray[np.float64]
    f1_macro: npt.NDArray[np.float64]


def as_numbers(table: Texts, target: str, numbers: Sequence[str]) -> tuple[Any, Any]:
    """Return features and labels; a category is the place of its text among its texts."""
    columns = [
        np.asarray(table.column(name), np.float64)
        if name in numbers
        else places_of_texts(table.column(name)).astype(np.float64)
        for name in table.names
        if name != target
    ]
    return np.column_stack(columns), np.asarray(table.column(target))


def compare(features: Any, labels: Any, learners: Learners, splits: int) -> dict[str, Scores]:
    """Train each learner on each split and score it on the rest."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in learners}
    for seed in range(splits):
        known, test, known_labels, truth = train_test_split(
            features, labels, test_size=TEST_SHARE, random_state=seed
        )
        for name, make in learners.items():
            # On more threads sums are rounded otherwise, and a regression ends elsewhere.
            with warnings.catch_warnings(), threadpool_limits(1):
                # The defaults end a regression before it has converged; so did the thesis'.
                warnings.simplefilter("ignore", ConvergenceWarning)
                told = make(seed).fit(known, known_labels).predict(test)
            found[name].append(
                (accuracy_score(truth, told), f1_score(truth, told, average="macro"))
            )
    return {name: Scores(*np.asarray(each).T) for name, each in found.items()}


def on_adult(data: Path) -> dict[str, Found]:
    """Return scores on both files of Adult, on one split: the original, and by criterion at k = 3.

    Missing is one more value. Only the columns that holders take for quasi-identifiers are
    anonymized.
    """
    return _on_anonymized(read_adult(data), "income", QUASI_IDENTIFIERS, ADULT_NUMBERS, 1)


def on_mammographic(data: Path) -> dict[str, Found]:
    """Return the same of the complete mammographic masses, over ten splits."""
    table = read_mammographic(data).complete()
    names = table.names[:-1]
    return _on_anonymized(table, "Severity", names, names, MAMMOGRAPHIC_SPLITS)


def read_housing(data: Path) -> Texts:
    """Read the block groups of California with the three classes of the thesis.

    Its shares, 0.44, 0.317 and 0.23, are those of the file if all that is near water is one class.
    """
    table = read_texts(data / HOUSING)
    place = table.names.index(OCEAN)
    rows = [
        row if row[place] in ("<1H OCEAN", "INLAND") else (*row[:place], "NEAR", *row[place + 1 :])
        for row in table.rows
    ]
    return Texts(table.names, rows)


def on_housing(data: Path) -> dict[str, Found]:
    """Return the same of the block groups of California without missing values, on one split."""
    table = read_housing(data)
    table = Texts(table.names, [row for row in table.rows if "" not in row])
    return _on_anonymized(table, OCEAN, HOUSING_COLUMNS, table.names[:-1], 1)


def anonymized(table: Texts, target: str, columns: Sequence[str], criterion: str) -> Texts:
    """Publish columns by frequency groups of the lists that k = 3 and a criterion allow."""
    lists = published_lists(table, columns, target, criterion, K)
    texts = {name: table.column(name) for name in table.names}
    published = published_by_groups(table, columns, target, lists)
    texts |= dict(zip(columns, published, strict=True))
    return Texts(table.names, list(zip(*texts.values(), strict=True)))


def _on_anonymized(
    table: Texts, target: str, columns: Sequence[str], numbers: Sequence[str], splits: int
) -> dict[str, Found]:
    found = {ORIGINAL: compare(*as_numbers(table, target, numbers), LEARNERS, splits)}
    others = [name for name in numbers if name not in columns]
    for criterion in CRITERIA:
        published = anonymized(table, target, columns, criterion)
        found[criterion] = compare(*as_numbers(published, target, others), LEARNERS, splits)
    return found


RELEASES = ("k = 3", "k = 3, t = 0.4")


def areas_of_boosted_trees(data: Path) -> dict[str, float]:
    """Return the area under the curve on the test file, of the original and of releases."""
    areas: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="anonspark-utility-") as folder:
        for name in RELEASES:
            release = f"{folder}/{len(areas)}"
            make_release(data, PRIVACY[name], release)
            opened = open_evaluation(
                LocalEngine(),
                release,
                str(data / "adult.csv"),
                TARGET,
                str(data / "adult_test.csv"),
            )
            learned = opened.learning(("release",) if areas else ("original", "release"))
            for score in learned.scores if learned else ():
                if score.learner == "gradient-boosted trees" and score.roc_auc is not None:
                    key = "original" if score.trained_on == "original" else name
                    areas[key] = score.roc_auc
    return areas
