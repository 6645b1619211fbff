"""A simulated disk: stops, refuses, delays or loses what a process does below a folder.

Files lie on the real disk, below one folder. While :meth:`SimulatedDisk.in_place` lasts, the
functions of Python through which everything reaches a disk are replaced there: nothing can go past
it but what pyarrow reads by itself. Each call is an :class:`Operation` of the simulated process to
which its thread belongs, and the process may have a :class:`Fault` at one of them. A process that
was stopped can do nothing more, whatever its ``finally`` clauses try, as after SIGKILL. Threads
that belong to no process, as that of a test, do as they like and are not counted.

    disk = SimulatedDisk(folder)
    with disk.in_place():
        with disk.process(Fault(17, "within")) as process, suppress(StoppedError):
            main(["run", ...])
        with disk.process() as again:
            main(["run", ..., "--resume"])
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import io
import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

import pyarrow as pa
import pytest

from anonspark.engine.local import staged_files
from anonspark.layers.publish import run_state
from anonspark.sharing.ledger import lock

STOPS = ("before", "after", "within")
"""Where a process is stopped; a write that it is stopped within has written its first half."""

REFUSALS = {
    "no space": errno.ENOSPC,
    "no permission": errno.EACCES,
    "exists": errno.EEXIST,
    "input/output": errno.EIO,
    "lost connection": errno.ENOTCONN,
    "stale handle": errno.ESTALE,
}
"""What an operation is refused with. Of them only the last four and no permission say nothing."""

OF_READING = ("no permission", "input/output", "lost connection", "stale handle")
"""The refusals that an operation can have which changes nothing."""

LOST = "lost"
"""The operation is refused, and so is all that the process asks for later."""

DONE_AND_REFUSED = "done and refused"
"""The operation is done, but its answer is lost: the process is told of an error."""

Losing = Literal["all", "contents", "drawn"]
"""What a power cut loses of what was not synced: all of it; the contents of files, which are zeros
then; or what is drawn, in which changes of different directories are in no order."""


class StoppedError(BaseException):
    """The process was stopped. No handler of exceptions is meant to see it."""


@dataclass(frozen=True)
class Operation:
    """What a process asks of the disk.

    Parameters
    ----------
    verb : str
        The function's name, or ``create``, ``write``, ``sync``, ``read``, ``look``.
    path : str
        Relative to the folder.
    changes : bool
        Whether it changes anything.
    """

    verb: str
    path: str
    changes: bool

    @property
    def faults(self) -> tuple[str, ...]:
        """What can happen to it and leaves another disk than what happens to others.

        A process that is stopped before an operation which only reads, or after one that changes
        something, leaves what one leaves that is stopped before the next change.
        """
        if not self.changes:
            return OF_READING
        half = ("within",) if self.verb == "write" else ()
        return ("before", *half, *REFUSALS, LOST, DONE_AND_REFUSED)

    @property
    def losses(self) -> tuple[Losing, ...]:
        """What a power cut before it can lose."""
        return get_args(Losing) if self.changes else ()


@dataclass(frozen=True)
class Fault:
    """What happens at an operation of a process.

    Parameters
    ----------
    at : int
        Number of the operation, from 0 on.
    kind : str
        One of :data:`STOPS` or :data:`REFUSALS`, :data:`LOST`, :data:`DONE_AND_REFUSED`, or
        ``delay``.
    """

    at: int
    kind: str


@dataclass(eq=False)
class Process:
    """A simulated process.

    Parameters
    ----------
    number : int
        Its id.
    fault : Fault or None
    before_each : callable or None
        Is called before each operation with its number, and may wait.
    """

    number: int
    fault: Fault | None = None
    before_each: Callable[[int, Operation], None] | None = None
    operations: list[Operation] = field(default_factory=list)
    is_stopped: bool = False
    has_ended: bool = False
    met: bool = False
    """Whether it came to its fault."""

    @property
    def changes(self) -> list[int]:
        """Return the numbers of the operations that change anything."""
        return [number for number, one in enumerate(self.operations) if one.changes]


_OF_THREAD = threading.local()


def current_process() -> Process | None:
    """Return the process that this thread belongs to."""
    return getattr(_OF_THREAD, "process", None)


class SimulatedDisk:
    """The files below a folder, and the simulated processes that use them.

    Parameters
    ----------
    folder : Path
        Exists.
    journals : bool
        Whether power cuts are possible: then everything that changes is noted.
    """

    operation = Operation

    def __init__(self, folder: Path, *, journals: bool = False) -> None:
        self.root = os.path.realpath(folder)
        self.processes: list[Process] = []
        self._boot = 1
        self._journal: _Journal | None = _Journal(self.root) if journals else None
        self._turn = threading.RLock()

    @contextmanager
    def process(
        self,
        fault: Fault | None = None,
        before_each: Callable[[int, Operation], None] | None = None,
    ) -> Iterator[Process]:
        """Let this thread, and those that it starts, belong to a new process until it ends."""
        process = Process(4_200_000 + len(self.processes), fault, before_each)
        self.processes.append(process)
        before = current_process()
        _OF_THREAD.process = process
        try:
            yield process
        finally:
            process.has_ended = True
            _OF_THREAD.process = before

    def staged(self) -> list[str]:
        """Return the names of staging directories in the folder."""
        return [one.name for one in Path(self.root).iterdir() if ".anonspark-" in one.name]

    def state(self) -> str:
        """Return a digest of everything that lies in the folder, and of how often it was started.

        A command that begins where two disks have the same state does the same on both of them.
        """
        found = hashlib.sha256(str((self._boot, self._names())).encode())
        for above, names, files in os.walk(self.root):
            names.sort()
            for path in (Path(above, name) for name in (*names, *sorted(files))):
                found.update(f"{path}\0{path.lstat().st_mode:o}\0".encode())
                if not path.is_dir():
                    found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()

    def _names(self) -> Sequence[str]:
        """Return what the folder does not show."""
        return ()

    def cut_power(self, losing: Losing = "all", random: Random | None = None) -> None:
        """Lose what was not synced since the disk is simulated. All processes have ended."""
        assert self._journal is not None
        for process in self.processes:
            process.is_stopped = process.has_ended = True
        self._boot += 1
        self._journal.lose(losing, random or Random(0))  # noqa: S311 - no secret
        self._journal = _Journal(self.root)

    @contextmanager
    def in_place(self) -> Iterator[SimulatedDisk]:
        """Replace the functions that reach the disk."""
        with pytest.MonkeyPatch.context() as patch:
            self._replace(patch)
            self._replace_processes(patch)
            self._stop_clock(patch)
            yield self

    def _point(
        self,
        verb: str,
        path: str,
        do: Callable[[], Any],
        *,
        changes: bool = True,
        half: Callable[[], Any] | None = None,
        note: Callable[[_Journal], Callable[[], None]] | None = None,
    ) -> Any:
        """Do an operation, or what a fault makes of it."""
        process = current_process()
        if process is None:
            return do()
        if process.is_stopped:
            raise StoppedError
        operation = self.operation(verb, path[len(self.root) + 1 :] or ".", changes)
        number = len(process.operations)
        process.operations.append(operation)
        if process.before_each is not None:
            process.before_each(number, operation)
            if process.is_stopped:
                raise StoppedError

        def done() -> Any:
            with self._turn:
                noted = note(self._journal) if note and self._journal else None
                found = do()
                if noted is not None:
                    noted()
                return found

        fault = process.fault
        if fault is None or number < fault.at:
            return done()
        if number > fault.at and fault.kind != LOST:
            return done()
        process.met = True
        if fault.kind == "delay":
            time.sleep(0.01)
            return done()
        if fault.kind in STOPS:
            process.is_stopped = True
            if fault.kind == "after":
                _lose(done())
            elif fault.kind == "within" and half is not None:
                half()
            raise StoppedError
        if fault.kind == DONE_AND_REFUSED:
            _lose(done())
        elif fault.kind == "no space" and half is not None:
            half()
        raise self._refusal(fault.kind, path)

    def _refusal(self, kind: str, path: str) -> Exception:
        """Return the error that an operation is refused with."""
        number = REFUSALS.get(kind, errno.EIO)
        return OSError(number, os.strerror(number), path)

    def _below(self, path: Any, directory: int | None = None) -> str | None:
        """Return the absolute path of what a call names, None where it is not below the folder."""
        if isinstance(path, int):
            text = _path_of(path)
        else:
            text = os.fsdecode(path)
            if not text.startswith("/"):
                above = Path.cwd() if directory is None else _path_of(directory)
                text = f"{above}/{text}"
        if text != self.root and not text.startswith(f"{self.root}/"):
            return None
        return text

    def _replace(self, patch: pytest.MonkeyPatch) -> None:
        real = {name: getattr(os, name) for name in (*_LOOKING, *_CHANGING, "open", "fsync")}
        real_open = io.open

        def looking(name: str) -> Callable[..., Any]:
            def call(path: Any = ".", *given: Any, **named: Any) -> Any:
                below = self._below(path, named.get("dir_fd"))
                if below is None:
                    return real[name](path, *given, **named)
                return self._point(
                    "look", below, lambda: real[name](path, *given, **named), changes=False
                )

            return call

        def changing(name: str) -> Callable[..., Any]:
            def call(path: Any, *given: Any, **named: Any) -> Any:
                below = self._below(path, named.get("dir_fd") or named.get("src_dir_fd"))
                if below is None:
                    return real[name](path, *given, **named)
                target = self._below(given[0]) if name in _OF_TWO else None
                return self._point(
                    name,
                    below,
                    lambda: real[name](path, *given, **named),
                    note=lambda journal: journal.changing(name, below, target),
                )

            return call

        def opening(path: Any, flags: int, *given: Any, **named: Any) -> Any:
            below = self._below(path, named.get("dir_fd"))
            if below is None:
                return real["open"](path, flags, *given, **named)
            changes = bool(flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC))
            return self._point(
                "create" if changes else "look",
                below,
                lambda: real["open"](path, flags, *given, **named),
                changes=changes,
                note=lambda journal: journal.changing("create" if changes else "", below, None),
            )

        def syncing(fd: Any) -> None:
            number = fd if isinstance(fd, int) else fd.fileno()
            below = self._below(number)
            if below is None:
                real["fsync"](fd)
                return
            # The real disk is not waited for.
            self._point(
                "sync",
                below,
                lambda: None,
                note=lambda journal: journal.changing("sync", below, None),
            )

        def opening_file(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            below = None if opener is not None else self._below(file)
            if below is None:
                return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            plain = mode.replace("b", "").replace("t", "")
            if plain == "r":
                if isinstance(file, int):
                    return real_open(file, mode, buffering, encoding, errors, newline, closefd)
                return self._point(
                    "read",
                    below,
                    lambda: real_open(file, mode, buffering, encoding, errors, newline, closefd),
                    changes=False,
                )
            if isinstance(file, int):
                raw = _WrittenFile(self, below, file, plain, closefd)
            else:
                raw = self._point(
                    "create",
                    below,
                    lambda: _WrittenFile(self, below, file, plain),
                    note=lambda journal: journal.changing("create", below, None),
                )
            if buffering == 0:
                return raw
            binary = io.BufferedWriter(raw)
            return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

        for name in _LOOKING:
            patch.setattr(os, name, looking(name))
        for name in _CHANGING:
            patch.setattr(os, name, changing(name))
        patch.setattr(os, "open", opening)
        patch.setattr(os, "fsync", syncing)
        patch.setattr(io, "open", opening_file)
        patch.setattr(builtins, "open", opening_file)
        # Pyarrow opens by itself what it has the name of.
        for suffix, start in list(staged_files._OPEN.items()):
            patch.setitem(staged_files._OPEN, suffix, _through_python(start))

    def _replace_processes(self, patch: pytest.MonkeyPatch) -> None:
        real_start = threading.Thread.start

        def starting(thread: threading.Thread) -> None:
            process, work = current_process(), thread.run

            def belonging() -> None:
                _OF_THREAD.process = process
                work()

            thread.run = belonging  # type: ignore[method-assign]
            real_start(thread)

        patch.setattr(threading.Thread, "start", starting)
        real_identity, real_id = run_state.process_identity, os.getpid

        def process_id() -> int:
            process = current_process()
            return real_id() if process is None else process.number

        def identity(number: int) -> str | None:
            if number < 4_200_000:
                return real_identity(number)
            there = self.processes[number - 4_200_000 :][:1]
            works = [one for one in there if not (one.is_stopped or one.has_ended)]
            return f"{self._boot} {number} 1" if works else None

        patch.setattr(os, "getpid", process_id)
        for module in (run_state, lock):
            patch.setattr(module, "process_identity", identity)

    def _stop_clock(self, patch: pytest.MonkeyPatch) -> None:
        """Let no time pass, and draw ids of claims by the process: so that states can be equal."""
        for name, module in list(sys.modules.items()):
            if name.startswith("anonspark.") and getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", _StoppedClock)
        drawn: dict[int, Random] = {}
        real = uuid.uuid4

        def drawing() -> uuid.UUID:
            process = current_process()
            if process is None:
                return real()
            draw = drawn.setdefault(process.number, Random(process.number))  # noqa: S311
            return uuid.UUID(int=draw.getrandbits(128), version=4)

        patch.setattr(uuid, "uuid4", drawing)


class _AsDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _StoppedClock(datetime, metaclass=_AsDatetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, zone: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """Return the same moment each time."""
        return datetime(2026, 1, 1, tzinfo=zone)


_LOOKING = ("stat", "lstat", "scandir", "listdir", "readlink", "access")
_CHANGING = (
    *("unlink", "remove", "rmdir", "mkdir", "chmod", "utime", "truncate"),
    *("rename", "replace", "link", "symlink"),
)
_OF_TWO = ("rename", "replace", "link")

_READLINK = os.readlink


def _lose(answer: Any) -> None:
    """Close what was opened for a caller who does not learn of it."""
    if hasattr(answer, "close"):
        answer.close()


def _path_of(descriptor: int) -> str:
    return _READLINK(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")


class _WrittenFile(io.FileIO):
    """A file whose writes are operations."""

    def __init__(
        self, disk: SimulatedDisk, path: str, file: Any, mode: str, closefd: bool = True
    ) -> None:
        super().__init__(file, mode, closefd=closefd)
        self._disk, self._path = disk, path

    def write(self, content: Any) -> int:
        """Write, or a part of it."""
        content = bytes(content)
        written: int = self._disk._point(
            "write",
            self._path,
            lambda: super(_WrittenFile, self).write(content),
            half=lambda: super(_WrittenFile, self).write(content[: len(content) // 2]),
        )
        return written


def _through_python(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return what opens a writer of pyarrow on a file of Python."""

    class Writer:
        def __init__(self, path: str, schema: pa.Schema) -> None:
            self._file = Path(path).open("wb")  # noqa: SIM115 - closed with the writer
            self._writer = start(self._file, schema)

        def write_table(self, table: pa.Table) -> None:
            self._writer.write_table(table)

        def close(self) -> None:
            try:
                self._writer.close()
            finally:
                self._file.close()

    return Writer


@dataclass(eq=False)
class _Node:
    """A file or directory, whatever its names are."""

    is_directory: bool
    mode: int
    entries: dict[str, _Node] = field(default_factory=dict)
    synced: bytes | None = None
    """What is on the disk for sure. None where nothing is."""
    content: bytes | None = None
    """What is there without a power cut, for a file that lost its last name."""


@dataclass(eq=False)
class _Change:
    """A change of names in one or two directories.

    Parameters
    ----------
    removed, added : list of tuple
        Directory, name and, where it is added, what has the name.
    """

    removed: list[tuple[_Node, str]] = field(default_factory=list)
    added: list[tuple[_Node, str, _Node]] = field(default_factory=list)
    is_synced: bool = False

    @property
    def directories(self) -> set[_Node]:
        return {one[0] for one in (*self.removed, *self.added)}


class _Journal:
    """All changes below a folder, in memory, beginning with what lies there."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._changes: list[_Change] = []
        self._top = self._read(Path(root))
        self._before = self._names(self._top)

    def _read(self, path: Path) -> _Node:
        mode = path.lstat().st_mode & 0o7777
        if not path.is_dir():
            return _Node(False, mode, synced=path.read_bytes())
        entries = {one.name: self._read(one) for one in path.iterdir()}
        return _Node(True, mode, entries)

    def _names(self, node: _Node) -> dict[_Node, dict[str, _Node]]:
        found = {node: dict(node.entries)}
        for one in node.entries.values():
            if one.is_directory:
                found |= self._names(one)
        return found

    def _at(self, path: str) -> tuple[_Node, str, _Node | None]:
        """Return the directory of a path, its name there, and what has the name."""
        node = self._top
        *above, name = os.path.relpath(path, self._root).split("/")
        for one in above:
            node = node.entries[one]
        return node, name, self._top if name == "." else node.entries.get(name)

    def changing(self, verb: str, path: str, target: str | None) -> Callable[[], None]:
        """Return what notes a change after it was made, with what only is there before."""
        process, _OF_THREAD.process = current_process(), None
        try:
            return self._changing(verb, path, target)
        finally:
            _OF_THREAD.process = process

    def _changing(self, verb: str, path: str, target: str | None) -> Callable[[], None]:
        for one in (path, target):
            try:
                node = self._at(one)[2] if one else None
            except KeyError:  # no directory is there
                node = None
            if node is not None and not node.is_directory:
                node.content = Path(one or "").read_bytes()

        def note() -> None:
            process, _OF_THREAD.process = current_process(), None
            try:
                self._note(verb, path, target)
            finally:
                _OF_THREAD.process = process

        return note

    def _note(self, verb: str, path: str, target: str | None) -> None:
        directory, name, node = self._at(path)
        change = _Change()
        if verb == "sync":
            assert node is not None
            if node.is_directory:
                self._sync({node}, len(self._changes))
            else:
                node.synced = Path(path).read_bytes()
        elif verb in ("create", "mkdir"):
            if node is None:
                mode = Path(path).lstat().st_mode & 0o7777
                change.added.append((directory, name, _Node(verb == "mkdir", mode)))
                self._before.setdefault(change.added[0][2], {})
        elif verb in ("unlink", "remove", "rmdir"):
            change.removed.append((directory, name))
        elif verb in ("rename", "replace", "link"):
            assert node is not None
            new, new_name, _ = self._at(target or "")
            if verb != "link":
                change.removed.append((directory, name))
            change.added.append((new, new_name, node))
        elif verb == "chmod":
            assert node is not None
            node.mode = Path(path).lstat().st_mode & 0o7777
        if change.directories:
            _apply(change)
            self._changes.append(change)

    def _sync(self, directories: set[_Node], end: int) -> None:
        """Note what must be on the disk if all changes of some directories are."""
        for place in reversed(range(end)):
            change = self._changes[place]
            if change.directories & directories:
                change.is_synced = True
                directories = directories | change.directories

    def lose(self, losing: Losing, random: Random) -> None:
        """Make the folder what is left of it."""
        contents = {
            node: (Path(path).read_bytes() if Path(path).exists() else node.content)
            for path, node in self._files(self._top, self._root)
        }
        for node, entries in self._before.items():
            node.entries = dict(entries)
        blocked: set[_Node] = set()
        for change in self._changes:
            lost = losing == "all" or (losing == "drawn" and random.random() < 0.1)
            if not change.is_synced and (lost or change.directories & blocked):
                blocked |= change.directories
                continue
            _apply(change)
        for path in Path(self._root).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._write(self._top, Path(self._root), contents, losing, random)

    def _files(self, node: _Node, path: str) -> Iterator[tuple[str, _Node]]:
        for name, one in node.entries.items():
            if one.is_directory:
                yield from self._files(one, f"{path}/{name}")
            else:
                yield f"{path}/{name}", one

    def _write(
        self,
        node: _Node,
        path: Path,
        contents: dict[_Node, bytes | None],
        losing: Losing,
        random: Random,
    ) -> None:
        for name, one in node.entries.items():
            inside = path / name
            if one.is_directory:
                inside.mkdir()
                self._write(one, inside, contents, losing, random)
            else:
                whole = contents.get(one, one.content) or b""
                content = one.synced
                if content is None or (content != whole and losing == "drawn"):
                    zeros = bytes(len(whole))
                    choices = (content or b"", zeros, whole[: len(whole) // 2], whole)
                    place = {"all": 0, "contents": 1}.get(losing)
                    content = choices[random.randrange(4) if place is None else place]
                inside.write_bytes(content)
            inside.chmod(one.mode)


def _apply(change: _Change) -> None:
    for directory, name in change.removed:
        directory.entries.pop(name, None)
    for directory, name, node in change.added:
        directory.entries[name] = node
