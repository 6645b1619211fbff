"""What tests do with PostgreSQL, in a process of its own with its driver.

``python postgresql_client.py FOLDER PEOPLE ADDRESS`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from golden_run import SECTIONS
from object_store_client import command
from postgresql import PASSWORD, USER
from pyspark.sql import SparkSession
from table_formats_client import manifest_of

from anonspark.engine.spark.input import SparkInput

PARALLEL = {
    "partitionColumn": "number",
    "lowerBound": "0",
    "upperBound": "600",
    "numPartitions": "4",
    # However it is written.
    "fetchSize": "100",
}


def use(folder: Path, people: str, address: str) -> dict[str, Any]:
    """Do all of it; return the outcomes by name."""
    spark = SparkSession.builder.getOrCreate()
    access = {"user": USER, "password": PASSWORD}
    table = spark.read.parquet(people).selectExpr("*", "monotonically_increasing_id() AS place")
    numbered = table.selectExpr("*", "row_number() OVER (ORDER BY place) AS number").drop("place")
    numbered.write.jdbc(address, "people", properties=access)
    java: Any = spark._jvm

    def execute(statement: str) -> list[str]:
        connection = java.java.sql.DriverManager.getConnection(address, USER, PASSWORD)
        try:
            done = connection.createStatement()
            if not done.execute(statement):
                return []
            rows, found = done.getResultSet(), []
            while rows.next():
                found.append(str(rows.getString(1)))
            return found
        finally:
            connection.close()

    stages = SparkInput.stage

    def stage_while_others_write(*given: Any, **named: Any) -> Any:
        # As every hour of the day: records come, change and go.
        execute("INSERT INTO people SELECT * FROM people WHERE number <= 50")
        execute("UPDATE people SET marital_status = 'married', number = 600 - number")
        execute("DELETE FROM people WHERE number BETWEEN 100 AND 140")
        return stages(*given, **named)

    outcomes: dict[str, Any] = {}

    def run(name: str, options: dict[str, str], path: str = address) -> None:
        own = folder / f"{name}.yaml"
        release = folder / name
        document = {
            **SECTIONS,
            "input": {
                "path": path,
                "format": "jdbc",
                "options": {"dbtable": "people", **access, **options},
            },
            "output": {"path": str(release)},
        }
        own.write_text(yaml.safe_dump(document, sort_keys=False))
        outcomes[name] = command("run", str(own))
        outcomes[f"manifest of {name}"] = manifest_of(release)

    run("one", {})
    with patch.object(SparkInput, "stage", stage_while_others_write):
        run("parallel", PARALLEL)
    run("after", PARALLEL)
    run("twice", {**PARALLEL, "sessionInitStatement": "SELECT 1"})
    run("other", PARALLEL, "jdbc:mysql://127.0.0.1:1/people")
    run("address", {"url": address})
    run("path", {}, "people")
    run("down", PARALLEL, "jdbc:postgresql://127.0.0.1:1/people")
    outcomes["open transactions"] = execute(
        "SELECT state FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    )
    return outcomes


if __name__ == "__main__":
    _, given, people_path, database = sys.argv
    found = use(Path(given), people_path, database)
    (Path(given) / "outcomes.json").write_text(json.dumps(found))
