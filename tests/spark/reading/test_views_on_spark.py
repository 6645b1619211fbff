"""The views for Spark, run in Spark on a release of every style."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from read_releases import RELEASES, write_releases

import anonspark


def test_the_view_has_the_columns_of_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    """Names, order and values; and a count by hand is that of the reader."""
    write_releases(tmp_path)
    for name in RELEASES:
        release = tmp_path / name
        text = (release / "views.spark.sql").read_text()
        spark.sql(text.rstrip().rstrip(";").replace("`data`", f"`{release}/data`"))
        expected = anonspark.read(str(release)).to_arrow()
        frame = spark.table("records")
        assert frame.columns == expected.column_names
        rows = frame.collect()
        for place, column in enumerate(expected.column_names):
            own = [row[place] for row in rows]
            theirs = expected[column].to_pylist()
            if pa.types.is_list(expected[column].type):
                key = [sorted(map(str, one)) for one in own]
                assert key == [sorted(map(str, one)) for one in theirs], column
            elif column.endswith("_mid") and pa.types.is_floating(expected[column].type):
                assert own == pytest.approx(theirs), column
            else:
                assert own == theirs, column
