"""Sampling weights: risk from an outsider, in a run, in its release, and in no class."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli, Outcome, command
from helpers import document_file, local_table, metrics, published, write_table
from release_folders import list_files, rewrite

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.parquet_encoding import encode_table
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release
from anonspark.verification.proof.weights import sum_weights

ROWS = 900

FIGURES = (
    *("average", "highest", "lowest", "at_risk", "at_highest", "at_lowest", "unique", "expected"),
    *("high_at_risk", "high_average", "high_highest", "high_unique"),
)
OF_ROUNDS = {"metrics/risk: figures of rounds"}


def sample() -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "age": random.integers(18, 80, ROWS),
            "job": random.choice(["clerk", "cook", "driver", "nurse"], ROWS),
            "w": random.lognormal(3, 1, ROWS),
            "ill": random.choice(["yes", "no"], ROWS),
        }
    )


def document_at(tmp_path: Path, weights: pa.Array | None = None, **sections: Any) -> dict[str, Any]:
    table = sample()
    if weights is not None:
        table = table.set_column(2, "w", weights)
    roles = {"age": "quasi_identifier", "job": "quasi_identifier", "w": "insensitive"}
    document = {
        "input": {"path": str(write_table(tmp_path / "people.parquet", table))},
        "attributes": {**roles, "ill": "sensitive"},
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
        "evaluate": {"risk": {"weights": "w"}},
        "output": {"path": str(tmp_path / "release"), "mode": "overwrite"},
        "execution": {"seed": 2**40 + 1},
    }
    return document | sections


def expected_figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Compute the figures record by record."""
    weights = defaultdict(list)
    for row in rows:
        weights[row["age"], row["job"]].append(row["w"])
    risks = []
    for own in weights.values():
        size, share = len(own), len(own) / math.fsum(own)
        # Each class has 5 records at least.
        risks += [share / (size - (1 - share))] * size
    return {
        "expected": math.fsum(risks),
        "average": math.fsum(risks) / len(risks),
        "highest": max(risks),
        "lowest": min(risks),
        "at_risk": sum(one > 0.2 for one in risks) / len(risks),
        "unique": 0.0,
    }


def outsider(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = (row for row in rows if row["attacker"] == "outsider")
    return found


@cases(__file__, "sections")
def test_a_run_and_its_verification(tmp_path: Path, sections: dict[str, Any]) -> None:
    document = document_at(tmp_path)
    sections = {name: document[name] | own for name, own in sections.items()}
    document |= sections
    found = run(LocalEngine(), parse_configuration(document))
    row = outsider(metrics(tmp_path / "release", "risk"))
    if document["output"].get("style") != "bounds":
        figures = expected_figures(published(tmp_path / "release").to_pylist())
        assert {name: row[name] for name in figures} == pytest.approx(figures)
    assert row["round"] is None
    assert 0 < row["highest"] < 0.2
    verified = audit_release(LocalEngine(), str(tmp_path / "release"))
    assert verified.failures == []
    assert {one for one in verified.claimed if one.startswith("metrics/risk: ")} == OF_ROUNDS
    proven, stated = outsider(verified.risk), outsider(found.risk)
    # A bound, which the published table does not have.
    assert proven.pop("accepted_average") == stated.pop("accepted_average") == 0.1
    assert {name: row[name] for name in proven} == pytest.approx(proven)
    assert stated | {"round": None} == row


@cases(__file__, "model")
def test_weights_that_are_not_published(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, model: dict[str, Any]
) -> None:
    document = document_at(tmp_path, model=model)
    table = sample().append_column("number", pa.array(np.arange(ROWS)))
    write_table(tmp_path / "people.parquet", table)
    rules = {"age": {"intervals": [5, 20]}, "job": {"prefix": [1]}}
    attributes = {"w": "identifier", "number": "insensitive"}
    if model["name"] != "microaggregation":
        attributes |= {
            name: {"role": "quasi_identifier", "hierarchy": own} for name, own in rules.items()
        }
    document["attributes"] |= attributes
    run(LocalEngine(), parse_configuration(document))
    assert "attributes.w" not in caplog.text
    release = tmp_path / "release"
    row = outsider(metrics(release, "risk"))
    weights = table["w"].to_pylist()
    rows = [one | {"w": weights[one["number"]]} for one in published(release).to_pylist()]
    figures = expected_figures(rows)
    assert {name: row[name] for name in figures} == pytest.approx(figures)
    verified = audit_release(LocalEngine(), str(release))
    assert verified.failures == []
    claimed = {one for one in verified.claimed if one.startswith("metrics/risk: ")} - OF_ROUNDS
    assert claimed == {f"metrics/risk: {name}" for name in FIGURES}


def test_weights_change_no_record(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    with_weights = run(LocalEngine(), parse_configuration(document))
    risk = metrics(tmp_path / "release", "risk")
    del document["evaluate"]
    without = run(LocalEngine(), parse_configuration(document))
    assert with_weights.summary["output_fingerprint"] == without.summary["output_fingerprint"]
    others = [row | {"run_id": None} for row in risk if row["attacker"] != "outsider"]
    assert others == [row | {"run_id": None} for row in metrics(tmp_path / "release", "risk")]
    assert parse_configuration(document).fingerprint() == (
        parse_configuration(document | {"evaluate": {"risk": {"weights": None}}}).fingerprint()
    )


def test_sums_do_not_depend_on_order_or_tasks() -> None:
    table = sample().append_column("long", pa.array(["x" * 40] * ROWS))
    mixed = table.take(np.random.default_rng(1).permutation(ROWS))
    found = []
    for rows, tasks in ((table, 1), (mixed, 1), (table, 7), (mixed, 4)):
        sums = sum_weights(local_table(rows, tasks), ["job", "long"], "w", [""])
        assert sums is not None
        found.append([one.tolist() for one in sums])
    assert all(one == found[0] for one in found)
    assert sum(found[0][1]) == pytest.approx(math.fsum(table["w"].to_pylist()))


@pytest.mark.parametrize("kind", ["text", "decimal", "single"])
def test_weights_of_other_types(kind: str) -> None:
    quarters = (sample()["w"].to_numpy() * 4).astype(np.int64) / 4 + 0.25
    weights: dict[str, pa.Array] = {
        "text": pa.array([f" {one} " for one in quarters]),
        "decimal": pa.array([f"{one:.2f}" for one in quarters]).cast(pa.decimal128(12, 2)),
        "single": pa.array(quarters, pa.float32()),
    }
    found, expected = (
        sum_weights(local_table(pa.table({"w": one})), [], "w", ["", "?"])
        for one in (weights[kind], pa.array(quarters))
    )
    assert found == expected == (np.array([ROWS]), np.array([quarters.sum()]))


def test_weights_may_be_zero(tmp_path: Path) -> None:
    # Longitudinal surveys interview people who stand for no one else.
    weights = sample()["w"].to_numpy().copy()
    weights[sample()["age"].to_numpy() < 40] = 0
    run(LocalEngine(), parse_configuration(document_at(tmp_path, pa.array(weights))))
    row = outsider(metrics(tmp_path / "release", "risk"))
    assert row["highest"] == 0.2
    assert 0 < row["lowest"] < 0.2
    assert audit_release(LocalEngine(), str(tmp_path / "release")).failures == []


@cases(__file__, "value", "shown")
def test_a_weight_that_is_none(tmp_path: Path, cli: Cli, value: Any, shown: str) -> None:
    weights: list[Any] = sample()["w"].to_pylist()
    weights[7] = None if value is None else float(value)
    path = document_file(tmp_path, document_at(tmp_path, pa.array(weights, pa.float64())))
    for name, role in (("run", "sensitive"), ("check", "identifier"), ("run", "identifier")):
        role_of_weights = ("--set", f"attributes.w.role={role}")
        found = cli.ends(3, name, path, "--no-progress", *role_of_weights)
        assert shown in found.err, found.err[-400:]
    assert not (tmp_path / "release").exists()


def test_a_column_that_holds_no_numbers(tmp_path: Path) -> None:
    dates = pa.array([20_000] * ROWS, pa.date32())
    with pytest.raises(DataError, match=r"column 'w' has type date\. Expected numbers"):
        run(LocalEngine(), parse_configuration(document_at(tmp_path, dates)))


@cases(__file__, "changes", "shown")
def test_configurations_that_are_refused(
    tmp_path: Path, changes: dict[str, Any], shown: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(document_at(tmp_path) | changes)
    assert shown in str(refused.value)


def test_gates(tmp_path: Path) -> None:
    document = document_at(tmp_path, gates={"risk.outsider.expected": {"max": 0.5}})
    with pytest.raises(GuaranteeError, match=r"risk\.outsider\.expected"):
        run(LocalEngine(), parse_configuration(document))
    document["gates"] = {"risk.outsider.highest": {"max": 0.1}, "risk.outsider.unique": {"max": 0}}
    run(LocalEngine(), parse_configuration(document))
    assert audit_release(LocalEngine(), str(tmp_path / "release")).failures == []


@pytest.mark.parametrize(
    ("role", "figure"),
    [("insensitive", "expected"), ("insensitive", "average"), ("identifier", "expected")],
)
def test_a_figure_that_was_changed(tmp_path: Path, role: str, figure: str) -> None:
    """It is refused if the weights are published, else it is a claim."""
    document = document_at(tmp_path, evaluate={"risk": {"weights": "w", "threshold": 0.0}})
    document["attributes"]["w"] = role
    run(LocalEngine(), parse_configuration(document))
    release = tmp_path / "release"
    (path,) = (release / "metrics" / "risk").glob("part-*")
    rows = pq.read_table(path)
    forged = rows[figure].to_pylist()
    forged[-1] *= 0.5
    place = rows.schema.get_field_index(figure)
    rewrite(path, encode_table(rows.set_column(place, figure, pa.array(forged, pa.float64()))))
    list_files(release)
    found = audit_release(LocalEngine(), str(release))
    assert any(f"{figure} (row" in one for one in found.failures) == (role == "insensitive")
    assert (f"metrics/risk: {figure}" in found.claimed) == (role == "identifier")


def test_rows_of_other_attackers_are_proven_whatever_weights_are_asked_for(tmp_path: Path) -> None:
    """A forged risk was accepted where the configuration did not name the same weights."""
    document = document_at(tmp_path)
    run(LocalEngine(), parse_configuration(document))
    release = tmp_path / "release"
    (path,) = (release / "metrics" / "risk").glob("*.parquet")
    rows = pq.read_table(path)
    of_release = rows["round"].to_pylist().index(None)
    highest = rows["highest"].to_pylist()
    forged = pa.array([0.0001 if n == of_release else x for n, x in enumerate(highest)], "float64")
    place = rows.schema.get_field_index("highest")
    rewrite(path, encode_table(rows.set_column(place, "highest", forged)))
    list_files(release)
    asked = document | {"evaluate": {}}
    failures = audit_release(
        LocalEngine(), str(release), configuration=parse_configuration(asked)
    ).failures
    assert any("risk" in one and "highest" in one for one in failures)


def test_broken_promises_come_before_weights_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The publisher's advice was all that was shown of a release that was changed."""
    path = document_file(tmp_path, document_at(tmp_path))
    assert command(capsys, "run", path, "--no-progress").code == 0
    release, table = tmp_path / "release", tmp_path / "other.parquet"
    (part,) = (release / "data").glob("part-*")
    rows = pq.read_table(part)
    weights = pa.array([-1.0, *rows["w"].to_pylist()[1:]], pa.float64())
    rewrite(part, encode_table(rows.set_column(2, "w", weights)))
    list_files(release)
    write_table(table, pq.read_table(part))
    (tmp_path / "strict").mkdir()
    strict = document_file(tmp_path / "strict", document_at(tmp_path, privacy={"k": 800}))
    own = f"{release}/data: its records are not those"
    advice = "evaluate.risk.weights: found 1 of 900 records without a weight in column 'w'"
    for options, code, shown in (
        ([release], 4, [own, advice]),
        ([release, "--config", path], 4, [own, advice]),
        ([table, "--config", path], 3, [advice]),
        ([table, "--config", strict], 4, ["at least k = 800", advice]),
    ):
        found = verified(capsys, *options)
        text = " ".join((found.out + found.err).split())
        assert found.code == code, text
        places = [text.find(one) for one in shown]
        assert places == sorted(places)
        assert -1 not in places, text


def verified(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    return command(capsys, "verify", *arguments, "--details", "--no-progress")


def test_it_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    assert "individual risk (outsider)" in command(capsys, "run", path, "--details").out
    row = outsider(metrics(tmp_path / "release", "risk"))
    found = verified(capsys, tmp_path / "release")
    assert f"{row['expected']:.4f}" in found.out
    assert command(capsys, "report", tmp_path / "release", "--no-progress").code == 0
    report = (tmp_path / "release" / "report.html").read_text()
    assert f"{row['expected']:.2f} re-identifications" in report


def test_a_table_of_another_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_at(tmp_path)
    run(LocalEngine(), parse_configuration(document))
    path = document_file(tmp_path, document)
    table = tmp_path / "other.parquet"
    write_table(table, published(tmp_path / "release"))
    found = verified(capsys, table, "--config", path)
    assert "outsider" in found.out, found.err
    write_table(table, published(tmp_path / "release").drop_columns(["w"]))
    found = verified(capsys, table, "--config", path)
    assert found.code == 3
    assert "lacks the published columns 'w'" in found.err
