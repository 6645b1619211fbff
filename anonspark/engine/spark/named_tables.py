"""Tables by their names: read at a version that Delta Lake or Iceberg keep, and written to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.config.input import CATALOG_TABLE
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.spark import errors
from anonspark.engine.spark.filesystem import files_of
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.table import SparkTable, frame_of
from anonspark.errors import ConfigurationError, DataError

# Options by which a configuration says itself what to read, as they are compared; the last ones are
# Iceberg's.
_CHOSEN = frozenset({"versionasof", "timestampasof", "branch", "tag"})

_VERSION = "versionAsOf"
"""Spark's option: a number of Delta's log, or a snapshot of Iceberg."""

KINDS = ("delta", "iceberg")
"""Formats whose tables keep versions."""

_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_CLAUSES = {"versionasof": "VERSION AS OF", "timestampasof": "TIMESTAMP AS OF"}

_COMMIT = re.compile(r"(\d{20})\.json")


def current_version(
    spark: SparkSession, paths: Sequence[str], data_format: str, options: Mapping[str, str]
) -> dict[str, str]:
    """Return the option that reads the version of a table that is current now, also later.

    It is empty if the format keeps no versions, the options name one, or the table has none yet.
    For Delta the log is listed, or the catalog is asked. For Iceberg a job reads metadata.
    """
    kind = data_format.lower()
    lower_names = {name.lower() for name in options}
    if kind not in (*KINDS, CATALOG_TABLE) or lower_names & _CHOSEN or len(paths) != 1:
        return {}
    if kind == CATALOG_TABLE:
        (matched_name,) = paths
        kind = table_kind(spark, matched_name, "input.path")
        if kind not in KINDS:
            return {}
        if kind == "delta":
            newest = spark.sql(f"DESCRIBE HISTORY {matched_name} LIMIT 1").head()
            return {} if newest is None else {_VERSION: str(newest["version"])}
        references = spark.table(f"{matched_name}.refs")
    elif kind == "delta":
        # The newest commit is never cleaned up; its number has as many digits in every table.
        listed = files_of(spark).children(f"{paths[0].rstrip('/')}/_delta_log")
        names = (_COMMIT.fullmatch(commit.rpartition("/")[2]) for commit in listed)
        commits = [int(name[1]) for name in names if name is not None]
        return {_VERSION: str(max(commits))} if commits else {}
    else:
        references = spark.read.format(data_format).options(**options).load(f"{paths[0]}#refs")
    row = references.where(sf.col("name") == "main").select("snapshot_id").head()
    return {} if row is None else {_VERSION: str(row.snapshot_id)}


def open_catalog_table(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], key: str
) -> DataFrame:
    """Open a table by its name in a catalog, at the version that the options name, if any. Lazy.

    Spark before version 4 would ignore options of its reader, so SQL names the version. ``key`` is
    the setting with the name. Raises DataError if it is malformed, ConfigurationError for options
    other than ``versionAsOf`` or ``timestampAsOf``, and Spark's error if there is no such table.
    """
    matched_name = ", ".join(paths)
    table_kind(spark, matched_name, key)
    selected = {option.lower(): value for option, value in options.items()}
    if len(selected) > 1 or not selected.keys() <= _CLAUSES.keys():
        raise ConfigurationError(
            f"input.options: found {', '.join(options)} for a table of a catalog. Expected "
            "versionAsOf or timestampAsOf. Remove the others"
        )
    if not selected:
        return spark.table(matched_name)
    ((option, value),) = selected.items()
    escaped_version = f"{_CLAUSES[option]} {sql_text(value)}"
    return spark.sql(f"SELECT * FROM {matched_name} {escaped_version}")  # noqa: S608 - matched above


def table_kind(spark: SparkSession, matched_name: str, key: str) -> str:
    """Return the format of a table of a catalog, in small letters, or "" for a view.

    Raises DataError if the name is malformed, because it becomes part of SQL, and Spark's error if
    there is no such table.
    """
    key = "input.table" if key == "input.path" else key
    if not _NAME.fullmatch(matched_name):
        raise DataError(
            f"{key}: {matched_name} is no name of a table. Expected catalog.schema.table, and "
            "backticks around names with other signs than letters, digits and underscores"
        )
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {matched_name}").where("col_name = 'Provider'")
    # The last one: a column may have this name.
    return next((str(row["data_type"]).lower() for row in reversed(described.collect())), "")


def sql_text(value: str) -> str:
    r"""Return a literal of SQL.

    >>> print(sql_text("it's"))
    'it\'s'
    """
    escaped = value.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"


_OURS = "TBLPROPERTIES ('anonspark.output' = 'true')"
"""Of a table whose records a run may replace."""

_NOTE = "anonspark.commit"


@dataclass(frozen=True)
class SparkNamedTable:
    """A table of a catalog as an :class:`anonspark.engine.protocol.NamedTable`."""

    session: SparkSession
    engine: Engine
    name: str
    partition: Mapping[str, str]
    replaces: bool

    def require_writable(self) -> None:
        """Raise ConfigurationError if a run could neither append records once nor replace them."""
        self._writable_kind()

    def _writable_kind(self) -> str | None:
        """Return the format of the table, or None if it is still to be created."""
        matched_name = self.name
        if not _NAME.fullmatch(matched_name):
            raise self._refusal("it is no name. Expected catalog.schema.table")
        with self._explained():
            catalog, kind = self.session.catalog, KINDS[0]
            if is_there := catalog.tableExists(self.name):
                kind = table_kind(self.session, self.name, "output.table")
                rows = self.session.sql(f"SHOW TBLPROPERTIES {matched_name}").collect()
                if self.replaces and ("anonspark.output", "true") not in map(tuple, rows):
                    remedy = f"ALTER TABLE {self.name} SET {_OURS}"
                    raise self._refusal(f"no run has created it. To have it replaced: {remedy}")
            elif self.name.count(".") < 2 and catalog.currentCatalog() == "spark_catalog":
                # What another catalog makes is not known before there is a table.
                kind = str(self.session.conf.get("spark.sql.sources.default"))
        if not self.replaces and kind not in KINDS:
            what = f"a table of {kind}, to which a killed run could append its records twice"
            remedy = "Expected Delta Lake or Iceberg, or output.table_mode: overwrite"
            raise self._refusal(f"it is {what if kind else 'a view'}. {remedy}")
        return kind if is_there else None

    def read(self) -> SparkTable:
        """Return the records of the partition, without its columns."""
        with errors.opening_table([self.name], CATALOG_TABLE, "--table", None):
            table_kind(self.session, self.name, "--table")
            table = self.session.table(self.name).where(self._condition())
        return SparkTable(table.drop(*self.partition), self.engine)

    def write(self, records: Table, note: Mapping[str, str]) -> bool:
        """Write records in one commit that carries a note, or return False if one has it already.

        A run that is repeated after a crash thus appends its records only once.
        """
        frame, text = frame_of(records), json.dumps(note)
        if (kind := self._writable_kind()) is None:
            with self._explained():
                self._create(frame)
            kind = self._writable_kind()
        with self._explained():
            schema = self.session.table(self.name).schema
            types = {column.name.lower(): column.dataType for column in schema}
            if sorted(types) != sorted(map(str.lower, (*frame.columns, *self.partition))):
                raise self._refusal("it has other columns than release and table_partition")
            if kind not in KINDS:
                self._replace(frame, text)
                return True
            # The first two entries of a note name the run.
            beginning = json.dumps(dict(list(note.items())[:2]))[:-1]
            notes_of_run = [other for other in self._notes(kind) if other.startswith(beginning)]
            if text in notes_of_run:
                return False
            if notes_of_run and not self.replaces:
                raise self._refusal("this run has appended other records. Delete them first")
            parts = self.partition.items()
            values = {name: sf.lit(value).cast(types[name.lower()]) for name, value in parts}
            # Delta's name for the note of a commit, and Iceberg's.
            options = {"userMetadata": text, f"snapshot-property.{_NOTE}": text}
            writer = frame.withColumns(values).writeTo(self.name).options(**options)
            if self.replaces:
                writer.overwrite(sf.expr(self._condition()))
            else:
                writer.append()
        return True

    def _condition(self, separator: str = " AND ") -> str:
        equal = (f"{quoted(name)} = {sql_text(text)}" for name, text in self.partition.items())
        return separator.join(equal) or "true"

    def _create(self, frame: DataFrame) -> None:
        """Create an empty table, as the catalog does by default, unless there is one."""
        columns = [f"{quoted(c.name)} {c.dataType.simpleString()}" for c in frame.schema]
        columns += [f"{quoted(name)} string" for name in self.partition]
        by = f"PARTITIONED BY ({', '.join(map(quoted, self.partition))})" if self.partition else ""
        text = f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(columns)}) {by} {_OURS}"
        self.session.sql(text)

    def _replace(self, frame: DataFrame, text: str) -> None:
        """Replace the records of a table without commits, which gives the same if repeated."""
        by = f"PARTITION ({self._condition(', ')})" if self.partition else ""
        insert = f"INSERT OVERWRITE TABLE {self.name} {by} BY NAME SELECT *"
        statement = insert.replace("{", "{{").replace("}", "}}") + " FROM {records}"
        self.session.sql(statement, records=frame)
        alter = f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{_NOTE}' = {sql_text(text)})"
        self.session.sql(alter)

    def _notes(self, kind: str) -> list[str]:
        """Return the notes of the commits that the table keeps, in any order."""
        if kind == "delta":
            matched_name = self.name  # checked before it is written
            rows = self.session.sql(f"DESCRIBE HISTORY {matched_name}").select("userMetadata")
        else:
            rows = self.session.table(f"{self.name}.snapshots").select(sf.col("summary")[_NOTE])
        return [row[0] for row in rows.collect() if row[0] is not None]

    def _refusal(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"output.table: {self.name} cannot be written: {reason}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise ConfigurationError with Spark's reason, without values that its texts may hold."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            condition = errors.condition_of(error) if isinstance(error, PySparkException) else None
            reason = errors.environment_problem(error) or condition or errors.java_class_name(error)
            raise self._refusal(reason or type(error).__name__) from error
