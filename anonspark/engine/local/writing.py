"""Write the files of a release's tables without Spark, for Spark and other readers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from anonspark.engine.files import PublishedFile
from anonspark.engine.parquet_encoding import EncodedFile, Encoding, nullable
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    from anonspark.engine.local.table import LocalTable

_FIRST_DAY = pa.scalar(date(1582, 10, 15))
_FIRST_TIME = pa.scalar(datetime(1970, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC"))
# Arrow reads moments of ORC in nanoseconds, which end here.
_AFTER_LAST_TIME = pa.scalar(datetime(2262, 4, 11, tzinfo=UTC), pa.timestamp("us", "UTC"))


def write_parquet(batches: Batches, schema: pa.Schema, path: str) -> PublishedFile:
    """Write a new Parquet file of at least one batch, each a row group.

    The bytes are those that Spark's engine writes for the same batches.
    """
    file = EncodedFile(Encoding.of(schema))
    with Path(path).open("xb") as target:
        for part in file.parts(batches):
            target.write(part)
    return PublishedFile(path, file.size, file.rows, file.sha256)


def write_orc(batches: Batches, schema: pa.Schema, path: str) -> PublishedFile:
    """Write a new ORC file of at least one batch.

    Raises ConfigurationError if readers would misread, or could not read, some days or times.
    """
    for field in schema:
        if pa.types.is_timestamp(field.type) and not field.type.tz:
            raise _refused(field.name, "times without a zone")
    rows = 0
    with Path(path).open("xb") as target, orc.ORCWriter(target, compression="zstd") as writer:
        for table in _as_in_orc(batches, nullable(schema)):
            writer.write(table)
            rows += len(table)
    with Path(path).open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return PublishedFile(path, Path(path).stat().st_size, rows, digest)


def _as_in_orc(batches: Batches, schema: pa.Schema) -> Iterator[pa.Table]:
    """Convert batches to the types of ORC.

    Raises ConfigurationError for days and times of other calendars.
    """
    for batch in batches:
        # A copy: for a slice of structs Arrow would write those at the beginning of the array.
        table = pa.Table.from_batches([batch]).take(np.arange(len(batch))).cast(schema)
        for index, field in enumerate(schema):
            values = table.column(index)
            if pa.types.is_date(field.type) and _any_before(values, _FIRST_DAY):
                raise _refused(field.name, "days before 1582-10-15")
            if pa.types.is_timestamp(field.type):
                if _any_before(values, _FIRST_TIME):
                    raise _refused(field.name, "times before 1970")
                if pc.any(pc.greater_equal(values, _AFTER_LAST_TIME)).as_py():
                    raise _refused(field.name, "times after 2262-04-10")
                # Spark writes points in time to ORC in this type.
                table = table.set_column(index, field.name, values.cast(pa.timestamp("us")))
        yield table


def _any_before(values: pa.ChunkedArray, first: pa.Scalar) -> bool:
    """Return whether any value is below another one."""
    return bool(pc.any(pc.less(values, first)).as_py())


def _refused(name: str, what: str) -> ConfigurationError:
    """Return the error of a column that ORC does not hold for all readers."""
    return ConfigurationError(
        f"output.format: the column {name!r} has {what}, which not all readers would find in an "
        "ORC file of the local engine. Set output.format to parquet, or execution.engine to spark"
    )


_WRITERS = {"parquet": write_parquet, "orc": write_orc}


def require_format(data_format: str) -> None:
    """Raise ConfigurationError if tables cannot be published in a format."""
    if data_format not in _WRITERS:
        raise ConfigurationError(
            f"output.format: found {data_format!r}, which the local engine does not write. "
            f"Expected {' or '.join(_WRITERS)}. Choose one of them, or set execution.engine to "
            "spark"
        )


def publish_tasks(
    table: LocalTable, data_format: str, release: str, directory: str, aside: str
) -> list[PublishedFile]:
    """Write a table. See :meth:`anonspark.engine.protocol.Table.publish`.

    Tasks write to ``aside``. Files that have records are then renamed, so numbers have no gaps.
    """
    files = table.resources.files
    folder_aside = f"{aside}/{directory}"
    files.make_directory(folder_aside)
    write = _WRITERS[data_format]

    def write_file(number: int, batches: Batches) -> PublishedFile | None:
        first = next((batch for batch in batches if len(batch)), None)
        if first is None:
            return None
        path = f"{files.local_path(folder_aside)}/{number:05d}"
        return write(chain([first], batches), table.schema, path)

    written_files = table.resources.runner.run(table.sources(), write_file)
    files.make_directory(f"{release}/{directory}")
    published = []
    for number, file in enumerate(filter(None, written_files)):
        name = f"{directory}/part-{number:05d}.{data_format}"
        files.rename(f"{folder_aside}/{file.path.rpartition('/')[2]}", f"{release}/{name}")
        published.append(replace(file, path=name))
    files.delete(folder_aside)
    return published
