"""A ledger that is opened, or made, and releases that it withdraws."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonspark.engine.files import Files, require_ours
from anonspark.errors import ConfigurationError, DataError
from anonspark.sharing.ledger.chain import Key, Link, now, read_key
from anonspark.sharing.ledger.events import (
    BASE,
    CREATED,
    PLANNED,
    PREPARED,
    WITHDRAWN,
    Events,
    LedgerRelease,
    path_of,
    releases_of,
    remember,
    remembered,
)
from anonspark.sharing.ledger.lock import FORMAT, Layout, digest_of, locked, text_of


@dataclass(frozen=True)
class Ledger:
    """A ledger whose chain of events holds. ``head`` has what is true of the whole ledger."""

    files: Files
    layout: Layout
    head: Mapping[str, Any]
    events: Events

    @property
    def record(self) -> list[str]:
        """The columns that distinguish the records of a person, or nothing if each has one."""
        return list(self.head.get("record", []))

    @property
    def releases(self) -> dict[str, LedgerRelease]:
        """All releases by name, in the order of their events."""
        return releases_of(self.events.events)

    @property
    def unfinished(self) -> set[str]:
        """Directories of what was prepared and not planned: its process is at work, or dead."""
        directories: set[str] = set()
        for event in self.events.events:
            if event.type == PREPARED:
                directories |= set(event.content["directories"])
            elif event.type == PLANNED:
                directories -= set(self.layout.of_release(event.content["release"]))
            elif event.type == BASE:
                directories.discard(self.layout.of_base(event.content["generation"]))
        return directories

    @property
    def counted(self) -> list[LedgerRelease]:
        """The releases that recipients have."""
        return [release for release in self.releases.values() if release.counts]

    @property
    def subject_types(self) -> list[str] | None:
        """The type families of the subject's columns, or None before the first plan."""
        planned = (event.content for event in self.events.events if event.type == PLANNED)
        return next((list(content["subject_types"]) for content in planned), None)

    @property
    def generation(self) -> int:
        """Number of the newest base partition, or 0 if there is none."""
        last = self.last_base
        return 0 if last is None else int(last.content["generation"])

    @property
    def last_base(self) -> Link | None:
        """The event of the newest base partition, or None."""
        return next((event for event in reversed(self.events.events) if event.type == BASE), None)

    def generation_before(self, run_id: str) -> int:
        """Return the newest base partition that a run starts from, or 0 if there is none.

        It passes over the one that an attempt of the same run wrote and published nothing of, so
        that the run makes the same atoms again, under the same names.
        """
        last = self.last_base
        if last is None or last.content["run_id"] != run_id:
            return self.generation
        if any(
            release.counts and release.content["run_id"] == run_id
            for release in self.releases.values()
        ):
            return self.generation
        return self.generation - 1


def init_ledger(
    files: Files, path: str, key: Key, subject: Sequence[str], record: Sequence[str] = ()
) -> Ledger:
    """Create a ledger in an empty or absent directory.

    A ledger that a stopped process began for the same key and people is completed. ``subject`` are
    the columns that identify people, and ``record`` those that distinguish the records of a person,
    if one may have several. Raises ConfigurationError if the directory is in use, and
    PublishingError.
    """
    layout = Layout(files.qualified(path).rstrip("/"))
    identity = {"subject": list(subject)} | ({"record": list(record)} if record else {})
    draft = f".{layout.head.rpartition('/')[2]}.writing"
    require_ours(files, "ledger", layout.path, "code")
    if _begun(files, layout, draft, key, identity) is None:
        _require_unused(files, layout, draft, key)
    for directory in ("", "/events", "/members", "/classes", "/base"):
        files.make_private_directory(f"{layout.path}{directory}")
    with locked(files, layout, "ledger init"):
        # Again, because another process may have made it meanwhile.
        text = _begun(files, layout, draft, key, identity)
        if text is None:
            _require_unused(files, layout, draft, key)
            # A nonce makes every ledger unique.
            drawn = {"format": FORMAT, "nonce": secrets.token_hex(8)}
            of_key = {"key": key.fingerprint, "key_file": key.path, "time": now()}
            text = text_of(drawn | identity | of_key)
            files.replace(f"{layout.path}/{draft}", text.encode(), f"{draft}.aside")
            # Remember it first: a ledger without a remembered event is refused.
            remember(key, [digest_of(text)])
        if not files.exists(layout.head):
            files.rename(f"{layout.path}/{draft}", layout.head)
            files.sync_names(layout.head)
        events = Events.read(files, layout, key)
        events.append(CREATED, identity)
    head: dict[str, object] = json.loads(text)
    return Ledger(files, layout, head, events)


def _require_unused(files: Files, layout: Layout, draft: str, key: Key) -> None:
    """Raise ConfigurationError if the key or the directory belongs to another ledger."""
    last = path_of(key)
    if os.path.lexists(last):
        raise ConfigurationError(
            f"--key-file: {last} is there already, so the key is that of another ledger. Expected "
            "a key for each ledger. Name another file, in which a new key is written"
        )
    lock = layout.lock.rpartition("/")[2]
    drafts = (draft, lock, f".{lock}.")
    if any(
        file.kind != "directory" and not file.path.startswith(drafts)
        for file in files.tree(layout.path)
    ):
        content = "a ledger" if files.exists(layout.head) else "something else"
        raise ConfigurationError(
            f"ledger: found {content} at {layout.path}. Expected an empty directory, or none. "
            "Choose another path"
        )


def _begun(
    files: Files, layout: Layout, draft: str, key: Key, identity: Mapping[str, Any]
) -> str | None:
    """Return the head of a ledger that a stopped process began for the same key, or None.

    What is remembered with the key then names the head by its digest, and no event.
    """
    head_path = next(filter(files.exists, (layout.head, f"{layout.path}/{draft}")), None)
    if head_path is None or files.exists(layout.event(1)):
        return None
    text = files.read_text(head_path)
    if remembered(key) != (0, digest_of(text)):
        return None
    head = json.loads(text)
    columns = {name: head[name] for name in ("subject", "record") if name in head}
    return text if columns == identity else None


def open_ledger(
    files: Files, path: str, key: Key | None = None, *, as_newest: bool = False
) -> Ledger:
    """Open a ledger and check its chain of events.

    Without a key nothing is added, no person is looked up, and no signature checked. With
    ``as_newest`` it is taken for the newest, whatever is remembered beside the key. Raises
    ConfigurationError as :func:`find_ledger`, and DataError if events are not as they were written,
    or not the newest.
    """
    layout, head = find_ledger(files, path, key)
    events = Events.read(files, layout, key, as_newest=as_newest)
    return Ledger(files, layout, head, events)


def find_ledger(
    files: Files, path: str, key: Key | None = None
) -> tuple[Layout, Mapping[str, Any]]:
    """Return the paths of a ledger, and its head. Its events are not read.

    Without a key any is accepted. Raises ConfigurationError if there is none, other users can write
    there, it is of a newer format, or its key is another, and DataError if its head was changed.
    """
    layout = Layout(files.qualified(path).rstrip("/"))
    require_ours(files, "ledger.path", layout.path, "private")
    if not files.exists(layout.head):
        kind = "something else" if files.exists(layout.path) else "nothing"
        raise ConfigurationError(
            f"ledger.path: found {kind} at {layout.path}. Expected a ledger. Check the path, or "
            "make one with anonspark ledger init"
        )
    head = _read_head(files, layout)
    if key is not None and head["key"] != key.fingerprint:
        raise ConfigurationError(
            f"ledger.key_file: found the key {key.fingerprint}. {layout.head} names the key "
            f"{head['key']}, with which the ledger was made. Name the file of that key"
        )
    return layout, head


def key_of(files: Files, path: str, key_file: str | None) -> Key:
    """Return the key of a ledger: of a named file, or of the file with which it was made.

    Errors are those of :func:`find_ledger` and :func:`read_key`.
    """
    if key_file is not None:
        return read_key(key_file, "--key-file")
    layout, head = find_ledger(files, path)
    return read_key(str(head["key_file"]), f"--key-file, or key_file in {layout.head}")


def _read_head(files: Files, layout: Layout) -> Mapping[str, Any]:
    """Read the head of a ledger, and refuse a newer format."""
    try:
        head = json.loads(files.read_text(layout.head))
        version = head["format"]
        if isinstance(version, int) and version > FORMAT:
            raise ConfigurationError(
                f"ledger.path: {layout.path} has format {version}. This version reads format "
                f"{FORMAT}. Use the version of anonspark that wrote it, or a later one"
            )
        strings = isinstance(head["key"], str) and isinstance(head["key_file"], str)
        if not strings or not isinstance(head["subject"], list):
            raise TypeError
        if not isinstance(head.get("record", []), list):
            raise TypeError
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"ledger: {layout.head} is not as anonspark writes it. Bring it back from a copy"
        ) from error
    return dict(head)


def withdraw_releases(
    files: Files,
    path: str,
    releases: Sequence[str],
    *,
    reason: str,
    by: str,
    key_file: str | None = None,
) -> None:
    """Record that releases no longer count: all of them, or none if one is refused.

    ``key_file`` is the file of the key, or None for the key with which the ledger was made. Raises
    ConfigurationError if the ledger has no such release, or one does not count anyway, and
    PublishingError if another process works on the ledger.
    """
    key = key_of(files, path, key_file)
    layout, _ = find_ledger(files, path, key)
    with locked(files, layout, "withdraw"):
        ledger = open_ledger(files, path, key)
        by_name = ledger.releases
        for release in releases:
            if release not in by_name:
                counted = ", ".join(other.name for other in ledger.counted) or "none"
                raise ConfigurationError(
                    f"RELEASE: the ledger has no {release!r}. Those that count are: {counted}"
                )
            if by_name[release].state != "published":
                raise ConfigurationError(
                    f"RELEASE: {release!r} is {by_name[release].state}. Expected one that is "
                    "published"
                )
        for release in dict.fromkeys(releases):
            recipient = by_name[release].recipient
            ledger.events.append(
                WITHDRAWN,
                {"release": release, "recipient": recipient, "reason": reason, "by": by},
            )
