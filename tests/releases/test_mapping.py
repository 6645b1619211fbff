"""The mapping of an earlier release: how new records of all kinds get labels."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import Cli
from helpers import divided_classes, document_file
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


def test_too_many_classes_are_refused_before_the_input_is_read(folder: Path, cli: Cli) -> None:
    manifest = json.loads((folder / "old" / "manifest.json").read_text())
    classes = manifest["summary"]["published_classes"]
    with divided_classes(classes):
        release(folder, "now.parquet", "new", model=mapping(folder))
    with divided_classes(classes - 1):
        message = (
            rf"model\.release: the release has {classes} classes, whose .* at most {classes - 1}"
        )
        with pytest.raises(ConfigurationError, match=message):
            release(folder, "absent.parquet", "none", model=mapping(folder))
        planned = document_file(
            folder, document(folder, "now.parquet", "none", model=mapping(folder))
        )
        remedy = "Name one with a larger k, or one by full-domain"
        cli.ends(2, "check", planned, "--plan", says=remedy)


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


def test_labels_are_true(folder: Path, cli: Cli) -> None:
    release(folder, "now.parquet", "new", model=mapping(folder))
    cli.ends(0, "verify", folder / "new", "--original", folder / "now.parquet", "--json")


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


def test_what_does_not_fit(folder: Path, cli: Cli) -> None:
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
        cli.ends(0, "check", path, *options)
    cli.ends(0, "run", path, "--mapping", folder / "old")
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


KIND_ROWS = 400
TOWNS = ["north", "south", "east", "west"]
GRADES = ["low", "middle", "high"]


def table(rows: int = KIND_ROWS, seed: int = 0) -> pa.Table:
    """Return a table with a column of every kind, and people of whom some come often."""
    draw = np.random.default_rng(seed)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    amounts = [Decimal(int(cents)).scaleb(-2) for cents in draw.integers(0, 10_000, rows)]
    return pa.table(
        {
            "integer": draw.integers(-50, 50, rows),
            "large": 2**61 + draw.integers(0, 5_000, rows),
            "float": draw.normal(0, 1e6, rows),
            "single": draw.normal(0, 1, rows).astype(np.float32),
            "decimal": pa.array(amounts, pa.decimal128(9, 2)),
            "day": pa.array(draw.integers(-900, 900, rows), pa.int32()).cast(pa.date32()),
            "moment": pa.array(
                [start + timedelta(seconds=int(s)) for s in draw.integers(0, 10**6, rows)],
                pa.timestamp("us", tz="UTC"),
            ),
            "boolean": draw.random(rows) < 0.5,
            "category": draw.choice(TOWNS, rows),
            "grade": draw.choice(GRADES, rows),
            "tree": draw.choice(TOWNS, rows),
            "person": np.minimum(draw.integers(0, rows, rows), draw.integers(0, rows, rows)),
            "illness": draw.choice(["flu", "cold", "gout"], rows),
        }
    )


def quasi_identifiers(folder: Path, *names: str) -> dict[str, Any]:
    """Return attributes of a configuration."""
    (folder / "towns.csv").write_text("north;N;*\nsouth;S;*\neast;N;*\nwest;S;*\n")
    special: dict[str, dict[str, Any]] = {
        "grade": {"order": GRADES},
        "tree": {"hierarchy": str(folder / "towns.csv")},
    }
    roles = {name: {"role": "quasi_identifier"} | special.get(name, {}) for name in names}
    return roles | {"illness": {"role": "sensitive"}}


def release_of_kinds(folder: Path, rows: pa.Table, out: str, *names: str, **sections: Any) -> Any:
    """Anonymize rows."""
    pq.write_table(rows, folder / f"{out}.parquet")
    document = {
        "input": {"path": str(folder / f"{out}.parquet")},
        "attributes": quasi_identifiers(folder, *names),
        "privacy": {"k": 5},
        "missing": "category",
        "output": {"path": str(folder / out)},
        "execution": {"seed": 2**40},
    } | sections
    return run(LocalEngine(), parse_configuration(document))


def with_missing(rows: pa.Table, name: str) -> pa.Table:
    """Return rows of which every seventh lacks a value."""
    lacks = pa.array([place % 7 == 0 for place in range(len(rows))])
    values = pc.if_else(lacks, pa.scalar(None, rows[name].type), rows[name])
    return rows.set_column(rows.column_names.index(name), name, values)


PAIRS = [
    ("integer", "category"),
    ("large", "boolean"),
    ("float", "grade"),
    ("single", "decimal"),
    ("day", "moment"),
    ("tree", "integer"),
    ("category", "day"),
]


@pytest.mark.parametrize("names", PAIRS)
def test_every_kind_mapped_onto_itself(tmp_path: Path, names: tuple[str, str]) -> None:
    """Of each pair the first kind has missing values, and the second has none."""
    rows = with_missing(table(), names[0])
    old = release_of_kinds(tmp_path, rows, "old", *names, model={"name": "smondrian"})
    again = release_of_kinds(tmp_path, rows, "again", *names, model=mapping(tmp_path, "refuse"))
    assert again.summary["gcp"] == old.summary["gcp"]
    assert again.summary["classes"] == old.summary["classes"]
    assert again.summary["output_fingerprint"] == old.summary["output_fingerprint"]


@pytest.mark.parametrize(
    ("name", "narrow"),
    [("decimal", pa.decimal128(9, 0)), ("decimal", pa.decimal128(3, 2)), ("integer", pa.int8())],
)
def test_a_type_that_cannot_hold_old_labels_is_refused(
    tmp_path: Path, name: str, narrow: pa.DataType
) -> None:
    old = table()
    if name == "integer":
        old = old.set_column(0, name, pc.multiply(old[name], 1000))
    release_of_kinds(tmp_path, old, "old", name, "float", model={"name": "smondrian"})
    values = pa.array([place % 9 for place in range(300)], pa.int64()).cast(pa.decimal128(21, 0))
    now = table(300, 1)
    now = now.set_column(now.column_names.index(name), name, values.cast(narrow))
    with pytest.raises(ConfigurationError, match=rf"attributes\.{name}: found the type"):
        release_of_kinds(tmp_path, now, "new", name, "float", model=mapping(tmp_path))


@pytest.mark.parametrize(
    ("model", "style"),
    [("su-mondrian", "interval"), ("canon", "bounds"), ("microaggregation", "interval")],
)
def test_labels_of_overlapping_regions_are_true(
    tmp_path: Path, cli: Cli, model: str, style: str
) -> None:
    names = ("integer", "float", "category", "day")
    output = {"path": str(tmp_path / "old"), "style": style}
    options: dict[str, Any] = {"name": model} | ({"rho": 2} if model == "su-mondrian" else {})
    release_of_kinds(tmp_path, table(), "old", *names, model=options, output=output)
    now = with_missing(table(300, 1), "category")
    release_of_kinds(tmp_path, now, "new", *names, model=mapping(tmp_path))
    cli.ends(0, "verify", tmp_path / "new", "--original", tmp_path / "new.parquet", "--json")
    assert pq.read_table(tmp_path / "new" / "data").num_rows == 300


@pytest.mark.parametrize("unfit", ["merge", "suppress"])
def test_the_order_of_records_changes_nothing(tmp_path: Path, unfit: str) -> None:
    names = ("integer", "float", "category")
    release_of_kinds(tmp_path, table(), "old", *names, model={"name": "su-mondrian", "rho": 2})
    now = table(300, 1)
    shuffled = now.take(np.random.default_rng(5).permutation(len(now)))
    found = {
        release_of_kinds(tmp_path, rows, name, *names, model=mapping(tmp_path, unfit)).summary[
            "output_fingerprint"
        ]
        for name, rows in (("new", now), ("shuffled", shuffled))
    }
    assert len(found) == 1


@pytest.mark.parametrize("unfit", ["merge", "suppress"])
def test_classes_count_people(tmp_path: Path, unfit: str) -> None:
    names = ("integer", "category")
    # Large regions, in some of which one person has nearly all of the new records.
    release_of_kinds(
        tmp_path, table(), "old", *names, privacy={"k": 10}, model={"name": "smondrian"}
    )
    now = table(300, 1)
    people = np.where(np.array(now["integer"]) < 0, 0, np.array(now["person"]) + 1)
    now = now.set_column(now.column_names.index("person"), "person", pa.array(people))
    attributes = quasi_identifiers(tmp_path, *names) | {"person": {"role": "identifier"}}
    privacy = {"k": 5, "unit": "person"}
    found = release_of_kinds(
        tmp_path,
        now,
        "new",
        *names,
        attributes=attributes,
        privacy=privacy,
        model=mapping(tmp_path, unfit),
    )
    assert found.summary["smallest_units"] >= 5
    assert (found.summary["rows_published"] == 300) == (unfit == "merge")


def test_an_order_that_lacks_old_categories_is_refused(tmp_path: Path) -> None:
    names = ("integer", "grade")
    release_of_kinds(tmp_path, table(), "old", *names, model={"name": "smondrian"})
    rows = table()
    known = rows.filter(pc.not_equal(rows["grade"], "middle"))
    attributes = quasi_identifiers(tmp_path, *names)
    attributes["grade"] = {"role": "quasi_identifier", "order": ["low", "high"]}
    with pytest.raises(ConfigurationError, match=r"attributes\.grade\.order: lacks 1 values"):
        release_of_kinds(
            tmp_path, known, "new", *names, attributes=attributes, model=mapping(tmp_path)
        )


def test_a_release_of_means_is_refused(tmp_path: Path) -> None:
    output = {"path": str(tmp_path / "old"), "style": "mean"}
    names = ("integer", "float")
    release_of_kinds(tmp_path, table(), "old", *names, model={"name": "smondrian"}, output=output)
    with pytest.raises(ConfigurationError, match=r"model\.release: the release publishes means"):
        release_of_kinds(tmp_path, table(), "new", *names, model=mapping(tmp_path))
    assert json.loads((tmp_path / "old" / "manifest.json").read_text())
    assert not (tmp_path / "new").exists()
