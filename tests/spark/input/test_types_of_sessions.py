"""Types that only a session of Spark can have."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

import anonspark
from anonspark.errors import DataError


@pytest.mark.usefixtures("settings_come_back")
def test_negative_scales_are_refused(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.legacy.allowNegativeScaleOfDecimal", "true")
    hundreds = sf.col("id").cast("decimal(10,0)").cast(st.DecimalType(5, -2))
    table = spark.range(20).select("id", hundreds.alias("x"), hundreds.alias("pay"))
    config = {"attributes": {"x": "quasi_identifier"}, "privacy": {"k": 2}}
    with pytest.raises(DataError, match=r"x: found decimal\(5,-2\), which cannot be read"):
        anonspark.anonymize(table, config)
    config["attributes"] = {"id": "quasi_identifier", "pay": "insensitive"}
    with pytest.raises(DataError, match=r"pay: found decimal\(5,-2\), which cannot be read"):
        anonspark.anonymize(table, config)
