"""Plain labels read from their bytes, beside a pattern and Python's own reading."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.label_reading import read_plain_labels

NUMBER, DAY = r"-?\d+(?:\.\d+)?", r"\d{4}-\d{2}-\d{2}"

digits = st.text("0123456789", min_size=1, max_size=9)
number = st.builds(
    "{}{}{}".format, st.sampled_from(["", "-"]), digits, st.just("") | digits.map(".{}".format)
)
day = st.dates().map(date.isoformat) | st.sampled_from(["2023-02-29", "2024-02-30", "0000-01-01"])
other = st.text("0123456789-./[]*", max_size=12)


def label(value: st.SearchStrategy[str], divider: str) -> st.SearchStrategy[str]:
    interval = st.tuples(value, value).map(lambda ends: f"[{ends[0]}{divider}{ends[1]}]")
    return value | interval | other


def read(value: str, *, days: bool) -> float:
    if days:
        return float(date.fromisoformat(value).toordinal() - date(1970, 1, 1).toordinal())
    if sum(one.isdigit() for one in value) > 15:
        raise ValueError("more digits than are read")
    return float(value)


def ends(text: str, *, days: bool) -> tuple[float, float]:
    value, divider = (DAY, "/") if days else (NUMBER, "-")
    found = re.fullmatch(rf"\[({value}){divider}({value})\]|({value})", text)
    if found is None:
        return np.nan, np.nan
    try:
        low, high = (read(found[one] or found[3], days=days) for one in (1, 2))
    except ValueError:
        return np.nan, np.nan
    return (low, high) if low <= high else (np.nan, np.nan)


@given(data=st.data(), days=st.booleans())
def test_labels_are_read_as_python_reads_them(data: Any, days: bool) -> None:
    own = label(day, "/") if days else label(number, "-")
    labels = data.draw(st.lists(own, max_size=20))
    encoded = [one.encode() for one in labels]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    low, high = np.zeros(len(labels)), np.zeros(len(labels))

    read_plain_labels(np.frombuffer(b"".join(encoded), np.uint8), offsets, days, low, high)

    expected = np.array([ends(one, days=days) for one in labels]).reshape(-1, 2)
    np.testing.assert_array_equal(np.stack([low, high], axis=1), expected)
