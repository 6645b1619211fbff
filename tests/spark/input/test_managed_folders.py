"""Folders of Delta Lake and its like on Spark, by the file system of Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import configuration_file, write_table
from pyspark.sql import SparkSession

from anonspark.config.loading import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import ConfigurationError
from anonspark.pipeline.plan import check_input


@pytest.mark.parametrize("path", ["t", "file:{}/t", "t/*.parquet", "t/part-0.parquet", "t/.."])
def test_they_are_not_read_as_plain_files(spark: SparkSession, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "lake"
    write_table(folder / "t" / "part-0.parquet", {"age": [20, 30] * 10})
    (folder / "t" / "_delta_log").mkdir()
    (folder / "t" / "_delta_log" / "00000000000000000000.json").write_text("{}")
    given = path.format(folder) if ":" in path else f"{folder}/{path}"
    for said in ({}, {"format": "parquet"}):
        configuration = load_configuration(
            configuration_file(
                tmp_path, input={"path": given, **said}, attributes={"age": "quasi_identifier"}
            )
        )
        with pytest.raises(ConfigurationError, match=r"set input\.format to delta"):
            check_input(SparkEngine(spark), configuration)
