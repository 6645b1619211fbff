"""What the tests of whole runs share: tables, configuration files, and what a run left on disk."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import yaml
from manifests import listed_files, manifest_of

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.table import SparkTable
from anonspark.labels import region_matching
from anonspark.labels.regions import PublishedAttribute
from anonspark.release.manifest import manifest_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def configuration_file(tmp_path: Path, **sections: Any) -> Path:
    """Write a configuration: input `tmp_path/input.parquet`, output `tmp_path/release`, k = 5.

    A section that is a mapping is merged into the one that is there by default.
    """
    document: dict[str, Any] = {
        "input": {"path": str(tmp_path / "input.parquet")},
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "release")},
    }
    for name, section in sections.items():
        default = document.get(name, {})
        document[name] = default | section if isinstance(section, dict) else section
    return document_file(tmp_path, document)


def document_file(
    folder: Path, document: Mapping[str, Any], name: str = "configuration.yaml"
) -> Path:
    """Write a document, without a default."""
    path = folder / name
    text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    path.write_text(text)
    return path


def write_table(path: Path, table: pa.Table | Mapping[str, Any], format: str = "parquet") -> Path:
    """Write a table as one file of a format."""
    table = table if isinstance(table, pa.Table) else pa.table(dict(table))
    path.parent.mkdir(parents=True, exist_ok=True)
    match format:
        case "parquet":
            pq.write_table(table, path)
        case "orc":
            pyarrow.orc.write_table(table, path)
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "json":
            lines = (json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist())
            path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_people_of_towns(folder: Path, rows: int) -> None:
    """Write ``input.parquet``, and ``towns.csv``, a hierarchy."""
    random = np.random.default_rng(5)
    columns = {
        "age": random.integers(0, 100, rows),
        "town": random.choice(["Adana", "Bursa", "Konya", "Rize"], rows),
        "disease": random.choice(["asthma", "fracture", "migraine"], rows),
    }
    write_table(folder / "input.parquet", columns)
    (folder / "towns.csv").write_text("Adana,south,*\nBursa,north,*\nKonya,south,*\nRize,north,*\n")


def write_earlier_release(release: Path) -> None:
    """Write what counts as a release of ours, whose records cannot be read, and may be replaced."""
    (release / "data").mkdir(parents=True, exist_ok=True)
    (release / "data" / "part-0.parquet").write_bytes(b"earlier data")
    (release / "data" / "_SUCCESS").touch()
    list_earlier_release(release)


def list_earlier_release(release: Path) -> None:
    """Write the manifest of such a release, which lists what lies there."""
    attributes = {"age": "quasi_identifier"}
    configuration = {"attributes": attributes, "privacy": {"k": 2}}
    manifest = manifest_of(configuration, {"age": ("integer", "int64")})
    manifest["files"] = listed_files(release)
    (release / "manifest.json").write_text(manifest_text(manifest))


def published(release: Path) -> pa.Table:
    """Read the published records."""
    data = release / "data"
    if of_orc := sorted(data.glob("*.orc")):
        return pa.concat_tables([pyarrow.orc.read_table(path) for path in of_orc])
    return pq.read_table(data)


def metrics(release: Path, name: str) -> list[dict[str, Any]]:
    """Read a table of metrics."""
    return pq.read_table(release / "metrics" / name).to_pylist()


def summary(release: Path) -> dict[str, Any]:
    """Read the one row of the table ``summary``."""
    (row,) = metrics(release, "summary")
    return row


# Columns of the summary that tell of the run, not of the release.
OF_THE_RUN = {"run_id", "started", "seconds", "configuration_fingerprint"}


def of_any_run(release: Path) -> dict[str, Any]:
    """Read everything that two equal releases have in common, in no order."""
    figures = {name: value for name, value in summary(release).items() if name not in OF_THE_RUN}
    found: dict[str, Any] = {"summary": figures}
    for name in ("rounds", "classes", "attributes", "privacy", "risk"):
        rows = (row | {"run_id": None} for row in metrics(release, name))
        found[name] = sorted(map(str, rows))
    if (release / "metrics" / "nodes").exists():
        found["nodes"] = [str(row | {"run_id": None}) for row in metrics(release, "nodes")]
    found["data"] = sorted(map(str, published(release).to_pylist()))
    return found


def contents(directory: Path) -> dict[str, bytes | None]:
    """Read every file of a directory, hidden ones too; directories and links have None."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of a size; the test is skipped where that is not allowed."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)]
    try:
        subprocess.run(mounting, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system cannot be mounted here: {error}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def attribute(name: str, kind: Any, *columns: str, **fields: Any) -> PublishedAttribute:
    """Describe an attribute of a release; more than one column means bounds."""
    style = "bounds" if len(columns) > 1 else fields.pop("style", "interval")
    return PublishedAttribute(name, kind, style, columns or (name,), **fields)


@contextmanager
def divided_classes(
    most: int = 0, leaf_classes: int = 2, sampled: int = 1_000_000
) -> Iterator[None]:
    """Share classes out over tasks if there are more than so few, as else more than 1,000,000."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_matching, "MOST_CLASSES", most)
        patch.setattr(region_matching, "_LEAF_CLASSES", leaf_classes)
        patch.setattr(region_matching, "_SAMPLED", sampled)
        yield


def settings_of(session: SparkSession) -> dict[str, str]:
    """Return the settings that a session of Spark has, of its own or from where it started."""
    return {row["key"]: row["value"] for row in session.sql("SET").collect()}


def put_back(session: SparkSession, before: Mapping[str, str]) -> None:
    """Give a session the settings that it had, see :func:`settings_of`."""
    now = settings_of(session)
    for key in now.keys() - before.keys():
        session.conf.unset(key)
    for key, value in before.items():
        if now.get(key) != value:
            session.conf.set(key, value)


def table_of(frame: DataFrame) -> SparkTable:
    """Return a DataFrame as the package knows tables."""
    return SparkEngine(frame.sparkSession).wrap(frame)


def local_table(rows: pa.Table, tasks: int = 1) -> Table:
    """Return rows as a table of the engine without Java, dealt out to some tasks."""
    engine = LocalEngine()
    dealt = [rows.take(np.arange(own, len(rows), tasks)) for own in range(tasks)]
    table: Table = engine.wrap(dealt[0])
    for own in dealt[1:]:
        table = table.union(engine.wrap(own))
    return table


def write_files(table: pa.Table, path: Path, files: int, *, shuffled: bool = False) -> Path:
    """Write a table into a new folder as so many Parquet files, its rows out of order if asked."""
    path.mkdir()
    rows = np.arange(table.num_rows)
    if shuffled:
        rows = np.random.default_rng(7).permutation(rows)
    for number, part in enumerate(np.array_split(rows, files)):
        pq.write_table(table.take(part), path / f"part-{number}.parquet")
    return path
