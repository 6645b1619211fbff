"""Withdrawing: a recipient has destroyed a release, so that it no longer counts."""

from __future__ import annotations

from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.ledger.events import WITHDRAWN
from anonspark.ledger.ledger import open_ledger
from anonspark.ledger.lock import locked


def withdraw_release(files: Files, path: str, release: str, *, reason: str, by: str) -> None:
    """Write down that a release no longer counts.

    Parameters
    ----------
    files : Files
    path : str
        Of the ledger.
    release : str
    reason, by : str
        Why, and who says so.

    Raises
    ------
    ConfigurationError
        If the ledger has no such release, or it does not count anyway.
    PublishingError
        If another process is at work on the ledger.
    """
    layout = open_ledger(files, path).layout
    with locked(files, layout, "withdraw"):
        ledger = open_ledger(files, path)
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
