"""Spark as an engine (:mod:`anonspark.engine.protocol`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pandas as pd
import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files, literal
from anonspark.engine.protocol import Model, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.recognition import found_in_files, settled
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.errors import (
    opening_table,
    reading_input,
    running_tasks,
    writing_output,
)
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.file_contents import SourceFiles, open_published_parquet
from anonspark.engine.spark.filesystem import files_of, path_for
from anonspark.engine.spark.input import SparkInput
from anonspark.engine.spark.java_objects import java_class
from anonspark.engine.spark.jobs import stoppable_jobs, tagged_jobs
from anonspark.engine.spark.named_tables import SparkNamedTable, current_version
from anonspark.engine.spark.parquet_files import find_unknown_settings
from anonspark.engine.spark.published_files import PLAIN_FORMATS
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.reading import open_input
from anonspark.engine.spark.settings import is_of_connect
from anonspark.engine.spark.table import SparkTable, frame_of
from anonspark.engine.spark.tables import OpenedTable, open_table
from anonspark.errors import ConfigurationError
from anonspark.progress import Progress
from anonspark.redaction import redact

# Longer than any path of a file system.
_LONGEST_PATH = 1 << 20


@dataclass(frozen=True)
class SparkEngine:
    """A session of Spark as an :class:`anonspark.engine.protocol.Engine`."""

    session: SparkSession

    @property
    def files(self) -> Files:
        """Files and directories through Hadoop's API, or by their mounted path."""
        return files_of(self.session)

    @property
    def versions(self) -> dict[str, str]:
        """Return the versions of Spark, there and here, and of pandas, which converts rows."""
        return {
            "spark": self.session.version,
            "pyspark": pyspark.__version__,
            "pandas": pd.__version__,
        }

    def input_version(self, configuration: Configuration) -> dict[str, str]:
        """Return options that files show, and the current version of Delta Lake or Iceberg."""
        recognized = found_in_files(self.files, configuration)
        options = configuration.with_input(recognized).input
        with opening_table(options.paths, options.format, "input.path", "input"):
            version = current_version(self.session, options.paths, options.format, options.options)
        return {**recognized, **version}

    def open_source(
        self,
        configuration: Configuration,
        *,
        for_tasks: bool = False,
        skips_malformed: bool = False,
    ) -> SparkTable:
        """Open the table that a configuration names, with all of its raw columns."""
        configuration = settled(self.files, configuration)
        opened = open_input(self.session, configuration, skips_malformed=skips_malformed)
        return self._opened(opened, opened.source if for_tasks else None)

    def _opened(self, opened: OpenedTable, source: SourceFiles | None = None) -> SparkTable:
        """Return a table with the fields of its structs as columns."""
        if isinstance(opened.content, PythonStage):
            return SparkTable(opened.content, self)
        return SparkTable(with_fields(opened.content), self, source)

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        source: Table | None = None,
    ) -> SparkInput:
        """Open a table of people."""
        if source is None:
            configuration = settled(self.files, configuration)
            opened = open_input(self.session, configuration)
            table = SparkTable(opened.content, self, opened.source)
        else:
            table = SparkTable(frame_of(source), self)
        files = self.files if source is None else None
        return SparkInput.of(table, configuration, hierarchies, files)

    def reading(
        self, paths: tuple[str, ...], key: str = "input.path: "
    ) -> AbstractContextManager[None]:
        """Translate failures of reading tables inside of a ``with`` block."""
        return reading_input(paths, key)

    def open_table(
        self,
        paths: Sequence[str],
        data_format: str,
        options: Mapping[str, str],
        *,
        key: str,
        section: str | None = None,
        texts: Sequence[str] = (),
        selection: WantedColumns | None = None,
    ) -> SparkTable:
        """Open a table of any files."""
        opened = open_table(
            self.session,
            paths,
            data_format,
            options,
            path_key=key,
            section=section,
            texts=texts,
            selection=selection,
        )
        return self._opened(opened)

    def published(self, path: str, data_format: str) -> SparkTable:
        """Open a table that this program published."""
        path = path_for(self.session, path)
        frame = (
            open_published_parquet(self.session, path) if data_format.lower() == "parquet" else None
        )
        if frame is not None:
            return SparkTable(frame, self)
        return self.wrap(self.session.read.format(data_format).load(literal(path)))

    def named_table(
        self, name: str, partition: Mapping[str, str], *, replaces: bool = False
    ) -> SparkNamedTable:
        """Return a table of a catalog, which need not be there."""
        return SparkNamedTable(self.session, self, name, partition, replaces)

    def require_format(self, data_format: str) -> None:
        """Check, before any work, that tables can be published in a format."""
        try:
            self._look_up(data_format)
        except Py4JError as error:
            raise ConfigurationError(
                f"output.format: this Spark has no data source {data_format!r}. Expected parquet, "
                "orc or the name of one whose package Spark was started with"
            ) from error
        if keys := find_unknown_settings(self.session):
            raise ConfigurationError(
                f"Spark's settings {', '.join(keys)}: releases are encoded without bloom filters, "
                "encryption and pages of the second version, by the codecs none, snappy, gzip, "
                "lz4_raw and zstd. Unset them, or choose another codec (metrics are always Parquet)"
            )

    def _look_up(self, data_format: str) -> None:
        """Raise an error if Spark has no data source of a name."""
        if not is_of_connect(self.session):
            package = "org.apache.spark.sql.execution.datasources"
            sources = java_class(self.session, f"{package}.DataSource")
            settings = self.session._jsparkSession.sessionState().conf()
            sources.lookupDataSource(data_format, settings)
        elif data_format not in PLAIN_FORMATS:
            raise ConfigurationError(
                f"output.format: found {data_format!r}. Through Spark Connect expected "
                f"{' or '.join(PLAIN_FORMATS)}. Set one of them, or use spark-submit"
            )

    def contents(
        self, directory: str, *, largest: int, tail: int, whole: Sequence[str] = ()
    ) -> SparkTable:
        """Read the visible files below a directory: path, SHA-256, and content or tail of each."""
        address = self.files.qualified(directory).rstrip("/")
        reader = self.session.read.format("binaryFile").option("recursiveFileLookup", "true")
        path = sf.col("path").substr(len(address) + 2, _LONGEST_PATH)
        is_whole = reduce(or_, map(path.startswith, whole), sf.lit(False))
        return self.wrap(
            reader.load(literal(address))
            .where(sf.col("length") <= largest)
            .select(
                path.alias("path"),
                sf.sha2("content", 256).alias("sha256"),
                sf.when(is_whole, sf.col("content"))
                .otherwise(sf.substring("content", -tail, tail))
                .alias("tail"),
            )
        )

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Errors of Spark."""
        return PySparkException, Py4JError

    @contextmanager
    def running(self, run_id: str, progress: Progress) -> Iterator[None]:
        """Run the jobs of a block as one group, described in Spark by the stage of the run."""
        if is_of_connect(self.session):
            jobs = tagged_jobs(self.session, f"anonspark-{run_id}")
            with jobs, running_tasks(progress), writing_output():
                yield
            return
        context = self.session.sparkContext

        def describe(moment: str) -> None:
            description = redact(f"anonspark {run_id}: {moment}")
            context.setLocalProperty("spark.job.description", description)

        with (
            # Also restores the description of jobs.
            stoppable_jobs(context, f"anonspark-{run_id}"),
            running_tasks(progress),
            writing_output(),
            progress.followed_by(describe),
        ):
            describe("between stages")
            yield

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> SparkTable:
        """Open what :meth:`SparkTable.stage` wrote to some directories."""
        # With a schema Spark opens no file for its own.
        reader = self.session.read.schema(spark_schema(schema))
        return self.wrap(reader.parquet(*map(literal, paths)))

    def learn(self, examples: Table, classes: int, records: int) -> dict[str, Model]:
        """Train each learner of Spark ML."""
        # Imported late: few sessions learn, and Spark ML takes time to import.
        from anonspark.engine.spark.learning import train

        return {**train(frame_of(examples), classes, records)}

    def predict(self, test: Table, models: Mapping[str, Model]) -> SparkTable:
        """Add the predictions of models for each record."""
        from anonspark.engine.spark.learning import predict

        return self.wrap(predict(frame_of(test), models))

    def table(self, rows: pa.Table) -> SparkTable:
        """Hand over a small table of this process."""
        schema = spark_schema(rows.schema)
        return self.wrap(self.session.createDataFrame(rows.to_pandas(), schema))

    def wrap(self, frame: DataFrame) -> SparkTable:
        """Return a DataFrame of the session as a table."""
        return SparkTable(frame, self)
