"""Classes that are shared out over Spark's tasks give the figures that they give in every task."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import one_by_day
from divided import publish_people, verify_both_ways

from anonspark.engine.spark.engine import SparkEngine


@pytest.mark.parametrize("model", one_by_day("bounds", "hierarchies", "numbers", "overlapping"))
def test_figures_of_drawn_tables(model: str, engine: SparkEngine, tmp_path: Path) -> None:
    paths = publish_people(engine, tmp_path, 5, model)
    found, divided = verify_both_ways(engine, *paths, leaf_classes=4)
    assert found["holds"], found["failures"]
    assert divided == found
