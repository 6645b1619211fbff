"""Looking at an original and counting in it, on an engine of lists."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from toy_engine import ToyEngine

from anonspark.core.queries import draw_queries
from anonspark.release.regions import PublishedAttribute
from anonspark.utility import original as describing
from anonspark.utility.original import describe_original
from anonspark.utility.workload import count_queries, estimate_queries

ROWS = 500
BORN = datetime.date(2000, 1, 1)


def people() -> pa.Table:
    random = np.random.default_rng(1)
    age = random.integers(18, 80, ROWS)
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(ROWS) < 0.1),
            "born": [BORN + datetime.timedelta(days=int(days)) for days in age],
            "job": random.choice(["clerk", "cook", "?"], ROWS),
        }
    )


@pytest.mark.parametrize("drawn", [ROWS, 100])
def test_neither_tasks_nor_order_matter(monkeypatch: pytest.MonkeyPatch, drawn: int) -> None:
    monkeypatch.setattr(describing, "_DRAWN", drawn)
    table, engine = people(), ToyEngine()
    published = [
        PublishedAttribute("age", "integer", "interval", ("age",)),
        PublishedAttribute("born", "date", "interval", ("born",)),
    ]
    release = pa.table(
        {
            "age": ["missing" if age is None else str(age) for age in table["age"].to_pylist()],
            "born": [str(day) for day in table["born"].to_pylist()],
            "job": table["job"],
        }
    )
    found = []
    for tasks in (1, 3):
        original = engine.spread(table, tasks)
        axes, (job,), rows = describe_original(original, published, ["job"], {}, ["?"])
        assert rows == ROWS
        assert [axis.missing for axis in axes] == [table["age"].null_count, 0]
        assert job.texts == ("clerk", "cook")
        assert job.missing == table["job"].to_pylist().count("?")
        queries = draw_queries(
            [axis.domain for axis in axes], [job.domain], count=50, selectivity=0.2
        )
        counted = count_queries(original, axes, [job], queries, ["?"])
        # The release tells everything.
        told = estimate_queries(engine.spread(release, tasks), axes, [job], queries, ["?"])
        np.testing.assert_allclose(told, counted, atol=1e-6)
        found.append((*(axis.domain.values.tolist() for axis in axes), counted.tolist()))
    assert found[0] == found[1]
    assert (len(found[0][0]) < len(set(table["age"].drop_null().to_pylist()))) == (drawn < ROWS)
