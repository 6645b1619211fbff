"""PostgreSQL through JDBC: one state of a table, though others write to it meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS
from places import REPOSITORY
from postgresql import PASSWORD, PostgreSql
from service_jars import locked_jars
from standalone import QUICK_START


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    # Not below pytest's folder, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="anonspark-postgresql-"))
    folder.chmod(0o755)
    database = PostgreSql(folder)
    try:
        database.start()
        yield database
        database.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def outcomes(
    server: PostgreSql, golden_people: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("client")
    (driver,) = locked_jars("postgresql")
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.driver.extraClassPath": str(driver),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
    }
    lines = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines)
    support = REPOSITORY / "tests" / "support"
    client = support / "postgresql_client.py"
    done = subprocess.run(
        [sys.executable, client, folder, golden_people, server.address],
        env={name: value for name, value in os.environ.items() if "SPARK" not in name}
        | {
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{REPOSITORY}:{support}:{REPOSITORY / 'benchmarks'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found | {"log": done.stdout + done.stderr}


def fingerprints(outcomes: dict[str, Any], name: str) -> dict[str, str]:
    assert outcomes[name]["code"] == 0, outcomes[name]["said"]
    found = outcomes[f"manifest of {name}"]["fingerprints"]
    return {key: found[key] for key in FINGERPRINTS}


@pytest.mark.timeout(600)
def test_one_state_whatever_others_write_meanwhile(outcomes: dict[str, Any]) -> None:
    assert fingerprints(outcomes, "one") == FINGERPRINTS
    assert fingerprints(outcomes, "parallel") == FINGERPRINTS
    # What the others wrote was there all the time.
    assert fingerprints(outcomes, "after") != FINGERPRINTS
    assert outcomes["open transactions"] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("twice", "input.options.sessionInitStatement: found it beside partitionColumn"),
        ("other", "input.options.partitionColumn: found it with a database whose connections"),
        ("address", "input.options.url: found it with the format 'jdbc'"),
        ("path", "expected one address that begins with 'jdbc:'"),
    ],
)
def test_refused(outcomes: dict[str, Any], name: str, told: str) -> None:
    assert outcomes[name]["code"] in (2, 3)
    assert told in outcomes[name]["said"]


def test_a_database_that_is_away(outcomes: dict[str, Any]) -> None:
    assert outcomes["down"]["code"] in (3, 6), outcomes["down"]["said"]
    assert "input" in outcomes["down"]["said"]


def test_nothing_tells_the_password(outcomes: dict[str, Any]) -> None:
    assert PASSWORD not in json.dumps(outcomes)
