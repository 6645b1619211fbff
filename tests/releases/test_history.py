"""The history of several nights: published ones, failed ones, and a directory without any."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from errno import EACCES
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from cases import cases
from helpers import command, write_people_of_towns

from anonspark.cli.application import main
from anonspark.layers.publish.failures import _NUMBER
from anonspark.reporting.history_page import history_page
from anonspark.reporting.nights import Night


def run(folder: Path, run_id: str, *options: str) -> int:
    arguments = ["run", str(folder / "visits.yaml"), "--run-id", run_id, "--quiet"]
    return main([*arguments, *(f"--set={one}" for one in options)])


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights")
    write_people_of_towns(folder, 200)
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": {
            "age": "quasi_identifier",
            "town": "quasi_identifier",
            "disease": "sensitive",
        },
        "privacy": {"k": 5},
        "metrics": {"job": "visits", "append_to": str(folder / "all" / "history")},
        "output": {"path": str(folder / "all" / "visits"), "mode": "overwrite"},
    }
    (folder / "visits.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    assert run(folder, "night-1") == 0
    assert run(folder, "night-2", "gates={rows_in: {min: 1000}}") == 4
    assert run(folder, "night-3", "privacy.k=300") == 3
    assert run(folder, "night-4") == 0
    return folder


def told(nights: Path, capsys: pytest.CaptureFixture[str], *where: str) -> list[dict[str, Any]]:
    outcome = command(capsys, "history", nights.joinpath("all", *where), "--json", "--quiet")
    assert outcome.code == 0, outcome.err
    found: list[dict[str, Any]] = json.loads(outcome.out)
    return found


@pytest.mark.parametrize("where", [(), ("history",)])
def test_every_night_is_there_once_in_its_order(
    nights: Path, capsys: pytest.CaptureFixture[str], where: tuple[str, ...]
) -> None:
    found = told(nights, capsys, *where)
    assert [(one["run_id"], one["exit_code"]) for one in found] == [
        ("night-1", 0),
        ("night-2", 4),
        ("night-3", 3),
        ("night-4", 0),
    ]
    assert [one["figures"].get("rows_in") for one in found] == [200, None, None, 200]
    # Numbers of messages may be counts that the tables withhold.
    assert found[1]["message"].startswith("gates.rows_in")
    assert "1000" not in found[1]["message"]
    assert found[2]["stage"] == "prepare"


def test_releases_alone_have_a_history(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = told(nights, capsys, "visits")
    assert (found["run_id"], found["exit_code"]) == ("night-4", 0)
    assert found["release"].endswith("/all/visits")
    assert found["figures"]["published_min_class_size"] >= 5


def test_a_release_that_cannot_be_read_is_left_out_aloud(
    nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("whole", "damaged"):
        shutil.copytree(nights / "all" / "visits", tmp_path / name)
    (tmp_path / "damaged" / "manifest.json").write_text("{}")
    outcome = command(capsys, "history", tmp_path, "--json")
    assert outcome.code == 0
    assert [one["release"].rpartition("/")[2] for one in json.loads(outcome.out)] == ["whole"]
    assert "left out, because its manifest cannot be read" in outcome.err
    assert "damaged/manifest.json" in outcome.err


def test_a_release_that_may_not_be_read_is_left_out_aloud(
    nights: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ours", "theirs"):
        shutil.copytree(nights / "all" / "visits", tmp_path / name)
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path == tmp_path / "theirs" / "manifest.json":
            raise PermissionError(EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    outcome = command(capsys, "history", tmp_path, "--json")
    assert outcome.code == 0
    assert [one["release"].rpartition("/")[2] for one in json.loads(outcome.out)] == ["ours"]
    assert "left out, because its manifest cannot be read: the system refused" in outcome.err
    assert "theirs/manifest.json (Permission denied)" in outcome.err


def test_tables_of_earlier_versions_lack_columns(
    nights: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = shutil.copytree(nights, tmp_path / "copy")
    for path in folder.glob("all/history/summary/*/night-1.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns(["columns_in", "columns_published", "loss"]), path)
    found = told(folder, capsys, "history")
    assert [one["run_id"] for one in found if "rows_in" in one["figures"]] == ["night-1", "night-4"]
    assert found[0]["figures"]["loss"] is None
    assert found[-1]["figures"]["loss"] is not None
    document = yaml.safe_load((folder / "visits.yaml").read_text())
    document["metrics"] |= {"append_to": str(folder / "all" / "history")}
    document["output"]["path"] = str(folder / "all" / "visits")
    (folder / "visits.yaml").write_text(yaml.safe_dump(document))
    for path in folder.glob("all/history/summary/*/night-4.parquet"):
        path.unlink()
    assert run(folder, "night-5", "metrics.drift={rows_in: 0.0, loss: 0.0}") == 0
    assert run(folder, "night-6", "metrics.drift={rows_in: 0.0, loss: 0.0}") == 0


def test_the_terminal_and_the_page_tell_what_failed(
    nights: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "history.html"
    for _ in range(2):
        outcome = command(capsys, "history", nights / "all", "--html", page)
        assert outcome.code == 0, outcome.err
    assert "4 runs, 2 failed" in outcome.out
    assert "failed: night-2: exit code 4" in outcome.out
    text = page.read_text()
    assert "Exit code 3 in prepare: privacy.k" in text
    assert text.count("<svg") == 5
    assert "2 of 4" in text
    assert "Detail kept in the published columns, 3 of 3 columns published." in text
    assert "columns of the input" in text


def test_another_file_is_not_replaced(
    nights: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.html"
    other.write_text("<!doctype html><title>Ours</title>")
    outcome = command(capsys, "history", nights / "all", "--html", other)
    assert outcome.code == 2
    assert "is no page of anonspark" in outcome.err
    assert other.read_text() == "<!doctype html><title>Ours</title>"


def test_a_night_that_succeeds_later_did_not_fail(
    nights: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(nights / "all" / "history", tmp_path / "history")
    outcome = command(
        capsys,
        "run",
        nights / "visits.yaml",
        "--run-id",
        "night-2",
        f"--set=metrics.append_to={tmp_path / 'history'}",
        f"--set=output.path={tmp_path / 'release'}",
        "--quiet",
    )
    assert outcome.code == 0, outcome.err
    left = [one.name for one in tmp_path.glob("history/failures/*/*")]
    assert left == ["night-3.json"]


def test_a_file_for_prometheus_tells_of_a_run_that_nothing_else_tells_of(
    nights: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = (
        "metrics.append_to=null",
        f"metrics.prometheus_textfile={tmp_path / 'visits.prom'}",
        f"output.path={tmp_path / 'release'}",
        "privacy.k=300",
    )
    assert run(nights, "night-5", *options) == 3
    outcome = command(capsys, "history", tmp_path, "--json", "--quiet")
    (found,) = json.loads(outcome.out)
    assert (found["run_id"], found["job"], found["exit_code"]) == ("night-5", "visits", 3)


def test_a_directory_without_runs_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcome = command(capsys, "history", tmp_path)
    assert outcome.code == 3
    assert "found no release, no tables of all runs and no failed run" in outcome.err


@cases(__file__, "text", "expected")
def test_numbers_of_messages_are_left_out(text: str, expected: str) -> None:
    assert _NUMBER.sub("…", text) == expected


def test_a_long_history_shows_its_end() -> None:
    def night(number: int) -> Night:
        started = datetime(2026, 1 + number // 28, 1 + number % 28, tzinfo=UTC)
        figures = {"rows_published": 100 + number, "loss": 0.1}
        return Night(f"night-{number}", "visits", started, figures=figures)

    page = history_page([night(number) for number in range(90)], "releases")
    assert "The last 60 of 90 runs." in page
    assert page.count("<svg") == 2
    assert "night-0<" in page
