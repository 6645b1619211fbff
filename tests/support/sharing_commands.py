"""Commands of ledgers, plans, selections, unions and ``clean``, disturbed at one operation."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from every_operation import Ended, call, files_of, release_of, scene
from helpers import document_file, write_table
from holders import anonymize, write_coding
from simulated_files import Fault, Losing, Operation, SimulatedDisk

from anonspark.engine.local.engine import LocalEngine
from anonspark.sharing.ledger.budget import read_budget
from anonspark.sharing.ledger.chain import read_key
from anonspark.sharing.ledger.ledger import open_ledger

FILES = LocalEngine().files

State = Mapping[str, Any]
Disk = Callable[..., SimulatedDisk]


@dataclass(frozen=True)
class Command:
    """A command, and what lies there before and after it.

    Parameters
    ----------
    folder, template : Path
        Where it works, and what lies there before.
    command : tuple
        Its arguments.
    state : callable
        Returns what the command published in the folder, checked by itself.
    sound : callable
        Asserts what holds at any moment, whatever happened.
    followed : tuple of tuple
        What a scheduler does next: each ends with the state of an undisturbed command.
    codes : tuple of int
        What a disturbed command may end with.
    disk : callable
        Returns the disk for a folder.
    seen : set
        What disturbed commands left, with how each was followed up: once is enough.
    """

    folder: Path
    template: Path
    command: tuple[object, ...]
    state: Callable[[Path], State]
    sound: Callable[[Path], None] = lambda _: None
    followed: tuple[tuple[tuple[object, ...], ...], ...] = ()
    codes: tuple[int, ...] = (2, 3, 5, 6)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    disk: Disk = SimulatedDisk
    seen: set[tuple[str, int]] = field(default_factory=set)

    def lay_out(self) -> None:
        """Make the folder what it was before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)

    def look(self) -> State:
        """Return what is published, checked."""
        self.sound(self.folder)
        return self.state(self.folder)


def finished(made: Command) -> Command:
    """Keep what lies there as the template, and carry the command out once."""
    shutil.copytree(made.folder, made.template)
    made.before.update(made.look())
    with made.disk(made.folder).in_place() as disk:
        ended = call(disk, made.command)
    assert ended.code == 0, ended.err
    made.after.update(made.look())
    made.there.extend(files_of(made.folder))
    made.operations.extend(ended.process.operations)
    assert made.after != made.before
    return made


def disturbed(
    made: Command, fault: Fault, following: int, losing: Losing | None = None, seed: int = 0
) -> bool:
    """Carry a command out with a fault, follow it up, and check. Return whether it came to it."""
    made.lay_out()
    disk = made.disk(made.folder, journals=losing is not None)
    with disk.in_place():
        first = call(disk, made.command, fault)
        if not first.process.met:
            return False
        if losing is not None:
            disk.cut_power(losing, Random(seed))  # noqa: S311 - no secret
        _check_first(made, first)
        if (left := (disk.state(), following)) in made.seen:
            return True
        for command in made.followed[following]:
            again = call(disk, command)
            # Of a command that came to its end the second is told that something is there.
            is_again = again.code == 2 and command[:2] == made.command[:2]
            ended = again.code == 0 or (is_again and made.look() == made.after)
            assert ended, (command[0], again.code, again.err)
    assert made.look() == made.after
    strangers = {
        path
        for path in set(files_of(made.folder)) - set(made.there)
        # Drafts of a stopped process, of what the ledger holds, and its events and charges.
        if not path.rpartition("/")[2].startswith((".0", ".key", ".ledger", ".lock"))
        and not path.startswith(("ledger/people/", "ledger/events/"))
    }
    assert not strangers, strangers
    made.seen.add(left)
    return True


def _check_first(made: Command, first: Ended) -> None:
    there = made.look()
    if first.code == 0:
        assert there == made.after
    elif first.code is not None:
        assert first.code in made.codes, (first.code, first.err)
        assert first.err.startswith("error: "), first.err


def people_table(count: int = 60) -> pa.Table:
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "person": [f"planted person {number}" for number in range(count)],
            "age": draw.integers(18, 90, count),
            "sex": draw.choice(["f", "m"], count),
            "illness": draw.choice(["flu", "cold", "gout", "none"], count),
        }
    )


def ledger_scene(folder: Path, disk: Disk = SimulatedDisk) -> Command:
    """Return ``ledger init`` with its key."""
    work = folder / "work"
    work.mkdir(parents=True)
    make = ("ledger", "init", work / "ledger", "--key-file", work / "key", "--subject", "person")

    def state(work: Path) -> State:
        if not (work / "ledger" / "ledger.json").exists():
            return {}
        ledger = open_ledger(FILES, str(work / "ledger"), read_key(str(work / "key")))
        return {
            "subject": ledger.head["subject"],
            "events": [one.type for one in ledger.events.events],
        }

    template = folder / "template"
    check = ("ledger", "check", work / "ledger", "--files", "--key-file", work / "key")
    made = finished(Command(work, template, make, state, followed=((make, check),), disk=disk))
    # Of a ledger that is complete the lock of a dead process stays: the next command takes it over.
    made.there.append("ledger/lock")
    return made


def plan_scene(folder: Path, disk: Disk = SimulatedDisk) -> Command:
    """Return ``distribute`` of two releases with a ledger."""
    work = folder / "work"
    work.mkdir(parents=True)
    write_table(work / "people.parquet", people_table())
    plan = work / "plan.yaml"
    document = {
        "base": {
            "input": {"path": str(work / "people.parquet")},
            "attributes": {
                "person": "identifier",
                "age": "quasi_identifier",
                "sex": "quasi_identifier",
                "illness": "sensitive",
            },
            "privacy": {"k": 5},
            "model": {"name": "smondrian"},
            "execution": {"seed": 2**40, "engine": "local"},
        },
        "subject": "person",
        "output": str(work / "releases"),
        "ledger": {"path": str(work / "ledger"), "key_file": str(work / "key")},
        "recipients": {
            "labour": {"approved": "yes", "columns": ["age", "illness"]},
            "press": {"approved": "yes", "columns": ["sex", "illness"]},
        },
    }
    plan.write_text(yaml.safe_dump(document))
    with disk(work).in_place() as simulated:
        made = call(
            simulated,
            (
                *("ledger", "init", work / "ledger", "--key-file", work / "key"),
                *("--subject", "person"),
            ),
        )
    assert made.code == 0, made.err
    command = ("distribute", plan, "--run-id", "night", "--no-progress")
    resume, clean = (*command, "--resume"), ("clean", plan, "--no-progress")
    check = ("ledger", "check", work / "ledger", "--files")

    def state(work: Path) -> State:
        return {name: release_of(work / "releases" / name) for name in ("labour", "press")}

    def sound(work: Path) -> None:
        ledger = open_ledger(FILES, str(work / "ledger"), read_key(str(work / "key")))
        events = ledger.events.events
        for name in ("labour", "press"):
            if (work / "releases" / name / "manifest.json").exists():
                assert f"{name}-night" in ledger.releases, [one.type for one in events]
        for path in files_of(work):
            if ".anonspark-" not in path and path != "people.parquet":
                assert b"planted person" not in (work / path).read_bytes(), path

    followed = ((resume, check, clean), (clean, resume, check, clean), (resume, resume, clean))
    return finished(Command(work, folder / "template", command, state, sound, followed, disk=disk))


def selection_scene(folder: Path, disk: Disk = SimulatedDisk) -> Command:
    """Return ``select`` with a budget."""
    work = folder / "work"
    work.mkdir(parents=True)
    write_table(work / "people.parquet", people_table())
    document = {
        "input": {"path": str(work / "people.parquet")},
        "execution": {"engine": "local"},
        "attributes": {
            "person": "identifier",
            "age": "quasi_identifier",
            "sex": "quasi_identifier",
            "illness": "sensitive",
        },
        "selection": {
            "target": "illness",
            "count": 1,
            "epsilon": 1,
            "domains": {
                "illness": {"values": ["flu", "cold", "gout", "none"]},
                "sex": {"values": ["f", "m"]},
                "age": {"bins": {"from": 10, "to": 90, "width": 20}},
            },
            "output": str(work / "selection"),
        },
        "ledger": {"path": str(work / "ledger"), "dataset": "people", "limit": "10"},
    }
    configuration = document_file(work, document)
    command = ("select", configuration, "--run-id", "night")

    def state(work: Path) -> State:
        # What is drawn differs each time.
        return {"files": files_of(work / "selection")}

    def sound(work: Path) -> None:
        budget = read_budget(FILES, str(work / "ledger" / "people"))
        spent = 0 if budget is None else budget.spent
        if budget is not None:
            assert spent == sum(Fraction(one.content["epsilon"]) for one in budget.entries)
        # Noise was drawn for what is anywhere, whole or not.
        drawn = [path for path in files_of(work) if path.endswith("selection.json")]
        assert not drawn or spent >= 1, drawn
        for path in files_of(work):
            if path != "people.parquet":
                assert b"planted person" not in (work / path).read_bytes(), path

    codes = (2, 3, 4, 5, 6)
    template = folder / "template"
    return finished(Command(work, template, command, state, sound, ((command,),), codes, disk=disk))


def union_scene(folder: Path, disk: Disk = SimulatedDisk) -> Command:
    """Return ``union`` of two releases."""
    work = folder / "work"
    coding = write_coding(work, {"k": 3})
    for seed, name in enumerate(("north", "south")):
        draw = np.random.default_rng(seed)
        table = pa.table(
            {
                "age": draw.integers(20, 30, 30),
                "sex": draw.choice(["female", "male"], 30),
                "illness": draw.choice(["flu", "gout"], 30),
            }
        )
        anonymize(work, name, table, coding)
    places = [path.parent for path in sorted(work.rglob("manifest.json"))]
    command = ("union", *places, "--out", work / "both", "--engine", "local", "--seed", "7")

    def state(work: Path) -> State:
        # The run has another name each time.
        release = release_of(work / "both")
        return {name: one for name, one in release.items() if name.startswith("data/")}

    return finished(
        Command(work, folder / "template", command, state, followed=((command,),), disk=disk)
    )


def clean_scene(folder: Path, disk: Disk = SimulatedDisk) -> Command:
    """Return ``clean`` after a run that was killed when it had set an earlier release aside."""
    run = scene(folder / "run", overwrite=True, disk=disk)
    work = run.folder
    aside = next(
        number
        for number, one in enumerate(run.operations)
        if one.verb in ("rename", "delete") and f"{one.path}/".startswith("release/")
    )
    run.lay_out()
    with disk(work).in_place() as simulated:
        for _ in range(9):
            # No later process has the number of the killed one.
            with simulated.process():
                pass
        call(simulated, run.run, Fault(aside, "after"))

    def state(work: Path) -> State:
        staged = [path for path in files_of(work) if ".anonspark-" in path]
        return {"release": release_of(work / "release"), "staged": staged}

    def sound(work: Path) -> None:
        assert release_of(work / "release") in ({}, run.before)

    template, command = folder / "template", run.clean
    made = Command(work, template, command, state, sound, ((command,),), disk=disk)
    assert made.look()["staged"]
    finished(made)
    assert made.after == {"release": run.before, "staged": []}
    return made


COMMANDS = {
    "clean": clean_scene,
    "ledger init": ledger_scene,
    "distribute": plan_scene,
    "select": selection_scene,
    "union": union_scene,
}
