"""A chain of files: each holds its number and the SHA-256 of the file before it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anonspark.engine.files import Files
from anonspark.ledger.creating import create_whole, digest_of

CHANGED = (ValueError, TypeError, KeyError, RecursionError)
"""Errors of reading a file that is not as it was written."""


class BrokenChainError(Exception):
    """A file of a chain is not as it was written.

    Parameters
    ----------
    text : str
        Which one, what is wrong with it, and what to do.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True)
class Link:
    """A file of a chain.

    Parameters
    ----------
    number : int
        1, 2, ...
    path : str
    told : mapping
        Its content.
    """

    number: int
    path: str
    told: Mapping[str, Any]


def not_read(path: str) -> str:
    """Say that a file is there which cannot be read."""
    return f"{path} cannot be read; expected a file; check permissions, and what is there"


def read_chain(
    files: Files, head: str, paths: Sequence[str], path_of: Callable[[int], str]
) -> tuple[list[Link], str]:
    """Read all files of a chain, and check that none is missing or was changed.

    Parameters
    ----------
    files : Files
    head : str
        Text of the file before the first one.
    paths : sequence of str
        The files that a listing told, in their order. One that is there and was not told came while
        the listing was made.
    path_of : callable
        Returns where the file of a number belongs.

    Returns
    -------
    links : list of Link
    digest : str
        SHA-256 of the last file.

    Raises
    ------
    BrokenChainError
    """
    digest = digest_of(head)
    links: list[Link] = []
    told_of = deque(paths)
    while told_of:
        number = len(links) + 1
        path = path_of(number)
        if told_of[0] == path:
            told_of.popleft()
        elif not files.exists(path):
            raise BrokenChainError(
                f"{path} is missing, and later ones are there; nothing can be added behind a gap; "
                "bring the file back from a copy"
            )
        try:
            text = files.read_text(path)
            told = json.loads(text)
            own = (told["number"], told["previous"])
        except OSError as error:
            raise BrokenChainError(not_read(path)) from error
        except CHANGED as error:
            raise BrokenChainError(
                f"{path} is not as anonspark writes it: it was changed, or cut off; bring the file "
                "back from a copy"
            ) from error
        if own != (number, digest):
            raise BrokenChainError(
                f"{path} does not follow from the file before it: one of the two was changed; "
                "bring both back from a copy"
            )
        links.append(Link(number, path, told))
        digest = digest_of(text)
    return links, digest


def append_link(files: Files, path: str, told: Mapping[str, Any]) -> str:
    """Write the next file of a chain, and return the SHA-256 of it.

    Raises
    ------
    FileExistsError
        If another process has written one of this number.
    """
    text = text_of(told)
    create_whole(files, path, text)
    return digest_of(text)


def text_of(told: Mapping[str, Any]) -> str:
    """Return the content of a file of a ledger."""
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
