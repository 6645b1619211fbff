"""Releases in the ledger of their data set: none is ever missing, whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from helpers import command, configuration_file, write_table

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run


def configured(tmp_path: Path, **sections: Any) -> Path:
    draw = np.random.default_rng(1)
    columns = {"age": draw.integers(20, 60, 200), "ill": draw.choice(["no", "yes"], 200)}
    write_table(tmp_path / "input.parquet", pa.table(columns))
    ledger = {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 2}
    return configuration_file(
        tmp_path,
        **{
            "attributes": {"age": "quasi_identifier", "ill": "sensitive"},
            "privacy": {"l_diversity": [{"attribute": "ill", "l": 2}]},
            "ledger": ledger,
            "execution": {"seed": 11},
        }
        | sections,
    )


def entries(tmp_path: Path) -> list[dict[str, Any]]:
    paths = sorted((tmp_path / "ledger" / "people").glob("0*.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_a_release_is_listed_beside_what_was_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    selection = {
        "target": "ill",
        "count": 1,
        "epsilon": "0.5",
        "domains": {"ill": {"values": ["no", "yes"]}, "age": {"bins": [30, 40, 50]}},
        "output": str(tmp_path / "selection"),
    }
    path = configured(tmp_path, selection=selection)
    assert command(capsys, "select", path).code == 0
    assert command(capsys, "run", path, "--run-id", "one").code == 0
    spent, release = entries(tmp_path)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert spent["kind"] == "select"
    assert {name: release[name] for name in ("number", "run_id", "command", "kind", "k")} == {
        "number": 2, "run_id": "one", "command": "run", "kind": "release", "k": 5,
    }  # fmt: skip
    assert release["release"] == manifest["fingerprints"]["output"]
    assert release["criteria"] == {"l_diversity": [{"attribute": "ill", "l": 2}]}
    assert "epsilon" not in release
    assert release["spent_before"] == release["spent_after"] == "1/2"
    # Where the ledger is, who gets the release need not know.
    assert str(tmp_path / "ledger") not in json.dumps(manifest)
    shown = command(capsys, "ledger", "show", tmp_path / "ledger")
    assert "people: 0.5 of 2 spent, 1.5 left" in shown.out
    assert "release" in shown.out
    assert command(capsys, "ledger", "check", tmp_path / "ledger").code == 0
    # The chain covers releases, too.
    place = tmp_path / "ledger" / "people" / "000002.json"
    place.write_text(place.read_text().replace('"k": 5', '"k": 50'))
    more = ("--set", f"selection.output={tmp_path / 'more'}")
    assert command(capsys, "select", path, *more, "--dry-run").code == 4
    assert command(capsys, "run", path, "--set", f"output.path={tmp_path / 'b'}").code == 4
    assert command(capsys, "ledger", "check", tmp_path / "ledger").code == 4


def test_every_release_is_listed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configured(tmp_path)
    assert command(capsys, "check", path).code == 0
    assert not (tmp_path / "ledger").exists()
    for _ in range(2):
        assert command(capsys, "run", path, "--run-id", "one").code == 0
        assert len(entries(tmp_path)) == 1
    overwriting = ("run", path, "--set", "output.mode=overwrite", "--run-id")
    assert command(capsys, *overwriting, "one").code == 0
    assert len(entries(tmp_path)) == 1
    assert command(capsys, *overwriting, "two").code == 0
    assert [one["run_id"] for one in entries(tmp_path)] == ["one", "two"]


def test_releases_of_a_comparison_are_not_listed(tmp_path: Path) -> None:
    configuration = load_configuration(configured(tmp_path))
    run(LocalEngine(), configuration, purpose="comparison")
    assert not (tmp_path / "ledger").exists()


@cases(__file__, "ledger", "code", "told")
def test_without_a_sound_ledger_nothing_is_published(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ledger: dict[str, Any],
    code: int,
    told: str,
) -> None:
    for name, text in (("made", '{"limit": "2", "neighbors": "replace", "unit": "record"}'),):
        (tmp_path / "ledger").mkdir()
        (tmp_path / "ledger" / name).mkdir(mode=0o700)
        (tmp_path / "ledger" / name / "limit.json").write_text(text)
    (tmp_path / "ledger" / "broken").mkdir(mode=0o700)
    (tmp_path / "ledger" / "broken" / "limit.json").write_text("{}")
    own = {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 2} | ledger
    own["path"] = own["path"].replace("{folder}", str(tmp_path))
    shown = command(capsys, "run", configured(tmp_path, ledger=own))
    assert shown.code == code
    assert told in shown.err
    assert not (tmp_path / "release").exists()


def test_a_ledger_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("read-only file system")

    path = configured(tmp_path)
    monkeypatch.setattr("anonspark.sharing.ledger.budget.append_link", refuse)
    shown = command(capsys, "run", path)
    assert shown.code == 5
    assert "Nothing was drawn or published" in shown.err
    assert not (tmp_path / "release").exists()


def test_a_release_that_was_listed_and_did_not_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise OSError("killed")

    path = configured(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("anonspark.pipeline.run.commit", die)
        assert command(capsys, "run", path, "--run-id", "one").code != 0
    assert not (tmp_path / "release").exists()
    assert len(entries(tmp_path)) == 1
    # The next attempt makes the same release, which is listed already.
    assert command(capsys, "run", path, "--run-id", "one", "--resume").code == 0
    assert (tmp_path / "release" / "manifest.json").exists()
    assert len(entries(tmp_path)) == 1
