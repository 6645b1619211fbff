"""S3 through s3a://: a real server, and what only an object store can break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS
from object_store import IDENTITY, SECRET, ObjectStore
from places import REPOSITORY
from service_jars import locked_jars
from spark_client import run_client
from standalone import free_port

COMMITTERS = {
    "file": ("hadoop-aws", "bundle"),
    # Spark takes the magic committer for all buckets where it finds this package (SPARK-47618).
    "magic": ("hadoop-aws", "bundle", "spark-hadoop-cloud_2.13"),
}


def use(store: ObjectStore, folder: Path, people: Path, committer: str) -> dict[str, Any]:
    """Run the client; return its outcomes, and what it logged."""
    classes = ":".join(map(str, locked_jars(*COMMITTERS[committer])))
    port = free_port()
    hadoop = store.settings | {
        "fs.s3a.endpoint": f"http://127.0.0.1:{port}",
        # It gives up sooner than it does for everybody.
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "2",
        "fs.s3a.retry.interval": "50ms",
        "fs.s3a.retry.throttle.interval": "50ms",
    }
    settings = {
        "spark.driver.extraClassPath": classes,
        **{f"spark.hadoop.{key}": value for key, value in hadoop.items()},
    }
    log = run_client(
        folder,
        settings,
        REPOSITORY / "tests" / "support" / "object_store_client.py",
        *(folder, f"{store.address}/{committer}", people, port, store.port),
        environment={"AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET},
    )
    outcomes: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return outcomes | {"log": log}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("committer", [pytest.param("file", marks=pytest.mark.night), "magic"])
def test_everything_on_s3(
    object_store: ObjectStore, golden_people: Path, tmp_path: Path, committer: str
) -> None:
    outcomes = use(object_store, tmp_path, golden_people, committer)
    # Without the condition of Hadoop 3.4.2 all four would have it.
    assert outcomes["claims"] == ["created", "refused", "refused", "refused"]
    assert outcomes["requests refused"] > 10
    assert outcomes["lost"]["code"] == 6, outcomes["lost"]["said"]
    assert not outcomes["manifest of the lost run"]
    assert "data/part-00000.parquet" in outcomes["before"]
    assert "no manifest.json there" in outcomes["refused"]
    for name in ("resumed", "verify", "report"):
        assert outcomes[name]["code"] == 0, outcomes[name]["said"]
    assert "finished before" in outcomes["resumed"]["said"]
    assert outcomes["fingerprints"] == FINGERPRINTS
    assert outcomes["names"] == ["history", "people", "release"]
    assert SECRET not in json.dumps(outcomes)
