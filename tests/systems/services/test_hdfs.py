"""HDFS: a NameNode and two DataNodes, and what only they can break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from golden_run import FINGERPRINTS, SECTIONS
from hadoop import Hdfs
from helpers import document_file

from anonspark.config import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import PublishingError
from anonspark.pipeline import writing
from anonspark.pipeline.run import run


def put_people(hdfs: Hdfs, people: Path, folder: str) -> None:
    """Copy the input to a folder of the file system."""
    assert hdfs.shell("-mkdir", "-p", folder).returncode == 0
    done = hdfs.shell("-put", str(people), f"{folder}/people")
    assert done.returncode == 0, done.stderr


def configure(local: Path, root: str, **sections: Any) -> Path:
    """Write the configuration of the golden run at an address."""
    document = {
        **SECTIONS,
        "input": {"path": f"{root}/people"},
        "output": {"path": f"{root}/release"},
    }
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section}
    return document_file(local, document)


def names(hdfs: Hdfs, folder: str) -> set[str]:
    """List a folder."""
    done = hdfs.shell("-ls", "-C", folder)
    assert done.returncode == 0, done.stderr
    return {line.rpartition("/")[2] for line in done.stdout.splitlines()}


def fingerprints(hdfs: Hdfs, release: str) -> dict[str, str]:
    """Read the fingerprints of a release."""
    found = json.loads(hdfs.shell("-cat", f"{release}/manifest.json").stdout)["fingerprints"]
    return {name: found[name] for name in FINGERPRINTS}


def require_golden(hdfs: Hdfs, folder: str) -> None:
    """Require the golden release, and nothing beside it."""
    assert fingerprints(hdfs, f"{folder}/release") == FINGERPRINTS
    assert names(hdfs, folder) - {"configuration.yaml"} == {"people", "release"}


@pytest.fixture
def folder(hdfs: Hdfs, golden_people: Path, tmp_path: Path) -> str:
    """Put the people into a folder of their own, with blanks and other letters in its name."""
    folder = f"/data/{tmp_path.name} für später, 100 % größer"
    put_people(hdfs, golden_people, folder)
    return folder


def test_everything_on_hdfs(hdfs: Hdfs, folder: str, tmp_path: Path, cli: Cli) -> None:
    root = f"{hdfs.address}{folder}"
    path = configure(tmp_path, root)
    for _ in ("first", "overwritten"):
        cli.ends(0, "run", path, "--report", "--set", "output.mode=overwrite")
        require_golden(hdfs, folder)
    cli.ends(0, "verify", f"{root}/release", "--original", f"{root}/people")
    assert names(hdfs, f"{folder}/release") >= {"data", "metrics", "manifest.json", "report.html"}


def test_staging_is_for_its_owner_alone_and_continued(
    hdfs: Hdfs, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    path = configure(tmp_path, f"{hdfs.address}{folder}")
    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_records", gone)
        outcome = cli("run", path, "--resume", "--run-id", "night", "--no-progress")
    assert outcome.code == 1, outcome.err
    assert "2 finished rounds" in outcome.err
    (kept,) = names(hdfs, folder) - {"people"}
    staging = f"{folder}/{kept}"
    # HDFS asks for the right to pass through every folder above.
    refused = hdfs.shell("-ls", staging, user="mallory")
    assert refused.returncode != 0
    assert "Permission denied" in refused.stderr
    assert hdfs.shell("-ls", staging).returncode == 0
    modes = hdfs.shell("-stat", "%a", staging).stdout.strip()
    assert modes == "700"
    cli.ends(0, "run", path, "--resume", says="finished before")
    require_golden(hdfs, folder)
    outcome = cli("run", path, "--run-id", "night", "--resume")
    assert "published already" in outcome.err


def gone(*_: Any, **__: Any) -> Any:
    """Fail as a machine does that is switched off."""
    raise OSError("the machine is gone")


def test_two_writers_of_one_release(
    hdfs: Hdfs,
    engine: SparkEngine,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    path = configure(tmp_path, f"{hdfs.address}{folder}")
    works = writing.write_records

    def meet_others(*arguments: Any, **named: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(writing, "write_records", works)
            with pytest.raises(PublishingError, match="Continue it with --resume"):
                run(engine, load_configuration(str(path)), run_id="one")
            run(engine, load_configuration(str(path)), run_id="two")
        return works(*arguments, **named)

    monkeypatch.setattr(writing, "write_records", meet_others)
    outcome = cli("run", path, "--run-id", "one", "--no-progress")
    assert outcome.code == 5, outcome.err
    assert "appeared while the run was going on. Nothing was published" in outcome.err
    require_golden(hdfs, folder)


def test_safe_mode(hdfs: Hdfs, folder: str, tmp_path: Path, cli: Cli) -> None:
    path = configure(tmp_path, f"{hdfs.address}{folder}")
    assert hdfs.admin("-safemode", "enter").returncode == 0
    try:
        outcome = cli("run", path, "--no-progress")
    finally:
        assert hdfs.admin("-safemode", "leave").returncode == 0
    assert outcome.code == 6, outcome.err
    assert "the NameNode of HDFS is in safe mode" in outcome.err
    assert names(hdfs, folder) == {"people"}


def test_a_quota_that_is_exceeded(hdfs: Hdfs, folder: str, tmp_path: Path, cli: Cli) -> None:
    path = configure(tmp_path, f"{hdfs.address}{folder}")
    done = hdfs.admin("-setQuota", "20", folder)
    assert done.returncode == 0, done.stderr
    try:
        outcome = cli("run", path, "--no-progress")
    finally:
        hdfs.admin("-clrQuota", folder)
    assert outcome.code == 5, outcome.err
    assert "output.path: a quota of the output's directory is exceeded" in outcome.err
    assert names(hdfs, folder) == {"people"}


def test_a_datanode_killed_while_publishing(
    hdfs: Hdfs, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    works = writing.write_records

    def kill_and_write(*arguments: Any, **named: Any) -> Any:
        hdfs.kill_datanode()
        return works(*arguments, **named)

    monkeypatch.setattr(writing, "write_records", kill_and_write)
    root = f"{hdfs.address}{folder}"
    cli.ends(0, "run", configure(tmp_path, root), "--no-progress")
    require_golden(hdfs, folder)
    cli.ends(0, "verify", f"{root}/release", "--original", f"{root}/people")
