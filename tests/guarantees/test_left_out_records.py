"""Nothing that is written tells of a record that the release leaves out, or gives back a bound."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases, one_by_day
from commands import Cli, Outcome
from everything_written import everything
from helpers import configuration_file, metrics, summary, write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.core.figures import ATTRIBUTES, ROUNDS, SUMMARY
from anonspark.errors import ConfigurationError
from anonspark.layers.generalize.classes import _exact_means

pytestmark = pytest.mark.usefixtures("without_spark")


Row = dict[str, Any]
SCHEMA = pa.schema(
    {
        "age": pa.int64(),
        "code": pa.string(),
        "since": pa.date32(),
        "sex": pa.string(),
        "disease": pa.string(),
        "days": pa.int64(),
    }
)
QUASI_IDENTIFIERS = {
    "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
    "code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 2, 3]}},
    "since": {"role": "quasi_identifier", "hierarchy": {"calendar": ["year"]}},
    "sex": {"role": "quasi_identifier", "hierarchy": {"prefix": [1]}},
    "disease": "sensitive",
    "days": "insensitive",
}


def people(number: int = 200) -> list[Row]:
    """Return people of whom many are alike."""
    draw = random.Random(5)  # noqa: S311 - no secret
    return [
        {
            "age": draw.randrange(20, 40),
            "code": draw.choice(["1100", "1101", "1200"]),
            "since": draw.choice([18000, 18400]),
            "sex": draw.choice("mf"),
            "disease": draw.choice(["flu", "cold", "asthma"]),
            "days": draw.randrange(9),
        }
        for _ in range(number)
    ]


# Alone in one way and in others; some of the values are found elsewhere, too.
ALONE: list[Row] = [
    {"age": 99, "code": "9999", "since": 1, "sex": "x", "disease": "rare", "days": 77},
    {"age": 25, "code": "8888", "since": 18000, "sex": "m", "disease": "flu", "days": 1},
    {"age": None, "code": None, "since": None, "sex": "y", "disease": None, "days": None},
]


def written(
    tmp_path: Path, cli: Cli, rows: list[Row], *, report: bool, **sections: Any
) -> tuple[Path, Outcome]:
    """Run a configuration over rows; always at the same place, for paths are written, too."""
    write_table(tmp_path / "input.parquet", pa.Table.from_pylist(rows, SCHEMA))
    sections.setdefault("attributes", QUASI_IDENTIFIERS)
    path = configuration_file(
        tmp_path,
        **sections | {"output": {"mode": "overwrite"}, "execution": {"seed": 2**40}},
        evaluate={"information": True, "association": {"target": "disease"}},
    )
    options = ["--report"] if report else []
    outcome = cli.ends(0, "run", path, *options, "--no-progress", "--run-id", "same")
    return tmp_path / "release", outcome


def assert_same(
    tmp_path: Path, cli: Cli, inputs: list[list[Row]], *, report: bool = False, **sections: Any
) -> Path:
    """Check that all inputs have one release, and return it."""
    releases = []
    for rows in inputs:
        release, outcome = written(tmp_path, cli, rows, report=report, **sections)
        releases.append(everything(release, outcome))
    first, *others = releases
    for other in others:
        assert other.keys() == first.keys()
        for name in first:
            assert other[name] == first[name], name
    return release


def test_a_record_without_a_class_is_not_told_of(tmp_path: Path, cli: Cli) -> None:
    release = assert_same(
        tmp_path,
        cli,
        [[*people(), alone] for alone in ALONE[::2]],
        report=True,
        privacy={"k": 5},
        model={"name": "full-domain", "levels": [{"age": 2, "code": 2, "since": 2, "sex": 0}]},
        missing="category",
    )
    figures = summary(release)
    assert [figures[name] for name in ("rows_in", "rows_suppressed", "rows_left_out")] == [None] * 3
    assert figures["rows_published"] == 200
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["published"]["rows_left_out"] is None


def test_nor_is_it_by_rounds_and_distances(tmp_path: Path, cli: Cli) -> None:
    assert_same(
        tmp_path,
        cli,
        [[*people(), alone] for alone in ALONE[:2]],
        privacy={"k": 5, "t_closeness": {"attribute": "disease", "t": 0.6}},
        model={
            "name": "rho-gain",
            "rho": 1,
            "objective": "discernibility",
            "suppression_limit": 0.5,
            "levels": [{"age": 2, "code": 2, "since": 2, "sex": 0}],
        },
        missing="category",
    )
    release = tmp_path / "release"
    cli.ends(0, "verify", release, "--original", tmp_path / "input.parquet", "--no-progress")


def test_records_without_a_class_that_are_none_together_are_counted_only(
    tmp_path: Path, cli: Cli
) -> None:
    inputs = [
        [*people(), *({**alone, "age": 70 + 9 * place} for place in range(6))]
        for alone in [{**ALONE[0], "code": "7777"}, {**ALONE[0], "disease": "other", "days": 3}]
    ]
    release = assert_same(
        tmp_path,
        cli,
        inputs,
        privacy={"k": 5, "l_diversity": {"attribute": "disease", "l": 2}},
        model={"name": "full-domain", "levels": [{"age": 2, "code": 2, "since": 2, "sex": 0}]},
    )
    assert (summary(release)["rows_in"], summary(release)["rows_left_out"]) == (206, 6)
    attributes = metrics(release, "attributes")
    assert attributes[0]["generalized_rows"] == 206
    generalized = sum(row["generalized_rows"] for row in attributes)
    assert summary(release)["minimal_distortion"] == generalized >= 206 + 6 * 3


def test_a_record_dropped_for_a_missing_value_is_not_told_of(tmp_path: Path, cli: Cli) -> None:
    inputs = [
        [*people(), {**ALONE[1], "sex": None, "code": None}],
        [*people(), {**ALONE[0], "since": None}, {**ALONE[1], "age": None}],
    ]
    attributes = {
        **dict.fromkeys(("age", "since", "sex"), "quasi_identifier"),
        "code": {"role": "quasi_identifier", "type": "text"},
        "disease": "sensitive",
        "days": "insensitive",
    }
    release = assert_same(
        tmp_path,
        cli,
        inputs,
        attributes=attributes,
        privacy={"k": 5, "t_closeness": {"attribute": "disease", "t": 0.6}},
    )
    figures = summary(release)
    assert (figures["rows_in"], figures["rows_dropped_missing"]) == (None, None)


K = 3

# What a number becomes in a column of each kind.
KINDS: dict[str, tuple[Any, pa.DataType]] = {
    "integer": (int, pa.int64()),
    "float": (lambda number: number / 8, pa.float64()),
    "decimal": (lambda number: Decimal(number) / 100, pa.decimal128(12, 2)),
    "date": (lambda number: date(2000, 1, 1) + timedelta(days=number), pa.date32()),
    "timestamp": (
        lambda number: datetime(2000, 1, 1) + timedelta(microseconds=number),
        pa.timestamp("us"),
    ),
}

# Classes far from one another, each of K values about its middle.
NARROW = [(-1, 0, 1), (-2, -1, 3), (0, 0, 0), (-5, 0, 5)] * 2
WIDE = [(-90, 40, 50), (-7, 3, 4), (-60, -10, 70), (-1, -1, 2)] * 2


def spread(kind: str, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    make, _ = KINDS[kind]
    return [make(1000 * place + one) for place, own in enumerate(shapes) for one in own]


def written_with_means(
    tmp_path: Path, cli: Cli, table: pa.Table, **sections: Any
) -> dict[str, Any]:
    """Return everything that is written, always at the same place."""
    write_table(tmp_path / "input.parquet", table)
    sections["output"] = {"mode": "overwrite", "style": "mean", **sections.get("output", {})}
    sections = {"privacy": {"k": K}, "execution": {"seed": 2**40}, **sections}
    path = configuration_file(tmp_path, **sections)
    outcome = cli.ends(0, "run", path, "--report", "--details", "--no-progress", "--run-id", "same")
    checked = cli("verify", tmp_path / "release", "--json")
    assert checked.code == 0, checked.out + checked.err
    # The log is for who has the input.
    return everything(tmp_path / "release", Outcome(0, outcome.out, "")) | {
        "verified": json.loads(checked.out)
    }


def assert_equal_outputs(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name


# Those of canon draw records by their hashes, so that other values make other classes: below.
MODELS: dict[str, dict[str, Any]] = {
    "microaggregation": {"name": "microaggregation"},
    "smondrian": {"name": "smondrian"},
    "relaxed": {"name": "smondrian", "split": "relaxed"},
    "su-mondrian": {"name": "su-mondrian", "rho": 2},
    "auto": {"name": "auto"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS)
def test_a_release_is_a_function_of_sizes_and_means(
    tmp_path: Path, cli: Cli, model: str, kind: str
) -> None:
    found = []
    for shapes in (NARROW, WIDE):
        columns = {"income": pa.array(spread(kind, shapes), KINDS[kind][1])}
        columns["ill"] = pa.array(["flu", "cold", "cough"] * len(shapes))
        found.append(
            written_with_means(
                tmp_path,
                cli,
                pa.table(columns),
                attributes={"income": "quasi_identifier", "ill": "sensitive"},
                model=MODELS[model],
            )
        )
    assert_equal_outputs(*found)
    assert summary(tmp_path / "release")["classes"] >= 2


@pytest.mark.parametrize(
    "declared", [{}, {"range": [-1000, 9000]}, {"weight": 3.0}], ids=["alone", "range", "weight"]
)
@pytest.mark.parametrize("missing", ["drop", "category"])
@pytest.mark.parametrize("model", ["microaggregation", "smondrian"])
def test_beside_others_that_tell_their_own_loss(
    tmp_path: Path, cli: Cli, model: str, missing: str, declared: dict[str, Any]
) -> None:
    """The loss of a label is everybody's to compute: what is left of a sum would be the mean's."""
    found = []
    for shapes in (NARROW, WIDE):
        # As many classes as can be halved and halved again.
        income = [*spread("integer", shapes[missing == "category" :]), *[None] * K]
        job = ["clerk", "cook", "clerk"] * (len(income) // 3)
        columns = {"income": pa.array(income, pa.int64()), "job": job, "age": [40] * len(income)}
        attributes = {
            "income": {"role": "quasi_identifier", **declared},
            "job": {"role": "quasi_identifier", "weight": 0.001},
            "age": "quasi_identifier",
        }
        found.append(
            written_with_means(
                tmp_path,
                cli,
                pa.table(columns),
                attributes=attributes,
                model={"name": model},
                missing=missing,
                evaluate={"compare_baseline": True},
            )
        )
    assert_equal_outputs(*found)


# By day each kind is above, in two tables.
@pytest.mark.parametrize("kind", one_by_day("float", *(one for one in KINDS if one != "float")))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_of_a_single_class_nothing_but_the_mean(
    tmp_path_factory: pytest.TempPathFactory, cli: Cli, kind: str, data: st.DataObject
) -> None:
    """With one class every average is the class's own figure."""
    values = data.draw(st.lists(st.integers(-(10**5), 10**5), min_size=2, max_size=5))
    moves = data.draw(st.lists(st.integers(-(10**5), 10**5), min_size=1, max_size=4))
    others = list(values)
    for place, move in enumerate(moves):
        others[place % len(values)] += move
        others[(place + 1) % len(values)] -= move
    model = data.draw(st.sampled_from(["microaggregation", "smondrian", "canon", "u-canon"]))
    make, own_type = KINDS[kind]
    folder = tmp_path_factory.mktemp("one")
    found = [
        written_with_means(
            folder,
            cli,
            pa.table({"income": pa.array([make(one) for one in numbers], own_type)}),
            attributes={"income": "quasi_identifier"},
            privacy={"k": len(values)},
            model={"name": model},
        )
        for numbers in (values, others)
    ]
    assert_equal_outputs(*found)


@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.floats(-10, 10) | st.sampled_from([0.1, 0.3, 1e308]),
        min_size=1,
        max_size=9,
    ),
    st.randoms(use_true_random=False),
)
def test_means_of_floats_depend_on_their_sum_alone(values: list[float], draw: Any) -> None:
    """Rounding on the way would put a trace of single values into the last digits."""
    shuffled = list(values)
    draw.shuffle(shuffled)
    ends = np.array([0, len(values)])
    everybody, counts = np.ones(len(values), bool), np.array([len(values)])
    means = [_exact_means(np.array(own), everybody, ends, counts)[0] for own in (values, shuffled)]
    assert means[0] == means[1]
    assert min(values) <= means[0] <= max(values)
    exact = sum(map(Fraction, values)) / len(values)
    assert means[0] == pytest.approx(float(exact), rel=1e-15, abs=1e-300)


def test_what_is_null_and_what_is_not(tmp_path: Path, cli: Cli) -> None:
    table = pa.table({"income": spread("integer", WIDE), "job": ["a", "b", "c"] * len(WIDE)})
    document: dict[str, Any] = {
        "attributes": {"income": "quasi_identifier", "job": "insensitive"},
        "model": {"name": "su-mondrian", "rho": 2},
    }
    written_with_means(tmp_path, cli, table, **document)
    release = tmp_path / "release"
    tables = {"summary": SUMMARY, "rounds": ROUNDS, "attributes": ATTRIBUTES}
    for name, columns in tables.items():
        for row in metrics(release, name):
            assert {
                one.name for one in columns if one.is_loss and row[one.name] is not None
            } == set()
            assert row["run_id"] == "same"
    classes = pq.read_table(release / "metrics/classes").to_pylist()
    assert {(row["ncp"], row["income_min"], row["income_max"]) for row in classes} == {(None,) * 3}
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["summary"]["gcp"] is None
    # Of labels everything is told as before, whatever the style is called.
    document["attributes"] = {"income": "insensitive", "job": "quasi_identifier"}
    written_with_means(tmp_path, cli, table, **document)
    assert summary(release)["gcp"] is not None
    assert summary(release)["utility_score"] is not None


@cases(__file__, "sections", "key")
def test_no_bound_can_be_set_on_what_is_hidden(sections: dict[str, Any], key: str) -> None:
    document = {
        "input": {"path": "people.csv"},
        "attributes": {"income": "quasi_identifier", "ill": "sensitive"},
        "privacy": {"k": 5},
        "output": {"path": "release"},
        **sections,
    }
    parse_configuration(document)
    document["output"] = {"path": "release", "style": "mean"}
    with pytest.raises(ConfigurationError, match=key):
        parse_configuration(document)
