"""The public functions for DataFrames of Spark."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, overload

from pyspark.sql import DataFrame, SparkSession

from anonspark.api.distribution import COALITIONS, Distribution, given_plan, new_directory
from anonspark.api.release import DATA, GIVEN, Release, given_configuration, given_input
from anonspark.config import Configuration
from anonspark.engine.protocol import Table
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.identifiers import with_numbers_for_identifiers
from anonspark.engine.spark.input import plain_schema
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.session import open_session, require_classic
from anonspark.engine.spark.settings import our_settings, reads_as_we_do, writing_settings
from anonspark.errors import ConfigurationError, exit_code_of
from anonspark.holders.union import Union, unite
from anonspark.layers.publish.prometheus import write_textfile
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.recipients.distribute import distribute as carry_out
from anonspark.recipients.plan import Plan, parse_plan
from anonspark.release.manifest import read_manifest
from anonspark.selection.selecting import select as choose_attributes
from anonspark.selection.settings import parse_selection
from anonspark.selection.writing import Selection
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import (
    Roles,
    claim_of_configuration,
    claim_of_manifest,
    claim_of_roles,
)
from anonspark.verification.release_pairs import Attack, JointVerification, audit_releases
from anonspark.verification.result import Verification

# The settings of a session are those of all its threads.
_TURN = threading.RLock()


def anonymize(
    table: DataFrame, config: Mapping[str, Any] | Configuration, staging: str | None
) -> Release[DataFrame]:
    """Anonymize a DataFrame; see :func:`anonspark.api.anonymize`."""
    spark = table.sparkSession
    require_classic(spark)
    staging, temporary = _staging(spark, staging)
    path = f"{staging.rstrip('/')}/release-{uuid.uuid4().hex[:12]}"
    try:
        configuration = given_configuration(config, path, FileSystem(spark).read_document)
        with _TURN, _given(table, configuration, f"{path}-given") as given, our_settings(spark):
            _run(spark, configuration, given())
            return _open(spark, path, temporary)
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
            "staging: none is given, and Spark runs on a cluster; expected a private directory "
            "that all executors reach, such as hdfs:///tmp/anonspark"
        )
    temporary = tempfile.mkdtemp(prefix="anonspark-")
    # Not before: DataFrames that were made from the release may outlive it.
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    # With its scheme, for Spark may take other paths for those of another file system.
    return Path(temporary).as_uri(), temporary


def distribute(
    table: DataFrame, plan: Mapping[str, Any], staging: str | None, run_id: str | None
) -> Distribution[DataFrame]:
    """Carry a plan out; see :func:`anonspark.api.distribute`."""
    spark = table.sparkSession
    require_classic(spark)
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
                made = carry_out(SparkEngine(spark), parsed, run_id=run_id, table=_table(given))
                releases = {
                    name: _open(spark, one.path, None) for name, one in made.releases.items()
                }
        rows = [tuple(row[name] for name in COALITIONS.names) for row in made.coalitions]
        coalitions = spark.createDataFrame(rows, spark_schema(COALITIONS))
        return Distribution(releases, coalitions, made.other_strategy, close)
    except BaseException:
        close()
        raise


def select(table: DataFrame, config: Mapping[str, Any], run_id: str | None) -> Selection:
    """Choose attributes in private; see :func:`anonspark.api.select`."""
    spark = table.sparkSession
    require_classic(spark)
    settings = parse_selection(given_input(config), read=FileSystem(spark).read_document)
    names = {*settings.candidates, settings.selection.target}
    asked = table.select(*(quoted(name) for name in table.columns if name in names))
    with _TURN:
        given = _computed(asked)
        with our_settings(spark):
            return choose_attributes(
                SparkEngine(spark), settings, run_id=run_id, table=_table(given)
            )


def _asked_for(table: DataFrame, plan: Plan) -> DataFrame:
    """Return those columns of a table that a plan names, all others being nobody's business."""
    conditions = [one.column for recipient in plan.recipients for one in recipient.conditions]
    names = {*plan.source.attributes, *plan.subject, *conditions}
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
        Lists the attributes; no other column is computed.
    path : str
        Where the records are written to; removed at the end.

    Yields
    ------
    callable
        Returns the table, to be asked with our settings.
    """
    spark = table.sparkSession
    if reads_as_we_do(spark):
        yield lambda: table
        return
    selected = select_attributes(table, configuration, identifiers=True, units=False)
    if configuration.identifiers:
        # They are counted, and must not be staged.
        selected = with_numbers_for_identifiers(selected, configuration)
    schema = plain_schema(selected.schema)
    names = (
        *configuration.quasi_identifiers,
        *configuration.published_as_is,
        *configuration.identifiers,
    )
    files = FileSystem(spark)
    try:
        files.make_private_directory(path)
        with reading_input((GIVEN,), key=""), writing_settings(spark):
            selected.write.parquet(f"{path}/records")

        def read() -> DataFrame:
            return spark.read.schema(schema).parquet(f"{path}/records").toDF(*names)

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
    return None if frame is None else SparkEngine(frame.sparkSession).wrap(frame)


def _run(spark: SparkSession, configuration: Configuration, table: DataFrame) -> None:
    """Anonymize a table, and tell Prometheus how it went where that is asked for."""
    engine = SparkEngine(spark)
    progress = Progress()
    started = datetime.now(UTC)
    summary = None
    code = 0
    try:
        summary = run(engine, configuration, progress=progress, table=_table(table)).summary
    except BaseException as error:
        code = exit_code_of(error)
        raise
    finally:
        write_textfile(
            configuration,
            progress,
            started=started,
            exit_code=code,
            summary=summary,
            files=engine.files,
        )


def _open(spark: SparkSession, path: str, temporary: str | None) -> Release[DataFrame]:
    manifest = read_manifest(FileSystem(spark), path)

    def read(name: str) -> DataFrame:
        if name == DATA:
            return spark.read.format(manifest.data_format).load(f"{path}/{DATA}")
        return spark.read.parquet(f"{path}/metrics/{name}")

    def prove(original: DataFrame | None, population: DataFrame | None) -> Verification:
        matched = original is not None or population is not None
        with _TURN:
            with our_settings(spark):
                claim = claim_of_manifest(SparkEngine(spark), path, manifest, matched=matched)
            original, population = _computed(original), _computed(population)
            with our_settings(spark):
                return audit_table(
                    _table(read(DATA)),
                    claim,
                    original=_table(original),
                    population=_table(population),
                    name=path,
                )

    def close() -> None:
        FileSystem(spark).delete(path)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    return Release.of(path, manifest.document, read, prove, close)


def verify_together(paths: Sequence[str], attack: Attack) -> JointVerification:
    """Attack releases together; see :func:`anonspark.api.verify_together`."""
    with open_session() as spark, _TURN, our_settings(spark):
        return audit_releases(SparkEngine(spark), paths, attack=attack)


def union(paths: Sequence[str], out: str, holder_column: str | None, seed: int | None) -> Union:
    """Publish releases as one; see :func:`anonspark.api.union`."""
    with open_session() as spark, _TURN, our_settings(spark), writing_settings(spark):
        return unite(SparkEngine(spark), paths, out, holder_column=holder_column, seed=seed)


def verify(
    table: DataFrame,
    config: Mapping[str, Any] | Configuration | None,
    roles: Roles | None,
    *,
    original: DataFrame | None,
    population: DataFrame | None,
) -> Verification:
    """Measure what a DataFrame keeps of a promise; see :func:`anonspark.api.verify`."""
    spark = table.sparkSession
    matched = original is not None or population is not None
    with _TURN:
        with our_settings(spark):
            if roles is not None or config is None:
                claim = claim_of_roles(roles or Roles((), (), 2), table.columns)
            else:
                configuration = given_configuration(
                    config, GIVEN, FileSystem(spark).read_document, needs_seed=False
                )
                claim = claim_of_configuration(
                    SparkEngine(spark), configuration, table.columns, None, matched=matched
                )
        computed = _computed(table)
        original, population = _computed(original), _computed(population)
        with our_settings(spark):
            return audit_table(
                _table(computed),
                claim,
                original=_table(original),
                population=_table(population),
            )
