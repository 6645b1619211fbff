"""Chosen columns of a table of Parquet files, decoded in Python tasks where that reads the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from anonspark.engine.file_schemas import FileSchemas
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.made import Made
from anonspark.engine.spark.whole_files import find_whole_files
from anonspark.engine.tasks import Batches
from anonspark.engine.values.whole_files import decode_file

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class SourceFiles:
    """The files of a table as it was opened.

    Parameters
    ----------
    files : FileSchemas or None
    options : mapping of str to str
        Of the format.
    level : int
        Of the log's line that says why rows are handed over. The reason may be sizes, which
        ``select`` shows only to those who debug.
    """

    files: FileSchemas | None
    options: Mapping[str, str]
    level: int = logging.DEBUG

    def select(self, frame: DataFrame, columns: Mapping[str, str]) -> Made | None:
        """Return columns under new names, None where only Spark's own reader knows them.

        Parameters
        ----------
        frame : DataFrame
            The table.
        columns : mapping of str to str
            New names, and the columns that get them.
        """
        schema = arrow_schema(frame.schema)
        names = list(dict.fromkeys(columns.values()))
        session = frame.sparkSession
        whole = find_whole_files(session, self.files, self.options, schema, names)
        if isinstance(whole, str):
            _LOGGER.log(self.level, "the input is handed over row by row, because of %s", whole)
            return None
        decode = _DecodeColumns(whole.columns)
        contents = whole.contents(session)
        return Made(contents, decode, whole.columns, decode.select, lambda: frame).select(columns)


@dataclass(frozen=True)
class _DecodeColumns:
    """Decodes files whose contents are values."""

    columns: pa.Schema

    def select(self, names: Sequence[str]) -> _DecodeColumns:
        """Return what decodes some of the columns."""
        return _DecodeColumns(pa.schema([self.columns.field(name) for name in names]))

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows of the files; some texts are dictionaries."""
        for batch in batches:
            for content in batch.column(0):
                if content.is_valid:
                    yield from decode_file(content.as_buffer(), self.columns)
