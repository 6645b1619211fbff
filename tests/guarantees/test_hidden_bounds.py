"""Nothing that is written of means gives back a bound.

A release of means is a function of the classes' sizes and means: two inputs whose classes have the
same ones, and other bounds, have one release, byte for byte, with report and printed output.
"""

from __future__ import annotations

import json
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
from everything_written import everything
from helpers import Outcome, command, configuration_file, metrics, summary, write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.core.figures import ATTRIBUTES, ROUNDS, SUMMARY
from anonspark.errors import ConfigurationError
from anonspark.layers.generalize.classes import _exact_means

pytestmark = pytest.mark.usefixtures("without_spark")

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


def written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: pa.Table, **sections: Any
) -> dict[str, Any]:
    """Return everything that is written, always at the same place."""
    write_table(tmp_path / "input.parquet", table)
    sections["output"] = {"mode": "overwrite", "style": "mean", **sections.get("output", {})}
    sections = {"privacy": {"k": K}, "execution": {"seed": 2**40}, **sections}
    path = configuration_file(tmp_path, **sections)
    outcome = command(
        capsys, "run", path, "--report", "--details", "--no-progress", "--run-id", "same"
    )
    assert outcome.code == 0, outcome.err
    checked = command(capsys, "verify", tmp_path / "release", "--json")
    assert checked.code == 0, checked.out + checked.err
    # The log is for who has the input.
    return everything(tmp_path / "release", Outcome(0, outcome.out, "")) | {
        "verified": json.loads(checked.out)
    }


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, kind: str
) -> None:
    found = []
    for shapes in (NARROW, WIDE):
        columns = {"income": pa.array(spread(kind, shapes), KINDS[kind][1])}
        columns["ill"] = pa.array(["flu", "cold", "cough"] * len(shapes))
        found.append(
            written(
                tmp_path,
                capsys,
                pa.table(columns),
                attributes={"income": "quasi_identifier", "ill": "sensitive"},
                model=MODELS[model],
            )
        )
    assert_same(*found)
    assert summary(tmp_path / "release")["classes"] >= 2


@pytest.mark.parametrize(
    "declared",
    [{}, {"range": [-1000, 9000]}, {"weight": 3.0}],
    ids=["alone", "range", "weight"],
)
@pytest.mark.parametrize("missing", ["drop", "category"])
@pytest.mark.parametrize("model", ["microaggregation", "smondrian"])
def test_beside_others_that_tell_their_own_loss(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model: str,
    missing: str,
    declared: dict[str, Any],
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
            written(
                tmp_path,
                capsys,
                pa.table(columns),
                attributes=attributes,
                model={"name": model},
                missing=missing,
                evaluate={"compare_baseline": True},
            )
        )
    assert_same(*found)


# By day each kind is above, in two tables.
@pytest.mark.parametrize("kind", one_by_day("float", *(one for one in KINDS if one != "float")))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_of_a_single_class_nothing_but_the_mean(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    data: st.DataObject,
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
        written(
            folder,
            capsys,
            pa.table({"income": pa.array([make(one) for one in numbers], own_type)}),
            attributes={"income": "quasi_identifier"},
            privacy={"k": len(values)},
            model={"name": model},
        )
        for numbers in (values, others)
    ]
    assert_same(*found)


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


def test_what_is_null_and_what_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"income": spread("integer", WIDE), "job": ["a", "b", "c"] * len(WIDE)})
    document: dict[str, Any] = {
        "attributes": {"income": "quasi_identifier", "job": "insensitive"},
        "model": {"name": "su-mondrian", "rho": 2},
    }
    written(tmp_path, capsys, table, **document)
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
    written(tmp_path, capsys, table, **document)
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
