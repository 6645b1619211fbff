"""Withdrawing: a recipient has destroyed a release, so that it no longer counts."""

from __future__ import annotations

from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.ledger.events import WITHDRAWN
from anonspark.ledger.ledger import key_of, open_ledger
from anonspark.ledger.lock import locked


def withdraw_release(
    files: Files, path: str, release: str, *, reason: str, by: str, key_file: str | None = None
) -> None:
    """Write down that a release no longer counts.

    Parameters
    ----------
    files : Files
    path : str
        Of the ledger.
    release : str
    reason, by : str
        Why, and who says so.
    key_file : str or None
        File of the key; None is the one with which the ledger was made.

    Raises
    ------
    ConfigurationError
        If the ledger has no such release, or it does not count anyway.
    PublishingError
        If another process is at work on the ledger.
    """
    key = key_of(files, path, key_file)
    layout = open_ledger(files, path, key).layout
    with locked(files, layout, "withdraw"):
        ledger = open_ledger(files, path, key)
        known = ledger.releases
        if release not in known:
            counted = ", ".join(one.name for one in ledger.counted) or "none"
            raise ConfigurationError(
                f"RELEASE: the ledger has no {release!r}; those that count are: {counted}"
            )
        one = known[release]
        if one.state != "published":
            raise ConfigurationError(
                f"RELEASE: {release!r} is {one.state}; expected one that is published"
            )
        ledger.events.append(
            WITHDRAWN,
            {"release": release, "recipient": one.recipient, "reason": reason, "by": by},
        )
