"""Declared ranges and grids: what they take the place of, and what is published and refused."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases, one_by_day
from commands import Cli, interrupted
from forgeries import save_table
from helpers import configuration_file, contents, of_any_run, published, summary, write_table
from holders import anonymize, write_coding
from hypothesis import given, settings
from hypothesis import strategies as st
from places import REPOSITORY
from recipients import carry_out
from release_folders import list_files
from test_distribute import plan_of

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.labels.regions import published_attributes
from anonspark.pipeline.plan import check_input
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.sharing.holders.union import unite
from anonspark.utility.evaluation import open_evaluation
from anonspark.verification.audit import audit_release

KINDS = {
    "age": "quasi_identifier",
    "pay": "quasi_identifier",
    "born": "quasi_identifier",
    "seen": "quasi_identifier",
    "score": "quasi_identifier",
    "sex": "quasi_identifier",
    "illness": "sensitive",
}
DAY = datetime.date(1950, 1, 1)
MOMENT = datetime.datetime(2026, 1, 1)  # of a column without a time zone
BOUNDS: dict[str, list[Any]] = {
    "age": [18, 79],
    "pay": [10.25, 99.75],
    "born": ["1950-01-01", "1999-12-31"],
    "seen": ["2026-01-01", "2026-01-31 12:30:00.5"],
    "score": [-2.5, 1e3],
}
MODELS: list[dict[str, Any]] = [
    {"name": "smondrian"},
    {"name": "su-mondrian", "span": "cell"},
    {"name": "su-mondrian", "split": "relaxed", "rho": 3},
    {"name": "u-canon"},
    {"name": "microaggregation"},
]


def people(rows: int = 240, seed: int = 1) -> pa.Table:
    """Return people whose extremes are the bounds."""
    draw = np.random.default_rng(seed)
    seconds = draw.integers(0, 30 * 86_400, rows)
    columns: dict[str, list[Any]] = {
        "age": draw.integers(19, 79, rows).tolist(),
        "pay": [round(10.5 + 80 * one, 2) for one in draw.random(rows)],
        "born": [DAY + datetime.timedelta(days=int(one)) for one in draw.integers(0, 18000, rows)],
        "seen": [MOMENT + datetime.timedelta(seconds=int(one)) for one in seconds],
        "score": (1000 * draw.random(rows) - 2.5).tolist(),
        "sex": draw.choice(["f", "m"], rows).tolist(),
        "illness": draw.choice(["flu", "gout", "mumps"], rows).tolist(),
    }
    columns["age"][:2], columns["pay"][:2], columns["score"][:2] = (
        [18, 79],
        [10.25, 99.75],
        [-2.5, 1e3],
    )
    columns["born"][:2] = [DAY, datetime.date(1999, 12, 31)]
    columns["seen"][:2] = [MOMENT, MOMENT + datetime.timedelta(days=30, seconds=45000.5)]
    types = {
        "age": pa.int32(),
        "pay": pa.decimal128(9, 4),
        "seen": pa.timestamp("us"),
        "score": pa.float64(),
    }
    return pa.table(
        {
            name: pa.array([f"{one:.2f}" for one in own] if name == "pay" else own).cast(
                types.get(name, pa.array(own).type)
            )
            for name, own in columns.items()
        }
    )


def ranged(bounds: dict[str, list[Any]] = BOUNDS, **others: Any) -> dict[str, Any]:
    return {
        name: {"role": role} | ({"range": bounds[name]} if name in bounds else {})
        for name, role in KINDS.items()
    } | others


def released(folder: Path, attributes: dict[str, Any], **sections: Any) -> Path:
    path = folder / "release"
    document: dict[str, Any] = {
        "input": {"path": str(folder.parent / "people.parquet")},
        "attributes": attributes,
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
        "output": {"path": str(path)},
    }
    run(LocalEngine(), parse_configuration(document | sections))
    return path


@pytest.mark.parametrize(
    "model",
    [MODELS[1], *one_by_day(*MODELS[2:], MODELS[0])],
    ids=lambda one: "-".join(map(str, one.values())),
)
def test_the_ends_of_the_table_change_nothing(tmp_path: Path, model: dict[str, Any]) -> None:
    write_table(tmp_path / "people.parquet", people())
    sections: dict[str, Any] = {"model": model, "evaluate": {"information": True}}
    with_range = released(tmp_path / "with", ranged(), **sections)
    without = released(tmp_path / "without", KINDS, **sections)
    assert of_any_run(with_range) == of_any_run(without)


def test_missing_values_people_and_cells_of_many_tasks(tmp_path: Path) -> None:
    table = people(600)
    age = table["age"].to_pylist()
    age[5::40] = [None] * len(age[5::40])
    table = table.set_column(0, "age", pa.array(age, pa.int32()))
    table = table.append_column("person", pa.array(np.arange(600) // 2))
    write_table(tmp_path / "people.parquet", table)
    sections: dict[str, Any] = {
        "missing": "category",
        "model": {"name": "su-mondrian", "span": "cell", "rho": 2},
        "privacy": {"k": 5, "unit": "person"},
        "execution": {"task_rows": 100},
    }
    own = {"person": "identifier"}
    with_range = released(tmp_path / "with", ranged() | own, **sections)
    without = released(tmp_path / "without", KINDS | own, **sections)
    assert of_any_run(with_range) == of_any_run(without)


@pytest.mark.parametrize("model", ["smondrian", "u-canon", "microaggregation"])
def test_a_wider_range_makes_the_same_width_a_smaller_loss(tmp_path: Path, model: str) -> None:
    table = {"age": [20, 20, 30, 30, 60, 60, 70, 70] * 4}
    write_table(tmp_path / "people.parquet", table)
    attributes = {"age": {"role": "quasi_identifier"}}
    sections: dict[str, Any] = {"model": {"name": model}, "privacy": {"k": 16}}
    without = released(tmp_path / "without", attributes, **sections)
    attributes["age"]["range"] = [0, 100]  # type: ignore[assignment]
    with_range = released(tmp_path / "with", attributes, **sections)
    # Classes [20-30] and [60-70]: 10 of the 50 years that occur, and of the 100 that may.
    assert summary(without)["gcp"] == pytest.approx(0.2)
    assert summary(with_range)["gcp"] == pytest.approx(0.1)


def test_the_root_cell_is_the_range(tmp_path: Path) -> None:
    """With the width of cells the range of ``a`` is cut first, although its records are near."""
    rows = 64
    table = {"a": np.arange(rows) % 8, "b": np.arange(rows) // 8}
    write_table(tmp_path / "people.parquet", table)
    attributes: dict[str, Any] = {
        "a": {"role": "quasi_identifier", "range": [0, 7]},
        "b": {"role": "quasi_identifier", "range": [0, 100], "weight": 2.0},
    }
    cut: dict[str, set[str]] = {}
    for span in ("data", "cell"):
        model = {"name": "smondrian", "span": span}
        sections: dict[str, Any] = {"model": model, "privacy": {"k": 32}}
        release = released(tmp_path / span, attributes, **sections)
        data = LocalEngine().published(f"{release}/data", "parquet").collect()
        cut[span] = {name for name in ("a", "b") if len(set(data[name].to_pylist())) > 1}
    assert cut == {"data": {"a"}, "cell": {"b"}}


def test_a_part_is_measured_alike_whatever_comes_into_another(tmp_path: Path) -> None:
    attributes = {"age": {"role": "quasi_identifier", "range": [0, 120]}}
    parts: dict[str, list[int]] = {"own": [20, 25, 30, 35, 40, 45], "other": [50, 55, 60, 65]}

    def gcp(part: str, place: str) -> float:
        write_table(tmp_path / place / "people.parquet", {"age": parts[part]})
        path = released(tmp_path / place / "run", attributes, privacy={"k": 2})
        return float(summary(path)["gcp"])

    before = gcp("own", "own-before"), gcp("other", "other-before")
    parts["other"].append(118)
    assert gcp("own", "own-after") == before[0]
    assert gcp("other", "other-after") != before[1]


@settings(max_examples=15)
@given(st.lists(st.integers(20, 60), min_size=6, max_size=30), st.integers(61, 1000))
def test_the_loss_is_that_of_the_labels(
    tmp_path_factory: pytest.TempPathFactory, ages: list[int], highest: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    attributes = {"age": {"role": "quasi_identifier", "range": [0, highest]}}
    write_table(folder / "people.parquet", {"age": ages})
    output = {"path": str(folder / "out"), "style": "bounds"}
    released(folder / "run", attributes, privacy={"k": 2}, output=output)
    rows = LocalEngine().published(str(folder / "out" / "data"), "parquet").collect().to_pylist()
    lost = sum(row["age_max"] - row["age_min"] for row in rows) / highest
    assert summary(folder / "out")["gcp"] == pytest.approx(lost / len(ages))


def test_a_coding_of_ends_that_nobody_has(tmp_path: Path) -> None:
    write_table(tmp_path / "people.parquet", people())
    wide = {name: BOUNDS[name] for name in ("born", "seen")} | {
        "age": [0.0, 150],
        "pay": [0, 100.00005],
        "score": [-1e300, 1e300],
    }
    for style in ("interval", "bounds", "mean"):
        output = {"path": str(tmp_path / f"styled-{style}"), "style": style}
        released(tmp_path / style, ranged(wide), output=output)
        gcp = summary(tmp_path / f"styled-{style}")["gcp"]
        # With a declared range, it would be a width.
        assert (gcp is None) if style == "mean" else 0 < gcp < 1


def test_single_precision(tmp_path: Path) -> None:
    values = pa.array([0.1, 0.2, 0.3, 0.7], pa.float32())
    write_table(tmp_path / "people.parquet", {"x": values})
    attributes: dict[str, Any] = {"x": {"role": "quasi_identifier", "range": [0.1, 0.7]}}
    with_range = released(tmp_path / "with", attributes, privacy={"k": 2})
    del attributes["x"]["range"]
    without = released(tmp_path / "without", attributes, privacy={"k": 2})
    assert of_any_run(with_range) == of_any_run(without)


def test_verify_knows_the_range(tmp_path: Path, cli: Cli) -> None:
    attributes = ranged({**BOUNDS, "age": [0, 200], "born": ["1900-01-01", "2026-12-31"]})
    del attributes["sex"]
    write_table(tmp_path / "people.parquet", people())
    release = released(tmp_path / "run", attributes)
    original = tmp_path / "people.parquet"
    told = json.loads(cli("verify", release, "--original", original, "--json").out)
    assert told["loss"]["gcp"] == pytest.approx(summary(release)["gcp"], rel=1e-9)
    found = published_attributes(read_manifest(LocalEngine().files, str(release)))
    ends = {one.name: one.ends for one in found}
    assert ends["age"] == (0, 200)
    assert ends["born"] == (-25567, 20818)
    start = 1767225600e6
    assert ends["seen"] == (start, start + (30 * 86400 + 45000.5) * 1e6)


def test_everything_is_the_whole_range(tmp_path: Path) -> None:
    """A value that a release does not tell may be anywhere in the range, as its reader knows."""
    ages = [10, 11, 12, 13, None, None, None, None]
    write_table(tmp_path / "people.parquet", {"age": ages, "town": ["x"] * 8})
    attributes: dict[str, Any] = {"age": {"role": "quasi_identifier"}, "town": "insensitive"}
    found = []
    for name, bounds in (("without", None), ("narrow", [10, 13]), ("wide", [10, 109])):
        attributes["age"]["range"] = bounds
        sections: dict[str, Any] = {"missing": "category", "privacy": {"k": 8}}
        release = released(tmp_path / name, attributes, **sections)
        source = str(tmp_path / "people.parquet")
        evaluation = open_evaluation(LocalEngine(), str(release), source)
        (axis,) = evaluation.quasi_identifiers
        spread, _ = axis.spread([pa.array(["*"])])
        found.append(float(spread.shares(np.array([10.0]), np.array([13.0]))[0, 0]))
    # Of four years and a missing value, and of a hundred years and a missing value.
    assert found == pytest.approx([4 / 5, 4 / 5, 4 / 101])


@cases(__file__, "name", "bounds")
def test_values_outside_are_refused(tmp_path: Path, name: str, bounds: list[Any], cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", people())
    path = configuration_file(tmp_path, attributes=ranged({name: bounds}))
    before = contents(tmp_path)
    for done in ("check", "run"):
        outcome = cli.ends(3, done, path)
        (line,) = [one for one in outcome.err.splitlines() if one.startswith("error: ")]
        place, _, line = line.partition(f"attributes.{name}.range: ")
        assert re.fullmatch(rf"error: {re.escape(str(path))}:\d+:\d+: ", place)
        assert line.startswith("the column has values outside of it. Expected")
        # Neither a value nor a count, not even how many.
        assert not any(sign.isdigit() for sign in line)
        assert contents(tmp_path) == before


def test_values_of_rules_are_in_the_range(tmp_path: Path) -> None:
    write_table(tmp_path / "people.parquet", people())
    rules = {
        "age": {"hierarchy": {"intervals": [10, 20]}, "range": [18, 79]},
        "born": {"hierarchy": {"calendar": ["year"]}, "range": ["1950-01-01", "1999-12-31"]},
        "score": {"hierarchy": {"intervals": [250, 500]}, "range": [-2.5, 1000]},
    }
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier"} | rule for name, rule in rules.items()
    }
    sections: dict[str, Any] = {"model": {"name": "full-domain", "suppression_limit": 1.0}}
    released(tmp_path / "inside", attributes, **sections)
    for name, bounds in (("age", [19, 79]), ("born", ["1950-01-02", "2000-01-01"])):
        attributes[name]["range"] = bounds
        with pytest.raises(DataError, match=f"{name}.range: the column has values outside"):
            released(tmp_path / f"outside-{name}", attributes, **sections)
        attributes[name]["range"] = rules[name]["range"]
        assert not (tmp_path / f"outside-{name}").exists()


@pytest.mark.parametrize("model", ["full-domain", "smondrian"])
@pytest.mark.parametrize(
    ("rule", "bounds", "share"),
    [
        ({"intervals": [10]}, [0, 99], 10 / 100),
        ({"calendar": ["year"]}, ["2020-01-01", "2023-12-31"], 365 / 1461),
    ],
    ids=["intervals", "calendar"],
)
def test_penalties_of_rules_count_the_range(
    tmp_path: Path, model: str, rule: dict[str, Any], bounds: list[Any], share: float
) -> None:
    """A group covers of a range what it covers of it, whoever else is in the table."""
    first: list[Any] = [20, 21, 28, 29]
    second: list[Any] = [71, 72, 73, 75]
    if "calendar" in rule:
        first = [datetime.date(2021, month, 1) for month in (1, 4, 7, 12)]
        second = [datetime.date(2022, 2, day) for day in (1, 2, 3, 4)]
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": rule, "range": bounds}}
    sections: dict[str, Any] = {
        "privacy": {"k": 4},
        "model": {"name": model} | ({"suppression_limit": 1.0} if model == "full-domain" else {}),
    }
    for name, values in (("one", first), ("both", [*first, *second])):
        write_table(tmp_path / "people.parquet", {"age": values})
        release = released(tmp_path / name, attributes, **sections)
        assert summary(release)["gcp"] == pytest.approx(share)
        (axis,) = open_evaluation(
            LocalEngine(), str(release), str(tmp_path / "people.parquet")
        ).quasi_identifiers
        assert axis.published is not None
        low, high = axis.published.ends or (0, 0)
        assert high - low == (99 if "intervals" in rule else 1460)


@cases(__file__, "name", "bounds", "told")
def test_ranges_that_do_not_fit_the_column(
    tmp_path: Path, name: str, bounds: list[Any], told: str
) -> None:
    write_table(tmp_path / "people.parquet", people())
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": ranged({name: bounds}),
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "release")},
    }
    configuration = parse_configuration(document)
    for work in (run, check_input):
        with pytest.raises(ConfigurationError) as refused:
            work(LocalEngine(), configuration)
        assert f"attributes.{name}.range: does not fit the column" in str(refused.value)
        assert told in str(refused.value)


def test_the_mapping_of_a_release_stays_inside(tmp_path: Path) -> None:
    write_table(tmp_path / "people.parquet", {"age": list(range(20, 60))})
    attributes: dict[str, Any] = {"age": {"role": "quasi_identifier", "range": [0, 100]}}
    first = released(tmp_path / "first", attributes)
    mapping = {"name": "mapping", "release": str(first)}
    second = released(tmp_path / "second", attributes, model=mapping)
    assert summary(second)["gcp"] == pytest.approx(summary(first)["gcp"])
    write_table(tmp_path / "people.parquet", {"age": list(range(30, 50))})
    attributes["age"]["range"] = [30, 55]
    with pytest.raises(ConfigurationError, match=r"labels of model\.release reach beyond it"):
        released(tmp_path / "third", attributes, model=mapping)


@pytest.mark.parametrize("name", one_by_day("microaggregation", "su-mondrian"))
def test_a_continued_run_knows_the_range(tmp_path: Path, name: str) -> None:
    """The run that fails has staged its snapshot and rounds; the next one reads these again."""
    write_table(tmp_path / "people.parquet", people())
    sections: dict[str, Any] = {"model": {"name": name}, "evaluate": {"information": True}}
    attributes = ranged({"age": [0, 1000], "score": [-1e4, 1e4]})
    whole = released(tmp_path / "whole", attributes, **sections)
    document = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": attributes,
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "continued")},
    }
    configuration = parse_configuration(document | sections)

    with interrupted("measure_information_kept"):
        run(LocalEngine(), configuration, run_id="one", resume=True)
    run(LocalEngine(), configuration, run_id="one", resume=True)
    continued = tmp_path / "continued"
    assert json.loads((continued / "manifest.json").read_text())["attempt"] == 2
    assert of_any_run(continued) == of_any_run(whole)


def test_recipients_of_a_plan(tmp_path: Path, cli: Cli) -> None:
    """Recipients of a plan get parts, whose losses are told of the range of the base."""
    write_table(tmp_path / "people.parquet", people())
    base = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": ranged({"age": [0, 1000]}, person="identifier"),
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
    }
    table = people().append_column("person", pa.array([f"P{one}" for one in range(240)]))
    write_table(tmp_path / "people.parquet", table)
    plan = {
        "base": base,
        "subject": ["person"],
        "output": str(tmp_path / "plans"),
        "recipients": {
            "one": {"columns": ["age", "illness"], "purpose": "p", "approved": "board"}
            | {"privacy": {"k": 5}}
        },
    }
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan))
    cli.ends(0, "distribute", path)
    assert summary(tmp_path / "plans" / "one")["gcp"] < 0.05
    plan["base"]["attributes"]["age"]["range"] = [0, 50]  # type: ignore[index]
    plan["output"] = str(tmp_path / "others")
    path.write_text(json.dumps(plan))
    outcome = cli.ends(3, "distribute", path)
    assert "attributes.age.range: the column has values outside of it" in outcome.err
    assert not (tmp_path / "others").exists()


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


def verified(cli: Cli, release: Path, original: Path, *more: str) -> dict[str, Any]:
    outcome = cli("verify", release, "--original", original, "--json", *more)
    found: dict[str, Any] = json.loads(outcome.out)
    return found | {"code": outcome.code}


@pytest.mark.parametrize("style", ["interval", "bounds"])
@pytest.mark.parametrize(
    "model",
    [MODELS[2], *one_by_day(*MODELS[3:], *MODELS[:2])],
    ids=lambda one: "-".join(map(str, one.values())),
)
def test_a_release_on_a_grid_is_true(
    tmp_path: Path, cli: Cli, model: dict[str, Any], style: str
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
        found = verified(cli, tmp_path / name, tmp_path / "people.parquet")
        assert found["holds"], found["failures"]
        assert found["code"] == 0
        assert found["truthfulness"]["without_counterpart"] == 0
        assert 0 < summary(tmp_path / name)["gcp"] < 1


def test_the_loss_is_that_of_the_published_ranges(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "people.parquet", people())
    attributes = on_grid()
    del attributes["sex"]
    release = released(tmp_path / "run", attributes)
    found = verified(cli, release, tmp_path / "people.parquet")
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


def test_an_end_off_the_grid_is_found(tmp_path: Path, cli: Cli) -> None:
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
            message = cli("verify", release).err
            assert "age: records without a label" in message, after


@pytest.mark.parametrize("model", ["smondrian", "full-domain"])
def test_ends_of_rules(tmp_path: Path, cli: Cli, model: str) -> None:
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
    found = verified(cli, release, tmp_path / "people.parquet")
    assert found["holds"], found["failures"]
    labels = {name: set(published(release)[name].to_pylist()) for name in columns}
    assert "1939-12-31 or earlier" in labels["born"]
    assert labels["age"] & {"89+", "*"}
    assert not [one for one in labels["born"] if one.startswith("193") and "or" not in one]
    assert not [one for one in labels["age"] if one.startswith(("9", "[9", "1", "[1"))]


@pytest.mark.parametrize("grid", [None, 1, 7])
def test_ends_that_isolate_are_counted(tmp_path: Path, cli: Cli, grid: int | None) -> None:
    draw = np.random.default_rng(3)
    columns = {name: draw.integers(0, 90, 300) for name in ("a", "b")}
    write_table(tmp_path / "people.parquet", columns)
    one = {"role": "quasi_identifier", "grid": grid, "top": 80}
    output = {"path": str(tmp_path / "out"), "style": "bounds"}
    released(tmp_path / "run", dict.fromkeys(columns, one), output=output)
    found = verified(cli, tmp_path / "out", tmp_path / "people.parquet")["ends"]
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


def test_people_at_the_ends(tmp_path: Path, cli: Cli) -> None:
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
        ends = verified(cli, release, PEOPLE)["ends"]
        found[grid] = ends["by_value"] / ends["ends"]
    assert found["none"] > 0.9
    assert found["auto"] < 0.1


def test_a_mapping_of_ranges_on_a_grid(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "people.parquet", people())
    old = released(tmp_path / "old", on_grid())
    write_table(tmp_path / "people.parquet", people(seed=2))
    model = {"name": "mapping", "release": str(old)}
    new = released(tmp_path / "new", on_grid(), model=model)
    found = verified(cli, new, tmp_path / "people.parquet")
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
