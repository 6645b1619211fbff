"""Errors of classifiers on attributes that noisy tables choose: what Var and Inan (2018) draw.

There are three folds. The known records make the tables, which get the noise that the paper asks
for (every table is looked at, neighbours replace a record). Classifiers learn from the raw records
of the attributes that rank first, and are tested on the fold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from anonspark.core.association import chi_square, information_gain
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import (
    Score,
    loss_of_a_record,
    rank,
    scale_of,
    with_noise,
)
from quality import selection
from quality.csv_tables import Texts, read_adult, read_texts
from quality.ml_utility import ADULT_NUMBERS, as_numbers
from quality.naive_bayes import MixedNaiveBayes

CAR = "car.csv"
FOLDS = 3
LEARNERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "naive Bayes": lambda is_number, values: MixedNaiveBayes(
        is_number, values.max(axis=0).astype(np.int64) + 1
    ),
    "decision tree": lambda *_: DecisionTreeClassifier(random_state=0),
    "random forest": lambda *_: RandomForestClassifier(30, random_state=0),
}
"""Of columns that are numbers or not, and all of their values."""

SCORES: Mapping[Score, str] = {"chi_square": "chi-square", "information_gain": "information gain"}
ALL, WITHOUT_NOISE = "without selection", "without noise"

Errors = dict[str, float]
"""Shares of records that learners predict wrongly, by learner."""

Curves = dict[str, list[tuple[str, str, Errors]]]
"""By what is varied: epsilon, records or attributes. Of each point the series, the place on the
axis, and errors."""


@dataclass(frozen=True)
class Experiment:
    """A data set and the settings of its curves.

    Parameters
    ----------
    read : callable
        Takes the folder of the data sets, and returns complete records.
    target : str
    numbers : tuple of str
    chosen : int
        Attributes that are chosen: half of them, as in the paper.
    epsilon : str
        Where it is not varied.
    epsilons : tuple of str
    counts : tuple of int
        Numbers of chosen attributes.
    draws : int
        Of the noise, in each fold. The paper draws once.
    """

    read: Callable[[Path], Texts]
    target: str
    numbers: tuple[str, ...]
    chosen: int
    epsilon: str
    epsilons: tuple[str, ...]
    counts: tuple[int, ...]
    draws: int


EXPERIMENTS = {
    "Adult": Experiment(
        read=lambda data: read_adult(data).complete(),
        target="income",
        numbers=ADULT_NUMBERS,
        chosen=7,
        epsilon="0.1",
        epsilons=("0.02", "0.05", "0.1", "0.5"),
        counts=(2, 4, 7, 10, 14),
        draws=3,
    ),
    "Car": Experiment(
        read=lambda data: read_texts(data / CAR),
        target="class",
        numbers=(),
        chosen=3,
        epsilon="0.5",
        epsilons=("0.1", "0.25", "0.5", "1"),
        counts=(1, 2, 3, 4, 6),
        draws=20,
    ),
}


class Folds:
    """Learners of any attributes of a table, by fold. What was learned is not learned again."""

    def __init__(self, table: Texts, experiment: Experiment) -> None:
        target, numbers, self.draws = experiment.target, experiment.numbers, experiment.draws
        columns = {
            name: [float(one) for one in table.column(name)]
            if name in numbers
            else table.column(name)
            for name in table.names
        }
        self._table = pa.table(columns)
        self._domains = selection.domains_of(self._table, target)
        self._target = Domain.of_values(target, sorted(set(table.column(target))))
        self._values, self._labels = as_numbers(table, target, numbers)
        self._is_number = np.array([one.name in numbers for one in self._domains])
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        order = np.random.default_rng(0)
        self._folds = [
            (order.permutation(known), test)
            for known, test in folds.split(self._values, self._labels)
        ]
        self.tables, self.error = cache(self._count), cache(self._learn)

    def _known(self, fold: int, thirds: int) -> Any:
        known, _ = self._folds[fold]
        return known[: len(known) * thirds // 3]

    def _count(self, fold: int, thirds: int) -> list[selection.Counts]:
        rows = self._table.take(self._known(fold, thirds))
        return selection.count(rows, self._domains, self._target).counts

    def _learn(self, learner: str, fold: int, thirds: int, chosen: frozenset[int]) -> float:
        known, (_, test), columns = self._known(fold, thirds), self._folds[fold], sorted(chosen)
        values, labels = self._values[:, columns], self._labels
        model = LEARNERS[learner](self._is_number[columns], values)
        predicted = model.fit(values[known], labels[known]).predict(values[test])
        return float((predicted != labels[test]).mean())


def mean_errors(
    folds: Folds, score: Score, chosen: int, epsilon: str | None, thirds: int = 3
) -> Errors:
    """Return mean errors over folds and draws. Without an epsilon there is no noise."""
    found: dict[str, list[float]] = {name: [] for name in LEARNERS}
    for fold in range(FOLDS):
        tables = folds.tables(fold, thirds)
        for draw in range(1 if epsilon is None else folds.draws):
            places = _chosen(tables, score, chosen, epsilon, f"{fold} {draw} {thirds}")
            for name, errors in found.items():
                errors.append(folds.error(name, fold, thirds, frozenset(places)))
    return {name: float(np.mean(errors)) for name, errors in found.items()}


def _chosen(
    tables: Sequence[selection.Counts], score: Score, chosen: int, epsilon: str | None, seed: str
) -> list[int]:
    if epsilon is None:
        measure = {"chi_square": chi_square, "information_gain": information_gain}[score]
        return sorted(range(len(tables)), key=lambda place: -measure(tables[place]))[:chosen]
    below = random.Random(f"{seed} {score} {epsilon}").randrange  # noqa: S311 - to be repeated
    scale = scale_of(len(tables), loss_of_a_record(Fraction(epsilon), "replace"))
    return [one.index for one in rank(with_noise(tables, scale, below), scale, score)[:chosen]]


def measure(data: Path) -> dict[str, Curves]:
    """Return the errors of each data set."""
    found = {}
    for name, one in EXPERIMENTS.items():
        folds = Folds(one.read(data), one)
        every = len(one.read(data).names) - 1
        by_epsilon = [("", ALL, mean_errors(folds, "chi_square", every, None))]
        for score, words in SCORES.items():
            for epsilon in (None, *reversed(one.epsilons)):
                errors = mean_errors(folds, score, one.chosen, epsilon)
                by_epsilon.append((words, epsilon or WITHOUT_NOISE, errors))
        by_records, by_number = (
            [
                (words, label, mean_errors(folds, "chi_square", number, epsilon, thirds))
                for label, number, thirds in points
                for words, epsilon in (
                    (WITHOUT_NOISE, None),
                    (f"epsilon = {one.epsilon}", one.epsilon),
                )
            ]
            for points in (
                [(f"{thirds} of 3", one.chosen, thirds) for thirds in (1, 2, 3)],
                [(str(number), number, 3) for number in one.counts],
            )
        )
        found[name] = {"epsilon": by_epsilon, "records": by_records, "attributes": by_number}
    return found
