"""The grammar of values in texts: which type a column of texts has, and its values.

A column gets a type only where every value comes back as it was written and different texts stay
different values (docs/configuration.md). The forms of a column are a mapping of names to numbers,
of which the larger ones stay when two are merged: so no order of records matters.
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
"""The forms of the values of a task, as :meth:`Forms.to_text` writes them."""

ISO_DAY = "yyyy-MM-dd"

MOST_DIGITS = 38
_FEW = 100
# Of a float: so many come back, whatever they are.
_FLOAT_DIGITS, _FLOAT_PLACES = 15, 300

_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_FRACTION = r"^(?:-?(?:[1-9][0-9]*\.[0-9]+|0\.[0-9]*[1-9][0-9]*)|0\.0+)$"
_DAY = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_INSTANT = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z?$"
_SPELLINGS = ("true", "True", "TRUE"), ("false", "False", "FALSE")

# Why a text that looks like a number is none; the first that matches says it.
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
    """The forms of the values of each column of a table.

    Parameters
    ----------
    columns : mapping of str to mapping
        Names of forms and numbers, which may be nested (in JSON).
    """

    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __or__(self, other: Forms) -> Forms:
        return Forms(merged(self.columns, other.columns))

    def to_text(self) -> str:
        """Return it as a text, for :meth:`of_text`."""
        return json.dumps(self.columns)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Forms:
        """Return what :meth:`to_text` wrote of parts of a table."""
        return reduce(cls.__or__, (cls(json.loads(text)) for text in texts), cls())


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two know of the same values: of each name the larger number."""
    both = dict(left)
    for name, value in right.items():
        if isinstance(value, Mapping):
            both[name] = merged(both.get(name, {}), value)
        else:
            both[name] = max(both.get(name, value), value)
    return both


@dataclass(frozen=True)
class DayForm:
    """Forms of days other than 2026-01-31.

    Parameters
    ----------
    pattern : str
        Of ``dd`` or ``d``, ``MM`` or ``M`` and ``yyyy``, with signs between them.
    """

    pattern: str

    @property
    def is_known(self) -> bool:
        """Return whether a pattern has each part once, with one of . / - or a blank between."""
        parts = re.fullmatch(r"(dd?|MM?|yyyy)([./ -])(dd?|MM?|yyyy)\2(dd?|MM?|yyyy)", self.pattern)
        return parts is not None and {parts[1][0], parts[3][0], parts[4][0]} == set("dMy")

    def iso(self, values: pa.Array) -> pa.Array:
        """Return texts of this form as ISO 8601 has them, others as they are."""
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
    """Return the forms of texts.

    Parameters
    ----------
    values : pyarrow.StringArray
        Nulls are passed over.
    days : DayForm or None
        How days may be written besides 2026-01-31.
    """
    # Most columns that are texts say so soon, and then nothing else counts.
    first = _forms_of(values.slice(0, _FEW), days)
    return first if "text" in first or len(values) <= _FEW else _forms_of(values, days)


def _forms_of(values: pa.Array, days: DayForm | None) -> dict[str, int]:
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
    digits = pc.max(pc.utf8_length(pc.utf8_ltrim(values, "-"))).as_py()
    bits = 32
    if digits > MOST_DIGITS:
        bits = 512
    elif digits >= len(str(2**31)):
        ends = pc.min_max(values.cast(pa.decimal128(MOST_DIGITS, 0))).as_py()
        most = max(int(ends["max"]), -int(ends["min"]) - 1)
        bits = 32 if most < 2**31 else 64 if most < 2**63 else 128
    return {"whole numbers": digits, "bits": bits}


def _fractions(values: pa.Array) -> dict[str, int]:
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
    if not pc.all(point_zero, min_count=0).as_py() or not all(map(_comes_back, _unlike(long))):
        forms["not shortest"] = 1
    return forms


def _unlike(values: pa.Array) -> list[str]:
    """Return the numbers that Arrow writes in another way than they are written."""
    again = values.cast(pa.float64()).cast(pa.string())
    return list(values.filter(pc.not_equal(again, values)).to_pylist())


def _comes_back(text: str) -> bool:
    written = format(Decimal(repr(float(text))), "f")
    return text in (written, f"{written}.0")


def _days(values: pa.Array) -> dict[str, int]:
    return {"days": 1} if _casts(values, pa.date32()) else {"with days that no calendar has": 1}


def _instants(values: pa.Array) -> dict[str, int]:
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


def _casts(values: pa.Array, to: pa.DataType) -> bool:
    try:
        values.cast(to)
    except pa.ArrowInvalid:
        return False
    return True


def type_of(forms: Mapping[str, int]) -> tuple[pa.DataType, str | None]:
    """Return the type of a column, and why texts that look like values of another stay texts.

    Parameters
    ----------
    forms : mapping of str to int
        Of all its values.
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
    fixed = forms["most digits"] == -forms["fewest digits"]
    same = not any(sign in forms and f"no {sign}" in forms for sign in "TZ")
    return same and (fixed or "not shortest" not in forms)


def _number(forms: Mapping[str, int]) -> tuple[pa.DataType, str | None]:
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


def convert(values: pa.Array, to: pa.DataType, days: DayForm | None = None) -> pa.Array:
    """Return texts as values of the type that was inferred. Null for those that are none.

    Parameters
    ----------
    values : pyarrow.StringArray
    to : pyarrow.DataType
    days : DayForm or None
        As of :func:`forms_of`.
    """
    if pa.types.is_string(to):
        return values
    if pa.types.is_date(to) and days is not None:
        values = days.iso(values)
    if pa.types.is_timestamp(to):
        values = pc.utf8_rtrim(values, "Z")
    naive = pa.timestamp("us") if pa.types.is_timestamp(to) else to
    try:
        return values.cast(naive).cast(to)
    except pa.ArrowInvalid:
        return parse(values, to)


def mean_missing(texts: pa.Array, markers: Sequence[str], *, numbers: bool = False) -> pa.Array:
    """Return which texts mean missing, in a column of numbers also by their numbers."""
    texts = pc.ascii_trim(texts, " ")
    missing = pc.is_in(texts, pa.array(["", None, *markers], pa.string()))
    marked = [
        re.escape(marker) + ("0*" if "." in marker else r"(?:\.0+)?")
        for marker in markers
        if NUMBER.fullmatch(marker)
    ]
    if numbers and marked:
        like = pc.match_substring_regex(texts, f"^(?:{'|'.join(marked)})$")
        missing = pc.or_(missing, pc.fill_null(like, False))
    return missing
