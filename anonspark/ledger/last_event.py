"""Remember the last event of a ledger beside its key, so that no older ledger takes its place.

What is remembered is written after each event and before anything is published on its account. A
process that is killed between the two leaves a ledger that is ahead, which is sound: its event is
signed. A ledger that lacks what is remembered is not the newest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from anonspark.errors import DataError, PublishingError
from anonspark.ledger.creating import text_of
from anonspark.ledger.key import Key
from anonspark.ownership import fault_at, write_aside

_ACCEPT = "if you are sure that the ledger is the newest, run anonspark ledger check --as-newest"


def path_of(key: Key) -> Path:
    """Return the file beside a key that remembers the last event of its ledger."""
    return Path(f"{key.path}.last")


def _text(key: Key, number: int, digest: str) -> str:
    told = {"number": number, "event": digest}
    return text_of({**told, "signature": key.sign(text_of(told))})


def remember(key: Key, digests: Sequence[str], *, older: bool = False) -> None:
    """Write down the last event of a ledger, unless a later one is remembered.

    Parameters
    ----------
    key : Key
    digests : sequence of str
        SHA-256 of the head and of each event.
    older : bool
        Whether it may take the place of a later one.

    Raises
    ------
    DataError
        If the file was changed, or is not ours.
    PublishingError
        If it cannot be written.
    """
    path, number = path_of(key), len(digests) - 1
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if not older and (remembered(key) or (0,))[0] > number:
            return
        write_aside(aside, _text(key, number, digests[-1]).encode(), 0o600)
        aside.replace(path)
    except OSError as error:
        raise PublishingError(
            f"ledger.key_file: {path} cannot be written ({error.strerror}), which remembers the "
            "last event of the ledger; nothing is published on its account; see to it that the "
            "directory of the key can be written"
        ) from error


def remembered(key: Key) -> tuple[int, str] | None:
    """Return number and SHA-256 of the last event that is remembered, None where none is.

    Raises
    ------
    DataError
        If the file was changed, or is not ours.
    """
    path = path_of(key)
    fault = fault_at(path, "private")
    if fault is not None:
        raise DataError(f"ledger: {path} {fault}")
    try:
        text = path.read_text(encoding="utf-8")
        told = json.loads(text)
        if text != _text(key, told["number"], told["event"]):
            raise ValueError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"ledger: {path} is not as anonspark writes it; bring it back from a copy; {_ACCEPT}"
        ) from error
    return told["number"], told["event"]


def require_newest(
    key: Key, known: tuple[int, str] | None, digests: Sequence[str], path: str
) -> None:
    """Check that a ledger has the event that is remembered as its last one.

    Parameters
    ----------
    key : Key
    known : tuple of int and str, or None
        Of :func:`remembered`, which was asked before the events were listed.
    digests : sequence of str
        SHA-256 of the head and of each event.
    path : str
        Of the events.

    Raises
    ------
    DataError
    """
    if known is None:
        raise DataError(
            f"ledger: {path_of(key)} is missing, so nothing beside the key says which event of "
            f"{path} is the last one; bring it back from a copy, or name the key beside which it "
            f"lies; {_ACCEPT}"
        )
    if known[1] != dict(enumerate(digests)).get(known[0]):
        raise DataError(
            f"ledger: {path} is older than it was, or another: event {known[0]}, which is "
            f"remembered beside {key.path}, is not among its {len(digests) - 1}; bring the newest "
            f"copy back; if there is none, what was given since does not count any more; {_ACCEPT}"
        )
