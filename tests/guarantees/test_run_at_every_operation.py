"""A run that is stopped, refused or cut from power at any of its file operations.

Whatever happens, what was published before is whole or the new release is, and after the calls of a
scheduler that follow (again, ``--resume``, ``clean``) the release is the undisturbed one and no raw
record is left. ``make test`` draws some points. Those marked ``night`` are all.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from cases import cases
from every_operation import (
    FOLLOWING,
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
from simulated_files import DONE_AND_REFUSED, LOST, Fault, Losing, Operation, SimulatedDisk

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
def test_drawn_points(tmp_path: Path, name: str, record_property: Record) -> None:
    random = Random(len(name))  # noqa: S311 - no secret
    made = SCENES[name](tmp_path)
    go_through(made, random, record_property, DRAWN)


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", SCENES)
def test_all_points(tmp_path: Path, name: str, record_property: Record) -> None:
    made = SCENES[name](tmp_path)
    go_through(made, Random(7), record_property)  # noqa: S311 - no secret


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("replacing"), overwrite=True)


def number_of(made: Scene, wanted: Callable[[Operation], bool]) -> int:
    return next(number for number, one in enumerate(made.operations) if wanted(one))


def test_parent_that_cannot_be_seen_for_a_moment(replacing: Scene) -> None:
    """It was called a bug, too, before anything was staged."""
    first = number_of(replacing, lambda one: ".anonspark-" in one.path)
    for at in range(first):
        replacing.lay_out()
        disk = SimulatedDisk(replacing.folder)
        with disk.in_place():
            ended = call(disk, replacing.run, Fault(at, "lost connection"))
        assert ended.code in (0, 2, 5), (replacing.operations[at], ended.err)


@cases(__file__, "verb", "path")
def test_refusal_is_no_bug(replacing: Scene, verb: str, path: str) -> None:
    """It was called a bug of anonspark, with exit code 1."""
    at = number_of(replacing, lambda one: (one.verb, one.path.partition("/")[2]) == (verb, path))
    replacing.lay_out()
    disk = SimulatedDisk(replacing.folder)
    with disk.in_place():
        ended = call(disk, replacing.run, Fault(at, "stale handle"))
    assert ended.code == 5
    assert "Stale file handle" in ended.err
    assert replacing.release() == replacing.before
    assert not replacing.staged()


def test_lost_answer_of_the_last_step(replacing: Scene) -> None:
    """The manifest was in its place, and the message said that nothing was published."""
    last = number_of(
        replacing, lambda one: one.verb == "link" and one.path.endswith("/manifest.json")
    )
    replacing.lay_out()
    disk = SimulatedDisk(replacing.folder)
    with disk.in_place():
        ended = call(disk, replacing.run, Fault(last, DONE_AND_REFUSED))
    assert (ended.code, ended.err) == (0, "")
    assert replacing.release() == replacing.after


def test_run_killed_at_its_end_and_replaced_by_another(replacing: Scene) -> None:
    """Its staging directory stayed, and clean could not say whose release was in its place."""
    last = number_of(
        replacing, lambda one: one.verb == "link" and one.path.endswith("/manifest.json")
    )
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
    renamed = number_of(replacing, lambda one: (one.verb, one.path) == ("rename", "release"))
    replacing.lay_out()
    disk = SimulatedDisk(replacing.folder)
    with disk.in_place():
        ended = call(disk, replacing.run, Fault(renamed + 1, LOST))
    assert ended.code == 5
    assert "the release that was at" in ended.err
    assert "run anonspark clean" in ended.err


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
def test_two_at_once_at_drawn_points(replacing: Scene, name: str) -> None:
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
def test_two_at_once(replacing: Scene, name: str) -> None:
    go_two_at_once(
        replacing, name, ends_of(replacing.operations) + pairs_of_claims(replacing.operations)
    )
