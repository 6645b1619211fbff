"""The budget of a data set: all that was published about its people, and what that cost of a limit.

Losses of one table about the same people add up. An entry is written before records are read, and
stays if the run fails later, for what was drawn may have been seen. Releases have no loss: their
entries say that they were made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from anonspark._version import __version__
from anonspark.config.budget import DATASET, in_decimals
from anonspark.engine.files import Files, require_ours
from anonspark.errors import ConfigurationError, DataError, GuaranteeError, PublishingError
from anonspark.sharing.ledger.chain import (
    CHANGED,
    Link,
    append_link,
    not_read,
    read_chain,
)
from anonspark.sharing.ledger.lock import create_whole, text_of

Neighbors = Literal["add_remove", "replace"]

Unit = str | dict[str, object]
"""The records that may differ: :data:`RECORD`, or ``{"person": column, "rows": records at
most}``."""

RECORD = "record"

RELEASE = "release"
"""Kind of the entries that cost nothing."""

_LIMIT = "limit.json"
_ENTRY = re.compile(r"[0-9]{6,}\.json")


@dataclass(frozen=True)
class Limit:
    """The budget that may be spent, and the meaning of a loss: whose records may differ, and how.

    A limit of None is that of the existing budget.

    >>> Limit.of_text(Limit(Fraction(1, 2), "replace", RECORD).to_text()).limit
    Fraction(1, 2)
    """

    limit: Fraction | None
    neighbors: Neighbors
    unit: Unit

    def to_text(self) -> str:
        """Return the content of its file."""
        document = {"limit": str(self.limit), "neighbors": self.neighbors, "unit": self.unit}
        return text_of(document)

    @classmethod
    def of_text(cls, text: str) -> Limit:
        """Read the content of its file.

        Raises ValueError, TypeError, KeyError or ZeroDivisionError if it is none.
        """
        document = json.loads(text)
        unit = document["unit"]
        person = isinstance(unit, dict) and set(unit) == {"person", "rows"}
        if document["neighbors"] not in ("add_remove", "replace") or not (unit == RECORD or person):
            raise ValueError
        return cls(Fraction(document["limit"]), document["neighbors"], unit)


@dataclass(frozen=True)
class Entry:
    """Something that was published, or drawn.

    Entries are numbered from 1 on. In ``content``, ``epsilon``, ``spent_before`` and
    ``spent_after`` are fractions as texts. A release has no ``epsilon``.
    """

    number: int
    content: Mapping[str, Any]
    limit: Fraction

    @property
    def spent_after(self) -> Fraction:
        """The sum that is spent with it."""
        return Fraction(self.content["spent_after"])


@dataclass(frozen=True)
class Budget:
    """The budget of one data set, at a path.

    ``digests`` are the SHA-256 of the limit's file and of each entry.

    >>> budget = Budget("/ledger/visits", Fraction(1), "add_remove", RECORD, [], [])
    >>> budget.loss(Limit(None, "replace", RECORD), Fraction(1, 2))
    Fraction(1, 4)
    """

    path: str
    limit: Fraction
    neighbors: Neighbors
    unit: Unit
    entries: list[Entry]
    digests: list[str]

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.path.rpartition("/")[2]

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {
            "limit": str(self.limit),
            "neighbors": self.neighbors,
            "unit": self.unit,
            "spent": str(self.spent),
            "left": str(self.left),
            "entries": [dict(entry.content) for entry in self.entries],
        }

    @property
    def spent(self) -> Fraction:
        """The sum that was spent so far."""
        return self.entries[-1].spent_after if self.entries else Fraction(0)

    @property
    def left(self) -> Fraction:
        """The sum that may still be spent."""
        return self.limit - self.spent

    def loss(self, limit: Limit, epsilon: Fraction) -> Fraction:
        """Return a loss in terms of this budget: replacing a record is removing and adding one.

        Raises ConfigurationError if another limit or unit is asked for.
        """
        self.require_same(limit)
        if limit.unit != self.unit:
            raise self._other("selection.person", in_words(limit.unit), in_words(self.unit))
        if limit.neighbors == self.neighbors:
            return epsilon
        return epsilon / 2 if self.neighbors == "add_remove" else epsilon * 2

    def require_same(self, limit: Limit) -> None:
        """Raise ConfigurationError if another limit is asked for."""
        if limit.limit is not None and limit.limit != self.limit:
            raise self._other("ledger.limit", in_decimals(limit.limit), in_decimals(self.limit))

    def _other(self, key: str, value: str, expected: str) -> ConfigurationError:
        """Describe an option that contradicts the ledger."""
        return ConfigurationError(
            f"{key}: found {value}. The ledger at {self.path} has {expected}. Expected the same, "
            "because it was fixed when the ledger was made. Correct it"
        )

    def require_left(self, loss: Fraction) -> None:
        """Raise GuaranteeError if so much may not be spent any more."""
        if self.spent + loss > self.limit:
            raise GuaranteeError(
                f"ledger: {in_decimals(self.spent)} of {in_decimals(self.limit)} are spent, and "
                f"{in_decimals(loss)} more would exceed the limit. Nothing was drawn. Ask for "
                "less, or do not ask"
            )


def in_words(unit: Unit) -> str:
    """Name a unit in a message.

    >>> in_words({"person": "name", "rows": 3})
    "a person of 'name' with at most 3 records"
    """
    if isinstance(unit, str):
        return f"a {unit}"
    return f"a person of {unit.get('person')!r} with at most {unit.get('rows')} records"


def read_budget(files: Files, path: str) -> Budget | None:
    """Read the budget of a data set's directory and check its chain, or return None without one.

    Raises ConfigurationError if other users can write there, and GuaranteeError if an entry is
    missing or was changed.
    """
    require_ours(files, "ledger.path", files.parent(path))
    require_ours(files, "ledger.path", path, "private")
    head = f"{path}/{_LIMIT}"
    if not files.exists(head):
        children = files.children(path)
        # Another process may have made both meanwhile.
        if not files.exists(head):
            if any(_ENTRY.fullmatch(child.rpartition("/")[2]) for child in children):
                raise _broken(
                    f"{head} is missing, and entries are there. Bring it back from a copy"
                )
            return None
    try:
        text = files.read_text(head)
        limit = Limit.of_text(text)
        most = Fraction(limit.limit or 0)
    except OSError as error:
        raise _broken(not_read(head)) from error
    except (*CHANGED, ZeroDivisionError) as error:
        raise _broken(f"{head} is not as anonspark writes it. Bring it back from a copy") from error
    try:
        links, digests = read_chain(files, (head, text), path, lambda number: _path(path, number))
    except DataError as error:
        raise GuaranteeError(f"{error}. Nothing was drawn or published") from error
    spent = Fraction(0)
    for link in links:
        after = _spent_after(link, spent)
        if after is None or after > most:
            raise _broken(
                f"the sums of {link.path} are not those of the entries before it: it was changed. "
                "Bring it back from a copy"
            )
        spent = after
    entries = [Entry(link.number, link.content, most) for link in links]
    return Budget(path, most, limit.neighbors, limit.unit, entries, digests)


def _broken(text: str) -> GuaranteeError:
    """Say that a budget is broken, and that nothing happened on its account."""
    return GuaranteeError(f"ledger: {text}. Nothing was drawn or published")


def _spent_after(link: Link, spent: Fraction) -> Fraction | None:
    """Return the sum that is spent with an entry, or None if it does not add up.

    >>> content = {"kind": "run", "epsilon": "1/2", "spent_before": "0", "spent_after": "1/2"}
    >>> _spent_after(Link(1, "000001.json", content), Fraction(0))
    Fraction(1, 2)
    """
    content = link.content
    try:
        loss = Fraction(0 if content["kind"] == RELEASE else content["epsilon"])
        sums = Fraction(content["spent_before"]), Fraction(content["spent_after"])
    except (ValueError, TypeError, KeyError, ZeroDivisionError):
        return None
    return sums[1] if loss >= 0 and sums == (spent, spent + loss) else None


def _path(path: str, number: int) -> str:
    """Return the path of an entry.

    >>> _path("visits", 7)
    'visits/000007.json'
    """
    return f"{path}/{number:06d}.json"


def budgets_below(files: Files, path: str) -> list[str]:
    """Return the directories of the data sets whose budgets are in a ledger, in their order."""
    if not files.exists(path):
        return []
    names = sorted(child.rstrip("/").rpartition("/")[2] for child in files.children(path))
    return [
        f"{path}/{name}"
        for name in names
        if DATASET.fullmatch(name)
        and (files.exists(f"{path}/{name}/{_LIMIT}") or files.exists(_path(f"{path}/{name}", 1)))
    ]


def charge(
    files: Files, path: str, limit: Limit, epsilon: Fraction, content: Mapping[str, Any]
) -> Entry:
    """Spend a part of a budget, before anything is drawn on its account.

    ``path`` is the directory of the data set, made if it is absent. ``epsilon`` is above 0, for the
    neighbors of ``limit``, which is that of the configuration. ``content`` has the other recorded
    facts. Several processes at once each get a separate entry, as far as the limit allows, if a
    file can be created exclusively. Raises ConfigurationError if the budget has another limit or
    unit, or there is none and no limit is given, GuaranteeError if the limit would be exceeded, or
    the chain is broken, and PublishingError.
    """
    while True:
        budget = open_budget(files, path, limit)
        loss = budget.loss(limit, epsilon)
        budget.require_left(loss)
        new = {**content, "neighbors": budget.neighbors, "unit": budget.unit, "epsilon": str(loss)}
        entry = _append(files, budget, new, budget.spent + loss)
        if entry is not None:
            return entry


def list_release(files: Files, path: str, limit: Limit, content: Mapping[str, Any]) -> Entry:
    """Record a release, which has no loss, unless it is recorded already.

    A release is recognized by ``run_id`` and ``release`` of its content. Parameters and errors are
    those of :func:`charge`.
    """
    same = ("run_id", "release")
    while True:
        budget = open_budget(files, path, limit)
        budget.require_same(limit)
        for entry in budget.entries:
            if all(name in entry.content and entry.content[name] == content[name] for name in same):
                return entry
        listed = {**content, "kind": RELEASE}
        written = _append(files, budget, listed, budget.spent)
        if written is not None:
            return written


def require_affordable(files: Files, path: str, limit: Limit, epsilon: Fraction) -> Budget | None:
    """Check, before any work, that something could be charged. Return the budget, or None.

    Errors are those of :func:`charge`.
    """
    budget = read_budget(files, path)
    if budget is None:
        require_limit(path, limit)
        empty = Budget(path, Fraction(limit.limit or 0), limit.neighbors, limit.unit, [], [])
        empty.require_left(epsilon)
    else:
        budget.require_left(budget.loss(limit, epsilon))
    return budget


def open_budget(files: Files, path: str, limit: Limit) -> Budget:
    """Read a budget, or create it if there is none.

    Raises ConfigurationError if there is none and no limit is given, or none can be created, and
    GuaranteeError if its chain is broken.
    """
    while True:
        budget = read_budget(files, path)
        if budget is not None:
            return budget
        require_limit(path, limit)
        try:
            files.make_private_directory(path)
            with suppress(FileExistsError):
                create_whole(files, f"{path}/{_LIMIT}", limit.to_text())
        except OSError as error:
            raise ConfigurationError(
                f"ledger.path: no ledger can be made at {path}. Expected a directory that can be "
                "written. Correct it. Nothing was drawn or published"
            ) from error


def require_limit(path: str, limit: Limit) -> None:
    """Raise ConfigurationError if a budget cannot be made because no limit is given."""
    if limit.limit is None:
        raise ConfigurationError(
            f"ledger.limit: missing, and there is no ledger at {path} yet. Expected what may be "
            "spent altogether. Add it"
        )


def _append(
    files: Files, budget: Budget, content: Mapping[str, Any], spent: Fraction
) -> Entry | None:
    """Write the next entry, or return None if another process was faster."""
    sums = {"spent_before": str(budget.spent), "spent_after": str(spent)}
    new = {**content, **sums, "version": __version__}
    try:
        link, _ = append_link(files, _path(budget.path, len(budget.digests)), budget.digests, new)
    except FileExistsError:
        return None
    except OSError as error:
        raise PublishingError(
            f"ledger.path: no entry could be written at {budget.path}. Nothing was drawn or "
            "published. Check that it can be written"
        ) from error
    return Entry(link.number, link.content, budget.limit)
