"""The history of several nights: published ones, and a directory without any."""

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
from commands import Cli
from helpers import write_people_of_towns

from anonspark.cli.application import main
from anonspark.reporting.nights import Night, history_page


def run(folder: Path, run_id: str, *options: str) -> int:
    arguments = ["run", str(folder / "visits.yaml"), "--run-id", run_id, "--no-progress"]
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


def told(nights: Path, cli: Cli, *where: str) -> list[dict[str, Any]]:
    outcome = cli.ends(0, "history", nights.joinpath("all", *where), "--json", "--no-progress")
    found: list[dict[str, Any]] = json.loads(outcome.out)
    return found


@pytest.mark.parametrize("where", [(), ("history",)])
def test_every_night_is_there_once_in_its_order(
    nights: Path, cli: Cli, where: tuple[str, ...]
) -> None:
    found = told(nights, cli, *where)
    assert [one["run_id"] for one in found] == ["night-1", "night-4"]
    assert [one["figures"]["rows_in"] for one in found] == [200, 200]


def test_releases_alone_have_a_history(nights: Path, cli: Cli) -> None:
    (found,) = told(nights, cli, "visits")
    assert found["run_id"] == "night-4"
    assert found["release"].endswith("/all/visits")
    assert found["figures"]["published_min_class_size"] >= 5


def test_a_release_that_cannot_be_read_is_left_out_aloud(
    nights: Path, tmp_path: Path, cli: Cli
) -> None:
    for name in ("whole", "damaged"):
        shutil.copytree(nights / "all" / "visits", tmp_path / name)
    (tmp_path / "damaged" / "manifest.json").write_text("{}")
    outcome = cli.ends(0, "history", tmp_path, "--json")
    assert [one["release"].rpartition("/")[2] for one in json.loads(outcome.out)] == ["whole"]
    assert "left out, because its manifest cannot be read" in outcome.err
    assert "damaged/manifest.json" in outcome.err


def test_a_release_that_may_not_be_read_is_left_out_aloud(
    nights: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ours", "theirs"):
        shutil.copytree(nights / "all" / "visits", tmp_path / name)
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path == tmp_path / "theirs" / "manifest.json":
            raise PermissionError(EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    outcome = cli.ends(0, "history", tmp_path, "--json")
    assert [one["release"].rpartition("/")[2] for one in json.loads(outcome.out)] == ["ours"]
    assert "left out, because its manifest cannot be read: the system refused" in outcome.err
    assert "theirs/manifest.json (Permission denied)" in outcome.err


def test_tables_of_earlier_versions_lack_columns(nights: Path, cli: Cli, tmp_path: Path) -> None:
    folder = shutil.copytree(nights, tmp_path / "copy")
    for path in folder.glob("all/history/summary/*/night-1.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns(["columns_in", "columns_published", "loss"]), path)
    found = told(folder, cli, "history")
    assert [one["run_id"] for one in found] == ["night-1", "night-4"]
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


def test_the_terminal_and_the_page_show_every_release(
    nights: Path, cli: Cli, tmp_path: Path
) -> None:
    page = tmp_path / "history.html"
    for _ in range(2):
        outcome = cli.ends(0, "history", nights / "all", "--html", page)
    assert "2 runs" in outcome.out
    text = page.read_text()
    assert text.count("<svg") == 5
    assert "night-4, the last of 2 releases." in text
    assert "Detail kept in the published columns, 3 of 3 columns published." in text
    assert "columns of the input" in text


def test_another_file_is_not_replaced(nights: Path, cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other.html"
    other.write_text("<!doctype html><title>Ours</title>")
    cli.ends(2, "history", nights / "all", "--html", other, says="is no page of anonspark")
    assert other.read_text() == "<!doctype html><title>Ours</title>"


def test_a_directory_without_runs_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli.ends(3, "history", tmp_path, says="found no release and no tables of all runs")


def test_a_long_history_shows_its_end() -> None:
    def night(number: int) -> Night:
        started = datetime(2026, 1 + number // 28, 1 + number % 28, tzinfo=UTC)
        figures = {"rows_published": 100 + number, "loss": 0.1}
        return Night(f"night-{number}", "visits", started, figures=figures)

    page = history_page([night(number) for number in range(90)], "releases")
    assert "The last 60 of 90 runs." in page
    assert page.count("<svg") == 2
    assert "night-0<" in page
