"""What tests do with tables that releases are written to, in a process with the formats' packages.

``python written_tables_client.py FOLDER`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import yaml
from object_store_client import command
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2

from anonspark.engine.spark.named_tables import SparkNamedTable

NIGHTS = ("2026-11-27", "2026-11-28")


def gone(*_: Any, **__: Any) -> Any:
    """Fail as a machine does that is switched off."""
    raise OSError("the machine is gone")


class Nights:
    """Runs that write the visits of a night to a table.

    Parameters
    ----------
    spark : SparkSession
    folder : Path
    name : str
        Of the table.
    mode : str
    """

    def __init__(self, spark: SparkSession, folder: Path, name: str, mode: str) -> None:
        self.spark, self.name, self.mode = spark, name, mode
        self.folder = folder / f"{name}-{mode}"
        self.folder.mkdir()

    def run(self, night: str, *arguments: str, path: str = "") -> dict[str, Any]:
        """Publish a night, and write it."""
        document = {
            "input": {"table": "people", "where": f"day = '{night}'"},
            "attributes": {"age": "quasi_identifier", "visits": "insensitive"},
            "privacy": {"k": 5},
            "model": "mondrian",
            "output": {
                "path": str(self.folder / (path or night)),
                "table": self.name,
                "table_mode": self.mode,
                "table_partition": {"day": night},
            },
            "execution": {"seed": 7},
        }
        configuration = self.folder / "configuration.yaml"
        configuration.write_text(yaml.safe_dump(document))
        return command("run", str(configuration), "--run-id", f"run-{night}", *arguments)

    def are_alike(self, night: str) -> bool:
        """Return whether the table has the records of a release, each as often."""
        rows = self.spark.table(self.name).where(f"day = '{night}'").select("age", "visits")
        release = pq.read_table(self.folder / night / "data").select(["age", "visits"])
        return sorted(map(tuple, rows.collect())) == sorted(
            tuple(row.values()) for row in release.to_pylist()
        )

    def outcomes(self, steps: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Kill runs at steps of the first night, repeat them, and write the second night."""
        first, second = NIGHTS
        found: dict[str, Any] = {}
        for step, patched in steps.items():
            with patch.object(*patched):
                found[step] = self.run(first)["code"]
        found["again"] = self.run(first)
        found["once more"] = self.run(first)
        found["second"] = self.run(second)
        found["alike"] = [self.are_alike(night) for night in NIGHTS]
        found["rows"] = self.spark.table(self.name).count()
        found["verify"] = [
            command("verify", str(self.folder / night), "--table", self.name) for night in NIGHTS
        ]
        found["other release of the run"] = self.run(
            first, "--set", "privacy.k=6", "--set", "output.mode=overwrite"
        )
        found["rows of it"] = self.spark.table(self.name).count()
        found["verify it"] = command(
            "verify", str(self.folder / first), "--table", self.name, "--engine", "spark"
        )["code"]
        return found


def steps_of(method: str) -> dict[str, Sequence[Any]]:
    """Return where a run is killed that writes by a method of Spark's writer."""
    write = getattr(DataFrameWriterV2, method)

    def gone_afterwards(self: DataFrameWriterV2, *arguments: Any) -> None:
        write(self, *arguments)
        raise OSError("the machine is gone")

    return {
        "before the table": (SparkNamedTable, "write", gone),
        "before the commit": (DataFrameWriterV2, method, gone),
        "after the commit": (DataFrameWriterV2, method, gone_afterwards),
    }


def steps_of_hive() -> dict[str, Sequence[Any]]:
    """Return where a run is killed that writes a table without commits."""
    replace_records = SparkNamedTable._replace

    def gone_afterwards(self: SparkNamedTable, *arguments: Any) -> None:
        replace_records(self, *arguments)
        raise OSError("the machine is gone")

    return {
        "before the table": (SparkNamedTable, "write", gone),
        "before the commit": (SparkNamedTable, "_replace", gone),
        "after the commit": (SparkNamedTable, "_replace", gone_afterwards),
    }


if __name__ == "__main__":
    root = Path(sys.argv[1])
    session = SparkSession.builder.getOrCreate()
    ages = "cast(id % 90 as int) age", "cast(id % 7 as smallint) visits"
    days = f"CASE WHEN id % 2 = 0 THEN '{NIGHTS[0]}' ELSE '{NIGHTS[1]}' END"
    people = session.range(400).selectExpr(*ages, f"date({days}) day")
    people.write.format("parquet").partitionBy("day").saveAsTable("people")
    session.sql("CREATE DATABASE local.db")
    session.sql(
        "CREATE TABLE hive_made (AGE string, visits int) PARTITIONED BY (day date) STORED AS "
        "PARQUET TBLPROPERTIES ('anonspark.output' = 'true')"
    )
    session.sql(
        "CREATE TABLE local.db.made (age string, visits int, day date) USING iceberg "
        "PARTITIONED BY (day) TBLPROPERTIES ('anonspark.output' = 'true')"
    )
    results = {
        "iceberg append": Nights(session, root, "local.db.appended", "append"),
        "iceberg overwrite": Nights(session, root, "local.db.made", "overwrite"),
        "parquet overwrite": Nights(session, root, "replaced", "overwrite"),
        "hive overwrite": Nights(session, root, "hive_made", "overwrite"),
        "delta append": Nights(session, root, "spark_catalog.default.delta_appended", "append"),
        "delta overwrite": Nights(session, root, "delta_replaced", "overwrite"),
    }
    outcomes = {}
    for kind, nights in results.items():
        is_delta = kind.startswith("delta")
        session.conf.set("spark.sql.sources.default", "delta" if is_delta else "parquet")
        has_commits = kind.startswith(("delta", "iceberg"))
        outcomes[kind] = nights.outcomes(steps_of(nights.mode) if has_commits else steps_of_hive())
    history = session.sql("DESCRIBE HISTORY delta_appended").collect()
    snapshots = session.table("local.db.appended.snapshots").collect()
    outcomes["notes"] = {
        "delta": [row.userMetadata for row in history if row.userMetadata],
        "iceberg": [row.summary["anonspark.commit"] for row in snapshots],
    }
    (root / "outcomes.json").write_text(json.dumps(outcomes))
