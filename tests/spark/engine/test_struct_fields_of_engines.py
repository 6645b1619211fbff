"""Both engines read fields of structs alike, and Spark reads no field that is not listed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from cases import cases
from helpers import of_any_run, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import AnonsparkError
from anonspark.pipeline.run import run
from anonspark.staged.records import PACKED, PackRecords
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("person", pa.struct([("name", pa.string()), ("id", pa.int64()), ("age", pa.int32())])),
        (
            "address",
            pa.struct(
                [
                    ("city", pa.string()),
                    ("geo", pa.struct([("height", pa.float64()), ("secret", pa.int64())])),
                    ("street", pa.string()),
                ]
            ),
        ),
        ("visit", pa.struct([("disease", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)

SECTIONS: dict[str, Any] = {
    "attributes": {
        "person.name": "identifier",
        "person.id": "identifier",
        "person.age": "quasi_identifier",
        "address.city": "quasi_identifier",
        "address.geo.height": "quasi_identifier",
        "visit.disease": "sensitive",
        "visit.tags": "insensitive",
    },
    "missing": "category",
    "privacy": {
        "k": 4,
        "unit": "person.id",
        "l_diversity": {"attribute": "visit.disease", "l": 2},
    },
    "execution": {"seed": 2**61 + 5},
}


def people(rows: int = 240) -> pa.Table:
    records = [
        {
            "person": {"name": f"P {n}", "id": n // 2, "age": 20 + n * 7 % 40},
            "address": None
            if n % 31 == 0
            else {
                "city": ["Adana", "Bursa", "Konya"][n % 3],
                "geo": None if n % 29 == 0 else {"height": n * 11 % 90 / 2, "secret": n},
                "street": f"Street {n}",
            },
            "visit": {"disease": ["flu", "cold", "gout"][n * n % 3], "tags": ["a", "b"][: n % 3]},
            "counts": [("a", n)],
        }
        for n in range(rows)
    ]
    return pa.Table.from_pylist(records, SCHEMA)


def configuration(path: Path, release: Path, format: str = "parquet", **sections: Any) -> Any:
    document: dict[str, Any] = SECTIONS | sections
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
    wanted = dict.fromkeys(SECTIONS["attributes"], True)
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
        "struct<person:struct<id:bigint,age:int>,"
        "address:struct<city:string,geo:struct<height:double>>,"
        "visit:struct<disease:string,tags:array<string>>>"
    )
