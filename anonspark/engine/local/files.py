"""Files and directories of the local disk, by Hadoop's addresses for them."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from anonspark.engine.files import Files, FilesError, each_method, require_no_nul, sync_local
from anonspark.errors import ConfigurationError
from anonspark.ownership import LINK, NO_LINKS, Access, fault_at, make_private, write_aside

_P = ParamSpec("_P")
_R = TypeVar("_R")

# A colon in front of the first slash ends a scheme.
_SCHEME = re.compile(r"([^/:]*):")

_SPECIAL = frozenset("*?[")

# Errors of a rename whose target was created meanwhile.
_THERE = (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR)


def _refused(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise FilesError for errors of the system."""

    @wraps(method)
    def translated(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(*arguments, **named)
        except (FilesError, FileExistsError):
            raise
        except OSError as error:
            raise FilesError(error.errno, error.strerror or str(error), error.filename) from error

    return translated


@contextmanager
def _reaching(path: str) -> Iterator[None]:
    """Raise ConfigurationError, with the path, if the system cannot list it."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"path {path}: it cannot be reached. Check spelling and permissions"
        ) from error


def _local_path(address: str) -> Path:
    """Return the local path of an address, or raise ConfigurationError if it is elsewhere.

    >>> str(_local_path("file:/data/../out")), str(_local_path("///data"))
    ('/out', '/data')
    """
    require_no_nul(address)
    scheme, path = _SCHEME.match(address), address
    if scheme is not None:
        path = address[scheme.end() :]
        if scheme[1] != "file":
            raise ConfigurationError(
                f"path {address}: the local engine reads and writes local disks only, and Spark "
                "Connect those that are mounted here. Expected a "
                f"path (a relative one has no colon) or the scheme file, found {scheme[1]!r}. "
                "Correct it, or set execution.engine to spark"
            )
    host = ""
    if path.startswith("//"):
        # In an address of Hadoop a host follows two slashes.
        host, slash, rest = path[2:].partition("/")
        path = slash + rest if path.strip("/") else "/"
    if host or not path or (scheme is not None and not path.startswith("/")):
        raise ConfigurationError(
            f"path {address}: no place on the local disk. Expected a path, or file: and an "
            "absolute path, without a host. Correct it"
        )
    # As in Hadoop dots are removed first: the system would follow links before.
    normal = os.path.abspath(path)  # noqa: PTH100 - half the time, for thousands of a ledger's events
    return Path("/" + normal.lstrip("/"))


@each_method(_refused)
@dataclass(frozen=True)
class LocalFiles(Files):
    """The local disk. :class:`anonspark.engine.files.Files` describes each method.

    An address is ``file:`` and an absolute path, as Hadoop writes it. No checksums are written.
    Those that Hadoop left next to a file are renamed with it, and deleted when it changes.
    """

    def local_path(self, path: str) -> str:
        """Return where a path is on the local disk, without following links."""
        return str(_local_path(path))

    def qualified(self, path: str) -> str:
        """Return the absolute address of a path, with scheme and without dots."""
        return f"file:{self.local_path(path)}"

    def resolved(self, path: str) -> str:
        """Return the absolute address of a path, with symbolic links followed."""
        return f"file:{os.path.realpath(self.local_path(path))}"

    def fault(self, path: str, access: Access = "shared") -> str | None:
        """Return why what is at a path cannot be used, and what to do, or None if it can."""
        return fault_at(_local_path(path), access)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        with _reaching(path):
            return _exists(_local_path(path))

    def matches(self, pattern: str) -> list[str]:
        """Return the addresses of all files and directories that match a path or glob pattern."""
        if self.exists(pattern):
            return [self.qualified(pattern)]
        try:
            matches = {
                f"file:{path}"
                for plain in _without_braces(self.local_path(pattern))
                for path in _matches(Path("/"), plain.strip("/").split("/"))
            }
        except OSError as error:
            raise ConfigurationError(
                f"path {pattern}: what it names cannot be listed. Check permissions"
            ) from error
        return sorted(matches)

    def parent(self, path: str) -> str:
        """Return the address of the directory that holds a path."""
        return f"file:{_local_path(path).parent}"

    def make_private_directory(self, path: str) -> None:
        """Create a directory that its owner alone can read."""
        local = _local_path(path)
        _make_directory(local.parent)
        make_private(local)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        _make_directory(_local_path(path))

    def children(self, path: str) -> list[str]:
        """Return the sorted addresses in a directory, or an empty list if no directory is there."""
        local = _local_path(path)
        with _reaching(path):
            if not _exists(local):
                return []
            inside = local.iterdir() if local.is_dir() else [local]
            return sorted(f"file:{entry}" for entry in inside if _is_listed(entry))

    def files_below(self, path: str) -> list[tuple[str, int]]:
        """Return relative path and bytes of every file of a directory, at any depth, sorted."""
        with _reaching(path):
            return sorted(_files_below(_local_path(path), ""))

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits."""
        with _reaching(path), _local_path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def rename_copies(self, path: str) -> bool:  # noqa: ARG002 - the same everywhere
        """Return False: a rename never copies here."""
        return False

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory. The target must not exist."""
        old, new = _local_path(source), _local_path(target)
        exists = FilesError(f"cannot rename {source} to {target}: it is there already")
        if _exists(new):
            raise exists
        _make_directory(new.parent)
        try:
            _rename(old, new)
        except OSError as error:
            if error.errno in _THERE:
                raise exists from error
            raise
        with suppress(FileNotFoundError):
            _checksum(old).replace(_checksum(new))

    def replace(self, path: str, content: bytes, temporary: str) -> None:
        """Write a small file aside and rename it, so that readers never see a part of it."""
        local = _local_path(path)
        aside = local.with_name(temporary)
        try:
            _make_directory(local.parent)
            write_aside(aside, content)
            # Checksums of the old content go first: with the new one reading would fail.
            _checksum(local).unlink(missing_ok=True)
            aside.replace(local)
            sync_local(str(local.parent))
        except BaseException:
            aside.unlink(missing_ok=True)
            raise

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""
        local = _local_path(path)
        if not _exists(local):
            return
        try:
            if local.is_dir() and not local.is_symlink():
                shutil.rmtree(local)
            else:
                local.unlink()
                _checksum(local).unlink(missing_ok=True)
        except FileNotFoundError:
            # Another process may delete it at the same time.
            if _exists(local):
                raise

    def delete_if_empty(self, path: str) -> None:
        """Delete a directory that holds no file at any depth."""
        local = _local_path(path)
        if local.is_dir() and not any(_files_below(local, "")):
            shutil.rmtree(local)

    def create_text(self, path: str, text: str) -> None:
        """Write a small UTF-8 file that must not exist: of several writers one succeeds."""
        local = _local_path(path)
        _make_directory(local.parent)
        try:
            file = local.open("xb")
        except FileExistsError as error:
            raise FileExistsError(path) from error
        with file:
            file.write(text.encode())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file."""
        local = _local_path(path)
        _make_directory(local.parent)
        _checksum(local).unlink(missing_ok=True)
        if local.is_symlink():
            raise FilesError(f"{path} {LINK}")
        local.write_bytes(content)

    def read_text(self, path: str) -> str:
        """Read a small UTF-8 file."""
        return _local_path(path).read_bytes().decode()

    def read_part(self, path: str, offset: int, length: int) -> bytes:
        """Read ``length`` bytes at ``offset``. Raises FilesError if the file is shorter."""
        with _local_path(path).open("rb") as file:
            file.seek(offset)
            content = file.read(length)
        if len(content) != length:
            raise FilesError(f"{path} has {len(content)} bytes from {offset} on, not {length}")
        return content

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return _local_path(path).stat().st_size


def _exists(path: Path) -> bool:
    """Return whether something is at a path. Raises OSError if a disk does not answer."""
    try:
        path.stat()
    except (ValueError, FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return False
        raise
    return True


def _make_directory(path: Path) -> None:
    """Create a directory and its parents. Raises FilesError if a file is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FilesError(f"cannot create directory file:{path}") from error


def _checksum(path: Path) -> Path:
    """Return the path of Hadoop's checksums of a file.

    >>> str(_checksum(Path("data/part-0.orc")))
    'data/.part-0.orc.crc'
    """
    return path.with_name(f".{path.name}.crc")


def _is_listed(path: Path) -> bool:
    """Return whether a path is neither a link that leads nowhere nor a file of checksums."""
    return not (path.name.startswith(".") and path.suffix == ".crc") and _exists(path)


def _without_braces(pattern: str) -> list[str]:
    """Return the patterns for ``fnmatch`` that a pattern with choices in braces stands for.

    >>> _without_braces("data/{a,b}.csv")
    ['data/a.csv', 'data/b.csv']
    """
    braces = re.search(r"(?<!\\)\{([^{}]*)(?<!\\)\}", pattern)
    if braces is None:
        # A sign behind a backslash means itself, as one in brackets does.
        return [re.sub(r"\\(.)", r"[\1]", pattern.replace("[^", "[!"))]
    before, behind = pattern[: braces.start()], pattern[braces.end() :]
    choices = braces[1].split(",")
    return [plain for choice in choices for plain in _without_braces(before + choice + behind)]


def _matches(directory: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the paths below a directory that match the parts of a pattern."""
    name, *rest = parts
    inside = [directory / name]
    if not _SPECIAL.isdisjoint(name):
        listed = directory.iterdir() if directory.is_dir() else ()
        inside = [path for path in listed if fnmatchcase(path.name, name) and _is_listed(path)]
    for path in filter(_exists, inside):
        if rest:
            yield from _matches(path, rest)
        else:
            yield path


def _rename(old: Path, new: Path) -> None:
    """Rename to a path where nothing is: the system refuses to replace a file."""
    if old.is_file() and not old.is_symlink():
        # A rename would replace a file, but a second name for one file cannot.
        try:
            new.hardlink_to(old)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
        else:
            old.unlink()
            return
    # A directory replaces only an empty one.
    old.rename(new)


def _files_below(directory: Path, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield relative path and bytes of every file below a directory."""
    for path in directory.iterdir():
        if path.is_dir():
            yield from _files_below(path, f"{prefix}{path.name}/")
        elif _is_listed(path):
            yield prefix + path.name, path.stat().st_size
