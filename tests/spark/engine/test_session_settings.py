"""One release, whatever the session is set to, and a session that is left as it was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import command, configuration_file, write_table
from places import REPOSITORY
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import anonspark
from anonspark.engine.spark.arrow import collect_arrow
from anonspark.engine.spark.java import find_java
from anonspark.engine.spark.settings import SQL_SETTINGS
from anonspark.errors import DataError

ROWS = 150

# Together they have every setting that was found to matter, each in a value that is not ours. None
# has the same value in both: where it mattered, their releases would differ.
SETTINGS: dict[str, dict[str, str]] = {
    "tokyo": {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.retainGroupColumns": "false",
        "spark.sql.parquet.fieldId.read.enabled": "true",
    },
    "legacy": {
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.legacy.charVarcharAsString": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.sql.execution.arrow.pyspark.enabled": "false",
    },
}

CONFIG: dict[str, Any] = {
    "attributes": {
        "age": "quasi_identifier",
        "weight": "quasi_identifier",
        "share": "quasi_identifier",
        "key": "quasi_identifier",
        "born": "quasi_identifier",
        "seen": "quasi_identifier",
        "local": "quasi_identifier",
        "flag": "quasi_identifier",
        "city": "quasi_identifier",
        "told": {"role": "quasi_identifier", "type": "timestamp"},
        "rate": {"role": "quasi_identifier", "type": "text"},
        "result": "sensitive",
        "at": "insensitive",
        "notes": "insensitive",
        "name": "identifier",
    },
    "missing": "category",
    "privacy": {"k": 5, "l_diversity": {"attribute": "result", "l": 2}},
    "model": {"name": "smondrian"},
}


def table() -> pa.Table:
    """Make values that settings could change: times that Tokyo's clocks never showed, old days."""
    random = np.random.default_rng(5)
    numbers = random.integers(0, 1000, (ROWS, 12)).tolist()
    none = [place % 17 == 3 for place in range(ROWS)]
    skipped = datetime(1948, 5, 2, 0, 30)  # in Tokyo, where clocks were put forward at midnight
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "age": ([row[0] % 90 for row in numbers], pa.int32()),
        "weight": ([row[1] / 7 for row in numbers], pa.float64()),
        "share": ([Decimal(row[2]).scaleb(-18) for row in numbers], pa.decimal128(38, 18)),
        "key": ([Decimal(10**9 + row[3]) for row in numbers], pa.decimal128(12, 0)),
        "born": ([date(1500, 1, 1) + timedelta(days=97 * row[4]) for row in numbers], pa.date32()),
        "seen": (
            [datetime(1850, 1, 1, tzinfo=UTC) + timedelta(hours=1411 * row[5]) for row in numbers],
            pa.timestamp("us", "UTC"),
        ),
        "local": (
            [skipped + timedelta(microseconds=row[6] * row[6]) for row in numbers],
            pa.timestamp("us"),
        ),
        "flag": ([row[7] % 2 == 0 for row in numbers], pa.bool_()),
        "city": (
            [("Zürich", "東京", "ﬁ", "b", "B", "😀")[row[8] % 6] for row in numbers],
            pa.string(),
        ),
        "told": ([f"2021-03-{1 + row[9] % 28:02} 02:30:00" for row in numbers], pa.string()),
        "rate": ([Decimal(row[10] % 9).scaleb(-8) for row in numbers], pa.decimal128(20, 10)),
        "result": (
            [skipped + timedelta(minutes=10 * (row[11] % 5)) for row in numbers],
            pa.timestamp("us"),
        ),
        "at": (
            [datetime(1600, 2, 29, tzinfo=UTC) + timedelta(microseconds=row[0]) for row in numbers],
            pa.timestamp("us", "UTC"),
        ),
        "notes": ([["é", str(row[1])] for row in numbers], pa.list_(pa.string())),
        "name": ([f"N{row[2]}" for row in numbers], pa.string()),
    }
    return pa.table(
        {
            name: pa.array(
                [
                    None if missing and (place + len(name)) % 3 else value
                    for place, (value, missing) in enumerate(zip(values, none, strict=True))
                ],
                data_type,
            )
            for name, (values, data_type) in columns.items()
        }
    )


def settings_of(spark: SparkSession) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def contents_of(release: anonspark.Release) -> dict[str, Any]:
    """Return what a release holds, as its DataFrames tell it with the session's own settings."""
    tables = ("data", "classes", "attributes", "privacy", "risk")
    return {
        "fingerprints": release.manifest["fingerprints"]["output"],
        "schema": release.data.schema,
        "rows": {
            name: sorted(
                str(row.asDict() | {"run_id": None}) for row in getattr(release, name).collect()
            )
            for name in tables
        },
    }


@pytest.fixture(scope="module")
def given(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Hold the table in memory, where no setting of a data source reaches it."""
    path = write_table(tmp_path_factory.mktemp("given") / "input.parquet", table())
    frame = spark_session.read.parquet(str(path))
    return spark_session.createDataFrame(frame.collect(), frame.schema)


@pytest.fixture(scope="module")
def expected() -> str:
    """Return the fingerprint of the engine without Java, which knows no settings."""
    with anonspark.anonymize(table(), CONFIG) as release:
        return str(release.manifest["fingerprints"]["output"])


@contextmanager
def session_with(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set a session as somebody's, and require that it is left so."""
    before = settings_of(spark)
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        found = settings_of(spark)
        yield
        assert settings_of(spark) == found
    finally:
        for key in settings_of(spark).keys() - before.keys():
            spark.conf.unset(key)
        for key in before.keys() & {*settings, *SQL_SETTINGS}:
            spark.conf.set(key, before[key])


@pytest.mark.system
def test_one_release_in_every_session(spark: SparkSession, given: DataFrame, expected: str) -> None:
    found = {}
    for name, settings in SETTINGS.items():
        with session_with(spark, settings), anonspark.anonymize(given, CONFIG) as release:
            found[name] = contents_of(release)
            if name == "tokyo":
                assert release.verify(original=given).failures == []
            if name == "legacy":
                assert anonspark.verify(release.data, CONFIG).failures == []
    assert found["tokyo"] == found["legacy"]
    assert found["tokyo"]["fingerprints"] == expected


def test_settings_are_put_back_after_errors(spark: SparkSession, given: DataFrame) -> None:
    lost = CONFIG | {"attributes": CONFIG["attributes"] | {"lost": "sensitive"}}
    with session_with(spark, SETTINGS["tokyo"]), pytest.raises(DataError, match="no such column"):
        anonspark.anonymize(given, lost)
    with session_with(spark, SETTINGS["legacy"]), pytest.raises(DataError, match=r"privacy\.k"):
        anonspark.anonymize(given, CONFIG | {"privacy": {"k": ROWS + 1}})
    with session_with(spark, SETTINGS["legacy"]), pytest.raises(DataError, match="lacks the"):
        anonspark.verify(given, quasi_identifiers=["lost"])
    with session_with(spark, {}), pytest.raises(DataError, match="no such column"):
        anonspark.anonymize(given, lost)


def test_a_table_means_what_it_means_in_its_session(spark: SparkSession, tmp_path: Path) -> None:
    """What is read and computed by the session's own settings is not read anew by ours."""
    lines = [
        f"{place % 40 or 'unknown'},2026-01-{1 + place % 28:02} 00:30:00" for place in range(90)
    ]
    (tmp_path / "input.csv").write_text("\n".join(lines))
    theirs = {"spark.sql.session.timeZone": "+14:00", "spark.sql.ansi.enabled": "false"}
    config = {
        "attributes": {"age": "quasi_identifier", "seen": "quasi_identifier"},
        "missing": "category",
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
    }
    with session_with(spark, theirs):
        read = spark.read.schema("age string, seen timestamp").csv(str(tmp_path / "input.csv"))
        computed = read.select(sf.col("age").cast("int").alias("age"), "seen")
        held = collect_arrow(computed)
        assert held["age"].null_count == 3
        with anonspark.anonymize(computed, config) as release:
            found = release.manifest["fingerprints"]["output"]
            assert release.verify(original=computed).failures == []
    with anonspark.anonymize(held, config) as of_values:
        assert of_values.manifest["fingerprints"]["output"] == found
    # An error of theirs is told as theirs, and quotes no value.
    with session_with(spark, {**theirs, "spark.sql.ansi.enabled": "true"}):
        strict = read.select(sf.col("age").cast("int").alias("age"), "seen")
        with pytest.raises(DataError, match=r"the given DataFrame: .*CAST_INVALID_INPUT") as told:
            anonspark.anonymize(strict, config)
        assert "unknown" not in str(told.value)


@pytest.mark.system
def test_one_release_through_spark_submit(
    tmp_path: Path,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    quick_start: dict[str, str],
) -> None:
    """The settings of a cluster, and the locale, time zone and hash seed of the process."""
    write_table(tmp_path / "input.parquet", table())
    path = configuration_file(tmp_path, **CONFIG)
    java = find_java().home
    environment = quick_start | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "Asia/Tokyo",
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
    }
    if java is not None:
        environment["JAVA_HOME"] = str(java)
    settings = dict(SETTINGS["tokyo"])
    # These say what a file means, which the table is read from here; ours hold.
    settings |= {key: value for key, value in SETTINGS["legacy"].items() if "timeZone" not in key}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    script = REPOSITORY / "jobs" / "anonymize.py"
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "spark-submit"),
            "--master",
            "local[2]",
            *options,
            script,
            path,
            "--no-progress",
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["fingerprints"]["output"] == expected
    assert command(capsys, "verify", tmp_path / "release").code == 0
