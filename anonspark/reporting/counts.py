"""The values of several attributes of a table with their records, counted in one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.grouping import Aggregate, aggregate
from anonspark.staged.records import together

RECORDS = "records"

_INDEX = "place"
_PART_BYTES = 2**25


def count_values(
    table: Table,
    columns: Mapping[int, Sequence[str]],
    most: int | None = None,
) -> dict[int, pa.Table]:
    """Count the records of each different value of several attributes.

    Parameters
    ----------
    table : Table
    columns : mapping of int to sequence of str
        The columns of each attribute, by its place.
    most : int or None
        So many rows are collected at most.

    Returns
    -------
    dict of int to pyarrow.Table
        The columns of each attribute, and :data:`RECORDS`.

    Notes
    -----
    One pass and one shuffle of what tasks have counted.
    """
    names = [name for column in columns.values() for name in column]
    fields = [table.schema.field(name) for name in names]
    schema = pa.schema([(_INDEX, pa.int32()), *fields, (RECORDS, pa.int64())])
    parts = table.select(names).map_batches(_CountEach(columns, schema), schema)
    counted = parts.aggregate([_INDEX, *names], sums=[RECORDS])
    collected = counted.collect(most)
    return {
        index: collected.filter(pc.field(_INDEX) == index).select([*column, RECORDS])
        for index, column in columns.items()
    }


@dataclass(frozen=True)
class _CountEach:
    """Counts the records of a task, part by part. A row has nulls for the other attributes."""

    columns: Mapping[int, Sequence[str]]
    schema: pa.Schema

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        count = Aggregate(RECORDS, "count", "", pa.int64())
        for rows in together(batches, _PART_BYTES):
            for index, names in self.columns.items():
                counted = aggregate(rows.select(names), names, [count])
                indices = pa.repeat(pa.scalar(index, pa.int32()), len(counted))
                both = [self.schema.empty_table(), counted.append_column(_INDEX, indices)]
                yield from pa.concat_tables(both, promote_options="default").to_batches()
