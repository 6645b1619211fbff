"""S3 through s3a://: a real server, and what only an object store can break."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS
from object_store import IDENTITY, SECRET, ObjectStore
from places import REPOSITORY
from service_jars import locked_jars
from standalone import QUICK_START, free_port

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
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.driver.extraClassPath": classes,
        **{f"spark.hadoop.{key}": value for key, value in hadoop.items()},
    }
    lines = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines)
    support = REPOSITORY / "tests" / "support"
    done = subprocess.run(
        [
            *(sys.executable, str(support / "object_store_client.py")),
            *(str(folder), f"{store.address}/{committer}", str(people)),
            *(str(port), str(store.port)),
        ],
        env={name: value for name, value in os.environ.items() if "SPARK" not in name}
        | {
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{REPOSITORY}:{support}:{REPOSITORY / 'benchmarks'}",
            "AWS_ACCESS_KEY_ID": IDENTITY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    outcomes: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return outcomes | {"log": done.stdout + done.stderr}


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
