"""The releases that a ledger knows, and which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal

from anonspark.sharing.ledger.chain import Link
from anonspark.sharing.ledger.events import FAILED, PLANNED, PUBLISHED, WITHDRAWN

State = Literal["planned", "published", "failed", "withdrawn"]

_ENDS: Mapping[str, State] = {PUBLISHED: "published", FAILED: "failed", WITHDRAWN: "withdrawn"}


@dataclass(frozen=True)
class LedgerRelease:
    """A release as its event describes it.

    Parameters
    ----------
    name : str
    recipient : str
    number : int
        Of the event ``planned``.
    time : str
        Of that event.
    state : str
    content : mapping
        What the event says. See docs/recipients.md, Events.
    withdrawn : mapping
        Who withdrew it and why. Empty if it is unknown.
    """

    name: str
    recipient: str
    number: int
    time: str
    state: State
    content: Mapping[str, Any]
    withdrawn: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Return whether its recipient has it, as far as the ledger knows."""
        return self.state in ("planned", "published")

    @property
    def public(self) -> bool:
        """Return whether everyone has it."""
        return bool(self.content.get("public"))

    @property
    def sensitive(self) -> list[str]:
        """Sensitive attributes that it publishes, in the order of the members' columns."""
        return list(self.content["sensitive"])

    def is_past(self, today: date) -> bool:
        """Return whether the recipient should have destroyed it by now."""
        until = self.content.get("until")
        return until is not None and date.fromisoformat(until) < today


def releases_of(events: Iterable[Link]) -> dict[str, LedgerRelease]:
    """Return all releases by name, in the order of their events.

    Parameters
    ----------
    events : iterable of Link
        Of a chain that holds.
    """
    releases: dict[str, LedgerRelease] = {}
    for event in events:
        name = event.content.get("release")
        if event.type == PLANNED and name is not None:
            # One that failed may be planned again under the same run id.
            releases.pop(name, None)
            releases[name] = LedgerRelease(
                name, event.content["recipient"], event.number, event.time, "planned", event.content
            )
        elif event.type in _ENDS and name in releases:
            withdrawn = event.content if event.type == WITHDRAWN else {}
            releases[name] = replace(releases[name], state=_ENDS[event.type], withdrawn=withdrawn)
    return releases
