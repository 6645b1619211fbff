"""What tests do with Delta Lake and Apache Iceberg, in a process of its own with their packages.

``python table_formats_client.py FOLDER PEOPLE`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from golden_run import FINGERPRINTS, SECTIONS
from object_store_client import command
from pyspark.sql import DataFrame, SparkSession

from anonspark.errors import GuaranteeError
from anonspark.pipeline import run, writing


def gone(*_: Any, **__: Any) -> Any:
    """Fail as a machine does that is switched off."""
    raise OSError("the machine is gone")


def refused(*_: Any, **__: Any) -> Any:
    """Refuse a release, whatever it is like."""
    raise GuaranteeError("on purpose")


def configure(folder: Path, **sections: Any) -> Path:
    """Write the configuration of the golden run with other input and output."""
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump({**SECTIONS, **sections}, sort_keys=False))
    return path


def read_a_pinned_version(
    folder: Path, source: dict[str, str], append: Callable[[], None]
) -> dict[str, Any]:
    """Kill a run, append to its input, and continue it."""
    table = source.get("table") or source["path"]
    release = folder / f"release-of-{Path(table).name}"
    path = configure(folder, input=source, output={"path": str(release)})
    with patch.object(writing, "write_records", gone):
        killed = command("run", str(path), "--resume", "--run-id", "night")
    append()
    outcomes: dict[str, Any] = {"killed": killed, "resumed": command("run", str(path), "--resume")}
    outcomes["verify"] = command("verify", str(release), "--original", table)
    outcomes["manifest"] = manifest_of(release)
    again = folder / f"again-{Path(table).name}"
    outcomes["again"] = command("run", str(path), "--set", f"output.path={again}")
    outcomes["manifest of the next run"] = manifest_of(again)
    return outcomes


def manifest_of(release: Path) -> dict[str, Any]:
    """Read a manifest; empty where a run has failed."""
    path = release / "manifest.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def of_delta(spark: SparkSession, folder: Path, people: DataFrame) -> dict[str, Any]:
    """Read Delta, and write it."""
    table = folder / "people.delta"
    people.write.format("delta").save(str(table))

    def append() -> None:
        people.limit(100).write.format("delta").mode("append").save(str(table))

    outcomes = read_a_pinned_version(folder, {"path": str(table), "format": "delta"}, append)
    release = folder / "release-as-delta"
    source = {"path": str(table), "format": "delta", "options": {"versionAsOf": 0}}
    path = configure(folder, input=source, output={"path": str(release), "format": "delta"})
    with patch.object(run, "verify_staged", refused):
        outcomes["refused"] = command("run", str(path))
    outcomes["after it was refused"] = release.exists()
    outcomes["as delta"] = command("run", str(path))
    outcomes["verify delta"] = command("verify", str(release), "--original", str(table))
    data = str(release / "data")
    outcomes["rows of delta"] = spark.read.format("delta").load(data).count()
    outcomes["versions of delta"] = spark.sql(f"DESCRIBE HISTORY delta.`{data}`").count()
    outcomes["manifest of delta"] = manifest_of(release)
    return outcomes


def of_iceberg(folder: Path, people: DataFrame) -> dict[str, Any]:
    """Read a table of Iceberg by its path."""
    people.writeTo("local.db.people").using("iceberg").create()

    def append() -> None:
        people.limit(100).writeTo("local.db.people").append()

    table = folder / "warehouse" / "db" / "people"
    return read_a_pinned_version(folder, {"path": str(table), "format": "iceberg"}, append)


def by_name(folder: Path, people: DataFrame, name: str) -> dict[str, Any]:
    """Read a table by its name in a catalog."""

    def append() -> None:
        people.limit(100).writeTo(name).append()

    return read_a_pinned_version(folder, {"table": name}, append)


def refused_by_name(folder: Path, people: DataFrame) -> dict[str, Any]:
    """Name what is not there, or is no name."""
    people.write.saveAsTable("plain")
    outcomes = {}
    for name in ("absent", "plain; DROP TABLE plain"):
        path = configure(folder, input={"table": name}, output={"path": str(folder / "no")})
        outcomes[name] = command("check", str(path))
    source = {"table": "named", "options": {"branch": "audit"}}
    path = configure(folder, input=source, output={"path": str(folder / "no")})
    outcomes["other options"] = command("check", str(path))
    return outcomes


if __name__ == "__main__":
    _, given, people_path = sys.argv
    session = SparkSession.builder.getOrCreate()
    table_of_people = session.read.parquet(people_path)
    found = {
        "expected": FINGERPRINTS,
        "delta": of_delta(session, Path(given), table_of_people),
        "iceberg": of_iceberg(Path(given), table_of_people),
    }
    table_of_people.write.format("delta").saveAsTable("named")
    table_of_people.writeTo("local.db.named").using("iceberg").create()
    found["delta by name"] = by_name(Path(given), table_of_people, "spark_catalog.default.named")
    found["iceberg by name"] = by_name(Path(given), table_of_people, "local.db.named")
    found["refused"] = refused_by_name(Path(given), table_of_people)
    (Path(given) / "outcomes.json").write_text(json.dumps(found))
