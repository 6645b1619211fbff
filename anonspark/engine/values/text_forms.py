"""The grammar of values in texts: infer the type of a column of texts, and convert it.

A column gets a type only if every value comes back as it was written, and different texts become
different values (docs/configuration.md). The forms of a column map names to numbers, of which the
larger one stays when two are merged: so the order of records does not matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.values.value_texts import NUMBER, parse

INSTANT = pa.timestamp("us", "UTC")
FORMS = pa.schema([("forms", pa.string())])
"""A task's forms of values, as :meth:`Forms.to_text` writes them."""

ISO_DAY = "yyyy-MM-dd"

MOST_DIGITS = 38
_FEW = 100
# Any number of so many digits and decimal places comes back from a float.
_FLOAT_DIGITS, _FLOAT_PLACES = 15, 300

_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_FRACTION = r"^(?:-?(?:[1-9][0-9]*\.[0-9]+|0\.[0-9]*[1-9][0-9]*)|0\.0+)$"
_DAY = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_INSTANT = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z?$"
_SPELLINGS = ("true", "True", "TRUE"), ("false", "False", "FALSE")

# Why a text that looks like a number is none: the first pattern that matches.
_REASONS = {
    "a blank around a value": r"^\s.*\S|\S.*\s$",
    "a leading zero": r"^[+-]?0[0-9]+(?:\.[0-9]*)?$",
    "a plus sign": r"^\+[0-9.]+$",
    "a minus in front of zero": r"^-0(?:\.0+)?$",
    "an exponent": r"^[+-]?[0-9]*\.?[0-9]+\.?[eE][+-]?[0-9]+$",
    "a point without digits on both sides": r"^[+-]?(?:[0-9]+\.|\.[0-9]+)$",
    "a letter behind a number": r"^[+-]?[0-9]+\.?[0-9]*[A-Za-z]$",
    "a comma in a number": r"^[+-]?[0-9]+(?:,[0-9]+)+(?:\.[0-9]+)?$",
    "a word for what is no number": r"(?i)^[+-]?(?:nan|inf|infinity)$",
    "digits that are not ASCII": r"^[+-]?\pN+\.?\pN*$",
}


@dataclass(frozen=True)
class Forms:
    """The forms of the values of each column of a table: names and numbers, nested in JSON."""

    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __or__(self, other: Forms) -> Forms:
        return Forms(merged(self.columns, other.columns))

    def to_text(self) -> str:
        """Write the forms as a text, for :meth:`of_texts`."""
        return json.dumps(self.columns)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Forms:
        """Merge the forms of parts of a table, which :meth:`to_text` wrote."""
        return reduce(cls.__or__, (cls(json.loads(text)) for text in texts), cls())


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Merge forms of parts of a column: the larger number of each name stays.

    >>> merged({"whole numbers": 2}, {"whole numbers": 3, "days": 1})
    {'whole numbers': 3, 'days': 1}
    """
    forms = dict(left)
    for name, value in right.items():
        if isinstance(value, Mapping):
            forms[name] = merged(forms.get(name, {}), value)
        else:
            forms[name] = max(forms.get(name, value), value)
    return forms


@dataclass(frozen=True)
class DayForm:
    """A form of days other than 2026-01-31.

    The pattern has ``dd`` or ``d``, ``MM`` or ``M`` and ``yyyy``, with signs between them.
    """

    pattern: str

    @property
    def is_known(self) -> bool:
        """Return whether the pattern has each part once, with one of . / - or a blank between."""
        parts = re.fullmatch(r"(dd?|MM?|yyyy)([./ -])(dd?|MM?|yyyy)\2(dd?|MM?|yyyy)", self.pattern)
        return parts is not None and {parts[1][0], parts[3][0], parts[4][0]} == set("dMy")

    def iso(self, values: pa.Array) -> pa.Array:
        """Rewrite texts of this form as ISO 8601. Others stay.

        >>> DayForm("d.M.yyyy").iso(pa.array(["31.1.2026", "?"])).to_pylist()
        ['2026-01-31', '?']
        """
        order = [part[0] for part in re.findall("d+|M+|y+", self.pattern)]
        digits = {"d": "([1-9][0-9]?)", "M": "([1-9][0-9]?)", "dd": "([0-9]{2})"}
        digits |= {"MM": "([0-9]{2})", "yyyy": "([1-9][0-9]{3})"}
        regex = re.sub("d+|M+|y+|.", lambda part: digits.get(part[0], f"[{part[0]}]"), self.pattern)
        iso = "-".join(f"\\{order.index(part) + 1}" for part in "yMd")
        for pattern, written in (
            (f"^{regex}$", iso),
            (r"^([0-9]{4})-([0-9])-", r"\1-0\2-"),
            (r"^([0-9]{4}-[0-9]{2})-([0-9])$", r"\1-0\2"),
        ):
            values = pc.replace_substring_regex(values, pattern, written)
        return values


def forms_of(values: pa.Array, days: DayForm | None = None) -> dict[str, int]:
    """Return the forms of texts. Skips nulls. Days may have a second form.

    >>> forms_of(pa.array(["39", "-7"])), forms_of(pa.array(["39", "Ashford"]))["text"]
    ({'whole numbers': 2, 'bits': 32}, 1)
    """
    # Most columns of texts show it in their first values, and then no other form matters.
    first = _forms_of(values.slice(0, _FEW), days)
    return first if "text" in first or len(values) <= _FEW else _forms_of(values, days)


def _forms_of(values: pa.Array, days: DayForm | None) -> dict[str, int]:
    """Find the forms of texts. Each different text is examined once."""
    rest = values.unique().drop_null()
    forms: dict[str, int] = {}
    for pattern, look in (
        (_WHOLE, _whole),
        (_FRACTION, _fractions),
        (_DAY, _days),
        (_INSTANT, _instants),
    ):
        if not len(rest):
            return forms
        matches = pc.match_substring_regex(rest, pattern)
        if pc.any(matches).as_py():
            forms = merged(forms, look(rest.filter(matches)))
            rest = rest.filter(pc.invert(matches))
    if days is not None and len(rest):
        iso = days.iso(rest)
        changed = pc.not_equal(iso, rest)
        if pc.any(changed).as_py() and _casts(iso.filter(changed), pa.date32()):
            forms["days as dateFormat says"] = 1
            rest = rest.filter(pc.invert(changed))
    for spelling in zip(*_SPELLINGS, strict=True):
        words = pc.is_in(rest, pa.array(spelling))
        if pc.any(words).as_py():
            forms[f"the words {'/'.join(spelling)}"] = 1
            rest = rest.filter(pc.invert(words))
    for reason, pattern in _REASONS.items():
        matches = pc.match_substring_regex(rest, pattern)
        if pc.any(matches).as_py():
            forms[f"with {reason}"] = 1
            rest = rest.filter(pc.invert(matches))
    return {**forms, "text": 1} if len(rest) else forms


def _whole(values: pa.Array) -> dict[str, int]:
    """Return the largest number of digits of whole numbers, and the bits that they need."""
    digits = pc.max(pc.utf8_length(pc.utf8_ltrim(values, "-"))).as_py()
    bits = 32
    if digits > MOST_DIGITS:
        bits = 512
    elif digits >= len(str(2**31)):
        ends = pc.min_max(values.cast(pa.decimal128(MOST_DIGITS, 0))).as_py()
        largest = max(int(ends["max"]), -int(ends["min"]) - 1)
        bits = 32 if largest < 2**31 else 64 if largest < 2**63 else 128
    return {"whole numbers": digits, "bits": bits}


def _fractions(values: pa.Array) -> dict[str, int]:
    """Find digits and decimal places of fractions, and whether their text is the shortest."""
    lengths = pc.utf8_length(values)
    places = pc.subtract(lengths, pc.add(pc.find_substring(values, "."), 1))
    trimmed = pc.utf8_ltrim(values, "-0")
    left = pc.find_substring(trimmed, ".")
    digits = pc.subtract(pc.utf8_length(pc.utf8_ltrim(trimmed, ".0")), pc.min_element_wise(left, 1))
    digits = pc.if_else(pc.greater(places, _FLOAT_PLACES), places, digits)
    ends = pc.min_max(places).as_py()
    forms = {
        "fractions": pc.max(digits).as_py(),
        "digits before the point": max(pc.max(left).as_py(), 1),
        "most places": ends["max"],
        "fewest places": -ends["min"],
    }
    zeros = values.filter(pc.ends_with(values, "0"))
    point_zero = pc.ends_with(zeros, ".0")
    if pc.any(point_zero).as_py():
        forms[".0"] = 1
    long = values.filter(pc.greater(digits, _FLOAT_DIGITS))
    come_back = all(map(_comes_back, _not_shortest(long)))
    if not come_back or not pc.all(point_zero, min_count=0).as_py():
        forms["not shortest"] = 1
    return forms


def _not_shortest(values: pa.Array) -> list[str]:
    """Return the numbers that Arrow writes differently."""
    again = values.cast(pa.float64()).cast(pa.string())
    return list(values.filter(pc.not_equal(again, values)).to_pylist())


def _comes_back(text: str) -> bool:
    """Return whether a text is the shortest of its float, but for a ``.0`` behind it.

    >>> _comes_back("0.1"), _comes_back("0.10")
    (True, False)
    """
    written = format(Decimal(repr(float(text))), "f")
    return text in (written, f"{written}.0")


def _days(values: pa.Array) -> dict[str, int]:
    """Return the form of days, or another one if a day does not exist."""
    return {"days": 1} if _casts(values, pa.date32()) else {"with days that no calendar has": 1}


def _instants(values: pa.Array) -> dict[str, int]:
    """Find the form of points in time, with their digits and signs."""
    plain = pc.utf8_rtrim(values, "Z")
    if not _casts(plain, pa.timestamp("us")):
        return {"with times that no clock has": 1}
    places = pc.subtract(pc.utf8_length(plain), len("2026-01-31 00:00:00"))
    ends = pc.min_max(places).as_py()
    forms = {"points in time": 1, "most digits": ends["max"], "fewest digits": -ends["min"]}
    marks = {
        "T": pc.match_substring(values, "T"),
        "Z": pc.ends_with(values, "Z"),
    }
    for sign, has in marks.items():
        forms |= {sign: 1} if pc.any(has).as_py() else {}
        forms |= {} if pc.all(has).as_py() else {f"no {sign}": 1}
    fractions = plain.filter(pc.greater(places, 0))
    if pc.any(pc.ends_with(fractions, "0")).as_py():
        forms["not shortest"] = 1
    return forms


def _casts(values: pa.Array, target: pa.DataType) -> bool:
    """Return whether Arrow can read all texts as a type."""
    try:
        values.cast(target)
    except pa.ArrowInvalid:
        return False
    return True


def type_of(forms: Mapping[str, int]) -> tuple[pa.DataType, str | None]:
    """Infer the type of a column from the forms of all its values.

    Also return why texts that look like values of another type stay texts, or None.

    >>> type_of({"whole numbers": 2, "bits": 32}), type_of({"with a leading zero": 1})
    ((DataType(int32), None), (DataType(string), 'a leading zero'))
    """
    reasons = [name.removeprefix("with ") for name in forms if name.startswith("with ")]
    kinds = [name for name in forms if name in _TYPES]
    if "text" in forms or not (reasons or kinds):
        return pa.string(), None
    if reasons:
        return pa.string(), min(reasons)
    numbers = [name for name in kinds if name in ("whole numbers", "fractions")]
    if len(kinds) > max(len(numbers), 1):
        return pa.string(), "values of several kinds or writings"
    if numbers:
        return _number(forms)
    if kinds == ["points in time"] and not _is_written_once(forms):
        return pa.string(), "points in time in several writings"
    return _TYPES[kinds[0]], None


_TYPES = {
    "whole numbers": pa.int64(),
    "fractions": pa.float64(),
    "days": pa.date32(),
    "days as dateFormat says": pa.date32(),
    "points in time": INSTANT,
    **{f"the words {'/'.join(words)}": pa.bool_() for words in zip(*_SPELLINGS, strict=True)},
}


def _is_written_once(forms: Mapping[str, int]) -> bool:
    """Return whether each point in time has only one writing among the forms."""
    has_fixed_digits = forms["most digits"] == -forms["fewest digits"]
    is_uniform = not any(sign in forms and f"no {sign}" in forms for sign in "TZ")
    return is_uniform and (has_fixed_digits or "not shortest" not in forms)


def _number(forms: Mapping[str, int]) -> tuple[pa.DataType, str | None]:
    """Return the type of a column of numbers, or text and the reason."""
    whole = forms.get("whole numbers", 0)
    if whole > MOST_DIGITS:
        return pa.string(), f"more than {MOST_DIGITS} digits"
    if "fractions" not in forms:
        plain = {32: pa.int32(), 64: pa.int64()}
        return plain.get(forms["bits"], pa.decimal128(whole, 0)), None
    if "not shortest" not in forms and not (whole and ".0" in forms):
        if whole > _FLOAT_DIGITS:
            return pa.string(), f"whole numbers of more than {_FLOAT_DIGITS} digits with fractions"
        return pa.float64(), None
    places = forms["most places"]
    if whole or places != -forms["fewest places"]:
        return pa.string(), "numbers in several writings (with other zeros at the end)"
    if forms["fractions"] <= _FLOAT_DIGITS:
        return pa.float64(), None
    digits = forms["digits before the point"] + places
    if digits > MOST_DIGITS:
        return pa.string(), f"more than {MOST_DIGITS} digits"
    return pa.decimal128(digits, places), None


def convert(values: pa.Array, target: pa.DataType, days: DayForm | None = None) -> pa.Array:
    """Convert texts to an inferred type. Texts that are no such value become null.

    Arrow's cast is fast, but fails at a single wrong text. Then each text is parsed. ``days`` is a
    form of days in addition to ISO 8601.

    >>> convert(pa.array(["39", "?"]), pa.int32()).to_pylist()
    [39, None]
    """
    if pa.types.is_string(target):
        return values
    if pa.types.is_date(target) and days is not None:
        values = days.iso(values)
    if pa.types.is_timestamp(target):
        values = pc.utf8_rtrim(values, "Z")
    naive = pa.timestamp("us") if pa.types.is_timestamp(target) else target
    try:
        return values.cast(naive).cast(target)
    except pa.ArrowInvalid:
        return parse(values, target)


def mean_missing(texts: pa.Array, markers: Sequence[str], *, numbers: bool = False) -> pa.Array:
    """Return which texts mean that the value is missing: blanks, null and the markers.

    With ``numbers`` a marker that is a number also counts in other spellings.

    >>> mean_missing(pa.array(["-9", "-9.0", "9", ""]), ["-9"], numbers=True).to_pylist()
    [True, True, False, True]
    """
    texts = pc.ascii_trim(texts, " ")
    missing = pc.is_in(texts, pa.array(["", None, *markers], pa.string()))
    marked = [
        re.escape(marker) + ("0*" if "." in marker else r"(?:\.0+)?")
        for marker in markers
        if NUMBER.fullmatch(marker)
    ]
    if numbers and marked:
        spelled = pc.match_substring_regex(texts, f"^(?:{'|'.join(marked)})$")
        missing = pc.or_(missing, pc.fill_null(spelled, False))
    return missing
