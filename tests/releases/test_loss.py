"""Loss as verify measures it: what the metrics say, by other code, and of other tools by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import night
from helpers import command, configuration_file, summary, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.reporting.build_report import report_release
from anonspark.verification.audit import audit_release

ATTRIBUTES = {
    "age": "quasi_identifier",
    "height": {"role": "quasi_identifier", "weight": 2.5},
    "born": "quasi_identifier",
    "seen": "quasi_identifier",
    "disease": "sensitive",
}


def people(missing: bool) -> pa.Table:
    random = np.random.default_rng(3)
    n = 60
    ages: list[int | None] = random.integers(18, 90, n).tolist()
    heights = random.normal(170, 10, n).tolist()
    days = random.integers(0, 9_000, n).tolist()
    seconds = random.integers(0, 10**7, n).tolist()
    if missing:
        ages[:4] = [None] * 4
        heights[2:5] = [float("nan")] * 3
    return pa.table(
        {
            "age": pa.array(ages, pa.int32()),
            "height": heights,
            "born": [date(1970, 1, 1) + timedelta(days=day) for day in days],
            "seen": [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in seconds],
            "disease": random.choice(["flu", "gout"], n).tolist(),
        }
    )


@pytest.mark.parametrize("style", ["interval", "bounds"])
@pytest.mark.parametrize("missing", ["error", "category"])
def test_loss_equals_the_metrics(
    style: str, missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_table(tmp_path / "input.parquet", people(missing == "category"))
    path = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES,
        missing=missing,
        privacy={"k": 4},
        output={"style": style},
    )
    assert command(capsys, "run", path).code == 0
    told = summary(tmp_path / "release")
    outcome = command(capsys, "verify", tmp_path / "release", "--original", source, "--json")
    assert outcome.code == 0, outcome.err
    loss = json.loads(outcome.out)["loss"]
    assert (loss["rows"], loss["rows_left_out"], loss["dm"]) == (60, 0, told["dm"])
    assert loss["gcp_total"] == pytest.approx(told["gcp_total"], rel=1e-12)
    assert loss["gcp"] == pytest.approx(told["gcp"], rel=1e-12)


_DAY = 86_400
# From the year 1 to the year 9999.
_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6}
_FLOATS: tuple[Callable[[random.Random], float], ...] = (
    lambda draw: draw.gauss(0, 1),
    lambda draw: 1e16 + 2 * draw.randint(0, 50),
    lambda draw: draw.uniform(-3e38, 3e38),
    lambda draw: draw.randint(0, 30) * 5e-324,
    lambda draw: draw.choice([0.0, -0.0, 1.0]),
)


def whole_numbers(draw: random.Random, low: int, high: int, rows: int) -> list[int]:
    """Return numbers that are near to an end of what is possible, or far apart."""
    width = min(draw.choice([3, 100, 10**6, 10**12, 10**18, high - low]), high - low)
    first = draw.choice([low, high - width, draw.randint(low, high - width)])
    ends = [low, low + 1, high] if draw.random() < 0.2 else [first]
    return [draw.choice([*ends, first + draw.randint(0, width)]) for _ in range(rows)]


def column_of_any_type(draw: random.Random, rows: int) -> pa.Array:
    kind = draw.choice(["integer", "decimal", "float", "date", "timestamp", "text", "boolean"])
    zone = draw.choice([None, "UTC", "Europe/Berlin"])
    match kind:
        case "integer":
            bits, sign = draw.choice([8, 16, 32, 64]), draw.choice(["", "u"])
            # Of 64 bits the largest ones are refused: in int64 it leaves no code for missing ones.
            most = min(2**bits, 10**18) if sign else 2 ** (bits - 1) - 1
            least = 0 if sign else -(2 ** (bits - 1))
            return pa.array(
                whole_numbers(draw, least, most - 1, rows), pa.type_for_alias(f"{sign}int{bits}")
            )
        case "decimal":
            digits, scale = draw.choice([(1, 0), (5, 2), (18, 9), (18, 18), (28, 10), (38, 38)])
            most = 10 ** min(digits, 18) - 1
            decimals = [Decimal(n).scaleb(-scale) for n in whole_numbers(draw, -most, most, rows)]
            return pa.array(decimals, pa.decimal128(digits, scale))
        case "float":
            drawn, width = draw.choice(_FLOATS), draw.choice([np.float32, np.float64])
            return pa.array(np.array([drawn(draw) for _ in range(rows)]).astype(width))
        case "date":
            days = pa.array(whole_numbers(draw, _FIRST_DAY, _LAST_DAY, rows), pa.int32())
            return days.cast(pa.date32()).cast(draw.choice([pa.date32(), pa.date64()]))
        case "timestamp" if draw.random() < 0.25:
            micros = whole_numbers(draw, -(2**63) // 1000 + 1, 2**63 // 1000, rows)
            return pa.array([1000 * n for n in micros]).cast(pa.timestamp("ns", zone))
        case "timestamp":
            unit = draw.choice([*_UNITS])
            ends = ((_FIRST_DAY + 1) * _DAY * _UNITS[unit], _LAST_DAY * _DAY * _UNITS[unit])
            return pa.array(whole_numbers(draw, *ends, rows)).cast(pa.timestamp(unit, zone))
        case "text":
            return pa.array([draw.choice(["a", "{1}", "b, c", "é", " x"]) for _ in range(rows)])
    return pa.array([draw.random() < 0.4 for _ in range(rows)])


@pytest.mark.parametrize(
    "seed", [*range(12), 130, *(pytest.param(seed, marks=night) for seed in range(131, 400))]
)
def test_a_fresh_release_of_any_types_is_proven(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311
    rows = draw.randint(20, 60)
    names = ["first", "second"][: draw.choice([1, 1, 2])]
    table = {name: column_of_any_type(draw, rows) for name in (*names, "payload")}
    table["sickness"] = pa.array([draw.choice("abc") for _ in range(rows)])
    source = str(write_table(tmp_path / "input.parquet", pa.table(table)))
    release = str(tmp_path / "release")
    document = {
        "input": {"path": source},
        "attributes": dict.fromkeys(names, "quasi_identifier")
        | {"sickness": "sensitive", "payload": "insensitive"},
        "privacy": {"k": draw.choice([2, 3, 5])},
        "model": {
            "name": draw.choice(["mondrian", "smondrian", "su-mondrian", "microaggregation"])
        },
        "execution": {"seed": 2**40 + seed},
        "output": {"path": release, "style": draw.choice(["interval", "bounds"])},
    }
    engine = LocalEngine()
    run(engine, parse_configuration(document))
    for original in (None, source):
        assert audit_release(engine, release, original=original).failures == []
    assert report_release(engine, release, source).holds


ORIGINAL = {"age": [20, 25, 30, 40, 60, 60], "income": [0, 10, 20, 30, 40, 50]}


def verified(tmp_path: Path, capsys: pytest.CaptureFixture[str], release: Any) -> dict[str, Any]:
    original = write_table(tmp_path / "original.parquet", ORIGINAL)
    published = write_table(tmp_path / "published.parquet", release)
    roles = ("--quasi-identifier", "age", "--quasi-identifier", "income", "--k", "2")
    outcome = command(capsys, "verify", published, *roles, "--original", original, "--json")
    assert outcome.out, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)["loss"]
    return found


def test_labels_of_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = verified(
        tmp_path,
        capsys,
        {"age": ["20-30"] * 3 + ["[40, 100["] * 2, "income": ["*"] * 3 + ["30-40"] * 2},
    )
    # One of six is left out. Of age 3 x 10/40, 2 x all, for no label covers more; of income
    # 3 x all, 2 x 10/50.
    expected = 3 * 0.25 + 2 + 3 + 2 * 0.2 + 2 * 1
    assert (found["rows"], found["rows_left_out"], found["dm"]) == (6, 1, 9 + 4 + 6)
    assert found["gcp_total"] == pytest.approx(expected)
    assert found["gcp"] == pytest.approx(expected / 12)


def test_bounds_of_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = verified(
        tmp_path,
        capsys,
        {
            "age_min": [20] * 3 + [40] * 3,
            "age_max": [30] * 3 + [60] * 3,
            "income_min": [0] * 3 + [30] * 3,
            "income_max": [20] * 3 + [50] * 3,
        },
    )
    assert (found["rows_left_out"], found["dm"]) == (0, 18)
    assert found["gcp_total"] == pytest.approx(3 * 0.25 + 3 * 0.5 + 6 * 0.4)


def test_categories_have_no_penalty_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = write_table(tmp_path / "original.parquet", {"sex": ["f", "f", "m", "m"]})
    published = write_table(tmp_path / "published.parquet", {"sex": ["f", "f", "m", "m"]})
    roles = ("--quasi-identifier", "sex", "--k", "2")
    outcome = command(capsys, "verify", published, *roles, "--original", original, "--json")
    found = json.loads(outcome.out)["loss"]
    assert found == {"rows": 4, "rows_left_out": 0, "dm": 8, "gcp_total": None, "gcp": None}
    details = ("--original", original, "--details")
    outcome = command(capsys, "verify", published, *roles, *details)
    assert "discernibility 8" in outcome.out
    assert "loss: gcp" not in outcome.out
