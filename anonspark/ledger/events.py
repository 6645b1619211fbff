"""The events of a ledger: one signed file each, which holds the hash of the file before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anonspark.engine.files import Files
from anonspark.errors import DataError, PublishingError
from anonspark.ledger.chain import Link, append_link, read_chain
from anonspark.ledger.key import Key
from anonspark.ledger.last_event import remember, remembered, require_newest
from anonspark.ledger.layout import Layout

CREATED = "created"
PREPARED = "prepared"
PLANNED = "planned"
PUBLISHED = "published"
FAILED = "failed"
REFUSED = "refused"
WITHDRAWN = "withdrawn"
BASE = "base"

TYPES = (CREATED, PREPARED, PLANNED, PUBLISHED, FAILED, REFUSED, WITHDRAWN, BASE)
"""What events can be."""


@dataclass
class Events:
    """The events of a ledger, in their order, and the end of their chain.

    Parameters
    ----------
    files : Files
    layout : Layout
    events : list of Link
    digests : list of str
        SHA-256 of the head and of each file.
    key : Key or None
        Of the signatures; without it nothing can be added.
    """

    files: Files
    layout: Layout
    events: list[Link]
    digests: list[str]
    key: Key | None = None

    @classmethod
    def read(
        cls, files: Files, layout: Layout, key: Key | None = None, *, as_newest: bool = False
    ) -> Events:
        """Read all events, and check that none is missing or was changed.

        Parameters
        ----------
        files : Files
        layout : Layout
        key : Key or None
            Without it neither signatures nor the end of the chain are checked.
        as_newest : bool
            Whether they are taken for the newest ones, whatever is remembered.

        Raises
        ------
        DataError
            If the chain is broken, or lacks the event that is remembered as its last one.
        """
        head = files.read_text(layout.head)
        newest = None if as_newest else key
        sign = None if key is None else key.sign
        # First, for another process may add events, and remember them, meanwhile.
        known = None if newest is None else remembered(newest)
        links, digests = read_chain(files, (layout.head, head), layout.events, layout.event, sign)
        if newest is not None:
            require_newest(newest, known, digests, layout.events)
        for link in links:
            if link.told.get("type") not in TYPES:
                raise DataError(
                    f"ledger: {link.path} is not an event as anonspark writes them: it was "
                    "changed, or cut off; bring the file back from a copy"
                )
        return cls(files, layout, links, digests, key)

    def append(self, kind: str, told: Mapping[str, Any]) -> Link:
        """Write the next event.

        Raises
        ------
        PublishingError
            If another process has written one of this number, or it cannot be remembered.
        """
        if self.key is None:
            raise ValueError("an event is added without the key of the ledger")
        path = self.layout.event(len(self.digests))
        try:
            event, digest = append_link(
                self.files, path, self.digests, {"type": kind, **told}, self.key.sign
            )
        except FileExistsError as error:
            raise PublishingError(
                f"ledger: another process has written event {len(self.digests)} meanwhile; nothing "
                "was published on its account; run it again"
            ) from error
        self.events.append(event)
        self.digests.append(digest)
        remember(self.key, self.digests)
        return event

    def remember(self, *, older: bool = False) -> None:
        """Write down beside the key which event is the last one; see :func:`remember`."""
        if self.key is not None:
            remember(self.key, self.digests, older=older)
