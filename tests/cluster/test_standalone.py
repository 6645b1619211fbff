"""spark-submit on a real cluster: the release is that of the embedded Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from conftest import read_release, write_configuration
from standalone import REPOSITORY, Cluster

pytestmark = pytest.mark.cluster


def test_release_of_a_cluster_is_that_of_the_embedded_spark(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path
) -> None:
    job = REPOSITORY / "jobs" / "anonymize.py"
    driver = cluster.submit(tmp_path, job, write_configuration(table, tmp_path))
    assert driver.wait() == 0, driver.said
    fingerprint, data = read_release(tmp_path / "release")
    assert fingerprint == embedded[0]
    assert data.equals(embedded[1])
