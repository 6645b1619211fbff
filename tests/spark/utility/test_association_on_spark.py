"""Association on Spark is that of one process, in a run and of its published release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from evaluated import people
from helpers import metrics, summary, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.labels.regions import PublishedAttribute
from anonspark.pipeline.run import run
from anonspark.utility.class_counts import count_classes
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learned_hierarchies import arrange
from anonspark.utility.learning import describe_target


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
