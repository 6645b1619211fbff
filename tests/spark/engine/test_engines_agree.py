"""Both engines make the same release, files and profile, also with a model of another package."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import golden_run
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import by_name
from example_extension import PACKAGE, install, on_the_path
from generated_people import generate_people
from helpers import configuration_file, of_any_run, write_files
from places import REPOSITORY
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.opening import open_files
from anonspark.engine.local.writing import write_orc, write_parquet
from anonspark.engine.parquet_encoding import STAMPED_VERSION, Encoding, nullable, spark_description
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.parquet_files import encoding_of
from anonspark.engine.spark.table import SparkTable
from anonspark.engine.tasks import Batches
from anonspark.pipeline.run import run
from anonspark.profiling.profile import Profile, profile_table
from anonspark.profiling.source import Source, find_source
from anonspark.progress import Progress
from anonspark.verification.audit import audit_release

ATTRIBUTES: dict[str, Any] = golden_run.SECTIONS["attributes"]
OF_UNITS = {"k": 4, "unit": ["city", "sex"], "l_diversity": {"attribute": "diagnosis", "l": 3}}

# What a value is, both engines ask the same functions: these are for the ways that rows take. More
# models, criteria and styles are run on the engine without Java in tests/releases.
CASES: dict[str, dict[str, Any]] = {
    "smondrian": {
        "model": {
            "name": "smondrian",
            "split": "relaxed",
            "span": "cell",
            "suppression_limit": 0.05,
        },
        "attributes": {
            **ATTRIBUTES,
            "birth_date": {"role": "quasi_identifier", "range": ["1850-01-01", "2030-12-31"]},
            "body_mass_index": {"role": "quasi_identifier", "range": [5, 99.5]},
        },
        "missing": "drop",
        "output": {"style": "bounds"},
    },
    "criteria of units": {
        "model": {"name": "su-mondrian", "rho": 2, "separation": "always"},
        # City and sex stand for a person who has several records.
        "attributes": {
            **ATTRIBUTES,
            "city": "insensitive",
            "sex": "insensitive",
            "income": "sensitive",
        },
        "privacy": {
            "k": 4,
            "unit": ["city", "sex"],
            "l_diversity": [
                {"attribute": "diagnosis", "l": 3},
                {"attribute": "income", "l": 2},
            ],
        },
    },
    "refined groups": {
        "model": {"name": "su-mondrian", "refine": 2},
        "attributes": {
            **ATTRIBUTES,
            "birth_date": {"role": "quasi_identifier", "hierarchy": {"calendar": ["decade"]}},
            "city": "insensitive",
            "sex": "insensitive",
        },
        "privacy": OF_UNITS,
    },
    "microaggregation, at night": {
        "model": {"name": "microaggregation", "suppression_limit": 0.1},
        "output": {"style": "mean"},
    },
    "full-domain of units, at night": {
        "model": {"name": "full-domain", "driver_tuples": 1000},
        "attributes": {
            "postal_code": {"role": "quasi_identifier", "hierarchy": {"keep": [4, 2]}},
            "birth_date": {"role": "quasi_identifier", "hierarchy": {"calendar": ["decade"]}},
            "body_mass_index": {
                "role": "quasi_identifier",
                "hierarchy": {"intervals": [5, 20], "top": 35},
            },
            "diagnosis": "sensitive",
            "city": "insensitive",
            "sex": "insensitive",
        },
        "privacy": OF_UNITS,
    },
}


@pytest.fixture(scope="module")
def people(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    generate_people(spark_session, 900, partitions=3).write.parquet(str(folder / "input.parquet"))
    return folder / "input.parquet"


@pytest.fixture(scope="module")
def shuffled(people: Path) -> Path:
    """The same records out of order, in more files."""
    return write_files(pq.read_table(people), people.parent / "shuffled", 7, shuffled=True)


def released(
    engine: Engine, folder: Path, people: Path, sections: dict[str, Any], task_rows: int = 250
) -> Path:
    """Make a release, and return where it is."""
    folder.mkdir()
    sections = {
        "attributes": ATTRIBUTES,
        "missing": "category",
        # Fewer than there are: the tree begins on the cluster.
        "execution": {"task_rows": task_rows},
        **sections,
        "input": {"path": str(people)},
    }
    run(engine, load_configuration(str(configuration_file(folder, **sections))))
    return folder / "release"


def told(release: Path) -> dict[str, Any]:
    """Return what the manifests of two equal releases have in common."""
    manifest = json.loads((release / "manifest.json").read_text())
    # The configuration names the output.
    del manifest["fingerprints"]["configuration"]
    names = ("fingerprints", "published", "warnings", "privacy")
    found = {name: manifest.get(name) for name in names}
    found["data"] = [one for one in manifest["files"] if one["path"].startswith("data/")]
    return found


def proven(engine: Engine, release: Path, people: Path) -> dict[str, Any]:
    """Return what a proof finds, but for the release's place."""
    style = json.loads((release / "manifest.json").read_text())["configuration"]["output"]["style"]
    # Means hide the regions that originals are matched with.
    original = None if style == "mean" else str(people)
    found = audit_release(engine, str(release), original=original).as_dict()
    return json.loads(json.dumps(found, default=str).replace(str(release), "release"))


@pytest.mark.parametrize("case", by_name(CASES))
def test_releases_and_proofs(
    spark: SparkSession, people: Path, shuffled: Path, tmp_path: Path, case: str
) -> None:
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": SparkEngine(spark)}
    local = released(engines["local"], tmp_path / "local", people, CASES[case])
    other = released(engines["spark"], tmp_path / "spark", shuffled, CASES[case], task_rows=400)
    assert of_any_run(local) == of_any_run(other)
    assert told(local) == told(other)
    expected = proven(engines["local"], other, people)
    assert expected["holds"]
    assert proven(engines["spark"], other, people) == expected


def without_types(profile: Profile) -> dict[str, object]:
    # Spark and Arrow name a type alike, but for what the file itself does not tell.
    told = profile.as_dict()
    return told | {"columns": [{**one, "type": ""} for one in told["columns"]]}


def test_profiles_are_equal(engine: SparkEngine, tmp_path: Path) -> None:
    people = find_source(str(REPOSITORY / "data" / "people.csv"))
    # The same with types, in which the sample is a part of the table.
    typed = tmp_path / "typed.parquet"
    inferred = replace(people, options={**people.options, "inferSchema": "true"})
    rows = pa.table(inferred.open(LocalEngine()).collect())
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 500)]), typed)
    cases: list[tuple[Source, int]] = [(people, 200_000), (find_source(str(typed)), 1000)]
    for source, sample in cases:
        found = [
            profile_table(one, source, Progress(), sample=sample, show_values=True)
            for one in (LocalEngine(), engine)
        ]
        assert without_types(found[0]) == without_types(found[1])
        assert found[0].sample_rows == min(sample, found[0].rows)


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


def test_both_engines_make_and_prove_the_same(spark: SparkSession, tmp_path: Path) -> None:
    installed = install(tmp_path / "example")
    archive = shutil.make_archive(str(tmp_path / "anonspark_example"), "zip", installed)
    random = np.random.default_rng(3)
    table = {
        "age": random.integers(0, 90, 2000),
        "income": random.integers(0, 500, 2000),
        "disease": random.choice(list("abcdef"), 2000, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
    }
    path = write_files(pa.table(table), tmp_path / "input.parquet", 3)
    engines: list[Engine] = [LocalEngine(), SparkEngine(spark)]
    releases, proofs = [], []
    with on_the_path(installed):
        # It lies on the path of Python's workers alone when they are asked for it.
        spark.sparkContext.addPyFile(archive)
        for engine in engines:
            folder = tmp_path / type(engine).__name__
            folder.mkdir()
            sections = {
                "input": {"path": str(path)},
                "attributes": {
                    "age": "quasi_identifier",
                    "income": "quasi_identifier",
                    "disease": "sensitive",
                },
                "privacy": {"k": 5, "two_largest": 0.7},
                "model": {"name": "sorted", "attribute": 1},
                # Fewer than there are: the tree begins on the cluster.
                "execution": {"task_rows": 400},
            }
            run(engine, load_configuration(str(configuration_file(folder, **sections))))
            releases.append(folder / "release")
            manifest = json.loads((releases[-1] / "manifest.json").read_text())
            assert set(manifest["versions"]["extensions"].values()) == {PACKAGE}
        for engine in engines:
            found = audit_release(engine, str(releases[1]), original=str(path))
            assert found.holds
            # Sums of the loss are rounded in another order.
            proofs.append(found.as_dict() | {"loss": None})
    assert of_any_run(releases[0]) == of_any_run(releases[1])
    assert proofs[0] == proofs[1]
