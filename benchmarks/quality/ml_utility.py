"""Classifiers on originals beside the thesis' printed ones, and boosted trees on releases.

    PYTHONPATH=benchmarks .venv/bin/python -m quality.ml_utility --data ../shared/data

Learners have the defaults of scikit-learn; 70% of the records are for training. Categories are
numbers, in the order of their texts. The majority class stands beside every accuracy. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from anonspark.engine.local.engine import LocalEngine
from anonspark.utility.evaluation import open_evaluation
from quality.adult_releases import PRIVACY, TARGET, make_release
from quality.csv_tables import Texts, read_adult, read_mammographic

Learners = Mapping[str, Callable[[int], Any]]

ADULT_NUMBERS = (
    "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"
)  # fmt: skip
ADULT_LEARNERS: Learners = {
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "gradient boosting, histograms": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "gradient boosting, classic": lambda seed: GradientBoostingClassifier(random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
    "Gaussian naive Bayes": lambda _: GaussianNB(),
    "extra trees": lambda seed: ExtraTreesClassifier(random_state=seed),
    "majority class": lambda _: DummyClassifier(),
}
MAMMOGRAPHIC_LEARNERS: Learners = {
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
    "nearest neighbours": lambda _: KNeighborsClassifier(),
    "majority class": lambda _: DummyClassifier(),
}
TEST_SHARE = 0.3
MAMMOGRAPHIC_SPLITS = 10


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


def as_numbers(table: Texts, target: str, numbers: tuple[str, ...]) -> tuple[Any, Any]:
    """Return features and labels; a category is the place of its text among its texts."""
    columns = [
        np.asarray(table.column(name), np.float64)
        if name in numbers
        else np.unique(table.column(name), return_inverse=True)[1].astype(np.float64)
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
            with warnings.catch_warnings():
                # The defaults end a regression before it has converged; so did the thesis'.
                warnings.simplefilter("ignore", ConvergenceWarning)
                told = make(seed).fit(known, known_labels).predict(test)
            found[name].append(
                (accuracy_score(truth, told), f1_score(truth, told, average="macro"))
            )
    return {name: Scores(*np.asarray(each).T) for name, each in found.items()}


def on_adult(data: Path) -> dict[str, Scores]:
    """Return the scores on both files of Adult, on one split; missing is one more value."""
    return compare(*as_numbers(read_adult(data), "income", ADULT_NUMBERS), ADULT_LEARNERS, 1)


def on_mammographic(data: Path) -> dict[str, Scores]:
    """Return the scores on the complete mammographic masses, over ten splits."""
    table = read_mammographic(data).complete()
    features = table.names[:-1]
    values = as_numbers(table, "Severity", features)
    return compare(*values, MAMMOGRAPHIC_LEARNERS, MAMMOGRAPHIC_SPLITS)


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


def table_of(scores: Mapping[str, Scores]) -> Iterator[str]:
    """Write the scores as a Markdown table: the mean, and the standard deviation of splits."""
    yield "| learner | accuracy | macro-F1 |"
    yield "| --- | --- | --- |"
    for name, one in scores.items():
        cells = [
            f"{values.mean():.3f}" + (f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else "")
            for values in (one.accuracy, one.f1_macro)
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Train everything and print the tables."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    options = parser.parse_args()
    print("Adult, one split:\n")
    print("\n".join(table_of(on_adult(options.data))), flush=True)
    print(f"\nMammographic masses, {MAMMOGRAPHIC_SPLITS} splits:\n")
    print("\n".join(table_of(on_mammographic(options.data))), flush=True)
    print("\nBoosted trees, trained on releases of Adult:\n")
    print("| trained on | area |\n| --- | --- |")
    for name, area in areas_of_boosted_trees(options.data).items():
        print(f"| {name} | {area:.4f} |")


if __name__ == "__main__":
    main()
