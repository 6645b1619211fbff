"""The mapping of an earlier release, applied to new records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from helpers import command
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.kernels.box_tree import build_box_tree
from anonspark.kernels.region_assignment import assign_points
from anonspark.kernels.separation import without_noise
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

ROWS = 800
CATEGORIES = ["north", "south", "east", "west"]
ROLES: dict[str, Any] = {
    "age": {"role": "quasi_identifier"},
    "income": {"role": "quasi_identifier"},
    "region": {"role": "quasi_identifier"},
    "day": {"role": "quasi_identifier"},
    "illness": {"role": "sensitive"},
}


def people(rows: int = ROWS, seed: int = 0, oldest: int = 90) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "age": draw.integers(18, oldest, rows),
            "income": np.round(draw.normal(3000, 900, rows), 2),
            "region": draw.choice(CATEGORIES, rows),
            "day": pa.array(draw.integers(18_000, 19_000, rows), pa.int32()).cast(pa.date32()),
            "illness": draw.choice(["flu", "cold", "gout"], rows),
        }
    )


def document(folder: Path, source: str, out: str, **sections: Any) -> dict[str, Any]:
    return {
        "input": {"path": str(folder / source)},
        "attributes": ROLES,
        "privacy": {"k": 5},
        "output": {"path": str(folder / out)},
        "execution": {"seed": 2**40},
    } | sections


def release(folder: Path, source: str, out: str, **sections: Any) -> Any:
    return run(LocalEngine(), parse_configuration(document(folder, source, out, **sections)))


def mapping(folder: Path, unfit: str = "merge") -> dict[str, Any]:
    return {"name": "mapping", "release": str(folder / "old"), "unfit": unfit}


def labels(path: Path) -> set[tuple[Any, ...]]:
    data = pq.read_table(path / "data", columns=["age", "income", "region", "day"])
    return {tuple(row.values()) for row in data.to_pylist()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table, a release of it, and the table of a month later."""
    pq.write_table(people(), tmp_path / "then.parquet")
    pq.write_table(people(600, 1, oldest=99), tmp_path / "now.parquet")
    release(tmp_path, "then.parquet", "old", model={"name": "smondrian"})
    return tmp_path


def test_a_table_mapped_onto_itself(folder: Path) -> None:
    again = release(folder, "then.parquet", "again", model=mapping(folder))
    manifest = json.loads((folder / "old" / "manifest.json").read_text())
    assert again.summary["output_fingerprint"] == manifest["fingerprints"]["output"]
    assert again.summary["gcp"] == manifest["summary"]["gcp"]


@pytest.mark.parametrize("style", ["interval", "bounds"])
def test_new_records_get_the_old_labels(folder: Path, style: str) -> None:
    output = {"path": str(folder / "new"), "style": style}
    # Of each class some are there still, and some who are in no region are new.
    table = pa.concat_tables([people().slice(60), people(40, 3, oldest=99)])
    pq.write_table(table, folder / "next.parquet")
    found = release(folder, "next.parquet", "new", model=mapping(folder), output=output)
    assert found.summary["min_class_size"] >= 5
    assert found.summary["rows_published"] == len(table)
    assert audit_release(LocalEngine(), str(folder / "new")).holds
    if style == "interval":
        assert len(labels(folder / "new") & labels(folder / "old")) > 20


def test_labels_are_true(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(folder, "now.parquet", "new", model=mapping(folder))
    done = command(capsys, "verify", folder / "new", "--original", folder / "now.parquet", "--json")
    assert done.code == 0, done.out


@pytest.mark.parametrize("counted", ["records", "people"])
def test_small_tasks_change_nothing(folder: Path, counted: str) -> None:
    sections: dict[str, Any] = {}
    if counted == "people":
        table = people(1200, 1, oldest=99)
        # Some have many records, most have one.
        owners = np.random.default_rng(5).zipf(1.6, len(table)) % 700
        pq.write_table(table.append_column("person", pa.array(owners)), folder / "now.parquet")
        sections["attributes"] = ROLES | {"person": {"role": "identifier"}}
        sections["privacy"] = {"k": 5, "unit": "person"}
    found = {
        release(
            folder,
            "now.parquet",
            f"new-{rows}",
            model=mapping(folder),
            execution={"seed": 2**40, "task_rows": rows},
            **sections,
        ).summary["output_fingerprint"]
        for rows in (1_000_000, 100)
    }
    assert len(found) == 1


def test_unfit_classes(folder: Path) -> None:
    some = release(folder, "now.parquet", "some", model=mapping(folder, "suppress"))
    assert some.summary["rows_published"] < 600
    assert some.summary["min_class_size"] >= 5
    assert labels(folder / "some")
    with pytest.raises(GuaranteeError, match=r"model\.unfit: some regions"):
        release(folder, "now.parquet", "none", model=mapping(folder, "refuse"))
    assert not (folder / "none").exists()
    fits = release(folder, "then.parquet", "all", model=mapping(folder, "refuse"))
    assert fits.summary["rows_published"] == ROWS


def test_criteria_hold(folder: Path) -> None:
    privacy = {"k": 5, "l_diversity": {"attribute": "illness", "l": 2}}
    found = release(folder, "now.parquet", "new", model=mapping(folder), privacy=privacy)
    data = pq.read_table(folder / "new" / "data")
    own = [name for name in data.column_names if name != "illness"]
    counted = data.group_by(own).aggregate([("illness", "count_distinct")])
    assert pc.min(counted["illness_count_distinct"]).as_py() >= 2
    assert found.summary["rows_published"] == 600


def test_new_categories_and_missing_values(folder: Path) -> None:
    table = people(300, 2)
    regions = table["region"].to_pylist()
    regions[:40] = ["abroad"] * 40
    ages = [None if place % 50 == 0 else age for place, age in enumerate(table["age"].to_pylist())]
    table = table.set_column(2, "region", pa.array(regions))
    pq.write_table(table.set_column(0, "age", pa.array(ages)), folder / "odd.parquet")
    found = release(folder, "odd.parquet", "new", model=mapping(folder), missing="category")
    assert found.summary["rows_published"] == 300
    assert found.summary["min_class_size"] >= 5


def test_full_domain_levels(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "then.parquet")
    pq.write_table(people(600, 1), tmp_path / "now.parquet")
    roles = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "illness": {"role": "sensitive"},
    }
    release(tmp_path, "then.parquet", "old", attributes=roles, model={"name": "full-domain"})
    model = mapping(tmp_path, "suppress")
    found = release(tmp_path, "now.parquet", "new", attributes=roles, model=model)
    told = [
        json.loads((tmp_path / name / "manifest.json").read_text())["summary"]
        for name in ("old", "new")
    ]
    assert found.rounds[0]["levels"] == _levels(tmp_path / "old")
    assert told[1]["rows_published"] + told[1]["rows_suppressed"] == 600
    by_default = {"name": "mapping", "release": str(tmp_path / "old")}
    again = release(tmp_path, "now.parquet", "again", attributes=roles, model=by_default)
    assert again.summary["output_fingerprint"] == found.summary["output_fingerprint"]
    with pytest.raises(ConfigurationError, match=r"found 'merge', but model\.release was made by"):
        release(tmp_path, "now.parquet", "none", attributes=roles, model=mapping(tmp_path))


def _levels(path: Path) -> str:
    return str(pq.read_table(path / "metrics" / "rounds")["levels"].to_pylist()[0])


def test_what_does_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigurationError, match="found no release at"):
        release(folder, "now.parquet", "x", model=mapping(folder) | {"release": str(folder)})
    fewer = {name: ROLES[name] for name in ("age", "income", "illness")}
    with pytest.raises(ConfigurationError, match="the release has the quasi-identifiers age, inc"):
        release(folder, "now.parquet", "x", attributes=fewer, model=mapping(folder))
    other = ROLES | {"age": {"role": "quasi_identifier", "type": "text"}}
    with pytest.raises(ConfigurationError, match="age is of kind integer in the release"):
        release(folder, "now.parquet", "x", attributes=other, model=mapping(folder))
    mean = {"path": str(folder / "x"), "style": "mean"}
    with pytest.raises(ConfigurationError, match=r"output\.style: found 'mean' with the model"):
        release(folder, "now.parquet", "x", output=mean, model=mapping(folder))
    path = folder / "now.yaml"
    path.write_text(json.dumps(document(folder, "now.parquet", "new")))
    for more in ([], ["--plan"]):
        options = ["--set", f"model={{name: mapping, release: {folder / 'old'}}}", *more]
        assert command(capsys, "check", path, *options).code == 0
    assert command(capsys, "run", path, "--mapping", folder / "old").code == 0
    manifest = json.loads((folder / "new" / "manifest.json").read_text())
    assert manifest["configuration"]["model"]["name"] == "mapping"


def slowly(points: np.ndarray, boxes: np.ndarray, edges: np.ndarray) -> list[int]:
    """Find the region of each point by asking every region."""
    found = []
    for point in points:
        keys = []
        for region, (low, high) in enumerate(boxes):
            outside = np.maximum(np.maximum(low - point, point - high), 0.0)
            growth = without_noise(float(np.nansum(outside)))
            keys.append((growth, without_noise(edges[region]), region))
        found.append(min(keys)[2])
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 3))
def test_the_descent_finds_what_asking_every_region_finds(seed: int, regions: int, d: int) -> None:
    draw = np.random.default_rng(seed)
    # Few different ends, so that there are ties.
    ends = np.sort(draw.integers(0, 8, (regions, 2, d)) / 8.0, axis=1)
    boxes = np.ascontiguousarray(ends)
    edges = (boxes[:, 1] - boxes[:, 0]).sum(axis=1)
    points = draw.integers(0, 9, (30, d)) / 8.0
    points[draw.random((30, d)) < 0.1] = np.nan
    members, nodes, node_boxes = build_box_tree(boxes, False)
    order = draw.permutation(len(points))
    found = assign_points(points, order, boxes[members], edges[members], members, nodes, node_boxes)
    assert found.tolist() == slowly(points, boxes, edges)
