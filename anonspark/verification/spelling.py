"""Values that differ in how they are written, not in what they say."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# They choose between two looks of the sign before them.
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))


def plain_spelling(text: str) -> str:
    """Return a text without what hardly anybody sees or means by it.

    Case, blanks of all kinds wherever they stand, signs that show nothing (such as a soft hyphen),
    and the form in Unicode: a ligature, letters of full width, an accent as a sign of its own.
    """
    # Folding may leave a form that is not the plain one, and the other way round; and signs that
    # stood apart may be combined where a blank between them is gone.
    before, plain = None, text
    while plain != before:
        before = plain
        folded = unicodedata.normalize("NFKC", plain).casefold()
        shown = (sign for sign in folded if not (sign.isspace() or _shows_nothing(sign)))
        plain = unicodedata.normalize("NFKC", "".join(shown))
    return plain


def _shows_nothing(sign: str) -> bool:
    """Tell whether a sign is a control, or a format such as a soft hyphen or a direction."""
    return unicodedata.category(sign) in ("Cc", "Cf") or sign in _SELECTORS


def group_spellings(
    values: Sequence[str | None], markers: Sequence[str]
) -> tuple[npt.NDArray[np.int64], int | None]:
    """Give values that say the same the same number.

    Parameters
    ----------
    values : sequence of str or None
    markers : sequence of str
        Texts that mean missing; an empty text and None always do.

    Returns
    -------
    groups : int64 ndarray of shape (values,)
        From 0 without gaps, in the order in which they first appear.
    missing : int or None
        The number of missing values; None where there are none.
    """
    missing = {"", *map(plain_spelling, markers)}
    numbers: dict[str | None, int] = {}
    groups = []
    for value in values:
        plain = None if value is None else plain_spelling(value)
        groups.append(numbers.setdefault(None if plain in missing else plain, len(numbers)))
    return np.array(groups, np.int64), numbers.get(None)
