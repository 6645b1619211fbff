"""Write the records of a release to a table of a catalog by Spark's own writers, and read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.config.input import CATALOG_TABLE
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.spark import errors
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.table import SparkTable, frame_of
from anonspark.engine.spark.table_versions import KINDS, sql_text, table_kind
from anonspark.errors import ConfigurationError

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
        """Check that records can be appended, or replaced."""
        with self._explained():
            catalog, kind = self.session.catalog, KINDS[0]
            if catalog.tableExists(self.name):
                kind = table_kind(self.session, self.name, "output.table")
                rows = self.session.sql(f"SHOW TBLPROPERTIES {self.name}").collect()
                if self.replaces and ("anonspark.output", "true") not in map(tuple, rows):
                    raise self._refusal(
                        "no run has created it, so its records are not replaced. If they may be: "
                        f"ALTER TABLE {self.name} SET {_OURS}"
                    )
            elif self.name.count(".") < 2 and catalog.currentCatalog() == "spark_catalog":
                # What another catalog makes is not known before there is a table.
                kind = str(self.session.conf.get("spark.sql.sources.default"))
        if not self.replaces and kind not in KINDS:
            raise self._refusal(
                f"it is {f'a table of {kind}' if kind else 'a view'}, to which a killed run could "
                "append its records twice. Set output.table_mode to overwrite, which replaces "
                "output.table_partition alone, or name a table of Delta Lake or Iceberg"
            )

    def read(self) -> SparkTable:
        """Return the records of the partition, without its columns."""
        with errors.opening_table([self.name], CATALOG_TABLE, "--table", None):
            table_kind(self.session, self.name, "--table")
            table = self.session.table(self.name).where(self._condition())
        return SparkTable(table.drop(*self.partition), self.engine)

    def write(self, records: Table, note: Mapping[str, str]) -> bool:
        """Write records, unless a commit has this note."""
        frame, text = frame_of(records), json.dumps(note)
        self.require_writable()
        with self._explained():
            self._create(frame)
        self.require_writable()
        with self._explained():
            columns = self.session.table(self.name).schema
            types = {column.name.lower(): column.dataType for column in columns}
            if sorted(types) != sorted(map(str.lower, (*frame.columns, *self.partition))):
                raise self._refusal("it has other columns than release and table_partition")
            if (kind := table_kind(self.session, self.name, "output.table")) not in KINDS:
                parted = {name.lower() for name in self.partition}
                self._replace(frame.select(*(quoted(n) for n in types if n not in parted)), text)
                return True
            run = json.dumps(dict(list(note.items())[:-1]))[:-1]
            earlier = [noted for noted in self._notes(kind) if noted.startswith(run)]
            if text in earlier:
                return False
            if earlier and not self.replaces:
                raise self._refusal("this run has appended other records. Delete them first")
            parts = {n: sf.lit(v).cast(types[n.lower()]) for n, v in self.partition.items()}
            # Delta's name for what a commit says of itself, and Iceberg's.
            options = {"userMetadata": text, f"snapshot-property.{_NOTE}": text}
            writer = frame.withColumns(parts).writeTo(self.name).options(**options)
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
        create = f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(columns)})"
        self.session.sql(f"{create} {by} {_OURS}")

    def _replace(self, frame: DataFrame, text: str) -> None:
        """Replace the records of a table without commits, which gives the same if repeated."""
        by = f"PARTITION ({self._condition(', ')})" if self.partition else ""
        insert = f"INSERT OVERWRITE TABLE {self.name} {by} SELECT *"
        escaped = insert.replace("{", "{{").replace("}", "}}")
        self.session.sql(f"{escaped} FROM {{records}}", records=frame)
        properties = f"'{_NOTE}' = {sql_text(text)}"
        self.session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({properties})")

    def _notes(self, kind: str) -> list[str]:
        """Return what the commits say that the table keeps, in any order."""
        if kind == "delta":
            rows = self.session.sql(f"DESCRIBE HISTORY {self.name}").select("userMetadata")
        else:
            snapshots = self.session.table(f"{self.name}.snapshots")
            rows = snapshots.select(sf.col("summary").getItem(_NOTE))
        return [row[0] for row in rows.collect() if row[0] is not None]

    def _refusal(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"output.table: {self.name} cannot be written: {reason}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say why Spark refuses, without the values that its texts may hold."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            condition = errors.condition_of(error) if isinstance(error, PySparkException) else None
            reason = errors.environment_problem(error) or condition or errors.java_class_name(error)
            raise self._refusal(reason or type(error).__name__) from error
