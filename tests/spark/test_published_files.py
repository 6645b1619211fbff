"""The files of a release: what is listed of them, and what they tell of how they came about."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from anonspark.filesystem import FileSystem
from anonspark.publish import files as published_files
from anonspark.publish.files import PublishedFile, read_files

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_files_are_listed_with_their_hashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their names and depth; those that Spark passes over, and large ones, too."""
    directory = tmp_path / "a b%20ü"
    contents = {
        ".hidden": b"1",
        "data/_SUCCESS": b"",
        "data/_log/0.json": b"23",
        "data/larger.parquet": bytes(1000),
        "data/x é +.parquet": b"4",
    }
    for name, content in contents.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    monkeypatch.setattr(published_files, "_LARGEST_IN_TASK", 100)
    files = FileSystem(spark)
    rows = {"data/larger.parquet": 7}
    assert read_files(files, files.qualified(str(directory)), rows) == [
        PublishedFile(name, len(content), rows.get(name), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    ]
    one = PublishedFile("data/part-00000.parquet", 10, None, "ab")
    assert one.as_dict() == {
        "path": "data/part-00000.parquet",
        "bytes": 10,
        "rows": None,
        "sha256": "ab",
    }
