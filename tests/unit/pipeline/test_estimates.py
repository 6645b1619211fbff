"""What a plan says a run takes: measured constants, and words for what was never measured."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from places import REPOSITORY

from anonspark.config import parse_configuration
from anonspark.pipeline import plan

SPARK = {"spark": "4.1.4"}


def estimate(
    rows: int, model: str = "smondrian", versions: dict[str, str] | None = None
) -> plan.Estimate:
    """Estimate a run of five attributes to a path where nothing is."""
    names = [f"a{number}" for number in range(5)]
    document = {
        "input": {"path": "people"},
        "attributes": dict.fromkeys(names, "quasi_identifier"),
        "privacy": {"k": 5},
        "model": {"name": model},
        "output": {"path": "release"},
    }
    engine: Any = SimpleNamespace(
        files=SimpleNamespace(exists=lambda _: False), versions=versions or {}
    )
    return plan.estimate_run(engine, parse_configuration(document), rows, 10)


def test_the_engine_counts() -> None:
    on_spark, without_java = (estimate(10**7, versions=versions) for versions in (SPARK, None))
    assert on_spark.seconds == pytest.approx(2 + 10**7 / 177_000)
    assert without_java.seconds == pytest.approx(2 + 10**7 / 466_000)


def test_the_drivers_seconds_are_a_part() -> None:
    assert estimate(10**6).serial_seconds is None
    few, many = (estimate(rows, versions=SPARK) for rows in (10**6, 10**7))
    for one in (few, many):
        assert one.serial_seconds is not None
        assert one.seconds is not None
        assert 0 < one.serial_seconds < one.seconds
    assert few.serial_seconds < many.serial_seconds  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "unmeasured"),
    [
        ({"rows": 10**7}, ""),
        ({"rows": 100, "model": "canon"}, ". canon was measured on Spark only"),
        ({"rows": 100, "model": "canon", "versions": SPARK}, ""),
        ({"rows": 10**7 + 1}, ". A lower bound: more than 10,000,000 rows take more passes"),
    ],
)
def test_what_was_not_measured_says_so(given: dict[str, Any], unmeasured: str) -> None:
    found = estimate(**given)
    assert "(texts were not measured)" in found.basis
    assert found.basis.endswith(f"by a factor of three{unmeasured}")
    assert found.lower_bound == (given["rows"] > 10**7)


def test_rates_are_those_of_the_page() -> None:
    """Rates on Spark are those of the table of ten million people, in thousands."""
    page = (REPOSITORY / "docs" / "performance.md").read_text()
    table = page.partition("## On Spark")[2]
    head, rates = (
        re.findall(pattern, table)[0]
        for pattern in (r"\| \| (.*) \|", r"\| rows per second \| (.*) \|")
    )
    names = [name.partition(",")[0] for name in head.split(" | ")]
    on_page = dict(zip(names, rates.split(" | "), strict=True))
    for name in ("smondrian", "canon", "u-canon", "microaggregation"):
        rate = int(on_page[name].replace(",", ""))
        assert plan._ROWS_A_SECOND[name][0] == round(rate, -3), name
