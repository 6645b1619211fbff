"""The levels of a full-domain recoding as tables of metrics write them: ``age=1, city=0``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from anonspark.errors import DataError


def levels_text(levels: Mapping[str, int]) -> str:
    """Return the level of each quasi-identifier as text."""
    return ", ".join(f"{name}={level}" for name, level in levels.items())


def read_levels(text: str, names: Sequence[str]) -> tuple[int, ...] | None:
    """Read levels back. The opposite of :func:`levels_text`.

    Parameters
    ----------
    text : str
    names : sequence of str
        Of the quasi-identifiers, in order. They may hold any character.

    Returns
    -------
    tuple of int or None
        None if it is no text of these quasi-identifiers.
    """
    pattern = ", ".join(rf"{re.escape(name)}=(\d{{1,9}})" for name in names)
    match = re.fullmatch(pattern, text)
    return None if match is None else tuple(int(level) for level in match.groups())


def require_levels(text: str, names: Sequence[str], key: str) -> tuple[int, ...]:
    """Read levels back that the table ``rounds`` of a release must contain.

    Parameters
    ----------
    text, names
        As of :func:`read_levels`.
    key : str
        What the message calls the release.

    Raises
    ------
    DataError
        If the text is none of these quasi-identifiers.
    """
    levels = read_levels(text, names)
    if levels is None:
        raise DataError(
            f"{key}: metrics/rounds lacks the level of a quasi-identifier. Restore the release, or "
            "publish it again"
        )
    return levels
