"""Records, raw and published, as vectors of one feature space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.release.axes import Axis
from anonspark.utility.learning import LABEL, Target
from anonspark.utility.original import HASH, drawn, with_record_hash
from anonspark.utility.records import (
    as_comparable,
    published_columns,
    read_published,
    read_values,
    readings_of,
    value_column,
)

_EXAMPLES = pa.schema([("features", pa.list_(pa.float64())), (LABEL, pa.float64())])


@dataclass(frozen=True)
class FeatureSpace:
    """The features of a record.

    A number, day or time is one feature: the value, or the middle of the values that a class
    covers. A text is one feature for each of the 100 most frequent texts of the original: 1 for its
    own, or, for a class that covers several values, the share of each, 1 / values. An attribute
    with missing values in the original has one more feature, the share of missing. A missing number
    is the middle of the original's range.

    Parameters
    ----------
    quasi_identifiers : tuple of Axis
    others : tuple of Axis
        Published as they are.
    """

    quasi_identifiers: tuple[Axis, ...]
    others: tuple[Axis, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All attributes, quasi-identifiers first."""
        return (*self.quasi_identifiers, *self.others)

    def of_value(self, axis: Axis, values: pa.Array) -> Figures:
        """Return the features of raw values, of shape (rows, features of the axis)."""
        position = axis.positions(values)
        missing = np.isnan(position)
        if axis.scale == "text":
            features = (position[:, None] == axis.frequent).astype(np.float64)
        else:
            features = np.where(missing, axis.middle, position)[:, None]
        return np.column_stack([features, missing]) if axis.missing else features

    def of_region(self, axis: Axis, columns: Sequence[pa.Array]) -> Figures:
        """Return the features of published values, of shape (rows, features of the axis)."""
        spread, numbers = axis.spread(columns)
        if axis.scale == "text":
            features = spread.shares(axis.frequent, axis.frequent)
        else:
            centers = spread.centers()
            features = np.where(np.isnan(centers), axis.middle, centers)[:, None]
        each = np.column_stack([features, spread.missing]) if axis.missing else features
        return each[numbers]


@dataclass(frozen=True)
class Examples:
    """The source of examples to learn from, or to test on.

    Parameters
    ----------
    space : FeatureSpace
    target : Target
        What is learned. Records without a class of it are left out.
    missing_markers : tuple of str
        Texts that mean missing.
    """

    space: FeatureSpace
    target: Target
    missing_markers: tuple[str, ...]

    def of_records(self, table: Table, what: str) -> Table:
        """Return raw records as examples for :meth:`anonspark.engine.protocol.Engine.learn`.

        Parameters
        ----------
        table : Table
            The original, or a table like it.
        what : str
            What the table is, for messages.

        Returns
        -------
        Table
            Lazy. No shuffle.

        Raises
        ------
        DataError
            If the table lacks columns, or their types have other values than the original's.
        """
        readings = [*self._readings(table, what), self.target.reading(table)]
        return self._encode(read_values(table, readings))

    def parts_of_original(self, original: Table, test_share: float) -> tuple[Table, Table]:
        """Divide the original into examples to learn from, and about a share of them to test on.

        Equal records are in one part. Costs and errors: :meth:`of_records`.
        """
        readings = sorted(self._readings(original, "--original"), key=lambda source: source.column)
        readings.append(self.target.reading(original))
        numbers = as_comparable(read_values(original, readings), readings, self.target)
        hashed = with_record_hash(numbers, numbers.schema.names)
        learned = self._encode(hashed, test_share=test_share, test=False)
        return learned, self._encode(hashed, test_share=test_share, test=True)

    def of_release(self, release: Table) -> Table:
        """Return published records as examples. Costs and errors: :meth:`of_records`."""
        axes, others = self.space.quasi_identifiers, self.space.others
        readings = readings_of(release, others, self.missing_markers, "release", len(axes))
        records = read_published(
            release, [axis.columns for axis in axes], [*readings, self.target.reading(release)]
        )
        return self._encode(records, published=len(axes))

    def _readings(self, table: Table, what: str) -> list[Reading]:
        return readings_of(table, self.space.axes, self.missing_markers, what)

    def _encode(self, records: Table, **options: Any) -> Table:
        return records.map_batches(_Encode(self.space, self.target, **options), _EXAMPLES)


@dataclass(frozen=True)
class _Encode:
    """Encodes a task's records.

    Parameters
    ----------
    space : FeatureSpace
    target : Target
    published : int
        How many of the space's attributes are described by published columns.
    test_share : float or None
        Share of the records that is for testing. None takes all records.
    test : bool
        Whether those are wanted, or the others.
    """

    space: FeatureSpace
    target: Target
    published: int = 0
    test_share: float | None = None
    test: bool = False

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            labels = self.target.numbers(batch.column(LABEL))
            chosen = np.asarray(labels.is_valid())
            if self.test_share is not None:
                chosen &= drawn(batch.column(HASH), self.test_share) == self.test
            mask = pa.array(chosen)
            features = np.concatenate(list(self._features(batch.filter(mask))), axis=1)
            offsets = np.arange(len(features) + 1, dtype=np.int32) * features.shape[1]
            lists = pa.ListArray.from_arrays(offsets, features.reshape(-1))
            yield pa.record_batch([lists, labels.filter(mask)], schema=_EXAMPLES)

    def _features(self, batch: pa.RecordBatch) -> Iterator[Figures]:
        for index, axis in enumerate(self.space.axes):
            if index < self.published:
                columns = [
                    batch.column(name) for name in published_columns(index, len(axis.columns))
                ]
                yield self.space.of_region(axis, columns)
            else:
                yield self.space.of_value(axis, batch.column(value_column(index)))
