"""A run stopped, refused or cut from power at any file operation of the simulated disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from cases import cases
from every_operation import (
    FOLLOWING,
    RUN_ID,
    Ended,
    Pair,
    Scene,
    call,
    disturb_at,
    disturbed,
    ends_of,
    pairs_of_claims,
    points_of,
    scene,
    two_at_once,
)
from helpers import contents
from simulated_files import (
    DONE_AND_REFUSED,
    LOST,
    REFUSALS,
    Fault,
    Losing,
    Operation,
    SimulatedDisk,
    StoppedError,
)

from anonspark.engine.local.files import LocalFiles

SCENES: dict[str, Callable[[Path], Scene]] = {
    "error": scene,
    "error, resumed": lambda folder: scene(folder, "--resume"),
    "overwrite": lambda folder: scene(folder, overwrite=True),
    "overwrite, resumed": lambda folder: scene(folder, "--resume", overwrite=True),
    "history and signed report": lambda folder: scene(
        folder, "--report", "--sign", str(key_in(folder)), overwrite=True, history=True
    ),
}


def key_in(folder: Path) -> Path:
    """Make a key that signs releases."""
    path = folder / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return path


Record = Callable[[str, object], None]
"""Notes a property of a test."""

# So many points of each of the scenes take ten CPU seconds in all.
DRAWN = 5


def go_through(made: Scene, random: Random, record: Record, drawn: int | None = None) -> None:
    """Go through all points of a run, or some that are drawn."""
    points = points_of(made.operations, FOLLOWING, random)
    record("points", disturb_at(made.operations, points, partial(disturbed, made), random, drawn))


@pytest.mark.parametrize("name", SCENES)
def test_release_is_whole_after_faults_at_drawn_points(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    random = Random(len(name))  # noqa: S311 - no secret
    made = SCENES[name](tmp_path)
    go_through(made, random, record_property, DRAWN)


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", SCENES)
def test_release_is_whole_after_faults_at_every_point(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    made = SCENES[name](tmp_path)
    go_through(made, Random(7), record_property)  # noqa: S311 - no secret


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("replacing"), overwrite=True)


def run_with(made: Scene, fault: Fault) -> Ended:
    """Run with a fault, where everything lies as before."""
    made.lay_out()
    disk = SimulatedDisk(made.folder)
    with disk.in_place():
        return call(disk, made.run, fault)


def number_of(made: Scene, wanted: Callable[[Operation], bool]) -> int:
    return next(number for number, one in enumerate(made.operations) if wanted(one))


def test_parent_that_cannot_be_seen_for_a_moment(replacing: Scene) -> None:
    """It was called a bug, too, before anything was staged."""
    first = number_of(replacing, lambda one: ".anonspark-" in one.path)
    for at in range(first):
        ended = run_with(replacing, Fault(at, "lost connection"))
        assert ended.code in (0, 2, 5), (replacing.operations[at], ended.err)


@cases(__file__, "verb", "path")
def test_refusal_is_no_bug(replacing: Scene, verb: str, path: str) -> None:
    """It was called a bug of anonspark, with exit code 1."""
    at = number_of(replacing, lambda one: (one.verb, one.path.partition("/")[2]) == (verb, path))
    ended = run_with(replacing, Fault(at, "stale handle"))
    assert ended.code == 5
    assert "Stale file handle" in ended.err
    assert replacing.release() == replacing.before
    assert not replacing.staged()


def steps_that_publish(made: Scene) -> list[int]:
    """Return when the earlier release is set aside, the new one renamed, and its manifest."""
    return [
        number_of(made, lambda one: one.verb == "rename" and one.path == "release"),
        number_of(made, lambda one: one.verb == "rename" and "/release-1" in one.path),
        number_of(made, lambda one: one.verb == "link" and one.path.endswith("/manifest.json")),
    ]


@pytest.mark.parametrize("following", FOLLOWING)
def test_run_killed_between_its_renames_is_put_right(replacing: Scene, following: str) -> None:
    """The earlier release comes back, or the new one is complete."""
    for at in steps_that_publish(replacing):
        for kind in ("before", "after"):
            assert disturbed(replace(replacing), Fault(at, kind), following)


def test_rename_that_is_refused_brings_the_earlier_release_back(replacing: Scene) -> None:
    for at in steps_that_publish(replacing)[:2]:
        ended = run_with(replacing, Fault(at, "no permission"))
        assert ended.code == 5
        assert "could not be renamed" in ended.err
        assert replacing.release() == replacing.before
        assert not replacing.staged()


def test_lost_answer_of_the_last_step(replacing: Scene) -> None:
    """The manifest was in its place, and the message said that nothing was published."""
    *_, last = steps_that_publish(replacing)
    ended = run_with(replacing, Fault(last, DONE_AND_REFUSED))
    assert (ended.code, ended.err) == (0, "")
    assert replacing.release() == replacing.after


def test_run_killed_at_its_end_and_replaced_by_another(replacing: Scene) -> None:
    """Its staging directory stayed, and clean could not say whose release was in its place."""
    *_, last = steps_that_publish(replacing)
    replacing.lay_out()
    disk = SimulatedDisk(replacing.folder)
    with disk.in_place():
        call(disk, replacing.run, Fault(last, "after"))
        assert replacing.staged()
        other = ("run", replacing.configuration, "--run-id", "other", "--no-progress")
        assert call(disk, other).code == 0
        assert not replacing.staged()
        cleaned = call(disk, replacing.clean)
    assert cleaned.code == 0, cleaned.err


def test_report_killed_before_the_manifest_lists_it(tmp_path: Path) -> None:
    """The next night refused to overwrite the release."""
    made = SCENES["history and signed report"](tmp_path)
    placed = number_of(
        made, lambda one: one.verb == "replace" and one.path == "release/.report.html.writing"
    )
    made.lay_out()
    disk = SimulatedDisk(made.folder)
    with disk.in_place():
        call(disk, made.run, Fault(placed, "after"))
        again = call(disk, ("run", made.configuration, "--run-id", "other", "--no-progress"))
    assert again.code == 0, again.err


@pytest.mark.parametrize("losing", get_args(Losing))
def test_power_cut_after_the_run(replacing: Scene, losing: Losing) -> None:
    """Nothing of a release was synced."""
    replacing.lay_out()
    disk = SimulatedDisk(replacing.folder, journals=True)
    with disk.in_place():
        assert call(disk, replacing.run).code == 0
    disk.cut_power(losing)
    assert replacing.release() == replacing.after


@pytest.mark.parametrize("losing", get_args(Losing))
def test_power_cut_after_a_round(replacing: Scene, losing: Losing) -> None:
    """Notes of finished rounds, or where raw records are, were empty."""
    begin = number_of(replacing, lambda one: one.path.endswith("/release-1"))
    for following in FOLLOWING:
        assert disturbed(replace(replacing), Fault(begin, "before"), following, losing)


def test_power_cut_before_the_last_sync(replacing: Scene) -> None:
    """The mark of the release was lost, so that nobody knew whose release was in its place."""
    synced = number_of(replacing, lambda one: (one.verb, one.path) == ("sync", "release"))
    for following in FOLLOWING:
        assert disturbed(replacing, Fault(synced, "before"), following, "all")


def test_disk_that_is_lost_while_a_release_is_replaced(replacing: Scene) -> None:
    """The message did not say where the earlier release was, nor what puts it back."""
    renamed, *_ = steps_that_publish(replacing)
    ended = run_with(replacing, Fault(renamed + 1, LOST))
    assert ended.code == 5
    assert "the release that was at" in ended.err
    assert "run anonspark clean" in ended.err


def test_disk_that_is_lost_before_the_tables_of_all_runs_are_listed(tmp_path: Path) -> None:
    """The message did not say that the release is complete."""
    made = SCENES["history and signed report"](tmp_path)
    listed = number_of(made, lambda one: one.path.endswith(f"/date=*/{RUN_ID}.parquet"))
    ended = run_with(made, Fault(listed, LOST))
    assert ended.code == 5
    assert "is complete, only its rows could not be appended" in ended.err


def test_staged_table_that_may_not_be_read(replacing: Scene) -> None:
    """It was taken for an empty one, and the release had no table of classes."""
    looked = [
        number
        for number, one in enumerate(replacing.operations)
        if one.verb == "look" and "/rounds/round=" in one.path and "/part=" in one.path
    ]
    assert len(looked) > 10
    for at in looked:
        assert disturbed(replacing, Fault(at, "no permission"), "again")


def test_release_that_clean_cannot_see_for_a_moment(replacing: Scene) -> None:
    """What is replaced was not put back, and was deleted with the staging directory."""
    renamed = number_of(replacing, lambda one: one.verb == "rename" and one.path == "release")
    looks = [0]
    while looks:
        replacing.lay_out()
        disk = SimulatedDisk(replacing.folder)
        with disk.in_place():
            call(disk, replacing.run, Fault(renamed, "after"))
            assert not (replacing.folder / "release").exists()
            ended = call(disk, replacing.clean, Fault(looks.pop(), "stale handle"))
            assert ended.code in (0, 2, 5), ended.err
            again = call(disk, replacing.clean)
            assert again.code == 0
        assert replacing.release() == replacing.before
        assert not replacing.staged()
        if ended.process.fault == Fault(0, "stale handle"):
            looks = [
                number
                for number, one in enumerate(again.process.operations)
                if one.verb == "look" and one.path.endswith("/replaced")
            ]
            assert looks


TWO = {
    "same night": ("--run-id", "night"),
    "same night, resumed": ("--run-id", "night", "--resume"),
    "another night": ("--run-id", "other"),
}


def go_two_at_once(made: Scene, name: str, pairs: Iterable[Pair]) -> None:
    """Let a second run come between operations of a first one."""
    second = ("run", made.configuration, "--no-progress", *TWO[name])
    broken = []
    for pair in pairs:
        made.lay_out()
        disk = made.disk(made.folder)
        with disk.in_place():
            ended = two_at_once(disk, made.run, second, pair)
            codes = [one.code if one else None for one in ended]
            cleaned = call(disk, made.clean)
        try:
            release = made.release()
        except AssertionError as error:
            release = {"broken": str(error)}
        # The other night has another name, and the same data.
        same = {path for path in made.after if path.startswith("data/")}
        whole = all(release.get(path) == made.after[path] for path in same)
        if not (0 in codes and set(codes) <= {0, 2, 5, None} and whole and not cleaned.code):
            broken.append(
                (pair, made.operations[pair[0]], codes, [one and one.err for one in ended])
            )
        elif disk.staged() or made.strangers():
            broken.append((pair, made.operations[pair[0]], codes, disk.staged() + made.strangers()))
    assert not broken, broken[:20]


@pytest.mark.parametrize("name", TWO)
def test_two_runs_interleaved_at_drawn_points(replacing: Scene, name: str) -> None:
    random = Random(len(name))  # noqa: S311 - no secret
    pairs = random.sample(ends_of(replacing.operations), 4) + random.sample(
        pairs_of_claims(replacing.operations), 4
    )
    go_two_at_once(replacing, name, pairs)


def test_run_that_publishes_while_another_one_is_between_its_renames(replacing: Scene) -> None:
    """What the first had set aside stayed, and clean asked which release was right."""
    operations = replacing.operations
    at = number_of(replacing, lambda one: one.verb == "rename" and "release-1" in one.path)
    go_two_at_once(replacing, "another night", [(at, None), (at, len(operations) - 9)])


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TWO)
def test_two_runs_interleaved_at_every_operation(replacing: Scene, name: str) -> None:
    go_two_at_once(
        replacing, name, ends_of(replacing.operations) + pairs_of_claims(replacing.operations)
    )


def publish(folder: Path) -> None:
    """Write, sync and rename, and delete what was there."""
    files = LocalFiles()
    files.write_text(f"{folder}/new/data", "whole")
    descriptor = os.open(folder / "new" / "data", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    files.rename(f"{folder}/new/data", f"{folder}/data")
    files.delete(f"{folder}/old")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "file").write_text("old")
    return tmp_path


def test_operations_are_counted(folder: Path) -> None:
    disk = SimulatedDisk(folder)
    with disk.in_place(), disk.process() as process:
        publish(folder)
    changes = [(one.verb, one.path) for one in process.operations if one.changes]
    for one in (
        ("mkdir", "new"),
        ("create", "new/data"),
        ("write", "new/data"),
        ("sync", "new/data"),
        ("link", "new/data"),
        ("unlink", "old/deep/file"),
        ("rmdir", "old/deep"),
        ("rmdir", "old"),
    ):
        assert one in changes
    assert contents(folder) == {"data": b"whole", "new": None}


@pytest.mark.parametrize("kind", ["before", "after", "within"])
def test_stopped_process_changes_nothing_more(folder: Path, kind: str) -> None:
    disk = SimulatedDisk(folder)
    with disk.in_place(), suppress(StoppedError), disk.process() as process:
        process.fault = Fault(3, kind)
        try:
            (folder / "one").write_text("four")
            (folder / "two").write_text("four")
        finally:
            (folder / "one").unlink()
    assert process.met
    assert [one.verb for one in process.operations] == ["create", "write"] * 2
    two = {"before": b"", "within": b"fo", "after": b"four"}[kind]
    assert ((folder / "one").read_text(), (folder / "two").read_bytes()) == ("four", two)


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals(folder: Path, kind: str) -> None:
    disk = SimulatedDisk(folder)
    with (
        disk.in_place(),
        disk.process(Fault(0, kind)),
        pytest.raises(OSError, match=r"new") as refused,
    ):
        (folder / "new").mkdir()
    assert refused.value.errno == REFUSALS[kind]
    assert not (folder / "new").exists()
    assert kind != "exists" or isinstance(refused.value, FileExistsError)


def test_power_cut_loses_what_was_not_synced(folder: Path) -> None:
    disk = SimulatedDisk(folder, journals=True)
    with disk.in_place(), disk.process():
        publish(folder)
    disk.cut_power()
    assert contents(folder) == {"old": None, "old/deep": None, "old/deep/file": b"old"}


def test_power_cut_keeps_what_was_synced(folder: Path) -> None:
    disk = SimulatedDisk(folder, journals=True)
    with disk.in_place(), disk.process():
        publish(folder)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        (folder / "later").write_text("later")
    disk.cut_power("contents")
    assert contents(folder) == {"data": b"whole", "new": None, "later": bytes(5)}


def test_power_cut_loses_in_no_order(folder: Path) -> None:
    seen = set()
    before = folder / "before"
    for seed in range(60):
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        for name in ("a", "b"):
            (work / name).mkdir(parents=True)
            (work / name / "one").write_text(name)
        disk = SimulatedDisk(work, journals=True)
        with disk.in_place(), disk.process():
            for name in ("a", "b"):
                (work / name / "one").rename(work / name / "two")
        disk.cut_power("drawn", Random(seed))  # noqa: S311 - no secret
        seen.add(tuple(name for name in contents(work) if "/" in name))
    assert not before.exists()
    assert ("a/one", "b/two") in seen
    assert ("a/two", "b/one") in seen
