"""Define the operations on files of an engine, and the files of a release."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from inspect import isfunction
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from anonspark.errors import ConfigurationError
from anonspark.ownership import LINK, Access

_T = TypeVar("_T")


@dataclass(frozen=True)
class PublishedFile:
    """A file of a release.

    Parameters
    ----------
    path : str
        Path relative to the release's directory, with slashes.
    bytes : int
        Size of the file.
    rows : int or None
        Records in the file, or None if it is not part of a table.
    sha256 : str
        SHA-256 of the content in hexadecimal digits.
    """

    path: str
    bytes: int
    rows: int | None
    sha256: str

    def as_dict(self) -> dict[str, object]:
        """Return the fields for the manifest.

        >>> PublishedFile("data/part-0.parquet", 1024, 10, "9f86d081").as_dict()["rows"]
        10
        """
        return asdict(self)


_OF_PATTERNS = re.compile(r"[*?\[\]{}\\]")


def literal(path: str) -> str:
    r"""Escape a path, so that the pattern matches this path alone in Hadoop and here.

    >>> literal("/out/br[1]")
    '/out/br\\[1\\]'
    """
    return _OF_PATTERNS.sub(r"\\\g<0>", path)


class FilesError(OSError):
    """A file system refused an operation."""


@dataclass(frozen=True)
class Entry:
    """A file, directory, link or the like in a directory, at any depth.

    Parameters
    ----------
    path : str
        Path relative to the directory.
    kind : str
        ``file``, ``directory``, ``link`` (symbolic, wherever it leads) or ``other``, as a device.
    bytes : int
        Size of a file, else 0.

    Examples
    --------
    >>> Entry("data/part-0.parquet", "file", 1024).name
    'part-0.parquet'
    """

    path: str
    kind: Literal["file", "directory", "link", "other"]
    bytes: int = 0

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rpartition("/")[2]


def local_tree(directory: str, prefix: str = "") -> list[Entry]:
    """List a directory of the local disk at any depth, without following links.

    Returns an empty list if there is no such directory. ``prefix`` is put before each path. Raises
    OSError if a directory cannot be listed.
    """
    entries: list[Entry] = []
    try:
        inside = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    for entry in inside:
        path, status = prefix + entry.name, entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            entries.append(Entry(path, "link"))
        elif stat.S_ISDIR(status.st_mode):
            entries.append(Entry(path, "directory"))
            entries += local_tree(entry.path, f"{path}/")
        elif stat.S_ISREG(status.st_mode):
            entries.append(Entry(path, "file", status.st_size))
        else:
            entries.append(Entry(path, "other"))
    return entries


# Errors of a file system that does not sync directories, or of files that are gone or not ours.
_NO_SYNC = (
    *(errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS),
    *(errno.EACCES, errno.EPERM, errno.ENOENT),
)


def sync_local(path: str) -> None:
    """Make sure that a file, or the names in a directory, survive a power cut, if the disk can.

    Raises OSError if the disk refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


# Threads that rename on an object store, where each rename is a copy.
_RENAMES = 32


class Files(Protocol):
    """Operations on paths, as all tasks see them, on a local disk or elsewhere.

    All raise :class:`FilesError` if the file system refuses, and ConfigurationError if it cannot be
    reached.
    """

    def qualified(self, path: str) -> str:
        """Return the absolute address of a path, with scheme and without dots."""
        ...

    def resolved(self, path: str) -> str:
        """Return the absolute address of a path, with local symbolic links followed."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return where a path is on the local disk, without following links, or None for others.

        A path that ``viewfs`` mounts there is one of the local disk.
        """
        ...

    def fault(self, path: str, access: Access = "shared") -> str | None:
        """Return why what is at a path cannot be used, and what to do, or None if it can.

        See :mod:`anonspark.ownership`. An empty path has no fault. Only local disks and HDFS have
        owners: elsewhere only links are faults.
        """
        ...

    def dangling_parent(self, path: str) -> str | None:
        """Return the link above a path that leads nowhere, or None.

        Nothing can be made below it.
        """
        above = self.parent(path)
        while not self.exists(above):
            if self.fault(above) == LINK:
                return above
            path, above = above, self.parent(above)
            if above == path:
                break
        return None

    def tree(self, path: str) -> list[Entry]:
        """List a directory at any depth, with hidden files and checksums, sorted by path.

        Links are not followed. Returns an empty list if there is no such directory. Without a Spark
        job: Python lists a local directory, because Hadoop hides checksums and broken links.
        Elsewhere it takes one call for each directory. Raises ConfigurationError if a directory
        cannot be listed.
        """
        local = self.local_path(path)
        try:
            entries = self.remote_tree(path) if local is None else local_tree(local)
        except OSError as error:
            raise ConfigurationError(
                f"path {path}: not all of its directories can be listed. Check permissions"
            ) from error
        return sorted(entries, key=lambda entry: entry.path)

    def sync(self, path: str) -> None:
        """Make sure that a file, or the names in a directory, survive a power cut of a local disk.

        Does nothing elsewhere.
        """
        local = self.local_path(path)
        if local is not None:
            sync_local(local)

    def sync_tree(self, path: str) -> None:
        """Make sure that a directory of a local disk survives a power cut, with its content."""
        local = self.local_path(path)
        if local is not None:
            for entry in local_tree(local):
                sync_local(f"{local}/{entry.path}")
            self.sync_names(f"{path}/x")

    def sync_names(self, path: str) -> None:
        """Make sure that the names of a path, and of directories above it, survive a power cut."""
        local = self.local_path(path)
        for above in () if local is None else Path(local).parents:
            sync_local(str(above))

    def remote_tree(self, path: str) -> list[Entry]:
        """List a directory that is not on a local disk as :meth:`tree` does, in any order."""
        raise FilesError(f"{path} is on the local disk")

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        ...

    def matches(self, pattern: str) -> list[str]:
        """Return the addresses of all files and directories that match a path or glob pattern.

        A file with the very name of the pattern is the only match.
        """
        ...

    def parent(self, path: str) -> str:
        """Return the address of the directory that holds a path."""
        ...

    def make_private_directory(self, path: str) -> None:
        """Create a directory that its owner alone can read, if the file system has owners.

        An existing one of ours that only we could change is made private. Parents are created as
        usual. Raises FilesError if the file system refuses, or the directory is a link, of another
        user, or was open to others.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        ...

    def children(self, path: str) -> list[str]:
        """Return the sorted addresses in a directory, or an empty list if no directory is there."""
        ...

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Return relative path and bytes of every file of a directory, at any depth, sorted."""
        ...

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits. Reads the whole file."""
        ...

    def rename_copies(self, path: str) -> bool:
        """Return whether renaming a directory copies all that is in it, as object stores do."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory to a path that must not exist.

        Raises OSError if the file system refuses, or the target was created meanwhile. Source and
        target are then unchanged.
        """
        ...

    def rename_each(self, targets: Mapping[str, str]) -> None:
        """Rename files from keys to values, in parallel on object stores, which copy each.

        Raises OSError as :meth:`rename` does. Some files may be renamed by then.
        """
        if not any(map(self.rename_copies, islice(targets, 1))):
            for source, target in targets.items():
                self.rename(source, target)
            return
        with ThreadPoolExecutor(_RENAMES) as pool:
            for _ in pool.map(self.rename, targets, targets.values()):
                pass

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Replace a small file by way of a temporary one, so that readers never see a part of it.

        On local disks and on HDFS a file is replaced in one step. Elsewhere a rename does not
        overwrite, so the old file is deleted just before. ``temporary`` is a hidden name in the
        same directory. Raises OSError if the file system refuses, and leaves no such file.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with all that is in it.

        Does nothing if neither is there.
        """
        ...

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        ...

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not exist: of several writers one succeeds.

        Raises FileExistsError if the file exists.
        """
        ...

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file."""
        self.write_bytes(path, text.encode())

    def write_atomically(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that appears whole or not at all. Replaces none."""
        directory, _, name = path.rpartition("/")
        hidden = f"{directory}/.{name}.writing"
        self.write_text(hidden, text)
        self.sync(hidden)
        self.rename(hidden, path)
        self.sync(directory)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file."""
        ...

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file."""
        ...

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """Read ``length`` bytes at ``offset``. The caller knows that the file is long enough."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def read_document(self, path: str) -> str:
        """Read a file that a user named, with the errors of the local disk.

        Raises OSError if it is missing or cannot be read, UnicodeDecodeError if it is not UTF-8,
        and ConfigurationError if the file system cannot be reached.
        """
        if not self.exists(path):
            raise FileNotFoundError(path)
        try:
            return self.read_text(path).removeprefix("\ufeff")
        except FilesError as error:
            raise OSError(errno.EIO, "it cannot be opened as a file", path) from error


class ReadStream(io.RawIOBase):
    """A seekable stream to read. Subclasses implement ``_read`` and ``seek``."""

    _offset = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset."""
        return self._offset

    def _read(self, length: int) -> bytes:
        """Return the next bytes, at most ``length``."""
        raise NotImplementedError

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes."""
        content = self._read(len(buffer))
        buffer[: len(content)] = content
        self._offset += len(content)
        return len(content)


class _FilePart(ReadStream):
    """A file of any file system as a stream, of which only requested parts are read."""

    def __init__(self, files: Files, path: str, size: int) -> None:
        self._files, self._path, self._size = files, path, size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = start + offset
        return self._offset

    def _read(self, length: int) -> bytes:
        length = max(min(length, self._size - self._offset), 0)
        return self._files.read_part(self._path, self._offset, length) if length else b""


def open_parts(files: Files, path: str, size: int, at_once: int) -> io.BufferedReader:
    """Open a file of any file system, given its size, to read ``at_once`` bytes at a time."""
    return io.BufferedReader(_FilePart(files, path, size), at_once)


def each_method(decorate: Callable[[Any], Any]) -> Callable[[type[_T]], type[_T]]:
    """Return a class decorator that applies a decorator to each public method of the class body.

    >>> @each_method(lambda method: lambda self: method(self) + 1)
    ... class Two:
    ...     def number(self) -> int:
    ...         return 1
    >>> Two().number()
    2
    """

    def decorated(cls: type[_T]) -> type[_T]:
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, decorate(method))
        return cls

    return decorated


def require_no_nul(path: str) -> None:
    """Raise ConfigurationError if a path has the character NUL, which no file system allows."""
    if "\0" in path:
        raise ConfigurationError(
            f"path {path!r}: found the character NUL, which no file system has in names. Remove it"
        )


def files_at(files: Files, address: str) -> list[tuple[str, int]]:
    """List a file, or every file of a directory at any depth, with paths relative to the address.

    The address has to exist. Returns the bytes of each file.
    """
    if files.children(address) == [address]:
        return [("", files.size(address))]
    return files.files_below(address)


def holds_copies(files: Files, directory: str, of: str) -> bool:
    """Return whether a directory has a file of each path and size that another directory has.

    This shows whether a rename that copies, and was stopped, can be completed.
    """
    return set(files.files_below(of)) <= set(files.files_below(directory))


def require_ours(files: Files, key: str, path: str, access: Access = "shared") -> None:
    """Raise ConfigurationError if what is at a path does not belong to us, before it is used.

    ``key`` is the key or argument that named the path, for the message, and ``access`` who may use
    it: see :mod:`anonspark.ownership`.
    """
    fault = files.fault(path, access)
    if fault is not None:
        raise ConfigurationError(f"{key}: {path} {fault}")
