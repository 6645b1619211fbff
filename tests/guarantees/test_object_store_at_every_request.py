"""Commands on an object store, stopped or refused at any of their requests.

A store has no rename and no directories, and writes objects as a whole. What holds on a disk holds
here: what was published is whole, and the calls of a scheduler that follow end in the undisturbed
release. ``make test`` draws some points. Those marked ``night`` are all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import every_operation
import pytest
import sharing_commands
from every_operation import (
    FOLLOWING,
    Scene,
    call,
    disturb_at,
    ends_of,
    is_without_report,
    pairs_of_claims,
    points_of,
    scene,
)
from py4j.protocol import Py4JError
from sharing_commands import COMMANDS, Command
from simulated_files import DONE_AND_REFUSED, Fault, Operation, StoppedError
from simulated_store import SimulatedStore
from test_run_at_every_operation import TWO, go_two_at_once
from test_sharing_at_every_operation import go_two_at_once as two_commands_at_once

Record = Callable[[str, object], None]
"""Notes a property of a test."""

run = partial(scene, disk=SimulatedStore)

RUNS: dict[str, Callable[[Path], Scene]] = {
    "error": run,
    "error, resumed": lambda folder: run(folder, "--resume"),
    "overwrite": lambda folder: run(folder, overwrite=True),
    "overwrite, resumed": lambda folder: run(folder, "--resume", overwrite=True),
    "history and report": lambda folder: run(folder, "--report", overwrite=True, history=True),
}

# So many points of each take fifteen CPU seconds in all.
DRAWN = {"clean": 20, "ledger init": 40, "distribute": 2, "select": 20, "union": 4} | dict.fromkeys(
    RUNS, 4
)


def go_through(folder: Path, name: str, record: Record, drawn: int | None = None) -> None:
    """Go through all points of a command, or some that are drawn."""
    random = Random(len(name))  # noqa: S311 - no secret
    made: Scene | Command
    if name in RUNS:
        made = RUNS[name](folder)
        points = points_of(made.operations, FOLLOWING, random)
        told = disturb_at(
            made.operations, points, partial(every_operation.disturbed, made), random, drawn
        )
    else:
        made = COMMANDS[name](folder, SimulatedStore)
        ways = points_of(made.operations, range(len(made.followed)), random)
        told = disturb_at(
            made.operations, ways, partial(sharing_commands.disturbed, made), random, drawn
        )
    record("points", told)


@pytest.mark.parametrize("name", DRAWN)
def test_commands_end_right_after_faults_at_drawn_requests(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    go_through(tmp_path, name, record_property, DRAWN[name])


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", DRAWN)
def test_commands_end_right_after_faults_at_every_request(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    go_through(tmp_path, name, record_property)


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return RUNS["overwrite"](tmp_path_factory.mktemp("replacing"))


def numbers_of(operations: list[Operation], verb: str, path: str) -> list[int]:
    return [
        number
        for number, one in enumerate(operations)
        if one.verb == verb and (one.path == path or one.path.startswith(f"{path}/"))
    ]


@pytest.mark.parametrize("path", ["release", ".release.anonspark-night/release-1"])
@pytest.mark.parametrize("kind", ["after", "lost connection"])
def test_replaced_release_of_which_half_is_copied(replacing: Scene, path: str, kind: str) -> None:
    """It was at two places, and clean could not say which of them was right."""
    copies = numbers_of(replacing.operations, "copy", path)
    assert len(copies) > 10
    for at in (copies[3], copies[-1]):
        assert every_operation.disturbed(replacing, Fault(at, kind), "clean")


def test_replaced_release_of_which_half_is_deleted(replacing: Scene) -> None:
    deleted = numbers_of(replacing.operations, "delete", "release")[0]
    for following in FOLLOWING:
        assert every_operation.disturbed(replacing, Fault(deleted, "within"), following)


def test_two_nights_that_replace_a_release(replacing: Scene) -> None:
    """The second release was in its place while the first run went on to copy what it replaced."""
    copies = numbers_of(replacing.operations, "copy", "release")
    points = (copies[3], copies[-1] + 1, copies[-1] + 5)
    go_two_at_once(replacing, "another night", [(at, None) for at in points])


@pytest.mark.parametrize("name", TWO)
def test_two_runs_interleaved_at_drawn_points(replacing: Scene, name: str) -> None:
    random = Random(len(name))  # noqa: S311 - no secret
    pairs = random.sample(ends_of(replacing.operations), 2) + random.sample(
        pairs_of_claims(replacing.operations), 2
    )
    go_two_at_once(replacing, name, pairs)


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("scene_name", ["error", "overwrite"])
def test_two_runs_interleaved_at_every_operation(
    tmp_path: Path, scene_name: str, name: str
) -> None:
    made = RUNS[scene_name](tmp_path)
    go_two_at_once(made, name, ends_of(made.operations) + pairs_of_claims(made.operations))


@pytest.mark.parametrize("name", ["ledger init", "select"])
def test_two_commands_at_once(tmp_path: Path, name: str) -> None:
    """One of them called it a bug that a directory was there, which the other one had made."""
    made = COMMANDS[name](tmp_path, SimulatedStore)
    random = Random(len(name))  # noqa: S311 - no secret
    for pairs in (ends_of(made.operations), pairs_of_claims(made.operations)):
        two_commands_at_once(made, random.sample(pairs, 20))


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", COMMANDS)
def test_two_commands_at_once_everywhere(tmp_path: Path, name: str) -> None:
    made = COMMANDS[name](tmp_path, SimulatedStore)
    two_commands_at_once(made, ends_of(made.operations) + pairs_of_claims(made.operations))


def test_run_killed_beside_its_manifest(tmp_path: Path) -> None:
    made = RUNS["error"](tmp_path)
    written = [
        number
        for number, one in enumerate(made.operations)
        if one.changes and one.path.endswith("/manifest.json")
    ]
    for at in written[-2:]:
        for following in FOLLOWING:
            assert every_operation.disturbed(made, Fault(at, "after"), following)


def test_half_a_release_with_an_empty_directory(tmp_path: Path) -> None:
    """What stands for a directory was called something that others had put there."""
    made = RUNS["error"](tmp_path)
    for path in ("release/data", "release/metrics/classes"):
        (put,) = numbers_of(made.operations, "put", path)[:1]
        assert every_operation.disturbed(made, Fault(put, "after"), "clean")


def test_half_a_release_is_there_and_is_not_to_be_replaced(tmp_path: Path) -> None:
    """The message did not say what to do."""
    made = RUNS["error"](tmp_path)
    (put,) = numbers_of(made.operations, "put", "release/README.md")
    made.lay_out()
    store = SimulatedStore(made.folder)
    with store.in_place():
        call(store, made.run, Fault(put, "after"))
        again = call(store, ("run", made.configuration, "--run-id", "other", "--no-progress"))
    assert again.code == 2
    assert "anonspark clean puts it right" in again.err


@pytest.mark.parametrize("kind", ["after", "lost connection", "done and refused"])
def test_selection_of_which_half_is_copied(tmp_path: Path, kind: str) -> None:
    """Another attempt refused it as something of others."""
    made = COMMANDS["select"](tmp_path, SimulatedStore)
    for verb in ("copy", "delete"):
        for at in numbers_of(made.operations, verb, "selection.writing-night/1"):
            assert sharing_commands.disturbed(made, Fault(at, kind), 0)


def test_manifest_that_lists_a_report_is_there_all_the_time(tmp_path: Path) -> None:
    """It was deleted before the new one was renamed, and that was deleted where a list failed."""
    made = RUNS["history and report"](tmp_path)
    report = numbers_of(made.operations, "put", "release/report.html")[0]
    later = [
        number
        for number, one in enumerate(made.operations)
        if number > report and one.path.startswith("release/") and "manifest.json" in one.path
    ]
    for at in later:
        assert every_operation.disturbed(made, Fault(at, "lost connection"), "again")


def test_part_of_a_union_that_the_store_refuses(tmp_path: Path) -> None:
    """The part was said not to keep its promise."""
    made = COMMANDS["union"](tmp_path, SimulatedStore)
    parts = [
        number
        for number, one in enumerate(made.operations)
        if one.path.startswith(("north/metrics/", "south/metrics/"))
    ]
    for at in parts[::20]:
        assert sharing_commands.disturbed(made, Fault(at, "no permission"), 0)


def test_two_calls_of_clean(tmp_path: Path) -> None:
    """One of them called it a bug that what it read was gone."""
    made = COMMANDS["clean"](tmp_path, SimulatedStore)
    read = [number for number, one in enumerate(made.operations) if one.verb == "get"]
    two_commands_at_once(made, [(at - more, None) for at in read for more in (0, 1)])


def test_release_that_clean_puts_back_has_its_manifest_last(tmp_path: Path) -> None:
    """A reader found a manifest whose files were not there yet."""
    made = COMMANDS["clean"](tmp_path, SimulatedStore)
    copies = numbers_of(made.operations, "copy", ".release.anonspark-night/replaced")
    assert len(copies) > 10
    for at in copies:
        assert sharing_commands.disturbed(made, Fault(at, "before"), 0)


def test_refusal_is_no_bug(tmp_path: Path) -> None:
    """It was called a bug of anonspark, with exit code 1."""
    made = COMMANDS["ledger init"](tmp_path, SimulatedStore)
    (put,) = numbers_of(made.operations, "put", "ledger/base")
    made.lay_out()
    store = SimulatedStore(made.folder)
    with store.in_place():
        ended = call(store, made.command, Fault(put, "no permission"))
    assert ended.code == 6
    assert "the system refused to read or write" in ended.err


def disturb_behind(made: Scene, fault: Fault, behind: int) -> bool:
    """Run with lists that are behind and with a fault. Once they show all, clean and run again."""
    made.lay_out()
    store = SimulatedStore(made.folder, behind=behind)
    with store.in_place():
        first = call(store, made.run, fault)
        if first.code == 0:
            assert made.release() == made.after
        assert first.code in (None, 0, 2, 3, 5, 6), (first.code, first.err)
        store.behind = 0
        cleaned = call(store, made.clean)
        assert cleaned.code == 0, cleaned.err
        there = made.release()
        assert there in (made.before, made.after) or is_without_report(there, made.after)
        again = call(store, made.run)
        assert again.code == 0, again.err
    assert made.release() == made.after
    assert not store.staged()
    return first.process.met


def go_behind(made: Scene, random: Random, drawn: int) -> None:
    """Disturb a run at some requests, without a fault in some cases."""
    changes = [number for number, one in enumerate(made.operations) if one.changes]
    kinds = ("delay", "after", "lost connection", DONE_AND_REFUSED)
    broken = []
    for _ in range(drawn):
        fault = Fault(random.choice(changes), random.choice(kinds))
        behind = random.choice((1, 2, 4, 8, 12, 16, 20, 30, 50, 400))
        try:
            disturb_behind(made, fault, behind)
        except AssertionError as error:
            broken.append((fault, behind, made.operations[fault.at], str(error)[:500]))
    assert not broken, broken[:20]


@pytest.mark.parametrize("name", ["error", "overwrite"])
@pytest.mark.parametrize(
    "drawn", [6, pytest.param(2000, marks=[pytest.mark.night, pytest.mark.timeout(0)])]
)
def test_lists_that_are_behind(tmp_path: Path, name: str, drawn: int) -> None:
    """A run is refused, or its release is whole, and what was published before is not lost."""
    go_behind(RUNS[name](tmp_path), Random(drawn), drawn)  # noqa: S311 - no secret


@pytest.fixture
def store(tmp_path: Path) -> SimulatedStore:
    (tmp_path / "old").write_text("old")
    return SimulatedStore(tmp_path, behind=2)


def test_the_store_has_conditions(store: SimulatedStore) -> None:
    old = f"{store.root}/old"
    with pytest.raises(Py4JError, match="412"):
        store.put(old, b"new", if_none=True)
    assert store.get(old) == b"old"
    store.put(old, b"new")
    assert store.get(old) == b"new"


def test_the_store_has_lists_that_are_behind(store: SimulatedStore) -> None:
    for name in ("new", "newer"):
        store.put(f"{store.root}/{name}", b"")
    store.delete([f"{store.root}/old"])
    found = [[key.rpartition("/")[2] for key in store.listed(store.root)] for _ in range(4)]
    assert found == [["new", "old"], ["new", "newer", "old"], ["new", "newer"], ["new", "newer"]]
    assert not store.head(f"{store.root}/old")


def test_half_a_deletion(store: SimulatedStore) -> None:
    keys = [f"{store.root}/{name}" for name in ("one", "two")]
    for key in keys:
        store.put(key, b"")
    with store.process(Fault(0, "within")), pytest.raises(StoppedError):
        store.delete(keys)
    assert [store.head(key) for key in keys] == [False, True]
