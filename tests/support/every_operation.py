"""Commands on a tiny table that are disturbed at one operation, and what a scheduler does then."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import pytest
from helpers import configuration_file, write_table
from simulated_files import LOST, Fault, Losing, Operation, Process, SimulatedDisk, StoppedError

from anonspark.cli.application import main

T = TypeVar("T")

RUN_ID = "night"

_OF_TIME = ("started", "seconds", "attempt", "finished")
_WITH_TIMES = ("manifest.json", "metrics/summary/part-00000.parquet", "report.html")


@dataclass(frozen=True)
class Ended:
    """How a command ended. Without a code where it was stopped."""

    code: int | None
    err: str
    process: Process


def call(
    disk: SimulatedDisk,
    arguments: Sequence[object],
    fault: Fault | None = None,
    before_each: Callable[..., None] | None = None,
) -> Ended:
    """Call a command as a simulated process."""
    out, err = StringIO(), StringIO()
    logger = logging.getLogger("anonspark")
    handlers, level = logger.handlers, logger.level
    code: int | None = None
    with disk.process(fault, before_each) as process, redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(one) for one in arguments])
        except StoppedError:
            pass
        finally:
            logger.handlers = handlers
            logger.setLevel(level)
    # Without warnings.
    said = err.getvalue()[err.getvalue().find("error: ") :] if code else ""
    return Ended(None if process.is_stopped else code, said, process)


def points_of(
    operations: Sequence[Operation], followed: Sequence[T], random: Random
) -> list[tuple[Fault, T, Losing | None]]:
    """Return all faults of all operations, and power cuts before each change.

    With each goes one of the ways in which a scheduler follows it, which is drawn.
    """
    found: list[tuple[Fault, T, Losing | None]] = []
    last = max(number for number, operation in enumerate(operations) if operation.changes)
    for number, operation in enumerate(operations):
        faults: list[tuple[str, Losing | None]] = [(kind, None) for kind in operation.faults]
        faults += [("before", losing) for losing in operation.losses]
        faults += [("after", None)] if number == last else []
        found += [(Fault(number, kind), random.choice(followed), losing) for kind, losing in faults]
    return found


def disturb_at(
    operations: Sequence[Operation],
    points: Sequence[tuple[Fault, T, Losing | None]],
    disturb: Callable[..., bool],
    random: Random,
    drawn: int | None = None,
) -> str:
    """Check that all points end well, or some that are drawn. Return their numbers.

    ``disturb`` returns whether the fault was met.
    """
    met, broken, among = 0, [], len(points)
    points = points if drawn is None else random.sample(points, drawn)
    for fault, following, losing in points:
        try:
            met += disturb(fault, following, losing, seed=fault.at)
        except AssertionError as error:
            broken.append((fault, following, losing, operations[fault.at], str(error)[:500]))
    assert not broken, broken[:20]
    assert met >= 0.8 * len(points)
    return f"{len(points):,} of {among:,} points of {len(operations):,} operations"


Pair = tuple[int, int | None]
"""Operations of two commands, see :func:`two_at_once`."""


def two_at_once(
    disk: SimulatedDisk, first: Sequence[object], second: Sequence[object], pair: Pair
) -> tuple[Ended, Ended | None]:
    """Call a command to one of its operations, another one to one of its own, then each to its end.

    The second comes to its end at once if its operation is None, else after the first, and what it
    says then is not returned. It is None where the first came to no such operation.
    """
    at, until = pair
    ended: list[Ended] = []
    waits, goes_on = threading.Event(), threading.Event()

    def wait_there(number: int, _: Operation) -> None:
        if number == until and not waits.is_set():
            waits.set()
            goes_on.wait()

    def call_second() -> None:
        try:
            ended.append(call(disk, second, before_each=wait_there))
        finally:
            waits.set()

    other = threading.Thread(target=call_second)

    def before_each(number: int, _: Operation) -> None:
        if number == at and other.ident is None:
            other.start()
            waits.wait()

    # Each restores what it found, in another order than they began.
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        patch.setattr(signal, "signal", _of_main_thread(signal.signal))
        found = call(disk, first, before_each=before_each)
        goes_on.set()
        if other.ident is not None:
            other.join()
    return found, ended[0] if ended else None


def ends_of(operations: Sequence[Operation]) -> list[Pair]:
    """Return each operation of a first command, before which a second one comes to its end."""
    return [(at, None) for at in range(len(operations))]


def pairs_of_claims(operations: Sequence[Operation]) -> list[Pair]:
    """Return all pairs of operations by which a command claims something, or gives it up.

    They are those that give something its name or take it, where more than one command looks.
    """
    verbs = ("link", "rename", "replace", "put", "copy", "delete", "unlink", "rmdir")
    own = re.compile(r"\.crc$|/(?:rounds|(?:records|written|release)-\d+|replaced)/")
    claims = [
        number
        for number, one in enumerate(operations)
        if one.changes and one.verb in verbs and not own.search(one.path)
    ]
    return [(at, until) for at in claims for until in claims]


def _of_main_thread(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return what sets handlers of signals where Python allows it, which is in no other thread."""

    def setting(number: int, handler: Any) -> Any:
        is_main = threading.current_thread() is threading.main_thread()
        return real(number, handler) if is_main else signal.getsignal(number)

    return setting


@dataclass(frozen=True)
class Scene:
    """A run, and what lies there before and after it.

    Parameters
    ----------
    folder : Path
        In which the run works. Laid out anew for each point.
    template : Path
        What lies there before.
    options : tuple of str
        Of the command.
    disk : callable
        Returns the disk for a folder.
    before, after : dict
        The release before and after an undisturbed run, see :func:`release_of`.
    operations : list
        Of the undisturbed run.
    followed : set
        What disturbed runs left, with how each was followed up: once is enough.
    """

    folder: Path
    template: Path
    options: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    operations: list[Any] = field(default_factory=list)
    disk: Callable[..., SimulatedDisk] = SimulatedDisk
    followed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def configuration(self) -> Path:
        return self.folder / "configuration.yaml"

    @property
    def run(self) -> tuple[object, ...]:
        """The arguments of the command."""
        return ("run", self.configuration, "--run-id", RUN_ID, "--no-progress", *self.options)

    @property
    def clean(self) -> tuple[object, ...]:
        return ("clean", self.configuration, "--no-progress")

    def lay_out(self) -> None:
        """Make the folder what it was before."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)

    def release(self) -> dict[str, Any]:
        return release_of(self.folder / "release")

    def strangers(self) -> list[str]:
        """Return what lies in the folder outside of staging and is not expected there."""
        return [
            path
            for path in files_of(self.folder)
            if not path.startswith(("release/", f".release.anonspark-{RUN_ID}/", "history/"))
            and path not in ("input.parquet", "configuration.yaml")
        ]

    def staged(self) -> list[str]:
        return sorted(one.name for one in self.folder.iterdir() if ".anonspark-" in one.name)


def scene(
    folder: Path,
    *options: str,
    overwrite: bool = False,
    history: bool = False,
    disk: Callable[..., SimulatedDisk] = SimulatedDisk,
) -> Scene:
    """Lay out a tiny table, and run undisturbed once."""
    work, template = folder / "work", folder / "template"
    work.mkdir(parents=True)
    random = np.random.default_rng(7)
    columns = {
        "age": random.integers(0, 100, 60),
        "disease": [f"Kryptonitis {number}" for number in random.integers(0, 9, 60)],
    }
    write_table(work / "input.parquet", columns)
    sections: dict[str, Any] = {
        "attributes": {"age": "quasi_identifier", "disease": "sensitive"},
        "model": {"name": "su-mondrian", "rho": 2},
        "execution": {"engine": "local", "seed": 7},
        "output": {"mode": "overwrite" if overwrite else "error"},
    }
    if history:
        sections["metrics"] = {"append_to": str(work / "history")}
    if overwrite:
        configured = configuration_file(work, **sections | {"privacy": {"k": 7}})
        with SimulatedDisk(work).in_place() as there:
            earlier = call(there, ("run", configured, "--run-id", "before", "--no-progress"))
        assert earlier.code == 0, earlier.err
    configuration_file(work, **sections)
    shutil.copytree(work, template)
    found = Scene(work, template, options, release_of(work / "release"), disk=disk)
    with disk(work).in_place() as simulated:
        ended = call(simulated, found.run)
    assert ended.code == 0, ended.err
    found.after.update(found.release())
    found.others.update(history_of(work))
    found.operations.extend(ended.process.operations)
    assert found.after != found.before
    return found


def files_of(folder: Path) -> list[str]:
    return sorted(
        os.path.relpath(Path(directory, name), folder)
        for directory, _, names in os.walk(folder)
        for name in names
    )


def release_of(release: Path) -> dict[str, Any]:
    """Return all files of a release but for its times. Nothing where it has no manifest.

    Each is compared with what the manifest says, independently of the package.
    """
    if not (release / "manifest.json").exists():
        return {}
    manifest = json.loads((release / "manifest.json").read_text())
    found: dict[str, Any] = {}
    for name in files_of(release):
        # Of a release whose staging was not tidied up yet, and sums that Hadoop checks.
        if name.startswith(".anonspark-") or name.endswith(".crc"):
            continue
        found[name] = None if name in _WITH_TIMES else (release / name).read_bytes()
    for one in list(manifest["files"]):
        content = (release / one["path"]).read_bytes()
        if one["path"] == "report.html" and hashlib.sha256(content).hexdigest() != one["sha256"]:
            # Replaced before its manifest is: the command report is to be called again.
            manifest["files"].remove(one)
            del found["report.html"]
            continue
        assert hashlib.sha256(content).hexdigest() == one["sha256"], one["path"]
        assert one["path"] in found
        if one["path"] in _WITH_TIMES:
            one.update(sha256=None, bytes=None)
    listed = {one["path"] for one in manifest["files"]}
    if "report.html" not in listed:
        found.pop("report.html", None)
    # A signature covers times.
    found |= {name: None for name in found if name == "manifest.json.sig"}
    assert listed == set(found) - {"manifest.json", "manifest.json.sig"}
    for part in (manifest, manifest["summary"]):
        for key in _OF_TIME:
            part.pop(key, None)
    found["manifest.json"] = manifest
    return found


def history_of(folder: Path) -> dict[str, Any]:
    """Return the files of the tables of all runs, without contents that hold a time."""
    return {
        name: None if "/summary/" in f"/{name}" else (folder / name).read_bytes()
        for name in files_of(folder)
        if name.startswith("history/")
    }


FOLLOWING = ("again", "resume", "clean")


def disturbed(
    made: Scene, fault: Fault, following: str, losing: Losing | None = None, seed: int = 0
) -> bool:
    """Run with a fault, follow it up, and check everything. Return whether it came to the fault."""
    made.lay_out()
    disk = made.disk(made.folder, journals=losing is not None)
    with disk.in_place():
        first = call(disk, made.run, fault)
        if not first.process.met:
            return False
        if losing is not None:
            disk.cut_power(losing, Random(seed))  # noqa: S311 - no secret
        _check_first(made, first, fault)
        if (left := (disk.state(), following)) in made.followed:
            return True
        if following == "clean":
            cleaned = call(disk, made.clean)
            assert cleaned.code == 0, cleaned.err
            assert not disk.staged()
            there = made.release()
            assert there in (made.before, made.after) or is_without_report(there, made.after)
            if not made.release():
                assert not (made.folder / "release").exists()
        more = ("--resume",) if following == "resume" else ()
        again = call(disk, (*made.run, *more))
        if again.code and following == "again":
            # Half a release is in its place, and the message says what to do.
            assert "clean" in again.err, again.err
            cleaned = call(disk, made.clean)
            assert cleaned.code == 0, cleaned.err
            again = call(disk, made.run)
        assert again.code == 0, again.err
        assert made.release() == made.after
        cleaned = call(disk, made.clean)
        assert cleaned.code == 0, cleaned.err
        assert not disk.staged()
        assert not made.strangers(), made.strangers()
        assert history_of(made.folder) == made.others
    made.followed.add(left)
    return True


def _check_first(made: Scene, first: Ended, fault: Fault) -> None:
    """Check what a disturbed run left."""
    assert not made.strangers(), made.strangers()
    there = made.release()
    if there:
        assert there in (made.before, made.after) or is_without_report(there, made.after)
    if first.code == 0:
        assert there == made.after
    elif first.code is not None:
        assert first.code in (2, 3, 5, 6), (first.code, first.err)
        assert first.err.startswith("error: "), first.err
        if there == made.before:
            assert "complete" not in first.err, first.err
        elif fault.kind == LOST:
            # Who cannot reach the disk any more does not know what is there.
            assert re.search("is complete|run anonspark clean", first.err), first.err
        else:
            assert "is complete" in first.err, first.err
    assert fault.kind == "delay" or first.code != 1


def is_without_report(there: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether a release is another one that has no report yet."""

    def plain(release: dict[str, Any]) -> dict[str, Any]:
        rest = {name: one for name, one in release.items() if name != "report.html"}
        files = [one for one in rest["manifest.json"]["files"] if one["path"] != "report.html"]
        return rest | {"manifest.json": rest["manifest.json"] | {"files": files}}

    return "report.html" in after and plain(there) == plain(after)
