"""Measure criteria of sensitive attributes with synonymous values merged.

Criteria count values as they are published: `flu` and `Flu` are two, and a missing value is one
more. A reader learns no less from a class that holds nothing else.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.core.criterion import Criterion
from anonspark.core.warning_codes import WarningCode
from anonspark.verification.criteria import Asked, MeasuredCriterion
from anonspark.verification.sensitive_values import SensitiveValues

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
    """Return a text without invisible or meaningless signs.

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
    """Return a number as all that are equal but for the last digits. None where there is none."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    if match[3] is None and match[4] is None:
        # Of whole numbers each digit counts.
        return str(int(match[0]))
    number = float(match[0].replace(",", "."))
    return f"{plain_double(number):.{_DIGITS}g}" if math.isfinite(number) else None


def _without_punctuation(text: str) -> str:
    """Return a text without punctuation, but that between digits. A text of nothing else stays."""
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
    """Return whether a sign is a control, or a format such as a soft hyphen or a direction."""
    return unicodedata.category(sign) in ("Cc", "Cf") or sign in _SELECTORS


def group_spellings(
    values: Sequence[str | None], markers: Sequence[str]
) -> tuple[npt.NDArray[np.int64], int | None]:
    """Give values that say the same the same number.

    Parameters
    ----------
    values : sequence of str or None
    markers : sequence of str
        Texts that mean missing. An empty text and None always do.

    Returns
    -------
    groups : int64 ndarray of shape (values,)
        From 0 without gaps, in the order in which they first appear.
    missing : int or None
        The number of missing values. None where there are none.
    """
    missing = {"", *map(plain_spelling, markers)}
    numbers: dict[str | None, int] = {}
    groups = []
    for value in values:
        plain = None if value is None else plain_spelling(value)
        groups.append(numbers.setdefault(None if plain in missing else plain, len(numbers)))
    return np.array(groups, np.int64), numbers.get(None)


@dataclass(frozen=True)
class MergedValues:
    """The different values of a sensitive attribute, and which of them say the same.

    Parameters
    ----------
    attribute : SensitiveValues
    groups : int64 ndarray of shape (values,)
        The number of what each of the values says, from 0 without gaps.
    missing : int or None
        The number of what is missing. None where nothing is.
    """

    attribute: SensitiveValues
    groups: Integers
    missing: int | None

    @property
    def _occurs(self) -> Flags:
        # An order may list values that do not.
        return self.attribute.shares > 0

    @property
    def values(self) -> int:
        """Return how many different values occur."""
        return int(self._occurs.sum())

    @property
    def merged(self) -> int:
        """Return how many different meanings they have. Missing is one of them."""
        return len(np.unique(self.groups[self._occurs]))

    @property
    def has_missing(self) -> bool:
        """Return whether a value is missing."""
        return self.missing is not None and bool(self._occurs[self.groups == self.missing].any())

    @property
    def is_plain(self) -> bool:
        """Return whether each value says something else, and none is missing."""
        return not self.has_missing and self.merged == self.values

    def as_one(self, *, counts_missing: bool = True) -> SensitiveValues:
        """Return the attribute with one value for each thing that its values say.

        It knows shares only, in the order in which the first of each are: its values are not read.

        Parameters
        ----------
        counts_missing : bool
            Whether missing is one more value.
        """
        shares = np.bincount(self.groups, self.attribute.shares).astype(np.float64)
        none = np.zeros(0, np.int64)
        return replace(
            self.attribute,
            values=pa.array(range(len(shares))),
            shares=shares,
            parents=none,
            heights=none,
            merged=(self.attribute, self.groups),
            uncounted=None if counts_missing else self.missing,
        )

    def asked(self, criteria: Sequence[Criterion]) -> list[Asked]:
        """Return what :meth:`figures` are made of: values as published, merged and present."""
        distinct = Criterion(self.attribute.name, "distinct", 1.0)
        merged = self.as_one()
        return [
            (distinct, self.attribute),
            (distinct, merged),
            (distinct, self.as_one(counts_missing=False)),
            *((one, merged) for one in criteria if one.type.needs != "hierarchy"),
        ]

    def figures(self, measured: Sequence[MeasuredCriterion]) -> MergedFigures:
        """Return the figures, given what was measured of :meth:`asked`."""
        published, merged, present = (int(one.measured) for one in measured[:3])
        criteria = {one.criterion: one.measured for one in measured[3:]}
        name = self.attribute.name
        return MergedFigures(name, self.values, self.merged, published, merged, present, criteria)


@dataclass(frozen=True)
class MergedFigures:
    """The figures of the worst class, with synonymous values merged.

    Parameters
    ----------
    attribute : str
    values : int
        Different values as they are published.
    merged : int
        Different things that they say. Missing is one of them.
    distinct_published : int
        Fewest different values of a class as they are published (distinct l).
    distinct : int
        Fewest different things of a class.
    distinct_present : int
        The same where missing does not count. 0 where all values of a class are missing.
    criteria : dict of Criterion to float
        Figures of other criteria. None of the hierarchical distance, whose hierarchy knows the
        values as they are written.
    """

    attribute: str
    values: int
    merged: int
    distinct_published: int
    distinct: int
    distinct_present: int
    criteria: dict[Criterion, float]


def merge_values(attribute: SensitiveValues, markers: Sequence[str]) -> MergedValues:
    """Find out which values of a sensitive attribute say the same.

    Parameters
    ----------
    attribute : SensitiveValues
    markers : sequence of str
        Texts that mean missing.
    """
    values = attribute.values
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return MergedValues(attribute, *group_spellings(values.to_pylist(), markers))
    if pa.types.is_floating(values.type):
        plain = [None if one is None else plain_double(one) for one in values.to_pylist()]
        # Not a number is null, too.
        values = pa.array(plain, pa.float64(), from_pandas=True)
        groups = values.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
        missing = groups[values.is_null().to_numpy(zero_copy_only=False)]
        return MergedValues(attribute, groups, int(missing[0]) if len(missing) else None)
    absent = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    # Those that are there first: each says something else.
    groups = np.cumsum(~absent) - 1
    present = int((~absent).sum())
    groups[absent] = present
    return MergedValues(attribute, groups.astype(np.int64), present if absent.any() else None)


def describe_merged(figures: MergedFigures) -> tuple[WarningCode, str] | None:
    """Report the figures of a release with synonymous values merged.

    Parameters
    ----------
    figures : MergedFigures

    Returns
    -------
    tuple of str or None
        Code of the warning, and its text without any value. None where there is nothing to warn
        of: all values say something else, and without the missing ones no criterion about the
        number of values would be missed.
    """
    written_alike = figures.merged == figures.values
    least = max((one.bound for one in figures.criteria if one.type.counts_values), default=0.0)
    if written_alike and figures.distinct_present >= least:
        return None
    if written_alike:
        text = "values are missing, and missing counts as one more value"
        remedy = "Complete them, or ask for a larger l"
    else:
        text = (
            f"its {figures.values:,} different values are {figures.merged:,} but for case, blanks, "
            "punctuation, look-alike letters, forms of numbers and markers of missing values"
        )
        remedy = "Write equal values alike, or ask for a larger l"
    text += f": {_what_l_would_be(figures)}"
    others = [
        f"{one.type.short} would be {_shown(measured)} (required {one.limit:g})"
        for one, measured in figures.criteria.items()
        if one.kind != "distinct"
    ]
    text = f"{', '.join([text, *others])}. {remedy}"
    return "missing_values" if written_alike else "equal_values", text


def _what_l_would_be(figures: MergedFigures) -> str:
    """Report it for distinct l: the smallest figure first, and none that changes nothing."""
    published, merged = figures.distinct_published, figures.distinct
    least = figures.distinct_present
    same = [] if figures.merged == figures.values else ["those that say the same were one"]
    if least == published:
        return f"were they one, distinct l would still be {published:,}"
    missing = ["missing did not count"] if least < merged else []
    text = (
        f"if {' and '.join([*same, *missing])}, distinct l would be {least:,} instead of "
        f"{published:,}"
    )
    return text if merged in (least, published) else f"{text}, and {merged:,} if missing counts"


def _shown(measured: float) -> str:
    return "unbounded" if np.isinf(measured) else f"{measured:.4g}"
