"""The input of a run on the local engine, and files of a release that it writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from anonspark.config import parse_configuration
from anonspark.engine.files import PublishedFile
from anonspark.engine.local.engine import LocalEngine, LocalInput
from anonspark.engine.local.writing import write_orc, write_parquet
from anonspark.engine.parquet_encoding import STAMPED_VERSION, nullable, spark_description
from anonspark.errors import ConfigurationError
from anonspark.verification.proof.release_files import read_footer

BATCHES = [
    pa.record_batch({"age": [1, None, 3], "town": ["Rize", None, "Ulm"]}),
    pa.record_batch({"age": [4], "town": ["Köln"]}),
]
SCHEMA = pa.schema([pa.field("age", pa.int64(), False), ("town", pa.string())])
Write = Callable[[Any, pa.Schema, str], PublishedFile]


@pytest.mark.parametrize(
    ("write", "read"),
    [(write_parquet, pq.read_table), (write_orc, orc.read_table)],
    ids=["parquet", "orc"],
)
def test_what_is_told_of_a_file(tmp_path: Path, write: Write, read: Any) -> None:
    path = tmp_path / "file"
    told = write(iter(BATCHES), SCHEMA, str(path))
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert told == PublishedFile(str(path), len(content), 4, digest)
    assert read(path).to_pylist() == pa.Table.from_batches(BATCHES).to_pylist()
    footer = read_footer(content)
    assert footer is not None
    assert (footer.rows, footer.names, footer.strange) == (4, ["age", "town"], [])
    again = write(iter(BATCHES), SCHEMA, str(tmp_path / "again"))
    assert again.sha256 == told.sha256
    with pytest.raises(FileExistsError):
        write(iter(BATCHES), SCHEMA, str(path))


def test_what_a_parquet_file_says(tmp_path: Path) -> None:
    write_parquet(iter(BATCHES), SCHEMA, str(tmp_path / "file"))
    with pq.ParquetFile(tmp_path / "file") as file:
        metadata = file.metadata
    assert metadata.num_row_groups == 2
    assert metadata.row_group(0).column(0).compression == "SNAPPY"
    assert set(metadata.metadata) == {
        b"org.apache.spark.version",
        b"org.apache.spark.sql.parquet.row.metadata",
    }
    assert metadata.metadata[b"org.apache.spark.version"].decode() == STAMPED_VERSION
    described = json.loads(metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert described["fields"][0] == {
        "name": "age",
        "type": "long",
        "nullable": True,
        "metadata": {},
    }


def test_schemas_in_the_json_of_spark() -> None:
    inner = pa.struct([pa.field("day", pa.date32(), False), ("cost", pa.decimal128(5, 2))])
    schema = pa.schema([pa.field("visits", pa.list_(inner), False), ("at", pa.timestamp("us"))])
    described = json.loads(spark_description(nullable(schema)))
    assert [field["nullable"] for field in described["fields"]] == [True, True]
    visits, at = (field["type"] for field in described["fields"])
    assert at == "timestamp_ntz"
    assert (visits["type"], visits["containsNull"]) == ("array", True)
    assert [field["type"] for field in visits["elementType"]["fields"]] == ["date", "decimal(5,2)"]
    assert nullable(schema).field("visits").type.value_field.name == "element"


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        (pa.array([date(1582, 10, 15), None]), None),
        (pa.array([date(1582, 10, 14)]), "days before 1582-10-15"),
        (pa.array([datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), None),
        (pa.array([datetime(1969, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC")), "before 1970"),
        (pa.array([datetime(9999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), "after 2262"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "times without a zone"),
        (pa.array([Decimal("1.5")], pa.decimal128(38, 18)), None),
    ],
    ids=str,
)
def test_what_orc_does_not_keep(tmp_path: Path, values: pa.Array, refused: str | None) -> None:
    batch = pa.record_batch({"value": values})
    if refused is None:
        write_orc(iter([batch]), batch.schema, str(tmp_path / "file"))
        read = orc.read_table(tmp_path / "file").column("value").cast(values.type)
        assert read.to_pylist() == values.to_pylist()
    else:
        with pytest.raises(ConfigurationError, match=refused):
            write_orc(iter([batch]), batch.schema, str(tmp_path / "file"))


class FrugalInput(LocalInput):
    """Counts exactly as few different texts as some."""

    most_distinct = 256


def test_more_texts_than_a_task_counts_are_estimated(tmp_path: Path) -> None:
    """The total of tasks took the hashes that they kept for all that there were."""
    (tmp_path / "a.csv").write_text("name\n" + "".join(f"x{place}\n" for place in range(20_000)))
    configuration = parse_configuration(
        {
            "input": {
                "path": str(tmp_path / "a.csv"),
                "format": "csv",
                "options": {"header": "true"},
            },
            "output": {"path": str(tmp_path / "release")},
            "attributes": {"name": {"role": "quasi_identifier"}},
            "privacy": {"k": 2},
            "model": "mondrian",
        }
    )
    engine = LocalEngine()
    table = engine.open_source(configuration)
    for kind, tolerance in ((LocalInput, 0.0), (FrugalInput, 0.3)):
        found = kind.of(table, configuration, {}).inspect()
        assert found["distinct_0"] == pytest.approx(20_000, rel=tolerance)
