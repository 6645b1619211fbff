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
from anonspark.engine.values.text_forms import DayForm, Forms, convert, forms_of, merged, type_of
from anonspark.engine.values.text_reader import text_reader
from anonspark.errors import ConfigurationError, DataError


@cases(__file__, "texts", "expected", "reason")
def test_types(texts: list[str | None], expected: str, reason: str | None) -> None:
    found, why = type_of(forms_of(pa.array(texts, pa.string())))
    assert (str(found), why) == (expected, reason)


@cases(__file__, "pattern", "texts", "expected")
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


@cases(__file__, "texts", "expected")
def test_types_of_folders(texts: list[str | None], expected: str) -> None:
    assert str(typed_folders(texts, ["NA"])[0]) == expected


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


def read_row(content: str, row: dict[str, Any], **named: str) -> tuple[dict[str, str], list[Any]]:
    """Read what a row of the tests has: with options of a file, and what is wanted of it."""
    row = dict(row)
    given = content.encode(row.pop("written")) if "written" in row else content
    names = [name for name in ("markers", "numbers", "required") if name in row]
    settings = {name: tuple(row.pop(name)) for name in names}
    types, rows = read(given, options=row, **settings, **named)
    return types, [list(one) for one in rows]


@cases(__file__, "content", "options", "types", "records")
def test_csv(content: str, options: dict[str, Any], types: list[str], records: list[Any]) -> None:
    found, rows = read_row(content, options)
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


@cases(__file__, "lines", "options", "types", "records")
def test_json(
    lines: list[str], options: dict[str, Any], types: dict[str, str], records: list[Any]
) -> None:
    content = "\n".join([*lines, ""])
    assert read_row(content, options, data_format="json") == (types, records)


def test_a_number_of_json_that_is_required_may_be_a_marker_or_none() -> None:
    content = (
        '{"a": 1, "b": {"c": 1.5}}\n{"a": "x", "b": {"c": 999.0}}\n{"a": "y", "b": {"c": NaN}}\n'
    )
    types, rows = read(content, data_format="json", required=("B.C",), markers=("999",))
    assert types == {"a": "int64", "b": "struct<c: double>"}
    assert rows == [(1, {"c": 1.5}), (None, {"c": 999.0}), (None, {"c": ANY})]


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
