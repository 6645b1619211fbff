"""Files that the local engine writes: the bytes of Spark's engine, which every reader takes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import functions as sf

from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.opening import open_files
from anonspark.engine.local.writing import write_orc, write_parquet
from anonspark.engine.parquet_encoding import (
    STAMPED_VERSION,
    Encoding,
    nullable,
    spark_description,
)
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.parquet_files import encoding_of
from anonspark.engine.spark.table import SparkTable
from anonspark.engine.tasks import Batches

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-1, None, 3]),
    "short": (pa.int16(), [-1, None, 3]),
    "int": (pa.int32(), [-1, None, 3]),
    "long": (pa.int64(), [-(2**62), None, 3]),
    "float": (pa.float32(), [1.5, None, float("inf")]),
    "double": (pa.float64(), [0.1, None, -0.0]),
    "boolean": (pa.bool_(), [True, None, False]),
    "text": (pa.string(), ["ä\n", None, ""]),
    "binary": (pa.binary(), [b"\xff", None, b""]),
    "day": (pa.date32(), [date(1582, 10, 15), None, date(9999, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=UTC), None, None]),
    "short decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), None, Decimal("7.25")]),
    "decimal": (pa.decimal128(18, 0), [Decimal(-(10**17)), None, Decimal(1)]),
    "long decimal": (pa.decimal128(38, 18), [Decimal("-1.5"), None, Decimal(1)]),
    "list": (pa.list_(pa.string()), [["a", None], None, []]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.date32()))]), [{"a": 1}, None, {}]),
}
SCHEMA = pa.schema([(name, data_type) for name, (data_type, _) in COLUMNS.items()])


def batches() -> list[pa.RecordBatch]:
    arrays = [pa.array(values, data_type) for data_type, values in COLUMNS.values()]
    whole = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return [whole, whole.slice(1), whole.slice(0, 1)]


def test_the_bytes_of_sparks_engine(
    engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever Spark is installed, which the suite is run with, too: `make test-spark`."""
    session, rows = engine.session, batches()
    monkeypatch.setattr(type(session), "version", "4.99.0")

    def made(_: Batches) -> Batches:
        yield from rows

    assert encoding_of(session, SCHEMA) == Encoding(
        nullable(SCHEMA), spark_description(nullable(SCHEMA)), "snappy"
    )
    source = SparkTable(session.range(1).coalesce(1), engine)
    published = source.map_batches(made, SCHEMA).publish(
        "parquet", str(tmp_path / "release"), "data", str(tmp_path / "aside")
    )
    (told,) = published
    path = tmp_path / "local.parquet"
    own = write_parquet(iter(batches()), SCHEMA, str(path))
    assert path.read_bytes() == (tmp_path / "release" / told.path).read_bytes()
    footers = [parquet.read_metadata(one) for one in (path, tmp_path / "release" / told.path)]
    assert {footer.created_by for footer in footers} == {
        f"parquet-cpp-arrow version {pa.__version__}"
    }
    assert [footer.metadata[b"org.apache.spark.version"].decode() for footer in footers] == [
        STAMPED_VERSION
    ] * 2
    # Readers of Spark take older ones for files of the calendar of Spark 2.
    assert int(STAMPED_VERSION.partition(".")[0]) >= 3
    assert (own.bytes, own.rows, own.sha256) == (told.bytes, told.rows, told.sha256)


@pytest.mark.parametrize("data_format", ["parquet", "orc"])
def test_all_readers(engine: SparkEngine, tmp_path: Path, data_format: str) -> None:
    path = tmp_path / f"a.{data_format}"
    write = {"parquet": write_parquet, "orc": write_orc}[data_format]
    told = write(iter(batches()), SCHEMA, str(path))
    expected = pa.Table.from_batches(batches()).cast(nullable(SCHEMA))
    spark = engine.session.read.format(data_format).load(str(path))
    assert spark.schema == spark_schema(nullable(SCHEMA))
    assert spark.count() == told.rows == len(expected)
    # A table of an engine has a column for each field of its structs, too.
    whole = expected
    for field in expected.schema.field("struct").type:
        inside = [row and row.get(field.name) for row in expected["struct"].to_pylist()]
        whole = whole.append_column(
            field.with_name(f"struct.{field.name}"), pa.array(inside, field.type)
        )
    read = engine.open_table([str(path)], data_format, {}, key="x")
    assert read.schema == whole.schema
    assert read.collect().cast(read.schema).to_pylist() == whole.to_pylist()
    opened = open_files(LocalFiles(), [str(path)], data_format, {}, key="x")
    assert opened.schema == expected.schema
    table = pa.Table.from_batches([batch for task in opened.tasks for batch in task()])
    assert table.to_pylist() == expected.to_pylist()


def test_old_days_in_parquet(engine: SparkEngine, tmp_path: Path) -> None:
    values = [date(1, 1, 1), date(1500, 2, 28), None]
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(1899, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None]
    batch = pa.record_batch({"day": values, "time": pa.array(times, pa.timestamp("us", "UTC"))})
    path = str(tmp_path / "a.parquet")
    write_parquet(iter([batch]), batch.schema, path)
    engine.session.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")
    texts = [sf.col(name).cast("string") for name in batch.schema.names]
    rows = engine.session.read.parquet(path).select(*texts).collect()
    assert [row[0] for row in rows] == ["0001-01-01", "1500-02-28", None]
    assert rows[1][1] == "1899-01-01 00:00:00.000001"


@pytest.mark.parametrize("reader", ["duckdb", "polars"])
def test_other_readers(tmp_path: Path, reader: str) -> None:
    path = str(tmp_path / "a.parquet")
    write_parquet(iter(batches()), SCHEMA, path)
    expected = pa.Table.from_batches(batches())
    if reader == "duckdb":
        found = duckdb.connect().read_parquet(path).arrow()
        found = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
    else:
        found = polars.read_parquet(path).to_arrow()
    assert found.cast(expected.schema).to_pylist() == expected.to_pylist()


def test_descriptions_are_sparks() -> None:
    described = spark_description(nullable(SCHEMA))
    assert json.loads(described) == json.loads(spark_schema(nullable(SCHEMA)).json())
