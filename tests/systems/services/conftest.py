"""Real services, each started once for all its tests, and stopped by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from generated_people import generate_people
from golden_run import ROWS
from hadoop import Hdfs
from object_store import ObjectStore, S3Proxy, VersityGateway
from yarn import Yarn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make systems`` runs and ``make test`` does not."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture(scope="session")
def golden_people(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the people of the golden run in several files."""
    folder = tmp_path_factory.mktemp("golden") / "people"
    generate_people(spark_session, ROWS).repartition(7).write.parquet(str(folder))
    return folder


@pytest.fixture(scope="session")
def running_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Start a NameNode and two DataNodes."""
    cluster = Hdfs(tmp_path_factory.mktemp("hdfs"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def hdfs(running_hdfs: Hdfs, spark: SparkSession) -> Iterator[Hdfs]:
    """Lend the cluster, which tests damage, whole and with the session as its client."""
    while len(running_hdfs.datanodes) < 2:
        running_hdfs.add_datanode()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    chosen = {
        "dfs.replication": "2",
        "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
    }
    for key, value in chosen.items():
        settings.set(key, value)
    yield running_hdfs
    for key in chosen:
        settings.unset(key)


@pytest.fixture(scope="session", params=[S3Proxy, VersityGateway])
def object_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectStore]:
    """Start a server that speaks S3."""
    store: ObjectStore = request.param(tmp_path_factory.mktemp("s3"))
    store.start()
    try:
        yield store
    finally:
        store.stop()


@pytest.fixture(scope="session")
def yarn(running_hdfs: Hdfs) -> Yarn:
    """Start YARN beside HDFS; it ends with it."""
    cluster = Yarn(running_hdfs)
    cluster.start()
    return cluster
