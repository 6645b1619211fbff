"""The grammar of docs/configuration.md: which texts are values of which type, by tables."""

from __future__ import annotations

import io
import pickle
import random
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config import Configuration
from anonspark.engine.data_files import typed_folders
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import TableAddress
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.json_reader import JsonReader
from anonspark.engine.values.text_forms import (
    INSTANT,
    DayForm,
    Forms,
    convert,
    forms_of,
    merged,
    type_of,
)
from anonspark.engine.values.text_reader import text_reader
from anonspark.errors import ConfigurationError, DataError

# Texts of a column, its type, and why it stays text though the values look like others.
COLUMNS: list[tuple[list[str | None], pa.DataType, str | None]] = [
    ([], pa.string(), None),
    ([None, None], pa.string(), None),
    (["1", None, "-7", "0"], pa.int32(), None),
    (["2147483647", "-2147483648"], pa.int32(), None),
    (["1", "2147483648"], pa.int64(), None),
    (["-9223372036854775808", "9223372036854775807"], pa.int64(), None),
    (["9223372036854775808", "1"], pa.decimal128(19, 0), None),
    (["9" * 25, "9" * 12], pa.decimal128(25, 0), None),
    (["9" * 38], pa.decimal128(38, 0), None),
    (["9" * 39, "1"], pa.string(), "more than 38 digits"),
    (["7", "007"], pa.string(), "a leading zero"),
    (["7", "-07"], pa.string(), "a leading zero"),
    (["7", "+5"], pa.string(), "a plus sign"),
    (["0", "-0"], pa.string(), "a minus in front of zero"),
    (["0.0", "-0.0"], pa.string(), "a minus in front of zero"),
    (["100", "1E2"], pa.string(), "an exponent"),
    (["12D", "12F"], pa.string(), "a letter behind a number"),
    (["5", " 5"], pa.string(), "a blank around a value"),
    (["5", "\t5"], pa.string(), "a blank around a value"),
    (["1,5", "2"], pa.string(), "a comma in a number"),
    (["1.5", ".5"], pa.string(), "a point without digits on both sides"),
    (["1.5", "5."], pa.string(), "a point without digits on both sides"),
    (["1.5", "NaN"], pa.string(), "a word for what is no number"),
    (["1.5", "-Infinity"], pa.string(), "a word for what is no number"),
    (["1", "\u0663"], pa.string(), "digits that are not ASCII"),
    (["1", "x"], pa.string(), None),
    (["1.5", "2"], pa.float64(), None),
    (["1.0", "2.5"], pa.float64(), None),
    (["1.0", "1"], pa.string(), "numbers in several writings (with other zeros at the end)"),
    (["0.00", "1.50", "-250.00"], pa.float64(), None),
    (["250.0", "250.00"], pa.string(), "numbers in several writings (with other zeros at the end)"),
    (["0.1234567890123456", "12.5"], pa.float64(), None),
    (["0.0000001"], pa.float64(), None),
    (["0." + "0" * 330 + "1"], pa.string(), "more than 38 digits"),
    (["12345678901234.50", "1.25"], pa.decimal128(16, 2), None),
    (["0.12345678901234567890"], pa.decimal128(21, 20), None),
    (["9" * 30 + ".123456789"], pa.string(), "more than 38 digits"),
    (["1.5", "9" * 16], pa.string(), "whole numbers of more than 15 digits with fractions"),
    (["true", "false", None], pa.bool_(), None),
    (["TRUE"], pa.bool_(), None),
    (["true", "False"], pa.string(), "values of several kinds or writings"),
    (["true", "1"], pa.string(), "values of several kinds or writings"),
    (["2020-02-29", "1066-10-14"], pa.date32(), None),
    (["2021-02-29"], pa.string(), "days that no calendar has"),
    (["2020-1-2"], pa.string(), None),
    (["2020-01-02", "2020"], pa.string(), "values of several kinds or writings"),
    (["2020-01-02", "2020-01-02 03:04:05"], pa.string(), "values of several kinds or writings"),
    (["2020-01-02 03:04:05", "2020-01-02 03:04:05.5"], INSTANT, None),
    (["2020-01-02T03:04:05.500Z", "2020-01-02T03:04:05.250Z"], INSTANT, None),
    (
        ["2020-01-02T03:04:05", "2020-01-02 03:04:06"],
        pa.string(),
        "points in time in several writings",
    ),
    (
        ["2020-01-02T03:04:05", "2020-01-02T03:04:06Z"],
        pa.string(),
        "points in time in several writings",
    ),
    (
        ["2020-01-02 03:04:05.50", "2020-01-02 03:04:05.5"],
        pa.string(),
        "points in time in several writings",
    ),
    (["2020-01-02 24:00:00"], pa.string(), "times that no clock has"),
    (["2020-01-02 03:04"], pa.string(), None),
]


@pytest.mark.parametrize(("texts", "expected", "reason"), COLUMNS, ids=str)
def test_types(texts: list[str | None], expected: pa.DataType, reason: str | None) -> None:
    assert type_of(forms_of(pa.array(texts, pa.string()))) == (expected, reason)


@pytest.mark.parametrize(
    ("pattern", "texts", "expected"),
    [
        (
            "dd.MM.yyyy",
            ["01.02.2026", None, "29.02.2024"],
            [date(2026, 2, 1), None, date(2024, 2, 29)],
        ),
        ("d/M/yyyy", ["1/12/2026", "31/1/2026"], [date(2026, 12, 1), date(2026, 1, 31)]),
        ("yyyy/MM/dd", ["2026/02/01"], [date(2026, 2, 1)]),
        ("MM-dd-yyyy", ["02-01-2026"], [date(2026, 2, 1)]),
        ("d.M.yyyy", ["01.2.2026"], None),
        ("dd.MM.yyyy", ["1.2.2026"], None),
        ("dd.MM.yyyy", ["31.02.2026"], None),
        ("dd.MM.yyyy", ["01.02.2026", "2026-02-01"], None),
        ("dd.MM.yyyy", ["2026-02-01"], [date(2026, 2, 1)]),
    ],
)
def test_days(pattern: str, texts: list[str | None], expected: list[date | None] | None) -> None:
    days, values = DayForm(pattern), pa.array(texts, pa.string())
    kind, _ = type_of(forms_of(values, days))
    assert kind == (pa.string() if expected is None else pa.date32())
    assert convert(values, kind, days).to_pylist() == (expected or texts)


NUMBERS = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.integers(-50, 50).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(
        lambda one: format(Decimal(repr(one)), "f")
    ),
    st.decimals(-(10**9), 10**9, places=2).map(lambda one: format(one, "f")),
    st.from_regex(r"[+-]?[0-9]{1,4}(\.[0-9]{0,3})?", fullmatch=True),
)
OTHERS = st.one_of(
    st.dates(date(1000, 1, 1)).map(str),
    st.datetimes().map(lambda one: one.replace(year=max(one.year, 1000)).isoformat(" ")),
    st.sampled_from(["true", "false", "True", "TRUE", "", " ", "x", "1e5", "2020-02-30"]),
)


@given(st.one_of(st.lists(NUMBERS, max_size=6), st.lists(st.one_of(NUMBERS, OTHERS), max_size=4)))
def test_different_texts_stay_different_values(texts: list[str]) -> None:
    values = pa.array(texts, pa.string())
    kind, _ = type_of(forms_of(values))
    read = convert(values, kind)
    assert read.null_count == 0
    assert len(set(read.to_pylist())) == len(set(texts))


@given(st.lists(st.one_of(NUMBERS, OTHERS), max_size=6), st.randoms())
def test_no_order_of_records_matters(texts: list[str], generator: random.Random) -> None:
    expected = forms_of(pa.array(texts, pa.string()))
    shuffled = generator.sample(texts, len(texts))
    forms: dict[str, int] = {}
    for text in shuffled:
        forms = merged(forms, forms_of(pa.array([text])))
    assert type_of(forms) == type_of(expected)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["00501", "10001"], pa.string()),
        (["501", None], pa.int32()),
        (["1.5", "2.5"], pa.float64()),
        (["2020-01-01"], pa.date32()),
        ([None], pa.string()),
        (["5", "NA", " NA"], pa.int32()),
    ],
)
def test_types_of_folders(texts: list[str | None], expected: pa.DataType) -> None:
    assert typed_folders(texts, ["NA"])[0] == expected


def read(
    content: bytes | str, *, data_format: str = "csv", path: str = "", **settings: Any
) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Read a file in two halves where it can be cut, as tasks do."""
    given = content.encode() if isinstance(content, str) else content
    options = settings.pop("options", {})
    wanted = WantedColumns({}, **settings)
    if data_format == "csv":
        options = {"header": "true", "inferSchema": "true"} | options
    reader = text_reader(TableAddress(("t",), data_format, "input.path"), options, selection=wanted)
    reader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our words
    file = io.BytesIO(given)
    if isinstance(reader, CsvReader):
        reader = reader.with_header(reader.first_line(file, path))
    cut: list[tuple[int, int | None]] = [(0, None)]
    if reader.can_be_cut(path, given[:2]):
        cut = [(0, len(given) // 2), (len(given) // 2, len(given))]
    forms = Forms()
    for start, end in cut:
        forms |= Forms.of_texts([reader.infer(reader.blocks(file, path, start, end)).to_text()])
    schema = reader.schema(forms)
    batches = [
        batch
        for start, end in cut
        for batch in reader.read(reader.blocks(file, path, start, end), schema)
    ]
    rows = pa.Table.from_batches(batches, schema).to_pylist()
    types = {field.name: str(field.type) for field in schema}
    return types, [tuple(row.values()) for row in rows]


# Content, options and markers, the types of columns, and the records.
FILES: list[tuple[str | bytes, dict[str, Any], list[str], list[tuple[Any, ...]]]] = [
    ("a,b\n1,x\n2,\n", {}, ["int32", "string"], [(1, "x"), (2, None)]),
    ("a,b\r\n1,x\r\n2,\r\n", {}, ["int32", "string"], [(1, "x"), (2, None)]),
    ("a,b\r1,x\r2,y\r", {}, ["int32", "string"], [(1, "x"), (2, "y")]),
    ("\ufeffa,b\n1,x", {}, ["int32", "string"], [(1, "x")]),
    ("a\n\n1\n  \n2\n", {}, ["int32"], [(1,), (2,)]),
    ("a,b\n1,x\na,b\n2,y\n", {}, ["int32", "string"], [(1, "x"), (2, "y")]),
    ('a,b\n1,"x ""y"", z"\n', {}, ["int32", "string"], [(1, 'x "y", z')]),
    ('a,b\n1,5" pipe\n', {}, ["int32", "string"], [(1, '5" pipe')]),
    ('a,b\n1,"x \\" y"\n', {"escape": "\\"}, ["int32", "string"], [(1, 'x " y')]),
    ("a,b\n1,C:\\n\n", {}, ["int32", "string"], [(1, "C:\\n")]),
    ('a,b\n1,"x\ny"\n2,z\n', {"multiLine": "true"}, ["int32", "string"], [(1, "x\ny"), (2, "z")]),
    ("a|b\n1|'x|y'\n", {"sep": "|", "quote": "'"}, ["int32", "string"], [(1, "x|y")]),
    ('a\tb\n1\t"x\n', {"sep": "\\t", "quote": ""}, ["int32", "string"], [(1, '"x')]),
    ("#c\na,b\n#1,2\n3,4\n", {"comment": "#"}, ["int32", "int32"], [(3, 4)]),
    ("#c\na,b\n3,4\n", {"comment": "#", "multiLine": "true"}, ["int32", "int32"], [(3, 4)]),
    ('a\tb\n1\t"x\ty"\n', {"sep": "\t"}, ["int32", "string"], [(1, "x\ty")]),
    ('a b\n1 "x y"\n', {"sep": " "}, ["int32", "string"], [(1, "x y")]),
    ("a,b\n1,-\n2,3\n", {"nullValue": "-"}, ["int32", "int32"], [(1, None), (2, 3)]),
    (
        "a,b\n 1 , x \n",
        {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
        ["int32", "string"],
        [(1, "x")],
    ),
    (
        "a,b\n1,NA\n2,999\nNA,3\n",
        {"markers": ("NA", "999")},
        ["int32", "int32"],
        [(1, None), (2, None), (None, 3)],
    ),
    ("a,b\n1,NA\nNA,x\n", {"markers": ("NA",)}, ["int32", "string"], [(1, "NA"), (None, "x")]),
    ("a,b\n1,2\nx,\n", {"required": ("b",)}, ["int32", "int32"], [(1, 2), (None, None)]),
    (
        "a,b\n1,2\n1.5,NA\n",
        {"required": ("B",), "markers": ("NA",)},
        ["int32", "int32"],
        [(1, 2), (None, None)],
    ),
    (
        "a,b\n1,2.5\nx,999.0\n",
        {"required": ("b",), "markers": ("999",)},
        ["int32", "double"],
        [(1, 2.5), (None, 999.0)],
    ),
    (
        "a,b\n1,x\n2,0999\n",
        {"required": ("b",), "markers": ("999",)},
        ["int32", "string"],
        [(1, "x"), (2, "0999")],
    ),
    (
        '#"\na,b\n1,"x\n#\na,b\n\ny"\n  \n#"\na,b\n2,z\n',
        {"multiLine": "true", "comment": "#"},
        ["int32", "string"],
        [(1, "x\n#\na,b\n\ny"), (2, "z")],
    ),
    ("a\n\u00fc\n".encode("utf-16"), {}, ["string"], [("\u00fc",)]),
    ("a\n\u00fc\n".encode("cp1252"), {"encoding": "windows-1252"}, ["string"], [("\u00fc",)]),
    (
        "a\n\u6771\u4eac\n".encode("shift-jis"),
        {"encoding": "Shift_JIS"},
        ["string"],
        [("\u6771\u4eac",)],
    ),
    ("a\n1\n".encode("cp037"), {"encoding": "cp037"}, ["int32"], [(1,)]),
    (
        "a;b;c\n1,5;1.5;2\n-2;7,0;x\n",
        {"sep": ";", "decimal": ","},
        ["double", "string", "string"],
        [(1.5, "1.5", "2"), (-2.0, "7,0", "x")],
    ),
    (
        "a;b\n1,5;x\nno;y\n",
        {"sep": ";", "decimal": ",", "numbers": ("a",)},
        ["string", "string"],
        [("1.5", "x"), ("no", "y")],
    ),
    ("a,,A\n1,2,3\n", {}, ["int32", "int32", "int32"], [(1, 2, 3)]),
    (
        "a,b\n1,7\nx,NaN\ny,+999\n",
        {"required": ("b",), "numbers": ("B",), "markers": ("999",)},
        ["int32", "int32"],
        [(1, 7), (None, None), (None, 999)],
    ),
]
SETTINGS = ("markers", "numbers", "required", "skips_malformed")


@pytest.mark.parametrize(("content", "options", "types", "records"), FILES, ids=str)
def test_csv(
    content: str | bytes, options: dict[str, Any], types: list[str], records: list[Any]
) -> None:
    settings = {name: options[name] for name in SETTINGS if name in options}
    options = {name: value for name, value in options.items() if name not in SETTINGS}
    found, rows = read(content, options=options, **settings)
    assert (list(found.values()), rows) == (types, records)


def test_why_a_column_stays_text_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "anonspark")
    reader = CsvReader("input.path: logged once", header=True, infers=True).with_header("a")
    for _ in range(2):
        assert reader.schema(reader.infer([b"007\n"])).field("a").type == pa.string()
    said = "input.path: the column 'a' stays text because of a leading zero. If that means nothing"
    assert [line for line in caplog.messages if line.startswith(said)] == caplog.messages[-1:] != []


@pytest.mark.parametrize(("attributes", "logged"), [(None, "ab"), (("b",), "b"), ((), "")])
def test_only_attributes_that_stay_text_are_logged(
    caplog: pytest.LogCaptureFixture, attributes: tuple[str, ...] | None, logged: str
) -> None:
    caplog.set_level("INFO", "anonspark")
    where = f"input.path: of {logged!r}"
    reader = CsvReader(where, header=True, infers=True, attributes=attributes)
    with_header = reader.with_header("a,b,c")
    with_header.schema(with_header.infer([b"007,008,9\n"]))
    columns = [line.split("column ")[1][1] for line in caplog.messages]
    assert "".join(columns) == logged


def test_a_column_with_a_declared_type_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "anonspark")
    attributes = {"zip": {"role": "quasi_identifier", "type": "text"}, "code": "insensitive"}
    document = {"input": {"path": "a.csv"}, "attributes": attributes, "output": {"path": "out"}}
    wanted = WantedColumns.of(Configuration.model_validate(document | {"privacy": {"k": 2}}))
    address = TableAddress(("declared.csv",), "csv", "input.path")
    reader = text_reader(address, {"header": "true", "inferSchema": "true"}, selection=wanted)
    assert isinstance(reader, CsvReader)
    with_header = reader.with_header("zip,code")
    with_header.schema(with_header.infer([b"00123,007\n"]))
    assert [line.split("'")[1] for line in caplog.messages] == ["code"]


def test_names_of_columns() -> None:
    assert list(read("a,,A\n1,2,3\n")[0]) == ["a0", "_c1", "A2"]
    assert list(read("1,2\n", options={"header": "false"})[0]) == ["_c0", "_c1"]


REFUSED = [
    ('a,b\n1,"x\n2,y"\n', {}, "a value has a line break in it"),
    ('a,b\n1,"x"y\n', {}, "quotes that are neither around a value nor escaped"),
    ('a,b\n1,"x \\" y"\n', {}, "quotes that are neither around a value nor escaped"),
    ('a,b\n1,"x\n2,y\n3,z\n', {"multiLine": "true"}, "or one that does not end"),
    ('a,b\n1,"x"y\n', {"multiLine": "true"}, "quotes that are neither around a value nor escaped"),
    ("a,b\n1,x\\\n2,y\n", {"escape": "\\"}, "or one that does not end"),
    ("a,b\n1\n", {}, "too few or too many values"),
    ("a,b\n1,2,3\n", {}, "too few or too many values"),
    (b"a\nx\n\xfc\n", {}, "line 3 is not written in UTF-8"),
    ("a,b\n1,x\n".encode("utf-16-be"), {"encoding": "UTF-16"}, r"likely UTF-16BE"),
    (b"a\n\x81\n", {"encoding": "shift_jis"}, "line 2 is not written in CP932|SHIFT_JIS"),
    ('"a\nb",c\n1,2\n', {"multiLine": "true"}, "the name of a column has a line break in it"),
]


@pytest.mark.parametrize(("content", "options", "message"), REFUSED, ids=str)
def test_refused_csv(content: str | bytes, options: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(content, options=options)


@pytest.mark.parametrize("beginning", ["", "sep=,\n", "\n \n", "a,b\n"])
@cases(__file__, "line", "options")
def test_errors_of_lines_name_file_and_line(
    beginning: str, line: str, options: dict[str, str]
) -> None:
    content = beginning + "a,b\n" + "1,2\n\n" * 50 + line + "\n" + "1,2\n" * 200
    number = content[: content.index(line + "\n")].count("\n") + 1
    for written in (content, content.replace("\n", "\r")):
        encoded = written.encode(options.get("encoding", "utf-8"))
        with pytest.raises(DataError, match=rf"^input\.path: t: f\.csv: line {number}: a "):
            read(encoded, path="f.csv", options=options)


def test_errors_of_lines_of_json_name_file_and_line() -> None:
    content = '{"a": 1}\n\n' * 50 + "{\n" + '{"a": 1}\n' * 200
    with pytest.raises(DataError, match=r"^input\.path: t: f\.json: line 101: a record"):
        read(content, data_format="json", path="f.json")


def test_malformed_lines_are_passed_over_each_by_itself() -> None:
    content = b'a,b\n1,x\n2,"y\n3\n4,\xfc\n5,"z"\n'
    _, rows = read(content, skips_malformed=True)
    assert rows == [(1, "x"), (4, "\ufffd"), (5, "z")]


@cases(__file__, "data_format", "options", "message")
def test_refused_options(data_format: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        text_reader(TableAddress(("t",), data_format, "input.path"), options)


def test_a_record_that_stays_has_values_of_the_types() -> None:
    reader = CsvReader("input.path: t", header=True, infers=True, required=("b",))
    reader = reader.with_header("a,b")
    schema = pa.schema([("a", pa.int32())])
    (batch,) = reader.read([b"1,2\nx,\n"], schema)
    assert batch.to_pydict() == {"a": [1, None]}
    with pytest.raises(DataError, match="not of its column's type"):
        list(reader.read([b"1,2\nx,3\n"], schema))


# Records of JSON: a line each.
JSON: list[tuple[str, dict[str, Any], dict[str, str], list[tuple[Any, ...]]]] = [
    (
        '{"a": 1, "b": "x"}\n{"b": "2020-01-01"}\n',
        {},
        {"a": "int64", "b": "string"},
        [(1, "x"), (None, "2020-01-01")],
    ),
    ('{"a": 1}\n{"a": 1.5}\n', {}, {"a": "double"}, [(1.0,), (1.5,)]),
    (
        '{"a": 1}\n{"a": 10000000000000000000}\n',
        {},
        {"a": "decimal128(20, 0)"},
        [(Decimal(1),), (Decimal(10**19),)],
    ),
    ('{"a": true}\n{"a": null}\n', {}, {"a": "bool"}, [(True,), (None,)]),
    (
        '{"a": 1}\n{"a": "NA"}\n{"a": ""}\n',
        {"markers": ("NA",)},
        {"a": "int64"},
        [(1,), (None,), (None,)],
    ),
    (
        '{"a": 1, "b": 1}\n{"a": "x", "b": null}\n',
        {"required": ("b",)},
        {"a": "int64", "b": "int64"},
        [(1, 1), (None, None)],
    ),
    (
        '{"a": 1, "b": {"c": 1.5}}\n{"a": "x", "b": {"c": 999.0}}\n{"a": "y", "b": {"c": NaN}}\n',
        {"required": ("B.C",), "markers": ("999",)},
        {"a": "int64", "b": "struct<c: double>"},
        [(1, {"c": 1.5}), (None, {"c": 999.0}), (None, {"c": ANY})],
    ),
    (
        '{"a": {"b": 1}}\n{"a": {"c": "x"}}\n',
        {},
        {"a": "struct<b: int64, c: string>"},
        [({"b": 1, "c": None},), ({"b": None, "c": "x"},)],
    ),
    ('{"a": [1, 2]}\n', {}, {"a": "list<element: int64>"}, [([1, 2],)]),
    (
        '{"a": 1, "b": "0"}\n{"a": "x", "b": "nan"}\n{"a": "y", "b": "+999"}\n',
        {"required": ("b",), "numbers": ("b",), "markers": ("999",)},
        {"a": "int64", "b": "string"},
        [(1, "0"), (None, "nan"), (None, "+999")],
    ),
    ('[{"a": 1}, {"a": 2}]\n', {}, {"a": "int64"}, [(1,), (2,)]),
    ('[{"a": 1},\n {"a": 2}]\n', {"multiLine": "true"}, {"a": "int64"}, [(1,), (2,)]),
]


@pytest.mark.parametrize(("content", "options", "types", "records"), JSON, ids=str)
def test_json(
    content: str, options: dict[str, Any], types: dict[str, str], records: list[Any]
) -> None:
    settings = {name: options[name] for name in SETTINGS if name in options}
    options = {name: value for name, value in options.items() if name not in SETTINGS}
    assert read(content, data_format="json", options=options, **settings) == (types, records)


@pytest.mark.parametrize(
    "content",
    [
        *("{", "1\n", '{"a": "\\ud800"}', '{"a": 1} {"a": 2}\n', "[1]"),
        *('{"a": 1e400}', '{"a": [-1e400]}', '{"a": Infinity}', '{"a": 1, "a": 2}'),
        '{"a": {"b": 1, "b": null}}',
    ],
)
def test_malformed_json(content: str) -> None:
    with pytest.raises(DataError, match="a record is not valid JSON"):
        read(content, data_format="json")


def test_kinds_of_json_that_have_no_type_in_common() -> None:
    reader = JsonReader("input.path: t")
    forms = reader.infer([b'{"a": 1, "b": {"c": 1}}\n{"a": "x", "b": {"c": true}}\n'])
    for name in ("a", "A", "b", "b.c", "B.C"):
        with pytest.raises(DataError, match=f"the column '{name}' has values of kinds"):
            JsonReader("input.path: t", attributes=(name,)).schema(forms)
    schema = JsonReader("input.path: t", attributes=()).schema(forms)
    assert schema.field("a").type == pa.string()


@pytest.mark.parametrize("others", ["1.5", "9" * 39, '"x"'])
def test_digits_of_json_are_not_lost(others: str) -> None:
    reader = JsonReader("input.path: t")
    forms = reader.infer([f'{{"a": {2**53 + 1}}}\n{{"a": {others}}}\n'.encode()])
    with pytest.raises(DataError, match="the column 'a' has values of kinds"):
        reader.schema(forms)


@pytest.mark.parametrize("reader", [CsvReader("t", header=True, infers=True), JsonReader("t")])
def test_records_in_folders_of_missing_values_decide_nothing(
    reader: CsvReader | JsonReader,
) -> None:
    reader = replace(reader, markers=("NA", "9"), required=("zip", "b"))
    blocks = [b"x,1\n"] if isinstance(reader, CsvReader) else [b'{"a": "x", "b": 1}\n']
    if isinstance(reader, CsvReader):
        reader = reader.with_header("a,b")
    for folder, is_left_out in (("00501", False), (" NA", True), ("9.0", False), (None, True)):
        forms = reader.in_folders({"Zip": folder}).infer(blocks)
        assert [bool(forms.columns.get(name)) for name in "ab"] == [not is_left_out] * 2
