"""Figures of a release, summed up from its classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa

from anonspark.core.columns import ROUND, SIZE, is_published
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.levels import levels_text
from anonspark.core.utility_score import utility_score
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.figures import exact_sums
from anonspark.staged.records import Records, bytes_of_each


@dataclass(frozen=True)
class RoundResult:
    """What a round made.

    Parameters
    ----------
    number : int
        1, 2, ...
    rows : int
        Records of its table.
    left_over : int
        Records that went to the next round.
    penalty : Decimal
        ``gcp_total`` of the round's classes.
    penalty_if_last : Decimal
        ``gcp_total`` of the release, had the run ended with this round and its groups whole.
    squares_if_whole : int
        Sum of the squared sizes of the round's groups, as if they had been kept whole.
    levels : mapping of str to int or None
        Level that each quasi-identifier was recoded to, where it is one for the whole table.
    large_block : int
        Records of the largest block, if it is far larger than usual; else 0.
    """

    number: int
    rows: int
    left_over: int
    penalty: Decimal
    penalty_if_last: Decimal
    squares_if_whole: int
    levels: Mapping[str, int] | None = None
    large_block: int = 0


@dataclass(frozen=True)
class AttributeTotals:
    """Sums over records, of one quasi-identifier, without its weight.

    Parameters
    ----------
    quasi_identifier : QuasiIdentifier
    generalized : int
        Records whose value was replaced by a wider one.
    penalty : Decimal
        Certainty penalties, each in [0, 1].
    iloss : Decimal
        ILoss, each in [0, 1).
    levels : int
        Levels of the hierarchy, each from 0 to its height.
    suppressed : int
        Records among them whose value is lost, which count 1 (or the height) in every sum.
    """

    quasi_identifier: QuasiIdentifier
    generalized: int
    penalty: Decimal
    iloss: Decimal
    levels: int
    suppressed: int = 0

    @property
    def weight(self) -> Decimal:
        """What the figures of all attributes together are weighted by."""
        return Decimal(str(self.quasi_identifier.weight))

    @property
    def loss(self) -> Decimal:
        """Sum of the shares of the domain, beside one value, that are covered; each in [0, 1]."""
        if not self.quasi_identifier.is_category:
            return self.penalty
        # ILoss has the whole domain in its denominator, this one all but one value.
        domain = self.quasi_identifier.domain_size
        known = (self.iloss - self.suppressed) * domain / max(domain - 1, 1)
        return known + self.suppressed

    @property
    def lifted(self) -> Decimal:
        """Sum of the levels as shares of the hierarchy's height, each in [0, 1]."""
        return Decimal(self.levels) / self.quasi_identifier.height

    def with_suppressed(self, rows: int) -> AttributeTotals:
        """Return the same with records whose value is lost."""
        lost = AttributeTotals(
            self.quasi_identifier,
            rows,
            Decimal(rows),
            Decimal(rows),
            rows * self.quasi_identifier.height,
            rows,
        )
        return self + lost

    def __add__(self, other: AttributeTotals) -> AttributeTotals:
        return AttributeTotals(
            self.quasi_identifier,
            self.generalized + other.generalized,
            self.penalty + other.penalty,
            self.iloss + other.iloss,
            self.levels + other.levels,
            self.suppressed + other.suppressed,
        )


@dataclass(frozen=True)
class Totals:
    """Sums over classes, of one round or of several.

    Parameters
    ----------
    rows : int
        Records in the classes.
    classes : int
        Groups that the model formed.
    squares : int
        Sum of squared class sizes.
    sizes : mapping of int to int
        Classes of each size.
    attributes : tuple of AttributeTotals
        Of each quasi-identifier.
    suppressed : int
        Records without a class, of which nothing is known but the sensitive values. They count as
        lost in every figure of loss.
    label_bytes : int
        What the records take, before they are compressed, in the columns of the release that tell
        of quasi-identifiers.
    """

    rows: int
    classes: int
    squares: int
    sizes: Mapping[int, int]
    attributes: tuple[AttributeTotals, ...]
    suppressed: int = 0
    label_bytes: int = 0

    @property
    def discernibility(self) -> int:
        """``dm``: squared class sizes, and the whole table for every suppressed record."""
        return self.squares + (self.rows + self.suppressed) * self.suppressed

    @property
    def certainty_penalty(self) -> float:
        """``gcp_total``: the weighted sum of size times penalty over classes and attributes."""
        return float(sum(one.weight * one.penalty for one in self._with_suppressed))

    @property
    def global_certainty_penalty(self) -> float:
        """``gcp``: the same per value, in [0, 1]."""
        return self._mean("penalty")

    @property
    def information_loss(self) -> float:
        """``iloss``: the weighted mean of ILoss per value, in [0, 1]."""
        return self._mean("iloss")

    @property
    def loss(self) -> float:
        """Weighted mean share of the domain, beside one value, that a value was widened to."""
        return self._mean("loss")

    @property
    def precision(self) -> float:
        """1 less the weighted mean share of its hierarchy that a value was lifted (Sweeney)."""
        return 1.0 - self._mean("lifted")

    @property
    def mean_class_size(self) -> float:
        """Records per class."""
        return self.rows / self.classes

    @property
    def mean_class_size_with_suppressed(self) -> float:
        """Records per class, where those suppressed count as one more class."""
        return (self.rows + self.suppressed) / (self.classes + (self.suppressed > 0))

    @property
    def median_class_size(self) -> float:
        """Records of the class in the middle by size; the mean of the two in the middle."""
        sizes = sorted(self.sizes)
        ends = np.cumsum([self.sizes[size] for size in sizes])
        middle = ((self.classes - 1) // 2, self.classes // 2)
        places: list[int] = np.searchsorted(ends, middle, side="right").tolist()
        return sum(sizes[place] for place in places) / 2

    @property
    def smallest(self) -> int:
        """Records of the smallest class."""
        return min(self.sizes)

    @property
    def largest(self) -> int:
        """Records of the largest class."""
        return max(self.sizes)

    @cached_property
    def _with_suppressed(self) -> tuple[AttributeTotals, ...]:
        return tuple(one.with_suppressed(self.suppressed) for one in self.attributes)

    def _mean(self, figure: str) -> float:
        total = sum(one.weight * getattr(one, figure) for one in self._with_suppressed)
        weights = sum(one.weight for one in self.attributes)
        return float(total) / (float(weights) * (self.rows + self.suppressed))

    def figures(self, k: int) -> dict[str, int | float]:
        """Return the figures of the table ``summary`` that classes tell, by name.

        Parameters
        ----------
        k : int
            Smallest class size that was required.
        """
        return {
            "classes": self.classes,
            "dm": self.discernibility,
            "gcp_total": self.certainty_penalty,
            "gcp": self.global_certainty_penalty,
            "iloss": self.information_loss,
            "aecs": self.mean_class_size / k,
            "mean_class_size": self.mean_class_size,
            "mean_class_size_with_suppressed": self.mean_class_size_with_suppressed,
            "median_class_size": self.median_class_size,
            "precision": self.precision,
            "loss": self.loss,
            "utility_score": utility_score(self.loss),
            "min_class_size": self.smallest,
            "max_class_size": self.largest,
        }

    def of_attribute(self, index: int) -> AttributeTotals:
        """Return the sums of a quasi-identifier, with the suppressed records."""
        return self._with_suppressed[index]

    def __add__(self, other: Totals) -> Totals:
        pairs = zip(self.attributes, other.attributes, strict=True)
        return Totals(
            self.rows + other.rows,
            self.classes + other.classes,
            self.squares + other.squares,
            Counter(self.sizes) + Counter(other.sizes),
            tuple(ours + theirs for ours, theirs in pairs),
            self.suppressed + other.suppressed,
            self.label_bytes + other.label_bytes,
        )


_DECIMALS = pa.decimal128(38, 15)

_LABEL_BYTES = "label_bytes"


@dataclass(frozen=True)
class _SumUp:
    """Sums up the classes of one task, by round and size."""

    quasi_identifiers: int

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the sums."""
        fields = [(ROUND, pa.int32()), (SIZE, pa.int64())]
        fields += [(name, pa.int64()) for name in ("classes", _LABEL_BYTES)]
        for index in range(self.quasi_identifiers):
            fields += [(f"{name}_{index}", _DECIMALS) for name in ("penalty", "loss")]
            fields += [(f"{name}_{index}", pa.int64()) for name in ("level", "generalized")]
        return pa.schema(fields)

    def __call__(self, batches: Batches) -> Batches:
        # Of one batch each, which has the classes of one round.
        for batch in batches:
            sizes = batch.column(SIZE).to_numpy()
            order = np.argsort(sizes, kind="stable")
            own, starts = np.unique(sizes[order], return_index=True)
            columns: dict[str, pa.Array] = {
                ROUND: pa.repeat(batch.column(ROUND)[0], len(own)),
                SIZE: pa.array(own),
                "classes": pa.array(np.diff(np.append(starts, len(sizes)))),
            }
            published = [one for one in batch.schema.names if is_published(one)]
            taken = sizes * sum(bytes_of_each(batch.column(one)) for one in published)
            columns[_LABEL_BYTES] = pa.array(np.add.reduceat(taken[order], starts))
            for index in range(self.quasi_identifiers):
                for name in ("penalty", "loss"):
                    values = sizes * batch.column(f"{name}_{index}").to_numpy()
                    columns[f"{name}_{index}"] = pa.array(
                        exact_sums(values[order], starts), _DECIMALS
                    )
                levels = sizes * batch.column(f"level_{index}").to_numpy()
                wider = sizes * (batch.column(f"penalty_{index}").to_numpy() > 0)
                for name, values in (("level", levels), ("generalized", wider)):
                    columns[f"{name}_{index}"] = pa.array(np.add.reduceat(values[order], starts))
            yield pa.RecordBatch.from_pydict(columns, schema=self.schema)


def sum_up(classes: Records, quasi_identifiers: Sequence[QuasiIdentifier]) -> list[Totals]:
    """Sum up classes, round by round.

    Parameters
    ----------
    classes : Records
        Of :func:`anonspark.layers.generalize.figures.class_schema`.
    quasi_identifiers : sequence of QuasiIdentifier

    Returns
    -------
    list of Totals
        In the order of the rounds; rounds without a class are left out.

    Notes
    -----
    One job, one shuffle of one row a batch and class size, of which some hundreds differ. The
    result does not depend on the tasks.
    """
    own_sums = _SumUp(len(quasi_identifiers))
    summed = classes.map_batches(own_sums, own_sums.schema)
    names = [name for name in own_sums.schema.names if name not in (ROUND, SIZE)]
    rows = summed.aggregate([ROUND, SIZE], sums=names).collect().to_pylist()
    by_round: dict[int, Totals] = {}
    for row in rows:
        own = Totals(
            row[SIZE] * row["classes"],
            row["classes"],
            row[SIZE] ** 2 * row["classes"],
            {row[SIZE]: row["classes"]},
            tuple(
                AttributeTotals(
                    one,
                    row[f"generalized_{index}"],
                    row[f"penalty_{index}"],
                    row[f"loss_{index}"],
                    row[f"level_{index}"],
                )
                for index, one in enumerate(quasi_identifiers)
            ),
            label_bytes=row[_LABEL_BYTES],
        )
        number = row[ROUND]
        by_round[number] = by_round[number] + own if number in by_round else own
    return [by_round[number] for number in sorted(by_round)]


def round_rows(results: Sequence[RoundResult], totals: Sequence[Totals]) -> list[dict[str, object]]:
    """Return the rows of the table ``rounds``; see docs/output.md."""
    rows: list[dict[str, object]] = []
    for place, (result, own) in enumerate(zip(results, totals, strict=True)):
        so_far = reduce(Totals.__add__, totals[: place + 1])
        rows.append(
            {
                "round": result.number,
                "rows": result.rows,
                "normal_rows": result.rows - result.left_over,
                "outlier_rows": result.left_over,
                "classes": own.classes,
                "classes_total": so_far.classes,
                "dm": own.discernibility,
                "dm_total": so_far.discernibility,
                "gcp_total": own.certainty_penalty,
                "gcp_total_cumulative": so_far.certainty_penalty,
                "gcp_total_if_last": float(result.penalty_if_last),
                "mean_class_size": own.mean_class_size,
                "mean_class_size_with_outliers": replace(
                    own, suppressed=result.left_over
                ).mean_class_size_with_suppressed,
                "precision": own.precision,
                "loss": own.loss,
                "height": sum(result.levels.values()) if result.levels is not None else None,
                "levels": levels_text(result.levels) if result.levels is not None else None,
            }
        )
    return rows
