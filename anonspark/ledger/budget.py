"""The budget of a data set: what was spent of a limit on privacy loss, entry by entry.

Losses of one table about the same people add up. An entry is written before noise is drawn, and
stays if the run fails later, for what was drawn may have been seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal

from anonspark._version import __version__
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.ledger.creating import create_whole, digest_of

DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What the name of a data set looks like."""

Neighbors = Literal["add_remove", "replace"]

_LIMIT = "limit.json"
_ENTRY = re.compile(r"[0-9]{6}\.json")


@dataclass(frozen=True)
class Limit:
    """What may be spent, and what a loss is.

    Parameters
    ----------
    limit : Fraction
    neighbors : {"add_remove", "replace"}
    unit : str
        Whose records may differ.
    """

    limit: Fraction
    neighbors: Neighbors
    unit: str

    def to_text(self) -> str:
        """Return the content of its file."""
        told = {"limit": str(self.limit), "neighbors": self.neighbors, "unit": self.unit}
        return json.dumps(told, indent=1) + "\n"


@dataclass(frozen=True)
class Entry:
    """Something that was spent.

    Parameters
    ----------
    number : int
        1, 2, ...
    told : mapping
        What is told of it; ``epsilon``, ``spent_before`` and ``spent_after`` are fractions as
        texts.
    """

    number: int
    told: Mapping[str, Any]

    @property
    def spent_after(self) -> Fraction:
        """What is spent with it."""
        return Fraction(self.told["spent_after"])


@dataclass(frozen=True)
class Budget:
    """The budget of one data set, as it is.

    Parameters
    ----------
    path : str
        Its directory.
    limit : Limit
    entries : list of Entry
    digest : str
        SHA-256 of the last file.
    """

    path: str
    limit: Limit
    entries: list[Entry]
    digest: str

    @property
    def spent(self) -> Fraction:
        """What was spent so far."""
        return self.entries[-1].spent_after if self.entries else Fraction(0)

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return self.limit.limit - self.spent


def read_budget(files: Files, path: str) -> Budget | None:
    """Read a budget and check its chain; None where there is none.

    Parameters
    ----------
    files : Files
    path : str
        Directory of the data set.

    Raises
    ------
    GuaranteeError
        If an entry is missing or was changed.
    """
    head = f"{path}/{_LIMIT}"
    if not files.exists(head):
        return None
    text = files.read_text(head)
    try:
        told = json.loads(text)
        limit = Limit(Fraction(told["limit"]), told["neighbors"], told["unit"])
    except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise GuaranteeError(
            f"ledger: {head} is not as anonspark writes it; nothing was drawn; bring it back from "
            "a copy"
        ) from error
    digest, spent = digest_of(text), Fraction(0)
    entries: list[Entry] = []
    names = sorted(one.rpartition("/")[2] for one in files.children(path))
    for number, name in enumerate(filter(_ENTRY.fullmatch, names), start=1):
        place = f"{path}/{name}"
        text = files.read_text(place)
        try:
            told = json.loads(text)
            before, loss = Fraction(told["spent_before"]), Fraction(told["epsilon"])
            sound = (
                name == f"{number:06d}.json"
                and told["number"] == number
                and told["previous"] == digest
                and before == spent
                and loss >= 0
                and Fraction(told["spent_after"]) == before + loss
            )
        except (ValueError, TypeError, KeyError, ZeroDivisionError):
            sound = False
        if not sound:
            raise GuaranteeError(
                f"ledger: {place} does not follow from the file before it: an entry is missing, or "
                "one of the two was changed; nothing was drawn; bring the files back from a copy"
            )
        entries.append(Entry(number, told))
        digest, spent = digest_of(text), before + loss
    return Budget(path, limit, entries, digest)


def charge(
    files: Files, path: str, limit: Limit, epsilon: Fraction, told: Mapping[str, Any]
) -> Entry:
    """Spend something of a budget, before anything is drawn on its account.

    Parameters
    ----------
    files : Files
    path : str
        Directory of the data set; made where it is not there.
    limit : Limit
        What the configuration says of it; ``neighbors`` is that of ``epsilon``.
    epsilon : Fraction
        Greater than 0.
    told : mapping
        What else is told.

    Returns
    -------
    Entry

    Raises
    ------
    ConfigurationError
        If the budget has another limit or unit.
    GuaranteeError
        If the limit would be exceeded, or the chain is broken.
    PublishingError

    Notes
    -----
    Of several processes at once each gets an entry of its own, as far as the limit allows, where a
    file can be created exclusively.
    """
    while True:
        budget = read_budget(files, path)
        if budget is None:
            files.make_private_directory(path)
            with suppress(FileExistsError):
                create_whole(files, f"{path}/{_LIMIT}", limit.to_text())
            continue
        loss = _converted(budget, limit, epsilon)
        if budget.spent + loss > budget.limit.limit:
            raise GuaranteeError(
                f"ledger: {budget.spent} of {budget.limit.limit} are spent, and {loss} more would "
                "exceed the limit; nothing was drawn; ask for less, or do not ask"
            )
        number = len(budget.entries) + 1
        own = {
            "number": number,
            "time": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            **told,
            "neighbors": limit.neighbors,
            "unit": limit.unit,
            "epsilon": str(loss),
            "spent_before": str(budget.spent),
            "spent_after": str(budget.spent + loss),
            "previous": budget.digest,
            "version": __version__,
        }
        text = json.dumps(own, ensure_ascii=False, indent=1) + "\n"
        try:
            create_whole(files, f"{path}/{number:06d}.json", text)
        except FileExistsError:
            # Another process was faster.
            continue
        return Entry(number, own)


def _converted(budget: Budget, wanted: Limit, epsilon: Fraction) -> Fraction:
    """Return a loss in terms of the budget: replacing is removing and adding."""
    known = budget.limit
    problems = [
        f"ledger.{key}: found {mine}; the ledger at {budget.path} has {others}; expected the same, "
        "for it was fixed when the ledger was made; correct it"
        for key, mine, others in (
            ("limit", wanted.limit, known.limit),
            ("unit", wanted.unit, known.unit),
        )
        if mine != others
    ]
    if problems:
        raise ConfigurationError(*problems)
    if wanted.neighbors == known.neighbors:
        return epsilon
    return epsilon / 2 if known.neighbors == "add_remove" else epsilon * 2
