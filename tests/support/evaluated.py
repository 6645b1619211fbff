"""A small original of people and releases of it that no model made."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers import write_table
from manifests import manifest_of

from anonspark.release.manifest import manifest_text
from anonspark.release.manifest_form import in_order

ROWS = 600


def people() -> pa.Table:
    """Return people whose illness depends on age and job; some values are missing."""
    random = np.random.default_rng(0)
    age = random.integers(18, 80, ROWS)
    born = [date(2020, 6, 1) - timedelta(days=int(days)) for days in age * 365]
    job = random.choice(["clerk", "cook", "driver", "nurse"], ROWS)
    ill = (age + 20 * (job == "cook") + random.normal(0, 15, ROWS)) > 70
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(ROWS) < 0.05),
            "born": born,
            "job": pa.array(job, mask=random.random(ROWS) < 0.05),
            "weight": np.round(random.normal(70, 10, ROWS), 1),
            "visits": random.poisson(2, ROWS),
            "ill": np.where(ill, "yes", "no"),
        }
    )


KINDS = {
    "age": ("integer", "int64"),
    "born": ("date", "date32[day]"),
    "job": ("category", "string"),
    "weight": ("float", "double"),
}


def write_release(path: Path, data: dict[str, Any], style: str = "interval", **roles: str) -> Path:
    """Write a release that no model made: its records and what reading them takes."""
    columns = [name for name in data if name.partition("_")[0] in KINDS]
    names = [name for name in KINDS if any(one.partition("_")[0] == name for one in columns)]
    attributes = {name: {"role": "quasi_identifier"} for name in names}
    attributes |= {name: {"role": role} for name, role in roles.items()}
    kinds = {name: KINDS[name] for name in names}
    configuration = {
        "privacy": {"k": 1, "allow_k_1": True},
        "missing": "category",
        "attributes": attributes,
        "output": {"style": style},
    }
    manifest = manifest_of(configuration, kinds, columns)
    write_table(path / "data" / "part.parquet", data)
    (path / "manifest.json").write_text(manifest_text(in_order(manifest)))
    return path


def labels(column: pa.ChunkedArray) -> list[str]:
    """Return values as labels of classes that cover one value."""
    return ["missing" if value is None else str(value) for value in column.to_pylist()]


def write_raw_release(path: Path) -> Path:
    """Write a release that tells everything."""
    table = people()
    data: dict[str, Any] = {name: labels(table[name]) for name in KINDS}
    data |= {"visits": table["visits"], "ill": table["ill"]}
    return write_release(path, data, visits="insensitive", ill="sensitive")


def require_figures_of_the_original(opened: Any, *trained_on: str) -> tuple[Any, dict[str, Any]]:
    """Require that a release that tells everything is as good as its original.

    Return what models learned, and the accuracy, F1 and area of each of those of the release.
    """
    workload = opened.workload()
    assert (workload.median, workload.mean, workload.third_quartile) == (0, 0, 0)
    assert workload.attributes == ["age", "born", "job", "weight"]
    assert workload.filters == ["ill"]
    assert 0.01 < workload.selectivity < 0.2
    found = opened.learning(trained_on) if trained_on else opened.learning()
    assert (found.held_out, found.classes) == (False, 2)
    assert 0.2 * ROWS < found.test_records < 0.4 * ROWS
    originals, released = (
        {
            score.learner: (score.accuracy, score.f1, score.roc_auc)
            for score in found.scores
            if score.trained_on == name
        }
        for name in ("original_with_test", "release")
    )
    assert list(released) == ["logistic regression", "random forest", "gradient-boosted trees"]
    for learner, (accuracy, _, area) in released.items():
        assert released[learner] == pytest.approx(originals[learner], abs=1e-9)
        assert accuracy > found.majority
        assert area > 0.7
    return found, released
