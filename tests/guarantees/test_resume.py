"""Runs that are continued: finished rounds are kept, and nothing else is taken over."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from commands import Cli
from helpers import configuration_file, contents, metrics, of_any_run, summary, write_table

from anonspark.cli.application import main
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import PublishingError
from anonspark.layers.publish.committing import commit
from anonspark.layers.publish.run_state import RunState
from anonspark.layers.publish.staging import find_stagings, open_staging
from anonspark.models.mondrian import Mondrian
from anonspark.pipeline import run, writing

pytestmark = pytest.mark.usefixtures("without_spark")

ATTRIBUTES = {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"}


def write_people(path: Path, seed: int = 7) -> Path:
    random = np.random.default_rng(seed)
    columns = {
        "age": random.integers(0, 100, 600),
        "income": random.lognormal(10, 1, 600),
        "disease": [f"Kryptonitis {number}" for number in random.integers(0, 50, 600)],
    }
    return write_table(path, columns)


def configure(folder: Path) -> Path:
    write_people(folder / "input.parquet")
    model = {"name": "su-mondrian", "rho": 3, "separation": "always"}
    return configuration_file(folder, attributes=ATTRIBUTES, model=model)


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    return configure(tmp_path)


@pytest.fixture
def rounds_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of each round that is computed."""
    computed: list[int] = []
    anonymize = Mondrian.anonymize

    def record(self: Mondrian, table: Any) -> Any:
        computed.append(table.number)
        return anonymize(self, table)

    monkeypatch.setattr(Mondrian, "anonymize", record)
    return computed


def failing(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, after: int = 0
) -> Callable[[], None]:
    """Let a function of the pipeline fail, after some calls that succeed; return what ends that."""
    works = getattr(module, name)
    calls: list[None] = []

    def fail(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) > after:
            raise OSError("the machine is gone")
        return works(*arguments, **named)

    monkeypatch.setattr(module, name, fail)
    return lambda: monkeypatch.setattr(module, name, works)


def staging_directories(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.anonspark-*"))


@pytest.fixture(scope="module")
def expected(
    without_spark: None,  # noqa: ARG001 - for commands
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the release of an undisturbed run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert main(["run", str(configure(folder)), "--no-progress"]) == 0
    return folder / "release"


@pytest.mark.parametrize("staged_elsewhere", [False, True])
def test_finished_rounds_are_not_computed_again(
    configuration: Path,
    expected: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    rounds_computed: list[int],
    staged_elsewhere: bool,
) -> None:
    options: list[str] = ["--no-progress"]
    where = tmp_path
    if staged_elsewhere:
        where = tmp_path / "private"
        where.mkdir()
        options += ["--set", f"execution.staging_path={where}"]
    end = failing(monkeypatch, writing, "write_records")
    outcome = cli.ends(1, "run", configuration, "--resume", "--run-id", "night", *options)
    assert rounds_computed == [1, 2, 3]
    assert "3 finished rounds" in outcome.err
    (kept,) = staging_directories(where)
    assert "night" in kept.name
    for folder in (kept, kept / "state"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in kept.iterdir() if path.is_dir()} == {"rounds", "state"}
    assert not (tmp_path / "release").exists()

    end()
    # The last round was killed before it was noted down.
    for file in kept.glob("state/*round-3.json*"):
        file.unlink()
    rounds_computed.clear()
    # The id of the only run that can be continued is found.
    cli.ends(0, "run", configuration, "--resume", *options)
    assert rounds_computed == [3]
    assert summary(tmp_path / "release")["run_id"] == "night"
    assert of_any_run(tmp_path / "release") == of_any_run(expected)
    assert staging_directories(where) == []
    assert staging_directories(tmp_path) == []


def write_far_people(path: Path) -> Path:
    """Write a table whose rounds lose less than its refined groups."""
    draw = np.random.default_rng(28)
    age = draw.integers(0, 30, 150).astype(float)
    age[draw.random(150) < 0.02] *= 40
    region = draw.choice(list("nesw"), 150)
    disease = draw.choice(["flu", "gout", "none"], 150)
    return write_table(path, {"age": age, "income": region, "disease": disease})


@pytest.mark.parametrize("killed_at", ["before the state", "after the state"])
@pytest.mark.parametrize(
    ("write", "refine", "computed", "continued"),
    [
        # The third round does not pay, so the second one is done over as the last one.
        (write_people, 0, [1, 2, 3, 2], [2, 3, 2]),
        # The first round was only tried.
        (write_far_people, 1, [1, 2, 3, 1], [1, 2, 3, 1]),
    ],
)
def test_rounds_are_undone_once_more(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    rounds_computed: list[int],
    write: Callable[[Path], Path],
    refine: int,
    computed: list[int],
    continued: list[int],
    killed_at: str,
) -> None:
    write(tmp_path / "input.parquet")
    model = {"name": "su-mondrian", "rho": 3, "refine": refine}
    configuration = configuration_file(
        tmp_path, attributes=ATTRIBUTES, model=model, privacy={"k": 2 if refine else 5}
    )
    path = tmp_path / "undisturbed"
    cli.ends(0, "run", configuration, "--set", f"output.path={path}", "--no-progress")
    assert rounds_computed == computed
    assert len(metrics(path, "rounds")) == 2 + refine
    works = RunState.finish_round

    def fail(self: RunState, finished: Any) -> None:
        if finished.path.endswith("-again"):
            if killed_at == "after the state":
                works(self, finished)
            raise OSError("the machine is gone")
        works(self, finished)

    monkeypatch.setattr(RunState, "finish_round", fail)
    cli.ends(1, "run", configuration, "--resume", "--run-id", "night", "--no-progress")
    monkeypatch.setattr(RunState, "finish_round", works)
    rounds_computed.clear()
    cli.ends(0, "run", configuration, "--resume", "--no-progress")
    assert rounds_computed == ([] if killed_at == "after the state" else continued)
    assert of_any_run(tmp_path / "release") == of_any_run(path)


def test_a_last_round_that_is_undone_is_not_run_again(
    tmp_path: Path, cli: Cli, rounds_computed: list[int]
) -> None:
    write_people(tmp_path / "input.parquet")
    configuration = configuration_file(
        tmp_path, attributes=ATTRIBUTES, model={"name": "su-mondrian", "rho": 3, "refine": 0}
    )
    cli.ends(0, "run", configuration, "--no-progress")
    rounds_computed.clear()
    # The third round gains too little for a fourth, and loses more than the second.
    path = tmp_path / "ended"
    more_rounds = ["model.rho=5", "model.minimum_gain=0.000001", f"output.path={path}"]
    options = [word for one in more_rounds for word in ("--set", one)]
    cli.ends(0, "run", configuration, *options, "--no-progress")
    assert rounds_computed == [1, 2, 3, 2]
    fingerprints = [
        metrics(release, "summary")[0]["output_fingerprint"]
        for release in (tmp_path / "release", path)
    ]
    assert fingerprints[0] == fingerprints[1]


def test_nothing_is_kept_without_resume(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    before = set(contents(tmp_path))
    failing(monkeypatch, writing, "write_records")
    cli.ends(1, "run", configuration, "--no-progress")
    assert set(contents(tmp_path)) == before


def test_a_changed_run_is_refused(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    end = failing(monkeypatch, writing, "write_records")
    cli("run", configuration, "--resume", "--run-id", "night", "--no-progress")
    end()
    (kept,) = staging_directories(tmp_path)
    rounds = {name for name in contents(kept) if name.startswith("rounds")}
    outcome = cli.ends(2, "run", configuration, "--resume", "--no-progress", "--set", "privacy.k=6")
    assert "--resume: found another configuration than the run" in outcome.err
    # That run would end in the same way again; the one that was killed may still be continued.
    assert rounds == {name for name in contents(kept) if name.startswith("rounds")}
    write_people(tmp_path / "input.parquet", seed=8)
    outcome = cli.ends(2, "run", configuration, "--resume", "--no-progress")
    assert "--resume: found another input than the run" in outcome.err
    assert "anonspark clean" in outcome.err
    assert rounds == {name for name in contents(kept) if name.startswith("rounds")}

    # Without --resume its id is taken.
    cli.ends(5, "run", configuration, "--run-id", "night", says="Continue it with --resume")

    outcome = cli("clean", configuration, "--run-id", "another")
    assert "No run left anything" in outcome.out
    outcome = cli("clean", configuration)
    assert (outcome.code, outcome.out) == (0, f"removed file:{kept}\n")
    assert staging_directories(tmp_path) == []


def test_several_runs_were_killed(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    files = LocalFiles()
    for run_id in ("monday", "tuesday"):
        directory = tmp_path / f".release.anonspark-{run_id}"
        RunState.claim(files, str(directory / "state")).end()
        directory.chmod(0o700)
    outcome = cli.ends(2, "run", configuration, "--resume", says="found 2 runs")
    assert "monday, tuesday. Expected one. Name it with --run-id" in outcome.err


def test_a_published_run_is_not_run_again(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The same id and configuration: nothing to do; with overwrite: a clean replacement."""
    cli.ends(0, "run", configuration, "--run-id", "night", "--no-progress")
    before = contents(tmp_path)
    end = failing(monkeypatch, run, "prepare_run")
    outcome = cli.ends(0, "run", configuration, "--run-id", "night", "--resume")
    assert "published already" in outcome.err
    assert outcome.out.startswith("Nothing left to do: release night of ")
    assert contents(tmp_path) == before
    for other, settings in (
        (["--run-id", "day"], ""),
        (["--run-id", "night", "--set=privacy.k=6"], ", made with another privacy.k"),
        (["--resume", "--set=privacy.k=6"], ", made with another privacy.k"),
    ):
        outcome = cli.ends(2, "run", configuration, *other, says="exists already")
        assert f"It is the release of run night{settings}\n" in outcome.err
    end()
    overwriting = ["--set", "output.mode=overwrite", "--run-id", "night", "--no-progress"]
    cli.ends(0, "run", configuration, *overwriting)
    assert contents(tmp_path) != before
    assert staging_directories(tmp_path) == []


def test_clean_leaves_what_is_not_ours(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    """Somebody wrote to the output path while the earlier release was set aside."""
    staging = tmp_path / ".release.anonspark-night"
    RunState.claim(LocalFiles(), str(staging / "state")).end()
    staging.chmod(0o700)
    for path in (staging / "replaced" / "manifest.json", tmp_path / "release" / "thesis.txt"):
        path.parent.mkdir(parents=True)
        path.write_text("precious")
    before = contents(tmp_path)
    outcome = cli.ends(5, "clean", configuration)
    assert f"The release that was there before is at file:{staging}/replaced" in outcome.err
    assert {name: text for name, text in before.items() if "state" not in name} == contents(
        tmp_path
    )


@pytest.mark.usefixtures("spark")
def test_killed_while_its_files_get_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """What jobs have written is staged, too, and nobody takes it for somebody else's."""

    class Killed(BaseException):
        """No cleaning up is done, as if the process were gone."""

    def gone(*_: Any, **__: Any) -> None:
        raise Killed

    def rename(_: FileSystem, source: str, target: str) -> None:
        assert "/written-1/data/" in source
        assert target.endswith("/release-1/data/part-00000.parquet")
        raise Killed

    write_people(tmp_path / "input.parquet")
    configuration = configuration_file(
        tmp_path, attributes=ATTRIBUTES, model={"name": "smondrian"}, execution={"engine": "spark"}
    )
    with monkeypatch.context() as patch:
        patch.setattr("anonspark.engine.spark.parquet_files.FileSystem.rename", rename)
        patch.setattr("anonspark.layers.publish.staging._close", gone)
        # The state's own files are renamed, too.
        patch.setattr(FileSystem, "write_atomically", FileSystem.write_text)
        with pytest.raises(Killed):
            cli("run", configuration, "--no-progress", "--run-id", "night")
    (kept,) = staging_directories(tmp_path)
    assert list(kept.glob("written-1/data/kind=content/part-*"))
    (kept / "state" / "attempt-1.ended").touch()
    cli.ends(0, "clean", configuration)
    assert staging_directories(tmp_path) == []


def test_only_the_newest_attempt_goes_on(tmp_path: Path) -> None:
    """A driver that was thought dead notices, and leaves everything to its successor."""
    files = LocalFiles()
    output = str(tmp_path / "release")
    with open_staging(files, output, "night", resume=True) as older:
        older.state.end()  # as another machine would see it
        with open_staging(files, output, "night", resume=True) as newer:
            assert newer.state.attempt == 2
            assert (older.records, older.release) != (newer.records, newer.release)
            with pytest.raises(PublishingError, match="another process has taken this run over"):
                older.state.require_newest()
            newer.state.require_newest()
            (place,) = find_stagings(files, output, None)
            assert place.run_id == "night"
        with pytest.raises(PublishingError, match="removed its staging directory"):
            older.state.require_newest()
    assert staging_directories(tmp_path) == []


def test_a_superseded_driver_leaves_its_successors_publication_alone(tmp_path: Path) -> None:
    files = LocalFiles()
    release = tmp_path / "release"
    with open_staging(files, str(release), "night", resume=True) as older:
        older.state.end()  # as another machine would see it
        with open_staging(files, str(release), "night", resume=True) as newer:
            # The successor is between its two last renames.
            release.mkdir()
            (release / newer.paths.mark_name).touch()
            with pytest.raises(PublishingError, match="another process has taken this run over"):
                commit(files, older, overwrite=True)
            assert (release / newer.paths.mark_name).exists()
            (release / "manifest.json").touch()
    assert staging_directories(tmp_path) == []
    assert [path.name for path in release.iterdir()] == ["manifest.json"]


def test_smaller_tasks_and_other_staging_paths(
    configuration: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A resumed run may have smaller tasks, but its raw records stay where they were."""
    end = failing(monkeypatch, writing, "write_records")
    cli.ends(1, "run", configuration, "--resume", "--no-progress")
    end()
    elsewhere = ["--set", f"execution.staging_path={tmp_path / 'elsewhere'}"]
    outcome = cli.ends(2, "run", configuration, "--resume", "--no-progress", *elsewhere)
    assert "execution.staging_path: the run was started with raw records at" in outcome.err
    smaller = ["--set", "execution.task_rows=200"]
    cli.ends(0, "run", configuration, "--resume", "--no-progress", *smaller)
    assert of_any_run(tmp_path / "release") == of_any_run(expected)


def test_a_directory_that_holds_one_of_its_own_name_is_renamed(tmp_path: Path) -> None:
    """As a release called data does, when another one replaces it."""
    (tmp_path / "data" / "data").mkdir(parents=True)
    (tmp_path / "data" / "data" / "part-0").touch()
    files = LocalFiles()
    files.rename(str(tmp_path / "data"), str(tmp_path / "replaced"))
    assert contents(tmp_path) == {
        "replaced": None,
        "replaced/data": None,
        "replaced/data/part-0": b"",
    }
    with pytest.raises(OSError, match="it is there already"):
        files.rename(str(tmp_path / "replaced" / "data"), str(tmp_path / "replaced"))


def test_a_run_that_goes_on_is_left_alone(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    files = LocalFiles()
    with open_staging(files, str(tmp_path / "release"), "night"):
        (going_on,) = staging_directories(tmp_path)
        outcome = cli("clean", configuration)
        assert outcome.out.startswith("kept: a process of this machine is at work on it")
        cli.ends(5, "run", configuration, "--resume", says="is at work on the run")
        assert going_on.exists()
    assert staging_directories(tmp_path) == []
