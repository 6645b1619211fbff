"""Ranges that end on a grid: what is published, proven, merged and refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import one_by_day
from forgeries import save_table
from helpers import command, published, summary, write_table
from holders import anonymize, write_coding
from places import REPOSITORY
from recipients import carry_out
from release_folders import list_files
from test_distribute import plan_of
from test_range import KINDS, MODELS, people, released

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.pipeline.run import run
from anonspark.sharing.holders.union import unite
from anonspark.utility.evaluation import open_evaluation
from anonspark.verification.audit import audit_release

GRIDS: dict[str, Any] = {
    "age": {"grid": 5, "bottom": 24, "top": 70},
    "pay": {"grid": 0.5, "top": 60},
    "born": {"grid": "quarter", "bottom": "1955-12-31"},
    "seen": {"grid": "hour"},
    "score": {"grid": 0.1},
}
PEOPLE = REPOSITORY / "data" / "people.csv"
FINER = {name: {"grid": "auto"} for name in GRIDS}


def on_grid(grids: dict[str, Any] = GRIDS, **others: Any) -> dict[str, Any]:
    """Return the section attributes, without a grid where none is named."""
    roles = {name: {"role": role} | grids.get(name, {}) for name, role in KINDS.items()}
    return roles | others


def verified(
    capsys: pytest.CaptureFixture[str], release: Path, original: Path, *more: str
) -> dict[str, Any]:
    outcome = command(capsys, "verify", release, "--original", original, "--json", *more)
    found: dict[str, Any] = json.loads(outcome.out)
    return found | {"code": outcome.code}


@pytest.mark.parametrize("style", ["interval", "bounds"])
@pytest.mark.parametrize(
    "model",
    [MODELS[2], *one_by_day(*MODELS[3:], *MODELS[:2])],
    ids=lambda one: "-".join(map(str, one.values())),
)
def test_a_release_on_a_grid_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: dict[str, Any], style: str
) -> None:
    table = people()
    ages = table["age"].to_pylist()
    ages[3::30] = [None] * len(ages[3::30])
    table = table.set_column(0, "age", pa.array(ages, pa.int32()))
    write_table(tmp_path / "people.parquet", table)
    for name, attributes in (("coarse", on_grid()), ("auto", on_grid(FINER))):
        sections: dict[str, Any] = {"model": model, "missing": "category"}
        output = {"path": str(tmp_path / name), "style": style}
        released(tmp_path / "run", attributes, output=output, **sections)
        found = verified(capsys, tmp_path / name, tmp_path / "people.parquet")
        assert found["holds"], found["failures"]
        assert found["code"] == 0
        assert found["truthfulness"]["without_counterpart"] == 0
        assert 0 < summary(tmp_path / name)["gcp"] < 1


def test_the_loss_is_that_of_the_published_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "people.parquet", people())
    attributes = on_grid()
    del attributes["sex"]
    release = released(tmp_path / "run", attributes)
    found = verified(capsys, release, tmp_path / "people.parquet")
    assert found["loss"]["gcp"] == pytest.approx(summary(release)["gcp"], rel=1e-9)


def test_labels(tmp_path: Path) -> None:
    """Ends are exact in decimal, lie on the grid, and say what is beyond of them."""
    tenths = [one / 10 for one in range(1, 41)]
    days = np.arange(40) * 11 + 10_000
    columns = {
        "whole": pa.array(range(40)),
        "float": pa.array(tenths),
        "decimal": pa.array([Decimal(str(one)) for one in tenths], pa.decimal128(6, 2)),
        "day": pa.array(days.astype(np.int32)).cast(pa.date32()),
    }
    grids = {
        "whole": {"grid": 5, "bottom": 9, "top": 30},
        "float": {"grid": 0.3, "top": 3},
        "decimal": {"grid": 0.25},
        "day": {"grid": "month", "top": "1998-01-01"},
    }
    for name, column in columns.items():
        write_table(tmp_path / "people.parquet", {name: column})
        attributes = {name: {"role": "quasi_identifier"} | grids[name]}
        output = {"path": str(tmp_path / name)}
        released(tmp_path / "run", attributes, privacy={"k": 10}, output=output)
        labels = set(published(tmp_path / name)[name].to_pylist())
        assert (
            labels
            == {
                "whole": {"9 or less", "[10-19]", "[20-29]", "30+"},
                "float": {"[0-2.1]", "[2.1-3+]"},
                "decimal": {"[0.00-2.00]", "[2.00-3.00]", "[3.00-4.25]"},
                "day": {
                    "[1997-05-01/1997-08-31]",
                    "[1997-09-01/1997-12-31]",
                    "1998-01-01 or later",
                },
            }[name]
        ), name


@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_0_is_a_strip_of_its_own(tmp_path: Path, kind: str) -> None:
    """Most people have no gain, and whoever counts them has to see that."""
    draw = np.random.default_rng(5)
    gain = np.where(draw.random(2_000) < 0.8, 0, draw.integers(1, 9_999, 2_000)).astype(kind)
    columns = {"age": draw.integers(18, 90, 2_000), "gain": gain}
    write_table(tmp_path / "people.parquet", columns)
    errors = {}
    for grid in ("none", "auto"):
        one = {"role": "quasi_identifier", "grid": grid}
        release, original = str(tmp_path / grid), str(tmp_path / "people.parquet")
        released(tmp_path / "run", dict.fromkeys(columns, one), output={"path": release})
        labels = published(tmp_path / grid)["gain"].to_pylist()
        assert labels.count("0") > 1_400
        errors[grid] = open_evaluation(LocalEngine(), release, original).workload().median
    assert errors["auto"] < 2 * errors["none"] + 0.02


def test_an_end_off_the_grid_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ages = {"age": pa.array(range(40))}
    write_table(tmp_path / "people.parquet", ages)
    attributes = {"age": {"role": "quasi_identifier", "grid": 5, "top": 30}}
    release = released(tmp_path / "run", attributes, privacy={"k": 10})
    labels = published(release)["age"].to_pylist()
    forgeries = {"[10-19]": ["[11-19]", "[10-18]", "[10-19+]", "15+"], "30+": ["[30-39]", "30"]}
    for before, forged in forgeries.items():
        for after in forged:
            table = pa.table({"age": [after if label == before else label for label in labels]})
            assert table["age"].to_pylist() != labels
            save_table(release, "data", table)
            list_files(release)
            message = command(capsys, "verify", release).err
            assert "age: records without a label" in message, after


@pytest.mark.parametrize("model", ["smondrian", "full-domain"])
def test_ends_of_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str) -> None:
    """The 89 and older of HIPAA, and births before a day, are one value at all levels."""
    births = [f"{1930 + one // 2}-0{1 + one % 9}-15" for one in range(80)]
    columns = {"age": [30 + one % 75 for one in range(80)], "born": births}
    write_table(tmp_path / "people.parquet", columns)
    attributes: dict[str, Any] = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [20]}, "top": 89},
        "born": {
            "role": "quasi_identifier",
            "hierarchy": {"calendar": ["year", "decade"]},
            "bottom": "1939-12-31",
            "type": "date",
        },
    }
    options = {"suppression_limit": 0.5} if model == "full-domain" else {}
    sections: dict[str, Any] = {"model": {"name": model} | options, "privacy": {"k": 3}}
    release = released(tmp_path / "run", attributes, **sections)
    found = verified(capsys, release, tmp_path / "people.parquet")
    assert found["holds"], found["failures"]
    labels = {name: set(published(release)[name].to_pylist()) for name in columns}
    assert "1939-12-31 or earlier" in labels["born"]
    assert labels["age"] & {"89+", "*"}
    assert not [one for one in labels["born"] if one.startswith("193") and "or" not in one]
    assert not [one for one in labels["age"] if one.startswith(("9", "[9", "1", "[1"))]


@pytest.mark.parametrize("grid", [None, 1, 7])
def test_ends_that_isolate_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], grid: int | None
) -> None:
    draw = np.random.default_rng(3)
    columns = {name: draw.integers(0, 90, 300) for name in ("a", "b")}
    write_table(tmp_path / "people.parquet", columns)
    one = {"role": "quasi_identifier", "grid": grid, "top": 80}
    output = {"path": str(tmp_path / "out"), "style": "bounds"}
    released(tmp_path / "run", dict.fromkeys(columns, one), output=output)
    found = verified(capsys, tmp_path / "out", tmp_path / "people.parquet")["ends"]
    expected = {"ends": 0, "by_value": 0, "by_strip": 0}

    def strip_of(value: Any) -> Any:
        """Return the number of a value's strip: 0 has one of its own, as all values from 80 on."""
        return np.where(value == 0, -1, np.where(value < 80, value // (grid or 1), 80))

    for row in {tuple(one.values()) for one in published(tmp_path / "out").to_pylist()}:
        boxes = {"a": row[:2], "b": row[2:]}
        for name, other in (("a", "b"), ("b", "a")):
            low, high = boxes[other]
            inside = (columns[other] >= low) & ((columns[other] <= high) | (high == 80))
            own, (first, last) = columns[name][inside], boxes[name]
            for end in (first, last):
                if first == last or end == 80:
                    continue
                expected["ends"] += 1
                expected["by_value"] += int((own == end).sum() == 1)
                expected["by_strip"] += int((strip_of(own) == strip_of(end)).sum() == 1)
    assert found == expected


def test_people_at_the_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nearly all ends were the birth date of one person; on the default grid few are."""
    found = {}
    for grid in ("none", "auto"):
        one = {"role": "quasi_identifier", "grid": grid}
        release = tmp_path / grid
        run(
            LocalEngine(),
            parse_configuration(
                {
                    "input": {
                        "path": str(PEOPLE),
                        "format": "csv",
                        "options": {"header": "true", "inferSchema": "true"},
                    },
                    "attributes": {"birth_date": one, "income": one, "diagnosis": "sensitive"},
                    "privacy": {"k": 12, "l_diversity": {"attribute": "diagnosis", "l": 3}},
                    "output": {"path": str(release)},
                }
            ),
        )
        ends = verified(capsys, release, PEOPLE)["ends"]
        found[grid] = ends["by_value"] / ends["ends"]
    assert found["none"] > 0.9
    assert found["auto"] < 0.1


def test_a_mapping_of_ranges_on_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "people.parquet", people())
    old = released(tmp_path / "old", on_grid())
    write_table(tmp_path / "people.parquet", people(seed=2))
    model = {"name": "mapping", "release": str(old)}
    new = released(tmp_path / "new", on_grid(), model=model)
    found = verified(capsys, new, tmp_path / "people.parquet")
    assert found["holds"], found["failures"]
    without_top = on_grid({**GRIDS, "age": {"grid": 5}})
    with pytest.raises(ConfigurationError, match=r"attributes.age: model.release has labels"):
        released(tmp_path / "other", without_top, model=model)


def test_a_union_and_a_plan_on_grids(tmp_path: Path) -> None:
    """Releases of holders and recipients end on the grid and are true."""
    role = {"role": "quasi_identifier", "grid": 5, "bottom": 24, "top": 70}
    draw = np.random.default_rng(1)
    coding = write_coding(tmp_path, {"k": 3}, attributes={"age": role, "illness": "sensitive"})
    labels = {"24 or less", "70+"}
    for name in ("north", "south"):
        ages = [*range(20, 90), *draw.integers(20, 90, 80).tolist()]
        columns = {"age": ages, "illness": draw.choice(["flu", "gout"], 150)}
        anonymize(tmp_path, name, columns, coding)
        labels |= set(published(tmp_path / name)["age"].to_pylist())
    unite(LocalEngine(), [str(tmp_path / name) for name in ("north", "south")], str(tmp_path / "u"))
    assert audit_release(LocalEngine(), str(tmp_path / "u")).require().holds
    assert set(published(tmp_path / "u")["age"].to_pylist()) == labels
    plan = plan_of(tmp_path)
    plan["base"]["attributes"]["age"] = role
    carry_out(plan, "first")
    release = tmp_path / "releases" / "labour"
    found = audit_release(LocalEngine(), str(release), original=str(tmp_path / "people.parquet"))
    assert found.require().holds
    assert found.ends is not None
    for label in set(published(release)["age"].to_pylist()):
        low, _, high = label.strip("[]").partition("-")
        assert low == "24 or less" or int(low.strip("+")) % 5 == 0, label
        assert not high or high == "70+" or int(high) % 5 == 4, label


def test_a_gate_bounds_the_ends(tmp_path: Path) -> None:
    write_table(tmp_path / "people.parquet", people())
    gates = {"isolating_ends": {"max": 0.5}}
    with pytest.raises(GuaranteeError, match=r"gates.isolating_ends: found 0"):
        released(tmp_path / "run", on_grid({}), gates=gates)
    coarse = on_grid(
        {
            "age": {"grid": 50},
            "pay": {"grid": 50},
            "born": {"grid": "decade"},
            "seen": {"grid": "month"},
            "score": {"grid": 500},
        }
    )
    release = released(tmp_path / "run", coarse, gates=gates)
    assert summary(release)["isolating_ends"] <= 0.5
    page = (release / "README.md").read_text()
    assert "the strip as wide as a step of the grid holds one record" in page
    output = {"path": str(tmp_path / "means"), "style": "mean"}
    with pytest.raises(ConfigurationError, match=r"gates.isolating_ends"):
        released(tmp_path / "run", coarse, gates=gates, output=output)
