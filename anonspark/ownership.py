"""Decide whether a path belongs to the user of this process, and who else may use it.

Nothing is read from a directory, or written into it, that another user may have made. The owner of
the directory above can always exchange what lies in it: that is for the user to choose.
"""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Literal

Access = Literal["private", "code", "shared"]
"""``private`` is for the owner alone, ``code`` is written by the owner alone. ``shared`` is for
readers, too, and may be of the administrator, or of a group of ours that may write there."""

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""Error numbers of a file system that has no hard links."""

_FORBIDDEN = {"private": 0o077, "code": 0o022, "shared": 0}


def fault_of(
    status: tuple[str, str, int],
    user: str,
    groups: Collection[str],
    access: Access,
    administrator: str = "root",
) -> str | None:
    """Explain why a file with an owner, a group and a mode cannot be used, or None if it can.

    >>> fault_of(("ada", "staff", 0o644), "ada", ["staff"], "private")[:15]
    'has permissions'
    >>> fault_of(("ada", "staff", 0o644), "ada", ["staff"], "shared") is None
    True
    """
    owner, group, mode = status
    common = group in groups and mode & stat.S_IWGRP
    if owner != user and not (access == "shared" and (owner == administrator or common)):
        return (
            f"belongs to the user {owner}, and this process runs as {user}. Nothing there is read "
            "or written. Run as that user, remove it, or choose another path"
        )
    if mode & _FORBIDDEN[access]:
        return (
            f"has permissions {stat.S_IMODE(mode):o}, so users other than its owner can use it. "
            "Expected 700 for a directory and 600 for a file. If no one else has changed it, "
            "correct them with chmod, else remove it"
        )
    return None


LINK = (
    "is a symbolic link, which would be replaced while what it leads to stays as it is. Name the "
    "place that it leads to, or remove the link"
)
"""What is wrong with a link."""


def fault_at(path: str | Path, access: Access = "shared") -> str | None:
    """Explain why a local path cannot be used, or return None if it can, or does not exist.

    A link at the path is a fault. Links above it are followed.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"cannot be looked at ({error.strerror}). Check permissions"
    if stat.S_ISLNK(status.st_mode):
        return LINK
    user = os.geteuid()
    groups = {str(group) for group in (os.getegid(), *os.getgroups())}
    names = _name_of(status.st_uid), str(status.st_gid), status.st_mode
    return fault_of(names, _name_of(user), groups, access, _name_of(0))


def _name_of(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} ({user})"
    except KeyError:
        return str(user)


def write_aside(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file under a name that others may know. Links of another user are not followed."""
    path.unlink(missing_ok=True)
    _write_exclusively(path, content, mode)


def write_new(path: str | Path, content: bytes, mode: int) -> None:
    """Write a file as a whole or not at all, flushed to the disk. Raises if the path exists.

    Its permissions are ``mode`` less the umask. A hard link publishes the file in one step. File
    systems without hard links get an exclusive open, which a crash may leave incomplete.
    """
    target = Path(path)
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.writing")
    try:
        write_aside(hidden, content, mode)
        os.link(hidden, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _write_exclusively(target, content, mode)
    finally:
        with suppress(OSError):
            hidden.unlink()


def _write_exclusively(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def make_private(path: Path) -> None:
    """Create a directory for its owner alone, below a parent that exists.

    Raises PermissionError if it exists and others made it, or may have changed it.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        fault = fault_at(path, "code")
        if fault is not None:
            raise PermissionError(f"{path} {fault}") from None
        if not path.is_dir():
            raise
    # The umask may have taken more away.
    path.chmod(0o700)
