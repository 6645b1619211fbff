"""Raw and published records as columns of known names, whatever theirs are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures, Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.labels.axes import Axis
from anonspark.labels.raw_values import comparable, reading_of
from anonspark.utility.learning import LABEL, Target


def value_column(index: int) -> str:
    """Name the column with the raw values of an attribute."""
    return f"value_{index}"


def published_columns(index: int, columns: int) -> tuple[str, ...]:
    """Name the columns with what is published of a quasi-identifier, as many as it has."""
    return tuple(f"published_{index}_{part}" for part in range(columns))


def readings_of(
    table: Table, axes: Sequence[Axis], missing_markers: Sequence[str], what: str, first: int = 0
) -> list[Reading]:
    """Return how raw values of a table are read, one reading an axis.

    Parameters
    ----------
    table : Table
        The original, another table like it, or a release's columns that are published as they are.
    axes : sequence of Axis
    missing_markers : sequence of str
    what : str
        What the table is, for messages.
    first : int
        The place of the first axis, for :func:`value_column`.

    Raises
    ------
    DataError
        If it lacks columns, or their types have other values than the original's.
    """
    readings, problems = [], []
    types = {field.name: field.type for field in table.schema}
    for index, axis in enumerate(axes, start=first):
        name = axis.name
        if name not in types:
            problems.append(lacking(what, name, table))
            continue
        reading = reading_of(
            name, value_column(index), types[name], axis.scale, axis.published, missing_markers
        )
        if reading is None:
            problems.append(unreadable(what, name, axis.scale))
        else:
            readings.append(reading)
    if problems:
        raise DataError(*problems)
    return readings


def read_values(table: Table, readings: Sequence[Reading], carried: Sequence[str] = ()) -> Table:
    """Return the values of some columns, by the names of the readings, and others. No shuffle."""
    names = [*(reading.name for reading in readings), *carried]
    return table.read(readings, carried).select(names)


def read_published(
    release: Table, published: Sequence[Sequence[str]], readings: Sequence[Reading]
) -> Table:
    """Return what a release publishes.

    Parameters
    ----------
    release : Table
    published : sequence of sequence of str
        The columns of each quasi-identifier.
    readings : sequence of Reading
        Of columns that are published as they are.

    Returns
    -------
    Table
        The columns of the readings, then those that :func:`published_columns` names. No shuffle.

    Raises
    ------
    DataError
        If the release lacks columns.
    """
    require_published(release, published)
    # Numbered, so that no published name clashes with ours.
    numbered = {
        new: name
        for index, columns in enumerate(published)
        for new, name in zip(published_columns(index, len(columns)), columns, strict=True)
    }
    raw = {f"raw_{index}": reading.column for index, reading in enumerate(readings)}
    renamed = [replace(reading, column=name) for reading, name in zip(readings, raw, strict=True)]
    return read_values(release.select(numbered | raw), renamed, list(numbered))


def require_published(release: Table, published: Sequence[Sequence[str]]) -> None:
    """Check that a release has the published columns of all quasi-identifiers.

    Raises
    ------
    DataError
    """
    names = release.schema.names
    lacking = [name for columns in published for name in columns if name not in names]
    if lacking:
        raise DataError(f"release: lacks the columns {', '.join(map(repr, lacking))}")


def as_comparable(
    records: Table, readings: Sequence[Reading], target: Target | None = None
) -> Table:
    """Return the values of some columns as float64 and texts. No shuffle.

    Parameters
    ----------
    records : Table
        Of which the readings were read.
    readings : sequence of Reading
    target : Target or None
        Of what column `LABEL` holds, if that is among them: it becomes the number of the class.
    """
    schema = pa.schema(
        [
            (
                reading.name,
                pa.string() if reading.type in (pa.string(), pa.bool_()) else pa.float64(),
            )
            for reading in readings
            if target is None or reading.name != LABEL
        ]
    )
    if target is not None:
        schema = schema.append(pa.field(LABEL, pa.float64()))
    return records.map_batches(_MakeComparable(schema, target), schema)


@dataclass(frozen=True)
class _MakeComparable:
    """Turns the values of a task's records into numbers and texts."""

    schema: pa.Schema
    target: Target | None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = {name: comparable(batch.column(name)) for name in self.schema.names}
            if self.target is not None:
                columns[LABEL] = self.target.numbers(columns[LABEL])
            yield pa.record_batch(list(columns.values()), schema=self.schema)


CELLS = pa.schema([("cell", pa.int64()), ("records", pa.decimal128(38, 0))])
"""The counts of tasks, by the numbers of cells. All of them may be more than 64 bits hold."""


def cells_of(counts: Integers, unreadable: Iterable[int] = ()) -> pa.RecordBatch:
    """Return what a task has counted, of :data:`CELLS`.

    Parameters
    ----------
    counts : int64 ndarray of shape (cells,)
    unreadable : iterable of int
        Places of attributes whose labels cannot be read, which :func:`sum_cells` reports: an
        exception of a task would reach the user as a bug.
    """
    some = np.flatnonzero(counts)
    cells = np.concatenate([some, -1 - np.array(sorted(unreadable), np.int64)])
    records = np.ones(len(cells), np.int64)
    records[: len(some)] = counts[some]
    columns = [pa.array(cells), pa.array(records).cast(CELLS.field(1).type)]
    return pa.record_batch(columns, schema=CELLS)


def sum_cells(
    table: Table, work: Callable[[Batches], Batches], cells: int, names: Sequence[str] = ()
) -> Figures:
    """Return the sums of what tasks count, float64 ndarray of shape (cells,).

    Parameters
    ----------
    table : Table
    work : callable
        What a task does, see :func:`cells_of`.
    cells : int
    names : sequence of str
        Of the attributes whose labels are read.

    Raises
    ------
    DataError
        If some cannot be read.

    Notes
    -----
    One job with a small shuffle. At most a number a cell is collected.
    """
    counted = table.map_batches(work, CELLS).aggregate(["cell"], sums=["records"]).collect()
    numbers = counted["cell"].to_numpy()
    if (numbers < 0).any():
        indices = sorted(-1 - numbers[numbers < 0])
        raise unreadable_labels(names[index] for index in indices)
    sums = np.zeros(cells)
    sums[numbers] = [float(record) for record in counted["records"].to_pylist()]
    return sums


def lacking(what: str, name: str, table: Table) -> str:
    """Return the error that a table lacks a column."""
    return (
        f"{what}: lacks the column {name!r}, which the release publishes. Found "
        f"{', '.join(map(repr, table.schema.names)) or 'no columns'}"
    )


def unreadable(what: str, column: str, kind: str) -> str:
    """Return the error that a column has values of another kind than the release's."""
    return (
        f"{what}: the values of column {column!r} cannot be read as a {kind}, which "
        "they were when the release was made. Give the table with the types that it had"
    )


def unreadable_labels(names: Iterable[str]) -> DataError:
    """Return the error that labels of some attributes cannot be read."""
    return DataError(
        *(
            f"release: labels in the published columns of {name!r} cannot be read. If they are "
            "labels of a hierarchy, its file is another one now than when the release was made"
            for name in names
        )
    )
