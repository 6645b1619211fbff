"""What a run warns of, in `check`, log, manifest and report, without a value of the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, published, write_table
from release_folders import read_manifest

from anonspark.config.loading import SEED_VARIABLE
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.warnings.value_sizes import CountedColumn, count_value_sizes

SEED = 5_164_208_731_946_275_003

# One thing said in four ways, and missing in two.
SPELLINGS = ["flu", "Flu", "flu\u00a0", "\ufb02u", None, "n/a"]

ROWS = 120


def table(**columns: Any) -> dict[str, Any]:
    return {
        "age": [20 + row % 40 for row in range(ROWS)],
        # Two records for each patient, and seven more for one of them.
        "patient": [f"P-{max(row, 14) // 2:04d}" for row in range(ROWS)],
        "visit": [None if row % 10 == 0 else f"V-{row:04d}" for row in range(ROWS)],
        "full_name": [f"Name Of-{row:04d}" for row in range(ROWS)],
        "income": [20_000.5 + row for row in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "disease": [SPELLINGS[row // 2 % 6] for row in range(ROWS)],
        "ward": ["rare-ward" if row == 7 else "ward" for row in range(ROWS)],
        "note": [("Seen", "seen ", "waits")[row % 3] for row in range(ROWS)],
        **columns,
    }


ATTRIBUTES = {
    "age": "quasi_identifier",
    "patient": "identifier",
    "visit": "identifier",
    "full_name": "insensitive",
    "income": "insensitive",
    "sex": "insensitive",
    "disease": "sensitive",
    "ward": "sensitive",
    # No criterion is about it.
    "note": "sensitive",
}


def by_kind(warnings: list[Mapping[str, Any]]) -> dict[tuple[str, str | None], Mapping[str, Any]]:
    found = {(one["code"], one["attribute"]): one for one in warnings}
    assert len(found) == len(warnings)
    return found


def test_everything_to_warn_of(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", table())
    path = configuration_file(
        tmp_path,
        input={"missing_markers": ["", "?", "N/A"]},
        attributes=ATTRIBUTES,
        privacy={
            "l_diversity": [
                {"attribute": "disease", "l": 5},
                {"attribute": "disease", "kind": "entropy", "l": 2},
            ]
        },
    )
    expected = {
        ("guessable_seed", None),
        ("exact_ends", None),
        ("identifier_repeats", "patient"),
        ("column_identifies", "full_name"),
        ("column_identifies", "income"),
        # Records with the next lower and the next higher income have nearly the same age.
        ("gives_away", "income"),
        ("rare_values", "ward"),
        ("equal_values", "disease"),
        ("equal_values", "note"),
        ("no_criterion", "ward"),
        ("no_criterion", "note"),
    }

    outcome = cli.ends(0, "check", path, "--json")
    checked = by_kind(json.loads(outcome.out)["warnings"])
    assert set(checked) == expected
    assert checked["equal_values", "disease"]["figures"] == {"values": 6, "merged_values": 2}
    logged = outcome.err
    assert "are fine" not in cli("check", path).out

    outcome = cli.ends(0, "run", path, "--json", "--no-progress", "--report")
    release = tmp_path / "release"
    manifest = read_manifest(release)
    warned = by_kind(manifest["warnings"])
    spellings = {(code, name) for code, name in expected if code == "equal_values"}
    published = expected - spellings | {("missing_values", "disease")}
    assert set(warned) == published
    assert json.loads(outcome.out)["warnings"] == manifest["warnings"]
    # Each once in the log, although the run is to be quiet.
    assert len(outcome.err.splitlines()) == len(published)
    for one in manifest["warnings"]:
        where = f"attributes.{one['attribute']}: " if one["attribute"] else ""
        assert outcome.err.count(f": {where}{one['text']}") == 1
    assert warned["column_identifies", "full_name"]["figures"]["unique_share"] == 1.0
    assert warned["rare_values", "ward"]["figures"] == {
        "records": ROWS,
        "values": 2,
        "unique_records": 1,
        "unique_share": 1 / ROWS,
        "records_below_k": 1,
        "share_below_k": 1 / ROWS,
        "exact": True,
    }
    # Rounded to multiples of k; the patient with 16 records is nobody's figure.
    repeats = warned["identifier_repeats", "patient"]
    assert repeats["figures"] == {
        "repeated_share": 1.0,
        "records_of_k_identifiers": 2,
        "missing_share": 0.0,
        "exact": True,
    }
    missing = table()["disease"].count(None)
    assert warned["missing_values", "disease"]["figures"] == {"records": missing}

    report = (release / "report.html").read_text()
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", report)
    assert titles[:2] == ["At a glance", "What weakens it"]
    assert all(name in report for name in ("full_name", "patient", "ward"))

    logged += outcome.err
    outcome = cli.ends(0, "verify", release, "--json", "--no-progress")
    verified = json.loads(outcome.out)
    assert [warning.partition(":")[0] for warning in verified["warnings"]] == [
        "attributes.disease",
        "attributes.ward",
        "attributes.note",
    ]
    for warning in verified["warnings"]:
        assert warning in outcome.err
    assert "values are missing" in verified["warnings"][0]

    # No value anywhere, nor a word of identifiers in what is published.
    logged += outcome.err
    for value in ("Name Of", "P-00", "V-00", "rare-ward", "flu", "Flu", "20000", "20,000"):
        assert value not in logged
        assert value not in json.dumps(manifest)
        assert not re.search(rf"\b{value}", json.dumps(checked and list(checked.values())))
    # A command is proposed, and no number: that would be in the log.
    assert "secrets.randbits(64)" in logged
    assert "secrets.randbits" not in json.dumps(manifest) + report


def test_nothing_to_warn_of(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {
        "patient": [f"P-{row}" for row in range(ROWS)],
        "disease": [("flu", "cold", "grippe")[row // 2 % 3] for row in range(ROWS)],
    }
    write_table(tmp_path / "input.parquet", table(**plain))
    roles = {name: ATTRIBUTES[name] for name in ("age", "patient", "visit", "sex", "disease")}
    roles["age"] = {"role": "quasi_identifier", "grid": "auto"}
    path = configuration_file(
        tmp_path, attributes=roles, privacy={"l_diversity": {"attribute": "disease", "l": 2}}
    )
    monkeypatch.setenv(SEED_VARIABLE, str(SEED))
    outcome = cli("check", path, "--no-progress")
    assert (outcome.code, outcome.err) == (0, "")
    assert "configuration and data are fine" in outcome.out
    outcome = cli("run", path, "--no-progress", "--report")
    assert (outcome.code, outcome.err) == (0, "")
    release = tmp_path / "release"
    manifest = read_manifest(release)
    assert manifest["warnings"] == []
    assert ">Warnings<" not in (release / "report.html").read_text()
    assert str(SEED) not in json.dumps(manifest)

    # The same number in a file makes the same release, and only who may read it is warned of.
    monkeypatch.delenv(SEED_VARIABLE)
    seed = tmp_path / "seed"
    seed.write_text(f"{SEED}\n")
    seed.chmod(0o644)
    again = [f"--set=execution.seed_file={seed}", f"--set=output.path={tmp_path / 'again'}"]
    outcome = cli.ends(0, "run", path, "--no-progress", *again)
    assert str(SEED) not in outcome.err
    other = read_manifest(tmp_path / "again")
    assert [one["code"] for one in other["warnings"]] == ["seed_file_readable"]
    assert other["fingerprints"]["output"] == manifest["fingerprints"]["output"]
    assert other["configuration"]["execution"] == manifest["configuration"]["execution"]


def test_nothing_is_told_of_records_that_were_left_out(tmp_path: Path, cli: Cli) -> None:
    told = []
    for identifier, disease in (("P-1", "zoster"), ("P-alone", "Flu")):
        rows = {
            "age": [30] * 40 + [90],
            "patient": [*(f"P-{row // 2}" for row in range(40)), identifier],
            "disease": [*(["flu", "cold"] * 20), disease],
        }
        write_table(tmp_path / "input.parquet", rows)
        path = configuration_file(
            tmp_path,
            attributes={
                "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10]}},
                "patient": "identifier",
                "disease": "sensitive",
            },
            model={"name": "full-domain", "maximum_levels": {"age": 0}},
            privacy={"l_diversity": {"attribute": "disease", "l": 2}},
            execution={"seed": SEED},
            output={"mode": "overwrite"},
        )
        outcome = cli.ends(0, "run", path, "--no-progress")
        # Whoever has the data is told, roundly.
        assert "is that of another record, too" in outcome.err
        assert published(tmp_path / "release").num_rows == 40
        told.append(read_manifest(tmp_path / "release")["warnings"])
    assert told[0] == told[1]
    assert [(one["code"], one["attribute"]) for one in told[0]] == [
        ("identifier_not_told", "patient"),
        ("gives_away_not_told", None),
    ]


@cases(__file__, "dropped", "words")
def test_records_that_are_dropped(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, dropped: int, words: str | None
) -> None:
    others = 20 if dropped != 4 else 5
    rows = {
        "age": [*[None] * dropped, *range(others)],
        "disease": ["flu", "cold", "ulcer", "zoster", "none"] * ((dropped + others) // 5)
        + ["flu"] * ((dropped + others) % 5),
        "row": list(range(dropped + others)),
    }
    write_table(tmp_path / "input.parquet", rows)
    path = configuration_file(
        tmp_path,
        attributes={
            "age": {"role": "quasi_identifier", "grid": "auto"},
            "disease": "quasi_identifier",
        },
        privacy={"k": 5},
    )
    monkeypatch.setenv(SEED_VARIABLE, str(SEED))
    outcome = cli.ends(0, "check", path, "--no-progress")
    assert words in outcome.err if words else outcome.err == ""
    outcome = cli.ends(0, "run", path, "--no-progress")
    assert words in outcome.err if words else outcome.err == ""
    codes = [one["code"] for one in read_manifest(tmp_path / "release")["warnings"]]
    assert codes == (["many_dropped"] if words else [])


def test_many_values_are_estimated_by_some_of_them(engine: LocalEngine) -> None:
    number = np.arange(40_000)
    rows = pa.table(
        {"id": number, "few": number % 7, "triple": number // 3, "missing": number >= 30_000}
    )
    columns = {
        "unique": CountedColumn("id"),
        "few": CountedColumn("few"),
        "triples": CountedColumn("triple", "missing"),
    }
    exact = count_value_sizes(engine.wrap(rows), columns, 40_000)
    assert all(one.is_exact for one in exact.values())
    assert dict(exact["unique"].sizes) == {1: 40_000}
    assert sorted(exact["few"].sizes) == [5714, 5715]
    assert (exact["triples"].sizes, exact["triples"].counted) == ({3: 10_000}, 30_000)
    drawn = count_value_sizes(engine.wrap(rows), columns, 40_000, exact_rows=1_000)
    assert drawn["few"] == exact["few"]
    assert not drawn["unique"].is_exact
    assert abs(drawn["unique"].values - 40_000) < 8_000
    assert set(drawn["triples"].sizes) == {3}
    assert abs(drawn["triples"].counted - 30_000) < 6_000


def test_values_are_told_apart_as_they_are_published(engine: LocalEngine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", "A", " a", None, "a", ""],
            "list": pa.array([[1, None], [1], [None, 1], [1], None, []], pa.list_(pa.int64())),
            "number": [0.5, float("nan"), None, float("nan"), 0.5, -1.0],
            # As columns are called on the way.
            "hash_0": pa.array([None] * 6, pa.string()),
        }
    )
    names = table.column_names
    columns = {name: CountedColumn(name) for name in names}
    write_table(tmp_path / "rows.parquet", table)
    rows = engine.published(str(tmp_path / "rows.parquet"), "parquet")
    sizes = count_value_sizes(rows, columns, 6)
    assert [dict(sizes[name].sizes) for name in names] == [
        {1: 4, 2: 1},
        {1: 4, 2: 1},
        {1: 2, 2: 2},
        {6: 1},
    ]
    assert count_value_sizes(rows, columns, 0)["text"].values == 0
    assert count_value_sizes(rows, {}, 6) == {}


def test_a_set_of_names_of_one_record_each_is_a_warning(tmp_path: Path, cli: Cli) -> None:
    """Every record matches others, but a class is a list of the people in it."""
    columns = {"name": [f"Person {i}" for i in range(40)], "age": [20 + i for i in range(40)]}
    write_table(tmp_path / "input.parquet", columns)
    role = {"age": {"role": "quasi_identifier", "grid": 5}, "name": "quasi_identifier"}
    path = configuration_file(tmp_path, attributes=role, privacy={"k": 4, "l_diversity": []})
    warned = by_kind(json.loads(cli.ends(0, "check", path, "--json").out)["warnings"])
    assert ("exact_ends", "name") in warned

    write_table(tmp_path / "input.parquet", {**columns, "name": ["Ann", "Bob"] * 20})
    warned = by_kind(json.loads(cli.ends(0, "check", path, "--json").out)["warnings"])
    assert ("exact_ends", "name") not in warned
