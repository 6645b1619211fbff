"""Attributes as axes: what published labels cover of the original's values."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.queries import Domain
from anonspark.errors import DataError
from anonspark.labels import axes
from anonspark.labels.axes import Axis, plain_intervals
from anonspark.labels.regions import PublishedAttribute

DAY = date(2020, 1, 1).toordinal() - date(1970, 1, 1).toordinal()


def axis(scale: Any, kind: Any, *values: float | str, **fields: Any) -> Axis:
    """Return an axis of an original that holds each value once."""
    is_text = scale == "text"
    positions = np.arange(len(values), dtype=float) if is_text else np.array(values, float)
    published = PublishedAttribute(
        "a",
        kind,
        fields.pop("style", "interval"),
        fields.pop("columns", ("a",)),
        rule=fields.pop("rule", None),
    )
    return Axis(
        name="a",
        scale=scale,
        published=published,
        leaves=fields.pop("leaves", None),
        whole=fields.pop("whole", True),
        texts=tuple(map(str, values)) if is_text else (),
        domain=Domain(positions, np.full(len(positions), 1 / max(1, len(positions))), is_text),
        frequent=positions,
        missing=0,
    )


def shares(one: Axis, labels: Any, low: float, high: float) -> list[float]:
    columns = labels if isinstance(labels, list) and isinstance(labels[0], pa.Array) else None
    spread, numbers = one.spread(columns or [pa.array(labels)])
    found = spread.shares(np.array([low]), np.array([high]))[:, 0][numbers]
    return [round(share, 12) for share in found.tolist()]


def test_intervals_of_whole_numbers() -> None:
    age = axis("number", "integer", 17, 90)
    labels = ["[17-25]", "20", "[20-29]", "*", "[21-30] or missing", "missing"]
    expected = [round(6 / 9, 12), 1, 1, round(10 / 74 * 74 / 75, 12), round(9 / 11, 12), 0]
    assert shares(age, labels, 20, 29) == expected


def test_intervals_of_other_numbers() -> None:
    score = axis("number", "float", 0.5, 10.5, whole=False)
    assert shares(score, ["[1.5-3.5]", "2.5", "*"], 2.5, 4.5) == [0.5, 1, 0.2]


def test_half_open_intervals_of_a_rule() -> None:
    age = axis("number", "decimal", 17, 90, rule="intervals")
    assert shares(age, ["[20-25[", "[25-30[", "17", "]19-21["], 24, 25) == [0.2, 0.2, 0, 0]


def test_dates_and_calendar_labels() -> None:
    day = axis("date", "date", DAY, DAY + 365, rule="calendar")
    labels = ["2020-01", "2020-Q1", "2020", "2020-01-31"]
    expected = [1 / 31, 1 / 91, 1 / 366, 1.0]
    assert shares(day, labels, DAY + 30, DAY + 30) == [round(one, 12) for one in expected]


def test_sets_of_texts() -> None:
    sex = axis("text", "category", "female", "male", "other")
    labels = ["{female, male}", "male", "{male, missing}", "*", "elsewhere"]
    assert shares(sex, labels, 1, 2) == [0.5, 1, 0.5, 0.5, 0]


def test_a_hierarchy_covers_all_its_leaves() -> None:
    leaves = {"a": ["a"], "b": ["b"], "c": ["c"], "first": ["a", "b"], "*": ["a", "b", "c"]}
    letter = axis("text", "category", "a", "c", leaves=leaves)
    assert shares(letter, ["first", "*", "c", "b"], 0, 0) == [0.5, round(1 / 3, 12), 0, 0]


def test_a_hierarchy_of_numbers() -> None:
    leaves = {"17": ["17"], "18": ["18"], "young": ["17", "18", "unknown"]}
    age = axis("number", "category", 17, 90, leaves=leaves)
    spread, numbers = age.spread([pa.array(["young", "17"])])
    assert shares(age, ["young", "17"], 18, 99) == [round(1 / 3, 12), 0]
    assert spread.centers()[numbers].tolist() == [17.5, 17.0]


def test_masked_codes_cover_the_codes_of_the_original() -> None:
    code = axis("text", "category", "10", "0610", "0611", "0620", rule="prefix")
    assert shares(code, ["061*", "06**", "0610", "1*", "9*"], 1, 1) == [
        0.5, round(1 / 3, 12), 1, 0, 0,
    ]  # fmt: skip


def test_bounds_and_means() -> None:
    bounds = axis(
        "number", "integer", 17, 90, style="bounds", columns=("a_min", "a_max", "a_missing")
    )
    columns = [pa.array([20, 30, None]), pa.array([23, 30, None]), pa.array([False, True, True])]
    assert shares(bounds, columns, 22, 30) == [0.5, 0.5, 0]
    mean = axis("number", "integer", 17, 90, style="mean", columns=("a", "a_missing"))
    columns = [pa.array([20.5, 30.0, None]), pa.array([False, False, True])]
    assert shares(mean, columns, 20, 21) == [1, 0, 0]
    assert shares(mean, columns, 21, 30) == [0, 1, 0]
    label = axis("text", "category", "x", "y", style="mean")
    assert shares(label, ["{x, y}", "y"], 1, 1) == [0.5, 1]
    sets = axis("text", "category", "x", "y", style="bounds")
    assert shares(sets, [pa.array([["x", "y"], ["y", None], None])], 1, 1) == [0.5, 0.5, 0]


def test_raw_values() -> None:
    letter = axis("text", "category", "a", "c")
    np.testing.assert_array_equal(
        letter.positions(pa.array(["c", None, "b", "a"])), [1, np.nan, -1, 0]
    )
    number = axis("number", "integer", 17, 90)
    np.testing.assert_array_equal(
        number.positions(pa.array([17.0, None], pa.float64())), [17, np.nan]
    )
    assert number.middle == 53.5


def test_labels_of_another_kind() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        axis("number", "integer", 17, 90).spread([pa.array(["young"])])


NUMBERS = st.one_of(
    st.integers(-30, 30).map(str),
    st.decimals(-30, 30, allow_nan=False, places=2).map(str),
    st.sampled_from(["1e2", "+3", "007", "-0", "0.5", "1.", ".5", "123456789012345678"]),
)
DAYS = st.one_of(
    st.dates(date(1960, 1, 1), date(2030, 1, 1)).map(str),
    st.sampled_from(["12020-01-01", "-0001-01-01"]),
)


def labels_of(values: st.SearchStrategy[str], divider: str) -> st.SearchStrategy[str | None]:
    brackets = st.sampled_from([("[", "]"), ("[", "]"), ("[", "["), ("", ""), ("(", ")")])
    pairs = st.tuples(brackets, values, values)
    intervals = pairs.map(lambda one: f"{one[0][0]}{one[1]}{divider}{one[2]}{one[0][1]}")
    some = st.one_of(values, intervals, st.just("*"))
    return st.one_of(some, some.map(lambda one: f"{one} or missing"), st.sampled_from(["missing"]))


@cases(__file__, "scale", "kind", "whole")
@given(data=st.data())
def test_plain_labels_are_what_they_are_one_by_one(
    scale: Any, kind: Any, whole: bool, data: st.DataObject
) -> None:
    own = labels_of(DAYS, "/") if scale == "date" else labels_of(NUMBERS, "-")
    labels = pa.array(data.draw(st.lists(own, min_size=1, max_size=12)), pa.string())
    one = axis(scale, kind, -40, 20_000, whole=whole)
    low = np.linspace(-31, 31, 19) * (500 if scale == "date" else 1)
    ranges = np.repeat(low, 2)[:-2], np.repeat(low, 2)[2:]

    def found() -> Any:
        try:
            spread, numbers = one.spread([labels])
        except DataError:
            return "unreadable"
        ends = spread.shares(*ranges)[numbers], spread.missing[numbers], spread.centers()[numbers]
        return [end.tolist() for end in ends]

    quickly = found()
    nothing = np.full(len(labels.unique()), np.nan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(axes, "plain_intervals", lambda *_: (nothing, nothing))
        slowly = found()
    if "unreadable" in (quickly, slowly):
        assert quickly == slowly
        return
    for fast, slow in zip(quickly, slowly, strict=True):
        np.testing.assert_array_equal(np.array(fast), np.array(slow))


def test_plain_labels_are_read_at_once() -> None:
    labels = pa.array(["17", "[17-25]", "[25-17]", "[1-2[", "*", None])
    age = PublishedAttribute("a", "integer", "interval", ("a",))
    low, high = plain_intervals(labels, age)
    np.testing.assert_array_equal(low, [17, 17, *[np.nan] * 4])
    np.testing.assert_array_equal(high, [17, 25, *[np.nan] * 4])
    for kind, kind_type in (("timestamp", None), ("category", None), ("float", "float")):
        other = PublishedAttribute("a", kind, "interval", ("a",), type=kind_type)  # type: ignore[arg-type]
        assert np.isnan(plain_intervals(labels, other)[0]).all()
    born = PublishedAttribute("a", "date", "interval", ("a",))
    days = pa.array(["2020-01-01", "[2020-01-01/2020-01-31]"])
    assert plain_intervals(days, born)[1].tolist() == [DAY, DAY + 30]
    no_day = pa.array(["2020-01-01", "2020-02-31"])
    np.testing.assert_array_equal(plain_intervals(no_day, born)[0], [DAY, np.nan])
