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


Kind = Literal["integer", "float", "decimal", "date", "timestamp", "boolean", "category"]
"""Numbers that are exact or not, points in time, truth values, and names."""

KIND_WORDS = {
    **{"integer": "whole number", "float": "number", "decimal": "number", "date": "date"},
    **{"timestamp": "date and time", "boolean": "yes or no", "category": "category"},
    **{"intervals": "steps", "prefix": "first characters"},
    **{"keep": "chosen values", "calendar": "parts of the calendar"},
}
"""What pages call them, and rules of hierarchies."""


# From the first of January of the year 0.
_DAYS_TO_1970 = 719_528
_DAYS_OF_400_YEARS = 146_097
_DAYS_OF_ARROW = 11_000_000
_MICROS_OF_A_DAY = 86_400_000_000

# Between them Arrow and NumPy write floats alike, of 32 bits and of 64.
_SMALLEST_ALIKE, _LARGEST_ALIKE = 1e-4, 1e6

MISSING = "missing"
"""Label of missing values where they are a category of their own."""


def value_labels(values: pa.Array, kind: Kind) -> pa.StringArray:
    """Return one label a value. Numbers in their shortest form that reads back exactly.

    Parameters
    ----------
    values : pyarrow.Array
        No nulls.
    kind : Kind
        What the values are.
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
        # What is farther away Arrow calls out of range.
        if pc.any(pc.greater(pc.abs(pc.cast(days, pa.int64())), _DAYS_OF_ARROW)).as_py():
            return pa.array([_date_label(value) for value in days.to_pylist()], pa.string())
    return values.cast(pa.string())


def _float_labels(values: pa.Array) -> pa.StringArray:
    """Write floats as NumPy does, those of the usual sizes by Arrow, which is many times faster."""
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
    """Write a day of any year. Python knows those from 1 to 9999."""
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
    """Mark the labels of ends that stand for all values beyond: ``90+``, ``5 or less``.

    Parameters
    ----------
    labels : pyarrow.StringArray
    kind : Kind
    is_bottom, is_top : bool ndarray
        Whether each stands for all smaller values, and for all larger ones.
    """
    for marked, mark in zip((is_bottom, is_top), open_marks(kind), strict=True):
        if marked.any():
            with_mark = pc.binary_join_element_wise(labels, mark, "")
            labels = pc.if_else(pa.array(marked), with_mark, labels)
    return labels


def open_marks(kind: Kind) -> tuple[str, str]:
    """Return what stands behind the smallest and the largest end, where values beyond are one."""
    return (" or earlier", " or later") if kind in ("date", "timestamp") else (" or less", "+")


def unmarked_ends(labels: pa.StringArray, kind: Kind) -> pa.StringArray:
    """Return labels without the marks of :func:`end_labels`."""
    marks = "|".join(map(re.escape, open_marks(kind)))
    return pc.replace_substring_regex(labels, rf"({marks})([\]/-]|$)", r"\2")


def divider_of(kind: Kind) -> str:
    """Return what stands between the ends of an interval: for times a slash, as in ISO 8601."""
    return "/" if kind in ("date", "timestamp") else "-"


def interval_labels(
    low: pa.StringArray, high: pa.StringArray, kind: Kind, with_missing: Flags
) -> pa.StringArray:
    """Return the labels of all values from one to another, both included.

    Parameters
    ----------
    low, high : pyarrow.StringArray
        Labels of the smallest and largest value of each class.
    kind : Kind
        Decides the divider.
    with_missing : bool ndarray
        Whether each class holds missing values, too.
    """
    intervals = pc.binary_join_element_wise("[", low, divider_of(kind), high, "]", "")
    labels = pc.if_else(pc.equal(low, high), low, intervals)
    if not with_missing.any():
        return labels
    with_mark = pc.binary_join_element_wise(labels, f" or {MISSING}", "")
    return pc.if_else(pa.array(with_missing), with_mark, labels)


def category_label(values: Sequence[str | None]) -> str:
    """Return the label of a set of categories: the value itself, or ``{a, b}``.

    Parameters
    ----------
    values : sequence of (str or None)
        In the order of the domain. None stands for missing values.

    Notes
    -----
    A value that could be taken for something else (an empty one, one that looks like a set, like
    the mark of missing values, or like the mark of everything) is quoted as in JSON, inside a set
    also one with a comma.
    """
    if len(values) == 1:
        (value,) = values
        return _quoted(value, special='{["') if value is not None else MISSING
    labels = (MISSING if value is None else _quoted(value, special='{}[]",') for value in values)
    return "{" + ", ".join(labels) + "}"


def hierarchy_label(label: str, *, with_missing: bool) -> str:
    """Return the label of a value or group of a hierarchy, as the hierarchy has it.

    Parameters
    ----------
    label : str
        Of the lowest common ancestor of the values.
    with_missing : bool
        Whether the class holds missing values, too.

    Notes
    -----
    A label that could be taken for something else (an empty one, or one that looks like a quoted
    one or like the mark of missing values) is quoted as in JSON. Braces and brackets are not: with
    a hierarchy there are no sets, and a hierarchy has one meaning for each of its labels.
    """
    mark = f" or {MISSING}"
    if label in ("", MISSING) or label.startswith('"') or label.endswith(mark):
        label = json.dumps(label, ensure_ascii=False)
    return f"{label}{mark}" if with_missing else label


def _quoted(value: str, special: str) -> str:
    if value in ("", MISSING, "*") or value != value.strip() or set(value) & set(special):
        return json.dumps(value, ensure_ascii=False)
    return value
