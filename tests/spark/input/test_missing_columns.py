"""Columns that some files of a table lack, where the configuration asks for nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import Cli
from helpers import configuration_file, published, summary, write_table
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from anonspark.config import parse_configuration
from anonspark.engine.spark.reading import open_input
from anonspark.engine.spark.tables import open_table
from anonspark.errors import DataError

ATTRIBUTES = {
    "age": "quasi_identifier",
    "year": "quasi_identifier",
    "disease": "sensitive",
    "name": "identifier",
}


def people(first: int, rows: int = 20) -> dict[str, Any]:
    return {
        "AGE" if first == 40 else "age": [20 + number for number in range(first, first + rows)],
        "disease": [f"d{number % 3}" for number in range(rows)],
        "name": [f"N{number}" for number in range(rows)],
    }


@pytest.fixture(params=["parquet", "orc"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a table in folders by year; the first file lacks a column, the last a letter case."""
    folder = tmp_path / f"input-{request.param}"
    for place, year in enumerate((2024, 2025, 2026)):
        columns = people(20 * place)
        if year == 2024:
            del columns["disease"], columns["name"]
        file = folder / f"year={year}" / "month=1" / f"a.{request.param}"
        write_table(file, pa.table(columns), request.param)
    return folder


@pytest.mark.usefixtures("spark")
def test_nulls_that_are_asked_for(tmp_path: Path, folder: Path, cli: Cli) -> None:
    options: dict[str, Any] = {"path": str(folder), "format": folder.name.rpartition("-")[2]}
    word = {**options, "missing_columns": "null"}
    path = configuration_file(tmp_path, input=word, attributes=ATTRIBUTES)
    cli.ends(0, "check", path)
    refused = cli.ends(3, "check", path, "--set", "input.missing_columns=error")
    for column in ("disease", "name"):
        assert f"month=1/a.{options['format']} lacks the column '{column}'" in refused.err
    if options["format"] == "orc":
        return  # test_files_that_differ reads them; a run knows no format.
    # Without quotes YAML has no word there, which means the same.
    nothing = {**options, "missing_columns": None}
    path = configuration_file(tmp_path, input=nothing, attributes=ATTRIBUTES)
    cli.ends(0, "run", path)
    table = published(tmp_path / "release")
    assert table.num_rows == summary(tmp_path / "release")["rows_published"] == 60
    assert table.column("disease").null_count == 20
    assert table.column("age").null_count == 0
    cli.ends(0, "verify", tmp_path / "release", "--original", folder)


def test_no_job_and_one_footer_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """Files are asked by the driver; Spark's own look at one of them is its only job."""
    folder = tmp_path / "many"
    for place in range(40):
        columns = people(0) | {"year": [2026] * 20}
        if place == 27:
            del columns["disease"]
        write_table(folder / f"{place:02}.parquet", columns)
    document = {
        "input": {"path": str(folder), "missing_columns": "null"},
        "attributes": ATTRIBUTES,
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "release")},
    }
    context = spark.sparkContext
    context.setJobGroup("opening", "opening")
    try:
        table = open_input(spark, parse_configuration(document)).content
    finally:
        context._jsc.clearJobGroup()
    assert len(context.statusTracker().getJobIdsForGroup("opening")) <= 1
    assert isinstance(table, DataFrame)
    assert table.filter("disease IS NULL").count() == 20


@pytest.mark.parametrize("data_format", ["parquet", "orc"])
def test_spark_is_not_asked_for_the_columns_of_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_format: str
) -> None:
    # Its listener would print an error besides.
    monkeypatch.setattr(DataFrameReader, "load", lambda *_, **__: pytest.fail("Spark was asked"))
    (tmp_path / "input").mkdir()
    (tmp_path / "input/_SUCCESS").touch()
    with pytest.raises(DataError, match="no file has columns"):
        open_table(spark, [str(tmp_path / "input")], data_format, {}, path_key="input.path")
