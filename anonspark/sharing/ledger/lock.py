"""The lock of a ledger: one process at a time adds to it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from anonspark.engine.files import Files
from anonspark.engine.processes import process_identity
from anonspark.errors import PublishingError
from anonspark.sharing.ledger.exclusive_files import create_whole
from anonspark.sharing.ledger.layout import Layout


@contextmanager
def locked(files: Files, layout: Layout, run_id: str) -> Iterator[None]:
    """Hold the lock of a ledger inside of a ``with`` block.

    Parameters
    ----------
    files : Files
    layout : Layout
    run_id : str
        Of who holds it.

    Raises
    ------
    PublishingError
        If another process holds it. That of a process of this machine that has ended is taken
        over.
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
        # As a whole: half a lock of a killed process would be no one's.
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
    """Return whether a lock is that of a process of this machine that has ended."""
    if not held or held.get("host") != socket.gethostname():
        return False
    identity = held.get("process")
    if not isinstance(identity, str):
        return False
    return process_identity(int(identity.split()[1])) != identity
