"""Parquet files that lie in memory as a whole, decoded and prepared for staging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.columns.file_types import BATCH_ROWS, values_as_read
from anonspark.engine.columns.judging import Found
from anonspark.engine.columns.reading import ReadRecords
from anonspark.engine.protocol import OnBatches
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError

PART = "part"
BATCHES, FOUND = "batches", "found"
"""Which of two parts a row is of: the packed batches, or what was found in their records."""

FOUND_TEXT = "found_text"
"""Column of what a task found, see :meth:`anonspark.engine.columns.judging.Found.to_text`."""

# Different texts of a column that a task counts exactly; beyond, the count is off by 2 % or so.
_MOST_DISTINCT = 4096


@dataclass(frozen=True)
class PrepareFiles:
    """Reads the records of whole files, packs them, and tells what was found in them.

    What was found is written beside what was packed, by the same attempt of a task, so that it is
    counted once however often tasks run.

    Parameters
    ----------
    columns : pyarrow.Schema
        The columns of the input that are read.
    reader : ReadRecords
    pack : callable
        Takes a task's records, yields batches.
    packed : pyarrow.Schema
        Of these batches.
    """

    columns: pa.Schema
    reader: ReadRecords
    pack: OnBatches
    packed: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Of the rows: those of the batches, with a part and a text for what was found."""
        return pa.schema([*self.packed, (FOUND_TEXT, pa.string()), (PART, pa.string())])

    def __call__(self, files: Batches) -> Batches:
        """Yield the rows of a task, the last of which tells what was found.

        Parameters
        ----------
        files : iterator of pyarrow.RecordBatch
            With one column, of the bytes of files.
        """
        found = Found(most_distinct=_MOST_DISTINCT)
        contents = (
            value.as_buffer() for batch in files for value in batch.column(0) if value.is_valid
        )
        decoded = (one for content in contents for one in decode_file(content, self.columns))
        for batch in self.pack(self.reader.records(decoded, found)):
            rows = len(batch)
            told = [pa.nulls(rows, pa.string()), pa.repeat(BATCHES, rows)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *told], schema=self.schema)
        nothing = [pa.nulls(1, field.type) for field in self.packed]
        told = [pa.array([found.to_text()]), pa.array([FOUND])]
        yield pa.RecordBatch.from_arrays([*nothing, *told], schema=self.schema)


def decode_file(content: pa.Buffer, columns: pa.Schema) -> Batches:
    """Decode columns of a Parquet file.

    Parameters
    ----------
    content : pyarrow.Buffer
    columns : pyarrow.Schema
        Their names in any case of letters, and the types that they are read as.

    Raises
    ------
    DataError
        If the file is damaged, or lacks a column.
    """
    with _decoding():
        file = parquet.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        names = {name.lower(): name for name in file.schema_arrow.names}
        own = [names[field.name.lower()] for field in columns]
        for batch in file.iter_batches(BATCH_ROWS, columns=own, use_threads=False):
            pairs = zip(own, columns, strict=True)
            values = [values_as_read(batch.column(name), field.type) for name, field in pairs]
            yield pa.RecordBatch.from_arrays(values, schema=columns)


@contextmanager
def _decoding() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, KeyError, OSError) as error:
        # In the words of Spark for it, by which the driver knows what failed.
        raise DataError(
            "CANNOT_READ: a Parquet file is damaged, or is another than when the input was opened"
        ) from error
