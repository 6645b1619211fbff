"""The files of a ledger, and its lock: one process at a time adds to it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anonspark.engine.files import Files
from anonspark.engine.processes import process_identity
from anonspark.errors import PublishingError


def create_whole(files: Files, path: str, text: str) -> None:
    """Write a file in one step, so that no reader sees a part. Raises FileExistsError."""
    if files.rename_copies(path):
        # An object store shows a file only when it is complete.
        files.create_text(path, text)
        return
    if files.exists(path):
        raise FileExistsError(path)
    directory, _, name = path.rpartition("/")
    # Two writers of the same text at once need two drafts: one would empty what the other renamed.
    writer = f"{uuid.getnode()} {os.getpid()} {threading.get_ident()} {text}"
    draft = f"{directory}/.{name}.{digest_of(writer)[:16]}"
    try:
        files.write_text(draft, text)
        files.sync(draft)
        files.rename(draft, path)
        files.sync_names(path)
    except OSError as error:
        files.delete(draft)
        if files.exists(path):
            raise FileExistsError(path) from error
        raise


def digest_of(text: str) -> str:
    """Return the SHA-256 of a file's text, in hexadecimal digits.

    >>> digest_of("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(document: Mapping[str, Any]) -> str:
    r"""Return the content of a file of a ledger.

    >>> text_of({"number": 1})
    '{\n "number": 1\n}\n'
    """
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


FORMAT = 1
"""Version of the ledgers that this version writes, and the newest that it reads."""


@dataclass(frozen=True)
class Layout:
    """Addresses inside of a ledger at a qualified address.

    >>> layout = Layout("/ledger")
    >>> layout.event(3), layout.members("a-1"), layout.base(2)
    ('/ledger/events/00000003.json', '/ledger/members/a-1', '/ledger/base/generation=2')
    """

    path: str

    @property
    def head(self) -> str:
        """The file of what is true of the whole ledger."""
        return f"{self.path}/ledger.json"

    @property
    def events(self) -> str:
        """Directory of the events."""
        return f"{self.path}/events"

    @property
    def lock(self) -> str:
        """File of the process that is at work."""
        return f"{self.path}/lock"

    def event(self, number: int) -> str:
        """Return the path of an event."""
        return f"{self.events}/{number:08d}.json"

    def members(self, release: str) -> str:
        """Return the directory of who is in which class of a release."""
        return f"{self.path}/{self.of_release(release)[0]}"

    def classes(self, release: str) -> str:
        """Return the directory of what is published of the classes of a release."""
        return f"{self.path}/{self.of_release(release)[1]}"

    def base(self, generation: int) -> str:
        """Return the directory of a base partition: who is in which atom."""
        return f"{self.path}/{self.of_base(generation)}"

    @staticmethod
    def of_release(release: str) -> tuple[str, str]:
        """Return the directories of members and classes of a release, inside of the ledger."""
        return f"members/{release}", f"classes/{release}"

    @staticmethod
    def of_base(generation: int) -> str:
        """Return the directory of a base partition, inside of the ledger."""
        return f"base/generation={generation}"


def release_name(recipient: str, run_id: str) -> str:
    """Return the name of a release in a ledger.

    >>> release_name("clinic", "7f")
    'clinic-7f'
    """
    return f"{recipient}-{run_id}"


@contextmanager
def locked(files: Files, layout: Layout, run_id: str) -> Iterator[None]:
    """Hold the lock of a ledger for a run inside of a ``with`` block.

    Raises PublishingError if another process holds it. A lock is taken over from a process of this
    machine that has ended.
    """
    content = {
        "run_id": run_id,
        "host": socket.gethostname(),
        "process": process_identity(os.getpid()),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if is_dead(read_lock(files, layout)):
        files.delete(layout.lock)
    try:
        # As a whole: half a lock of a killed process would name no owner.
        create_whole(files, layout.lock, json.dumps(content))
    except FileExistsError as error:
        holder = read_lock(files, layout) or {}
        raise PublishingError(
            f"ledger: run {holder.get('run_id', 'of an unknown id')} on host "
            f"{holder.get('host', 'unknown')} has held {layout.lock} since "
            f"{holder.get('time', 'an unknown time')}. Wait until it has ended. If it was killed, "
            "see to it that it does not go on, then say anonspark ledger unlock"
        ) from error
    try:
        yield
    finally:
        if read_lock(files, layout) == content:
            files.delete(layout.lock)


def read_lock(files: Files, layout: Layout) -> Mapping[str, Any] | None:
    """Return the holder of the lock, empty if unknown, or None if no process holds it."""
    if not files.exists(layout.lock):
        return None
    try:
        read = json.loads(files.read_text(layout.lock))
    except (ValueError, OSError):
        return {}
    return read if isinstance(read, dict) else {}


def is_dead(held: Mapping[str, Any] | None) -> bool:
    """Return whether a lock is that of a process of this machine that has ended.

    >>> is_dead(None), is_dead({"host": "another machine"})
    (False, False)
    """
    if not held or held.get("host") != socket.gethostname():
        return False
    identity = held.get("process")
    if not isinstance(identity, str):
        return False
    return process_identity(int(identity.split()[1])) != identity
