"""Values that differ in how they are written, not in what they say."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# They choose between two looks of the sign before them.
_SELECTORS = frozenset(map(chr, range(0xFE00, 0xFE10)))

# Letters of other alphabets that look like Latin ones, small or large. The Greek m is none of
# them: as a small letter it is the millionth of a unit.
_LOOK_LIKE = str.maketrans(
    "авсԁеһніјӏкмоԛрѕтуԝхѵьαβεζηικνορτυχıɑɡℓ\u2212",
    "abcdehhijlkmoqpstywxvbabezhiknoptyxiagl-",
)
_LATIN = re.compile("[a-zA-Z]")
_NUMBER = re.compile(r"([+-]?)(\d{1,300})?(?:[.,](\d{0,300}))?(e[+-]?\d{1,3})?")
# At the end of a text, as in `B-` or `A*`, they say something.
_ENDS = "-*"

_DIGITS = 12


def plain_spelling(text: str) -> str:
    """Return a text without what hardly anybody sees or means by it.

    Case, blanks of all kinds wherever they stand, signs that show nothing (such as a soft hyphen),
    the form in Unicode (a ligature, letters of full width, an accent as a sign of its own),
    punctuation that stands in no number, letters of other alphabets that look like Latin ones, and
    how a number is written, of which 12 digits count.
    """
    # Folding may leave a form that is not the plain one, and the other way round; and signs that
    # stood apart may be combined where a blank between them is gone.
    before, plain = None, text
    while plain != before:
        before = plain
        folded = unicodedata.normalize("NFKC", plain)
        if _LATIN.search(folded):
            folded = folded.replace("\u039c", "M")
        folded = folded.casefold().translate(_LOOK_LIKE)
        shown = (sign for sign in folded if not (sign.isspace() or _shows_nothing(sign)))
        plain = unicodedata.normalize("NFKC", "".join(map(_plain_sign, shown)))
        plain = _plain_number(plain) or _without_punctuation(plain)
    return plain


def _plain_sign(sign: str) -> str:
    """Return a digit of any script as that of ours, and a dash as a hyphen."""
    digit = unicodedata.decimal(sign, None)
    if digit is not None:
        return str(digit)
    return "-" if unicodedata.category(sign) == "Pd" else sign


def plain_double(number: float) -> float:
    """Return a number without its last digits, which computing changes."""
    return float(f"{number:.{_DIGITS}g}") + 0.0


def _plain_number(text: str) -> str | None:
    """Return a number as all that are equal but for the last digits; None where there is none."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    if match[3] is None and match[4] is None:
        # Of whole numbers each digit counts.
        return str(int(match[0]))
    number = float(match[0].replace(",", "."))
    return f"{plain_double(number):.{_DIGITS}g}" if math.isfinite(number) else None


def _without_punctuation(text: str) -> str:
    """Return a text without punctuation, but that between digits; a text of nothing else stays."""
    last = len(text) - 1
    left = [
        sign
        for place, sign in enumerate(text)
        if not unicodedata.category(sign).startswith("P")
        or (place == last and sign in _ENDS)
        or (text[max(place - 1, 0) : place + 2 : 2].isdecimal() and 0 < place < last)
    ]
    return "".join(left) or text


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
