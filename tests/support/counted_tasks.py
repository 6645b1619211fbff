"""Commands on Spark of which tasks are disturbed: each third one of each stage, when it runs first.

A plugin of Spark (``TaskFaults.scala``) notes each attempt of a task in the file ``attempts`` of a
folder, and reads in the file ``wanted`` there which tasks are disturbed, and how:

- ``middle``: it fails after the first rows that our function returned (``faulty_daemon.py``);
- ``late``: it fails after everything is done, its output committed and its shuffle files written;
- ``lost``: its executor ends then, with all that it held for later stages;
- ``copied``: it waits at its start until Spark has started a copy, and both work side by side;
- ``copied late``: it waits when everything is done until the copy has done everything, too, or for
  two seconds.

Run as a program, with a JSON document of :class:`Wanted` as its argument, this is the driver: it
writes what it found into ``found.json`` of the folder. A disturbed task is a file in ``met``.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from every_operation import files_of, release_of
from helpers import document_file, write_table

from anonspark.cli.application import main
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.session import open_session
from anonspark.sharing.ledger.chain import read_key
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.ledger.ledger import open_ledger

RUN_ID = "night"


@dataclass(frozen=True)
class Wanted:
    """What to go through: of a command so many points that a seed draws, or all."""

    folder: str
    command: str
    kinds: tuple[str, ...]
    drawn: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Scene:
    """A command, what lies there before it, and what it publishes."""

    folder: Path
    command: tuple[object, ...]
    published: Callable[[Path], Mapping[str, Any]]

    @property
    def template(self) -> Path:
        return self.folder.with_name("template")

    def lay_out(self) -> None:
        """Make the folder what it was before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)


def people(count: int) -> pa.Table:
    """Return people, whose values end a task's order of work in more than one way."""
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "person": [f"planted person {number:03}" for number in range(count)],
            "age": draw.integers(18, 90, count),
            "gain": np.where(draw.random(count) < 0.5, 0, draw.integers(1, 900, count)),
            "sex": draw.choice(["f", "m"], count),
            "illness": draw.choice(["flu", "cold", "gout", "none"], count),
        }
    )


HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [20]},
    "gain": {"intervals": [300]},
    "sex": {"prefix": [1]},
}

# Each node of the lattice costs jobs: two are left.
SEARCHED_ON_THE_CLUSTER = {
    "name": "full-domain",
    "driver_tuples": 1,
    "minimum_levels": {"age": 1, "gain": 1},
}


def base(work: Path, model: Mapping[str, Any]) -> dict[str, Any]:
    """Write a table in three files, and return the configuration of a run."""
    table = people(90)
    for number in range(3):
        write_table(work / "people" / f"part-{number}.parquet", table.slice(number * 30, 30))
    rules = HIERARCHIES if model["name"] == "full-domain" else dict.fromkeys(HIERARCHIES)
    quasi_identifiers = {
        name: {"role": "quasi_identifier", "hierarchy": rule} for name, rule in rules.items()
    }
    return {
        "input": {"path": str(work / "people")},
        "attributes": {"person": "identifier", **quasi_identifiers, "illness": "sensitive"},
        "privacy": {"k": 4},
        "model": dict(model),
        "execution": {"seed": 2**40, "engine": "spark", "task_rows": 30},
    }


def run_scene(folder: Path, model: Mapping[str, Any]) -> Scene:
    """Return ``run`` with a model."""
    work = folder / "work"
    document = base(work, model) | {"output": {"path": str(work / "release")}}
    configuration = document_file(work, document)
    command = ("run", configuration, "--run-id", RUN_ID, "--no-progress")
    return Scene(work, command, lambda work: {"release": release_of(work / "release")})


def plan_scene(folder: Path) -> Scene:
    """Return ``distribute`` of two releases with a ledger."""
    work = folder / "work"
    recipients = {"labour": ["age", "illness"], "press": ["sex", "gain"]}
    document = {
        "base": base(work, {"name": "smondrian"}),
        "subject": "person",
        "output": str(work / "releases"),
        "ledger": {"path": str(work / "ledger"), "key_file": str(work / "key")},
        "recipients": {
            name: {"approved": "yes", "columns": columns} for name, columns in recipients.items()
        },
    }
    plan = document_file(work, document, "plan.yaml")
    made = ("ledger", "init", work / "ledger", "--key-file", work / "key", "--subject", "person")
    assert main([str(one) for one in made]) == 0

    def published(work: Path) -> Mapping[str, Any]:
        engine = LocalEngine()
        ledger = open_ledger(engine.files, str(work / "ledger"), read_key(str(work / "key")))
        coalitions = required_coalitions(ledger)
        found = check_ledger(engine, ledger, coalitions, demand_of(ledger), with_files=True)
        assert found.problems == [], found.problems
        assert {*ledger.releases} == {f"{name}-{RUN_ID}" for name in recipients}
        events = [one.type for one in ledger.events.events]
        releases = {name: release_of(work / "releases" / name) for name in recipients}
        return releases | {"events": events}

    return Scene(work, ("distribute", plan, "--run-id", RUN_ID, "--no-progress"), published)


SCENES: dict[str, Callable[[Path], Scene]] = {
    "su-mondrian": lambda folder: run_scene(folder, {"name": "su-mondrian", "rho": 2}),
    "smondrian": lambda folder: run_scene(folder, {"name": "smondrian"}),
    "full-domain": lambda folder: run_scene(folder, SEARCHED_ON_THE_CLUSTER),
    "distribute": plan_scene,
}


@dataclass(frozen=True)
class Driver:
    """Carries a command out in a session, with faults."""

    folder: Path

    def carry_out(self, scene: Scene, kind: str = "", number: int = 0) -> list[tuple[int, int]]:
        """Carry a command out, with a fault of each third task of each stage when it runs first.

        Returns
        -------
        list of tuple of int and int
            Stage and number of the task of each attempt.
        """
        scene.lay_out()
        shutil.rmtree(self.folder / "met", ignore_errors=True)
        (self.folder / "met").mkdir()
        (self.folder / "attempts").write_text("\n")
        (self.folder / "wanted").write_text(f"{number} {kind}")
        code = main([str(one) for one in scene.command])
        assert code == 0, code
        lines = (self.folder / "attempts").read_text().split("\n")
        return [(int(one[0]), int(one[1])) for one in map(str.split, lines) if one]


def go_through(driver: Driver, wanted: Wanted) -> dict[str, Any]:
    """Carry a command out with each fault, and return what was counted and what broke."""
    folder = driver.folder / "scene"
    (folder / "work").mkdir(parents=True)
    scene = SCENES[wanted.command](folder)
    shutil.copytree(scene.folder, scene.template)
    tasks = {*driver.carry_out(scene)}
    expected, there = scene.published(scene.folder), files_of(scene.folder)
    # Of each stage the first, fourth and so on, the second, and the third.
    points = [(kind, number) for kind in wanted.kinds for number in range(3)]
    if wanted.drawn is not None:
        points = Random(wanted.seed).sample(points, min(wanted.drawn, len(points)))  # noqa: S311
    found: dict[str, Any] = {"stages": len({stage for stage, _ in tasks}), "tasks": len(tasks)}
    found |= {"points": {}, "broken": []}
    for kind, number in points:
        start = time.monotonic()
        try:
            attempts = driver.carry_out(scene, kind, number)
            assert scene.published(scene.folder) == expected, "another release"
            left = sorted({*files_of(scene.folder)} ^ {*there})
            assert not left, left
        except Exception as error:  # noqa: BLE001 - all of them are listed
            found["broken"].append((kind, number, f"{type(error).__name__}: {error}"[:500]))
            continue
        found["points"][f"{kind} {number}"] = {
            "wanted": len({one for one in attempts if one[1] % 3 == number}),
            "disturbed": len(list((driver.folder / "met").iterdir())),
            "more attempts": len(attempts) - len(tasks),
            "seconds": round(time.monotonic() - start, 1),
        }
    return found


if __name__ == "__main__":
    wanted = Wanted(**json.loads(sys.argv[1]))
    folder = Path(wanted.folder)
    (folder / "wanted").write_text("0 ")
    (folder / "met").mkdir()
    with open_session():
        found = go_through(Driver(folder), wanted)
    (folder / "found.json").write_text(json.dumps(found))
