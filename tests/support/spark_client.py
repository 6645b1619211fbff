"""Programs with a small Spark of their own, which tests of services start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from places import REPOSITORY
from service_jars import locked_jars
from standalone import QUICK_QUERIES, QUICK_START, write_spark_defaults

SMALL: dict[str, object] = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": QUICK_START,
    **QUICK_QUERIES,
}


def run_client(
    folder: Path,
    settings: Mapping[str, object],
    *command: object,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program of Python to its end, with the defaults in a folder, and return what it said.

    Parameters
    ----------
    folder : Path
    settings : mapping of str to object
        Of Spark, beside those that make it small.
    *command
        The program and its arguments.
    environment : mapping of str to str or None
        Beside this process's own, from which all is left out that is about Spark.
    """
    paths = (REPOSITORY, REPOSITORY / "tests" / "support", REPOSITORY / "benchmarks")
    write_spark_defaults(folder, SMALL | dict(settings))
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env={name: value for name, value in os.environ.items() if "SPARK" not in name}
        | {
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }
        | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout + done.stderr


def outcomes_of_table_formats(
    folder: Path, client: str, *arguments: object, settings: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Run a client with Delta Lake and Iceberg, and return what it writes into a folder."""
    catalog = "spark.sql.catalog.local"
    packages = locked_jars(
        "delta-spark_4.1_2.13", "delta-storage", "iceberg-spark-runtime-4.1_2.13"
    )
    of_formats = {
        "spark.driver.extraClassPath": ":".join(map(str, packages)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Of the log of a small table, too, 50 tasks are made.
        "spark.databricks.delta.snapshotPartitions": "2",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(folder / "warehouse"),
        "spark.sql.warehouse.dir": str(folder / "tables"),
    }
    program = REPOSITORY / "tests" / "support" / client
    run_client(folder, of_formats | dict(settings or {}), program, folder, *arguments)
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found
