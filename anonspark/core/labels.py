"""Labels of generalized values: ``17``, ``[17-25]``, ``[2020-01-31/2020-03-01]``, ``{a, b}``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags
from anonspark.errors import DataError


def levels_text(levels: Mapping[str, int]) -> str:
    """Write the level of each quasi-identifier.

    >>> levels_text({"age": 2, "zip": 1})
    'age=2, zip=1'
    """
    return ", ".join(f"{name}={level}" for name, level in levels.items())


def read_levels(text: str, names: Sequence[str]) -> tuple[int, ...] | None:
    """Read the text of :func:`levels_text`, or return None if it is of other quasi-identifiers.

    Names may hold any character.

    >>> read_levels("age=2, zip=1", ["age", "zip"]), read_levels("age=2", ["age", "zip"])
    ((2, 1), None)
    """
    pattern = ", ".join(rf"{re.escape(name)}=(\d{{1,9}})" for name in names)
    match = re.fullmatch(pattern, text)
    return None if match is None else tuple(int(level) for level in match.groups())


def require_levels(text: str, names: Sequence[str], key: str) -> tuple[int, ...]:
    """Read levels that the table ``rounds`` of a release must contain, or raise DataError.

    ``key`` names the release in the message. See :func:`read_levels`.
    """
    levels = read_levels(text, names)
    if levels is None:
        raise DataError(
            f"{key}: metrics/rounds lacks the level of a quasi-identifier. Restore the release, or "
            "publish it again"
        )
    return levels


Kind = Literal["integer", "float", "decimal", "date", "timestamp", "boolean", "category"]
"""Numbers that are exact or not, points in time, truth values, and names."""

KIND_WORDS = {
    **{"integer": "whole number", "float": "number", "decimal": "number", "date": "date"},
    **{"timestamp": "date and time", "boolean": "yes or no", "category": "category"},
    **{"intervals": "steps", "prefix": "first characters"},
    **{"keep": "chosen values", "calendar": "parts of the calendar"},
}
"""What pages call them, and rules of hierarchies."""


# Days from the first of January of the year 0.
_DAYS_TO_1970 = 719_528
_DAYS_OF_400_YEARS = 146_097
_DAYS_OF_ARROW = 11_000_000
_MICROS_OF_A_DAY = 86_400_000_000

# Between them Arrow and NumPy write floats alike, of 32 bits and of 64.
_SMALLEST_ALIKE, _LARGEST_ALIKE = 1e-4, 1e6

MISSING = "missing"
"""Label of missing values where they are a category of their own."""


def value_labels(values: pa.Array, kind: Kind) -> pa.StringArray:
    """Return the label of each value, numbers in their shortest form that reads back exactly.

    No value is null.

    >>> value_labels(pa.array([1.0, 0.1]), "float").to_pylist()
    ['1', '0.1']
    """
    if kind == "float":
        return _float_labels(values)
    if kind == "decimal":
        return pa.array([format(value, "f") for value in values.to_pylist()], pa.string())
    if kind == "timestamp":
        micros = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        return pa.array([_timestamp_label(value) for value in micros.to_pylist()], pa.string())
    if kind == "date":
        days = values.cast(pa.date32()).cast(pa.int32())
        # Arrow refuses days that are farther away.
        if pc.any(pc.greater(pc.abs(pc.cast(days, pa.int64())), _DAYS_OF_ARROW)).as_py():
            return pa.array([_date_label(value) for value in days.to_pylist()], pa.string())
    return values.cast(pa.string())


def _float_labels(values: pa.Array) -> pa.StringArray:
    """Write floats as NumPy does. Arrow writes those of the usual sizes, many times faster."""
    numbers = values.to_numpy()
    sizes = np.abs(numbers)
    alike = ((sizes > _SMALLEST_ALIKE) & (sizes < _LARGEST_ALIKE)) | (sizes == 0)
    labels = pc.replace_substring_regex(values.cast(pa.string()), r"\.0$", "")
    if alike.all():
        return labels
    # NumPy scalars, not Python floats: a float32 is written with its own few digits.
    others = [str(value).removesuffix(".0") for value in numbers[~alike]]
    return pc.replace_with_mask(labels, pa.array(~alike), pa.array(others, pa.string()))


def _date_label(days: int) -> str:
    """Write a day, in days since 1970-01-01, of any year. Python knows only the years 1 to 9999.

    >>> _date_label(0), _date_label(2932896 + 1)
    ('1970-01-01', '10000-01-01')
    """
    cycles, days = divmod(days + _DAYS_TO_1970, _DAYS_OF_400_YEARS)
    moved = date(2000, 1, 1) + timedelta(days=days)
    return f"{moved.year - 2000 + 400 * cycles:0{4 if cycles >= 0 else 5}d}-{moved:%m-%d}"


def _timestamp_label(micros: int) -> str:
    days, rest = divmod(micros, _MICROS_OF_A_DAY)
    time = (datetime.min + timedelta(microseconds=rest)).time()
    # pandas has no days, but midnights.
    return f"{_date_label(days)} {time.isoformat()}" if rest else _date_label(days)


def end_labels(
    labels: pa.StringArray, kind: Kind, is_bottom: Flags, is_top: Flags
) -> pa.StringArray:
    """Mark the labels of ends that stand for all smaller, or all larger values.

    >>> labels = pa.array(["5", "90"])
    >>> end_labels(labels, "integer", np.array([True, False]), np.array([False, True])).to_pylist()
    ['5 or less', '90+']
    """
    for marked, mark in zip((is_bottom, is_top), open_marks(kind), strict=True):
        if marked.any():
            with_mark = pc.binary_join_element_wise(labels, mark, "")
            labels = pc.if_else(pa.array(marked), with_mark, labels)
    return labels


def open_marks(kind: Kind) -> tuple[str, str]:
    """Return the marks behind the smallest and the largest end, if values beyond are one value.

    >>> open_marks("date")
    (' or earlier', ' or later')
    """
    return (" or earlier", " or later") if kind in ("date", "timestamp") else (" or less", "+")


def unmarked_ends(labels: pa.StringArray, kind: Kind) -> pa.StringArray:
    """Remove the marks of :func:`end_labels`.

    >>> unmarked_ends(pa.array(["90+", "[17-90+]"]), "integer").to_pylist()
    ['90', '[17-90]']
    """
    marks = "|".join(map(re.escape, open_marks(kind)))
    return pc.replace_substring_regex(labels, rf"({marks})([\]/-]|$)", r"\2")


def divider_of(kind: Kind) -> str:
    """Return what stands between the ends of an interval: for times a slash, as in ISO 8601."""
    return "/" if kind in ("date", "timestamp") else "-"


def interval_labels(
    low: pa.StringArray, high: pa.StringArray, kind: Kind, with_missing: Flags
) -> pa.StringArray:
    """Return the label of each interval from one label to another, both included.

    Ends of dates and times are divided by a slash, as in ISO 8601, those of numbers by a hyphen.
    ``with_missing`` are the classes that also hold missing values.

    >>> low, high = pa.array(["17", "20"]), pa.array(["25", "20"])
    >>> interval_labels(low, high, "integer", np.array([False, True])).to_pylist()
    ['[17-25]', '20 or missing']
    """
    intervals = pc.binary_join_element_wise("[", low, divider_of(kind), high, "]", "")
    labels = pc.if_else(pc.equal(low, high), low, intervals)
    if not with_missing.any():
        return labels
    with_mark = pc.binary_join_element_wise(labels, f" or {MISSING}", "")
    return pc.if_else(pa.array(with_missing), with_mark, labels)


def category_label(values: Sequence[str | None]) -> str:
    """Return the label of categories in the order of the domain. None stands for missing values.

    A value that could be taken for something else (an empty one, one that looks like a set, like
    the mark of missing values, or like the mark of everything) is quoted as in JSON; in a set also
    a value with a comma.

    >>> category_label(["flu"]), category_label(["a, b", "flu", None])
    ('flu', '{"a, b", flu, missing}')
    """
    if len(values) == 1:
        (value,) = values
        return _quoted(value, special='{["') if value is not None else MISSING
    labels = (MISSING if value is None else _quoted(value, special='{}[]",') for value in values)
    return "{" + ", ".join(labels) + "}"


def hierarchy_label(label: str, *, with_missing: bool) -> str:
    """Return the label of a class with a hierarchy from that of its lowest common ancestor.

    A label that could be taken for something else (an empty one, or one that looks like a quoted
    one or like the mark of missing values) is quoted as in JSON. Braces and brackets are not: with
    a hierarchy there are no sets, and a hierarchy has one meaning for each of its labels.

    >>> hierarchy_label("061**", with_missing=True), hierarchy_label("missing", with_missing=False)
    ('061** or missing', '"missing"')
    """
    mark = f" or {MISSING}"
    if label in ("", MISSING) or label.startswith('"') or label.endswith(mark):
        label = json.dumps(label, ensure_ascii=False)
    return f"{label}{mark}" if with_missing else label


def _quoted(value: str, special: str) -> str:
    if value in ("", MISSING, "*") or value != value.strip() or set(value) & set(special):
        return json.dumps(value, ensure_ascii=False)
    return value
