"""A real server of Spark Connect: programs and commands publish what they do without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import yaml
from golden_run import FINGERPRINTS, SECTIONS
from places import REPOSITORY
from pyarrow import csv, orc, parquet
from service_jars import SPARK_JARS, cannot_run
from spark_client import SMALL
from standalone import Process, free_port, spark_environment, write_spark_defaults

PACKAGES = Path(os.environ.get("ANONSPARK_CONNECT") or REPOSITORY / "build" / "connect")


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
        # Paths are those of this machine, whatever the server takes one without a scheme for.
        "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:1",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
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
    assert outcomes["the same session"]
    assert (outcomes["settings"], outcomes["settings afterwards"]) == ("UTC", "Asia/Tokyo")
    assert "staging: none is given" in outcomes["without staging"]
    assert len(outcomes["rows, remote"]) == outcomes["counted by the server"] == 60
    assert outcomes["rows, remote"] == outcomes["rows, local"]
    assert outcomes["left behind"] == []
    assert not outcomes["Java was started"]
    assert outcomes["rows, with the session after all that"] == 60
    assert "the session of this table was stopped" in outcomes["stopped"]
    for name, holds in (("verified", True), ("refuted", False)):
        assert outcomes[f"{name}, remote"] == outcomes[f"{name}, local"]
        assert outcomes[f"{name}, remote"]["holds"] is holds


def run_command(folder: Path, address: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command that finds the server by the environment."""
    return subprocess.run(
        [Path(sys.executable).parent / "anonspark", *map(str, arguments)],
        env=environment(folder) | {"SPARK_REMOTE": address},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(900)
def test_commands(address: str, golden_people: Path, tmp_path: Path) -> None:
    configuration, release = tmp_path / "configuration.yaml", tmp_path / "release"
    document = {**SECTIONS, "input": {"path": str(golden_people)}, "output": {"path": str(release)}}
    configuration.write_text(yaml.safe_dump(document, sort_keys=False))
    found = []
    for words in (("--set", "execution.engine=spark"), ("--set", "execution.engine=local")):
        options = ("--set", "output.mode=overwrite", *words)
        done = run_command(tmp_path, address, "run", configuration, *options)
        assert done.returncode == 0, done.stderr[-3000:]
        manifest = json.loads((release / "manifest.json").read_text())
        found.append({name: manifest["fingerprints"][name] for name in FINGERPRINTS})
        assert ("spark" in manifest["versions"]) is (words[1].endswith("spark"))
    assert found == [FINGERPRINTS, FINGERPRINTS]
    # Nothing of the staging directory is left.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["configuration.yaml", "release"]
    verified = run_command(tmp_path, address, "verify", release, "--original", golden_people)
    assert verified.returncode == 0, verified.stderr[-3000:]


@pytest.mark.timeout(900)
def test_folders_texts_and_odd_columns(address: str, tmp_path: Path) -> None:
    """Columns that folders name, CSV, ORC, a column that a file lacks, and a damaged file."""
    people = pa.table({"age": [20 + i % 9 for i in range(60)], "illness": ["a", "b", "c"] * 20})
    for name, part in (("north", people.slice(0, 30)), ("south", people.slice(30))):
        folder = tmp_path / "folders" / f"region={name}"
        folder.mkdir(parents=True)
        parquet.write_table(part, folder / "part.parquet")
    (tmp_path / "texts").mkdir()
    csv.write_csv(people, tmp_path / "texts" / "people.csv")
    (tmp_path / "orc").mkdir()
    orc.write_table(people, tmp_path / "orc" / "people.orc")
    (tmp_path / "lacking").mkdir()
    parquet.write_table(people, tmp_path / "lacking" / "a.parquet")
    parquet.write_table(people.select(["age"]), tmp_path / "lacking" / "b.parquet")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.parquet").write_bytes(b"PAR1 and nothing else")
    attributes = {"age": "quasi_identifier", "illness": "sensitive"}
    release = tmp_path / "release"

    def outcome(path: str, data_format: str, engine: str, *others: str) -> object:
        document = {
            "input": {"path": str(tmp_path / path), "format": data_format},
            "output": {"path": str(release), "mode": "overwrite"},
            "attributes": attributes | dict.fromkeys(others, "quasi_identifier"),
            "privacy": {"k": 4},
            "execution": {"engine": engine},
        }
        configuration = tmp_path / "configuration.yaml"
        configuration.write_text(yaml.safe_dump(document))
        done = run_command(tmp_path, address, "run", configuration)
        if done.returncode:
            return done.returncode, done.stderr.splitlines()[-1]
        return json.loads((release / "manifest.json").read_text())["fingerprints"]

    for case in (("folders", "parquet", "region"), ("texts", "csv"), ("orc", "orc")):
        path, data_format, *others = case
        spark, local = (outcome(path, data_format, one, *others) for one in ("spark", "local"))
        assert isinstance(spark, dict), spark
        assert spark == local
    assert outcome("lacking", "parquet", "spark") == outcome("lacking", "parquet", "local")
    status, said = cast(tuple[int, str], outcome("damaged", "parquet", "spark"))
    assert (status, "cannot be read in this format" in said) == (3, True)


def test_server_that_does_not_answer(tmp_path: Path) -> None:
    code = (
        "import anonspark.engine.spark.session as module; module._PATIENCE_SECONDS = 0.5\n"
        f"with module.open_session('sc://127.0.0.1:{free_port()}/;token=secret'): pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "of Spark Connect does not answer. What to do: check that it runs" in done.stderr
