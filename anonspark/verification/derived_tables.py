"""Rows of the tables of metrics, as they follow from the classes and from what is claimed.

What follows from neither is a claim: its column, and between what it has to lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anonspark.config.evaluate import RiskOptions
from anonspark.core.decision_rules import decide, decide_gain
from anonspark.core.figures import ATTRIBUTES, ROUNDS, SUMMARY, without_losses
from anonspark.core.levels import read_levels
from anonspark.release.class_bounds import BoundsReader
from anonspark.verification.class_table import ClassTable, ReadLabels, SumOfClasses
from anonspark.verification.risk import attacks, risk_row

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Within:
    """What a claim has to be: a number between two others, both included.

    Parameters
    ----------
    low, high : float
    or_nothing : bool
        Whether it may be null.
    """

    low: float = 0.0
    high: float = math.inf
    or_nothing: bool = False

    def admits(self, value: Any, tolerance: float) -> bool:
        """Return whether a value is one that can be claimed."""
        if value is None:
            return self.or_nothing
        if isinstance(value, bool | str) or not math.isfinite(value):
            return False
        slack = tolerance * max(1.0, abs(self.low))
        above = tolerance * max(1.0, abs(self.high)) if math.isfinite(self.high) else 0.0
        return bool(self.low - slack <= value <= self.high + above)

    def __str__(self) -> str:
        ends = (
            f"{self.low:g} or more" if self.high == math.inf else f"{self.low:g} to {self.high:g}"
        )
        return f"{ends}, or nothing" if self.or_nothing else ends


_SHARE = Within(0.0, 1.0)


@dataclass(frozen=True)
class _Sums:
    """Sums over the classes of some rounds."""

    rows: int
    classes: int
    squares: int
    penalty: float

    @classmethod
    def of(cls, sizes: Mapping[int, SumOfClasses]) -> _Sums:
        return cls(
            sum(size * one.classes for size, one in sizes.items()),
            sum(one.classes for one in sizes.values()),
            sum(size * size * one.classes for size, one in sizes.items()),
            math.fsum(size * one.loss for size, one in sizes.items()),
        )

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.rows + other.rows,
            self.classes + other.classes,
            self.squares + other.squares,
            self.penalty + other.penalty,
        )


@dataclass(frozen=True)
class Derivation:
    """What the tables follow from.

    Parameters
    ----------
    classes : ClassTable
    published : int
        Records.
    left_out : int
        Of records without a class those that are not published, as far as they are told.
    attributes : tuple of mapping
        ``published.quasi_identifiers`` of the manifest.
    readers : tuple of BoundsReader
        Of these.
    configured : mapping
        The configuration.
    """

    classes: ClassTable
    published: int
    left_out: int
    attributes: Sequence[Row]
    readers: tuple[BoundsReader, ...]
    configured: Row

    @cached_property
    def _by_round(self) -> dict[int, _Sums]:
        return {number: _Sums.of(own) for number, own in sorted(self.classes.rounds.items())}

    @cached_property
    def _total(self) -> _Sums:
        return sum(self._by_round.values(), start=_Sums(0, 0, 0, 0.0))

    @property
    def suppressed(self) -> int:
        """Records without a class."""
        return self.left_out + self.published - self._total.rows

    @property
    def rows(self) -> int:
        """Records that figures are about."""
        return self.left_out + self.published

    @property
    def weight(self) -> float:
        """Of all attributes together."""
        return math.fsum(one.attribute.weight for one in self.readers)

    @property
    def hides_bounds(self) -> bool:
        """Whether the bounds of some attribute are hidden behind a mean."""
        return any(one.content == "mean" for one in self.readers)

    def rounds(self) -> list[Row]:
        """Return the rows of the table ``rounds``."""
        found: list[Row] = []
        rows, so_far = self.rows, _Sums(0, 0, 0, 0.0)
        for number, own in self._by_round.items():
            so_far += own
            left_over = rows - own.rows
            row = {
                "round": number,
                "rows": rows,
                "normal_rows": own.rows,
                "outlier_rows": left_over,
                "classes": own.classes,
                "classes_total": so_far.classes,
                "dm": own.squares,
                "dm_total": so_far.squares,
                "gcp_total": own.penalty,
                "gcp_total_cumulative": so_far.penalty,
                "gcp_total_if_last": Within(0.0, self.weight * self.rows),
                "mean_class_size": own.rows / own.classes,
                "mean_class_size_with_outliers": rows / (own.classes + (left_over > 0)),
                "precision": _SHARE,
                "loss": _SHARE,
                "height": Within(0, or_nothing=True),
                "levels": _Levels(tuple(one["name"] for one in self.attributes)),
            }
            found.append(self._without_losses(ROUNDS, row))
            rows = left_over
        return found

    def attribute_rows(self, labels: ReadLabels, table: Sequence[Row]) -> list[Row]:
        """Return the rows of the table ``attributes``, of which some columns follow from others."""
        found: list[Row] = []
        for place, (described, reader) in enumerate(
            zip(self.attributes, self.readers, strict=False)
        ):
            said = table[place] if place < len(table) else {}
            height = int((described.get("hierarchy") or {}).get("height", 1))
            wider = labels.wider[place] + self.suppressed
            # Of labels of hierarchies nobody else can tell, and where numbers are too close.
            low = wider - labels.wider[place] if any(labels.fine) else wider
            generalized: Any = Within(low, wider) if low < wider else wider
            if reader.has_hierarchy:
                generalized = Within(self.suppressed, self.rows)
            counted = said.get("generalized_rows") or 0
            penalty = said.get("ncp_total") or 0.0
            share = penalty / self.rows
            row = {
                "position": place + 1,
                "attribute": described["name"],
                "kind": described["kind"],
                "weight": reader.attribute.weight,
                "missing_rows": self._missing(labels, place),
                "generalized_rows": generalized,
                "generalized_share": counted / self.rows,
                "ncp_total": Within(self.suppressed, counted),
                "ncp": share,
                "iloss": _SHARE if reader.is_category else Within(0.0, share),
                "loss": _SHARE if reader.is_category else share,
                "height": height,
                "precision": Within(1 - counted / self.rows, 1.0)
                if reader.has_hierarchy
                else 1 - counted / self.rows,
                "entropy": Within(or_nothing=True),
                "association_before": Within(-math.inf, or_nothing=True),
                "association_after": Within(-math.inf, or_nothing=True),
            }
            found.append(self._without_losses(ATTRIBUTES, row))
        return found

    def _missing(self, labels: ReadLabels, place: int) -> Within:
        if self.readers[place].tells_missing:
            # At least one of a class that may have some.
            return Within(labels.only_missing[place], labels.missing[place] + self.suppressed)
        return Within(or_nothing=True)

    def risk_of_rounds(self, options: RiskOptions) -> list[Row]:
        """Return the rows of the table ``risk`` that are those of rounds."""
        return [
            {"round": number, **risk_row(attack, options)}
            for number, own in sorted(self.classes.rounds.items())
            for attack in attacks(
                {size: one.classes for size, one in own.items()}, options.threshold
            )
        ]

    def summary(self, said: Row, tables: Mapping[str, Sequence[Row]]) -> Row:
        """Return the figures of the summary that follow from classes and the other tables."""
        total, lost = self._total, self.suppressed
        sizes = self.classes.sizes
        penalty = total.penalty + lost * self.weight
        figures: dict[str, Any] = {
            "rounds": len(self._by_round),
            "rows_suppressed": None if said.get("rows_left_out") is None else lost,
            "classes": total.classes,
            "dm": total.squares + (total.rows + lost) * lost,
            "gcp_total": penalty,
            "gcp": penalty / (self.weight * self.rows),
            "aecs": total.rows / total.classes / self.configured["privacy"]["k"],
            "mean_class_size": total.rows / total.classes,
            "mean_class_size_with_suppressed": self.rows / (total.classes + (lost > 0)),
            "median_class_size": _median(sizes),
            "min_class_size": min(sizes),
            "max_class_size": max(sizes),
            "rho": Within(len(self._by_round)),
        }
        attributes = tables.get("attributes", ())
        for name in ("iloss", "loss", "precision"):
            own = [one.get(name) for one in attributes]
            if own and None not in own:
                terms = (
                    float(one or 0.0) * reader.attribute.weight
                    for one, reader in zip(own, self.readers, strict=False)
                )
                figures[name] = math.fsum(terms) / self.weight
        if said.get("loss") is not None:
            figures["utility_score"] = 100 * (1 - said["loss"])
        if said.get("entropy") is not None and attributes:
            figures["entropy"] = math.fsum(one.get("entropy") or 0.0 for one in attributes)
        figures |= dict(self._of_baseline(said, tables.get("rounds", ())))
        return self._without_losses(SUMMARY, figures)

    def _of_baseline(self, said: Row, rounds: Sequence[Row]) -> Iterator[tuple[str, Any]]:
        """Derive what is said of one round, and of further ones beside it."""
        first = next(iter(self._by_round.values()))
        if said.get("baseline_classes") is not None:
            yield "baseline_classes", first.classes
            yield "baseline_dm", Within(first.squares)
            yield "baseline_gcp_total", Within(0.0, self.weight * self.rows)
            mean = first.rows / first.classes
            yield "baseline_mean_class_size", Within(mean, self.rows / first.classes)
            pairs = [
                (said.get(name), said.get(f"baseline_{name}"))
                for name in ("dm", "mean_class_size", "gcp_total")
            ]
            rules = decide(*((a or 0, b or 0) for a, b in pairs))
            yield from zip(("rule_a", "rule_b", "rule_c"), vars(rules).values(), strict=True)
        if said.get("rule_gain") is not None and rounds:
            smallest = min(self.classes.rounds[min(self.classes.rounds)])
            gain = decide_gain(
                (first.classes, self.rows - first.rows, smallest),
                (self._total.classes, self.suppressed, min(self.classes.sizes)),
            )
            yield "rule_gain_utility", gain.utility
            yield "rule_gain_risk", gain.risk
            yield "rule_gain", gain.gain

    def _without_losses(self, table: Sequence[Any], row: Row) -> Row:
        return without_losses(table, row) if self.hides_bounds else row


@dataclass(frozen=True)
class _Levels:
    """What levels of a round have to be: none, or one of each attribute."""

    names: tuple[str, ...]

    def admits(self, value: Any, _tolerance: float) -> bool:
        return value is None or read_levels(value, self.names) is not None

    def __str__(self) -> str:
        return "a level of each quasi-identifier, or nothing"


Claim = Within | _Levels
"""What cannot be derived."""


def _median(sizes: Mapping[int, int]) -> float:
    """Return the records of the class in the middle by size."""
    classes = sum(sizes.values())
    middle = {(classes - 1) // 2, classes // 2}
    found, before = [], 0
    for size in sorted(sizes):
        found += [size for place in middle if before <= place < before + sizes[size]]
        before += sizes[size]
    return sum(found) / len(found)
