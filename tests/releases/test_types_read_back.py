"""Releases of every type of column: what the labels say is read back as what was published.

Of each type: a run publishes, `verify --original` proves the release true, and the classes cover
the table itself as a population.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from helpers import command, configuration_file, local_table, write_table

from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import PublishedAttribute
from anonspark.verification.attacks.presence import count_regions

ROWS = 180
# Classes are tight, for every column is in the order of this one.
PLACES = np.sort(np.random.default_rng(15).integers(0, 40, ROWS)) - 20
MISSING = np.arange(ROWS) % 19 == 0

DECIMALS = (
    *((1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (9, 0), (18, 0), (18, 18), (19, 0), (28, 10)),
    *((38, 0), (38, 18), (38, 38)),
)


def decimals(digits: int, scale: int) -> pa.Array:
    """Return decimals from the least to the largest of a type, as far as 18 digits tell them."""
    step = max(1, (10 ** min(digits, 18) - 1) // 20)
    units = (int(place) // (3 if digits == 1 else 1) * step for place in PLACES)
    return pa.array([Decimal(one).scaleb(-scale) for one in units], pa.decimal128(digits, scale))


def decimal_columns() -> dict[str, pa.Array]:
    return {f"decimal_{digits}_{scale}": decimals(digits, scale) for digits, scale in DECIMALS}


def other_columns() -> dict[str, pa.Array]:
    days = [int(place) + 20 for place in PLACES]
    moments = [datetime(1, 1, 1) + timedelta(days=3000 * day, microseconds=day) for day in days]
    return {
        "byte": pa.array((PLACES * 6).astype(np.int8)),
        "short": pa.array((PLACES * 1600).astype(np.int16)),
        "int": pa.array((PLACES * 107_000_000).astype(np.int32)),
        "long": pa.array([2**62 + int(place) for place in PLACES]),
        "least long": pa.array([-(2**63) + day for day in days]),
        "float": pa.array((10.0 ** (PLACES * 1.5)).astype(np.float32)),
        "double": pa.array(-(10.0 ** (-PLACES * 15.0))),
        "denormal": pa.array(PLACES * 5e-324),
        "zero": pa.array(np.where(PLACES % 2, -0.0, 0.0)),
        "boolean": pa.array(PLACES > 3),
        "date": pa.array([one.date() for one in moments]),
        "timestamp": pa.array([one.replace(tzinfo=UTC) for one in moments]),
        "timestamp_ntz": pa.array(moments),
        "far date": pa.array((PLACES * 200_000).astype(np.int32)).cast(pa.date32()),
        "far timestamp": pa.array(PLACES * 10**16).cast(pa.timestamp("us", "UTC")),
        "far timestamp_ntz": pa.array(PLACES * 10**16).cast(pa.timestamp("us")),
        "gap": pa.array([datetime(1582, 10, 1) + timedelta(day) for day in days]),
        "text": pa.array([["01", "1", "1.0", "1e0", " 1", "NaN", "{1}"][day // 6] for day in days]),
    }  # fmt: skip


def masked(columns: dict[str, pa.Array]) -> pa.Table:
    mask = pa.array(MISSING)
    return pa.table(
        {name: pc.if_else(mask, pa.scalar(None, one.type), one) for name, one in columns.items()}
    )


def publish_and_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: pa.Table, **sections: Any
) -> dict[str, Any]:
    """Publish a table, and return what `verify` finds with it as original and population."""
    path = str(write_table(tmp_path / "input.parquet", table.append_column(
        "sickness", pa.array([f"S{place % 5}" for place in range(ROWS)])
    )))  # fmt: skip
    configured = configuration_file(tmp_path, **{"privacy": {"k": 4}, **sections})
    outcome = command(capsys, "run", configured)
    assert outcome.code == 0, outcome.err
    same = ("--original", path, "--population", path)
    outcome = command(capsys, "verify", tmp_path / "release", *same, "--json")
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    truth, linkage = found["truthfulness"], found["linkage"]["original"]
    assert truth["matched"] == truth["originals"] == found["rows"]
    assert linkage["unmatched"] == 0
    assert linkage["smallest_candidates"] >= 4
    assert found["classes_not_covered"] == 0
    return found


def roles(names: list[str], **changed: Any) -> dict[str, Any]:
    every = {name: changed.get(name, "quasi_identifier") for name in names}
    return every | {"sickness": "sensitive"}


@pytest.mark.parametrize("columns", [decimal_columns, other_columns])
@pytest.mark.parametrize(("style", "missing"), [("interval", "category"), ("bounds", "drop")])
def test_every_type_is_read_back(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    columns: Any,
    style: str,
    missing: str,
) -> None:
    table = masked(columns())
    text = {"role": "quasi_identifier", "type": "text"}
    found = publish_and_verify(
        tmp_path,
        capsys,
        table,
        attributes=roles(table.column_names, text=text),
        missing=missing,
        output={"style": style},
    )
    # Labels that hold everything would hold it whatever is wrong with them.
    assert found["classes"] > 15


def test_hierarchies_of_decimals_are_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = masked({name: one for name, one in decimal_columns().items() if "_1_" not in name})
    rule = {"role": "quasi_identifier", "hierarchy": {"intervals": [0.25, 5, 1e5]}}
    every: dict[str, Any] = dict.fromkeys(table.column_names, rule)
    for name in ("decimal_5_0", "decimal_5_2", "decimal_38_0"):
        lines = {
            f"{value};up to {place // 6};*"
            for value, place in zip(table[name].to_pylist(), PLACES, strict=True)
            if value is not None
        }
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(sorted(lines)) + "\n")
        every[name] = {"role": "quasi_identifier", "hierarchy": str(path)}
    publish_and_verify(
        tmp_path, capsys, table, attributes=every | {"sickness": "sensitive"}, missing="category"
    )


def test_means_of_decimals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = masked(decimal_columns())
    path = write_table(tmp_path / "input.parquet", table)
    configured = configuration_file(
        tmp_path,
        attributes=dict.fromkeys(table.column_names, "quasi_identifier"),
        missing="category",
        output={"style": "mean"},
    )
    outcome = command(capsys, "run", configured)
    assert outcome.code == 0, outcome.err
    outcome = command(capsys, "verify", tmp_path / "release")
    assert outcome.code == 0, outcome.err
    # They hide what the regions are, which is no fault of the release.
    outcome = command(capsys, "verify", tmp_path / "release", "--original", path)
    assert outcome.code == 2
    assert "'mean' hides the regions" in outcome.err


def test_decimals_are_compared_with_texts_and_integers() -> None:
    own = [PublishedAttribute("x", "decimal", "interval", ("x",), type="decimal128(38, 0)")]
    number = 12345678901234567890123456789012345678
    release = pa.table({"x": [f"[{number - 1}-{number}]"]})
    for values, expected in (
        ([str(number), str(number - 1), str(number - 2), "17.0", "-1e3"], 2),
        ([Decimal(number), Decimal(number + 1)], 1),
        ([17, -1], 0),
    ):
        kind = {str: pa.string(), Decimal: pa.decimal128(38, 0), int: pa.int64()}[type(values[0])]
        population = pa.table({"x": pa.array(values, kind)})
        counts = count_regions(LabelledTable(local_table(release), own), local_table(population))
        assert counts.population.tolist() == [expected]
