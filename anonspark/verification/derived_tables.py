"""Rows of the tables of metrics, as they follow from the classes and from what is claimed.

What follows from neither is a claim: its column, and between what it has to lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from anonspark.config import models
from anonspark.core.decision_rules import Baseline
from anonspark.core.figures import ATTRIBUTES, ROUNDS, SUMMARY, without_losses
from anonspark.core.levels import read_levels
from anonspark.release.class_bounds import BoundsReader
from anonspark.release.derived_figures import (
    LossSums,
    attribute_figures,
    round_rows,
    summary_figures,
)
from anonspark.verification.class_table import ClassTable, ReadLabels

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Within:
    """The requirement of a claim: a number between two others, both included.

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


@dataclass(frozen=True)
class Levels:
    """The requirement of a recoding's levels.

    Parameters
    ----------
    names : tuple of str
        Of the quasi-identifiers.
    low, high : tuple of int
        Of each attribute, the least and the largest level. None where they may be null.
    taken : frozenset of str
        Levels of other recodings.
    """

    names: tuple[str, ...]
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    taken: frozenset[str] = frozenset()

    def admits(self, value: Any, _tolerance: float) -> bool:
        """Return whether a value is one that can be claimed."""
        if value is None or value in self.taken:
            return value is None and not self.high
        levels = read_levels(value, self.names)
        if levels is None or not self.high:
            return levels is not None
        between = (a <= b <= c for a, b, c in zip(self.low, levels, self.high, strict=False))
        return len(self.low) == len(levels) and all(between)

    def __str__(self) -> str:
        return "a level of each quasi-identifier" + (
            f", from those of node 1 to {self.high}, as no other node" if self.high else ""
        )


Claimed = Within | Levels
"""Tables that cannot be derived."""


_SHARE = Within(0.0, 1.0)
_ANY = Within(-math.inf, or_nothing=True)


@dataclass(frozen=True)
class Derivation:
    """The input from which the tables follow.

    Parameters
    ----------
    classes : ClassTable
        With some.
    manifest : mapping
        Sound in form.
    readers : tuple of BoundsReader
        Of the quasi-identifiers.
    """

    classes: ClassTable
    manifest: Row
    readers: tuple[BoundsReader, ...]

    @cached_property
    def model(self) -> models.ModelOptions | None:
        """Options of the model. None in a plan, and of a model of another package."""
        said = (self.manifest.get("chosen_model") or self.manifest["configuration"])["model"]
        options = models.options_classes()[said["name"]]
        is_ours = options.__module__ == models.__name__ and not self.manifest.get("recipient")
        return options.model_validate(said) if is_ours else None

    @property
    def keeps_equal_labels_together(self) -> bool:
        """Return whether the model forms no two classes with the same labels.

        Cells of a tree are apart, and so are classes of one recoding. Later rounds, means and
        labels of hierarchies may agree by chance. Refined groups and other models share out equal
        records.
        """
        model, plain = self.model, isinstance(self.model, models.FullDomainOptions)
        if (
            isinstance(model, models.MondrianOptions)
            and model.split == "strict"
            and not model.passes
        ):
            plain = not any(one.has_hierarchy or one.content == "mean" for one in self.readers)
        return plain and len(self.classes.rounds) == 1

    @property
    def rows(self) -> int:
        """Records that figures are about, as far as they are published."""
        left_out: int = self.manifest["summary"].get("rows_left_out") or 0
        return left_out + int(self.manifest["published"]["rows"])

    @property
    def suppressed(self) -> int:
        """Records without a class."""
        return self.rows - self.classes.total.rows

    @property
    def _weights(self) -> list[Decimal]:
        return [Decimal(str(reader.attribute.weight)) for reader in self.readers]

    @property
    def _most(self) -> Within:
        """Return what all records of the release lose at most."""
        return Within(0.0, float(sum(self._weights)) * self.rows)

    def rounds(self, table: Sequence[Row]) -> list[Row]:
        """Return the rows of the table ``rounds``, with the bounds of those that are claimed."""
        names = tuple(reader.attribute.name for reader in self.readers)
        levels = [row.get("levels") for row in table] + [None] * len(self.classes.rounds)
        bounds = {"gcp_total_if_last": self._most, "precision": _SHARE, "loss": _SHARE}
        claimed = [{**bounds, "levels": text} for text in levels]
        derived = round_rows(self.classes.rounds, self.rows, names, claimed)
        return [self._without_hidden(ROUNDS, row | {"levels": Levels(names)}) for row in derived]

    def attribute_rows(self, labels: ReadLabels, table: Sequence[Row]) -> list[Row]:
        """Return the rows of the table ``attributes``, of which some columns follow from others."""
        rows: list[Row] = []
        described_ones = self.manifest["published"]["quasi_identifiers"]
        pairs = zip(described_ones, self.readers, strict=False)
        for index, (described, reader) in enumerate(pairs):
            lost = self._losses(table)[index]
            wider = labels.wider[index] + self.suppressed
            # Of labels of hierarchies nobody else can tell, and where numbers are too close.
            low = wider - labels.wider[index] if any(labels.fine) else wider
            row = {
                "position": index + 1,
                "attribute": described["name"],
                "kind": described["kind"],
                "weight": reader.attribute.weight,
                "missing_rows": self._missing(labels, index),
                **attribute_figures(lost, self.rows),
                "generalized_rows": Within(low, wider) if low < wider else wider,
                "ncp_total": Within(self.suppressed, lost.generalized),
                "iloss": _SHARE
                if reader.is_category
                else Within(0.0, float(lost.loss) / self.rows),
                "height": int((described.get("hierarchy") or {}).get("height", 1)),
                "entropy": Within(or_nothing=True),
                "association_before": _ANY,
                "association_after": _ANY,
            }
            if reader.is_category:
                row |= {"iloss": _SHARE, "loss": _SHARE}
            if reader.has_hierarchy:
                row["generalized_rows"] = Within(self.suppressed, self.rows)
                row["precision"] = Within(1 - lost.generalized / self.rows, 1.0)
            rows.append(self._without_hidden(ATTRIBUTES, row))
        return rows

    def _losses(self, table: Sequence[Row]) -> tuple[LossSums, ...]:
        """Return what is claimed to be lost of each attribute, with the records without a class."""
        sums = []
        for index, reader in enumerate(self.readers):
            row = table[index] if index < len(table) else {}
            generalized = row.get("generalized_rows") or 0
            penalty, iloss, loss, precision = (
                Decimal(figure if figure is not None and math.isfinite(figure) else 0)
                for figure in map(row.get, ("ncp_total", "iloss", "loss", "precision"))
            )
            sums.append(
                LossSums(
                    generalized,
                    penalty,
                    iloss * self.rows,
                    loss * self.rows if reader.is_category else penalty,
                    (1 - precision) * self.rows if reader.has_hierarchy else Decimal(generalized),
                )
            )
        return tuple(sums)

    def penalty(self, table: Sequence[Row]) -> float:
        """Return what the rows of the table ``attributes`` lose together, weighted."""
        pairs = zip(self._weights, self._losses(table), strict=True)
        return float(sum(weight * lost.penalty for weight, lost in pairs))

    def _missing(self, labels: ReadLabels, index: int) -> Within:
        if self.readers[index].tells_missing:
            # At least one of a class that may have some.
            return Within(labels.only_missing[index], labels.missing[index] + self.suppressed)
        return Within(or_nothing=True)

    def summary(self, said: Row, attributes: Sequence[Row]) -> Row:
        """Return the figures of the summary that follow from classes and the other tables."""
        suppressed = self.suppressed
        known = (lost.with_suppressed(-suppressed) for lost in self._losses(attributes))
        total = replace(self.classes.total, losses=tuple(known))
        rounds, baseline = list(self.classes.rounds.values()), None
        first, model = rounds[0], self.model
        gains, compared = (said.get(name) is not None for name in ("rule_gain", "baseline_classes"))
        if model is not None:
            gains = model.most_rounds > 1
            compared = gains or self.manifest["configuration"]["evaluate"].get("compare_baseline")
            compared &= not (isinstance(model, models.CuttingOptions) and model.suppression_limit)
        if compared:
            names = ("baseline_dm", "baseline_gcp_total", "baseline_mean_class_size")
            baseline = Baseline(first.classes, *(said.get(name) or 0 for name in names))
        figures: dict[str, object] = {
            **summary_figures(
                rounds,
                total,
                suppressed,
                self._weights,
                self.manifest["configuration"]["privacy"]["k"],
                baseline,
                gains=gains,
            ),
            "rows_suppressed": None if said.get("rows_left_out") is None else suppressed,
            "rho": Within(len(rounds)) if model is None else model.most_rounds,
        }
        if baseline is not None:
            mean = first.rows / first.classes
            figures |= {
                "baseline_dm": Within(first.squares),
                "baseline_gcp_total": self._most,
                "baseline_mean_class_size": Within(mean, self.rows / first.classes),
                # Sums of floating-point numbers may differ in what is rounded.
                "rule_c": int((said.get("gcp_total") or 0) < baseline.certainty_penalty),
            }
        if said.get("entropy") is not None and attributes:
            figures["entropy"] = math.fsum(row.get("entropy") or 0.0 for row in attributes)
        return self._without_hidden(SUMMARY, figures)

    def _without_hidden(self, table: Sequence[Any], row: Row) -> Row:
        """Return a row without what would give back bounds that are hidden behind a mean."""
        hides = any(reader.content == "mean" for reader in self.readers)
        return without_losses(table, row) if hides else row
