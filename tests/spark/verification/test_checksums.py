"""Hadoop's checksums of the files of a release."""

from __future__ import annotations

from pathlib import Path

import pytest
from release_folders import list_files, release_of_several_files

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import GuaranteeError
from anonspark.release.manifest import read_manifest
from anonspark.verification.proof.release_files import audit_release_files


def test_a_checksum_that_does_not_fit(engine: SparkEngine, tmp_path: Path) -> None:
    """Hadoop looks, as long as a checksum has the form of one; so nothing can hide in it."""
    release = release_of_several_files(LocalEngine(), tmp_path)
    list_files(release)
    manifest = read_manifest(engine.files, str(release))
    assert audit_release_files(engine, str(release), manifest) == []
    path = release / "data" / "part-10001.parquet"
    chunks = -(-path.stat().st_size // 512)
    wrong = b"crc\0\0\0\2\0" + b"Zebe" * chunks
    path.with_name(f".{path.name}.crc").write_bytes(wrong)
    text = "cannot be read, or not as Hadoop's checksums say: data/part-10001.parquet"
    with pytest.raises(GuaranteeError, match=text):
        audit_release_files(engine, str(release), manifest)
