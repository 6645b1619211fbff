"""Add up the sampling weights of published classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonspark.core.columns import published_column
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, type_name
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import read_values
from anonspark.errors import DataError
from anonspark.labels.raw_values import reading_of
from anonspark.release.risk import Floats, Sizes

_KEY = "evaluate.risk.weights"
_WEIGHT, _RECORDS = "weight", "records"

# Weights are added up as whole numbers and as multiples of this, so that their order does not
# matter.
_UNIT = 2.0**-30
_SUMS = ("whole", "parts", "unsound")

# More than all people on earth, and small enough for sums in 64 bits.
_LARGEST = 2.0**33


def sum_weights(
    data: Table, columns: Sequence[str], name: str | None, missing_markers: Sequence[str]
) -> tuple[Sizes, Floats] | None:
    """Sum the weights of each class. Returns records and sums of the classes, in a fixed order.

    Returns None without a column of weights. ``columns`` form classes, and without any all records
    are one class. Raises DataError if a weight is negative, or no finite number. One job, with one
    shuffle of a row a class and task. Three numbers of each class are collected.
    """
    if name is None:
        return None
    data_type = data.schema.field(name).type
    reading = reading_of(_WEIGHT, _WEIGHT, data_type, "number", None, missing_markers)
    if reading is None:
        raise DataError(
            f"{_KEY}: column {name!r} has type {type_name(data_type)}. Expected numbers. Choose "
            "another column"
        )
    # Numbered, so that no published name clashes with ours.
    by = [published_column(index) for index in range(len(columns))]
    numbered = data.select(dict(zip([*by, _WEIGHT], [*columns, name], strict=True)))
    schema = pa.schema([*map(numbered.schema.field, by), *((name, pa.int64()) for name in _SUMS)])
    classes = (
        numbered.map_batches(_SplitWeights(reading, tuple(by)), schema)
        .aggregate(by, count=_RECORDS, sums=_SUMS)
        .select([_RECORDS, *_SUMS])
        .collect()
    )
    records, whole, parts, unsound = (column.to_numpy() for column in classes.columns)
    if unsound.sum():
        raise DataError(
            f"{_KEY}: found {int(unsound.sum()):,} of {int(records.sum()):,} records without a "
            f"weight in column {name!r}. Expected finite numbers from 0 to "
            f"{_LARGEST:,.0f}. Correct the column, or remove {_KEY}"
        )
    sums = whole + parts * _UNIT
    order = np.lexsort((sums, records))
    return records[order], sums[order]


@dataclass(frozen=True)
class _SplitWeights:
    """Yields the labels of a task's records, and the numbers that their weights consist of."""

    reading: Reading
    labels: tuple[str, ...]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Split the weights of each batch into whole numbers and parts."""
        for batch in batches:
            read, _ = read_values(self.reading, batch.column(_WEIGHT))
            weights = read.fill_null(-1.0).to_numpy()
            sound = (weights >= 0.0) & (weights <= _LARGEST)
            parts, whole = np.modf(np.where(sound, weights, 0.0))
            numbers = (whole, np.rint(parts / _UNIT), ~sound)
            columns = [pa.array(column.astype(np.int64)) for column in numbers]
            labels = [batch.column(name) for name in self.labels]
            yield pa.RecordBatch.from_arrays([*labels, *columns], [*self.labels, *_SUMS])
