"""What a release tells of the records that it leaves out: their sensitive values, as texts."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from forgeries import read_table, save_table
from helpers import configuration_file, write_table
from release_folders import list_files

MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)

# Of each attribute the values of two records, and their texts in order.
VALUES = {
    "score": (pa.float64(), [float("nan"), 1e7], ["1.0E7", "NaN"]),
    # -0.0 is the same value.
    "share": (pa.float32(), [-0.0, 0.1], ["0.0", "0.1"]),
    "price": (pa.decimal128(9, 2), [Decimal("0.00"), None], [None, "0.00"]),
    "visits": (pa.int16(), [-3, 12], ["-3", "12"]),
    "smokes": (pa.bool_(), [True, False], ["false", "true"]),
    "since": (pa.date32(), [datetime.date(1969, 12, 31), None], [None, "-1"]),
    "seen": (
        pa.timestamp("us", "UTC"),
        [MOMENT, MOMENT.replace(year=2020)],
        ["-1", "1609459199999999"],
    ),
    "called": (pa.timestamp("us"), [MOMENT, MOMENT], ["-1"]),
    "note": (pa.string(), [" flü", ""], ["", " flü"]),
}


def test_values_are_told_as_texts(tmp_path: Path, cli: Cli) -> None:
    columns = {
        name: pa.array(values * 21, own_type) for name, (own_type, values, _) in VALUES.items()
    }
    write_table(tmp_path / "input.parquet", pa.table({"age": [30] * 40 + [89, 90], **columns}))
    close = [{"attribute": name, "t": 1.0, "distance": "equal"} for name in VALUES]
    path = configuration_file(
        tmp_path,
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10]}},
            **dict.fromkeys(VALUES, "sensitive"),
        },
        model={"name": "full-domain", "maximum_levels": {"age": 0}, "suppression_limit": 1.0},
        privacy={"k": 2, "t_closeness": close},
    )
    cli.ends(0, "run", path, "--no-progress")
    (file,) = (tmp_path / "release" / "left_out").glob("*.parquet")
    assert file.name == "part-00000.parquet"
    told = pq.read_table(file)
    assert told.schema.names == ["attribute", "value", "records"]
    assert [str(field.type) for field in told.schema] == ["string", "string", "int64"]
    expected = [
        {"attribute": name, "value": text, "records": 2 // len(texts)}
        for name, (_, _, texts) in sorted(VALUES.items())
        for text in texts
    ]
    assert told.to_pylist() == expected
    cli.ends(0, "verify", tmp_path / "release")


@pytest.mark.parametrize("name", ["attribute", "value", "records"])
def test_columns_that_it_has_not_are_refused(name: str, tmp_path: Path, cli: Cli) -> None:
    """It ended with an error of ours."""
    write_table(tmp_path / "input.parquet", pa.table({"age": [30] * 40 + [89, 90], "x": [1] * 42}))
    path = configuration_file(
        tmp_path,
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10]}},
            "x": "sensitive",
        },
        model={"name": "full-domain", "maximum_levels": {"age": 0}, "suppression_limit": 1.0},
        privacy={"k": 2, "t_closeness": {"attribute": "x", "t": 1.0}},
    )
    cli.ends(0, "run", path, "--no-progress")
    told = read_table(tmp_path / "release", "left_out")
    save_table(tmp_path / "release", "left_out", told.drop_columns([name]))
    list_files(tmp_path / "release")
    cli.ends(4, "verify", tmp_path / "release", says="found other columns or types than those of")
