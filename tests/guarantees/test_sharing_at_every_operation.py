"""Ledgers, plans, selections and unions stopped, refused or cut from power at any file operation.

Whatever happens, a ledger knows every release that is published on its account, no budget is spent
less than what was drawn, and after the calls that follow everything is as without a disturbance.
``make test`` draws some points. Those marked ``night`` are all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from every_operation import Pair, call, disturb_at, ends_of, pairs_of_claims, points_of, two_at_once
from helpers import write_table
from sharing_commands import COMMANDS, FILES, Command, disturbed, people_table
from simulated_files import Fault, SimulatedDisk

from anonspark.sharing.ledger.chain import read_key
from anonspark.sharing.ledger.ledger import open_ledger

Record = Callable[[str, object], None]
"""Notes a property of a test."""

# So many points of each take eight CPU seconds in all.
DRAWN = {"clean": 20, "ledger init": 60, "distribute": 4, "select": 20, "union": 6}


def go_through(made: Command, random: Random, record: Record, drawn: int | None = None) -> None:
    """Go through all points of a command, or some that are drawn."""
    points = points_of(made.operations, range(len(made.followed)), random)
    record("points", disturb_at(made.operations, points, partial(disturbed, made), random, drawn))


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_right_after_faults_at_drawn_points(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    random = Random(len(name))  # noqa: S311 - no secret
    made = COMMANDS[name](tmp_path)
    go_through(made, random, record_property, DRAWN[name])


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_right_after_faults_at_every_point(
    tmp_path: Path, name: str, record_property: Record
) -> None:
    """The second ``ledger init`` refused what the first one had left, and a key was half a key."""
    made = COMMANDS[name](tmp_path)
    go_through(made, Random(7), record_property)  # noqa: S311 - no secret


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return COMMANDS["distribute"](tmp_path_factory.mktemp("plan"))


def test_plan_that_is_carried_out_again_makes_the_same_atoms(plan: Command) -> None:
    """Its atoms had other names, so that records came in another order."""
    last = max(
        number
        for number, one in enumerate(plan.operations)
        if one.verb == "look"
        and "release-1/metrics/attributes" in one.path
        and "labour" in one.path
    )
    assert disturbed(plan, Fault(last, "stale handle"), 0)


def test_plan_killed_between_the_notes_of_its_atoms(plan: Command) -> None:
    """The next attempt could not write the first note, because it was there."""
    notes = [number for number, one in enumerate(plan.operations) if "kept-atoms" in one.path]
    assert len(notes) > 5
    for at in notes:
        assert disturbed(plan, Fault(at, "after"), 0)


def test_plan_killed_before_and_after_each_of_its_events(plan: Command) -> None:
    """What is published is in the ledger, and who resumes gets the undisturbed releases.

    After an event is before the key remembers it: nobody is locked out.
    """
    events = [
        number
        for number, one in enumerate(plan.operations)
        if one.verb == "link" and one.path.startswith("ledger/events/.0")
    ]
    assert len(events) > 5
    for at in events:
        for kind in ("before", "after"):
            assert disturbed(plan, Fault(at, kind), 0)


def test_ledger_that_was_stopped_at_its_last_rename(tmp_path: Path) -> None:
    """Its draft was said to be of no event, and every plan was refused."""
    made = COMMANDS["ledger init"](tmp_path)
    draft = "ledger/.ledger.json.writing"
    at = max(number for number, one in enumerate(made.operations) if one.path == draft)
    assert disturbed(made, Fault(at, "before"), 0)


def test_plan_killed_while_it_takes_the_lock(plan: Command) -> None:
    """Its half lock was said to be of no event, and every later night was refused."""
    drafts = [number for number, one in enumerate(plan.operations) if "/.lock." in one.path]
    assert len(drafts) > 5
    for at in (drafts[2], drafts[-1]):
        assert disturbed(plan, Fault(at, "before"), 0)


def test_plan_of_which_half_is_published(plan: Command) -> None:
    """Its other half is made of the atoms that the ledger has."""
    at = max(
        number
        for number, one in enumerate(plan.operations)
        if one.path.startswith("releases/.press") and "release-1/metrics/attributes" in one.path
    )
    for kind in ("stale handle", "before"):
        assert disturbed(plan, Fault(at, kind), 0)


@pytest.mark.parametrize("records", [60, 61])
def test_plan_that_begins_anew_with_a_ledger_that_has_its_atoms(
    plan: Command, records: int
) -> None:
    """Those of a source that changed meanwhile were taken for the atoms of the new one."""
    noted = next(
        number
        for number, one in enumerate(plan.operations)
        if one.verb == "link" and one.path.startswith("ledger/events/.00000003")
    )
    plan.lay_out()
    with SimulatedDisk(plan.folder).in_place() as disk:
        call(disk, plan.command, Fault(noted, "after"))
        cleaned = call(disk, ("clean", plan.folder / "plan.yaml", "--no-progress"))
        assert cleaned.code == 0, cleaned.err
        write_table(plan.folder / "people.parquet", people_table(records))
        again = call(disk, plan.command)
        assert again.code == 0, again.err
    ledger = open_ledger(FILES, str(plan.folder / "ledger"), read_key(str(plan.folder / "key")))
    assert ledger.generation == (1 if records == 60 else 2)
    plan.look()


def test_part_of_a_union_that_the_disk_refuses(tmp_path: Path) -> None:
    """The part was said not to keep its promise."""
    made = COMMANDS["union"](tmp_path)
    numbers = [
        number
        for number, one in enumerate(made.operations)
        if one.path.startswith("north/") and one.path.endswith((".parquet", ".json"))
    ]
    codes = set()
    for number in numbers[::9]:
        made.lay_out()
        with SimulatedDisk(made.folder).in_place() as disk:
            ended = call(disk, made.command, Fault(number, "stale handle"))
        codes.add(ended.code)
        assert ended.code in (0, 2, 5, 6), (made.operations[number], ended.err)
    assert 6 in codes


def go_two_at_once(made: Command, pairs: Iterable[Pair]) -> None:
    """Let the same command come between operations of a first one."""
    broken = []
    for pair in pairs:
        made.lay_out()
        disk = made.disk(made.folder)
        with disk.in_place():
            first, second = two_at_once(disk, made.command, made.command, pair)
        codes = (first.code, second.code if second else None)
        if not (0 in codes and set(codes) <= {0, 2, 3, 5, None} and made.look() == made.after):
            broken.append((pair, made.operations[pair[0]], codes, first.err, second and second.err))
    assert not broken, broken[:20]


@pytest.mark.parametrize("name", COMMANDS)
def test_two_runs_interleaved_at_drawn_points(tmp_path: Path, name: str) -> None:
    """Two calls of ``ledger init`` both said that they had made the ledger, each another one."""
    made = COMMANDS[name](tmp_path)
    random = Random(len(name))  # noqa: S311 - no secret
    for pairs in (ends_of(made.operations), pairs_of_claims(made.operations)):
        go_two_at_once(made, random.sample(pairs, min(DRAWN[name], len(pairs))))


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", COMMANDS)
def test_two_runs_interleaved_at_every_operation(tmp_path: Path, name: str) -> None:
    made = COMMANDS[name](tmp_path)
    go_two_at_once(made, ends_of(made.operations) + pairs_of_claims(made.operations))
