"""What is told of the input's values is the same, whichever engine reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import configuration_file
from pyspark.sql import SparkSession

from anonspark.config import load_configuration
from anonspark.core.columns import quasi_identifier_column
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.input import SparkInput
from anonspark.engine.values.judging import Found, judge
from anonspark.engine.values.planning import plan_columns

_NAN, _INFINITE = float("nan"), float("inf")
_NUMBERS = ["1", " 2.50", "1e3", "0x1p3", "nan", "Infinity", "?", "", "one", "3f", None]
_TIMES = ["2024-1-5", "2024-01-05 01:02:03 EST", "2024", "?", "12", "0001-01-01", "soon"]

COLUMNS: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "byte": (pa.int8(), [-128, 127, 0], {}),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 5], {}),
    "long as text": (pa.int64(), [-5, 17], {"type": "text"}),
    "float": (pa.float32(), [0.5, _NAN, -1.5, 1e-3], {}),
    "double": (pa.float64(), [_INFINITE, _NAN, 0.25], {}),
    "double as text": (pa.float64(), [17.0, 0.5, _NAN, 1e7, -0.0], {"type": "text"}),
    "decimal": (pa.decimal128(38, 19), [Decimal("1234567890123456789.0123456789012345678")], {}),
    "few places": (pa.decimal128(20, 10), [Decimal("0.0000001"), Decimal(0), Decimal(100)], {}),
    "flag": (pa.bool_(), [True, False], {}),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)], {}),
    "moment": (pa.timestamp("us", "UTC"), [datetime(1582, 1, 1, 0, 0, 0, 7, UTC)], {}),
    "clock": (pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999999)], {}),
    "text": (pa.string(), ["a", " ?", "12", "b ", " b"], {}),
    "declared text": (pa.string(), ["a", "12"], {"type": "text"}),
    "number": (pa.string(), _NUMBERS, {"type": "number"}),
    "date": (pa.string(), _TIMES, {"type": "date"}),
    "timestamp": (pa.string(), _TIMES, {"type": "timestamp"}),
    "boolean": (pa.string(), ["t", "No", "1", "?", "maybe"], {"type": "boolean"}),
}


@pytest.mark.parametrize("missing", ["drop", "category"])
def test_all_types_and_declarations(spark: SparkSession, tmp_path: Path, missing: str) -> None:
    size = 3 * max(len(values) for _, values, _ in COLUMNS.values())
    columns = []
    for data_type, values, _ in COLUMNS.values():
        # Each value, in rows of which few have a null.
        padded = [*values * size][:size]
        columns.append(pa.array([*padded, None], data_type))
    table = pa.table(columns, list(COLUMNS))
    path = tmp_path / "input.parquet"
    pq.write_table(table, path)
    attributes = {
        name: {"role": "quasi_identifier", **declared} for name, (_, _, declared) in COLUMNS.items()
    }
    file = configuration_file(tmp_path, attributes=attributes, missing=missing)
    configuration = load_configuration(file)
    frame = spark.read.parquet(str(path)).coalesce(1)
    read = SparkInput.of(SparkEngine(spark), frame, configuration, {})

    plans = plan_columns(table.schema, configuration, {})
    assert [plan.column for plan in plans] == list(read.columns)
    markers = configuration.input.missing_markers
    (batch,) = table.combine_chunks().to_batches()
    judged = [judge(plan, batch.column(plan.column.name), markers) for plan in plans]
    kept = np.ones(len(batch), bool)
    if missing == "drop":
        for one in judged:
            kept &= ~one.missing
    found = Found()
    found.add(plans, judged, kept)
    assert found.as_dict(plans) == dict(read.inspect())

    of_spark = read.kept.select([quasi_identifier_column(i) for i in range(len(plans))]).collect()
    for index, (plan, one) in enumerate(zip(plans, judged, strict=True)):
        values = of_spark.column(index).combine_chunks()
        assert str(values) == str(one.values.filter(pa.array(kept))), plan.column.name
