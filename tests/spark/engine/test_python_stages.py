"""What functions make in tasks is the same whether rows pass through Java in between or not."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anonspark.engine.local.writing import write_parquet
from anonspark.engine.protocol import TASK, OnBatches
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.file_contents import open_published_parquet
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.table import SparkTable
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-1, None, 3, 3]),
    "short": (pa.int16(), [-1, None, 3, 3]),
    "int": (pa.int32(), [-1, None, 3, 3]),
    "long": (pa.int64(), [-(2**62), None, 3, 3]),
    "float": (pa.float32(), [1.5, None, float("inf"), -0.0]),
    "double": (pa.float64(), [0.0, None, -0.0, float("nan")]),
    "boolean": (pa.bool_(), [True, None, False, False]),
    "Text": (pa.string(), ["ä\n", None, "", ""]),
    "odd name, of. It": (pa.string(), ["x", "x", "y" * 40, None]),
    "binary": (pa.binary(), [b"\xff", None, b"", b""]),
    "day": (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31), date(2026, 1, 1)]),
    "time": (
        pa.timestamp("us", "UTC"),
        [datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=UTC), None, None, datetime(1, 1, 1, tzinfo=UTC)],
    ),
    "clock": (pa.timestamp("us"), [datetime(2026, 1, 1), None, None, None]),
    "short decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), None, Decimal("7.25"), Decimal(0)]),
    "long decimal": (pa.decimal128(38, 18), [Decimal("-1.5"), None, Decimal(1), Decimal(1)]),
    "list": (pa.list_(pa.string()), [["a", None], None, [], []]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.date32()))]),
        [{"a": 1}, None, {}, {}],
    ),
}
SCHEMA = pa.schema([(name, data_type) for name, (data_type, _) in COLUMNS.items()])
ROWS = pa.RecordBatch.from_arrays(
    [pa.array(own, of) for of, own in COLUMNS.values()], schema=SCHEMA
)
PLAIN = [name for name in SCHEMA.names if name not in ("binary", "list", "struct")]


def twice() -> OnBatches:
    """Return what says every row twice, in batches of one row, and refuses dictionaries."""

    def say(batches: Batches) -> Batches:
        for batch in batches:
            assert not any(pa.types.is_dictionary(field.type) for field in batch.schema)
            for place in range(len(batch)):
                yield batch.slice(place, 1)
                yield batch.slice(place, 1)

    return say


def to_three_tasks() -> OnBatches:
    """Return what deals rows out like cards."""

    def address(batches: Batches) -> Batches:
        for batch in batches:
            tasks = pa.array([place % 3 for place in range(len(batch))], pa.int32())
            yield batch.append_column("task", tasks)

    return address


def write_release(folder: Path) -> Path:
    """Write a directory of files as the engine publishes them, one of them without rows."""
    path = folder / "release" / "data"
    path.mkdir(parents=True)
    write_parquet(iter([ROWS, ROWS.slice(2)]), SCHEMA, str(path / "part-00000.parquet"))
    write_parquet(iter([ROWS.slice(1, 1)]), SCHEMA, str(path / "part-00001.parquet"))
    write_parquet(iter([ROWS.slice(0, 0)]), SCHEMA, str(path / "part-00002.parquet"))
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return files of a test's own, which it may spoil."""
    return write_release(tmp_path)


@pytest.fixture(scope="module")
def tables(
    spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SparkTable, SparkTable]:
    """Return the same files as our functions decode them in tasks, and as Spark reads them."""
    release = str(write_release(tmp_path_factory.mktemp("made")))
    engine = SparkEngine(spark_session)
    table = engine.published(release, "parquet")
    assert isinstance(table.content, PythonStage)
    return table, engine.wrap(spark_session.read.parquet(release))


def bag(table: pa.Table) -> list[str]:
    return sorted(
        repr({name: sorted(one, key=repr) if isinstance(one, list) else one
              for name, one in row.items()})
        for row in table.to_pylist()
    )  # fmt: skip


Verb = Callable[[SparkTable], SparkTable]
ADDRESSED = pa.schema([*(SCHEMA.field(name) for name in PLAIN), pa.field(TASK, pa.int32())])

VERBS: dict[str, Verb] = {
    "rows": lambda table: table,
    "mapped and selected": lambda table: table.map_batches(twice(), SCHEMA).map_batches(
        twice(), SCHEMA
    ).select({name: name for name in SCHEMA.names} | {"a": "list"}),
    "renamed": lambda table: table.select({"Text": "day", "b": "odd name, of. It", "c": "day"}),
    "none selected": lambda table: table.select([]),
    "counted": lambda table: table.aggregate(["Text", "int", "double"], count="n"),
    "all counted": lambda table: table.aggregate([], count="n", sums=["long"]),
    "different": lambda table: table.aggregate(PLAIN),
    "added up": lambda table: table.map_batches(twice(), SCHEMA).aggregate(
        ["Text"], count="n", sums=["byte", "long", "short decimal"], least=["day", "boolean"],
        most=["binary", "time"], hashes="int",
    ),
    "floats added up": lambda table: table.aggregate(["Text"], sums=["double"], most=["float"]),
    "listed": lambda table: table.aggregate(["Text"], count="n").aggregate(["n"], lists=["Text"]),
    "listed where they are": lambda table: table.aggregate(
        ["Text", "day"], count="n"
    ).aggregate(["Text"], lists=["day"]),
    "twice added up": lambda table: table.with_hashes({"h": PLAIN}).aggregate(["Text"], count="n",
        hashes="h").aggregate(["n"], count="m", sums=["h_sum"], hashes="h_xor"),
    "sent": lambda table: table.select(PLAIN)
    .repartition(to_three_tasks(), ADDRESSED, 3)
    .select(PLAIN),
    "sent bytes": lambda table: table.select(["binary"]).repartition(
        to_three_tasks(), pa.schema([("binary", pa.binary()), (TASK, pa.int32())]), 3
    ).select(["binary"]),
    "joined": lambda table: table.select(["day"]).join(
        table.aggregate(["day"], count="n"), ["day"], small=True
    ),
    "united": lambda table: table.select(["Text"]).union(
        table.select({"Text": "odd name, of. It"})
    ),
    "kept": lambda table: table.map_batches(twice(), SCHEMA).persist().select(["day"]),
}  # fmt: skip


# The others count the rows that they gather.
COUNTED_ANEW = ("rows", "none selected", "sent", "twice added up")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("spark")
def test_files_decoded_in_tasks(tables: tuple[SparkTable, SparkTable], verb: str) -> None:
    table, spark = tables
    assert table.schema.equals(spark.schema, check_metadata=True)
    found, expected = VERBS[verb](table), VERBS[verb](spark)
    # Without its functions: every step by itself.
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    assert bag(found.collect()) == bag(expected.collect())
    if verb in COUNTED_ANEW:
        assert found.count() == expected.count() > 0


def test_names_that_differ_in_case(tables: tuple[SparkTable, SparkTable]) -> None:
    table, _ = tables
    assert bag(table.select({"a": "TEXT"}).collect()) == bag(table.select({"a": "Text"}).collect())


def test_columns_of_some_files_alone(engine: SparkEngine, release: Path) -> None:
    """Where a file lacks a column it is missing, as Spark's reader says."""
    batch = pa.record_batch({"int": pa.array([5], pa.int32()), "more": [1]})
    write_parquet(iter([batch]), batch.schema, str(release / "part-00009.parquet"))
    for names in (["int"], ["Text", "day"]):
        own = engine.published(str(release), "parquet").select(names)
        found = own.map_batches(twice(), own.schema)
        spark = engine.wrap(engine.session.read.parquet(str(release))).select(names)
        assert bag(found.collect()) == bag(spark.map_batches(twice(), own.schema).collect())


def test_empty_files_are_passed_over(engine: SparkEngine, release: Path) -> None:
    before = engine.published(str(release), "parquet").select(["day"]).collect()
    (release / "part-00007.parquet").touch()
    after = engine.published(str(release), "parquet").select(["day"]).collect()
    assert bag(before) == bag(after) != []


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)


def change_type(path: Path) -> None:
    table = pa.record_batch({name: ["x"] for name in SCHEMA.names})
    path.unlink()
    write_parquet(iter([table]), table.schema, str(path))


@pytest.mark.parametrize(
    "spoil", [damage, change_type, Path.unlink, lambda path: path.write_bytes(b"PAR1x")]
)
def test_files_that_cannot_be_read(
    engine: SparkEngine, release: Path, spoil: Callable[[Path], Any]
) -> None:
    table = engine.published(str(release), "parquet")
    spark = engine.wrap(engine.session.read.parquet(str(release)))
    spoil(release / "part-00001.parquet")
    told = []
    for one in (table, spark):
        with pytest.raises(DataError) as error, engine.reading((str(release),)):
            one.aggregate(["int", "Text"], count="n").collect()
        told.append(str(error.value))
    assert told[0] == told[1]
    assert str(release) in told[0]


def test_no_value_is_told_of_a_file_that_cannot_be_read(
    engine: SparkEngine, release: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = engine.published(str(release), "parquet")
    batch = pa.record_batch({"Text": pa.array([b"secret-value \xff"]), "int": ["secret-value"]})
    (release / "part-00001.parquet").unlink()
    write_parquet(iter([batch]), batch.schema, str(release / "part-00001.parquet"))
    with pytest.raises(DataError) as error, engine.reading((str(release),)):
        table.aggregate(["int", "Text"], count="n").collect()
    assert "secret-value" not in "".join(traceback.format_exception(error.value))
    assert "secret-value" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("kind", ["nothing", "folders", "another program's", "damaged"])
def test_what_is_left_to_spark(engine: SparkEngine, release: Path, kind: str) -> None:
    path = str(release)
    if kind == "nothing":
        path += "-none"
    elif kind == "folders":
        path = str(release.parent)
        release.rename(release.parent / "day=2026-01-01")
    elif kind == "another program's":
        pq.write_table(pa.table({"a": [1]}), release / "part-00000.parquet")
    else:
        (release / "part-00000.parquet").write_bytes(b"no Parquet")
    assert open_published_parquet(engine.session, path) is None


def test_large_files_are_read_by_row_groups(
    engine: SparkEngine, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = engine.published(str(release), "parquet").collect().to_pylist()
    monkeypatch.setattr("anonspark.engine.spark.file_contents.LARGEST_FILE", 100)
    divided = open_published_parquet(engine.session, str(release))
    assert divided is not None
    assert divided.source.columns == ["task"]
    rows = SparkTable(divided, engine).collect().to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, whole))


def test_columns_of_any_name_reach_a_task(spark: SparkSession, engine: SparkEngine) -> None:
    rows = pa.table({name: [place, 9] for place, name in enumerate(["*", "a.b", "a`b", "A", "a"])})
    table = engine.wrap(spark.createDataFrame(rows).coalesce(1))
    assert table.map_batches(lambda batches: batches, rows.schema).collect() == rows
