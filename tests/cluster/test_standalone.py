"""spark-submit on a real cluster: the release is that of the embedded Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import read_release, write_configuration
from packed import packed_environment
from standalone import REPOSITORY, Cluster

pytestmark = pytest.mark.cluster


def test_the_packed_environment_makes_the_release_of_the_embedded_spark(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path
) -> None:
    """Driver and executors get zip and archive, and have none of our packages besides."""
    packed = packed_environment()
    environment = tmp_path / "environment"
    shutil.unpack_archive(packed.archive, environment, filter="fully_trusted")
    driver = cluster.submit(
        tmp_path,
        REPOSITORY / "jobs" / "anonymize.py",
        write_configuration(table, tmp_path),
        options=packed.arguments,
        environment={
            "PYSPARK_PYTHON": "./environment/bin/python",
            "PYSPARK_DRIVER_PYTHON": str(environment / "bin" / "python"),
        },
    )
    assert driver.wait() == 0, driver.said
    fingerprint, data = read_release(tmp_path / "release")
    assert fingerprint == embedded[0]
    assert data.equals(embedded[1])
