"""Foreign files as Parquet: what numbers count, labels, kinds of cells, what is refused."""

from __future__ import annotations

import gzip
import json
import random
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from commands import Cli
from workbooks import write_workbook

import anonspark
from anonspark.conversion import convert, reading
from anonspark.conversion.reading import Options, meaning_of
from anonspark.errors import AnonsparkError, ConfigurationError, DataError, PublishingError

# Programs that write tests' workbooks lay no styles into them.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SEX = {2: "female", 1: "male", 9: "no answer"}
PEOPLE = pd.DataFrame(
    {
        "AGE": [20.0, 31.0, None, 99.0],
        "PAY": [1.5, 2.0, 0.1, None],
        "SEX": [1.0, 2.0, 9.0, 1.0],
        "EDUC": [1.0, 2.0, 3.0, 1.0],
        "TOWN": ["a", "", "c", "Wien"],
        "BORN": [date(2000, 1, 2), None, date(1990, 1, 1), date(1500, 1, 1)],
        "SEEN": [datetime(2020, 1, 2, 3, 4, 5), None, datetime(2020, 1, 2), datetime(2020, 1, 3)],
    }
)
LABELS = {"SEX": SEX, "AGE": {99: "no answer"}, "EDUC": {1: "low", 2: "low", 3: "high"}}
WRITERS: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "p.sav": (
        pyreadstat.write_sav,
        {"variable_value_labels": LABELS, "missing_ranges": {"SEX": [9], "AGE": [99]}},
    ),
    "p.zsav": (pyreadstat.write_sav, {"compress": True, "variable_value_labels": LABELS}),
    "p.dta": (pyreadstat.write_dta, {"variable_value_labels": LABELS}),
    "p.por": (pyreadstat.write_por, {}),
    "p.xpt": (pyreadstat.write_xport, {}),
}


def table_of(*files: Path, **options: Any) -> pa.Table:
    """Convert files in this process, as the process of the reader does."""
    target = files[0].with_suffix(".parquet")
    request = reading.Request(list(map(str, files)), str(target), 1 << 20, Options(**options))
    reading._convert(request)
    return pq.read_table(target)


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_statistics(tmp_path: Path, name: str) -> None:
    write, options = WRITERS[name]
    write(PEOPLE, str(tmp_path / name), column_labels=["Age in years", *[None] * 6], **options)
    table = table_of(tmp_path / name)
    has_labels = "variable_value_labels" in options
    assert [str(field.type) for field in table.schema if field.name != "SEX"] == [
        *["double"] * 3,
        "string",
        "date32[day]",
        "timestamp[us]",
    ]
    assert table.schema.field("AGE").metadata[b"label"] == b"Age in years"
    is_missing = "missing_ranges" in options
    assert table["AGE"].to_pylist() == [20, 31, None, None if is_missing else 99]
    assert table["PAY"].to_pylist() == [1.5, 2.0, 0.1, None]
    assert table["TOWN"].to_pylist() == ["a", None, "c", "Wien"]
    assert table["BORN"].to_pylist() == PEOPLE["BORN"].to_list()
    assert table["SEEN"].to_pylist()[0] == datetime(2020, 1, 2, 3, 4, 5)
    # Two codes of one label stay two.
    assert table["EDUC"].to_pylist() == [1, 2, 3, 1]
    if has_labels:
        assert table["SEX"].to_pylist() == [
            "male",
            "female",
            None if is_missing else SEX[9],
            "male",
        ]
        assert table["SEX"].type.ordered
        texts = ["male", "female"] if is_missing else ["male", "female", "no answer"]
        assert table["SEX"].chunk(0).dictionary.to_pylist() == texts


DAY, MOMENT = date(1965, 10, 1), datetime(1965, 10, 1, 6, 30)
SINCE_1960, SINCE_1582 = (DAY - date(1960, 1, 1)).days, (DAY - date(1582, 10, 14)).days
FORMATS: list[tuple[str, str, float, object]] = [
    ("dta", "%td", SINCE_1960, DAY),
    ("dta", "%-tdNN/DD/CCYY", SINCE_1960, DAY),
    ("dta", "%d", SINCE_1960, DAY),
    ("dta", "%tc", 1000 * (SINCE_1960 * 86400 + 23400), MOMENT),
    ("dta", "%tcHH:MM", 1000 * (SINCE_1960 * 86400 + 23400), MOMENT),
    ("dta", "%tm", 69, DAY),
    ("dta", "%tq", 23, DAY),
    ("dta", "%th", 11, date(1965, 7, 1)),
    ("dta", "%tw", 5 * 52 + 2, date(1965, 1, 15)),
    ("dta", "%tm", -1, date(1959, 12, 1)),
    ("dta", "%ty", 1965, 1965),
    ("dta", "%8.2fc", 1.5, 1.5),
    ("dta", "%tC", 1, "the display format %tC"),
    ("dta", "%tbnyse", 1, "the display format %tbnyse"),
    ("dta", "%td", 1.5, "'x', row 1: expected day"),
    ("dta", "%tm", 1.5, "'x', row 1: expected day"),
    ("dta", "%td", 1e7, "'x', row 1: expected day"),
    ("dta", "%tc", 1e17, "'x', row 1: expected moment"),
    ("sav", "DATE11", 86400 * SINCE_1582, DAY),
    ("sav", "MOYR8", 86400 * SINCE_1582, DAY),
    ("sav", "QYR8", 86400 * SINCE_1582, DAY),
    ("sav", "DATETIME20", 86400 * SINCE_1582 + 23400, MOMENT),
    ("sav", "DTIME10", 3600 * 102, 3600 * 102),
    ("sav", "TIME8", 3600 * 30, 3600 * 30),
    ("sav", "F8.2", 1.5, 1.5),
    ("sav", "DOLLAR8.2", 1.5, 1.5),
    ("sav", "WKDAY9", 3, "the display format WKDAY9"),
    ("sav", "DATE11", 86400 * SINCE_1582 + 23400, "'x', row 1: expected day"),
    ("xpt", "DATE9.", SINCE_1960, DAY),
    ("xpt", "MONYY7.", SINCE_1960, DAY),
    ("xpt", "YYQ6.", SINCE_1960, DAY),
    ("xpt", "E8601DA10.", SINCE_1960, DAY),
    ("xpt", "DTDATE9.", SINCE_1960 * 86400 + 23400, MOMENT),
    ("xpt", "DATETIME19.2", SINCE_1960 * 86400 + 23400, MOMENT),
    ("xpt", "TIME8.", 3600 * 30, 3600 * 30),
    ("xpt", "SEXF.", 2, 2),
    ("xpt", "TOD8.", 3600, "the display format TOD8"),
    ("xpt", "DATE9.", 1e7, "'x', row 1: expected day"),
]


@pytest.mark.parametrize(("end", "display", "number", "expected"), FORMATS)
def test_display_formats(
    tmp_path: Path, end: str, display: str, number: float, expected: object
) -> None:
    path = tmp_path / f"p.{end}"
    write = {
        "dta": pyreadstat.write_dta,
        "sav": pyreadstat.write_sav,
        "xpt": pyreadstat.write_xport,
    }[end]
    write(pd.DataFrame({"x": [float(number)]}), str(path), variable_format={"x": display})
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected) as caught:
            table_of(path)
        assert "--type x=number" in str(caught.value)
        assert table_of(path, types={"x": "number"})["x"].to_pylist() == [number]
        return
    table = table_of(path)
    assert table["x"].to_pylist() == [expected]
    is_duration = "TIME" in display and "DATE" not in display
    assert table.schema.field("x").metadata.get(b"unit") == (b"seconds" if is_duration else None)


@pytest.mark.parametrize(
    "display",
    ["YYMMDDN8", "WEEKDATE29", "JULIAN7", "DOWNAME", "NLDATE20", "WORDDATX", "B8601DA8", "YEAR4"],
)
def test_days_of_sas(display: str) -> None:
    meaning = meaning_of("sas", display)
    assert meaning is not None
    assert meaning[0] == "day"
    assert meaning_of("sas", f"{display[0]}XDAT9") is None


def test_integers_of_stata_stay_integers(tmp_path: Path) -> None:
    people = pd.DataFrame({"n": [1, 2, 3], "x": [1.5, 2, 3]})
    people.astype({"x": "float32"}).to_stata(tmp_path / "p.dta", write_index=False)
    table = table_of(tmp_path / "p.dta")
    assert list(map(str, table.schema.types)) == ["int64", "float"]
    assert table["n"].to_pylist() == [1, 2, 3]


def test_letters_of_stata_for_missing_values(tmp_path: Path) -> None:
    people = pd.DataFrame({"SEX": pd.array([1, 2, "b", 1], dtype=object)})
    labels = {"SEX": {1: "male", 2: "female", "b": "refused"}}
    path = tmp_path / "p.dta"
    pyreadstat.write_dta(
        people, str(path), variable_value_labels=labels, missing_user_values={"SEX": ["b"]}
    )
    column = table_of(path)["SEX"]
    assert column.to_pylist() == ["male", "female", None, "male"]
    assert column.chunk(0).dictionary.to_pylist() == ["male", "female"]


def test_no_record_decides_the_labels_of_others(tmp_path: Path) -> None:
    for name, codes in (("a", [1.0, 2.0]), ("b", [1.0, 2.0, 1.5, 7.0])):
        people = pd.DataFrame({"educ": codes})
        labels = {"educ": {1: "low", 2: "high"}}
        pyreadstat.write_sav(people, str(tmp_path / f"{name}.sav"), variable_value_labels=labels)
    assert table_of(tmp_path / "a.sav")["educ"].to_pylist() == ["low", "high"]
    column = table_of(tmp_path / "b.sav")["educ"]
    assert column.to_pylist() == ["low", "high", "1.5", "7"]
    assert column.chunk(0).dictionary.to_pylist() == ["low", "1.5", "high", "7"]
    assert table_of(tmp_path / "b.sav", types={"educ": "number"})["educ"].to_pylist()[3] == 7
    assert table_of(tmp_path / "b.sav", types={"educ": "text"})["educ"].to_pylist()[2:] == [
        "1.5",
        "7",
    ]


def test_labels_of_sas_are_in_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.sas7bdat"
    path.write_bytes(bytes(12) + b"\xc2\xea\x81\x60")
    about = SimpleNamespace(
        variable_value_labels={},
        variable_to_label={"sex": "SEXF", "age": "BEST"},
        readstat_variable_types={"sex": "double", "age": "double"},
        original_variable_types={"sex": "SEXF", "age": "BEST12"},
        missing_ranges={},
        column_names_to_labels={},
    )
    formats = SimpleNamespace(value_labels={"SEXF": {1.0: "male", 2.0: "female"}})
    columns = {"sex": [2.0, 1.0], "age": [20.0, 30.0]}
    monkeypatch.setattr(pyreadstat, "read_sas7bdat", lambda *_, **__: (columns, about))
    monkeypatch.setattr(pyreadstat, "read_sas7bcat", lambda path: (path, formats))
    table = table_of(path, catalog="formats.sas7bcat")
    assert table.to_pydict() == {"sex": ["female", "male"], "age": [20, 30]}
    assert table["sex"].chunk(0).dictionary.to_pylist() == ["male", "female"]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    first, second = tmp_path / "a.dta", tmp_path / "b.dta"
    pyreadstat.write_dta(pd.DataFrame({"AGE": [20, 21], "TOWN": ["a", "b"]}), str(first))
    pyreadstat.write_dta(pd.DataFrame({"TOWN": ["c"], "AGE": [1.5]}), str(second))
    table = table_of(first, second)
    assert table.to_pydict() == {"AGE": [20, 21, 1.5], "TOWN": ["a", "b", "c"]}
    for people, labels, problem in (
        (pd.DataFrame({"AGE": [1.5]}), {}, "b.dta: only one of them has the column 'TOWN'"),
        (pd.DataFrame({"AGE": ["x"], "TOWN": ["x"]}), {}, "'AGE' has other types or value"),
        (
            pd.DataFrame({"AGE": [1.5], "TOWN": ["x"]}),
            {"AGE": {1: "a", 2: "b"}},
            "'AGE' has other types or value labels",
        ),
    ):
        pyreadstat.write_dta(people, str(second), variable_value_labels=labels)
        with pytest.raises(DataError, match=problem):
            table_of(first, second)


def test_a_compressed_file_is_unpacked(tmp_path: Path) -> None:
    pyreadstat.write_sav(PEOPLE, str(tmp_path / "p.sav"))
    (tmp_path / "q.sav.gz").write_bytes(gzip.compress((tmp_path / "p.sav").read_bytes()))
    assert len(table_of(tmp_path / "q.sav.gz")) == 4


ROWS: list[list[Any]] = [
    ["A table of people", None, None, None, None, None, None],
    [],
    ["age", "sex", "born", "code", "seen", "member", "share"],
    *(
        [
            None if n == 2 else 20 + n,
            "fm"[n % 2],
            date(1990, 1, n + 1),
            f"00{n % 3}",
            datetime(2020, 1, 1, n, 30),
            n % 2 == 0,
            "" if n == 3 else n / 2,
        ]
        for n in range(9)
    ),
    [None] * 7,
]
SIMPLE: list[list[Any]] = [["n", "dx"], *([n, "ab"[n % 2]] for n in range(30))]


def edited(path: Path, part: str, old: str, new: str) -> Path:
    """Replace a text in a part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert old in parts[part]
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_a_sheet_of_a_workbook(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", {"people": ROWS, "nothing": []})
    table = table_of(path)
    assert dict(zip(table.schema.names, map(str, table.schema.types), strict=True)) == {
        "age": "double",
        "sex": "string",
        "born": "date32[day]",
        "code": "string",
        "seen": "timestamp[us]",
        "member": "bool",
        "share": "double",
    }
    assert table["age"].to_pylist() == [20, 21, None, *range(23, 29)]
    assert table["born"].to_pylist()[:2] == [date(1990, 1, 1), date(1990, 1, 2)]
    assert table["share"].to_pylist() == [0, 0.5, 1, None, 2, 2.5, 3, 3.5, 4]
    assert table["code"].to_pylist() == ["000", "001", "002"] * 3
    assert table["seen"].to_pylist()[1] == datetime(2020, 1, 1, 1, 30)
    assert len(table_of(path, sheet="people", header_row=3)) == 9
    write_workbook(path, {"a": SIMPLE[1:]})
    assert table_of(path, header_row=0).schema.names == ["_c0", "_c1"]


@pytest.mark.parametrize(
    ("sheets", "options", "problem"),
    [
        ({"a": ROWS, "b": ROWS}, {}, "found the sheets 'a', 'b'. .*--sheet NAME"),
        ({"a": ROWS, "b": ROWS}, {"sheet": "c"}, "found the sheets 'a', 'b'"),
        ({"a": []}, {}, "without a value only"),
        ({"a": []}, {"sheet": "a"}, "no cell of the sheet has a value"),
        ({"a": [["x", "y"], ["z", "y"]]}, {}, "nothing shows which row .*--header-row 1"),
        ({"a": [["x", "y"], [1, 2]]}, {"header_row": 9}, "row 9 has no cell"),
        ({"a": [["x", "X"], [1, 2]]}, {"header_row": 1}, "only in the case of letters"),
        ({"a": SIMPLE}, {"types": {"m": "text"}}, "has no column 'm'"),
        ({"a": [*SIMPLE, ["?", "a"]]}, {}, r"'n' has .*: number \(row 2\), text \(row 32\)"),
        ({"a": [*SIMPLE, [True, "a"]]}, {}, r"'n' has .*: boolean \(row 32\), number"),
        ({"a": [*SIMPLE, [date(2020, 1, 1), "a"]]}, {}, r"'n' has .*: day \(row 32\), number"),
        ({"a": [*SIMPLE, [12345678901234567, "a"]]}, {}, "'n', row 32: expected number.* 2\\^53"),
        ({"a": [*SIMPLE, ["x", "a"]]}, {"types": {"n": "number"}}, "'n', row 32: expected number"),
    ],
)
def test_workbooks_that_are_refused(
    tmp_path: Path, sheets: dict[str, list[list[Any]]], options: dict[str, Any], problem: str
) -> None:
    path = write_workbook(tmp_path / "p.xlsx", sheets)
    with pytest.raises(AnonsparkError, match=problem) as caught:
        table_of(path, **options)
    assert "123456" not in str(caught.value)


SHEET = "xl/worksheets/s1.xml"
THIRD = '<c r="A4"><v>2</v></c>'
MERGED = '</sheetData><mergeCells><mergeCell ref="B4:B5"/></mergeCells>'
FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'


def test_hidden_rows_are_a_question(tmp_path: Path) -> None:
    for attribute in ('hidden="1"', 'ht="0"'):
        path = write_workbook(tmp_path / "p.xlsx", {"a": SIMPLE})
        edited(path, SHEET, '<row r="5">', f'<row r="5" {attribute}>')
        with pytest.raises(ConfigurationError, match=r"1 of 30 records .* hidden, by a filter"):
            table_of(path)
        assert len(table_of(path, hidden="keep")) == 30
        assert table_of(path, hidden="drop")["n"].to_pylist() == [0, 1, 2, *range(4, 30)]


def test_hidden_sheets_are_noted(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", {"a": SIMPLE, "b": ROWS})
    edited(path, "xl/workbook.xml", 'name="b"', 'name="b" state="hidden"')
    found = anonspark.convert(path, tmp_path / "p.parquet")
    assert found.rows == 30
    assert "'b' (hidden), only the visible one" in found.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("</sheetData>", MERGED, "'dx' has merged cells"),
        (THIRD, '<c r="A4"><f>A3+1</f></c>', r"'n' has .*: formula without a result \(row 4\)"),
        (THIRD, '<c r="A4" t="d"><v>2020-01-01</v></c>', r"'n' has .*text of a date \(row 4\)"),
        (THIRD, '<c r="A4" s="1"><v>60</v></c>', r"'n' has .*day \(row 4\)"),
        ("</sheetData>", FAR, "far from the others"),
    ],
)
def test_cells_that_are_not_as_they_look(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = edited(write_workbook(tmp_path / "p.xlsx", {"a": SIMPLE}), SHEET, old, new)
    with pytest.raises(DataError, match=problem):
        table_of(path)


@pytest.mark.parametrize(
    ("display", "number", "expected"),
    [
        ("[h]:mm", 1.25, 108000),
        ("h:mm AM/PM", 0.25, 21600),
        ("h:mm", 1.25, "expected seconds"),
        ("mmm yy", 36526, date(2000, 1, 1)),
        ("YYYY-MM-DD HH:MM:SS", 36526.25, datetime(2000, 1, 1, 6)),
        ("yyyy-mm-dd", 36526.25, "expected day"),
        ("yyyy-mm-dd", 59, date(1900, 2, 28)),
        ("yyyy-mm-dd", 60, "expected day"),
        ("yyyy-mm-dd", 0, "expected day"),
        ("yyyy-mm-dd", 3e6, "expected day"),
        ('#,##0 "days"', 36526, 36526),
        ("[Red]0.00", 36526, 36526),
    ],
)
def test_numbers_by_the_format_of_the_cell(
    tmp_path: Path, display: str, number: float, expected: object
) -> None:
    path = write_workbook(tmp_path / "p.xlsx", {"a": [["n", "dx"], [7.5, "a"]]})
    escaped = display.replace('"', "&quot;")
    formats = f'<numFmts count="1"><numFmt numFmtId="170" formatCode="{escaped}"/></numFmts>'
    edited(path, "xl/styles.xml", "<cellXfs", f"{formats}<cellXfs")
    edited(path, "xl/styles.xml", '<xf numFmtId="22"/>', '<xf numFmtId="170"/>')
    edited(path, SHEET, '<c r="A2"><v>7.5', f'<c r="A2" s="2"><v>{number}')
    if isinstance(expected, str):
        with pytest.raises(DataError, match=f"'n', row 2: {expected}"):
            table_of(path, header_row=1)
    else:
        assert table_of(path, header_row=1)["n"].to_pylist() == [expected]


def test_days_since_1904(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", {"a": [["born"], *[[date(2000, 1, 1)]] * 9]})
    edited(path, "xl/workbook.xml", "<sheets>", '<workbookPr date1904="1"/><sheets>')
    assert table_of(path)["born"].to_pylist()[0] == date(2004, 1, 2)


def test_a_process_that_ends_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"age": [float(i % 50) for i in range(60)]})
    path, out = tmp_path / "a.sav", tmp_path / "a.parquet"
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"age": dict(enumerate("abc"))})
    content = bytearray(path.read_bytes())
    content[182] = 255
    (tmp_path / "b.sav").write_bytes(content)
    with pytest.raises(DataError, match=r"b\.sav: the file cannot be read"):
        anonspark.convert([path, tmp_path / "b.sav"], out)
    monkeypatch.setattr(convert, "_SECONDS", 0.01)
    with pytest.raises(DataError, match=r"a\.sav: .*no answer after"):
        anonspark.convert(path, out)
    monkeypatch.undo()
    monkeypatch.setattr(convert, "_MEMORY", 1)
    with pytest.raises(DataError, match=r"a\.sav: the file cannot be read"):
        anonspark.convert(path, out)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.sav", "b.sav"]


def test_changed_bytes_are_never_a_bug(tmp_path: Path) -> None:
    draw = random.Random(5)  # noqa: S311
    for name, (write, options) in {"p.xlsx": (None, {}), **WRITERS}.items():
        path = tmp_path / name
        if write is None:
            write_workbook(path, {"people": ROWS})
        else:
            write(PEOPLE, str(path), **options)
        content = bytearray(path.read_bytes())
        for _ in range(2):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
        with suppress(ConfigurationError, DataError):
            anonspark.convert(path, tmp_path / "o.parquet", overwrite=True)


@pytest.mark.parametrize("name", ["p.dta", "p.sav", "p.xlsx"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Ada Lovelace" * 50)
    with pytest.raises(DataError, match="the file cannot be read") as caught:
        anonspark.convert(tmp_path / name, tmp_path / "o.parquet")
    assert "Ada" not in str(caught.value)


@pytest.mark.parametrize("module", ["pyreadstat", "openpyxl.reader.excel"])
def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"PK\x03\x04" if "openpyxl" in module else b"x")
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(reading.resource, "setrlimit", lambda *_: None)
    answer = reading._answer(reading.Request([str(path)], "", 1 << 20, Options()))
    assert answer["error"] == "ConfigurationError"
    assert "Run: pip install 'anonspark[files]'" in answer["problems"][0]


def test_the_command(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "in").mkdir()
    path, out = tmp_path / "in" / "p.dta", tmp_path / "p.parquet"
    pyreadstat.write_dta(PEOPLE, str(path), variable_value_labels=LABELS)
    (tmp_path / "~$p.xlsx").write_bytes(b"\x04user")
    done = cli.ends(0, "convert", path, tmp_path / "~$p.xlsx", out)
    assert "4 records, 7 columns" in done.out
    assert "3 ordered labels" in done.out
    assert out.stat().st_mode & 0o777 == 0o600
    for arguments, code, problem in (
        ([path, out], 2, "something is at"),
        ([path, path], 2, "OUT.parquet"),
        ([tmp_path / "~$p.xlsx", tmp_path / "q.parquet"], 3, "the lock of a workbook that is open"),
        ([tmp_path / "no.sav", tmp_path / "q.parquet"], 3, "is not there"),
        ([path, tmp_path / "q.parquet", "--type", "AGE=day"], 2, "--type: expected"),
        ([path, tmp_path / "no" / "q.parquet"], 5, "OUT: the system refused"),
    ):
        cli.ends(code, "convert", *arguments, "--no-progress", says=problem)
    done = cli("convert", tmp_path / "in", out, "--overwrite", "--no-progress", "--json")
    assert json.loads(done.out)["rows"] == 4
    assert cli("convert", path, out, "--overwrite", "--quiet").out == ""


def test_a_full_disk_is_no_damaged_file(tmp_path: Path) -> None:
    pyreadstat.write_dta(PEOPLE, str(tmp_path / "p.dta"))
    with pytest.raises(PublishingError, match="OUT: "):
        anonspark.convert(tmp_path / "p.dta", "/dev/full/p.parquet")
