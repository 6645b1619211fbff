"""The public functions for DataFrames of Spark."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions

from anonspark.api.distribution import COALITIONS, Distribution, given_plan, new_directory
from anonspark.api.given import given_configuration, given_input
from anonspark.api.release import DATA, Release
from anonspark.api.reports import anonymized, claim_of, figures_of, made_report
from anonspark.api.results import Selection, Union, Verification, own
from anonspark.api.shown import Page
from anonspark.api.tables import GIVEN
from anonspark.config import Configuration
from anonspark.engine.files import literal
from anonspark.engine.protocol import Table
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.identifiers import with_numbers_for_identifiers
from anonspark.engine.spark.input import plain_schema
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.session import (
    is_of_connect,
    is_running,
    open_session,
    require_classic,
    require_running,
)
from anonspark.engine.spark.settings import our_settings, reads_as_we_do, writing_settings
from anonspark.errors import ConfigurationError
from anonspark.pipeline.released import Release as Released
from anonspark.progress import Progress
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.sharing.holders.union import unite
from anonspark.sharing.recipients.distribute import distribute as carry_out
from anonspark.sharing.recipients.plan import Plan, parse_plan
from anonspark.sharing.selection.selecting import select as choose_attributes
from anonspark.sharing.selection.settings import parse_selection
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import claim_of_manifest
from anonspark.verification.roles import Roles, leave_out_suppressed

# The settings of a session are those of all its threads.
_TURN = threading.RLock()


def anonymize(
    table: DataFrame,
    config: Mapping[str, Any] | Configuration,
    staging: str | None,
    progress: Progress,
) -> Release[DataFrame]:
    """Anonymize a DataFrame. See :func:`anonspark.anonymize`."""
    spark = _session_of(table)
    staging, temporary = _staging(spark, staging)
    path = f"{staging.rstrip('/')}/release-{uuid.uuid4().hex[:12]}"
    try:
        configuration = given_configuration(config, path, FileSystem(spark).read_document)
        with _TURN, _given(table, configuration, f"{path}-given") as given, our_settings(spark):
            made = anonymized(SparkEngine(spark), configuration, _table(given()), progress)
            return _open(spark, path, temporary, made)
    except BaseException:
        FileSystem(spark).delete(path)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _staging(spark: SparkSession, staging: str | None) -> tuple[str, str | None]:
    """Return where to work, and the temporary directory that this is, or None.

    Raises
    ------
    ConfigurationError
        If no directory is given, and Spark runs on a cluster.
    """
    if staging is not None:
        return staging, None
    if not str(spark.sparkContext.master).startswith("local"):
        raise ConfigurationError(
            "staging: none is given, and Spark runs on a cluster. Expected a private directory "
            "that all executors reach, such as hdfs:///tmp/anonspark"
        )
    temporary = tempfile.mkdtemp(prefix="anonspark-")
    # Not before: DataFrames that were made from the release may outlive it.
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    # With its scheme, for Spark may take other paths for those of another file system.
    return Path(temporary).as_uri(), temporary


def distribute(
    table: DataFrame,
    plan: Mapping[str, Any],
    staging: str | None,
    run_id: str | None,
    progress: Progress,
) -> Distribution[DataFrame]:
    """Carry a plan out. See :func:`anonspark.api.distribute`."""
    spark = _session_of(table)
    staging, temporary = _staging(spark, staging)
    directory = new_directory(staging)

    def close() -> None:
        FileSystem(spark).delete(directory)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    try:
        parsed = parse_plan(given_plan(plan, directory), FileSystem(spark).read_document)
        with _TURN:
            given = _computed(_asked_for(table, parsed))
            with our_settings(spark):
                made = carry_out(
                    SparkEngine(spark),
                    parsed,
                    run_id=run_id,
                    table=_table(given),
                    progress=progress,
                )
                releases = {
                    name: _open(spark, one.path, None, one) for name, one in made.releases.items()
                }
        rows = [tuple(row[name] for name in COALITIONS.names) for row in made.coalitions]
        coalitions = spark.createDataFrame(rows, spark_schema(COALITIONS))
        told = pa.Table.from_pylist(made.coalitions, schema=COALITIONS)
        return Distribution(releases, coalitions, made.other_strategy, told, close)
    except BaseException:
        close()
        raise


def select(table: DataFrame, config: Mapping[str, Any], run_id: str | None) -> Selection:
    """Choose attributes in private. See :func:`anonspark.api.select`."""
    spark = _session_of(table)
    settings = parse_selection(given_input(config), read=FileSystem(spark).read_document)
    names = {*settings.candidates, settings.selection.target, settings.selection.person}
    table = with_fields(table)
    asked = table.select(*(quoted(name) for name in table.columns if name in names))
    with _TURN:
        given = _computed(asked)
        with our_settings(spark):
            found = choose_attributes(
                SparkEngine(spark), settings, run_id=run_id, table=_table(given)
            )
    return own(Selection, found)


def _asked_for(table: DataFrame, plan: Plan) -> DataFrame:
    """Return those columns of a table that a plan names, and no others."""
    conditions = [one.column for recipient in plan.recipients for one in recipient.conditions]
    names = {*plan.source.attributes, *plan.file.subject, *conditions}
    table = with_fields(table)
    return table.select(*(quoted(name) for name in table.columns if name in names))


@contextmanager
def _given(
    table: DataFrame, configuration: Configuration, path: str
) -> Iterator[Callable[[], DataFrame]]:
    """Compute a table with the settings of its session, if they mean something else than ours.

    Parameters
    ----------
    table : DataFrame
    configuration : Configuration
        Lists the attributes. No other column is computed.
    path : str
        Where the records are written to. It is removed at the end.

    Yields
    ------
    callable
        Returns the table, to be asked with our settings.
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
    selected = selected.toDF(*(f"column_{place}" for place in range(len(names))))
    schema = plain_schema(selected.schema)
    files = FileSystem(spark)
    try:
        files.make_private_directory(path)
        with reading_input((GIVEN,), key=""), writing_settings(spark):
            selected.write.parquet(f"{path}/records")

        def read() -> DataFrame:
            place = f"{literal(path)}/records"
            records = spark.read.schema(schema).parquet(place).toDF(*names)
            # Those that nobody asks for are named, so that they are counted, and not computed.
            nothing = functions.lit(None).cast("string")
            asked = tuple(f"{name.lower()}." for name in names)
            others = [
                nothing.alias(one)
                for one in dict.fromkeys(table.columns)
                if not any(name.startswith(f"{one.lower()}.") for name in asked)
            ]
            return records.select("*", *others)

        yield read
    finally:
        files.delete(path)


_Table = TypeVar("_Table", DataFrame, DataFrame | None)


def _computed(table: _Table) -> _Table:
    """Compute a table with the settings of its session, if they mean something else than ours.

    Returns
    -------
    DataFrame or None
        The same records, in the memory and on the disks of the executors then.
    """
    if table is None or reads_as_we_do(table.sparkSession):
        return table
    with reading_input((GIVEN,), key=""):
        return table.localCheckpoint()


@overload
def _table(frame: DataFrame) -> Table: ...
@overload
def _table(frame: DataFrame | None) -> Table | None: ...
def _table(frame: DataFrame | None) -> Table | None:
    """Return a DataFrame as everything else knows tables."""
    return None if frame is None else SparkEngine(frame.sparkSession).wrap(with_fields(frame))


def _session_of(table: DataFrame) -> SparkSession:
    """Return the session of a DataFrame, which has to be a classic one that runs."""
    spark = table.sparkSession
    require_classic(spark)
    require_running(spark)
    return spark


@dataclass(frozen=True)
class _Source:
    """The files of a release, which a session of Spark reads."""

    spark: SparkSession
    path: str
    manifest: Manifest
    temporary: str | None
    stays: bool = False

    def require_usable(self) -> None:
        require_running(self.spark)

    def read(self, name: str) -> DataFrame:
        with _TURN, our_settings(self.spark):
            return self._read(name)

    def _read(self, name: str) -> DataFrame:
        if name == DATA:
            return self.spark.read.format(self.manifest.data_format).load(f"{self.path}/{DATA}")
        return self.spark.read.parquet(f"{literal(self.path)}/metrics/{name}")

    def arrow(self, name: str) -> pa.Table:
        with _TURN, our_settings(self.spark):
            table: pa.Table = SparkEngine(self.spark).wrap(self._read(name)).collect()
        return table

    def as_arrow(self, table: DataFrame) -> pa.Table:
        return SparkEngine(self.spark).wrap(table).collect()

    def prove(self, original: DataFrame | None, population: DataFrame | None) -> Verification:
        matched = original is not None or population is not None
        spark = self.spark
        with _TURN:
            with our_settings(spark):
                claim = claim_of_manifest(
                    SparkEngine(spark), self.path, self.manifest, matched=matched
                )
            original, population = _computed(original), _computed(population)
            with our_settings(spark):
                found = audit_table(
                    SparkEngine(self.spark).wrap(self._read(DATA)),
                    claim,
                    original=_table(original),
                    population=_table(population),
                    name=self.path,
                )
        return own(Verification, found)

    def report(self, original: DataFrame | None, path: str | None) -> Page:
        with working(original) as (engine, (table,)):
            return made_report(engine, self.path, table, path)

    def class_sizes(self) -> Mapping[int, int]:
        with _TURN, our_settings(self.spark):
            rows = self._read("classes").groupBy("size").count().collect()
        return {row["size"]: row["count"] for row in rows}

    def close(self) -> None:
        if is_running(self.spark):
            FileSystem(self.spark).delete(self.path)
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


def _open(
    spark: SparkSession, path: str, temporary: str | None, made: Released
) -> Release[DataFrame]:
    manifest = read_manifest(FileSystem(spark), path)
    source = _Source(spark, path, manifest, temporary)
    return Release(path, manifest.document, figures_of(made), source)


@contextmanager
def working(*tables: DataFrame | None) -> Iterator[tuple[SparkEngine, list[Table | None]]]:
    """Work with tables, None among them, with our settings.

    Yields
    ------
    engine : Engine
    tables : list of (Table or None)
        As the engine has them.
    """
    frames = [one for one in tables if one is not None]
    opening = nullcontext(_session_of(frames[0])) if frames else open_session()
    with opening as spark, _TURN:
        computed = [_computed(one) for one in tables]
        with our_settings(spark):
            yield SparkEngine(spark), [_table(one) for one in computed]


def working_place(engine: SparkEngine, staging: str | None) -> tuple[str, str | None]:
    """Return where to work, and the temporary directory that this is, or None."""
    return _staging(engine.session, staging)


def union(paths: Sequence[str], out: str, holder_column: str | None, seed: int | None) -> Union:
    """Publish releases as one. See :func:`anonspark.api.union`."""
    with open_session() as spark, _TURN, our_settings(spark), writing_settings(spark):
        made = unite(SparkEngine(spark), paths, out, holder_column=holder_column, seed=seed)
    return own(Union, made)


def verify(
    table: DataFrame,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    *,
    original: DataFrame | None,
    population: DataFrame | None,
) -> Verification:
    """Measure what a DataFrame keeps of a promise. See :func:`anonspark.api.verify`."""
    spark = table.sparkSession
    # Measuring needs no files, so that a session of Spark Connect will do.
    if not is_of_connect(spark):
        require_running(spark)
    matched = original is not None or population is not None
    with _TURN:
        with our_settings(spark):
            schema = _table(table).schema
            claim = claim_of(SparkEngine(spark), config, roles, schema, matched=matched)
        computed = _computed(table)
        original, population = _computed(original), _computed(population)
        with our_settings(spark):
            found = audit_table(
                *leave_out_suppressed(_table(computed), claim, roles),
                original=_table(original),
                population=_table(population),
            )
    return own(Verification, found)
