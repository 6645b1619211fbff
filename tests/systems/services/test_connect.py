"""A real server of Spark Connect: what is refused, and what works beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_run import FINGERPRINTS, SECTIONS
from places import REPOSITORY
from service_jars import SPARK_JARS, cannot_run
from spark_client import SMALL
from standalone import Process, free_port, spark_environment, write_spark_defaults

PACKAGES = Path(os.environ.get("ANONSPARK_CONNECT") or REPOSITORY / "build" / "connect")
REFUSED = "Spark Connect cannot be used: "


def environment(folder: Path) -> dict[str, str]:
    """Return an environment of clients."""
    path = (REPOSITORY, REPOSITORY / "tests" / "support", REPOSITORY / "benchmarks", PACKAGES)
    return spark_environment() | {
        "SPARK_CONF_DIR": str(folder),
        "PYTHONPATH": ":".join(map(str, path)),
    }


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server, and stop it."""
    if not (PACKAGES / "grpc").exists():
        cannot_run(f"{PACKAGES} has no packages for clients: make systems fetches them")
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
    }
    write_spark_defaults(folder, SMALL | settings)
    log = folder / "server.log"
    with log.open("wb") as output:
        handle = subprocess.Popen(
            [
                *(SPARK_JARS.parent / "bin" / "spark-submit", "--class"),
                *("org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
            ],
            # Spark takes it for a daemon, and gives it a daemon's memory.
            env=environment(folder) | {"SPARK_DAEMON_MEMORY": "1g"},
            stdout=output,
            stderr=output,
            cwd=folder,
        )
    server = Process(handle, log)
    try:
        server.wait_for("Spark Connect server started")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()


@pytest.mark.timeout(600)
def test_programs(address: str, tmp_path: Path) -> None:
    support = REPOSITORY / "tests" / "support"
    done = subprocess.run(
        [sys.executable, support / "connect_client.py", tmp_path, address],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    outcomes: dict[str, Any] = json.loads((tmp_path / "outcomes.json").read_text())
    assert outcomes["session"] == "pyspark.sql.connect.session"
    # The variable is one that pyspark sets for the process.
    told = outcomes["open_session"]
    assert told.startswith(f"{REFUSED}SPARK_CONNECT_MODE_ENABLED is set")
    for name in ("open_session with a master", "anonymize"):
        assert outcomes[name].startswith(f"{REFUSED}this is a session of Spark Connect"), name
    assert not outcomes["Java was started"]
    assert outcomes["rows, with the session after all that"] == 60
    for name, holds in (("verified", True), ("refuted", False)):
        assert outcomes[f"{name}, remote"] == outcomes[f"{name}, local"]
        assert outcomes[f"{name}, remote"]["holds"] is holds


@pytest.mark.timeout(600)
def test_commands(address: str, golden_people: Path, tmp_path: Path) -> None:
    configuration = tmp_path / "configuration.yaml"
    release = tmp_path / "release"
    document = {**SECTIONS, "input": {"path": str(golden_people)}, "output": {"path": str(release)}}
    configuration.write_text(yaml.safe_dump(document, sort_keys=False))

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).parent / "anonspark", *map(str, arguments)],
            env=environment(tmp_path) | {"SPARK_REMOTE": address},
            capture_output=True,
            text=True,
            check=False,
        )

    for words in (("run", configuration), ("check", configuration)):
        refused = command(*words)
        assert refused.returncode == 6
        assert f"{REFUSED}SPARK_REMOTE is set" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["configuration.yaml"]
    found = []
    for words in (("--master", "local[2]"), ("--set", "execution.engine=local")):
        done = command("run", configuration, "--set", "output.mode=overwrite", *words)
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads((release / "manifest.json").read_text())["fingerprints"]
        found.append({name: told[name] for name in FINGERPRINTS})
    assert found == [FINGERPRINTS, FINGERPRINTS]
    assert command("verify", release).returncode == 6
    assert command("verify", release, "--engine", "local").returncode == 0
