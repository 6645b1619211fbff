"""Spark as an engine (:mod:`anonspark.engine.protocol`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.input import SparkInput
from anonspark.engine.spark.reading import open_input
from anonspark.engine.spark.table import SparkTable, frame_of


@dataclass(frozen=True)
class SparkEngine:
    """Spark as an :class:`anonspark.engine.protocol.Engine`.

    Parameters
    ----------
    session : SparkSession
    """

    session: SparkSession

    @property
    def files(self) -> FileSystem:
        """Files and directories through Hadoop's API."""
        return FileSystem(self.session)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of Spark, on the cluster and here."""
        return {"spark": self.session.version, "pyspark": pyspark.__version__}

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        given: Table | None = None,
    ) -> SparkInput:
        """Open a table of people."""
        table = open_input(self.session, configuration) if given is None else frame_of(given)
        return SparkInput.of(self, table, configuration, hierarchies)

    def reading(
        self, paths: tuple[str, ...], key: str = "input.path: "
    ) -> AbstractContextManager[None]:
        """Translate failures of reading tables inside of a ``with`` block."""
        return reading_input(paths, key)

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> SparkTable:
        """Return what :meth:`SparkTable.stage` wrote to some directories."""
        # The schema is said, so that nobody asks the files.
        reader = self.session.read.schema(spark_schema(schema))
        return self.wrap(reader.parquet(*paths))

    def table(self, rows: pa.Table) -> SparkTable:
        """Return a small table that is known already."""
        schema = spark_schema(rows.schema)
        return self.wrap(self.session.createDataFrame(rows.to_pandas(), schema))

    def wrap(self, frame: DataFrame) -> SparkTable:
        """Return a DataFrame of the session as a table."""
        return SparkTable(frame, self)
