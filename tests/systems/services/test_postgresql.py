"""PostgreSQL through one connection of JDBC: the release of the same table in files."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS
from places import REPOSITORY
from postgresql import PASSWORD, PostgreSql
from service_jars import locked_jars
from spark_client import run_client


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
        "spark.driver.extraClassPath": str(driver),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
    }
    client = REPOSITORY / "tests" / "support" / "postgresql_client.py"
    log = run_client(folder, settings, client, folder, golden_people, server.address)
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found | {"log": log}


def fingerprints(outcomes: dict[str, Any], name: str) -> dict[str, str]:
    assert outcomes[name]["code"] == 0, outcomes[name]["said"]
    found = outcomes[f"manifest of {name}"]["fingerprints"]
    return {key: found[key] for key in FINGERPRINTS}


@pytest.mark.timeout(600)
def test_the_release_is_that_of_the_same_table_in_files(outcomes: dict[str, Any]) -> None:
    assert fingerprints(outcomes, "one") == FINGERPRINTS
    # What others commit before a run is read by it.
    assert fingerprints(outcomes, "after") != FINGERPRINTS


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("parallel", "input.options.partitionColumn: found it, but several connections may read"),
        ("address", "input.options.url: found it with the format 'jdbc'"),
        ("path", "Expected one address that begins with 'jdbc:'"),
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
