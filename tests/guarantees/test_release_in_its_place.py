"""Where a rename would copy a release, it is written in its place; the manifest makes it one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cases import cases
from helpers import command, contents, of_any_run
from test_resume import configure

from anonspark.cli.application import main
from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.publish.staging import find_stagings
from anonspark.pipeline import run
from anonspark.release.layout import COMPANIONS
from anonspark.verification.audit import audit_release

pytestmark = pytest.mark.usefixtures("without_spark")

# Its local disk behaves as an object store does, and each process that it forks is killed before or
# after a call. All of them have what it has imported.
KILLED = """
import json, os, sys
from anonspark.cli.application import main
from anonspark.engine.local import engine
from anonspark.kernels import numba_patches
from anonspark.engine.local.files import LocalFiles
from anonspark.pipeline import run

LocalFiles.rename_copies = lambda self, path: True

def run_until(when, name, configuration):
    owner = LocalFiles if name == "rename" else run
    works = getattr(owner, name)

    def killed(*arguments, **named):
        if name == "rename" and not str(arguments[2]).endswith("release/manifest.json"):
            return works(*arguments, **named)
        if when == "after":
            works(*arguments, **named)
        os._exit(9)

    setattr(owner, name, killed)
    main(["run", configuration, "--resume", "--run-id", "night", "--no-progress"])

for line in sys.stdin:
    process = os.fork()
    if process == 0:
        try:
            run_until(*json.loads(line))
        finally:
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the local disk copy what is renamed."""
    monkeypatch.setattr(LocalFiles, "rename_copies", lambda *_: True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the release of an undisturbed run that renames it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalFiles, "rename_copies", lambda *_: False)
        assert main(["run", str(configure(folder)), "--no-progress"]) == 0
    return folder / "release"


Kill = Callable[[Path, str, str], None]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Run a configuration in a process until a moment."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as forking:
        asked, told = forking.stdin, forking.stdout
        assert asked is not None
        assert told is not None

        def run_until(configuration: Path, when: str, name: str) -> None:
            print(json.dumps([when, name, str(configuration)]), file=asked, flush=True)
            assert told.readline() == "9\n"

        yield run_until


@pytest.mark.usefixtures("copying")
@cases(__file__, "when", "name")
def test_killed_and_removed_or_continued(
    tmp_path: Path,
    expected: Path,
    kill: Kill,
    capsys: pytest.CaptureFixture[str],
    when: str,
    name: str,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    configuration, release = configure(folder), folder / "release"
    before = contents(folder)
    kill(configuration, when, name)
    # What killed processes leave is told by a mark, wherever they were.
    assert (release / ".anonspark-night").exists()
    if (when, name) != ("after", "rename"):
        with pytest.raises(DataError, match=r"no manifest\.json there"):
            audit_release(LocalEngine(), str(release)).require()
        kept = shutil.copytree(folder, tmp_path / "kept", symlinks=True)
        outcome = command(capsys, "clean", configuration)
        assert outcome.code == 0, outcome.err
        assert contents(folder) == before
        assert find_stagings(LocalFiles(), str(release), None) == []
        shutil.rmtree(folder)
        kept.rename(folder)
    outcome = command(
        capsys, "run", configuration, "--resume", "--no-progress", "--run-id", "night"
    )
    assert outcome.code == 0, outcome.err
    assert of_any_run(release) == of_any_run(expected)
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"release"}
    own = {"data", "metrics", "manifest.json", *COMPANIONS}
    assert {path.name for path in release.iterdir()} == own


@pytest.mark.usefixtures("copying")
def test_a_refused_release_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = configure(tmp_path)
    before = contents(tmp_path)

    def refuse(*_: object) -> None:
        assert (tmp_path / "release" / "data" / "part-00000.parquet").exists()
        raise GuaranteeError("on purpose")

    monkeypatch.setattr(run, "verify_staged", refuse)
    outcome = command(capsys, "run", configuration, "--no-progress", "--resume")
    assert outcome.code == 4, outcome.err
    assert contents(tmp_path) == before


@pytest.mark.usefixtures("copying")
def test_two_runs_write_to_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    outcome = command(capsys, "run", configuration, "--no-progress", "--run-id", "one")
    assert outcome.code == 0, outcome.err
    works = run.basis_of_figures
    (release / "manifest.json").unlink()
    release.rename(tmp_path / "elsewhere")

    def come(*arguments: object, **named: object) -> object:
        release.mkdir()
        (release / ".anonspark-two").touch()
        return works(*arguments, **named)

    monkeypatch.setattr(run, "basis_of_figures", come)
    outcome = command(capsys, "run", configuration, "--no-progress", "--run-id", "one")
    assert outcome.code == 5, outcome.err
    assert "appeared while the run was going on. Nothing was published" in outcome.err
    assert [path.name for path in release.iterdir()] == [".anonspark-two"]
