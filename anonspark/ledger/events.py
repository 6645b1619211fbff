"""The events of a ledger: one file each, which holds the hash of the file before it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from anonspark.engine.files import Files
from anonspark.errors import DataError, PublishingError
from anonspark.ledger.creating import create_whole, digest_of
from anonspark.ledger.layout import Layout

CREATED = "created"
PLANNED = "planned"
PUBLISHED = "published"
FAILED = "failed"
REFUSED = "refused"
WITHDRAWN = "withdrawn"
BASE = "base"

TYPES = (CREATED, PLANNED, PUBLISHED, FAILED, REFUSED, WITHDRAWN, BASE)
"""What events can be."""

_OF_EVERY = ("number", "previous", "time", "type")


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    number : int
        1, 2, ...
    previous : str
        SHA-256 of the file before it, in hexadecimal digits.
    time : str
        In UTC, to the second.
    type : str
        One of :data:`TYPES`.
    told : mapping
        The rest, which depends on the type.
    """

    number: int
    previous: str
    time: str
    type: str
    told: Mapping[str, Any] = field(default_factory=dict)

    def to_text(self) -> str:
        """Return the content of its file."""
        own = {name: getattr(self, name) for name in _OF_EVERY}
        return json.dumps({**own, **self.told}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def of_text(cls, text: str) -> Event:
        """Return an event, given the content of its file.

        Raises
        ------
        ValueError
            If it is none.
        """
        read = json.loads(text)
        if not isinstance(read, dict):
            raise TypeError
        number, previous, time, kind = (read.pop(name) for name in _OF_EVERY)
        if kind not in TYPES:
            raise ValueError
        return cls(number, previous, time, kind, read)


@dataclass
class Events:
    """The events of a ledger, in their order, and the end of their chain.

    Parameters
    ----------
    files : Files
    layout : Layout
    events : list of Event
    digest : str
        SHA-256 of the last file.
    """

    files: Files
    layout: Layout
    events: list[Event]
    digest: str

    @classmethod
    def read(cls, files: Files, layout: Layout) -> Events:
        """Read all events, and check that none is missing or was changed.

        Raises
        ------
        DataError
            If the chain is broken.
        """
        digest = digest_of(files.read_text(layout.head))
        events: list[Event] = []
        for number, path in enumerate(_files_of(files, layout), start=1):
            if path != layout.event(number):
                raise DataError(
                    f"ledger: {layout.event(number)} is missing, and later events are there; "
                    "nothing can be added to a ledger with a gap; bring the file back from a copy"
                )
            text = files.read_text(path)
            try:
                event = Event.of_text(text)
            except (ValueError, TypeError, KeyError) as error:
                raise DataError(
                    f"ledger: {path} is not an event as anonspark writes them: it was changed, or "
                    "cut off; bring the file back from a copy"
                ) from error
            if event.number != number or event.previous != digest:
                raise DataError(
                    f"ledger: {path} does not follow from the file before it: one of the two was "
                    "changed; bring both back from a copy"
                )
            events.append(event)
            digest = digest_of(text)
        return cls(files, layout, events, digest)

    def append(self, kind: str, told: Mapping[str, Any]) -> Event:
        """Write the next event.

        Raises
        ------
        PublishingError
            If another process has written one of this number.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        event = Event(len(self.events) + 1, self.digest, time, kind, dict(told))
        text, path = event.to_text(), self.layout.event(event.number)
        try:
            create_whole(self.files, path, text)
        except FileExistsError as error:
            raise PublishingError(
                f"ledger: another process has written event {event.number} meanwhile; nothing was "
                "published on its account; run it again"
            ) from error
        self.events.append(event)
        self.digest = digest_of(text)
        return event


def _files_of(files: Files, layout: Layout) -> Sequence[str]:
    """Return the files of events in their order; drafts of killed processes are passed over."""
    return [
        path
        for path in files.children(layout.events)
        if not path.rpartition("/")[2].startswith((".", "_"))
    ]
