"""Define files and paths as an engine sees them, and the files of a release."""

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
        Relative to the release's directory, with slashes.
    bytes : int
    rows : int or None
        None for a file that is no part of a table.
    sha256 : str
        Of its content, in hexadecimal digits.
    """

    path: str
    bytes: int
    rows: int | None
    sha256: str

    def as_dict(self) -> dict[str, object]:
        """Return it as the manifest lists it."""
        return asdict(self)


_OF_PATTERNS = re.compile(r"[*?\[\]{}\\]")


def literal(path: str) -> str:
    r"""Return the pattern that names a path and nothing else, as Hadoop and we read patterns.

    >>> literal("/out/br[1]")
    '/out/br\\[1\\]'
    """
    return _OF_PATTERNS.sub(r"\\\g<0>", path)


class FilesError(OSError):
    """A file system did not do what it was asked for."""


@dataclass(frozen=True)
class Entry:
    """Something that lies in a directory, at any depth.

    Parameters
    ----------
    path : str
        Relative to the directory.
    kind : str
        ``file``, ``directory``, ``link`` (symbolic, wherever it leads) or ``other``, as a device.
    bytes : int
        Size of a file, else 0.
    """

    path: str
    kind: Literal["file", "directory", "link", "other"]
    bytes: int = 0

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def local_tree(directory: str, prefix: str = "") -> list[Entry]:
    """Return all that lies in a directory of the local disk at any depth, links not followed.

    Parameters
    ----------
    directory : str
    prefix : str
        Put before each path.

    Returns
    -------
    list of Entry
        None where no directory is there.

    Raises
    ------
    OSError
        If a directory cannot be listed.
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


# What a file system says that syncs no directories, or of what is not there or not for us.
_NO_SYNC = (
    *(errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS),
    *(errno.EACCES, errno.EPERM, errno.ENOENT),
)


def sync_local(path: str) -> None:
    """Put a file, or the names in a directory, on the local disk itself, as far as that is known.

    Raises
    ------
    OSError
        If the disk refuses.
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


# Files that an object store copies at a time.
_RENAMES = 32


class Files(Protocol):
    """Path operations as all tasks see them. Nothing here assumes a local disk.

    All raise :class:`FilesError` where the file system refuses, and ConfigurationError where it
    cannot be reached.
    """

    def qualified(self, path: str) -> str:
        """Return the absolute address of a path, with scheme and without dots."""
        ...

    def resolved(self, path: str) -> str:
        """Return the absolute address of a path, with local symbolic links followed."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return where a path is on the local disk, links not followed, or None for other paths.

        What ``viewfs`` mounts there counts, too.
        """
        ...

    def fault(self, path: str, access: Access = "shared") -> str | None:
        """Return why what is at a path cannot be used, and what to do, or None if it can.

        See :mod:`anonspark.ownership`. Nothing is wrong where nothing is. Only local disks and
        HDFS have owners. Elsewhere only links are looked for.
        """
        ...

    def dangling_parent(self, path: str) -> str | None:
        """Return the link above a path that leads nowhere, so that nothing can be made there."""
        above = self.parent(path)
        while not self.exists(above):
            if self.fault(above) == LINK:
                return above
            path, above = above, self.parent(above)
            if above == path:
                break
        return None

    def tree(self, path: str) -> list[Entry]:
        """Return all that lies in a directory at any depth, hidden files and checksums too.

        Links are not followed. Sorted by path. Nothing where the directory is not there.

        Raises
        ------
        ConfigurationError
            If a directory cannot be listed.

        Notes
        -----
        No Spark job. A local directory is listed by Python, for Hadoop hides checksums and links
        that lead nowhere. Elsewhere one call for each directory.
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
        """Put a file, or the names in a directory, on the local disk itself. Nothing elsewhere.

        Only what is synced survives a power cut.
        """
        local = self.local_path(path)
        if local is not None:
            sync_local(local)

    def sync_tree(self, path: str) -> None:
        """Put a directory on the local disk itself, with all that is in it."""
        local = self.local_path(path)
        if local is not None:
            for entry in local_tree(local):
                sync_local(f"{local}/{entry.path}")
            self.sync_names(f"{path}/x")

    def sync_names(self, path: str) -> None:
        """Put the name of a path on the local disk itself, and those of the directories above."""
        local = self.local_path(path)
        for above in () if local is None else Path(local).parents:
            sync_local(str(above))

    def remote_tree(self, path: str) -> list[Entry]:
        """Return what :meth:`tree` does, in any order, of a directory that is on no local disk."""
        raise FilesError(f"{path} is on the local disk")

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        ...

    def matches(self, pattern: str) -> list[str]:
        """Return the addresses of all files and directories that a path or glob pattern names.

        Where something has that very name, it is that alone.
        """
        ...

    def parent(self, path: str) -> str:
        """Return the address of the directory that holds a path."""
        ...

    def make_private_directory(self, path: str) -> None:
        """Create a directory, readable by its owner only where the file system knows owners.

        One of ours that only we could change is made private. Parents are created as usual.

        Raises
        ------
        FilesError
            If the file system refuses, or it is a link, of another user, or was open to others.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        ...

    def children(self, path: str) -> list[str]:
        """Return the sorted addresses of what a directory holds, none if there is no directory."""
        ...

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Return every file of a directory at any depth, sorted: relative path, and bytes."""
        ...

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits. It is read as a whole."""
        ...

    def rename_copies(self, path: str) -> bool:
        """Return whether renaming a directory copies all that is in it, as object stores do."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory. The target must not exist.

        Raises
        ------
        OSError
            If the file system refuses, or the target came into being meanwhile. Source and target
            are then as they were.
        """
        ...

    def rename_each(self, targets: Mapping[str, str]) -> None:
        """Rename files, several at a time where each is copied, as object stores do.

        Raises
        ------
        OSError
            As of :meth:`rename`. Some files are renamed then.
        """
        if not any(map(self.rename_copies, islice(targets, 1))):
            for source, target in targets.items():
                self.rename(source, target)
            return
        with ThreadPoolExecutor(_RENAMES) as pool:
            for _ in pool.map(self.rename, targets, targets.values()):
                pass

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Write a small file aside and rename it, so that readers never see half of it.

        A file that is there is replaced in one step on local disks and on HDFS. Elsewhere it is
        deleted just before, for a rename does not overwrite.

        Parameters
        ----------
        path : str
        content : bytes
        temporary : str
            Name to write under in the same directory. Hidden, so that readers pass over it.

        Raises
        ------
        OSError
            If the file system refuses. No temporary file is left.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file or a directory with all that is in it. Nothing happens where none is."""
        ...

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        ...

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not be there: of several writers one succeeds.

        Raises
        ------
        FileExistsError
        """
        ...

    def write_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file."""
        self.write_bytes(path, text.encode())

    def write_atomically(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that is there as a whole or not at all. Replaces none."""
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
        """Read some bytes of a file that has as many there."""
        ...

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        ...

    def read_document(self, path: str) -> str:
        """Read a file that a user named, and say what is wrong as the local disk does.

        Raises
        ------
        OSError
            If there is no such file, or it cannot be read.
        UnicodeDecodeError
            If it is not UTF-8.
        ConfigurationError
            If the place cannot be reached.
        """
        if not self.exists(path):
            raise FileNotFoundError(path)
        try:
            return self.read_text(path).removeprefix("\ufeff")
        except FilesError as error:
            raise OSError(errno.EIO, "it cannot be opened as a file", path) from error


class ReadStream(io.RawIOBase):
    """A stream that is read and sought, and knows its offset."""

    _offset = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be sought."""
        return True

    def tell(self) -> int:
        """Return the offset."""
        return self._offset

    def _read(self, length: int) -> bytes:
        """Return the next bytes, at most so many."""
        raise NotImplementedError

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes."""
        content = self._read(len(buffer))
        buffer[: len(content)] = content
        self._offset += len(content)
        return len(content)


class _FilePart(ReadStream):
    """A file of any file system, of which parts are read."""

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
    """Return a file of any file system, of which parts are read.

    Parameters
    ----------
    files : Files
    path : str
    size : int
        Its bytes.
    at_once : int
        Bytes that are read at a time.
    """
    return io.BufferedReader(_FilePart(files, path, size), at_once)


def each_method(decorate: Callable[[Any], Any]) -> Callable[[type[_T]], type[_T]]:
    """Return what applies a decorator to each public method that the body of a class has."""

    def decorated(cls: type[_T]) -> type[_T]:
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, decorate(method))
        return cls

    return decorated


def require_no_nul(path: str) -> None:
    """Check that a path may be there at all.

    Raises
    ------
    ConfigurationError
    """
    if "\0" in path:
        raise ConfigurationError(
            f"path {path!r}: found the character NUL, which no file system has in names. Remove it"
        )


def files_at(files: Files, address: str) -> list[tuple[str, int]]:
    """Return a file, or every file of a directory at any depth, with its bytes.

    Their paths are relative to the address, which has to be there.
    """
    if files.children(address) == [address]:
        return [("", files.size(address))]
    return files.files_below(address)


def holds_copies(files: Files, directory: str, of: str) -> bool:
    """Return whether a directory has a file of each path and size that another directory has.

    By this a rename that copies, and was stopped, is completed or undone.
    """
    return set(files.files_below(of)) <= set(files.files_below(directory))


def require_ours(files: Files, key: str, path: str, access: Access = "shared") -> None:
    """Check that what is at a path, if anything is, belongs to us, before it is used.

    Parameters
    ----------
    files : Files
    key : str
        What named the path, for the message.
    path : str
    access : str
        Who may use it. See :mod:`anonspark.ownership`.

    Raises
    ------
    ConfigurationError
    """
    fault = files.fault(path, access)
    if fault is not None:
        raise ConfigurationError(f"{key}: {path} {fault}")
