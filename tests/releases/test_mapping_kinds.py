"""The mapping of an earlier release: all kinds of attributes, overlapping regions, people."""

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
from helpers import command

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError
from anonspark.pipeline.run import run

ROWS = 400
TOWNS = ["north", "south", "east", "west"]
GRADES = ["low", "middle", "high"]


def table(rows: int = ROWS, seed: int = 0) -> pa.Table:
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


def release(folder: Path, rows: pa.Table, out: str, *names: str, **sections: Any) -> Any:
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


def mapping(folder: Path, unfit: str = "merge") -> dict[str, Any]:
    return {"name": "mapping", "release": str(folder / "old"), "unfit": unfit}


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
    old = release(tmp_path, rows, "old", *names, model={"name": "smondrian"})
    again = release(tmp_path, rows, "again", *names, model=mapping(tmp_path, "refuse"))
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
    release(tmp_path, old, "old", name, "float", model={"name": "smondrian"})
    values = pa.array([place % 9 for place in range(300)], pa.int64()).cast(pa.decimal128(21, 0))
    now = table(300, 1)
    now = now.set_column(now.column_names.index(name), name, values.cast(narrow))
    with pytest.raises(ConfigurationError, match=rf"attributes\.{name}: found the type"):
        release(tmp_path, now, "new", name, "float", model=mapping(tmp_path))


@pytest.mark.parametrize(
    ("model", "style"),
    [("su-mondrian", "interval"), ("canon", "bounds"), ("microaggregation", "interval")],
)
def test_labels_of_overlapping_regions_are_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, style: str
) -> None:
    names = ("integer", "float", "category", "day")
    output = {"path": str(tmp_path / "old"), "style": style}
    options: dict[str, Any] = {"name": model} | ({"rho": 2} if model == "su-mondrian" else {})
    release(tmp_path, table(), "old", *names, model=options, output=output)
    now = with_missing(table(300, 1), "category")
    release(tmp_path, now, "new", *names, model=mapping(tmp_path))
    done = command(
        capsys, "verify", tmp_path / "new", "--original", tmp_path / "new.parquet", "--json"
    )
    assert done.code == 0, done.out
    assert pq.read_table(tmp_path / "new" / "data").num_rows == 300


@pytest.mark.parametrize("unfit", ["merge", "suppress"])
def test_the_order_of_records_changes_nothing(tmp_path: Path, unfit: str) -> None:
    names = ("integer", "float", "category")
    release(tmp_path, table(), "old", *names, model={"name": "su-mondrian", "rho": 2})
    now = table(300, 1)
    shuffled = now.take(np.random.default_rng(5).permutation(len(now)))
    found = {
        release(tmp_path, rows, name, *names, model=mapping(tmp_path, unfit)).summary[
            "output_fingerprint"
        ]
        for name, rows in (("new", now), ("shuffled", shuffled))
    }
    assert len(found) == 1


@pytest.mark.parametrize("unfit", ["merge", "suppress"])
def test_classes_count_people(tmp_path: Path, unfit: str) -> None:
    names = ("integer", "category")
    # Large regions, in some of which one person has nearly all of the new records.
    release(tmp_path, table(), "old", *names, privacy={"k": 10}, model={"name": "smondrian"})
    now = table(300, 1)
    people = np.where(np.array(now["integer"]) < 0, 0, np.array(now["person"]) + 1)
    now = now.set_column(now.column_names.index("person"), "person", pa.array(people))
    attributes = quasi_identifiers(tmp_path, *names) | {"person": {"role": "identifier"}}
    privacy = {"k": 5, "unit": "person"}
    found = release(
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
    release(tmp_path, table(), "old", *names, model={"name": "smondrian"})
    rows = table()
    known = rows.filter(pc.not_equal(rows["grade"], "middle"))
    attributes = quasi_identifiers(tmp_path, *names)
    attributes["grade"] = {"role": "quasi_identifier", "order": ["low", "high"]}
    with pytest.raises(ConfigurationError, match=r"attributes\.grade\.order: lacks 1 values"):
        release(tmp_path, known, "new", *names, attributes=attributes, model=mapping(tmp_path))


def test_a_release_of_means_is_refused(tmp_path: Path) -> None:
    output = {"path": str(tmp_path / "old"), "style": "mean"}
    names = ("integer", "float")
    release(tmp_path, table(), "old", *names, model={"name": "smondrian"}, output=output)
    with pytest.raises(ConfigurationError, match=r"model\.release: the release publishes means"):
        release(tmp_path, table(), "new", *names, model=mapping(tmp_path))
    assert json.loads((tmp_path / "old" / "manifest.json").read_text())
    assert not (tmp_path / "new").exists()
