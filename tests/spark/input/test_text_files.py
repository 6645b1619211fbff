"""Text files on Spark: the records, types and errors of the engine without Java."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark import text_files
from anonspark.errors import AnonsparkError

if TYPE_CHECKING:
    from anonspark.engine.spark.engine import SparkEngine

CSV = {"header": "true", "inferSchema": "true"}
HEAD = "name,zip,age,day\n"
ROWS = [f"N{place},{place:05d},{place % 90},2026-01-{place % 28 + 1:02d}\n" for place in range(99)]


def outcome(engine: Engine, path: Path, data_format: str, options: Mapping[str, str]) -> Any:
    """Return the types and records of a table, or the error."""
    wanted = WantedColumns({"age": True, "zip": True}, markers=("?",), required=("age",))
    try:
        with engine.reading((str(path),)):
            table = engine.open_table(
                [str(path)],
                data_format,
                options,
                key="input.path",
                section="input",
                selection=wanted,
            )
            rows = table.collect()
            chosen = table.select({"b": "zip", "a": "age"}).collect()
    except AnonsparkError as error:
        return type(error).__name__, str(error)
    assert chosen.column_names == ["b", "a"]
    assert sorted(map(str, chosen["b"])) == sorted(map(str, rows["zip"]))
    types = [(one.name, str(one.type)) for one in table.schema]
    return types, sorted(map(repr, rows.to_pylist()))


@pytest.fixture(params=["whole", "lines"])
def spark_engine(
    request: pytest.FixtureRequest, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> SparkEngine:
    if request.param == "lines":
        monkeypatch.setattr(text_files, "largest_whole_file", lambda *_: 300)
    return engine


def test_tables(spark_engine: SparkEngine, tmp_path: Path) -> None:
    """Folders, compressed files, UTF-16, small and large ones are one table."""
    content = HEAD + "".join(ROWS)
    (tmp_path / "csv" / "town=K%C3%B6ln").mkdir(parents=True)
    (tmp_path / "csv" / "town=01").mkdir()
    (tmp_path / "csv" / "town=01" / "a.csv").write_text(content + "\n \n" + HEAD + "Z,1,?,x\n")
    (tmp_path / "csv" / "town=01" / "excel.csv").write_text('"sep=,"\n' + content)
    (tmp_path / "csv" / "town=01" / "_hidden.csv").write_text("x\n")
    (tmp_path / "csv" / "town=01" / "small.csv").write_text(HEAD + ROWS[0])
    (tmp_path / "csv" / "town=K%C3%B6ln" / "b.csv").write_bytes(content.encode("utf-16"))
    (tmp_path / "csv" / "town=K%C3%B6ln" / "c.csv.gz").write_bytes(gzip.compress(content.encode()))
    found = outcome(spark_engine, tmp_path / "csv", "csv", CSV)
    assert found == outcome(LocalEngine(), tmp_path / "csv", "csv", CSV)
    types, rows = found
    assert len(rows) == 4 * 99 + 2
    assert dict(types) == {
        **{"name": "string", "zip": "string", "age": "int32", "day": "date32[day]"},
        "town": "string",
    }
    assert any("'town': 'Köln'" in row for row in rows)
    (tmp_path / "a.json").write_text(
        "".join(f'{{"zip": "{place:05d}", "age": {place}, "at": {{"x": [{place}]}}}}\n'
                for place in range(99))
    )  # fmt: skip
    found = outcome(spark_engine, tmp_path / "a.json", "json", {})
    assert found == outcome(LocalEngine(), tmp_path / "a.json", "json", {})
    assert "at.x" in dict(found[0])


PLACE = re.compile(r"(a part of )?file:/\S+: line \d+")
BAD: dict[str, tuple[bytes, dict[str, str]]] = {
    "too many": ((HEAD + "".join(ROWS) + "1,2,3,2026-01-01,5\n").encode(), {}),
    "option": (HEAD.encode(), {"mode": "PERMISSIVE"}),
    "two names": (b"age,AGE,zip\n1,2,3\n", {}),
    "quotes": ((HEAD + "".join(ROWS) + 'x"y",1,2,"\n').encode(), {}),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(spark_engine: SparkEngine, tmp_path: Path, name: str) -> None:
    content, options = BAD[name]
    (tmp_path / "a.csv").write_bytes(content)
    found, expected = (
        outcome(one, tmp_path / "a.csv", "csv", CSV | options)
        for one in (spark_engine, LocalEngine())
    )
    # Of lines that come without their file nobody knows the number.
    assert (found[0], PLACE.sub("", found[1])) == (expected[0], PLACE.sub("", expected[1]))
    assert found[0].endswith("Error")


def test_headers_that_differ(spark_engine: SparkEngine, tmp_path: Path) -> None:
    for name, header in (("a", HEAD), ("b", HEAD.upper()), ("c", "age,name,zip,day\n")):
        (tmp_path / f"{name}.csv").write_text(header + "".join(ROWS))
    kind, told = outcome(spark_engine, tmp_path, "csv", CSV)
    assert (kind, "different headers" in told) == ("DataError", True)
    (tmp_path / "c.csv").unlink()
    assert len(outcome(spark_engine, tmp_path, "csv", CSV)[1]) == 198


def test_bytes_that_do_not_decode(spark_engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        (HEAD + "".join(ROWS) + "M\xe4x,1,2,2026-01-01\n").encode("latin-1")
    )
    kind, told = outcome(spark_engine, tmp_path / "a.csv", "csv", CSV)
    assert (kind, "is not written in UTF-8" in told, "M" in told.split("line")[1]) == (
        "DataError",
        True,
        False,
    )
    _, rows = outcome(spark_engine, tmp_path / "a.csv", "csv", CSV | {"encoding": "windows-1252"})
    assert any("'name': 'Mäx'" in row for row in rows)


def test_folders_of_typed_files(engine: SparkEngine, tmp_path: Path) -> None:
    """Names of folders are decoded as UTF-8 and typed by our grammar, with every format."""
    rows = pa.table({"zip": ["1", "2"], "age": [1, 2]})
    for folder in ("town=K%C3%B6ln/code=00501/year=2024", "town=A%2Fb/code=10001/year=2025"):
        (tmp_path / folder).mkdir(parents=True)
        pa.parquet.write_table(rows, tmp_path / folder / "a.parquet")
    found = outcome(engine, tmp_path, "parquet", {})
    assert found == outcome(LocalEngine(), tmp_path, "parquet", {})
    types = dict(found[0])
    assert (types["town"], types["code"], types["year"]) == ("string", "string", "int32")
    assert "'town': 'Köln', 'code': '00501', 'year': 2024" in "".join(found[1])


def test_records_in_folders_of_missing_values(spark_engine: SparkEngine, tmp_path: Path) -> None:
    """A record that is left out for its folder decides no type, nor has to be of it."""
    for age, code in (("age=%3F", "x"), ("age=1", "123")):
        (tmp_path / age).mkdir()
        (tmp_path / age / "a.csv").write_text("name,zip\n" + f"n,{code}\n" * 99)
    found = outcome(spark_engine, tmp_path, "csv", CSV)
    assert found == outcome(LocalEngine(), tmp_path, "csv", CSV)
    assert dict(found[0])["zip"] == "int32"
