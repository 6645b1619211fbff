"""Nothing that is written tells of a record that the release leaves out.

Two inputs differ in one record that is left out, alone in its values. Everything that is written
of them is the same, byte for byte, but for what is known to differ: when it was written, and
the keyed fingerprint of the input.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from everything_written import everything
from helpers import Outcome, command, configuration_file, metrics, summary, write_table

Row = dict[str, Any]

pytestmark = pytest.mark.usefixtures("without_spark")

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
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[Row],
    *,
    report: bool,
    **sections: Any,
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
    outcome = command(capsys, "run", path, *options, "--no-progress", "--run-id", "same")
    assert outcome.code == 0, outcome.err
    return tmp_path / "release", outcome


def assert_same(
    tmp_path: Path,
    capsys: Any,
    inputs: list[list[Row]],
    *,
    report: bool = False,
    **sections: Any,
) -> Path:
    """Check that all inputs have one release, and return it."""
    releases = []
    for rows in inputs:
        release, outcome = written(tmp_path, capsys, rows, report=report, **sections)
        releases.append(everything(release, outcome))
    first, *others = releases
    for other in others:
        assert other.keys() == first.keys()
        for name in first:
            assert other[name] == first[name], name
    return release


def test_a_record_without_a_class_is_not_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = assert_same(
        tmp_path,
        capsys,
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


def test_nor_is_it_by_rounds_and_distances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_same(
        tmp_path,
        capsys,
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
    outcome = command(
        capsys, "verify", release, "--original", tmp_path / "input.parquet", "--no-progress"
    )
    assert outcome.code == 0, outcome.err


def test_records_without_a_class_that_are_none_together_are_counted_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = [
        [*people(), *({**alone, "age": 70 + 9 * place} for place in range(6))]
        for alone in [{**ALONE[0], "code": "7777"}, {**ALONE[0], "disease": "other", "days": 3}]
    ]
    release = assert_same(
        tmp_path,
        capsys,
        inputs,
        privacy={"k": 5, "l_diversity": {"attribute": "disease", "l": 2}},
        model={"name": "full-domain", "levels": [{"age": 2, "code": 2, "since": 2, "sex": 0}]},
    )
    assert (summary(release)["rows_in"], summary(release)["rows_left_out"]) == (206, 6)
    attributes = metrics(release, "attributes")
    assert attributes[0]["generalized_rows"] == 206
    generalized = sum(row["generalized_rows"] for row in attributes)
    assert summary(release)["minimal_distortion"] == generalized >= 206 + 6 * 3


def test_a_record_dropped_for_a_missing_value_is_not_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
        capsys,
        inputs,
        attributes=attributes,
        privacy={"k": 5, "t_closeness": {"attribute": "disease", "t": 0.6}},
    )
    figures = summary(release)
    assert (figures["rows_in"], figures["rows_dropped_missing"]) == (None, None)
