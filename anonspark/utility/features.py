"""Records, raw and published, as vectors of one feature space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.ml.functions import array_to_vector
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tasks import map_batches
from anonspark.utility.axes import Axis, require_columns
from anonspark.utility.original import readable_values

Figures = npt.NDArray[np.float64]

_SCHEMA = "features array<double>, label double"


@dataclass(frozen=True)
class FeatureSpace:
    """What stands for a record.

    A number, day or time is one feature: the value, or the middle of the values that a class
    covers. A text is one feature for each of the 100 most frequent texts of the original: 1 for its
    own, or, for a class that covers several values, the share of each, 1 / values. An attribute
    with missing values in the original has one more feature, the share of missing; a missing number
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
            own = (position[:, None] == axis.frequent).astype(np.float64)
        else:
            own = np.where(missing, axis.middle, position)[:, None]
        return np.column_stack([own, missing]) if axis.missing else own

    def of_region(self, axis: Axis, columns: Sequence[pa.Array]) -> Figures:
        """Return the features of published values, of shape (rows, features of the axis)."""
        spread, numbers = axis.spread(columns)
        if axis.scale == "text":
            own = spread.shares(axis.frequent, axis.frequent)
        else:
            centers = spread.centers()
            own = np.where(np.isnan(centers), axis.middle, centers)[:, None]
        each = np.column_stack([own, spread.missing]) if axis.missing else own
        return each[numbers]


def raw_features(
    table: DataFrame, space: FeatureSpace, label: Column, markers: Sequence[str], what: str
) -> DataFrame:
    """Return raw records as features.

    Parameters
    ----------
    table : DataFrame
        The original, or a table like it.
    space : FeatureSpace
    label : Column
        Number of the class to learn; records without one are left out.
    markers : sequence of str
        Texts that mean missing.
    what : str
        What the table is, for messages.

    Returns
    -------
    DataFrame
        ``features`` (vector) and ``label`` (double); lazy.

    Raises
    ------
    DataError
        If the table lacks columns, or their types have other values than the original's.
    """
    columns = readable_values(table, space.axes, markers, what)
    return _vectors(table.select(*columns, label.alias("label")), space, generalized=False)


def published_features(
    release: DataFrame, space: FeatureSpace, label: Column, markers: Sequence[str]
) -> DataFrame:
    """Return published records as features; parameters and errors as :func:`raw_features`."""
    require_columns(space.quasi_identifiers, release.columns, "release")
    # Numbered, so that no published name clashes with ours.
    columns = [
        sf.col(quoted(name)).alias(f"published_{place}_{part}")
        for place, axis in enumerate(space.quasi_identifiers)
        for part, name in enumerate(axis.columns)
    ]
    d = len(columns)
    columns += readable_values(release, space.others, markers, "release")
    renamed = release.select(
        *columns[:d],
        *(
            column.alias(f"value_{len(space.quasi_identifiers) + place}")
            for place, column in enumerate(columns[d:])
        ),
        label.alias("label"),
    )
    return _vectors(renamed, space, generalized=True)


def _vectors(table: DataFrame, space: FeatureSpace, *, generalized: bool) -> DataFrame:
    labelled = table.where("label IS NOT NULL")
    encoded = map_batches(labelled, _Encode(space, generalized), _SCHEMA)
    return encoded.select(array_to_vector(sf.col("features")).alias("features"), "label")


@dataclass(frozen=True)
class _Encode:
    """Encodes a task's records."""

    space: FeatureSpace
    generalized: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            features = np.concatenate(list(self._features(batch)), axis=1)
            offsets = np.arange(len(features) + 1, dtype=np.int32) * features.shape[1]
            lists = pa.ListArray.from_arrays(offsets, features.reshape(-1))
            yield pa.RecordBatch.from_arrays(
                [lists, batch.column("label")], names=["features", "label"]
            )

    def _features(self, batch: pa.RecordBatch) -> Iterator[Figures]:
        for place, axis in enumerate(self.space.axes):
            if self.generalized and place < len(self.space.quasi_identifiers):
                columns = [
                    batch.column(f"published_{place}_{part}") for part in range(len(axis.columns))
                ]
                yield self.space.of_region(axis, columns)
            else:
                yield self.space.of_value(axis, batch.column(f"value_{place}"))
