"""Files are the same to both engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_operations import OPERATIONS, outcome

from anonspark.engine.local.files import LocalFiles
from anonspark.engine.spark.engine import SparkEngine


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(engine: SparkEngine, tmp_path: Path, name: str) -> None:
    found = []
    for files, folder in ((LocalFiles(), tmp_path / "1"), (engine.files, tmp_path / "2")):
        folder.mkdir()
        found.append(outcome(OPERATIONS[name], files, folder))
    assert found[0] == found[1]


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
