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

    ``generalized`` counts records whose value a wider one replaced. The others add up shares of
    [0, 1]: certainty penalties, ILoss, covered shares of the domain beside one value, and levels as
    shares of the hierarchy's height.

    >>> LossSums(1, Decimal(2), Decimal(0), Decimal(0), Decimal(1)).with_suppressed(3).generalized
    4
    """

    generalized: int
    penalty: Decimal
    iloss: Decimal
    loss: Decimal
    lifted: Decimal

    def plus(self, other: LossSums) -> LossSums:
        """Add the sums over other records."""
        return LossSums(*map(add, self, other))

    def with_suppressed(self, rows: int) -> LossSums:
        """Add records whose value is lost, which count 1 in every sum."""
        return LossSums(self.generalized + rows, *(term + rows for term in self[1:]))


@dataclass(frozen=True)
class Totals:
    """Sums over classes, of one round or of several.

    ``sizes`` has the number of classes of each size, ``penalty`` the weighted certainty penalties
    of all quasi-identifiers, and ``losses`` an entry for each of them, or nothing if they are
    unknown. ``label_bytes`` is the uncompressed size of the columns that describe
    quasi-identifiers.

    >>> totals = Totals({2: 3, 5: 1})
    >>> totals.rows, totals.classes, totals.squares, totals.median_class_size
    (11, 4, 37, 2.0)
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

        Suppressed records are those without a class, which count as lost.
        """
        lost = [sums.with_suppressed(suppressed) for sums in self.losses]
        weighted = list(zip(weights, lost, strict=True))
        values = float(sum(weights)) * (self.rows + suppressed)
        iloss, loss, lifted = (
            float(sum(weight * getattr(sums, term) for weight, sums in weighted)) / values
            for term in ("iloss", "loss", "lifted")
        )
        return {"iloss": iloss, "precision": 1.0 - lifted, "loss": loss}

    def size_figures(self, suppressed: int, k: int) -> Row:
        """Compute the figures that follow from the sizes of classes. See :meth:`figures`.

        >>> Totals({2: 3, 5: 1}).size_figures(suppressed=1, k=2)["dm"]
        49
        """
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
        """Compute the figures of the table ``summary`` that follow from classes, by name.

        A suppressed record counts as lost in every figure of loss, and as a class of the whole
        table in ``dm``.
        """
        rows, weight = self.rows + suppressed, sum(weights, Decimal(0))
        penalty = self.penalty + weight * suppressed
        means = self.means(suppressed, weights)
        return {
            **self.size_figures(suppressed, k),
            "gcp_total": float(penalty),
            "gcp": float(penalty) / (float(weight) * rows),
            "minimal_distortion": sum(sums.generalized + suppressed for sums in self.losses),
            **means,
            "utility_score": utility_score(means["loss"]),
        }

    def __add__(self, other: Totals) -> Totals:
        """Add the totals of other classes over the same quasi-identifiers."""
        pairs = zip(self.losses, other.losses, strict=True)
        return Totals(
            Counter(self.sizes) + Counter(other.sizes),
            self.penalty + other.penalty,
            tuple(sums.plus(others) for sums, others in pairs),
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

    ``smallest`` is the number of records in the smallest class, and ``units`` counts the classes by
    their number of people, or is None if records count. ``presence`` is the smallest and the
    largest probability, or None if they have no bound.
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
    limits = privacy.delta_presence
    if presence is not None and limits is not None:
        bounds = zip(("smallest", "largest"), (limits.min, limits.max), presence, strict=True)
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
    """Return the rows of the table ``risk``: for each round's classes, and for the release.

    If people are counted, there are no rows of rounds, because no one can find the people of a
    round's class among the others. ``sizes`` counts classes by published tuple, and ``units`` by
    people. ``population`` is the records of each class and those of its region, ``weights`` its
    records and the sum of their sampling weights.
    """
    rows: list[Row] = []
    for number, totals in ({} if units else rounds).items():
        for attack in attacks(totals.sizes, options.threshold):
            rows.append({"round": number, **risk_row(attack, options)})
    if units or population is None:
        figures = attacks(units or sizes, options.threshold)
    else:
        figures = attacks_with_population(*population, options.threshold)
    if weights is not None:
        figures.append(attack_with_weights(*weights, options.threshold))
    sampled = not units and population is not None
    return rows + [{"population": sampled, **risk_row(attack, options)} for attack in figures]
