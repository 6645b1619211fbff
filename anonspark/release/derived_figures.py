"""Figures of a release, as they follow from its classes and from what its run alone knows.

A run writes the tables of metrics with these functions. A verification calls them again: of what
they take it reads in the tables what is listed as claimed, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import add
from typing import Any, NamedTuple

import numpy as np

from anonspark.config.gates import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criterion import K_UNITS, Criterion
from anonspark.core.model_scores import utility_score
from anonspark.release.risk import (
    Floats,
    Sizes,
    attack_with_weights,
    attacks,
    attacks_with_population,
    risk_row,
)

Row = dict[str, Any]
"""A row of a table of metrics: column to figure, text or moment."""


class LossSums(NamedTuple):
    """Sums over records of what a quasi-identifier lost, without its weight.

    Parameters
    ----------
    generalized : int
        Records whose value was replaced by a wider one.
    penalty : Decimal
        Certainty penalties, each in [0, 1].
    iloss : Decimal
        ILoss, each in [0, 1).
    loss : Decimal
        Shares of the domain, beside one value, that are covered. Each in [0, 1].
    lifted : Decimal
        Levels as shares of the hierarchy's height, each in [0, 1].
    """

    generalized: int
    penalty: Decimal
    iloss: Decimal
    loss: Decimal
    lifted: Decimal

    def plus(self, other: LossSums) -> LossSums:
        """Return the sums over the records of both."""
        return LossSums(*map(add, self, other))

    def with_suppressed(self, rows: int) -> LossSums:
        """Return the same with records whose value is lost, which count 1 in every sum."""
        return LossSums(self.generalized + rows, *(term + rows for term in self[1:]))


@dataclass(frozen=True)
class Totals:
    """Sums over classes, of one round or of several.

    Parameters
    ----------
    sizes : mapping of int to int
        Classes of each size.
    penalty : Decimal
        Certainty penalties of their records, weighted, over all quasi-identifiers.
    losses : tuple of LossSums
        Of each quasi-identifier. None where they are not known.
    label_bytes : int
        What the records take, before they are compressed, in the columns of the release that
        describe quasi-identifiers.
    """

    sizes: Mapping[int, int]
    penalty: Decimal = Decimal(0)
    losses: tuple[LossSums, ...] = ()
    label_bytes: int = 0

    @cached_property
    def rows(self) -> int:
        """Records in the classes."""
        return sum(size * classes for size, classes in self.sizes.items())

    @cached_property
    def classes(self) -> int:
        """Groups that the model formed."""
        return sum(self.sizes.values())

    @cached_property
    def squares(self) -> int:
        """Sum of squared class sizes."""
        return sum(size * size * classes for size, classes in self.sizes.items())

    @property
    def median_class_size(self) -> float:
        """Records of the class in the middle by size. The mean of the two in the middle."""
        sizes = sorted(self.sizes)
        ends = np.cumsum([self.sizes[size] for size in sizes])
        middle = ((self.classes - 1) // 2, self.classes // 2)
        indices: list[int] = np.searchsorted(ends, middle, side="right").tolist()
        return sum(sizes[index] for index in indices) / 2

    def means(self, suppressed: int, weights: Sequence[Decimal]) -> dict[str, float]:
        """Return the weighted means of what is lost per value, each in [0, 1].

        Parameters
        ----------
        suppressed : int
            Records without a class, which count as lost.
        weights : sequence of Decimal
            Of each quasi-identifier.
        """
        lost = [own.with_suppressed(suppressed) for own in self.losses]
        values = float(sum(weights)) * (self.rows + suppressed)
        iloss, loss, lifted = (
            float(sum(weight * own[place] for weight, own in zip(weights, lost, strict=True)))
            / values
            for place in (2, 3, 4)
        )
        return {"iloss": iloss, "precision": 1.0 - lifted, "loss": loss}

    def size_figures(self, suppressed: int, k: int) -> Row:
        """Return the figures that follow from the sizes of classes. See :meth:`figures`."""
        rows = self.rows + suppressed
        return {
            "classes": self.classes,
            "dm": self.squares + rows * suppressed,
            "aecs": self.rows / self.classes / k,
            "mean_class_size": self.rows / self.classes,
            "mean_class_size_with_suppressed": rows / (self.classes + (suppressed > 0)),
            "median_class_size": self.median_class_size,
            "min_class_size": min(self.sizes),
            "max_class_size": max(self.sizes),
        }

    def figures(self, suppressed: int, weights: Sequence[Decimal], k: int) -> Row:
        """Return the figures of the table ``summary`` that follow from classes, by name.

        Parameters
        ----------
        suppressed : int
            Records without a class. They count as lost in every figure of loss, and the whole table
            for each of them in ``dm``.
        weights : sequence of Decimal
            Of each quasi-identifier.
        k : int
            Smallest class size that was required.
        """
        rows, weight = self.rows + suppressed, sum(weights, Decimal(0))
        penalty = self.penalty + weight * suppressed
        means = self.means(suppressed, weights)
        return {
            **self.size_figures(suppressed, k),
            "gcp_total": float(penalty),
            "gcp": float(penalty) / (float(weight) * rows),
            "minimal_distortion": sum(own.generalized + suppressed for own in self.losses),
            **means,
            "utility_score": utility_score(means["loss"]),
        }

    def __add__(self, other: Totals) -> Totals:
        pairs = zip(self.losses, other.losses, strict=True)
        return Totals(
            Counter(self.sizes) + Counter(other.sizes),
            self.penalty + other.penalty,
            tuple(own.plus(others) for own, others in pairs),
            self.label_bytes + other.label_bytes,
        )


def privacy_rows(
    privacy: PrivacyOptions,
    smallest: int,
    units: Mapping[int, int] | None,
    measured: Mapping[Criterion, Any],
    presence: tuple[Any, Any] | None,
) -> list[Row]:
    """Return the rows of the table ``privacy``.

    Parameters
    ----------
    privacy : PrivacyOptions
    smallest : int
        Records of the smallest class.
    units : mapping of int to int or None
        Classes of each number of people. None where records count.
    measured : mapping of Criterion to float
    presence : tuple of float, or None
        The smallest and the largest one, where they are asked for.
    """
    size = {"criterion": "k", "required": float(privacy.k), "measured": float(smallest)}
    rows: list[Row] = [size]
    if units is not None:
        rows.append({**size, "criterion": K_UNITS, "measured": float(min(units))})
    rows += [
        {
            "attribute": criterion.attribute,
            "criterion": criterion.kind,
            "required": criterion.bound,
            "c": criterion.recursive_c,
            "measured": measured[criterion],
        }
        for criterion in privacy.criteria
    ]
    asked = privacy.delta_presence
    if presence is not None and asked is not None:
        bounds = zip(("smallest", "largest"), (asked.min, asked.max), presence, strict=True)
        rows += [
            {"criterion": f"{name} presence", "required": bound, "measured": figure}
            for name, bound, figure in bounds
        ]
    return rows


def risk_rows(
    options: RiskOptions,
    rounds: Mapping[int, Totals],
    sizes: Mapping[int, int],
    units: Mapping[int, int] | None,
    population: tuple[Sizes, Sizes] | None,
    weights: tuple[Sizes, Floats] | None = None,
) -> list[Row]:
    """Return the rows of the table ``risk``: of each round's classes, and of the release.

    Where people are counted, those of the release alone: no one finds the people of a class among
    the others.

    Parameters
    ----------
    options : RiskOptions
    rounds : mapping of int to Totals
        By number, in order.
    sizes : mapping of int to int
        Classes of each size, by published tuple.
    units : mapping of int to int or None
        Classes of each number of people. None where records count.
    population : tuple of int64 ndarray, or None
        Records of each class, and those of the population in its region, where one is known.
    weights : tuple of int64 and float64 ndarray, or None
        Records of each class, and the sum of their sampling weights, where there are any.
    """
    rows: list[Row] = []
    for number, own in ({} if units else rounds).items():
        found = attacks(own.sizes, options.threshold)
        rows += [{"round": number, **risk_row(attack, options)} for attack in found]
    if units or population is None:
        found, known = attacks(units or sizes, options.threshold), False
    else:
        found, known = attacks_with_population(*population, options.threshold), True
    if weights is not None:
        found.append(attack_with_weights(*weights, options.threshold))
    return rows + [{"population": known, **risk_row(attack, options)} for attack in found]
