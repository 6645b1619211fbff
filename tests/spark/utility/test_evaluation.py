"""``anonspark evaluate`` on Spark: its learners, its hash, and rows in any order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from evaluated import ROWS, people, write_raw_release
from helpers import table_of, write_table
from pyspark.sql import functions as sf

from anonspark.engine.spark import learning
from anonspark.engine.spark.engine import SparkEngine
from anonspark.release.regions import PublishedAttribute
from anonspark.utility import original as describing
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.original import describe_original

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_release_that_tells_everything_is_as_good_as_the_original(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "LOGISTIC_ITERATIONS", 5)
    monkeypatch.setattr(learning, "FOREST_TREES", 3)
    monkeypatch.setattr(learning, "BOOSTED_TREES", 2)
    monkeypatch.setattr(learning, "DEPTH", 2)
    original = write_table(tmp_path / "original.parquet", people())
    release = write_raw_release(tmp_path / "raw")
    opened = open_evaluation(SparkEngine(spark), str(release), str(original), "ill")
    workload = opened.workload()
    assert (workload.median, workload.mean, workload.third_quartile) == (0, 0, 0)
    assert workload.attributes == ["age", "born", "job", "weight"]
    assert workload.filters == ["ill"]
    assert 0.01 < workload.selectivity < 0.2
    found = opened.learning(("original_with_test", "release"))
    assert found is not None
    assert not found.held_out
    assert found.classes == 2
    assert 0.2 * ROWS < found.test_records < 0.4 * ROWS
    originals, released = (
        {
            score.learner: (score.accuracy, score.f1, score.roc_auc)
            for score in found.scores
            if score.trained_on == name
        }
        for name in ("original_with_test", "release")
    )
    learners = ["logistic regression", "random forest", "gradient-boosted trees"]
    assert list(released) == learners
    for learner in learners:
        assert released[learner] == pytest.approx(originals[learner], abs=1e-9)
        accuracy, _, area = released[learner]
        assert accuracy > found.majority
        assert area is not None
        assert area > 0.7


def test_queries_depend_on_the_records_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describing, "_DRAWN", 200)
    table = spark.createDataFrame(people())
    weight = PublishedAttribute("weight", "float", "interval", ("weight",))
    looks = [
        describe_original(table_of(one), [weight], ["job", "visits"], {}, ["?"])
        for one in (table, table.orderBy("visits").repartition(3))
    ]
    (quasi_identifiers, others, rows), again = looks
    assert rows == ROWS
    (axis,) = quasi_identifiers
    weights = people()["weight"].to_numpy()
    assert axis.domain.values[[0, -1]].tolist() == [weights.min(), weights.max()]
    # Spark's hash of doubles and texts decides who is drawn, today as when the figures were told.
    hashes = sf.pmod(sf.xxhash64("weight", "job", sf.col("visits").cast("double")), sf.lit(2**30))
    drawn = table.where(hashes < 200 / ROWS * 2**30).toPandas()["weight"]
    expected = np.unique([weights.min(), *drawn, weights.max()])
    np.testing.assert_array_equal(axis.domain.values, expected)
    assert not axis.whole
    assert [one.texts for one in others] == [("clerk", "cook", "driver", "nurse"), ()]
    for one, other in zip([axis, *others], [*again[0], *again[1]], strict=True):
        np.testing.assert_array_equal(one.domain.values, other.domain.values)
        np.testing.assert_array_equal(one.domain.shares, other.domain.shares)
