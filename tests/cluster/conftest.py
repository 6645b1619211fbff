"""A cluster, a table, and the release that the embedded Spark makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from standalone import Cluster

from anonspark import pipeline
from anonspark.configuration import load_configuration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20_000
WORKERS = 2


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a master, and stop it with all its workers."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(running_cluster: Cluster) -> Cluster:
    """Return the cluster, which tests damage, with two workers."""
    while len(running_cluster.workers) < WORKERS:
        running_cluster.add_worker()
    running_cluster.wait_for_workers()
    return running_cluster


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write people in four files."""
    path = tmp_path_factory.mktemp("input") / "people"
    path.mkdir()
    random = np.random.default_rng(3)
    people = pa.table(
        {
            "age": random.integers(18, 99, ROWS).astype(np.int32),
            "income": random.lognormal(10, 0.6, ROWS).round(2),
            "gain": np.where(random.random(ROWS) < 0.9, 0, random.integers(1, 9_999, ROWS)),
            "diagnosis": random.choice(["asthma", "fracture", "migraine"], ROWS),
        }
    )
    for number in range(4):
        part = people.slice(number * ROWS // 4, ROWS // 4)
        pq.write_table(part, path / f"part-{number}.parquet")
    return path


def write_configuration(table: Path, folder: Path, **execution: Any) -> Path:
    """Write the configuration of a run that publishes in the folder."""
    document = {
        "input": {"path": str(table)},
        "attributes": {
            "age": "quasi_identifier",
            "income": "quasi_identifier",
            "gain": "quasi_identifier",
            "diagnosis": "sensitive",
        },
        "privacy": {"k": 5},
        "model": {"name": "su-mondrian", "rho": 2},
        "output": {"path": str(folder / "release")},
        "execution": {"task_rows": 5_000, **execution},
    }
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def read_release(path: Path) -> tuple[str, pa.Table]:
    """Return the fingerprint of a release and its records, sorted by all columns."""
    (summary,) = pq.read_table(path / "metrics" / "summary").to_pylist()
    data = pq.read_table(path / "data")
    order = [(name, "ascending") for name in data.column_names]
    return summary["output_fingerprint"], data.sort_by(order).combine_chunks()


@pytest.fixture(scope="session")
def embedded(
    spark_session: SparkSession, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, pa.Table]:
    """Return the release that the embedded Spark makes."""
    folder = tmp_path_factory.mktemp("embedded")
    pipeline.run(spark_session, load_configuration(write_configuration(table, folder)))
    return read_release(folder / "release")
