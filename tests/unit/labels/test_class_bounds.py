"""Labels to the letter, bounds of classes, and copies of the records as CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases

from anonspark.labels.class_bounds import BoundsReader, is_alike, type_of_name
from anonspark.labels.regions import PublishedAttribute
from anonspark.release.copies import csv_copy


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


@pytest.mark.parametrize(
    ("kind", "of_type", "text", "low", "high"),
    [
        ("integer", "int32", "17", 17, 17),
        ("integer", "int64", "[-5--3]", -5, -3),
        ("integer", "int64", "[17-25] or missing", 17, 25),
        ("integer", "int64", "missing", None, None),
        ("integer", "uint64", "18446744073709551615", 2**64 - 1, 2**64 - 1),
        ("float", "double", "[0.5-1e+300]", 0.5, 1e300),
        ("float", "float", "0.1", 0.10000000149011612, 0.10000000149011612),
        ("decimal", "decimal128(10, 0)", "12", 12, 12),
        ("date", "date32[day]", "[2020-01-31/2020-03-01]", 18292, 18322),
        ("date", "date32[day]", "12345-01-02", 3789392, 3789392),
        ("timestamp", "timestamp[us, tz=UTC]", "1970-01-01 00:00:01", 1_000_000, 1_000_000),
        ("category", "string", "{a, b}", "a", "b"),
        ("category", "string", '{"missing", "x, y", missing}', "missing", "x, y"),
        ("category", "string", '"*"', "*", "*"),
        ("boolean", "bool", "{false, true}", "false", "true"),
    ],
)
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
