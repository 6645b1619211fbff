"""Files are the same to both engines."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_operations import OPERATIONS, outcome
from helpers import configuration_file
from py4j.clientserver import JavaClient

from anonspark.config import load_configuration
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.file_schemas import ParquetFooters, read_file_schemas


def test_operations(engine: SparkEngine, tmp_path: Path) -> None:
    differing = {}
    for place, (name, operation) in enumerate(OPERATIONS.items()):
        found = []
        for own, files in enumerate((LocalFiles(), engine.files)):
            folder = tmp_path / f"{place}-{own}"
            folder.mkdir()
            found.append(outcome(operation, files, folder))
        if found[0] != found[1]:
            differing[name] = found
    assert differing == {}


def test_spark_reads_what_changed_without_its_checksums(
    engine: SparkEngine, tmp_path: Path
) -> None:
    local = LocalFiles()
    for name in ("written", "replaced", "renamed"):
        engine.files.write_text(f"{tmp_path}/{name}", "what Hadoop has written")
    local.write_text(f"{tmp_path}/written", "new")
    local.replace(f"{tmp_path}/replaced", b"new", ".aside")
    local.rename(f"{tmp_path}/renamed", f"{tmp_path}/moved")
    local.write_text(f"{tmp_path}/renamed", "new")
    for name in ("written", "replaced", "renamed"):
        assert engine.files.read_text(f"{tmp_path}/{name}") == "new"
    assert engine.files.read_text(f"{tmp_path}/moved") == "what Hadoop has written"


@pytest.mark.parametrize("scheme", ["file", "viewfs"])
def test_a_table_of_many_files_takes_few_answers_of_java(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    settings = engine.session._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri())
    root = "file:" if scheme == "file" else f"viewfs://{tmp_path.name}/data"
    path = f"{root}{tmp_path}/lake" if scheme == "file" else f"{root}/lake"
    for number in range(300):
        folder = tmp_path / f"lake/day={number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        # The footers of pandas differ in each file, and name the columns alike.
        table = pa.table({"a": [number, 1]}).replace_schema_metadata({"pandas": f"}}\n{number}"})
        pq.write_table(table, folder / f"{number} ; isDirectory=false; length=7; .parquet")
    configuration = load_configuration(
        configuration_file(
            tmp_path,
            input={"path": path},
            attributes={"a": "quasi_identifier", "day": "quasi_identifier"},
        )
    )
    commands, send = [], JavaClient.send_command

    def counted(*arguments: Any, **named: Any) -> Any:
        # What frees objects, whenever Python does, asks nothing.
        commands.extend(arguments[1:2] if not arguments[1].startswith("m\n") else ())
        return send(*arguments, **named)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    opened = engine.open_input(configuration, {})
    # Once they were fifty a file. What viewfs prints does not say which file it is.
    assert len(commands) < (1500 if scheme == "file" else 1500 + 7 * 300)
    assert len(opened.table.source.files.schemas) == 1
    files = opened.table.source.files
    for file, size in zip(files.files, files.sizes, strict=True):
        assert engine.files.size(file) == size
    assert len(engine.files.files_below(path)) == 300


def test_footers_of_older_programs_are_known_by_what_they_print(
    engine: SparkEngine, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    for name, entry in (("new", "3.5.0"), ("old", "2.4.8")):
        table = pa.table({"a": [date(1500, 1, 1)]})
        table = table.replace_schema_metadata({"org.apache.spark.version": entry})
        pq.write_table(table, tmp_path / f"lake/{name}.parquet")
        opened = engine.session.read.parquet(str(tmp_path / "lake"))
        footers = read_file_schemas(opened, "parquet", [str(tmp_path / "lake")], {})
        assert isinstance(footers, ParquetFooters)
        assert footers.old_calendar == (name == "old")
