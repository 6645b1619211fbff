"""Columns published as they are that give quasi-identifiers away: warnings, and the attack."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from helpers import configuration_file, local_table, published, write_table

from anonspark.config.loading import parse_configuration
from anonspark.core.columns import payload_column, quasi_identifier_column
from anonspark.pipeline.warnings.dependencies import dependency_warnings, sample_of

ROWS, K = 600, 5
DRAW = np.random.default_rng(41)
AGE = DRAW.integers(18, 90, ROWS)
TOWN = DRAW.integers(0, 40, ROWS)
WEIGHT = np.round(DRAW.normal(75, 15, ROWS), 6)
ILLNESS = DRAW.choice(["flu", "cold", "cough", "none"], ROWS)

GIVING: dict[str, tuple[Any, str, float | None]] = {
    "copy": (TOWN, "town", None),
    "code": ([f"X{(own * 7) % 40}" for own in TOWN], "town", None),
    "district": (TOWN * 3 + DRAW.integers(0, 3, ROWS), "town", None),
    "nearly always": (np.where(np.arange(ROWS) % 50 == 0, 99, TOWN), "town", None),
    "months": (AGE * 12 + DRAW.integers(0, 12, ROWS), "age", None),
    "year of birth": (2026 - AGE - DRAW.integers(0, 2, ROWS), "age", 0.05),
    "five years": ([f"{own // 5 * 5}+" for own in AGE], "age", 0.05),
    "copy of a measurement": (WEIGHT, "weight", 0.05),
    "in pounds": (WEIGHT * 2.2046 + 1, "weight", 0.05),
    "falling": (-np.exp(WEIGHT / 40), "weight", 0.05),
}
SAYING_LITTLE: dict[str, Any] = {
    "decade": [f"{own // 20}" for own in AGE],
    "random": DRAW.integers(0, 40, ROWS),
    "random number": DRAW.normal(0, 1, ROWS),
    "constant": ["x"] * ROWS,
    "country": TOWN // 20,
}


def written(folder: Path, given: Any, role: str, **more: Any) -> Path:
    columns = {"age": AGE, "town": TOWN, "weight": WEIGHT, "illness": ILLNESS, "given": given}
    write_table(folder / "input.parquet", {**columns, **more})
    roles = {"age": "quasi_identifier", "town": {"role": "quasi_identifier", "type": "text"}}
    roles |= {"weight": "quasi_identifier", "illness": "sensitive", "given": role}
    seed = {"seed": 5_164_208_731_946_275_003}
    roles |= dict.fromkeys(more, role)
    return configuration_file(folder, attributes=roles, privacy={"k": K}, execution=seed)


def given_away(text: str) -> list[dict[str, Any]]:
    return [one for one in json.loads(text)["warnings"] if one["code"] == "gives_away"]


@pytest.mark.parametrize("name", GIVING)
@pytest.mark.parametrize("role", ["insensitive", "sensitive"])
def test_what_gives_away_is_warned_of(tmp_path: Path, cli: Cli, name: str, role: str) -> None:
    given, determined, within = GIVING[name]
    outcome = cli.ends(0, "check", written(tmp_path, given, role), "--json")
    (warning,) = given_away(outcome.out)
    assert warning["attribute"] == "given"
    (figures,) = warning["figures"]["gives_away"]
    assert (figures["attribute"], figures["within"]) == (determined, within)
    # Rounded to multiples of k records, so that no person can be counted: 12 of 600 are another.
    if name == "nearly always":
        assert figures["share"] == pytest.approx(1 - 10 / ROWS, abs=5e-4)
    assert figures["share"] >= 0.95
    assert f"published as it is ({role}), it shows {determined}" in outcome.err


@pytest.mark.parametrize("name", SAYING_LITTLE)
def test_what_says_little_is_not(tmp_path: Path, cli: Cli, name: str) -> None:
    outcome = cli.ends(0, "check", written(tmp_path, SAYING_LITTLE[name], "insensitive"), "--json")
    assert given_away(outcome.out) == []


def test_two_columns_give_away_together(tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path, TOWN // 8, "insensitive", rest=TOWN % 8)
    outcome = cli("check", path, "--json")
    (warning,) = given_away(outcome.out)
    assert warning["figures"]["columns"] == ["given", "rest"]
    assert [one["attribute"] for one in warning["figures"]["gives_away"]] == ["town"]
    assert "together with rest it shows town" in outcome.err


def test_run_report_and_card_say_it(tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path, TOWN, "insensitive")
    outcome = cli.ends(0, "run", path, "--no-progress", "--report")
    release = tmp_path / "release"
    (warning,) = given_away((release / "manifest.json").read_text())
    assert outcome.err.count(warning["text"]) == 1
    report = (release / "report.html").read_text()
    beginning = report[report.index("What weakens it") : report.index("What weakens it") + 6000]
    assert "it shows town" in beginning
    assert not re.search(r"town for (all|fewer)", warning["text"])


def test_a_sample_finds_the_same() -> None:
    towns = np.random.default_rng(3).integers(0, 50, 20_000)
    records = local_table(
        pa.table(
            {
                payload_column(0): [f"d{own}" for own in towns],
                payload_column(1): np.random.default_rng(4).integers(0, 50, len(towns)),
                quasi_identifier_column(0): [f"t{own * 3 % 50}" for own in towns],
            }
        ),
        tasks=3,
    )
    configuration = parse_configuration(
        {
            "input": {"path": "p"},
            "attributes": {"d": "insensitive", "r": "insensitive", "t": "quasi_identifier"},
            "privacy": {"k": 5},
            "output": {"path": "o"},
        }
    )
    found = [
        dependency_warnings(sample_of(records, configuration, len(towns), most=most), configuration)
        for most in (1_000, 100_000)
    ]
    for warnings, exact in zip(found, (False, True), strict=True):
        (warning,) = warnings
        assert warning.attribute == "d"
        assert warning.figures["exact"] is exact
        assert warning.figures["gives_away"] == [{"attribute": "t", "share": 1.0, "within": None}]


def holds(label: str, value: int) -> bool:
    """Return whether a label as it is published holds a number."""
    if label.startswith("{"):
        return str(value) in re.split(r", ", label[1:-1])
    ends = [float(one) for one in re.findall(r"(?<![0-9])-?[0-9.]+", label.replace("-", " "))]
    return ends[0] <= value <= ends[-1]


def test_the_attack_with_values_is_counted_as_by_hand(tmp_path: Path, cli: Cli) -> None:
    rows = 120
    original = {
        "age": AGE[:rows],
        "town": TOWN[:rows],
        "ward": [None if own % 9 == 0 else f"w{own // 10}" for own in TOWN[:rows]],
        "floor": TOWN[:rows] % 3,
        "illness": ILLNESS[:rows],
    }
    write_table(tmp_path / "input.parquet", original)
    path = configuration_file(
        tmp_path,
        attributes={
            "age": "quasi_identifier",
            "town": {"role": "quasi_identifier", "type": "text"},
            "ward": "insensitive",
            "floor": "insensitive",
            "illness": "sensitive",
        },
        privacy={"k": K},
    )
    cli.ends(0, "run", path, "--no-progress")
    release = tmp_path / "release"
    outcome = cli.ends(
        0, "verify", release, "--original", tmp_path / "input.parquet", "--json", "--no-progress"
    )
    verified = json.loads(outcome.out)
    records = published(release).to_pylist()
    people = pq.read_table(tmp_path / "input.parquet").to_pylist()
    assert set(verified["linkage_with_values"]) == {"insensitive", "insensitive and sensitive"}
    for name, known in (
        ("insensitive", ["ward", "floor"]),
        ("insensitive and sensitive", ["ward", "floor", "illness"]),
    ):
        candidates = [
            sum(
                holds(str(record["age"]), person["age"])
                and holds(str(record["town"]), person["town"])
                and all(record[one] == person[one] for one in known)
                for record in records
            )
            for person in people
        ]
        found = verified["linkage_with_values"][name]
        assert found["records"] == found["matched"] == rows
        assert found["fewer_than_k"] == sum(own < K for own in candidates) > 0
        assert found["smallest_candidates"] == min(candidates)
    (warning,) = [one for one in verified["warnings"] if one.startswith("linkage attack")]
    assert "insensitive attributes" in warning
    assert verified["linkage"]["original"]["fewer_than_k"] == 0
    # Labels are read in every style.
    options = ("--set", "output.style=bounds", "--set", f"output.path={tmp_path / 'bounds'}")
    cli.ends(0, "run", path, "--no-progress", *options)
    again = cli(
        *("verify", tmp_path / "bounds", "--original", tmp_path / "input.parquet", "--json")
    )
    assert json.loads(again.out)["linkage_with_values"] == verified["linkage_with_values"]
    original = ("--original", tmp_path / "input.parquet", "--details")
    shown = cli("verify", release, *original)
    assert "linkage with values, insensitive" in shown.out


def test_a_sample_of_many_columns_has_fewer_records() -> None:
    """It is collected by the driver, whose spark.driver.maxResultSize 300 columns exceeded."""
    names = [f"c{number}" for number in range(60)]
    numbers = DRAW.integers(0, 2**40, (20_000, len(names)))
    columns = {payload_column(i): pa.array(numbers[:, i]) for i in range(len(names))}
    columns[quasi_identifier_column(0)] = columns[payload_column(0)]
    records = local_table(pa.table(columns), tasks=3)
    configuration = parse_configuration(
        {
            "input": {"path": "p"},
            "attributes": dict.fromkeys(names, "insensitive") | {"t": "quasi_identifier"},
            "privacy": {"k": 5},
            "output": {"path": "o"},
        }
    )
    sample = sample_of(records, configuration, len(numbers)).drawn
    assert 4_000 < len(sample) < 2 * 8_595
    assert sample.nbytes < 16 << 20
