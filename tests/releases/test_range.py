"""Declared ranges: what they take the place of, what they refuse, and who knows of them."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases, one_by_day
from helpers import command, configuration_file, contents, of_any_run, summary, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, PublishingError
from anonspark.labels.regions import published_attributes
from anonspark.pipeline import run as running
from anonspark.pipeline.plan import check_input
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.utility.evaluation import open_evaluation

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
        [
            -2.5,
            1e3,
        ],
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


def test_verify_knows_the_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attributes = ranged({**BOUNDS, "age": [0, 200], "born": ["1900-01-01", "2026-12-31"]})
    del attributes["sex"]
    write_table(tmp_path / "people.parquet", people())
    release = released(tmp_path / "run", attributes)
    original = tmp_path / "people.parquet"
    told = json.loads(command(capsys, "verify", release, "--original", original, "--json").out)
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
def test_values_outside_are_refused(
    tmp_path: Path, name: str, bounds: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "input.parquet", people())
    path = configuration_file(tmp_path, attributes=ranged({name: bounds}))
    before = contents(tmp_path)
    for done in ("check", "run"):
        outcome = command(capsys, done, path)
        assert outcome.code == 3
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
def test_a_continued_run_knows_the_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
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

    def fail(*_: object, **__: object) -> None:
        raise PublishingError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(running, "measure_information_kept", fail)
        with pytest.raises(PublishingError):
            run(LocalEngine(), configuration, run_id="one", resume=True)
    run(LocalEngine(), configuration, run_id="one", resume=True)
    continued = tmp_path / "continued"
    assert json.loads((continued / "manifest.json").read_text())["attempt"] == 2
    assert of_any_run(continued) == of_any_run(whole)


def test_recipients_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
            | {"privacy": {"k": 5}},
        },
    }
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan))
    outcome = command(capsys, "distribute", path)
    assert outcome.code == 0, outcome.err
    assert summary(tmp_path / "plans" / "one")["gcp"] < 0.05
    plan["base"]["attributes"]["age"]["range"] = [0, 50]  # type: ignore[index]
    plan["output"] = str(tmp_path / "others")
    path.write_text(json.dumps(plan))
    outcome = command(capsys, "distribute", path)
    assert outcome.code == 3
    assert "attributes.age.range: the column has values outside of it" in outcome.err
    assert not (tmp_path / "others").exists()
