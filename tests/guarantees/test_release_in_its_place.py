"""Where a rename would copy a release, it is written in its place; the manifest makes it one."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli
from helpers import contents
from test_resume import configure

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.pipeline import run

pytestmark = pytest.mark.usefixtures("without_spark")


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the local disk copy what is renamed."""
    monkeypatch.setattr(LocalFiles, "rename_copies", lambda *_: True)


@pytest.mark.usefixtures("copying")
def test_a_refused_release_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    configuration = configure(tmp_path)
    before = contents(tmp_path)

    def refuse(*_: object) -> None:
        assert (tmp_path / "release" / "data" / "part-00000.parquet").exists()
        raise GuaranteeError("on purpose")

    monkeypatch.setattr(run, "verify_staged", refuse)
    cli.ends(4, "run", configuration, "--no-progress", "--resume")
    assert contents(tmp_path) == before


@pytest.mark.usefixtures("copying")
def test_two_runs_write_to_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Whoever comes second stops, and takes nothing from the first."""
    configuration, release = configure(tmp_path), tmp_path / "release"
    works = run.stage_records

    def meet(*arguments: object) -> object:
        monkeypatch.setattr(run, "stage_records", works)
        with pytest.raises(ConfigurationError, match="exists already"):
            run.run(LocalEngine(), load_configuration(str(configuration)), run_id="two")
        return works(*arguments)

    monkeypatch.setattr(run, "stage_records", meet)
    cli.ends(0, "run", configuration, "--no-progress", "--run-id", "one")
    works = run.basis_of_figures
    (release / "manifest.json").unlink()
    release.rename(tmp_path / "elsewhere")

    def come(*arguments: object, **named: object) -> object:
        release.mkdir()
        (release / ".anonspark-two").touch()
        return works(*arguments, **named)

    monkeypatch.setattr(run, "basis_of_figures", come)
    outcome = cli.ends(5, "run", configuration, "--no-progress", "--run-id", "one")
    assert "appeared while the run was going on. Nothing was published" in outcome.err
    assert [path.name for path in release.iterdir()] == [".anonspark-two"]
