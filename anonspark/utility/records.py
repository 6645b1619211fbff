"""Raw and published records as columns with fixed names."""

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
    """Name the published columns of a quasi-identifier, of which there are ``columns``.

    >>> published_columns(0, 2)
    ('published_0_0', 'published_0_1')
    """
    return tuple(f"published_{index}_{part}" for part in range(columns))


def readings_of(
    table: Table, axes: Sequence[Axis], missing_markers: Sequence[str], what: str, first: int = 0
) -> list[Reading]:
    """Plan how to read the raw values of a table: one reading for each axis.

    ``table`` is the original, a table like it, or a release with unchanged columns, and messages
    call it ``what``. ``first`` is the index of the first axis, for :func:`value_column`. Raises
    DataError if columns are absent, or have a type that cannot hold the original's values.
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
    """Read some columns, named by their readings, and carry others along. No shuffle."""
    names = [*(reading.name for reading in readings), *carried]
    return table.read(readings, carried).select(names)


def read_published(
    release: Table, published: Sequence[Sequence[str]], readings: Sequence[Reading]
) -> Table:
    """Read raw columns by their readings, together with the published columns. No shuffle.

    The columns of the result are those of the readings, then those that :func:`published_columns`
    names. Raises DataError if the release lacks columns.
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
    """Raise DataError if a release lacks published columns of quasi-identifiers."""
    names = release.schema.names
    lacking = [name for columns in published for name in columns if name not in names]
    if lacking:
        raise DataError(f"release: lacks the columns {', '.join(map(repr, lacking))}")


def as_comparable(
    records: Table, readings: Sequence[Reading], target: Target | None = None
) -> Table:
    """Convert the columns of readings to float64 or texts. No shuffle.

    With a target, the column `LABEL` becomes the number of the class.
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
    """Converts the values of a task's records to numbers and texts."""

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
    """Return the counts of a task as rows of :data:`CELLS`, without cells of 0 records.

    ``unreadable`` are indices of attributes whose labels cannot be read. They travel as negative
    cells, and :func:`sum_cells` reports them: an exception of a task would reach the user as a bug.

    >>> cells_of(np.array([0, 7, 0, 2])).to_pydict()["cell"]
    [1, 3]
    """
    counted = np.flatnonzero(counts)
    cells = np.concatenate([counted, -1 - np.array(sorted(unreadable), np.int64)])
    records = np.ones(len(cells), np.int64)
    records[: len(counted)] = counts[counted]
    columns = [pa.array(cells), pa.array(records).cast(CELLS.field(1).type)]
    return pa.record_batch(columns, schema=CELLS)


def sum_cells(
    table: Table, work: Callable[[Batches], Batches], cells: int, names: Sequence[str] = ()
) -> Figures:
    """Sum the counts of tasks (:func:`cells_of`) to float64 of shape (cells,).

    ``names`` are the attributes whose labels are read: raises DataError if some cannot be read. One
    job with a small shuffle. At most a number for each cell is collected.
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
    """Write the error that a table lacks a column."""
    return (
        f"{what}: lacks the column {name!r}, which the release publishes. Found "
        f"{', '.join(map(repr, table.schema.names)) or 'no columns'}"
    )


def unreadable(what: str, column: str, kind: str) -> str:
    """Write the error that a column has values of another kind than the release's."""
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
