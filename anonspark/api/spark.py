"""DataFrames of Spark."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from anonspark.api.tables import GIVEN
from anonspark.config import Configuration
from anonspark.engine.files import literal
from anonspark.engine.protocol import Table
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.filesystem import files_of, path_for
from anonspark.engine.spark.identifiers import with_numbers_for_identifiers
from anonspark.engine.spark.input import plain_schema
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.session import (
    open_session,
    require_running,
)
from anonspark.engine.spark.settings import (
    is_of_connect,
    our_settings,
    reads_as_we_do,
    writing_settings,
)
from anonspark.errors import ConfigurationError

# The settings of a session are those of all its threads.
_TURN = threading.RLock()


@dataclass(frozen=True)
class SparkAdapter:
    """DataFrames of a session, as :class:`anonspark.api.adapters.Adapter`."""

    session: SparkSession
    is_lazy = True

    @property
    def engine(self) -> SparkEngine:
        """The session as an engine."""
        return SparkEngine(self.session)

    def require_usable(self) -> None:
        """Raise an error if the session was stopped."""
        require_running(self.session)

    def make_staging(self) -> tuple[str, str]:
        """Return a temporary directory, as an address and as a path.

        Raises ConfigurationError if Spark runs on a cluster, or is reached through Spark Connect.
        """
        session = self.session
        if is_of_connect(session) or not str(session.sparkContext.master).startswith("local"):
            raise ConfigurationError(
                "staging: none is given, and Spark runs on a cluster. Expected a private directory "
                "that all executors reach, such as hdfs:///tmp/anonspark"
            )
        temporary = tempfile.mkdtemp(prefix="anonspark-")
        # With its scheme, because Spark may take other paths for those of another file system.
        return Path(temporary).as_uri(), temporary

    @contextmanager
    def tables(self, *frames: DataFrame | None) -> Iterator[list[Any]]:
        """Yield tables, which are computed first if the session's settings change their meaning."""
        with _TURN:
            computed = [_computed(frame) for frame in frames]
            with our_settings(self.session):
                yield [None if frame is None else self._table(frame) for frame in computed]

    @contextmanager
    def input(self, frame: DataFrame, configuration: Configuration, path: str) -> Iterator[Table]:
        """Yield a table that is anonymized."""
        with (
            _TURN,
            _written(frame, configuration, path) as records,
            our_settings(self.session),
        ):
            yield self._table(records())

    @contextmanager
    def source(
        self, frame: DataFrame, _: Configuration | None, names: Collection[str | None]
    ) -> Iterator[Table]:
        """Yield the named columns of a table, and no others."""
        frame = with_fields(frame)
        frame = frame.select(*(quoted(name) for name in frame.columns if name in names))
        with self.tables(frame) as (table,):
            yield table

    def collect(self, path: str, data_format: str) -> pa.Table:
        """Return the table of a release."""
        with _TURN, our_settings(self.session):
            return self.engine.wrap(self._read(path, data_format)).collect()

    def read(self, path: str, data_format: str) -> DataFrame:
        """Return the table of a release as a lazy DataFrame."""
        with _TURN, our_settings(self.session):
            return self._read(path, data_format)

    def _read(self, path: str, data_format: str) -> DataFrame:
        return self.session.read.format(data_format).load(literal(path_for(self.session, path)))

    def convert(self, rows: pa.Table) -> DataFrame:
        """Return a table of Arrow as a DataFrame."""
        records = [tuple(row.values()) for row in rows.to_pylist()]
        return self.session.createDataFrame(records, spark_schema(rows.schema))

    def _table(self, frame: DataFrame) -> Table:
        return self.engine.wrap(with_fields(frame))


@contextmanager
def _written(
    table: DataFrame, configuration: Configuration, path: str
) -> Iterator[Callable[[], DataFrame]]:
    """Yield the function that returns the table, to be called with our settings.

    If the session's settings mean something else, the attributes are computed with them and written
    below ``path``, which is removed at the end. No other column is computed.
    """
    spark = table.sparkSession
    if reads_as_we_do(spark):
        yield lambda: table
        return
    selected = select_attributes(table, configuration)
    names = selected.columns
    # They are counted, and must not be staged.
    selected = with_numbers_for_identifiers(selected, configuration)
    # Files do not have all names that tables in memory have.
    selected = selected.toDF(*(f"column_{index}" for index in range(len(names))))
    schema = plain_schema(selected.schema)
    files, path = files_of(spark), path_for(spark, path)
    try:
        files.make_private_directory(path)
        with reading_input((GIVEN,), key=""), writing_settings(spark):
            selected.write.parquet(f"{path}/records")
        yield partial(_read_back, spark, f"{path}/records", schema, names, table.columns)
    finally:
        files.delete(path)


def _read_back(
    spark: SparkSession,
    directory: str,
    schema: StructType,
    names: Sequence[str],
    columns: Sequence[str],
) -> DataFrame:
    """Read staged attributes under their names, with nulls for the other columns of the table.

    The others are only counted. Columns match by position, because some may have the same name, to
    our settings at least.
    """
    records = spark.read.schema(schema).parquet(literal(directory)).toDF(*names)
    prefixes = tuple(f"{name.lower()}." for name in names)
    others = [
        name
        for name in columns
        if not any(prefix.startswith(f"{name.lower()}.") for prefix in prefixes)
    ]
    nothing = functions.lit(None).cast("string")
    return records.select("*", *[nothing] * len(others)).toDF(*names, *others)


def _computed(table: DataFrame | None) -> DataFrame | None:
    """Compute a table if its session's settings mean something else than ours.

    The records are then in the memory and on the disks of the executors.
    """
    if table is None or reads_as_we_do(table.sparkSession):
        return table
    with reading_input((GIVEN,), key=""):
        return table.localCheckpoint()


@contextmanager
def adapted(frame: DataFrame | None) -> Iterator[SparkAdapter]:
    """Yield the adapter for the session of a DataFrame, or for a new session."""
    if frame is None:
        with open_session() as session:
            yield SparkAdapter(session)
        return
    session = frame.sparkSession
    require_running(session)
    yield SparkAdapter(session)
