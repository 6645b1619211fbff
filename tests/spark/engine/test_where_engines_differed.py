"""What one engine published or said otherwise than the other, or by the order of its input."""

from __future__ import annotations

import gzip
import struct
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import outcome
from pyarrow import orc

from anonspark import anonymize
from anonspark.engine.local.engine import LocalEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anonspark.engine.spark.engine import SparkEngine

ROWS = 24
WHOLE = list(range(ROWS))
WRITE = {"parquet": pq.write_table, "orc": orc.write_table}


def column(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"q": pa.array(values, kind)})


def of_both(engine: SparkEngine, folder: Path, **document: Any) -> dict[str, Any]:
    """Return what both engines make of the files in a folder, which has to be the same."""
    wanted = {"input": {"path": str(folder / "in")}, "quasi_identifiers": ["q"], **document}
    wanted.setdefault("privacy", {"k": 2})
    own, sparks = (
        outcome(one, wanted, folder / f"out-{type(one).__name__}")
        for one in (LocalEngine(), engine)
    )
    assert own == sparks
    return own


def write(folder: Path, *tables: pa.Table, kind: str = "parquet", hive: bool = False) -> None:
    for place, table in enumerate(tables):
        path = folder / "in" / (f"day={place}" if hive else "") / f"p{place}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITE[kind](table, str(path))


def odd_nan(number: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + number))[0])


ODD = [0.0, -0.0, odd_nan(1), odd_nan(2)] * (ROWS // 4)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_zeros_of_both_signs_are_one_value(engine: SparkEngine, tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {
            "q": [1] * ROWS,
            "single": pa.array(ODD, pa.float32()),
            "list": [[one, 1.5] for one in ODD],
            "struct": [{"a": one, "b": [one]} for one in ODD],
            "x": ODD,
        }
    )
    columns = {"insensitive": table.column_names[1:]}
    outcomes = []
    backwards = table.take(list(range(ROWS - 1, -1, -1)))
    for name, parts in (
        ("whole", [table]),
        ("parts", [table.slice(20), table.slice(0, 7), table.slice(7, 13)]),
        ("backwards", [backwards]),
    ):
        write(tmp_path / name, *parts, kind=kind)
        outcomes.append(of_both(engine, tmp_path / name, **columns))
    assert outcomes == [outcomes[0]] * 3
    (file,) = (tmp_path / "whole" / "out-LocalEngine" / "data").glob("*.parquet")
    assert "-0.0" not in str(pq.read_table(file).to_pylist())


def test_zeros_as_texts_and_numbers_of_texts(engine: SparkEngine, tmp_path: Path) -> None:
    write(tmp_path, pa.table({"q": [0.0, -0.0] * 12, "text": ["-0", "0.0", "-0.0", "0"] * 6}))
    attributes = {"q": {"role": "quasi_identifier", "type": "text"}}
    attributes["text"] = {"role": "quasi_identifier", "type": "number"}
    found = of_both(engine, tmp_path, quasi_identifiers=[], attributes=attributes)
    (file,) = (tmp_path / "out-LocalEngine" / "data").glob("*.parquet")
    assert set(pq.read_table(file)["q"].to_pylist()) == {"0.0"}
    assert "-0" not in str(pq.read_table(file).to_pylist())
    assert "files" in found


@pytest.mark.parametrize("name", ["city", "known"])
def test_bounds_that_csv_cannot_express(engine: SparkEngine, tmp_path: Path, name: str) -> None:
    values = ["a", "b", "c"] * 8 if name == "city" else [True, False] * 12
    write(tmp_path, pa.table({"q": WHOLE, name: values}))
    output = {"style": "bounds", "copies": ["csv"]}
    found = of_both(engine, tmp_path, quasi_identifiers=["q", name], output=output)
    assert found["code"] == 3
    assert f"attributes.{name}: output.style bounds publishes a list" in found["message"]


EMPTY = pa.array([[]] * ROWS, pa.list_(pa.null()))
NO_FIELD = pa.array([{"a": None, "b": 1}] * ROWS, pa.struct([("a", pa.null()), ("b", pa.int64())]))


@pytest.mark.parametrize(
    ("columns", "more", "asked"),
    [
        (EMPTY, [], "x"),
        (EMPTY, [pa.array([[1]] * ROWS, pa.list_(pa.int64()))], "x"),
        (pa.array([[None]] * ROWS, pa.list_(pa.null())), [], "x"),
        (NO_FIELD, [], "x.a"),
        (NO_FIELD, [], "x"),
    ],
    ids=["list", "other list", "nulls", "field", "struct"],
)
def test_nulls_inside_of_others(
    engine: SparkEngine, tmp_path: Path, columns: pa.Array, more: Any, asked: str
) -> None:
    tables = [pa.table({"q": WHOLE, "x": one}) for one in (columns, *more)]
    write(tmp_path, *tables)
    assert "files" in of_both(engine, tmp_path, insensitive=[asked])


@pytest.mark.parametrize(
    ("sql", "values"),
    [("array()", EMPTY), ("named_struct('a', null, 'b', 1L)", NO_FIELD), ("null", pa.nulls(ROWS))],
)
def test_nulls_in_dataframes(spark: SparkSession, sql: str, values: pa.Array) -> None:
    wanted = {"attributes": {"q": "quasi_identifier", "x": "insensitive"}, "privacy": {"k": 2}}
    wanted["execution"] = {"seed": 2**61 + 1}
    fingerprints = []
    frame = spark.range(ROWS).selectExpr("id as q", f"{sql} as x")
    for table in (pa.table({"q": WHOLE, "x": values}), frame):
        with anonymize(table, wanted, progress=False) as release:
            fingerprints.append(release.manifest["fingerprints"]["output"])
    assert len(set(fingerprints)) == 1


@pytest.mark.parametrize("names", [("num", "NUM"), ("num", "num"), ("x.a", "x.a")])
@pytest.mark.parametrize("case", ["true", "false"])
@pytest.mark.usefixtures("settings_come_back")
def test_names_twice_among_others(spark: SparkSession, names: tuple[str, str], case: str) -> None:
    wanted = {"attributes": {"q": "quasi_identifier"}, "privacy": {"k": 2}}
    wanted["execution"] = {"seed": 2**61 + 1}
    spark.conf.set("spark.sql.caseSensitive", case)
    frame = spark.range(ROWS).selectExpr("id", "id", "id").toDF("q", *names)
    table = pa.Table.from_arrays([pa.array(WHOLE)] * 3, names=["q", *names])
    fingerprints = set()
    for one in (table, table.to_pandas(), frame):
        with anonymize(one, wanted, progress=False) as release:
            assert release.to_arrow().num_rows == ROWS
            fingerprints.add(release.manifest["fingerprints"]["output"])
    assert len(fingerprints) == 1


def test_orc_with_points_in_time_of_a_zone(engine: SparkEngine, tmp_path: Path) -> None:
    moments = pa.array(WHOLE, pa.timestamp("us", "UTC"))
    inside = pa.array(
        [{"a": 1, "t": 0}] * ROWS, pa.struct([("a", pa.int64()), ("t", moments.type)])
    )
    table = pa.table({"q": WHOLE, "x": ["b", "c"] * 12, "t": moments, "s": inside})
    write(tmp_path, table, table.select(["x", "q"]), kind="orc", hive=True)
    assert "files" in of_both(engine, tmp_path, insensitive=["x"])
    (tmp_path / "in" / "day=1" / "p1.orc").rename(tmp_path / "p1.orc")
    for name in ("t", "s", "s.t"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in").symlink_to(tmp_path / "in")
        found = of_both(engine, tmp_path / name, insensitive=[name])
        assert "has the type timestamp with local time zone" in found["message"]
        assert "write the file anew as Parquet" in found["message"]


@pytest.mark.parametrize(
    "old", [date(1, 1, 1), date(1582, 10, 10), datetime(1700, 1, 1), datetime(1899, 1, 1)]
)
def test_orc_whose_calendar_nobody_knows(engine: SparkEngine, tmp_path: Path, old: date) -> None:
    new = datetime(2000, 1, 1) if isinstance(old, datetime) else date(2000, 1, 1)
    tables = [
        pa.table({"q": [n + 99 * place for n in WHOLE], "x": [day] * ROWS})
        for place, day in enumerate((new, old, old))
    ]
    write(tmp_path, *tables, kind="orc")
    found = of_both(engine, tmp_path, insensitive=["x"])
    assert f"in file:{tmp_path}/in/p1.orc, which may count them by" in found["message"]
    assert "spark" not in found["message"].replace(str(tmp_path), "")
    assert "files" in of_both(engine, tmp_path)


def test_orc_of_spark_says_its_calendar(
    engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([(n, date(1500, 1, 1)) for n in WHOLE], "q long, x date")
    frame.coalesce(1).write.orc(str(tmp_path / "in"))
    document = {"input": {"path": str(tmp_path / "in")}, "quasi_identifiers": ["q"]}
    document |= {"insensitive": ["x"], "privacy": {"k": 2}}
    assert "files" in outcome(engine, document, tmp_path / "out")
    (file,) = (tmp_path / "out" / "data").glob("*.parquet")
    assert set(pq.read_table(file)["x"].to_pylist()) == {date(1500, 1, 1)}


WIDER = {
    "whole": ([pa.int8(), pa.int32(), pa.int64()], pa.int64()),
    "without values": ([pa.int32(), pa.null(), pa.int64()], pa.int64()),
    "decimals": ([pa.decimal128(9, 2), pa.decimal128(12, 2)], pa.decimal128(12, 2)),
    "places": ([pa.decimal128(9, 2), pa.decimal128(9, 4)], pa.decimal128(11, 4)),
    "decimals and whole": ([pa.decimal128(9, 2), pa.int32()], pa.decimal128(12, 2)),
    "floats": ([pa.float32(), pa.float64()], pa.float64()),
    "floats and whole": ([pa.int32(), pa.float32()], pa.float64()),
}


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize(("kinds", "expected"), WIDER.values(), ids=WIDER)
def test_wider_numbers_in_other_files(
    engine: SparkEngine, tmp_path: Path, kinds: list[pa.DataType], expected: pa.DataType, hive: bool
) -> None:
    tables = [
        pa.table(
            {"q": WHOLE, "x": pa.nulls(ROWS) if pa.types.is_null(one) else column(WHOLE, one)["q"]}
        )
        for one in kinds
    ]
    # Of ORC those that it has types for, in folders alone.
    kind = "orc" if hive and pa.null() not in kinds else "parquet"
    write(tmp_path, *(tables if hive else tables[::-1]), kind=kind, hive=hive)
    assert "files" in of_both(engine, tmp_path, insensitive=["x", *["day"] * hive])
    (file,) = (tmp_path / "out-LocalEngine" / "data").glob("*.parquet")
    published = pq.read_table(file)["x"]
    assert published.type == expected
    assert sorted(set(published.drop_null().to_pylist())) == WHOLE


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize(
    ("first", "other"),
    [
        (pa.int64(), pa.float64()),
        (pa.decimal128(38, 0), pa.decimal128(9, 4)),
        (pa.decimal128(9, 2), pa.float64()),
        (pa.int64(), pa.string()),
    ],
    ids=str,
)
def test_numbers_that_no_type_holds(
    engine: SparkEngine, tmp_path: Path, first: pa.DataType, other: pa.DataType, hive: bool
) -> None:
    texts = list(map(str, WHOLE)) if pa.types.is_string(other) else WHOLE
    tables = [column(WHOLE, first), column(texts, other)]
    for kind in ("parquet", "orc"):
        write(tmp_path / kind, *tables, kind=kind, hive=hive)
        found = of_both(engine, tmp_path / kind)
        assert found["code"] == 3
        assert f"p0.{kind} and" in found["message"]
        assert f"p1.{kind}. Expected one type in all files" in found["message"]


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv.gz", "json.gz"])
@pytest.mark.parametrize("damage", ["cut", "noise"])
def test_a_broken_part_is_named(
    engine: SparkEngine, tmp_path: Path, kind: str, damage: str
) -> None:
    (tmp_path / "in").mkdir()
    for place in range(12):
        path = tmp_path / "in" / f"part-{place:03}.{kind}"
        if kind in WRITE:
            WRITE[kind](pa.table({"q": [n + place for n in range(400)]}), str(path))
        else:
            lines = ["q" if kind == "csv.gz" else '{"q": 7}', *("7" for _ in range(40))]
            text = "\n".join(lines if kind == "csv.gz" else lines[:1] * 40)
            path.write_bytes(gzip.compress(f"{text}\n".encode()))
        if place in (7, 9):
            content = path.read_bytes()
            cut = content[:-20] if damage == "cut" else b"PAR1" + bytes(len(content))
            path.write_bytes(cut)
    found = of_both(engine, tmp_path)
    assert found["code"] == 3
    assert "part-007" in found["message"]
    assert "cannot be read in this format" in found["message"]


def test_decimal_commas(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [f"{n},5;{n}.5;{n}" for n in WHOLE]
    (tmp_path / "in" / "p.csv").write_text("\n".join(["q;x;w", *lines]) + "\n")
    options = {"path": str(tmp_path / "in"), "options": {"decimal": ",", "sep": ";"}}
    assert "files" in of_both(engine, tmp_path, insensitive=["x", "w"], input=options)
    (file,) = (tmp_path / "out-LocalEngine" / "data").glob("*.parquet")
    published = pq.read_table(file)
    assert published.schema.field("x").type == pa.string()
    assert "0.5" in published["x"].to_pylist()
    assert "-" in published["q"][0].as_py()


def test_what_lies_beside_tables_is_passed_over(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "p.csv").write_text("q\n" + "7\n8\n" * 9)
    alone = of_both(engine, tmp_path)
    for name in ("~$p.csv", "p.csv~", "Thumbs.db", "desktop.ini"):
        (tmp_path / "in" / name).write_bytes(b"\x00\xff;")
    with_others = tmp_path / "with"
    with_others.mkdir()
    (tmp_path / "in").rename(with_others / "in")
    assert of_both(engine, with_others)["files"] == alone["files"]
