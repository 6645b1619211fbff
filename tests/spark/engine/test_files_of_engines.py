"""Files are the same to both engines."""

from __future__ import annotations

from pathlib import Path

from file_operations import OPERATIONS, outcome

from anonspark.engine.local.files import LocalFiles
from anonspark.engine.spark.engine import SparkEngine


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
