"""Labels as axes, to the letter, as bounds of classes, and asked in every way."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.core.queries import Domain
from anonspark.errors import DataError
from anonspark.labels import axes
from anonspark.labels.axes import Axis, plain_intervals
from anonspark.labels.class_bounds import BoundsReader, is_alike, type_of_name
from anonspark.labels.region_axes import sets_of_codes
from anonspark.labels.regions import Leaves, PublishedAttribute, read_regions
from anonspark.reading.attributes import FIRST, CategorySet, OrderedSet, ReadAttribute
from anonspark.reading.shares import regions_of
from anonspark.release.copies import csv_copy
from anonspark.reporting.bins import Bins
from anonspark.reporting.marginals import (
    GroupAxis,
    Groups,
    OrderedAxis,
    numbers_axis,
    spread_present,
)

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


def test_positions_of_raw_values_on_text_and_number_axes() -> None:
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


def reader(
    kind: Any, of_type: str, *, style: str = "interval", missing: bool = True, rule: Any = None
) -> BoundsReader:
    columns = {"interval": ("a",), "bounds": ("a_min", "a_max"), "mean": ("a",)}[style]
    if kind == "category":
        columns = ("a",)
    elif missing and style != "interval":
        columns = (*columns, "a_missing")
    own = PublishedAttribute("a", kind, style, columns, of_type, rule)
    return BoundsReader(own, kind, type_of_name(of_type), rule is not None, missing)


def label(kind: Any, of_type: str, text: str | None, **options: Any) -> tuple[bool, Any, Any]:
    found = reader(kind, of_type, **options).read([pa.array([text], pa.string())])
    return bool(found.sound[0]), found.lowest[0].as_py(), found.highest[0].as_py()


@cases(__file__, "kind", "of_type", "text", "low", "high")
def test_labels_are_bounds(kind: str, of_type: str, text: str, low: Any, high: Any) -> None:
    assert label(kind, of_type, text) == (True, low, high)


@cases(__file__, "kind", "of_type", "text")
def test_texts_that_are_no_labels(kind: str, of_type: str, text: str | None) -> None:
    assert not label(kind, of_type, text)[0]


@pytest.mark.parametrize("text", ["missing", "[17-25] or missing"])
def test_nothing_is_missing_where_it_is_no_category(text: str) -> None:
    assert not label("integer", "int64", text, missing=False)[0]


def test_labels_of_rules() -> None:
    assert label("date", "string", "2021-02", rule="calendar")[0]
    assert not label("date", "string", "February", rule="calendar")[0]


def test_bounds_and_sets() -> None:
    own = reader("integer", "int64", style="bounds")
    low, high = pa.array([1, 5, None, None]), pa.array([2, 4, None, 1])
    found = own.read([low, high, pa.array([True, False, True, True])])
    assert found.sound.tolist() == [True, False, True, False]
    assert found.wider.tolist()[:3] == [True, False, False]
    sets = reader("category", "string", style="bounds").read(
        [pa.array([["a", "b", None], [None], [], None, [None, "a"]])]
    )
    assert sets.sound.tolist() == [True, True, False, False, False]
    assert sets.lowest.to_pylist()[:2] == ["a", None]
    assert sets.highest.to_pylist()[:2] == ["b", None]


def test_types_of_columns() -> None:
    assert is_alike(pa.int64(), pa.int32())
    assert is_alike(pa.decimal128(20, 0), pa.uint64())
    assert not is_alike(pa.string(), pa.int64())
    assert not is_alike(pa.struct([("a", pa.string())]), pa.string())
    with pytest.raises(ValueError, match="names of people"):
        type_of_name("names of people")


@pytest.mark.parametrize(
    ("text", "is_sound"),
    [("north", True), ("north or missing", True), ('"missing"', True), ('"', False)]
    + [(text, False) for text in ("", '"north"', '"mis" + "sing"', None)],
)
def test_labels_of_a_hierarchy_that_nobody_has(text: str | None, is_sound: bool) -> None:
    """Of a file that was not read; any text was one."""
    own = replace(reader("category", "string"), has_hierarchy=True)
    assert own.is_of_unknown_hierarchy
    assert own.read([pa.array([text], pa.string())]).sound.tolist() == [is_sound]


TEXTS = ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\rx", "\nx", "'x", "＝1+1", "-5", "+1.5e3", "-"]  # noqa: RUF001
HARMLESS = {"-5", "+1.5e3"}


def content_of(table: pa.Table, rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    return sink.getvalue()


def test_no_text_is_a_formula() -> None:
    copied = csv_copy(content_of(pa.table({"=name": TEXTS, "plain": ["a"] * len(TEXTS)}), 5))
    read = pd.read_csv(io.BytesIO(copied), dtype=str, keep_default_na=False)
    assert list(read) == ["'=name", "plain"]
    expected = [text if text in HARMLESS else f"'{text}" for text in TEXTS]
    assert read["'=name"].to_list() == expected
    # The first apostrophe can be removed from every text.
    assert [text.removeprefix("'") for text in read["'=name"]] == TEXTS


def test_no_cell_that_begins_inside_of_a_text_is_a_formula() -> None:
    """Readers that split at other signs begin one there, and a quote opens it no more."""
    inside = [
        f"{sign}{quotes}{text}" for sign in ";\t\n\r" for quotes in ("", '"') for text in TEXTS
    ]
    texts = [f"x{text}y" for text in inside] + ["a;b", "a;'", ";'=1;-2", "it's; it's", *inside]
    table = pa.table({"plain": ["a"] * len(texts), "x;=1": texts})
    copied = csv_copy(content_of(table)).decode("utf-8-sig")
    for delimiter in ";\t":
        rows = csv.reader(io.StringIO(copied, newline=""), delimiter=delimiter)
        assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@")]
    header, *rows = csv.reader(io.StringIO(copied, newline=""))
    assert header == ["plain", "x;'=1"]
    shown = [text.removeprefix("'") for _, text in rows]
    assert [re.sub("([;\t\n\r]\"*)'", r"\1", text) for text in shown] == texts


def test_values_are_written_as_they_are() -> None:
    table = pa.table(
        {
            "text": ['quoted "x", and\nmore', "", None, "[17-25]", "ä"],
            "number": [1.5, None, -2.0, 0.1, 1e300],
            "day": [date(2020, 1, 2)] * 5,
            "time": pa.array([datetime(2020, 1, 2, 3, tzinfo=UTC)] * 5, pa.timestamp("us", "UTC")),
            "flag": [True, None, False, True, False],
        }
    )
    copied = csv_copy(content_of(table))
    assert copied.startswith(b'\xef\xbb\xbf"text","number","day","time","flag"\n')
    lines = copied.decode("utf-8-sig").split("\n")
    assert lines[1:4] == [
        '"quoted ""x"", and',
        'more",1.5,2020-01-02,2020-01-02 03:00:00.000000Z,true',
        '"",,2020-01-02,2020-01-02 03:00:00.000000Z,',
    ]
    assert lines[4] == ",-2,2020-01-02,2020-01-02 03:00:00.000000Z,false"
    assert csv_copy(content_of(table, 2)) == copied
    with pytest.raises(pa.ArrowException):
        csv_copy(b"no such file")


LETTERS = "abcdef"
GROUPS = {"a": ["a"], "f": ["f"], "few": ["b", "c"], "many": ["d", "e", "f"], "all": [*LETTERS]}


def day(number: int) -> str:
    return str(date(1970, 1, 1) + timedelta(days=number))


@pytest.mark.parametrize(
    ("kind", "written", "divider"), [("integer", str, "-"), ("date", day, "/")]
)
@settings(max_examples=40)
@given(
    ends=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6),
    edge=st.integers(-1, 32),
)
def test_values_of_intervals_are_counted(
    kind: Any, written: Any, divider: str, ends: list[tuple[int, int]], edge: int
) -> None:
    ends = [(min(one), max(one)) for one in ends]
    labels = [
        written(low) if low == high else f"[{written(low)}{divider}{written(high)}]"
        for low, high in ends
    ]
    covered = [range(low, high + 1) for low, high in ends]
    below = [float(Fraction(sum(own < edge for own in one), len(one))) for one in covered]
    published = PublishedAttribute("x", kind, "interval", ("x",))
    column = pa.array(labels)

    regions, numbers = read_regions([column], published)
    axis = numbers_axis(published)
    spread = spread_present(axis, regions)
    shares = spread.shares(np.array([-np.inf]), np.array([edge - 1.0]))[numbers, 0]
    np.testing.assert_allclose(shares, below)
    np.testing.assert_allclose(
        spread.centers()[numbers], [sum(one) / len(one) for one in covered], atol=1e-9
    )
    parts = OrderedAxis(Bins("whole", (float(edge),)), axis).parts(regions)[numbers]
    np.testing.assert_allclose(parts[:, 0], below)
    quickly, places = axis.spread([column])
    np.testing.assert_array_equal(quickly.low[places], [low for low, _ in ends])
    np.testing.assert_array_equal(quickly.high[places], [high for _, high in ends])

    exact, runs = sets_of_codes(regions, "integer", None)
    values = range(-1, 32)
    codes = exact.encode(pa.array(values))
    assert [held(values, codes, runs[number]) for number in numbers] == list(map(list, covered))

    asked = regions_of(ReadAttribute("x", kind, ("x",), published), [column])
    wanted = OrderedSet((FIRST, (edge, 0)))
    np.testing.assert_allclose(asked.shares(wanted), below)
    assert asked.may_have(wanted).tolist() == [share > 0 for share in below]


def held(values: Iterable[Any], codes: Any, runs: Any) -> list[Any]:
    """Return the values whose codes lie in runs."""
    pairs = zip(values, codes, strict=True)
    return [value for value, code in pairs if any(low <= code <= high for low, high in runs)]


@settings(max_examples=40)
@given(
    sets=st.lists(st.sets(st.sampled_from([*LETTERS, None]), min_size=1), min_size=1, max_size=6),
    named=st.sets(st.sampled_from(LETTERS)),
)
def test_values_of_sets_are_counted(sets: list[set[str | None]], named: set[str]) -> None:
    column = pa.array([sorted(one, key=str) for one in sets], pa.list_(pa.string()))
    require_counted(column, PublishedAttribute("x", "category", "bounds", ("x",)), sets, named)


@settings(max_examples=40)
@given(
    labels=st.lists(st.tuples(st.sampled_from([*GROUPS]), st.booleans()), min_size=1, max_size=6),
    named=st.sets(st.sampled_from(LETTERS)),
)
def test_values_of_groups_are_counted(labels: list[tuple[str, bool]], named: set[str]) -> None:
    column = pa.array([f"{label}{' or missing' * missing}" for label, missing in labels])
    sets = [{*GROUPS[label], *[None] * missing} for label, missing in labels]
    published = PublishedAttribute("x", "category", "interval", ("x",))
    require_counted(column, published, sets, named, GROUPS)


def require_counted(
    column: pa.Array,
    published: PublishedAttribute,
    sets: Sequence[set[str | None]],
    named: set[str],
    leaves: Leaves | None = None,
) -> None:
    """Check that every reading of a column counts the values of its sets."""
    inside = [float(Fraction(len(one & named), len(one))) for one in sets]

    regions, numbers = read_regions([column], published, leaves)
    axis = Axis.of_regions(published, regions, leaves, whole=True)
    assert [set(axis.texts_of(regions[number])) for number in numbers] == [
        one - {None} for one in sets
    ]
    spread, places = axis.spread([column])
    positions = np.flatnonzero([text in named for text in axis.texts]).astype(np.float64)
    np.testing.assert_allclose(spread.share_of(positions)[places], inside)
    np.testing.assert_allclose(
        spread.shares(positions, positions).sum(axis=1)[places], inside, atol=1e-12
    )
    groups = Groups(("named", "others"), dict.fromkeys(named, 0))
    parts = GroupAxis(groups, axis).parts(regions)[numbers]
    np.testing.assert_allclose(parts[:, 0], inside, atol=1e-12)
    np.testing.assert_allclose(parts[:, 2], [(None in one) / len(one) for one in sets])

    exact, runs = sets_of_codes(regions, None, leaves)
    codes = [*exact.encode(pa.array([*LETTERS])), exact.missing]
    assert [{*held([*LETTERS, None], codes, runs[number])} for number in numbers] == list(sets)

    asked = regions_of(ReadAttribute("x", "category", ("x",), published, leaves), [column])
    wanted = CategorySet(frozenset(named))
    np.testing.assert_allclose(asked.shares(wanted), inside, atol=1e-12)
    assert asked.may_have(wanted).tolist() == [bool(one & named) for one in sets]
