"""What a value and what a record is: markers of any type, blank rows, traps of a review."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, published, summary, write_table

import anonspark
from anonspark.layers.publish import file_assignment

AGES = [20 + place % 40 for place in range(60)]
DAYS = [date(2024, 1, 1 + place % 28) for place in range(60)]


def configure(directory: Path, *names: str, **sections: Any) -> Path:
    """Write a configuration of quasi-identifiers, with k = 5."""
    attributes = dict.fromkeys(names, "quasi_identifier") | sections.pop("others", {})
    output = {"path": str(directory / "release")}
    return configuration_file(
        directory, attributes=attributes, privacy={"k": 5}, output=output, **sections
    )


def test_markers_mean_numbers_and_days(tmp_path: Path, cli: Cli) -> None:
    ages = [999 if place % 10 == 0 else age for place, age in enumerate(AGES)]
    seen = [date(1900, 1, 1) if place % 10 == 1 else day for place, day in enumerate(DAYS)]
    write_table(tmp_path / "input.parquet", {"age": ages, "seen": seen})
    source = {"path": str(tmp_path / "input.parquet"), "missing_markers": ["", "999", "1900-01-01"]}
    attributes = {
        "age": {"role": "quasi_identifier", "range": [18, 65]},
        "seen": "quasi_identifier",
    }
    path = configure(tmp_path, input=source, others=attributes)
    cli.ends(0, "run", path)
    assert published(tmp_path / "release").num_rows == 48
    cli.ends(0, "verify", tmp_path / "release", "--original", source["path"])


BLANK = {"age": None, "sex": "  ", "dx": None, "person": None, "town": "x"}


def people_with_blanks() -> dict[str, list[Any]]:
    """Return 60 people, 6 rows without anything and one of whom only the diagnosis is known."""
    rows: list[dict[str, Any]] = [
        {"age": age, "sex": "fm"[place % 2], "dx": "abc"[place % 3], "person": f"p{place}"}
        for place, age in enumerate(AGES)
    ]
    rows = [*rows[:7], *[{}] * 5, *rows[7:], {}, {"dx": "a", "person": "p61"}]
    return {name: [row.get(name, BLANK[name]) for row in rows] for name in BLANK}


@pytest.mark.parametrize("missing", ["category", "drop", "error"])
@pytest.mark.parametrize("unit", [[], ["person"]])
def test_blank_rows_are_no_records(tmp_path: Path, cli: Cli, missing: str, unit: list[str]) -> None:
    table = people_with_blanks()
    if missing == "error":
        table = {name: values[:-1] for name, values in table.items()}
    write_table(tmp_path / "input.parquet", table)
    others = {"dx": "sensitive", "person": "identifier"}
    path = configure(tmp_path, "age", "sex", others=others, missing=missing)
    unit_of = f"privacy.unit={json.dumps(unit)}"
    found = cli.ends(0, "check", path, "--set", unit_of, "--json")
    warned = {one["code"]: one["figures"] for one in json.loads(found.out)["warnings"]}
    assert warned["blank_rows"] == {"rows": 6}
    assert json.loads(found.out)["rows"] == len(table["age"]) - 6

    cli.ends(0, "run", path, "--set", unit_of)
    release = tmp_path / "release"
    manifest = json.loads((release / "manifest.json").read_text())
    (warning,) = (one for one in manifest["warnings"] if one["code"] == "blank_rows")
    assert warning["figures"] == {"rows": 6}
    assert published(release).num_rows == 60 + (missing == "category")
    original = tmp_path / "input.parquet"
    cli.ends(0, "verify", release, "--original", original)


def test_blank_rows_change_nothing_of_a_release(tmp_path: Path, cli: Cli) -> None:
    fingerprints = []
    for name, kept in (("with", 1), ("without", 0)):
        table = people_with_blanks()
        rows = [place for place in range(67) if kept or table["person"][place]]
        folder = tmp_path / name
        folder.mkdir()
        columns = {own: [values[place] for place in rows] for own, values in table.items()}
        write_table(folder / "input.parquet", columns)
        path = configure(folder, "age", "sex", others={"dx": "sensitive"}, missing="category")
        cli.ends(0, "run", path)
        manifest = json.loads((folder / "release" / "manifest.json").read_text())
        own = manifest["fingerprints"]
        fingerprints.append((own["input"], own["output"], manifest["summary"]["rows_in"]))
    assert fingerprints[0] == fingerprints[1]


def test_few_blank_rows_are_not_told_and_nothing_else_is_refused(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", {"age": [*AGES, *[None] * 4]})
    found = cli("check", configure(tmp_path, "age"), "--json")
    assert json.loads(found.out)["rows"] == 60
    assert "blank" not in found.out + found.err
    write_table(tmp_path / "input.parquet", {"age": pa.nulls(9, pa.int64())})
    found = cli.ends(3, "check", configure(tmp_path, "age"))
    assert "no row of the table has a value in any of the attributes' columns" in found.err


def test_blank_lines_ask_for_no_policy(tmp_path: Path, cli: Cli) -> None:
    lines = [f"{age};{'fm'[place % 2]}" for place, age in enumerate(AGES)]
    (tmp_path / "people.csv").write_text("\n".join(["age;sex", *lines, *[";"] * 4]) + "\n")
    cli.ends(0, "init", tmp_path / "people.csv", "--out", tmp_path / "people.yaml")
    assert "missing: category" not in (tmp_path / "people.yaml").read_text()


def test_a_part_without_values_fits_every_type(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "input.parquet").mkdir()
    people = pa.table({"age": AGES, "ward": ["x", "y"] * 30, "note": pa.nulls(60)})
    without = people.slice(40).set_column(1, "ward", pa.nulls(20))
    for name, part in (("b", people.slice(0, 40)), ("a", without)):
        write_table(tmp_path / "input.parquet" / f"{name}.parquet", part)
    path = configure(tmp_path, "age", "ward", others={"note": "insensitive"}, missing="category")
    cli.ends(0, "run", path)
    data = published(tmp_path / "release")
    assert data.schema.field("note").type == pa.string()
    assert data["ward"].to_pylist().count("missing") > 0
    original = tmp_path / "input.parquet"
    cli.ends(0, "verify", tmp_path / "release", "--original", original)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds_are_read_in_microseconds(tmp_path: Path, cli: Cli, zone: str | None) -> None:
    moments = pa.array([place * 1000 for place in range(60)], pa.int64())
    seen = moments.cast(pa.timestamp("ns", zone))
    path = tmp_path / "input.parquet"
    pq.write_table(pa.table({"age": AGES, "seen": seen}), path, version="2.6")
    cli.ends(0, "run", configure(tmp_path, "age", "seen"))
    assert "ns" not in str(published(tmp_path / "release").schema)

    # One record decides nothing: the column is read in microseconds, whatever values it has.
    odd = moments.to_pylist()
    odd[17] += 1
    before = published(tmp_path / "release")
    seen = pa.array(odd, pa.int64()).cast(pa.timestamp("ns", zone))
    pq.write_table(pa.table({"age": AGES, "seen": seen}), path, version="2.6")
    cli.ends(0, "run", configure(tmp_path, "age", "seen"), "--set", "output.mode=overwrite")
    assert published(tmp_path / "release").equals(before)


LEVELS = ["none", "mild", "never", "moderate", "severe"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_ordered_categories_bring_their_order(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [LEVELS[[0, 1, 3, 4][place * 7 % 4]] for place in range(200)]
    table: Any
    if library == "pandas":
        table = pd.DataFrame({"severity": pd.Categorical(texts, LEVELS, ordered=True)})
    elif library == "polars":
        table = pl.DataFrame({"severity": pl.Series(texts, dtype=pl.Enum(LEVELS))})
    else:
        codes = pa.array([LEVELS.index(text) for text in texts], pa.int8())
        ordered = pa.DictionaryArray.from_arrays(codes, LEVELS, ordered=True)
        table = pa.table({"severity": ordered})
    caplog.set_level("INFO", "anonspark")
    release = anonspark.anonymize(table, k=60, quasi_identifiers=["severity"], seed=12345678901)
    labels = set(release.to_arrow()["severity"].to_pylist())
    assert labels == {"{none, mild}", "{moderate, severe}"}
    assert "attributes.severity: its values have the order that the table brings" in caplog.text
    assert "letters" not in caplog.text

    order = ["none", "severe", "never", "mild", "moderate"]
    attributes = {"severity": {"role": "quasi_identifier", "order": order}}
    wanted = {"attributes": attributes, "privacy": {"k": 60}, "execution": {"seed": 12345678901}}
    declared = anonspark.anonymize(table, wanted)
    assert set(declared.to_arrow()["severity"].to_pylist()) == {
        "{none, severe}",
        "{mild, moderate}",
    }


def write_severities(path: Path, library: str, levels: list[str] = LEVELS) -> None:
    texts = [LEVELS[[0, 1, 3, 4][place * 7 % 4]] for place in range(200)]
    path.parent.mkdir(parents=True, exist_ok=True)
    if library == "pandas":
        values = pd.Categorical(texts, levels, ordered=True)
        pd.DataFrame({"severity": values}).to_parquet(path, index=False)
    elif library == "polars":
        pl.DataFrame({"severity": pl.Series(texts, dtype=pl.Enum(levels))}).write_parquet(path)
    else:
        codes = pa.array([levels.index(text) for text in texts], pa.int8())
        ordered = pa.DictionaryArray.from_arrays(codes, levels, ordered=library != "letters")
        coded = library != "plain"
        table = pa.table({"severity": ordered})
        pq.write_table(table, path, row_group_size=50, use_dictionary=coded)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_ordered_dictionaries_of_files_bring_their_order(
    library: str, tmp_path: Path, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        write_severities(tmp_path / f"input.parquet/{name}.parquet", library)
    caplog.set_level("INFO", "anonspark")
    path = configuration_file(
        tmp_path, attributes={"severity": "quasi_identifier"}, privacy={"k": 120}
    )
    cli.ends(0, "run", path)
    labels = set(published(tmp_path / "release")["severity"].to_pylist())
    assert labels == {"{none, mild}", "{moderate, severe}"}
    assert "attributes.severity: its values have the order that the table brings" in caplog.text
    assert "never" not in (tmp_path / "release" / "manifest.json").read_text()
    original = tmp_path / "input.parquet"
    cli.ends(0, "verify", tmp_path / "release", "--original", original)


OTHER = ["severe", "none", "never", "mild", "moderate"]


@pytest.mark.parametrize(
    ("library", "levels"), [("pandas", OTHER), ("letters", LEVELS), ("plain", LEVELS)]
)
def test_files_that_disagree_bring_no_order(
    library: str, levels: list[str], tmp_path: Path, cli: Cli
) -> None:
    write_severities(tmp_path / "input.parquet/a.parquet", "pandas")
    write_severities(tmp_path / "input.parquet/b.parquet", library, levels)
    path = configuration_file(
        tmp_path, attributes={"severity": "quasi_identifier"}, privacy={"k": 120}
    )
    found = cli.ends(0, "run", path)
    labels = set(published(tmp_path / "release")["severity"].to_pylist())
    assert labels == {"{mild, moderate}", "{none, severe}"}
    assert "Declare the order as attributes.severity.order" in found.err


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    "declared",
    [{}, {"type": "date"}, {"hierarchy": {"calendar": ["month", "year"]}}],
    ids=["plain", "date", "calendar"],
)
def test_moments_of_files_at_midnight_are_published_as_days(
    zone: str | None, declared: dict[str, Any], tmp_path: Path, cli: Cli
) -> None:
    seen = pa.array(DAYS, pa.date32()).cast(pa.timestamp("us")).cast(pa.timestamp("us", zone))
    write_table(tmp_path / "input.parquet", pa.table({"seen": seen}))
    path = configure(tmp_path, others={"seen": {"role": "quasi_identifier", **declared}})
    cli.ends(0, "run", path)
    labels = published(tmp_path / "release")["seen"].to_pylist()
    assert not any(":" in label for label in labels)
    assert all(label.strip("[").startswith("2024-01") for label in labels)
    cli.ends(0, "verify", tmp_path / "release", "--original", tmp_path / "input.parquet")
    if declared:
        later = pc.add(seen, pa.scalar(3_600_000_000, pa.duration("us")))
        write_table(tmp_path / "input.parquet", pa.table({"seen": later}))
        found = cli.ends(3, "check", path, says="60 of 60 values are not of the declared type date")
        assert "midnight, in UTC if it has a zone" in found.err


ATTRIBUTES = {"age": "quasi_identifier", "exact_age": "sensitive"}


def test_no_file_ends_where_raw_values_end(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_assignment, "_FILE_BYTES", 200_000)
    random = np.random.default_rng(0)
    ages = random.permutation(4_000)
    notes = [random.bytes(100).hex() for _ in ages]
    write_table(tmp_path / "input.parquet", {"age": ages, "exact_age": ages, "note": notes})
    configuration = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES | {"note": "insensitive"},
        privacy={"k": 500},
        model={"name": "smondrian"},
    )
    cli.ends(0, "run", configuration)
    parts: dict[str, list[np.ndarray]] = {}
    for file in sorted((tmp_path / "release" / "data").glob("*.parquet")):
        table = pq.read_table(file)
        labels = np.array(table["age"].to_pylist())
        values = table["exact_age"].to_numpy()
        for label in np.unique(labels):
            parts.setdefault(label, []).append(values[labels == label])
    divided = [part for part in parts.values() if len(part) > 1]
    assert divided, "no class is divided between files: the test tests nothing"
    for part in divided:
        for one, other in pairwise(part):
            apart = one.max() < other.min() or other.max() < one.min()
            assert not apart


@pytest.mark.parametrize("passes", [0, 1])
def test_baseline_of_relaxed_models_counts_duplicates(
    tmp_path: Path, cli: Cli, passes: int
) -> None:
    ages = [7] * 150 + list(range(100, 350))
    write_table(tmp_path / "input.parquet", {"age": ages, "exact_age": [1] * 400})
    common = {"attributes": ATTRIBUTES, "execution": {"task_rows": 60}}
    relaxed = {"split": "relaxed", "refine": passes}
    configuration = configuration_file(
        tmp_path,
        **common,
        model=relaxed | {"name": "su-mondrian"},
        evaluate={"compare_baseline": True},
    )
    cli.ends(0, "run", configuration)
    with_baseline = summary(tmp_path / "release")
    configuration = configuration_file(
        tmp_path, **common, model=relaxed | {"name": "smondrian"}, output={"mode": "overwrite"}
    )
    cli.ends(0, "run", configuration)
    alone = summary(tmp_path / "release")
    assert with_baseline["baseline_classes"] == alone["classes"]
    assert with_baseline["baseline_dm"] == alone["dm"]
    assert with_baseline["baseline_gcp_total"] == alone["gcp_total"]


def test_published_names_like_those_of_generated_columns(tmp_path: Path, cli: Cli) -> None:
    attributes = {
        "h": "quasi_identifier",
        "h_max": "insensitive",
        "size": "quasi_identifier",
        "content_hash": "insensitive",
    }
    numbers = list(range(40))
    write_table(tmp_path / "input.parquet", dict.fromkeys(attributes, numbers))
    configuration = configuration_file(tmp_path, attributes=attributes)
    cli.ends(0, "run", configuration)
    cli.ends(0, "verify", tmp_path / "release", "--config", configuration)


@pytest.mark.usefixtures("spark")  # which is asked about file systems that we do not know
@cases(__file__, "key", "path", "code")
def test_paths_that_cannot_be_reached(
    tmp_path: Path, cli: Cli, key: str, path: str, code: int
) -> None:
    write_table(tmp_path / "input.parquet", {"age": [1] * 10, "exact_age": [1] * 10})
    configuration = configuration_file(tmp_path, attributes=ATTRIBUTES)
    path = path.replace("{tmp_path}", str(tmp_path))
    cli.ends(code, "run", configuration, "--set", f"{key}='{path}'", says=path)


def test_check_refuses_what_run_would_not_overwrite(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", {"age": [1] * 10, "exact_age": [1] * 10})
    write_table(tmp_path / "release" / "thesis.parquet", {"text": ["precious"]})
    configuration = configuration_file(
        tmp_path, attributes=ATTRIBUTES, output={"mode": "overwrite"}
    )
    for name in ("check", "run"):
        cli.ends(2, name, configuration, says="is not a release")
    assert (tmp_path / "release" / "thesis.parquet").exists()
