"""Figures of a release, summed up from its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.columns import ROUND, SIZE, is_published
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.figures import exact_sums
from anonspark.release.derived_figures import LossSums, Totals
from anonspark.staged.records import Records, bytes_of_each


@dataclass(frozen=True)
class RoundResult:
    """The figures of a round.

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
        Records of the largest block, if it is far larger than usual, else 0.
    staged_bytes : int
        What the records of the finished classes take before they are compressed.
    """

    number: int
    rows: int
    left_over: int
    penalty: Decimal
    penalty_if_last: Decimal
    squares_if_whole: int
    levels: Mapping[str, int] | None = None
    large_block: int = 0
    staged_bytes: int = 0


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
        In the order of the rounds. Rounds without a class are left out.

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
        losses = tuple(_losses(row, one, index) for index, one in enumerate(quasi_identifiers))
        pairs = zip(quasi_identifiers, losses, strict=True)
        own = Totals(
            {row[SIZE]: row["classes"]},
            sum((weight_of(one) * lost.penalty for one, lost in pairs), Decimal(0)),
            losses,
            row[_LABEL_BYTES],
        )
        number = row[ROUND]
        by_round[number] = by_round[number] + own if number in by_round else own
    return [by_round[number] for number in sorted(by_round)]


def weight_of(quasi_identifier: QuasiIdentifier) -> Decimal:
    """Return what the figures of all attributes together are weighted by."""
    return Decimal(str(quasi_identifier.weight))


def _losses(row: Mapping[str, Any], quasi_identifier: QuasiIdentifier, index: int) -> LossSums:
    """Return the sums of an attribute."""
    penalty, iloss = row[f"penalty_{index}"], row[f"loss_{index}"]
    domain = quasi_identifier.domain_size
    return LossSums(
        row[f"generalized_{index}"],
        penalty,
        iloss,
        # ILoss has the whole domain in its denominator, this one all but one value.
        iloss * domain / max(domain - 1, 1) if quasi_identifier.is_category else penalty,
        Decimal(row[f"level_{index}"]) / quasi_identifier.height,
    )
