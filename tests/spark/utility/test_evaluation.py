"""``anonspark evaluate`` on Spark: its learners, its hash, association, and rows in any order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from evaluated import ROWS, people, require_figures_of_the_original, write_raw_release
from helpers import local_table, metrics, summary, table_of, write_table
from pyspark.sql import functions as sf

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark import learning
from anonspark.engine.spark.engine import SparkEngine
from anonspark.labels.regions import PublishedAttribute
from anonspark.pipeline.run import run
from anonspark.utility import original as describing
from anonspark.utility.class_counts import count_classes
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learned_hierarchies import arrange
from anonspark.utility.learning import describe_target
from anonspark.utility.models import compare_predictions, count_predictions
from anonspark.utility.original import describe_original

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def small_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "LOGISTIC_ITERATIONS", 5)
    monkeypatch.setattr(learning, "FOREST_TREES", 3)
    monkeypatch.setattr(learning, "BOOSTED_TREES", 2)
    monkeypatch.setattr(learning, "DEPTH", 2)


@pytest.mark.usefixtures("small_learners")
def test_a_release_that_tells_everything_is_as_good_as_the_original(
    spark: SparkSession, tmp_path: Path
) -> None:
    original = write_table(tmp_path / "original.parquet", people())
    release = write_raw_release(tmp_path / "raw")
    opened = open_evaluation(SparkEngine(spark), str(release), str(original), "ill")
    require_figures_of_the_original(opened, "original_with_test", "release")


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


def test_predictions_are_counted_and_compared_as_without_spark(spark: SparkSession) -> None:
    random = np.random.default_rng(3)
    for classes in (2, 4):
        labels = random.integers(0, classes, 300)
        columns = {"label": labels.astype(float)}
        for name in ("original trees", "release trees"):
            told = np.where(random.random(300) < 0.7, labels, 0).astype(float)
            columns |= {name: told, f"{name} probability": random.random(300).round(3)}
        rows = pa.table(columns)
        names = ["original trees", "release trees"]
        found = []
        for table in (table_of(spark.createDataFrame(rows).repartition(3)), local_table(rows, 2)):
            counted = count_predictions(table, names, classes)
            compared = compare_predictions(table, [(names[0], names[1])], counted)
            found.append(([one.confusion.tolist() for one in counted.values()], compared))
        assert found[0] == found[1]


@pytest.mark.usefixtures("small_learners")
def test_what_models_of_several_classes_and_of_one_predict(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    random = np.random.default_rng(4)
    features = random.random((90, 2))
    for classes, labels in ((3, np.arange(90) % 3), (2, np.zeros(90))):
        rows = pa.table(
            {"features": pa.array(features.tolist()), "label": pa.array(labels.astype(float))}
        )
        examples = engine.table(rows)
        models = engine.learn(examples, classes, 90)
        assert ("gradient-boosted trees" in models) == (classes == 2)
        names = {f"release {learner}": model for learner, model in models.items()}
        predicted = engine.predict(examples, names).collect()
        assert predicted.schema.names == [
            "features", "label", *(one for name in names for one in (name, f"{name} probability")),
        ]  # fmt: skip
        for name in names:
            told = set(predicted[name].to_pylist())
            assert told <= {0.0, 1.0, 2.0} if classes == 3 else told == {0.0}
            # The only class of the training is certain; of several none is told.
            assert predicted[f"{name} probability"].to_numpy() == pytest.approx(0, abs=0.01)


def test_figures_are_those_of_one_process(engine: SparkEngine, tmp_path: Path) -> None:
    # Several files: Spark reads them in tasks of their own.
    for place in range(3):
        part = people().slice(place * 200, 200)
        write_table(tmp_path / "people.parquet" / f"part-{place}.parquet", part)
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": {
            **dict.fromkeys(("age", "born", "job", "weight"), "quasi_identifier"),
            "ill": "sensitive",
        },
        "missing": "category",
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
        "evaluate": {"association": {"target": "ill"}},
        "execution": {"seed": 2**40 + 1},
    }
    told = {}
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": engine}
    for name, own in engines.items():
        output = {"path": str(tmp_path / name), "style": "bounds"}
        run(own, parse_configuration(document | {"output": output}))
        rows = metrics(tmp_path / name, "attributes")
        figures = {
            one["attribute"]: (one["association_before"], one["association_after"]) for one in rows
        }
        told[name] = summary(tmp_path / name)["association_loss"], figures
    assert told["spark"] == told["local"]
    source = str(tmp_path / "people.parquet")
    with engine.reading((source,), key=""):
        found = open_evaluation(engine, str(tmp_path / name), source, "ill").association()
    assert found is not None
    evaluated = {one.name: (one.before, one.after) for one in found.attributes}
    assert (found.loss, evaluated) == told["local"]


def test_what_is_arranged_is_that_of_one_process(engine: SparkEngine, tmp_path: Path) -> None:
    for place in range(2):
        part = people().slice(place * 300, 300)
        write_table(tmp_path / "people.parquet" / f"part-{place}.parquet", part)
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": {"job": "quasi_identifier", "ill": "sensitive"},
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "nowhere")},
    }
    configuration = parse_configuration(document)
    told = []
    for name, own in (("local", LocalEngine()), ("spark", engine)):
        found = arrange(own, configuration, "ill", str(tmp_path / name))
        orders = (tmp_path / name / "orders.yaml").read_text()
        told.append((found.attributes, orders))
    assert told[1] == told[0]


def test_numbers_of_very_many_values(engine: SparkEngine) -> None:
    rows = 140_000
    draw = np.random.default_rng(7)
    number = draw.normal(0, 1, rows)
    ill = np.where(draw.random(rows) < 0.3, "yes", "no")
    attribute = PublishedAttribute("number", "float", "interval", ("number",), type="double")
    table = engine.table(pa.table({"number": number, "ill": ill}))
    target = describe_target(table, "ill", [])
    (found,) = count_classes(table, [attribute], {}, target, [], drops_missing=False)
    edges = np.sort(number)[[-(-rank * rows // 20) - 1 for rank in range(1, 20)]]
    assert found.bins.edges.tolist() == edges.tolist()
    bins = np.searchsorted(edges, number)
    for t, name in enumerate(target.classes):
        expected = np.bincount(bins[ill == name], minlength=21)
        np.testing.assert_array_equal(found.records[:, t], expected)
