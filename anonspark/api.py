"""anonspark inside a notebook or somebody's own Spark job: DataFrames in, DataFrames out."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, overload

from pyspark.sql import DataFrame, SparkSession

from anonspark.config import Configuration, parse_configuration
from anonspark.engine.protocol import Table
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.identifiers import with_numbers_for_identifiers
from anonspark.engine.spark.input import plain_schema
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.session import require_classic
from anonspark.engine.spark.settings import our_settings, reads_as_we_do, writing_settings
from anonspark.errors import ConfigurationError, exit_code_of
from anonspark.layers.publish.prometheus import write_textfile
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.verification.audit import audit_table
from anonspark.verification.claims import (
    Roles,
    claim_of_configuration,
    claim_of_manifest,
    claim_of_roles,
)
from anonspark.verification.result import Verification

__all__ = ["Release", "anonymize", "verify"]

_GIVEN = "the given DataFrame"

# The settings of a session are those of all its threads.
_TURN = threading.RLock()


@dataclass(frozen=True, repr=False)
class Release(Redacted):
    """An anonymized table with its metrics, as lazy DataFrames over private files.

    It is a context manager: at its end, or with :meth:`close`, the files are removed; those in a
    temporary directory of this machine also when the interpreter ends. So write or cache what you
    keep.

    Parameters
    ----------
    path : str
        Directory of the files, in the layout of every release.
    data : DataFrame
        The published records.
    classes, rounds, summary, attributes, privacy, risk : DataFrame
        The metrics tables.
    manifest : dict
        What the release is and how it was made.
    """

    path: str
    data: DataFrame
    classes: DataFrame
    rounds: DataFrame
    summary: DataFrame
    attributes: DataFrame
    privacy: DataFrame
    risk: DataFrame
    manifest: dict[str, Any]
    _temporary: str | None = field(default=None, repr=False)

    def verify(
        self, *, original: DataFrame | None = None, population: DataFrame | None = None
    ) -> Verification:
        """Measure what the files keep of the promise; see :func:`verify`.

        Parameters
        ----------
        original : DataFrame or None
            The table that was anonymized, for truthfulness and the linkage attack.
        population : DataFrame or None
            What an attacker may have, for the linkage attack and the journalist's risk.
        """
        spark = self.data.sparkSession
        matched = original is not None or population is not None
        with _TURN:
            with our_settings(spark):
                claim = claim_of_manifest(
                    SparkEngine(spark), self.path, Manifest(self.manifest), matched=matched
                )
            original, population = _computed(original), _computed(population)
            with our_settings(spark):
                return audit_table(
                    _table(self.data),
                    claim,
                    original=_table(original),
                    population=_table(population),
                    name=self.path,
                )

    def close(self) -> None:
        """Remove the files; the DataFrames are of no use any more."""
        FileSystem(self.data.sparkSession).delete(self.path)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Release:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def anonymize(
    table: DataFrame, config: Mapping[str, Any] | Configuration, *, staging: str | None = None
) -> Release:
    """Anonymize a DataFrame.

    Parameters
    ----------
    table : DataFrame
        About people, with a column of each attribute that the configuration lists.
    config : mapping or Configuration
        As in the YAML file; ``input.path`` and ``output.path`` are not needed.
    staging : str or None
        Private directory that all executors reach, for what is worked on: it holds raw values
        until this function returns, and the release afterwards. None takes a temporary directory
        of this machine, where Spark runs on it alone.

    Returns
    -------
    Release

    Raises
    ------
    ConfigurationError
        If the configuration is wrong, or Spark runs on a cluster and ``staging`` is not given.
    EnvironmentProblem
        If the DataFrame is one of Spark Connect.
    DataError
        If the table does not fit the configuration.
    GuaranteeError
        If a criterion or gate does not hold; nothing is left.
    PublishingError
        If the staging directory cannot be written.

    Notes
    -----
    The same jobs as a run of the command line: the table is computed once, and once more if it has
    identifiers, of which then only they and the quasi-identifiers are asked for. It is computed
    with the settings that its session has, and everything else is done with those of
    `anonspark.engine.spark.settings.SQL_SETTINGS`, which are put back afterwards: where the
    session's own mean something else, as another time zone does, the table's attributes are
    written to the staging directory once and read again from there. Calls from several threads
    take turns.

    Examples
    --------
    >>> people = spark.range(40).selectExpr("20 + id % 8 AS age", "id % 3 AS visits")
    >>> config = {
    ...     "attributes": {"age": "quasi_identifier", "visits": "insensitive"},
    ...     "privacy": {"k": 5},
    ... }
    >>> with anonymize(people, config) as release:
    ...     release.data.count(), release.verify(original=people).holds
    (40, True)
    """
    spark = table.sparkSession
    require_classic(spark)
    if staging is None and not str(spark.sparkContext.master).startswith("local"):
        raise ConfigurationError(
            "staging: none is given, and Spark runs on a cluster; expected a private directory "
            "that all executors reach, such as hdfs:///tmp/anonspark"
        )
    temporary = None
    if staging is None:
        temporary = tempfile.mkdtemp(prefix="anonspark-")
        # Not before: DataFrames that were made from the release may outlive it.
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        # With its scheme, for Spark may take other paths for those of another file system.
        staging = Path(temporary).as_uri()
    path = f"{staging.rstrip('/')}/release-{uuid.uuid4().hex[:12]}"
    try:
        configuration = _configuration(spark, config, path)
        with _TURN, _given(table, configuration, f"{path}-given") as given, our_settings(spark):
            _run(spark, configuration, given())
            return _open(spark, path, temporary)
    except BaseException:
        FileSystem(spark).delete(path)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


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
    selected = select_attributes(table, configuration, identifiers=True)
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
        with reading_input((_GIVEN,), key=""), writing_settings(spark):
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
    with reading_input((_GIVEN,), key=""):
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


def _open(spark: SparkSession, path: str, temporary: str | None) -> Release:
    tables = ("classes", "rounds", "summary", "attributes", "privacy", "risk")
    manifest = read_manifest(FileSystem(spark), path)
    return Release(
        path=path,
        data=spark.read.format(manifest.data_format).load(f"{path}/data"),
        **{name: spark.read.parquet(f"{path}/metrics/{name}") for name in tables},
        manifest=manifest.document,
        _temporary=temporary,
    )


def verify(
    table: DataFrame,
    config: Mapping[str, Any] | Configuration | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    k: int | None = None,
    original: DataFrame | None = None,
    population: DataFrame | None = None,
) -> Verification:
    """Measure what an anonymized DataFrame, of whatever tool, keeps of a promise.

    Parameters
    ----------
    table : DataFrame
        Published records.
    config : mapping, Configuration or None
        What to require; of it count attributes, privacy, missing values and risk.
    quasi_identifiers, sensitive : sequence of str
        Without a configuration, the attributes of these roles; each quasi-identifier is a column,
        or two: ``<name>_min`` and ``<name>_max``.
    k : int
        Without a configuration, the smallest class size required; 2 if it is not given.
    original : DataFrame or None
        The table that it was made of, for truthfulness and the linkage attack.
    population : DataFrame or None
        What an attacker may have, for the linkage attack and the journalist's risk.

    Returns
    -------
    Verification
        ``holds`` and ``failures`` tell the result; ``require()`` raises where something failed.

    Raises
    ------
    ConfigurationError
        If neither configuration nor quasi-identifiers are given, or both, or a file cannot be used.
    DataError
        If columns are missing, or cannot be read.

    Notes
    -----
    The jobs of :func:`anonspark.verification.audit.audit_release`.

    Examples
    --------
    >>> ages = spark.sql("SELECT * FROM VALUES ('20-29'), ('20-29'), ('30-39') AS people(age)")
    >>> proof = verify(ages, quasi_identifiers=["age"], k=2)
    >>> proof.holds, proof.published.smallest
    (False, 1)
    """
    spark = table.sparkSession
    matched = original is not None or population is not None
    with _TURN:
        with our_settings(spark):
            if config is None:
                roles = Roles(tuple(quasi_identifiers), tuple(sensitive), 2 if k is None else k)
                claim = claim_of_roles(roles, table.columns)
            elif quasi_identifiers or sensitive or k is not None:
                raise ConfigurationError(
                    "quasi_identifiers, sensitive, k: found together with a configuration, which "
                    "says the same; leave one of the two out"
                )
            else:
                configuration = _configuration(spark, config, _GIVEN, needs_seed=False)
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


def _configuration(
    spark: SparkSession,
    config: Mapping[str, Any] | Configuration,
    path: str,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Return a configuration that writes to a path and reads what it is given."""
    if isinstance(config, Configuration):
        output = config.output.model_copy(update={"path": path, "mode": "error"})
        return config.model_copy(update={"output": output})
    return parse_configuration(
        {
            **config,
            "input": {"path": _GIVEN, **config.get("input", {})},
            "output": {**config.get("output", {}), "path": path},
        },
        read=FileSystem(spark).read_document,
        needs_seed=needs_seed,
    )
