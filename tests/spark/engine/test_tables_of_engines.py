"""Files are the same tables to both engines: columns, structs, types, values, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from file_operations import OPERATIONS, outcome
from helpers import configuration_file, of_any_run, write_table
from people_of_structs import ROLES, SECTIONS, people
from py4j.clientserver import JavaClient
from pyarrow import orc

from anonspark.config import load_configuration, parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.opening import open_files
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.file_schemas import ParquetFooters, read_file_schemas
from anonspark.engine.values.batches import conform
from anonspark.errors import AnonsparkError, DataError
from anonspark.pipeline.run import run
from anonspark.staged.records import PACKED, PackRecords
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


HEADER = {"header": "true"}
INFERRED = HEADER | {"inferSchema": "true"}
Outcome = tuple[Any, Any]
Reader = Callable[..., pa.Table]


def outcome_of_table(read: Reader, *given: Any, **named: Any) -> Outcome:
    """Return the columns and the rows in an order of their own, or the error and what it says."""
    try:
        table = read(*given, **named)
    except AnonsparkError as error:
        return type(error).__name__, str(error)
    columns = [(field.name, str(field.type)) for field in table.schema]
    return columns, sorted(map(repr, table.to_pylist()))


@pytest.fixture
def by_spark(engine: SparkEngine) -> Reader:
    def read(path: Any, data_format: str, options: Mapping[str, str], **named: Any) -> pa.Table:
        paths = [path] if isinstance(path, str | Path) else list(path)
        paths = list(map(str, paths))
        with engine.reading(tuple(paths)):
            table = engine.open_table(
                paths, data_format, options, key="input.path", section="input", **named
            )
            return table.collect().cast(table.schema)

    return read


def by_local(path: Any, data_format: str, options: Mapping[str, str], **named: Any) -> pa.Table:
    paths = [path] if isinstance(path, str | Path) else list(path)
    paths = list(map(str, paths))
    opened = open_files(
        LocalFiles(), paths, data_format, options, key="input.path", section="input", **named
    ).with_fields()
    batches = [batch for task in opened.tasks for batch in task()]
    # Texts may be dictionaries, as a file has them.
    plain = [conform(batch, opened.schema) for batch in batches]
    return pa.Table.from_batches(plain, opened.schema)


def same(by_spark: Reader, *given: Any, **named: Any) -> Outcome:
    """Read by both engines, and return what both found."""
    found = outcome_of_table(by_local, *given, **named)
    assert found == outcome_of_table(by_spark, *given, **named)
    return found


D = Decimal
VALUES: dict[str, pa.Array] = {
    "uint8": pa.array([200, None], pa.uint8()),
    "uint16": pa.array([60000, None], pa.uint16()),
    "uint32": pa.array([2**31, None], pa.uint32()),
    "uint64": pa.array([2**63 + 5, None], pa.uint64()),
    "int8": pa.array([-1, None], pa.int8()),
    "int16": pa.array([-1, None], pa.int16()),
    "int32": pa.array([-1, None], pa.int32()),
    "int64": pa.array([-1, None], pa.int64()),
    "float32": pa.array([1.1, None], pa.float32()),
    "float64": pa.array([1.1, float("nan")], pa.float64()),
    "boolean": pa.array([True, None]),
    "dictionary": pa.array(["x", None]).dictionary_encode(),
    "large string": pa.array(["ä", None], pa.large_string()),
    "string view": pa.array(["ä", None], pa.string_view()),
    "large binary": pa.array([b"\xff", None], pa.large_binary()),
    "fixed binary": pa.array([b"ab", None], pa.binary(2)),
    "seconds": pa.array([1, -1], pa.timestamp("s")),
    "milliseconds": pa.array([1, -1], pa.timestamp("ms")),
    "microseconds": pa.array([1, -1], pa.timestamp("us")),
    "nanoseconds": pa.array([1, -1], pa.timestamp("ns")),
    "zone": pa.array([1, -1], pa.timestamp("us", "Europe/Istanbul")),
    "old": pa.array([date(1500, 1, 1), None]),
    "old times": pa.array([datetime(1500, 1, 1), None], pa.timestamp("us", "UTC")),
    "date64": pa.array([86400000, None], pa.date64()),
    "time32": pa.array([1, None], pa.time32("ms")),
    "duration": pa.array([1, None], pa.duration("us")),
    "decimal": pa.array([D("1.5"), None], pa.decimal128(10, 2)),
    "short decimal": pa.array([D("-1.5"), None], pa.decimal32(5, 2)),
    "long decimal": pa.array([D("-1.5"), None], pa.decimal128(38, 18)),
    "too long decimal": pa.array([D("1.5"), None], pa.decimal256(50, 2)),
    "float16": pa.array([1.5, None], pa.float16()),
    "list": pa.array([[1, None], None]),
    "large list": pa.array([["x"], []], pa.large_list(pa.large_string())),
    "fixed list": pa.array([[1, 2], None], pa.list_(pa.int16(), 2)),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": 1, "b": {"c": [1]}}, None]),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16, None], pa.binary(16))),
}

# What pyarrow writes of fractions of seconds before 1970, Java does not read.
AGAINST_JAVA = [(name, "orc") for name in ("milliseconds", "microseconds", "nanoseconds")]


@pytest.mark.parametrize(("data_format", "written"), [("parquet", 38), ("orc", 25)])
def test_types_of_files(by_spark: Reader, tmp_path: Path, data_format: str, written: int) -> None:
    """Types that both engines read are columns of one file; of the others each has a file."""
    path = tmp_path / f"a.{data_format}"
    wanted = WantedColumns({"number": True, "A.b": True})
    together: dict[str, Any] = {"number": [1, 2]}
    types, refused = [("number", "int64")], []
    for name, values in VALUES.items():
        try:
            write_table(path, pa.table({"number": [1, 2], "A.b": values}), data_format)
        except pa.ArrowException:  # pyarrow does not write it to this format
            continue
        found = outcome_of_table(by_local, path, data_format, {}, selection=wanted)
        if found[0] != "DataError" and (name, data_format) not in AGAINST_JAVA:
            together[f"A.{name}"] = values
            types += [(one.replace("A.b", f"A.{name}"), kind) for one, kind in found[0][1:]]
            continue
        refused.append(name)
        expected = outcome_of_table(by_spark, path, data_format, {})
        if name == "too long decimal":
            # Spark finds the reason while it opens the file, which it says in other words.
            assert found[0] == expected[0] == "DataError"
        elif (name, data_format) == ("old", "orc"):
            # Spark moves days of other programs to those of the other calendar.
            assert found[0] == "DataError"
            assert "old calendar" in found[1]
        elif (name, data_format) == ("nanoseconds", "parquet"):
            assert outcome_of_table(by_spark, path, data_format, {}, selection=wanted) == found
        elif "'A.b' has the type" in found[1]:
            assert expected[0] == "DataError"
            # Spark says no column's name.
            told = "a column has the type" in expected[1] and "execution.engine" in expected[1]
            assert told or data_format == "orc"
        elif (name, data_format) in AGAINST_JAVA:
            assert expected[0] == "DataError"
            assert found[0][1] == ("A.b", "timestamp[us, tz=UTC]")
        else:
            assert found == expected
    write_table(path, pa.table(together), data_format)
    columns, rows = same(by_spark, path, data_format, {})
    assert sorted(columns) == sorted(types)
    assert len(rows) == 2
    assert len(together) - 1 + len(refused) == written


def test_old_points_in_time(by_spark: Reader, tmp_path: Path) -> None:
    moments = pa.array([1, -1, None, -(10**14), 10**16], pa.timestamp("us"))
    pq.write_table(
        pa.table({"a": moments, "b": moments}),
        tmp_path / "a.parquet",
        use_deprecated_int96_timestamps=True,
    )
    columns, _ = same(by_spark, tmp_path / "a.parquet", "parquet", {})
    assert columns[0] == ("a", "timestamp[us, tz=UTC]")


def test_files_of_other_calendars(tmp_path: Path) -> None:
    """Spark 2 wrote days by the calendar of the time; that of today had them elsewhere."""
    for place, (day, refused) in enumerate([(date(1582, 10, 15), False), (date(1500, 1, 1), True)]):
        table = pa.table({"day": [day]}).replace_schema_metadata()
        path = tmp_path / f"{place}.parquet"
        with pq.ParquetWriter(path, table.schema) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"org.apache.spark.version": "2.4.8"})
        found = outcome_of_table(by_local, path, "parquet", {})
        assert (found[0] == "DataError" and "old calendar" in found[1]) is refused


def test_parts_of_large_files(by_spark: Reader, tmp_path: Path) -> None:
    rows = 9_000
    table = pa.table({"number": range(rows), "text": [f"täxt {n % 7}" * 9 for n in range(rows)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2000)
    orc.write_table(table, tmp_path / "a.orc", stripe_size=1 << 16)
    for data_format in ("parquet", "orc"):
        path = str(tmp_path / f"a.{data_format}")
        opened = open_files(LocalFiles(), [path], data_format, {}, key="input.path")
        assert len(opened.tasks) > 1
        assert all(next(iter(task())).num_rows for task in opened.tasks)
        _, found = same(by_spark, path, data_format, {})
        assert len(found) == rows
        selected = opened.select(["text"])
        texts = [batch for task in selected.tasks for batch in task()]
        assert {tuple(batch.schema.names) for batch in texts} == {("text",)}
        assert sum(map(len, texts)) == rows


@pytest.fixture(params=["parquet", "orc", "csv"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, **columns: list[Any]) -> Path:
        return write_table(tmp_path / f"{name}.{request.param}", pa.table(columns), request.param)

    write.format = request.param  # type: ignore[attr-defined]
    return write


def test_directories(by_spark: Reader, tmp_path: Path, written: Any) -> None:
    options = INFERRED if written.format == "csv" else {}
    written("t/b", a=[1, 2], b=["x", "y"])
    written("t/a", a=[3], b=["z"])
    for hidden in ("_c", ".d", "_temporary/e", ".f/g"):
        written(f"t/{hidden}", a=[9], b=["hidden"])
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "dangling").symlink_to(tmp_path / "nowhere")
    expected = same(by_spark, tmp_path / "t", written.format, options)
    assert len(expected[1]) == 3
    assert (
        same(by_spark, tmp_path / "t" / f"*.{written.format}", written.format, options) == expected
    )
    if written.format == "parquet":
        return  # Which files there are is found as with the others.
    for path in (
        [tmp_path / "t" / f"{name}.{written.format}" for name in "ab"],
        tmp_path / "t" / f"{{a,b}}.{written.format}",
    ):
        assert same(by_spark, path, written.format, options) == expected
    twice = same(by_spark, [tmp_path / "t"] * 2, written.format, options)
    assert twice == (expected[0], sorted(expected[1] * 2))
    (tmp_path / "empty").mkdir()
    (tmp_path / "nested" / "deep").mkdir(parents=True)
    written("nested/deep/a", a=[1], b=["x"])
    for nothing in ("empty", "nested", f"t/_c.{written.format}", "none", "t/none*"):
        given = (tmp_path / nothing, written.format, options)
        assert (
            outcome_of_table(by_local, *given)[0]
            == outcome_of_table(by_spark, *given)[0]
            == "DataError"
        )


FOLDERS = {
    "year": (["2024", "2025"], "int32"),
    "id": (["1", f"{2**40}"], "int64"),
    "day": (["2024-01-31", "2024-02-29"], "date32[day]"),
    "town": (["K%C3%B6ln", "a%2Fb c"], "string"),
    "zip": (["00501", "10001"], "string"),
    "code": (["1", "x"], "string"),
    "nothing": (["1", "__HIVE_DEFAULT_PARTITION__"], "int32"),
}


def test_folders_that_are_columns(by_spark: Reader, tmp_path: Path, written: Any) -> None:
    options = INFERRED if written.format == "csv" else {}
    for place in range(2):
        folder = "/".join(f"{name}={values[place]}" for name, (values, _) in FOLDERS.items())
        written(f"t/{folder}/x", a=[place, 5], b=["x", "y"])
    columns, found = same(by_spark, tmp_path / "t", written.format, options)
    assert {name: kind for name, (_, kind) in FOLDERS.items()} == dict(columns[2:])
    assert len(found) == 4
    # Those above are no columns, and no folder is one by itself.
    columns, _ = same(by_spark, tmp_path / "t" / "year=2024", written.format, options)
    assert [column for column, _ in columns] == ["a", "b", *list(FOLDERS)[1:]]
    columns, _ = same(by_spark, tmp_path / "t" / folder, written.format, options)
    assert [column for column, _ in columns] == ["a", "b"]


def test_folders_that_are_columns_of_the_files(
    by_spark: Reader, tmp_path: Path, written: Any
) -> None:
    options = INFERRED if written.format == "csv" else {}
    for place in range(2):
        written(f"t/b={place + 1}/x", a=[place, 5], b=["x", "y"])
    columns, _ = same(by_spark, tmp_path / "t", written.format, options)
    assert dict(columns)["b"] == "int32"
    columns, _ = same(by_spark, tmp_path / "t" / "b=1", written.format, options)
    assert dict(columns)["b"] == "string"


def test_folders_that_name_markers(by_spark: Reader, tmp_path: Path, written: Any) -> None:
    options = INFERRED if written.format == "csv" else {}
    for value in ("1.5", "999.0", "NA"):
        written(f"t/age={value}/x", a=[5])
    wanted = WantedColumns({"a": True, "age": True}, markers=("999", "NA"))
    columns, rows = same(by_spark, tmp_path / "t", written.format, options, selection=wanted)
    assert dict(columns)["age"] == "double"
    assert sum("None" in row for row in rows) == 2


def test_folders_that_name_other_columns(tmp_path: Path, written: Any) -> None:
    options = INFERRED if written.format == "csv" else {}
    written("u/x=1/a", a=[1])
    written("u/a", a=[1])
    found = outcome_of_table(by_local, tmp_path / "u", written.format, options)
    assert "lie in folders that name other columns" in found[1]


WANTED = {"age": True, "Town": True, "name": False}


@pytest.mark.parametrize("data_format", ["parquet", "orc"])
def test_whatever_order_files_are_listed_in(
    by_spark: Reader, tmp_path: Path, data_format: str
) -> None:
    """Columns are those of the first by name: of twelve it is hardly the first that is listed."""
    names = [f"column {letter}" for letter in "abcdefghijkl"]
    for place in range(12):
        columns = {name: [place] for name in names[place:] + names[:place]}
        write_table(tmp_path / f"input/{place:02}.{data_format}", pa.table(columns), data_format)
    wanted = WantedColumns(dict.fromkeys(names, True), "error", "input.missing_columns")
    for asked in ({"selection": wanted}, {}):
        found = same(by_spark, tmp_path / "input", data_format, {}, **asked)
        assert [name for name, _ in found[0]] == names


@pytest.mark.parametrize("missing", ["error", "null"])
@pytest.mark.parametrize("data_format", ["parquet", "orc"])
def test_files_that_differ(
    by_spark: Reader, tmp_path: Path, data_format: str, missing: Any
) -> None:
    wanted = WantedColumns(WANTED, missing, "input.missing_columns")
    tables: dict[str, list[dict[str, Any]]] = {
        "lacking": [{"age": [1]}, {"AGE": [2], "town": ["x"]}, {"other": [1], "age": [3]}],
        "types": [{"age": [1], "town": ["x"]}, {"age": ["1"], "town": ["x"], "name": [1]}],
        "alike": [{"age": [1], "town": ["x"]}, {"town": ["y"], "age": [2], "more": [1.5]}],
    }
    for name, parts in tables.items():
        for place, columns in enumerate(parts):
            path = tmp_path / name / f"{place}.{data_format}"
            write_table(path, pa.table(columns), data_format)
        found = same(by_spark, tmp_path / name, data_format, {}, selection=wanted)
        refused = name == "types" or (name, missing) == ("lacking", "error")
        assert (found[0] == "DataError") is refused


PEOPLE = pa.table({"age": [1, 2], "Ward": ["x", "y"], "note": pa.nulls(2)})


def test_parts_without_values_fit_every_type(by_spark: Reader, tmp_path: Path) -> None:
    without = PEOPLE.set_column(1, "Ward", pa.nulls(2)).set_column(0, "age", pa.nulls(2))
    write_table(tmp_path / "t/a.parquet", without)
    write_table(tmp_path / "t/b.parquet", PEOPLE)
    wanted = WantedColumns({"age": True, "ward": True})
    for asked in ({"selection": wanted}, {}):
        columns, rows = same(by_spark, tmp_path / "t", "parquet", {}, **asked)
        assert columns == [("age", "int64"), ("Ward", "string"), ("note", "string")]
        assert len(rows) == 4
    write_table(tmp_path / "f/town=0a/a.parquet", PEOPLE)
    write_table(tmp_path / "f/town=b/a.parquet", PEOPLE)
    assert len(same(by_spark, tmp_path / "f", "parquet", {}, selection=wanted)[1]) == 4
    write_table(tmp_path / "f/town=c/a.parquet", without)
    assert len(same(by_spark, tmp_path / "f", "parquet", {}, selection=wanted)[1]) == 6


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds(by_spark: Reader, tmp_path: Path, zone: str | None) -> None:
    times = pa.array([-1000, 5000, None], pa.int64())
    for name, unit in (("a", "ns"), ("b", "us")):
        seen = times.cast(pa.timestamp(unit, zone))
        write_table(tmp_path / f"t/{name}.parquet", pa.table({"age": [1, 2, 3], "seen": seen}))
    wanted = WantedColumns({"age": True, "seen": True})
    for asked in ({"selection": wanted}, {}):
        columns, _ = same(by_spark, tmp_path / "t", "parquet", {}, **asked)
        assert "timestamp[us" in columns[1][1]
    # Digits beyond are cut off downwards, whatever values there are: no record decides it.
    seen = pa.array([-1001, 5999, None], pa.int64()).cast(pa.timestamp("ns", zone))
    write_table(tmp_path / "t/a.parquet", pa.table({"age": [1, 2, 3], "seen": seen}))
    _, rows = same(by_spark, tmp_path / "t", "parquet", {}, selection=wanted)
    assert "59, 999998" in str(rows)
    assert "0, 5" in str(rows)


def test_nanoseconds_inside_of_others(by_spark: Reader, tmp_path: Path) -> None:
    visits = pa.array([{"a": 1}, None]).cast(pa.struct([("a", pa.timestamp("ns"))]))
    write_table(tmp_path / "a.parquet", pa.table({"visit (x": visits, "age": [1, 2]}))
    wanted = WantedColumns({"visit (x.a": True})
    for read in (by_local, by_spark):
        _, message = outcome_of_table(read, tmp_path / "a.parquet", "parquet", {}, selection=wanted)
        assert "the column 'visit (x' has the type" in message
        assert 'coerce_timestamps="us"' in message


@pytest.mark.parametrize("damage", ["footer", "middle", "other-format", "nothing"])
@pytest.mark.parametrize("data_format", ["parquet", "orc"])
def test_damaged_files(by_spark: Reader, tmp_path: Path, data_format: str, damage: str) -> None:
    texts = [f"text {number}" for number in range(5000)]
    write_table(tmp_path / f"a.{data_format}", pa.table({"a": texts}), data_format)
    path = write_table(tmp_path / f"b.{data_format}", pa.table({"a": texts}), data_format)
    whole, half = path.read_bytes(), path.stat().st_size // 2
    path.write_bytes(
        {
            "footer": whole[:half],
            "middle": whole[:50] + b"\xff" * half + whole[50 + half :],
            "other-format": b"name,age\nZebediah,987654321\n" * 100,
            "nothing": b"",
        }[damage]
    )
    wanted = WantedColumns({"a": True})
    found = outcome_of_table(by_local, tmp_path, data_format, {}, selection=wanted)
    expected = outcome_of_table(by_spark, tmp_path, data_format, {}, selection=wanted)
    if (data_format, damage) == ("orc", "nothing"):
        assert found == expected
        assert len(found[1]) == 5000
        return
    assert found[0] == expected[0] == "DataError"
    assert "Zebediah" not in found[1]
    if (data_format, damage) != ("orc", "footer"):
        assert found == expected


def test_what_only_spark_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    told = {("parquet", "mergeSchema"): {"mergeSchema": "true"}, ("avro", "'avro'"): {}}
    for (data_format, word), options in told.items():
        kind, message = outcome_of_table(by_local, path, data_format, options)
        assert kind == "ConfigurationError"
        assert word in message
        assert "execution.engine" in message


def spark_types(*years: int) -> pa.Table:
    """Return values of all types that Spark writes; those with years once of each."""
    zone = pa.timestamp("us", "UTC")
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "byte": (pa.int8(), [1, None, -1]),
        "short": (pa.int16(), [1, None, -1]),
        "int": (pa.int32(), [1, None, -1]),
        "long": (pa.int64(), [1, None, -1]),
        "float": (pa.float32(), [1.5, None, -0.0]),
        "double": (pa.float64(), [0.1, None, float("inf")]),
        "boolean": (pa.bool_(), [True, None, False]),
        "text": (pa.string(), ["ä", None, "x y"]),
        "binary": (pa.binary(), [b"\xff", None, b""]),
        "decimal": (pa.decimal128(38, 18), [D("-1.5"), None, D(7)]),
        "list": (pa.list_(pa.string()), [["a", None], None, []]),
        "struct": (pa.struct([("a", pa.int64())]), [{"a": 1}, None, {"a": None}]),
    }
    for year in years:
        days = [date(year, 2, 28), date(1582, 10, 15), date(9999, 12, 31)]
        times = [datetime(year, 1, 1, 0, 0, 0, 5), datetime(1969, 12, 31, 23, 59, 59, 999999), None]
        columns[f"day {year}"] = (pa.date32(), days)
        columns[f"time {year}"] = (zone, times)
        columns[f"local {year}"] = (pa.timestamp("us"), times)
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


@pytest.mark.parametrize(
    ("data_format", "years"),
    [("parquet", (2026, 1900, 1500)), ("orc", (2026, 1900)), ("orc", (1500,))],
)
def test_files_that_spark_has_written(
    engine: SparkEngine, by_spark: Reader, tmp_path: Path, data_format: str, years: tuple[int, ...]
) -> None:
    path = str(tmp_path / "t")
    pq.write_table(spark_types(*years), tmp_path / "a.parquet")
    frame = engine.session.read.parquet(str(tmp_path / "a.parquet"))
    frame.repartition(2).write.format(data_format).save(path)
    if (data_format, years) == ("orc", (1500,)):
        # Spark has ORC's old days by another calendar, and Arrow only times of some centuries.
        assert outcome_of_table(by_local, path, data_format, {})[0] == "DataError"
        opened = open_files(LocalFiles(), [path], data_format, {}, key="input.path")
        told = r"the column 'day 1500' has days before .* old calendar"
        with pytest.raises(DataError, match=told):
            _ = [batch for task in opened.select(["day 1500"]).tasks for batch in task()]
        return
    columns, found = same(by_spark, path, data_format, {})
    assert len(found) == 3
    assert {dict(columns)[f"local {year}"] for year in years} == {"timestamp[us]"}


def test_operations(engine: SparkEngine, tmp_path: Path) -> None:
    differing = {}
    for place, (name, operation) in enumerate(OPERATIONS.items()):
        found = []
        for own, files in enumerate((LocalFiles(), engine.files)):
            folder = tmp_path / f"{place}-{own}"
            folder.mkdir()
            found.append(outcome(operation, files, folder))
        if found[0] != found[1]:
            differing[name] = found
    assert differing == {}


def test_spark_reads_what_changed_without_its_checksums(
    engine: SparkEngine, tmp_path: Path
) -> None:
    local = LocalFiles()
    for name in ("written", "replaced", "renamed"):
        engine.files.write_text(f"{tmp_path}/{name}", "what Hadoop has written")
    local.write_text(f"{tmp_path}/written", "new")
    local.replace(f"{tmp_path}/replaced", b"new", ".aside")
    local.rename(f"{tmp_path}/renamed", f"{tmp_path}/moved")
    local.write_text(f"{tmp_path}/renamed", "new")
    for name in ("written", "replaced", "renamed"):
        assert engine.files.read_text(f"{tmp_path}/{name}") == "new"
    assert engine.files.read_text(f"{tmp_path}/moved") == "what Hadoop has written"


@pytest.mark.parametrize("scheme", ["file", "viewfs"])
def test_a_table_of_many_files_takes_few_answers_of_java(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    settings = engine.session._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri())
    root = "file:" if scheme == "file" else f"viewfs://{tmp_path.name}/data"
    path = f"{root}{tmp_path}/lake" if scheme == "file" else f"{root}/lake"
    for number in range(300):
        folder = tmp_path / f"lake/day={number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        # The footers of pandas differ in each file, and name the columns alike.
        table = pa.table({"a": [number, 1]}).replace_schema_metadata({"pandas": f"}}\n{number}"})
        pq.write_table(table, folder / f"{number} ; isDirectory=false; length=7; .parquet")
    configuration = load_configuration(
        configuration_file(
            tmp_path,
            input={"path": path},
            attributes={"a": "quasi_identifier", "day": "quasi_identifier"},
        )
    )
    commands, send = [], JavaClient.send_command

    def counted(*arguments: Any, **named: Any) -> Any:
        # What frees objects, whenever Python does, asks nothing.
        commands.extend(arguments[1:2] if not arguments[1].startswith("m\n") else ())
        return send(*arguments, **named)

    monkeypatch.setattr(JavaClient, "send_command", counted)
    opened = engine.open_input(configuration, {})
    # Once they were fifty a file. What viewfs prints does not say which file it is.
    assert len(commands) < (1500 if scheme == "file" else 1500 + 7 * 300)
    assert len(opened.table.source.files.schemas) == 1
    files = opened.table.source.files
    for file, size in zip(files.files, files.sizes, strict=True):
        assert engine.files.size(file) == size
    assert len(engine.files.files_below(path)) == 300


def test_footers_of_older_programs_are_known_by_what_they_print(
    engine: SparkEngine, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    for name, entry in (("new", "3.5.0"), ("old", "2.4.8")):
        table = pa.table({"a": [date(1500, 1, 1)]})
        table = table.replace_schema_metadata({"org.apache.spark.version": entry})
        pq.write_table(table, tmp_path / f"lake/{name}.parquet")
        opened = engine.session.read.parquet(str(tmp_path / "lake"))
        footers = read_file_schemas(opened, "parquet", [str(tmp_path / "lake")], {})
        assert isinstance(footers, ParquetFooters)
        assert footers.old_calendar == (name == "old")


OWN: dict[str, Any] = SECTIONS | {
    "attributes": ROLES
    | dict.fromkeys(("person.size", "address.geo.depth"), "quasi_identifier")
    | {"visit.tags": "insensitive"}
}


def configuration(path: Path, release: Path, format: str = "parquet", **sections: Any) -> Any:
    document: dict[str, Any] = OWN | sections
    return parse_configuration(
        document
        | {
            "input": {"path": str(path), "format": format, **sections.get("input", {})},
            "output": {"path": str(release)},
        }
    )


def engines(spark: SparkSession) -> dict[str, Engine]:
    return {"local": LocalEngine(), "spark": SparkEngine(spark)}


def test_records(spark: SparkSession, tmp_path: Path) -> None:
    """What a run reads is the same; the rest of it does not know where it is from."""
    table = people().drop_columns(["counts"])
    found = {}
    for format in ("parquet", "json", "orc"):
        path = write_table(tmp_path / f"input.{format}", table, format)
        for name, engine in engines(spark).items():
            asked = configuration(path, tmp_path / name, format)
            found[name, format] = engine.open_input(asked, {})
    engine = SparkEngine(spark)
    frame = spark.read.parquet(str(tmp_path / "input.parquet"))
    found["spark", "given"] = engine.open_input(asked, {}, engine.wrap(frame))
    staged = {}
    for (name, format), opened in found.items():
        one = opened.stage(str(tmp_path / name / format), PackRecords(), PACKED, 7)
        staged[name, format] = one.fingerprint, one.schema.names, one.counts["kept"]
    assert staged["local", "parquet"][2] == 240
    for format in ("parquet", "json", "orc"):
        assert staged["spark", format] == staged["local", format]
    assert staged["spark", "given"] == staged["local", "parquet"]


@pytest.mark.system
def test_releases_and_proofs(spark: SparkSession, tmp_path: Path) -> None:
    path = write_table(tmp_path / "input.parquet", people())
    found, proofs = {}, {}
    for name, engine in engines(spark).items():
        run(engine, configuration(path, tmp_path / name))
        found[name] = of_any_run(tmp_path / name)
    for name, engine in engines(spark).items():
        proof = audit_release(engine, str(tmp_path / "spark"), original=str(path))
        assert proof.holds
        proofs[name] = proof.as_dict()
    assert found["local"] == found["spark"]
    assert proofs["local"] == proofs["spark"]


def test_files_that_lack_fields(spark: SparkSession, tmp_path: Path) -> None:
    """The first file of a folder lacks the struct, the second a field of it."""
    whole = people(80)
    write_table(tmp_path / "input/part-2.parquet", whole)
    write_table(tmp_path / "input/part-0.parquet", whole.drop_columns(["address"]))
    visits = [{"tags": one["tags"]} for one in whole["visit"].to_pylist()]
    places = [
        None if one is None else {"city": one["city"]} for one in whole["address"].to_pylist()
    ]
    lacks = whole.drop_columns(["address", "visit"]).append_column("visit", pa.array(visits))
    write_table(tmp_path / "input/part-1.parquet", lacks.append_column("address", pa.array(places)))
    wanted = dict.fromkeys(OWN["attributes"], True)
    names = ["person.age", "address.city", "address.geo.height", "visit.disease"]
    told, rows = {}, {}
    for name, engine in engines(spark).items():
        with pytest.raises(AnonsparkError) as refused:
            run(engine, configuration(tmp_path / "input", tmp_path / name))
        told[name] = str(refused.value)
        opened = engine.open_table(
            [str(tmp_path / "input")],
            "parquet",
            {},
            key="input.path",
            selection=WantedColumns(wanted, "null"),
        )
        rows[name] = sorted(map(str, opened.select(names).collect().to_pylist()))
    assert told["local"] == told["spark"]
    assert "part-0.parquet lacks the column 'address.city', which other files have" in told["spark"]
    assert rows["local"] == rows["spark"]
    assert len(rows["spark"]) == 240


@cases(__file__, "attribute", "told")
def test_refusals(
    spark: SparkSession, tmp_path: Path, attribute: dict[str, str], told: str
) -> None:
    path = write_table(tmp_path / "input.parquet", people(20))
    roles = {"person.age": "quasi_identifier"} | attribute
    found = {}
    for name, engine in engines(spark).items():
        asked = configuration(path, tmp_path / name, attributes=roles, privacy={"k": 2})
        with pytest.raises(AnonsparkError) as refused:
            run(engine, asked)
        found[name] = str(refused.value)
    assert found["local"] == found["spark"]
    assert told in found["spark"]


def test_spark_reads_listed_fields_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = write_table(tmp_path / "input.parquet", people(20))
    asked = configuration(path, tmp_path / "release")
    kept = SparkEngine(spark).open_input(asked, {}).records.frame
    leaves = kept._jdf.queryExecution().sparkPlan().collectLeaves()
    read = leaves.apply(0).requiredSchema().simpleString()
    assert read == (
        "struct<person:struct<id:bigint,age:bigint,size:int>,"
        "address:struct<city:string,geo:struct<height:string,depth:double>>,"
        "visit:struct<disease:string,day:string,tags:array<string>>>"
    )
