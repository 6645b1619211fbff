"""The events of a ledger: one file each, which holds the hash of the file before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anonspark.engine.files import Files
from anonspark.errors import DataError, PublishingError
from anonspark.ledger.chain import BrokenChainError, append_link, now, read_chain
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

    @property
    def content(self) -> dict[str, Any]:
        """The content of its file."""
        return {name: getattr(self, name) for name in _OF_EVERY} | dict(self.told)

    @classmethod
    def of_content(cls, read: Mapping[str, Any]) -> Event:
        """Return an event, given the content of its file.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        told = dict(read)
        number, previous, time, kind = (told.pop(name) for name in _OF_EVERY)
        if kind not in TYPES:
            raise ValueError
        return cls(number, previous, time, kind, told)


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
        head = files.read_text(layout.head)
        try:
            links, digest = read_chain(files, head, _files_of(files, layout), layout.event)
        except BrokenChainError as error:
            raise DataError(f"ledger: {error.text}") from error
        events: list[Event] = []
        for link in links:
            try:
                events.append(Event.of_content(link.told))
            except (ValueError, TypeError, KeyError) as error:
                raise DataError(
                    f"ledger: {link.path} is not an event as anonspark writes them: it was "
                    "changed, or cut off; bring the file back from a copy"
                ) from error
        return cls(files, layout, events, digest)

    def append(self, kind: str, told: Mapping[str, Any]) -> Event:
        """Write the next event.

        Raises
        ------
        PublishingError
            If another process has written one of this number.
        """
        event = Event(len(self.events) + 1, self.digest, now(), kind, dict(told))
        try:
            digest = append_link(self.files, self.layout.event(event.number), event.content)
        except FileExistsError as error:
            raise PublishingError(
                f"ledger: another process has written event {event.number} meanwhile; nothing was "
                "published on its account; run it again"
            ) from error
        self.events.append(event)
        self.digest = digest
        return event


def _files_of(files: Files, layout: Layout) -> Sequence[str]:
    """Return the files of events in their order; drafts of killed processes are passed over."""
    return [
        path
        for path in files.children(layout.events)
        if not path.rpartition("/")[2].startswith((".", "_"))
    ]
