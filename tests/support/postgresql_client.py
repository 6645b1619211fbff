"""What tests do with PostgreSQL, in a process of its own with its driver.

``python postgresql_client.py FOLDER PEOPLE ADDRESS`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from golden_run import SECTIONS
from object_store_client import command
from postgresql import PASSWORD, USER
from pyspark.sql import SparkSession
from table_formats_client import manifest_of

# However it is written.
ONE_CONNECTION = {"fetchSize": "100"}


def use(folder: Path, people: str, address: str) -> dict[str, Any]:
    """Do all of it; return the outcomes by name."""
    spark = SparkSession.builder.getOrCreate()
    access = {"user": USER, "password": PASSWORD}
    table = spark.read.parquet(people).selectExpr("*", "monotonically_increasing_id() AS place")
    numbered = table.selectExpr("*", "row_number() OVER (ORDER BY place) AS number").drop("place")
    numbered.write.jdbc(address, "people", properties=access)
    java: Any = spark._jvm

    def execute(statement: str) -> None:
        connection = java.java.sql.DriverManager.getConnection(address, USER, PASSWORD)
        try:
            connection.createStatement().execute(statement)
        finally:
            connection.close()

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

    run("one", ONE_CONNECTION)
    execute("DELETE FROM people WHERE number BETWEEN 100 AND 140")
    run("after", {})
    run("parallel", {**ONE_CONNECTION, "partitionColumn": "number", "numPartitions": "4"})
    run("address", {"url": address})
    run("path", {}, "people")
    run("down", {}, "jdbc:postgresql://127.0.0.1:1/people")
    return outcomes


if __name__ == "__main__":
    _, given, people_path, database = sys.argv
    found = use(Path(given), people_path, database)
    (Path(given) / "outcomes.json").write_text(json.dumps(found))
