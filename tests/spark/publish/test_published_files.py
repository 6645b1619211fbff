"""The files of a release: what is listed of them, and what they tell of how they came about."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from helpers import command, configuration_file, metrics, summary, write_table

from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.parquet_files import encoding_of
from anonspark.errors import ConfigurationError
from anonspark.layers.publish import file_assignment, writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


def people(rows: int) -> pa.Table:
    random = np.random.default_rng(11)
    return pa.table(
        {
            "age": random.integers(18, 90, rows),
            "income": random.lognormal(10, 1, rows).astype(np.int64),
            "disease": random.choice(["asthma", "fracture", "influenza", "migraine"], rows),
        }
    )


def write_parts(path: Path, table: pa.Table, parts: int) -> Path:
    """Write a table as so many files, its records in another order for each number of files."""
    rows = np.random.default_rng(parts).permutation(table.num_rows)
    for number, own in enumerate(np.array_split(rows, parts)):
        write_table(path / f"{number}.parquet", table.take(own))
    return path


def data_files(release: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((release / "data").glob("*.parquet"))}


def require_listed(release: Path) -> list[dict[str, Any]]:
    """Compare the manifest's list with what is there; hidden checksums are the file system's."""
    listed: list[dict[str, Any]] = json.loads((release / "manifest.json").read_text())["files"]
    expected = []
    for path in sorted(release.rglob("*")):
        name = str(path.relative_to(release))
        if path.is_dir() or path.suffix == ".crc" or name == "manifest.json":
            continue
        table = path.suffix in (".parquet", ".orc")
        reading = pq.read_table if path.suffix == ".parquet" else pyarrow.orc.read_table
        expected.append(
            {
                "path": name,
                "bytes": path.stat().st_size,
                "rows": reading(path).num_rows if table else None,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
    assert listed == sorted(expected, key=lambda one: one["path"])
    return listed


ATTRIBUTES = {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"}


def deviations(counts: np.ndarray) -> float:
    """Return how far a table of counts is from independence: chi-square, standardized."""
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    found = ((counts - expected) ** 2 / expected).sum()
    return float((found - freedom) / np.sqrt(2 * freedom))


def test_files_and_rounds_are_independent(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a file nor a place in it tells the round; and another division of the work, by one
    process, makes the same files, byte by byte.
    """
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 500)
    table = people(5_000)
    for name, engine, parts, task_rows in (
        ("release", "spark", 6, 400),
        ("again", "local", 2, 10**9),
    ):
        configuration = configuration_file(
            tmp_path,
            input={"path": str(write_parts(tmp_path / f"input-{name}", table, parts))},
            attributes=ATTRIBUTES,
            model={"name": "su-mondrian", "rho": 4, "separation": "always"},
            output={"path": str(tmp_path / name), "style": "bounds"},
            execution={"engine": engine, "task_rows": task_rows, "seed": 29},
        )
        outcome = command(capsys, "run", configuration, "--no-progress")
        assert outcome.code == 0, outcome.err
    release = tmp_path / "release"
    files = data_files(release)
    assert list(files) == [f"part-{number:05d}.parquet" for number in range(10)]
    assert files == data_files(tmp_path / "again")
    require_listed(release)

    bounds = ("age_min", "age_max", "income_min", "income_max")
    classes = metrics(release, "classes")
    round_of = {tuple(row[name] for name in bounds): row["round"] for row in classes}
    rounds = len(set(round_of.values()))
    # Almost all are told apart by their bounds.
    assert rounds >= 3
    assert len(round_of) > 0.95 * len(classes)
    in_order: list[list[int]] = []
    for name in files:
        rows = pq.read_table(release / "data" / name).select(bounds).to_pylist()
        tuples = [tuple(row.values()) for row in rows]
        # Records of a class stand together.
        own = [one for one, before in zip(tuples, [None, *tuples], strict=False) if one != before]
        assert len(own) < 1.05 * len(set(own))
        in_order.append([round_of[one] for one in own])
    counts = np.array([np.bincount(own, minlength=rounds + 1)[1:] for own in in_order])
    assert deviations(counts) < 4
    assert (counts[:, 1:] > 0).any(axis=1).all()
    # The place in a file, in tenths, and the class before tell nothing either.
    tenths = np.zeros((10, rounds))
    pairs = np.zeros((rounds, rounds))
    for own in in_order:
        for place, number in enumerate(own):
            tenths[10 * place // len(own), number - 1] += 1
        for number, following in pairwise(own):
            pairs[number - 1, following - 1] += 1
    assert deviations(tenths) < 4
    assert deviations(pairs) < 4
    identifiers = [row["class_id"] for row in classes]
    assert identifiers == sorted(identifiers)


def test_large_classes_are_shared_out(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few classes of many records that are equal in everything published; suppressed ones, too."""
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 500)
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "age": random.integers(0, 100, 6_000),
            "sex": random.choice(["f", "m"], 6_000, p=[0.9, 0.1]),
            "disease": random.choice(["asthma", "fracture", "rare"], 6_000, p=[0.9, 0.09, 0.01]),
        }
    )
    intervals = {"intervals": [20, 100], "origin": 0}
    sexes = tmp_path / "sexes.csv"
    sexes.write_text("f,*\nm,*\n")
    for name, parts in (("release", 6), ("again", 2)):
        configuration = configuration_file(
            tmp_path,
            input={"path": str(write_parts(tmp_path / f"input-{name}", table, parts))},
            attributes={
                "age": {"role": "quasi_identifier", "hierarchy": intervals},
                "sex": {"role": "quasi_identifier", "hierarchy": str(sexes)},
                "disease": "sensitive",
            },
            privacy={"k": 150},
            model={
                "name": "full-domain",
                "levels": [{"age": 1, "sex": 0}],
                "suppression_limit": 1.0,
                "residual": "suppress",
            },
            output={"path": str(tmp_path / name)},
            execution={"engine": "local"},
        )
        outcome = command(capsys, "run", configuration, "--no-progress")
        assert outcome.code == 0, outcome.err
    assert summary(tmp_path / "release")["rows_suppressed"] > 500
    sizes = [
        one["rows"]
        for one in require_listed(tmp_path / "release")
        if one["path"].startswith("data/")
    ]
    assert len(sizes) == 12
    assert 0.5 < min(sizes) / 500 < max(sizes) / 500 < 1.5
    assert data_files(tmp_path / "release") == data_files(tmp_path / "again")


EVERY_TYPE = {
    "byte": "cast(id % 100 AS byte)",
    "short": "cast(id AS short)",
    "whole": "cast(id AS int)",
    "long": "id * 100000000000",
    "real": "cast(if(id % 7 = 0, 'NaN', if(id % 7 = 1, '-0.0', id / 3)) AS float)",
    "double": "cast(if(id % 7 = 0, '-Infinity', id / 3) AS double)",
    "small": "cast(id / 4 AS decimal(9, 2))",
    "middle": "cast(-id / 4 AS decimal(18, 4))",
    "wide": "cast(id / 4 AS decimal(38, 18))",
    "text": "concat('ä€𝄞', id, char(0))",
    "bytes": "cast(concat('ÿ', id) AS binary)",
    "flag": "id % 2 = 0",
    "day": "date_add(date'1500-01-01', cast(id * 100 AS int))",
    "moment": "timestamp_micros(id * 1234567890123 - 20000000000000000)",
    "clock": "cast(timestamp_micros(id * 1234567890123 - 20000000000000000) AS timestamp_ntz)",
    "words": "if(id % 3 = 0, array(), array('a', null, cast(id AS string)))",
    "nested": "named_struct('a b', id, 'deep', array(named_struct('day', date'2020-01-01')))",
}


def parquet_schema(data: Path) -> list[tuple[Any, ...]]:
    """Return how each column is stored."""
    schema = pq.ParquetFile(data / "part-00000.parquet").schema
    leaves = [schema.column(place) for place in range(len(schema.names))]
    return [
        (
            leaf.path,
            leaf.physical_type,
            str(leaf.logical_type),
            leaf.max_definition_level,
            leaf.max_repetition_level,
            leaf.length,
        )
        for leaf in leaves
    ]


def test_every_type_as_spark_writes_it(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Encoded by tasks, and by Spark from what it reads there: equal for every reader."""
    monkeypatch.setattr(writing, "_ROW_GROUP_BYTES", 10_000)
    columns = [f"if(id % 10 = 9, null, {made}) AS {name}" for name, made in EVERY_TYPE.items()]
    source = tmp_path / "input"
    table = spark.range(120).selectExpr("id AS age", "concat('t', id % 4) AS town", *columns)
    table.coalesce(2).write.parquet(str(source))
    attributes = {"age": "quasi_identifier", "town": "quasi_identifier"}
    attributes |= dict.fromkeys(EVERY_TYPE, "insensitive")
    release = tmp_path / "by tasks"
    configuration = configuration_file(
        tmp_path,
        input={"path": str(source)},
        attributes=attributes,
        output={"path": str(release), "style": "bounds"},
    )
    outcome = command(capsys, "run", configuration)
    assert outcome.code == 0, outcome.err
    require_listed(release)
    outcome = command(capsys, "verify", release, "--original", source)
    assert outcome.code == 0, outcome.err
    by_tasks, by_spark = release / "data", tmp_path / "by Spark" / "data"
    frame = spark.read.parquet(str(by_tasks))
    frame.coalesce(1).write.parquet(str(by_spark))
    (path,) = by_spark.glob("*.parquet")
    path.rename(by_spark / "part-00000.parquet")
    assert parquet_schema(by_tasks) == parquet_schema(by_spark)
    # In words: numbers may be none.
    assert str(pq.read_table(by_tasks).to_pylist()) == str(pq.read_table(by_spark).to_pylist())
    assert frame.schema == spark.read.parquet(str(by_spark)).schema
    files = [pq.ParquetFile(one / "part-00000.parquet").metadata for one in (by_tasks, by_spark)]
    assert files[0].num_row_groups > 1
    told = [dict(file.metadata) for file in files]
    described = [one.pop(b"org.apache.spark.sql.parquet.row.metadata") for one in told]
    assert told[0].keys() == told[1].keys()
    assert json.loads(described[0]) == json.loads(described[1])


def test_the_codec_of_the_session(spark: SparkSession) -> None:
    schema = pa.schema([("name", pa.string())])
    assert encoding_of(spark, schema).codec == "snappy"
    spark.conf.set("spark.sql.parquet.compression.codec", "ZSTD")
    try:
        assert encoding_of(spark, schema).codec == "zstd"
    finally:
        spark.conf.unset("spark.sql.parquet.compression.codec")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parquet.bloom.filter.enabled", "true"),
        ("parquet.writer.version", "true"),
        ("parquet.crypto.factory.class", "true"),
        ("spark.sql.parquet.compression.codec", "lz4"),
    ],
)
def test_settings_that_the_encoder_does_not_know_are_refused_before_any_work(
    engine: SparkEngine, key: str, value: str
) -> None:
    engine.require_format("parquet")
    engine.session.conf.set(key, value)
    try:
        with pytest.raises(ConfigurationError, match=f"{key}: releases are encoded"):
            engine.require_format("orc")
    finally:
        engine.session.conf.unset(key)
