"""A simulated object store: requests for whole objects, no renames, no directories, lists behind.

What is an address of the store is one below a folder of the real disk, where objects are files. The
commands have the engine without Java, but what they do with paths goes through the class for
Hadoop's file systems, below which is not Hadoop but what it does with S3: it copies and deletes to
rename, and puts an object whose name ends with a slash for a directory. Each request is an
operation of a simulated process, see :mod:`simulated_files`.

    store = SimulatedStore(folder, behind=20)
    with store.in_place(), store.process(Fault(17, "lost connection")):
        main(["run", ...])
"""

# The names are those of Hadoop.
# ruff: noqa: N802, N815

from __future__ import annotations

import errno
import fnmatch
import hashlib
import io
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from simulated_files import DONE_AND_REFUSED, LOST, Losing, Operation, SimulatedDisk

from anonspark.engine.data_files import DataFile
from anonspark.engine.files import PublishedFile
from anonspark.engine.local import engine as local_engine
from anonspark.engine.local import staged_files, writing
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.table import LocalTable
from anonspark.engine.spark import filesystem
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.tasks import Batches

BUCKET = "s3a://bucket"

REFUSALS = {
    "slow down": "AWSServiceThrottledException: Please reduce your request rate (503)",
    "lost connection": "AWSClientIOException: Unable to execute HTTP request",
    "no permission": "java.nio.file.AccessDeniedException: Forbidden (403)",
}

_PRECONDITION = "RemoteFileChangedException: At least one of the pre-conditions failed (412)"


class StoreOperation(Operation):
    """A request."""

    @property
    def losses(self) -> tuple[Losing, ...]:
        """A store has no power cuts."""
        return ()

    @property
    def faults(self) -> tuple[str, ...]:
        """What can happen to it."""
        if not self.changes:
            return tuple(REFUSALS)
        half = ("within",) if self.verb == "delete" else ()
        return ("before", *half, *REFUSALS, LOST, DONE_AND_REFUSED)


class SimulatedStore(SimulatedDisk):
    """The objects below a folder, and the simulated processes that use them.

    Parameters
    ----------
    folder : Path
        Whose files are objects.
    behind : int
        After so many more requests a list shows what was put or deleted.
    """

    operation = StoreOperation

    def __init__(self, folder: Path, *, journals: bool = False, behind: int = 0) -> None:
        assert not journals, "a store has no power cuts"
        super().__init__(folder)
        self.behind = behind
        self._requests = 0
        self._changes: list[tuple[int, str, bool]] = []
        """Request, key, and whether it was there before."""
        self._keys = {f"{above}/{name}" for above, _, names in os.walk(self.root) for name in names}
        self.sizes = {key: Path(key).stat().st_size for key in self._keys}

    def _refusal(self, kind: str, path: str) -> Exception:
        return Py4JError(f"{REFUSALS.get(kind, REFUSALS['lost connection'])} at {path}")

    def _request(self, verb: str, key: str, do: Callable[[], Any], **more: Any) -> Any:
        if not f"{key}/".startswith(f"{self.root}/"):
            # There is nothing of ours.
            return do()
        self._requests += 1
        return self._point(verb, key, do, **more)

    def _change(self, key: str, is_there: bool) -> None:
        if (key in self._keys) != is_there:
            self._changes.append((self._requests, key, not is_there))
        (self._keys.add if is_there else self._keys.discard)(key)

    def head(self, path: str) -> bool:
        """Return whether an object is there."""
        found: bool = self._request("head", path, lambda: path in self._keys, changes=False)
        return found

    def listed(self, path: str) -> list[str]:
        """Return the keys below a path, as far as a list shows them."""

        def shown() -> list[str]:
            keys = set(self._keys)
            for number, key, was_there in reversed(self._changes):
                if number + self.behind < self._requests:
                    break
                (keys.add if was_there else keys.discard)(key)
            return sorted(key for key in keys if key.startswith(f"{path}/"))

        found: list[str] = self._request("list", path, shown, changes=False)
        return found

    def get(self, path: str) -> bytes:
        """Return the content of an object."""
        content: bytes = self._request("get", path, lambda: self._read(path), changes=False)
        return content

    def _read(self, path: str) -> bytes:
        if path not in self._keys:
            raise Py4JError(f"java.io.FileNotFoundException: No such file: {path}")
        return Path(path).read_bytes()

    def put(self, path: str, content: bytes, *, if_none: bool = False) -> None:
        """Write an object as a whole, on the condition that none is there."""

        def write() -> None:
            if if_none and path in self._keys:
                raise Py4JError(f"{_PRECONDITION} at {path}")
            self._write(path, content)

        self._request("put", path, write)

    def _write(self, path: str, content: bytes) -> None:
        if not path.endswith("/"):
            # As a ledger is on a disk, where checks of tests look at it.
            mask = os.umask(0o077)
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(content)
            finally:
                os.umask(mask)
        self.sizes[path] = len(content)
        self._change(path, True)

    def copy(self, path: str, target: str) -> None:
        """Copy an object within the store."""
        self._request(
            "copy", path, lambda: self._write(target, b"" if path[-1] == "/" else self._read(path))
        )

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects by one request."""

        def remove(gone: Sequence[str]) -> None:
            for key in gone:
                if key in self._keys and key[-1] != "/":
                    Path(key).unlink()
                with suppress(OSError):
                    # What stands for a directory may have been the last there.
                    os.removedirs(key if key[-1] == "/" else Path(key).parent)
                self._change(key, False)
            Path(self.root).mkdir(exist_ok=True)

        if keys:
            half = keys[: len(keys) // 2]
            self._request("delete", keys[0], lambda: remove(keys), half=lambda: remove(half))

    def _names(self) -> Sequence[str]:
        return sorted(self._keys)

    def staged(self) -> list[str]:
        """Return what lies in staging directories, and what stands for them."""
        return sorted(key for key in self._keys if ".anonspark-" in key)

    def _replace(self, patch: pytest.MonkeyPatch) -> None:
        hadoop = _Hadoop(self)
        spark: Any = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))
        classes: dict[str, Any] = {
            "org.apache.hadoop.fs.Path": _JavaPath,
            "org.apache.hadoop.fs.permission.FsPermission": str,
            "org.apache.commons.codec.digest.DigestUtils": SimpleNamespace(
                sha256Hex=lambda stream: hashlib.sha256(stream.read()).hexdigest()
            ),
            "org.apache.commons.io.IOUtils": SimpleNamespace(
                toByteArray=lambda stream, *length: stream.read(*length)
            ),
        }
        patch.setattr(filesystem, "java_class", lambda _, name: (classes | ARRAYS)[name])
        patch.setattr(filesystem, "sequence_of", lambda _, array: Sequenced(array))
        patch.setattr(LocalEngine, "files", property(lambda _: FileSystem(spark)))
        patch.setattr(LocalEngine, "contents", _no_contents)
        patch.setattr(local_engine, "LocalFiles", lambda: _FilesOfTables(spark))
        patch.setattr(DataFile, "path", property(lambda file: file.address.removeprefix(BUCKET)))
        patch.setattr(LocalEngine, "staged", self._staged)
        for suffix, start in list(staged_files._OPEN.items()):
            patch.setitem(staged_files._OPEN, suffix, self._writer(start))
        patch.setitem(writing._WRITERS, "parquet", self._write_parquet)

    def _writer(self, start: Callable[..., Any]) -> Callable[..., Any]:
        store = self

        class Writer:
            def __init__(self, path: str, schema: pa.Schema) -> None:
                self._path, self._content = path, io.BytesIO()
                self._writer = start(self._content, schema)
                self.write_table = self._writer.write_table

            def close(self) -> None:
                self._writer.close()
                store._put_by_task(self._path, self._content.getvalue())

        return Writer

    def _put_by_task(self, path: str, content: bytes) -> None:
        """Write an object where a task of Spark would, whose errors its engine translates."""
        try:
            self.put(path, content)
        except Py4JError as error:
            raise OSError(errno.EIO, str(error), path) from error

    def _write_parquet(self, batches: Batches, schema: pa.Schema, path: str) -> PublishedFile:
        with tempfile.TemporaryDirectory() as folder:
            written = writing.write_parquet(batches, schema, f"{folder}/file")
            self._put_by_task(path, Path(folder, "file").read_bytes())
        return replace(written, path=path)

    @property
    def _staged(self) -> Callable[..., LocalTable]:
        """Return what reads the files of staged tables."""

        def staged(engine: LocalEngine, paths: Sequence[str], schema: pa.Schema) -> LocalTable:
            # A job is told by its committer what its tasks wrote, whatever lists show.
            folders = [Path(path.removeprefix(BUCKET)) for path in paths]
            return LocalTable(
                engine, engine.resources, schema, lambda: staged_files.sources(folders, schema)
            )

        return staged


def _no_contents(engine: LocalEngine, _: str, **__: Any) -> LocalTable:
    """Return no contents, so that verification reads each file by the class for Hadoop."""
    return engine.table(local_engine._CONTENTS.empty_table())


class _FilesOfTables(FileSystem):
    """The paths of tables, whose objects lie on the real disk."""

    def local_path(self, path: str) -> str | None:
        return path.removeprefix(BUCKET)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        # Where the engine makes directories, of which the store does not know.
        folder = path.removeprefix(BUCKET)
        if not any(names for _, _, names in os.walk(folder)):
            shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir(parents=True, exist_ok=True)


class Sequenced(list[Any]):
    """An array as a sequence of Scala's."""

    def toArray(self) -> list[Any]:
        return self

    def nonEmpty(self) -> bool:
        return bool(self)

    def mkString(self, separator: str) -> str:
        return separator.join(one.toString() for one in self)

    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Any:
        return self[index]


def _drained(iterator: Any) -> Sequenced:
    elements = Sequenced()
    while iterator.hasNext():
        elements.append(iterator.next())
    return elements


ARRAYS: dict[str, Any] = {
    "org.apache.hadoop.fs.FileUtil": SimpleNamespace(
        stat2Paths=lambda statuses: [status.getPath() for status in statuses]
    ),
    "org.apache.hadoop.util.functional.RemoteIterators": SimpleNamespace(toList=_drained),
}
"""Classes by which a directory is listed."""


class _JavaPath:
    """A path of Hadoop's. Without a scheme it is one of the store."""

    def __init__(self, address: str) -> None:
        self.key = os.path.normpath(Path.cwd() / address.removeprefix(BUCKET))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _JavaPath) and other.key == self.key

    __hash__ = None  # type: ignore[assignment]

    def getFileSystem(self, hadoop: _Hadoop) -> _Hadoop:
        return hadoop

    def getName(self) -> str:
        return Path(self.key).name

    def getParent(self) -> _JavaPath | None:
        return None if self.key == "/" else _JavaPath(str(Path(self.key).parent))

    def toString(self) -> str:
        return f"{BUCKET}{self.key}"

    def toUri(self) -> Any:
        return SimpleNamespace(getScheme=lambda: "s3a")


@dataclass(frozen=True)
class _Status:
    """What Hadoop tells of a file or a directory."""

    key: str
    is_directory: bool = False
    size: int = 0

    def getPath(self) -> _JavaPath:
        return _JavaPath(self.key)

    def getLen(self) -> int:
        return self.size

    def toString(self) -> str:
        path = self.getPath().toString()
        return f"S3AFileStatus{{path={path}; isDirectory=false; length={self.size}; }}"

    def isDirectory(self) -> bool:
        return self.is_directory

    def isSymlink(self) -> bool:
        return False


class _Stream(io.BytesIO):
    """An object that is written as a whole when the stream is closed."""

    def __init__(self, hadoop: _Hadoop, key: str, *, if_none: bool = False) -> None:
        super().__init__()
        self._put = lambda: hadoop.store.put(key, self.getvalue(), if_none=if_none)
        self._is_put = False

    def close(self) -> None:
        if not self._is_put:
            self._is_put = True
            self._put()
        super().close()

    def __del__(self) -> None:
        """Put nothing of a process that was stopped."""
        self._is_put = True


class _Hadoop:
    """What Hadoop's client does with a store that speaks S3."""

    CONDITIONAL: ClassVar[str] = filesystem._CONDITIONAL

    def __init__(self, store: SimulatedStore) -> None:
        self.store = store

    def getUri(self) -> Any:
        return SimpleNamespace(getScheme=lambda: "s3a")

    def getScheme(self) -> str:
        return "s3a"

    def makeQualified(self, path: _JavaPath) -> _JavaPath:
        return path

    resolvePath = makeQualified

    def hasPathCapability(self, _: _JavaPath, name: str) -> bool:
        return name == self.CONDITIONAL

    def _is_outside(self, path: _JavaPath) -> bool:
        return f"{self.store.root}/".startswith(f"{path.key}/")

    def getFileStatus(self, path: _JavaPath) -> _Status:
        if self._is_outside(path):
            return _Status(path.key, True)
        if self.store.head(path.key):
            return self._of_object(path.key)
        if self.store.listed(path.key):
            return _Status(path.key, True)
        raise Py4JError(f"java.io.FileNotFoundException: No such file or directory: {path.key}")

    getFileLinkStatus = getFileStatus

    def _of_object(self, key: str) -> _Status:
        return _Status(key, size=self.store.sizes[key])

    def exists(self, path: _JavaPath) -> bool:
        try:
            self.getFileStatus(path)
        except Py4JError as error:
            if "FileNotFound" in str(error):
                return False
            raise
        return True

    def listStatus(self, path: _JavaPath) -> list[_Status]:
        inside: dict[str, bool] = {}
        for key in self.store.listed(path.key):
            name, slash, _ = key[len(path.key) + 1 :].partition("/")
            if name:
                inside[name] = inside.get(name, False) or bool(slash)
        if not inside and not self.getFileStatus(path).is_directory:
            return [self._of_object(path.key)]
        # It asks no more: what a list shows may be deleted.
        return [
            _Status(f"{path.key}/{name}", True)
            if is_directory
            else self._of_object(f"{path.key}/{name}")
            for name, is_directory in inside.items()
        ]

    def listFiles(self, path: _JavaPath, _: bool) -> Any:
        keys = [key for key in self.store.listed(path.key) if key[-1] != "/"]
        if not keys and not self.getFileStatus(path).is_directory:
            keys = [path.key]
        return SimpleNamespace(
            hasNext=lambda: bool(keys), next=lambda: self._of_object(keys.pop(0))
        )

    def globStatus(self, pattern: _JavaPath) -> list[_Status] | None:
        # What stands behind a backslash means itself, as in brackets.
        parts = [re.sub(r"\\(.)", r"[\1]", part) for part in pattern.key.split("/")]
        fixed = list(itertools.takewhile(lambda part: not {"*", "?", "["} & set(part), parts))
        if len(fixed) == len(parts):
            return [self.getFileStatus(pattern)] if self.exists(pattern) else None
        keys = self.store.listed("/".join(fixed))
        paths = {"/".join(key.split("/")[: len(parts)]) for key in keys}
        matching = fnmatch.filter(sorted(paths), "/".join(parts))
        return [self.getFileStatus(_JavaPath(path)) for path in matching]

    def mkdirs(self, path: _JavaPath, *_: str) -> bool:
        if not self._is_outside(path) and not self.exists(path):
            self.store.put(f"{path.key}/", b"")
        return True

    def setPermission(self, path: _JavaPath, permission: str) -> None:
        pass

    def open(self, path: _JavaPath) -> io.BytesIO:
        return io.BytesIO(self.store.get(path.key))

    def create(self, path: _JavaPath, overwrite: bool) -> _Stream:
        assert overwrite, "the store has conditions"
        return _Stream(self, path.key)

    def createFile(self, path: _JavaPath) -> Any:
        builder = SimpleNamespace(build=lambda: _Stream(self, path.key, if_none=True))
        builder.overwrite = lambda _: builder
        builder.opt = lambda *_: builder
        return builder

    def delete(self, path: _JavaPath, _: bool) -> bool:
        if self.store.head(path.key):
            self.store.delete([path.key])
        else:
            self.store.delete(self.store.listed(path.key))
        self._keep_directory(path.getParent())
        return True

    def rename(self, source: _JavaPath, target: _JavaPath) -> bool:
        status = self.getFileStatus(source)
        if self.exists(target):
            return False
        if not status.is_directory:
            self.store.copy(source.key, target.key)
            self.store.delete([source.key])
        else:
            keys = self.store.listed(source.key)
            for key in keys:
                self.store.copy(key, target.key + key[len(source.key) :])
            self.store.delete(keys)
        self._keep_directory(source.getParent())
        return True

    def _keep_directory(self, path: _JavaPath | None) -> None:
        """Let a directory from which something went be there, as on a disk."""
        if path is not None:
            self.mkdirs(path)
