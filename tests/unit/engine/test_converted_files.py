"""Files of statistics packages and workbooks: types, labels, missing values, what is refused."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from workbooks import write_workbook

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import WantedColumns, order_of
from anonspark.engine.recognition import recognize
from anonspark.errors import AnonsparkError, ConfigurationError, DataError

ENGINE = LocalEngine()
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


def opened(path: Path, wanted: WantedColumns | None = None, **options: str) -> Table:
    kind = recognize(ENGINE.files, [str(path)]).data_format
    return ENGINE.open_table([str(path)], kind, options, key="input.path", wanted=wanted)


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_statistics(tmp_path: Path, name: str) -> None:
    write, options = WRITERS[name]
    write(PEOPLE, str(tmp_path / name), **options)
    table = opened(tmp_path / name)
    rows = table.collect()
    assert dict(zip(table.schema.names, map(str, table.schema.types), strict=True)) == {
        "AGE": "int64",
        "PAY": "double",
        "SEX": "string" if "variable_value_labels" in options else "int64",
        "EDUC": "int64",
        "TOWN": "string",
        "BORN": "date32[day]",
        "SEEN": "timestamp[us]",
    }
    is_missing = "missing_ranges" in options
    assert rows["AGE"].to_pylist() == [20, 31, None, None if is_missing else 99]
    assert rows["PAY"].to_pylist() == [1.5, 2.0, 0.1, None]
    assert rows["TOWN"].to_pylist() == ["a", None, "c", "Wien"]
    assert rows["BORN"].to_pylist() == PEOPLE["BORN"].to_list()
    assert rows["SEEN"].to_pylist()[0] == datetime(2020, 1, 2, 3, 4, 5)
    # Two codes of one label stay two.
    assert rows["EDUC"].to_pylist() == [1, 2, 3, 1]
    if "variable_value_labels" in options:
        third = None if is_missing else "no answer"
        assert rows["SEX"].to_pylist() == ["male", "female", third, "male"]
        assert order_of(table.schema.field("SEX")) == ("male", "female", "no answer")
        assert order_of(table.schema.field("EDUC")) == ()


def test_letters_of_stata_for_missing_values(tmp_path: Path) -> None:
    people = pd.DataFrame({"SEX": pd.array([1, 2, "b", 1], dtype=object)})
    labels = {"SEX": {1: "male", 2: "female", "b": "refused"}}
    path = tmp_path / "p.dta"
    pyreadstat.write_dta(
        people, str(path), variable_value_labels=labels, missing_user_values={"SEX": ["b"]}
    )
    table = opened(path)
    assert table.collect()["SEX"].to_pylist() == ["male", "female", None, "male"]
    assert order_of(table.schema.field("SEX")) == ("male", "female")


def test_labels_of_sas_are_in_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, catalog = tmp_path / "p.sas7bdat", tmp_path / "formats.sas7bcat"
    path.write_bytes(bytes(12) + b"\xc2\xea\x81\x60")
    with pytest.raises(DataError, match="catalog: nothing is at"):
        opened(path, catalog=str(catalog))
    catalog.write_bytes(b"labels")
    about = SimpleNamespace(
        variable_value_labels={},
        variable_to_label={"sex": "SEXF", "age": "BEST"},
        readstat_variable_types={"sex": "double", "age": "double"},
    )
    formats = SimpleNamespace(value_labels={"SEXF": {1.0: "male", 2.0: "female"}})
    monkeypatch.setattr(
        pyreadstat,
        "read_sas7bdat",
        lambda *_, **__: ({"sex": [2.0, 1.0], "age": [20.0, 30.0]}, about),
    )
    monkeypatch.setattr(pyreadstat, "read_sas7bcat", lambda content: (content.read(), formats))
    table = opened(path, catalog=str(catalog))
    assert table.collect().to_pydict() == {"sex": ["female", "male"], "age": [20, 30]}
    assert order_of(table.schema.field("sex")) == ("male", "female")


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for year, factor in ((2020, 1.0), (2021, 1.5)):
        folder = tmp_path / "all" / f"year={year}"
        folder.mkdir(parents=True)
        people = PEOPLE[["AGE", "TOWN"]].assign(AGE=PEOPLE["AGE"] * factor)
        pyreadstat.write_sav(people, str(folder / "p.sav"))
    rows = opened(tmp_path / "all").collect()
    assert rows["AGE"].type == pa.float64()
    assert sorted(set(rows["year"].to_pylist())) == [2020, 2021]
    pyreadstat.write_sav(PEOPLE[["AGE"]], str(tmp_path / "all" / "year=2020" / "q.sav"))
    with pytest.raises(DataError, match="files with different columns"):
        opened(tmp_path / "all")
    pyreadstat.write_sav(
        PEOPLE[["TOWN"]].rename(columns={"TOWN": "AGE"}).assign(TOWN="x"),
        str(tmp_path / "all" / "year=2020" / "q.sav"),
    )
    with pytest.raises(DataError, match="a column is text in one file"):
        opened(tmp_path / "all")


def test_a_compressed_file_is_unpacked(tmp_path: Path) -> None:
    pyreadstat.write_sav(PEOPLE, str(tmp_path / "p.sav"))
    content = (tmp_path / "p.sav").read_bytes()
    (tmp_path / "q.sav.gz").write_bytes(gzip.compress(content))
    (tmp_path / "named").write_bytes(content)
    for name in ("q.sav.gz", "named"):
        assert opened(tmp_path / name).count() == 4


ROWS: list[list[Any]] = [
    ["A table of people", None, None, None, None, None, None, None],
    [],
    ["age", "sex", "born", "code", "seen", "member", "share", "note"],
    *(
        [
            None if n == 2 else 20 + n,
            "fm"[n % 2],
            date(1990, 1, n + 1),
            f"00{n % 3}",
            datetime(2020, 1, 1, n, 30),
            n % 2 == 0,
            "" if n == 3 else "?" if n == 4 else n / 2,
            17 if n == 5 else "x",
        ]
        for n in range(9)
    ),
    [None, None, None, None, None, None, None, None],
]


def test_a_sheet_of_a_workbook(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", {"people": ROWS, "nothing": []})
    markers = WantedColumns(dict.fromkeys(ROWS[2], True), markers=("", "?"))
    table = opened(path, markers)
    rows = table.collect()
    assert dict(zip(table.schema.names, map(str, table.schema.types), strict=True)) == {
        "age": "int64",
        "sex": "string",
        "born": "date32[day]",
        "code": "string",
        "seen": "timestamp[us]",
        "member": "bool",
        "share": "double",
        "note": "string",
    }
    assert rows["age"].to_pylist() == [20, 21, None, *range(23, 29)]
    assert rows["share"].to_pylist() == [0, 0.5, 1, None, None, 2.5, 3, 3.5, 4]
    assert rows["code"].to_pylist() == ["000", "001", "002"] * 3
    assert rows["note"].to_pylist()[4:6] == ["x", "17"]
    assert rows["seen"].to_pylist()[1] == datetime(2020, 1, 1, 1, 30)
    assert opened(path, sheet="people", headerRow="3").count() == 9
    assert opened(path, HEADERROW="0").schema.names[0] == "_c0"


@pytest.mark.parametrize(
    ("sheets", "options", "said"),
    [
        ({"a": ROWS, "b": ROWS}, {}, "found several sheets: 'a', 'b'. .*input.options.sheet: NAME"),
        ({"a": ROWS, "b": ROWS}, {"sheet": "c"}, "found no such sheet. It has 'a', 'b'"),
        ({"a": []}, {}, "no sheet of the workbook has a cell"),
        ({"a": [["x", "y"], ["z", "y"]]}, {}, "nothing shows which row .*options.headerRow: 1"),
        ({"a": [["x", "y"], [1, 2]]}, {"headerRow": "9"}, "the sheet has no such row"),
        ({"a": [["x", "x"], [1, 2]]}, {"headerRow": "1"}, "2 columns that Spark cannot"),
        ({"a": ROWS}, {"header": "true"}, "excel has no such option. Expected sheet or headerRow"),
    ],
)
def test_workbooks_that_are_refused(
    tmp_path: Path, sheets: dict[str, list[list[Any]]], options: dict[str, str], said: str
) -> None:
    path = write_workbook(tmp_path / "p.xlsx", sheets)
    with pytest.raises(AnonsparkError, match=said):
        opened(path, **options)


@pytest.mark.parametrize("name", ["p.dta", "p.sav", "p.por", "p.xpt", "p.sas7bdat", "p.xlsx"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Ada Lovelace" * 50)
    with pytest.raises(DataError, match="files cannot be read in this format") as caught:
        opened(tmp_path / name)
    assert "Ada" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "module"), [("p.dta", "pyreadstat"), ("p.xlsx", "python_calamine")]
)
def test_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=r"Run: pip install 'anonspark\[files\]'"):
        opened(tmp_path / name)
