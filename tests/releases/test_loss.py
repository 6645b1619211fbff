"""Loss as verify measures it: what the metrics say, by other code, and of other tools by hand."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import command, configuration_file, summary, write_table

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
    outcome = command(capsys, "verify", published, *roles, "--original", original)
    assert "discernibility metric" in outcome.out
    assert "loss: gcp" not in outcome.out
