"""The events of a ledger, one signed file each, and the releases that they list."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, cast

from anonspark.config.budget import BudgetOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.engine.files import Files, sync_local
from anonspark.errors import DataError, PublishingError
from anonspark.layers.publish.paths import require_apart_from_table
from anonspark.ownership import fault_at, write_aside
from anonspark.pipeline.context import Release, RunContext
from anonspark.release.signatures import key_name
from anonspark.sharing.ledger.budget import RECORD, Limit, list_release, open_budget
from anonspark.sharing.ledger.chain import Key, Link, append_link, read_chain
from anonspark.sharing.ledger.lock import Layout, text_of

_ACCEPT = "If you are sure that the ledger is the newest, run anonspark ledger check --as-newest"


def path_of(key: Key) -> Path:
    """Return the file beside a key that remembers the last event of its ledger.

    >>> str(path_of(Key(b"", "/keys/ledger")))
    '/keys/ledger.last'
    """
    return Path(f"{key.path}.last")


def _text(key: Key, number: int, digest: str) -> str:
    """Return the content of that file, signed."""
    document = {"number": number, "event": digest}
    return text_of({**document, "signature": key.sign(text_of(document))})


def remember(key: Key, digests: Sequence[str], *, older: bool = False) -> None:
    """Store the last event of a ledger next to the key, unless a later one is stored.

    ``digests`` are the SHA-256 of the head and of each event. With ``older`` a later event is
    replaced. Raises DataError if the file was changed, or belongs to another user, and
    PublishingError if it cannot be written.
    """
    path, number = path_of(key), len(digests) - 1
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if not older and (remembered(key) or (0,))[0] > number:
            return
        write_aside(aside, _text(key, number, digests[-1]).encode(), 0o600)
        aside.replace(path)
        sync_local(str(path.parent))
    except OSError as error:
        raise PublishingError(
            f"ledger.key_file: {path} cannot be written ({error.strerror}), which remembers the "
            "last event of the ledger. Nothing is published on its account. See to it that the "
            "directory of the key can be written"
        ) from error


def remembered(key: Key) -> tuple[int, str] | None:
    """Return number and SHA-256 of the last event that is stored next to the key, or None.

    Raises DataError if the file was changed, or belongs to another user.
    """
    path = path_of(key)
    fault = fault_at(path, "private")
    if fault is not None:
        raise DataError(f"ledger: {path} {fault}")
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text)
        if text != _text(key, document["number"], document["event"]):
            raise ValueError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"ledger: {path} is not as anonspark writes it. Bring it back from a copy. {_ACCEPT}"
        ) from error
    return document["number"], document["event"]


def require_newest(
    key: Key, last: tuple[int, str] | None, digests: Sequence[str], path: str
) -> None:
    """Raise DataError unless a ledger has the event that is remembered as its last one.

    ``last`` is that of :func:`remembered`, read before the events were listed, ``digests`` are the
    SHA-256 of the head and of each event, and ``path`` is that of the events.
    """
    if last is None:
        raise DataError(
            f"ledger: {path_of(key)} is missing, so nothing next to the key shows which event of "
            f"{path} is the last one. Bring it back from a copy, or name the key next to which it "
            f"lies. {_ACCEPT}"
        )
    if last[1] != dict(enumerate(digests)).get(last[0]):
        raise DataError(
            f"ledger: {path} is older than it was, or another: event {last[0]}, which is "
            f"remembered next to {key.path}, is not among its {len(digests) - 1}. Bring the newest "
            f"copy back. If there is none, what was given since does not count any more. {_ACCEPT}"
        )


CREATED = "created"
PREPARED = "prepared"
PLANNED = "planned"
PUBLISHED = "published"
FAILED = "failed"
REFUSED = "refused"
WITHDRAWN = "withdrawn"
BASE = "base"

TYPES = (CREATED, PREPARED, PLANNED, PUBLISHED, FAILED, REFUSED, WITHDRAWN, BASE)
"""The kinds of events."""


@dataclass
class Events:
    """The events of a ledger, in their order, and the end of their chain.

    ``digests`` are the SHA-256 of the head and of each file. Without a key nothing can be added.
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

        Without a key neither signatures nor the end of the chain are checked. With ``as_newest``
        the end is not, whatever is remembered. Raises DataError if the chain is broken, or lacks
        the event that is remembered as its last one.
        """
        head = files.read_text(layout.head)
        newest = None if as_newest else key
        sign = None if key is None else key.sign
        # Read first: another process may add and remember events meanwhile.
        last = None if newest is None else remembered(newest)
        links, digests = read_chain(files, (layout.head, head), layout.events, layout.event, sign)
        if newest is not None:
            require_newest(newest, last, digests, layout.events)
        for link in links:
            if link.content.get("type") not in TYPES:
                raise DataError(
                    f"ledger: {link.path} is not an event as anonspark writes them: it was "
                    "changed, or cut off. Bring the file back from a copy"
                )
        return cls(files, layout, links, digests, key)

    def append(self, kind: str, content: Mapping[str, Any]) -> Link:
        """Write the next event.

        Raises PublishingError if another process has written the event of this number, or it cannot
        be remembered.
        """
        if self.key is None:
            raise ValueError("an event is added without the key of the ledger")
        path = self.layout.event(len(self.digests))
        try:
            event, digest = append_link(
                self.files, path, self.digests, {"type": kind, **content}, self.key.sign
            )
        except FileExistsError as error:
            raise PublishingError(
                f"ledger: another process has written event {len(self.digests)} meanwhile. Nothing "
                "was published on its account. Run it again"
            ) from error
        self.events.append(event)
        self.digests.append(digest)
        remember(self.key, self.digests)
        return event

    def remember(self, *, older: bool = False) -> None:
        """Write down beside the key which event is the last one. See :func:`remember`."""
        if self.key is not None:
            remember(self.key, self.digests, older=older)


# Where a population is: its path and options may say more than a ledger should.
_PLACES = {"delta_presence": {"population", "format", "options"}}


def require_listable(context: RunContext) -> None:
    """Check, before any work, that a release can be written down. Make the ledger if there is none.

    Raises ConfigurationError if the ledger has another limit, or there is none and no limit is
    given, or if it lies inside input or output, or one of them inside it, and GuaranteeError if its
    chain is broken.
    """
    options = _options(context)
    limit = _limit(options)
    require_apart_from_table(context.files, context.configuration, "ledger.path", options.path)
    open_budget(context.files, _path_of(context, options), limit).require_same(limit)


def list_staged(context: RunContext, release: Release) -> None:
    """Record a release that is proven, before it is published.

    So no release is ever missing in the ledger, whenever the process is killed. If it is not
    published after all, the entry stays. Errors are those of :func:`require_listable`, and
    PublishingError if the entry cannot be written. Then nothing is published.
    """
    options, configuration = _options(context), context.configuration
    key = configuration.output.signing_key
    content = {
        "run_id": context.run_id,
        "command": "run",
        "mechanism": configuration.model.name,
        "settings": configuration.settings_fingerprint(),
        "release": release.summary["output_fingerprint"],
        **({} if key is None else {"signer": key_name(key)}),
        **_criteria(configuration.privacy),
    }
    list_release(context.files, _path_of(context, options), _limit(options), content)


def _criteria(privacy: PrivacyOptions) -> dict[str, object]:
    """Return k and what else was asked for.

    >>> _criteria(PrivacyOptions(k=5))
    {'k': 5, 'criteria': {}}
    """
    options = privacy.model_dump(mode="json", exclude_defaults=True, exclude=_PLACES)
    return {"k": options.pop("k"), "criteria": options}


def _options(context: RunContext) -> BudgetOptions:
    """Return the section ``ledger``, which its owner reads only if there is one."""
    # The owner of the section is asked only if there is one.
    return cast("BudgetOptions", context.configuration.ledger)


def _limit(options: BudgetOptions) -> Limit:
    """Return the limit for a run's release."""
    return Limit(options.most, "add_remove", RECORD)


def _path_of(context: RunContext, options: BudgetOptions) -> str:
    """Return the directory of the data set."""
    return context.files.qualified(options.directory)


State = Literal["planned", "published", "failed", "withdrawn"]

_ENDS: Mapping[str, State] = {PUBLISHED: "published", FAILED: "failed", WITHDRAWN: "withdrawn"}


@dataclass(frozen=True)
class LedgerRelease:
    """A release as its event describes it.

    ``number`` and ``time`` are those of the event ``planned``, ``content`` is what it says (see
    docs/algorithms.md, Events of a ledger). ``withdrawn`` says who withdrew it and why, and is
    empty if that is unknown.

    >>> release = LedgerRelease("a-1", "a", 3, "", "published", {"until": "2026-01-31"})
    >>> release.counts, release.public, release.is_past(date(2026, 2, 1))
    (True, False, True)
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
        """Whether its recipient has it, as far as the ledger knows."""
        return self.state in ("planned", "published")

    @property
    def public(self) -> bool:
        """Whether it is open to all."""
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
    """Return all releases by name, in the order of the events of a sound chain.

    >>> content = {"release": "a-1", "recipient": "a", "time": "", "type": "planned"}
    >>> events = [Link(1, "", content), Link(2, "", {**content, "type": "published"})]
    >>> releases_of(events)["a-1"].state
    'published'
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
