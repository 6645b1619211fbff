"""``anonspark select``: what is written, what it costs, and what nobody is told."""

from __future__ import annotations

import json
import logging
import re
import secrets
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cases import cases
from commands import Cli
from helpers import contents, document_file, write_table

import anonspark
from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, PublishingError
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import draw_cuts
from anonspark.sharing.selection.request import open_query
from anonspark.sharing.selection.selecting import look_ahead, select
from anonspark.sharing.selection.settings import parse_selection

# So many records, and so many of one value: numbers that occur nowhere else.
ROWS, PLANTED_RECORDS = 73_129, 51_847
PLANTED_VALUE = "Okapi in no domain"


def people(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(1)
    place = draw.integers(0, 4, rows)
    ill = draw.random(rows) < 0.1 + 0.25 * place
    job = np.array(["a", "b", "c", "d"], object)[place]
    town = np.full(rows, "far", object)
    town[: min(rows, PLANTED_RECORDS)] = "near"
    job[0] = PLANTED_VALUE
    return pa.table(
        {
            "name": [f"N{number}" for number in range(rows)],
            "job": job,
            "town": town,
            "age": draw.integers(20, 60, rows),
            "vaccinated": draw.random(rows) < 0.5,
            "ill": np.where(ill, "yes", "no"),
        }
    )


def document_at(folder: Path, rows: int = ROWS, **selection: Any) -> dict[str, Any]:
    path = write_table(folder / "people.parquet", people(rows))
    return {
        "input": {"path": str(path)},
        "attributes": {
            "name": "identifier",
            "job": "quasi_identifier",
            "town": {"role": "quasi_identifier", "order": ["near", "far"]},
            "age": "quasi_identifier",
            "vaccinated": "insensitive",
            "ill": "sensitive",
        },
        "selection": {
            "target": "ill",
            "count": 2,
            "epsilon": 1,
            "domains": {
                "ill": {"values": ["no", "yes"]},
                "job": {"values": ["a", "b", "c", "d"]},
                "age": {"bins": {"from": 20, "to": 60, "width": 10}},
            },
            "output": str(folder / "selection"),
        }
        | selection,
        "ledger": {"path": str(folder / "ledger"), "dataset": "people", "limit": "2.5"},
    }


@pytest.mark.parametrize("mechanism", ["top", "tables"])
def test_the_best_are_chosen_and_nothing_exact_is_told(
    tmp_path: Path, mechanism: str, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    path = document_file(tmp_path, document_at(tmp_path, mechanism=mechanism))
    with caplog.at_level(logging.DEBUG):
        shown = cli("select", path, "--run-id", "one")
    assert shown.code == 0, shown.err
    told = json.loads((tmp_path / "selection" / "selection.json").read_text())
    assert told["attributes"][0] == "job"
    assert len(told["attributes"]) == 2
    assert "1-differentially private for one record added or removed. Entry 1" in shown.out
    assert yaml.safe_load((tmp_path / "selection" / "attributes.yaml").read_text()) == {
        "attributes": {
            name: {"vaccinated": "insensitive"}.get(name, "quasi_identifier")
            for name in told["attributes"]
        }
    }
    files = contents(tmp_path / "selection") | contents(tmp_path / "ledger")
    everything = shown.out + shown.err + caplog.text
    everything += "".join(own.decode("latin-1") for own in files.values() if own is not None)
    # Digits of hashes may be any.
    everything = re.sub(r"[0-9a-f]{32,}", "", everything)
    for planted in (str(ROWS), f"{ROWS:,}", str(PLANTED_RECORDS), PLANTED_VALUE):
        assert planted not in everything
    tables = tmp_path / "selection" / "tables"
    assert tables.exists() == (mechanism == "tables")
    if mechanism == "tables":
        found = pq.read_table(tables).to_pylist()
        assert {row["attribute"] for row in found} == {"job", "town", "age", "vaccinated"}
        # All rows of the domains, those of other and missing values among them, for each class.
        assert len(found) == 2 * ((4 + 2) + (2 + 2) + (6 + 2) + (2 + 2))
        near = sum(row["records"] for row in found if row["value"] == "near")
        assert abs(near - PLANTED_RECORDS) < 200
        # Nobody comes so old, and only of jobs there are others; yet there is noise. That all of
        # these 14 cells are 0 happens once in 10**12 draws.
        empty = [
            row["records"]
            for row in found
            if row["value"] == "from 60"
            or (row["value"] in ("other", "missing") and row["attribute"] != "job")
        ]
        assert len(empty) == 14
        assert any(empty)


def test_tables_of_the_chosen(tmp_path: Path) -> None:
    settings = parse_selection(document_at(tmp_path, rows=4_000, tables_epsilon="0.5"))
    found = select(LocalEngine(), settings, run_id="one")
    assert found.content["epsilon"] == "3/2"
    rows = pq.read_table(tmp_path / "selection" / "tables").to_pylist()
    assert {row["attribute"] for row in rows} == set(found.attributes)
    # Two tables, half of one.
    assert found.content["scale"] == "4"


@pytest.mark.parametrize(
    ("neighbors", "most", "steps"), [("add_remove", 1, 1), ("add_remove", 3, 3), ("replace", 1, 2)]
)
def test_bins_at_private_quantiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbors: str, most: int, steps: int
) -> None:
    losses = []

    def draw_watched(counts: Any, quantiles: int, epsilon: Fraction, below: Any) -> list[int]:
        losses.append((len(counts), quantiles, epsilon))
        return draw_cuts(counts, quantiles, epsilon, below)

    monkeypatch.setattr("anonspark.sharing.selection.selecting.draw_cuts", draw_watched)
    document = document_at(
        tmp_path,
        rows=4_000,
        mechanism="tables",
        neighbors=neighbors,
        person="name",
        rows_per_person=most,
    )
    bins = {"from": 20, "to": 60, "width": 1, "quantiles": 4, "epsilon": "0.75"}
    document["selection"]["domains"]["age"] = {"bins": bins}
    settings, engine = parse_selection(document), LocalEngine()
    assert look_ahead(engine, settings).epsilon == Fraction(7, 4)
    chosen = select(engine, settings, run_id="one")
    # The grid has a row before each of its 41 edges, and one after the last.
    assert losses == [(42, 4, Fraction(3, 4) / steps)]
    assert chosen.content["epsilon"] == chosen.content["ledger"]["epsilon"] == "7/4"
    assert chosen.content["guarantee"].startswith("1.75-differentially private for")
    edges = chosen.content["bins"]["age"]
    # Ages are uniform from 20 to 59, so quartiles are near 30, 40 and 50.
    assert np.abs(np.array(edges) - [30, 40, 50]).max() <= 3
    rows = pq.read_table(tmp_path / "selection" / "tables").to_pylist()
    labels = [row["value"] for row in rows if row["attribute"] == "age" and row["class"] == "no"]
    assert labels == [*Domain.of_edges("age", edges).labels, "other", "missing"]
    counts = [row["records"] for row in rows if row["attribute"] == "age"]
    assert abs(sum(counts) - 4_000) < 600
    assert min(np.array(counts[:8]).reshape(4, 2).sum(axis=1)) > 500


def test_two_runs_draw_apart(tmp_path: Path) -> None:
    noisy = []
    for name in ("one", "two"):
        document = document_at(tmp_path, rows=500, mechanism="tables", output=str(tmp_path / name))
        select(LocalEngine(), parse_selection(document), run_id=name)
        noisy.append(pq.read_table(tmp_path / name / "tables")["records"].to_pylist())
    assert noisy[0] != noisy[1]


def test_what_is_spent(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, document_at(tmp_path, rows=500))
    words = ("select", path, "--run-id", "one")
    cli.ends(0, *words)
    before = contents(tmp_path / "selection")
    # The same run again is done already.
    cli.ends(0, *words)
    assert contents(tmp_path / "selection") == before
    cli.ends(2, "select", path, "--run-id", "two", says="Nothing was charged")
    set_output = f"selection.output={tmp_path / 'other'}"
    cli.ends(0, "select", path, "--set", set_output)
    set_output = f"selection.output={tmp_path / 'third'}"
    refused = cli.ends(4, "select", path, "--set", set_output)
    assert "2 of 2.5 are spent, and 1 more would exceed the limit" in refused.err
    assert not (tmp_path / "third").exists()
    shown = cli.ends(0, "ledger", "show", tmp_path / "ledger")
    assert "people: 2 of 2.5 spent, 0.5 left" in shown.out
    assert "For a record, added or removed" in shown.out
    words = ("ledger", "show", tmp_path / "ledger", "--dataset", "people", "--json")
    told = json.loads(cli(*words).out)
    assert [entry["number"] for entry in told["entries"]] == [1, 2]
    assert told["left"] == "1/2"


def test_a_run_that_left_nothing_is_charged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = parse_selection(document_at(tmp_path, rows=200))
    found = select(LocalEngine(), settings, run_id="one")
    for path in Path(found.output.removeprefix("file:")).iterdir():
        path.unlink()
    Path(found.output.removeprefix("file:")).rmdir()
    again = select(LocalEngine(), settings, run_id="one")
    assert again.content["ledger"]["number"] == 2
    assert "was charged before (entry 1 of the ledger)" in caplog.text


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_a_table_in_memory(tmp_path: Path, kind: str) -> None:
    document = document_at(tmp_path, rows=20_000)
    del document["input"]
    table = people(20_000)
    given = {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}[kind]
    found = anonspark.select(given, document, run_id="one")
    assert found.attributes[0] == "job"
    assert found.content["ledger"]["number"] == 1


@pytest.mark.parametrize("mechanism", ["top", "tables"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("count", [1, 4])
def test_scales_and_charges_are_those_of_the_formulas(
    tmp_path: Path, mechanism: str, neighbors: str, most: int, count: int
) -> None:
    changes: dict[str, Any] = {"mechanism": mechanism, "neighbors": neighbors, "count": count}
    changes |= {"person": "name", "rows_per_person": most, "epsilon": "0.3"}
    if mechanism == "top":
        changes |= {"tables_epsilon": "0.2"}
    settings = parse_selection(document_at(tmp_path, 200, **changes))
    engine = LocalEngine()
    foreseen = look_ahead(engine, settings)
    found = select(engine, settings, run_id="one").content
    r, k = {"add_remove": 1, "replace": 2}[neighbors], 4
    own = Fraction(3, 10)
    tables = Fraction(1, 5)
    charged, scale = own + tables, count * r * most / tables
    if mechanism == "tables":
        charged, scale = own, k * r * most / own
    assert Fraction(found["epsilon"]) == foreseen.epsilon == charged
    assert Fraction(found["ledger"]["epsilon"]) == charged
    assert (
        Fraction(found["epsilon_of_a_record"]) == foreseen.epsilon_of_a_record == own / (r * most)
    )
    assert Fraction(found["scale"]) == foreseen.scale == scale
    assert found["width"] == foreseen.width == (512 if mechanism == "top" else None)
    assert found["unit"] == {"person": "name", "rows": most}
    limit = json.loads((tmp_path / "ledger" / "people" / "limit.json").read_text())
    assert limit == {"limit": "5/2", "neighbors": neighbors, "unit": found["unit"]}
    who = f"one person of at most {most} record{'s' if most > 1 else ''}"
    assert who in found["guarantee"]
    # Whose records count is read, and told to nobody.
    everything = str(contents(tmp_path / "selection")) + str(contents(tmp_path / "ledger"))
    assert "N17" not in everything
    assert set(found["attributes"]) <= {"job", "town", "age", "vaccinated"}


def test_columns_that_nobody_needs_are_not_read(tmp_path: Path) -> None:
    document = document_at(tmp_path, rows=3_000)
    path = Path(document["input"]["path"])
    table = people(3_000).append_column(
        "poison", pa.array(np.random.default_rng(1).integers(0, 2**60, 3_000))
    )
    pq.write_table(table, path, compression=None, use_dictionary=False)
    metadata = pq.read_metadata(path).row_group(0)
    column = metadata.column(table.schema.get_field_index("poison"))
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(OSError):  # noqa: PT011 - whatever Arrow makes of it
        pq.read_table(path, columns=["poison"])
    assert select(LocalEngine(), parse_selection(document)).attributes[0] == "job"


def test_columns_that_are_not_there(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, rows=10)
    document["selection"]["person"] = "patient"
    shown = cli.ends(3, "select", document_file(tmp_path, document))
    assert "the input has no column 'patient'" in shown.err
    del document["selection"]["person"]
    document["selection"]["domains"]["vaccinated"] = {"bins": [1]}
    shown = cli.ends(3, "select", document_file(tmp_path, document))
    assert "selection.domains.vaccinated: found bins, and column 'vaccinated' has type" in shown.err
    assert not (tmp_path / "ledger").exists()


def test_what_fails_after_the_charge_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr("anonspark.sharing.selection.selecting._write", fail)
    settings = parse_selection(document_at(tmp_path, 100, mechanism="tables"))
    with pytest.raises(PublishingError, match="Entry 1 of the ledger stays charged"):
        select(LocalEngine(), settings, run_id="one")
    assert "run one was charged (entry 1 of the ledger) and left no result" in caplog.text
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ledger", "people.parquet"]


@pytest.mark.parametrize("mechanism", ["top", "tables"])
def test_everything_is_charged_before_anything_is_drawn(tmp_path: Path, mechanism: str) -> None:
    entry, drawn = tmp_path / "ledger" / "people" / "000001.json", []

    def below(most: int) -> int:
        assert entry.exists()
        drawn.append(most)
        return secrets.randbelow(most)

    settings = parse_selection(document_at(tmp_path, 100, mechanism=mechanism))
    select(LocalEngine(), settings, below=below)
    assert drawn


def test_an_output_that_cannot_be_written(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, 100, output="/proc/none/selection")
    shown = cli.ends(2, "select", document_file(tmp_path, document))
    assert "selection.output: nothing can be written next to" in shown.err
    assert not (tmp_path / "ledger").exists()


def test_another_selection_of_the_same_name(tmp_path: Path) -> None:
    select(LocalEngine(), parse_selection(document_at(tmp_path, 100)), run_id="one")
    other = parse_selection(document_at(tmp_path, 100, count=1))
    with pytest.raises(ConfigurationError, match="Nothing was charged"):
        select(LocalEngine(), other, run_id="one")
    with pytest.raises(ConfigurationError, match="run id"):
        select(LocalEngine(), other, run_id="../one")
    document = document_at(tmp_path, 100)
    document["selection"]["domains"]["age"] = {"bins": [30]}
    with pytest.raises(ConfigurationError, match="Nothing was charged"):
        select(LocalEngine(), parse_selection(document), run_id="one")


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_what_is_no_selection_is_something_at_the_output(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "selection").mkdir()
    (tmp_path / "selection" / "selection.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match="Nothing was charged"):
        select(LocalEngine(), parse_selection(document_at(tmp_path, 10)), run_id="one")


@cases(__file__, "output", "ledger", "expected")
def test_places_that_are_not_apart(tmp_path: Path, output: str, ledger: str, expected: str) -> None:
    (tmp_path / "data").mkdir()
    document = document_at(tmp_path, 10, output=str(tmp_path / output))
    (tmp_path / "people.parquet").rename(tmp_path / "data" / "people.parquet")
    document["input"]["path"] = str(tmp_path / "data")
    document["ledger"]["path"] = str(tmp_path / ledger)
    settings = parse_selection(document)
    for function in (select, look_ahead):
        with pytest.raises(ConfigurationError, match=expected):
            function(LocalEngine(), settings)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_noise_beyond_all_counts(tmp_path: Path) -> None:
    changes = {"mechanism": "tables", "person": "name", "rows_per_person": 10**30}
    with pytest.raises(ConfigurationError, match="a scale beyond all counts"):
        select(LocalEngine(), parse_selection(document_at(tmp_path, 10, **changes)))
    assert not (tmp_path / "ledger").exists()


def test_columns_that_have_no_rows(tmp_path: Path) -> None:
    document = document_at(tmp_path, rows=10)
    table = people(10).append_column("list", pa.array([[1]] * 10))
    write_table(tmp_path / "people.parquet", table)
    document["attributes"]["list"] = "insensitive"
    with pytest.raises(DataError, match="column 'list' has type"):
        select(LocalEngine(), parse_selection(document))


def test_a_look_ahead_reads_no_data(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, rows=10, epsilon="0.5", neighbors="replace")
    path = document_file(tmp_path, document)
    shown = cli.ends(0, "select", path, "--dry-run", "--json")
    told = json.loads(shown.out)
    assert told["candidates"] == ["job", "town", "age", "vaccinated"]
    assert (told["epsilon"], told["epsilon_of_a_record"], told["left"]) == ("1/2", "1/4", None)
    assert told["resolution"] == pytest.approx(2 * np.log(10) * 2 / 0.25)
    assert not (tmp_path / "ledger").exists()
    for epsilon, tables, warns in ((10, 0, False), (6, "4.000001", True), (20, 0, True)):
        changed = {"epsilon": epsilon, "tables_epsilon": tables}
        path = document_file(tmp_path, document_at(tmp_path, rows=10, **changed))
        shown = cli.ends(0, "select", path, "--dry-run")
        assert ("which protects little: an answer may be e^" in shown.err) == warns


def test_a_table_of_nobody_looks_like_any_other(tmp_path: Path) -> None:
    forms = []
    for rows in (0, 1_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        document = document_at(folder, mechanism="tables")
        table = people(1_000).slice(0, rows)
        write_table(folder / "people.parquet", table)
        found = select(LocalEngine(), parse_selection(document), run_id="one")
        tables = pq.read_table(folder / "selection" / "tables").drop_columns(["records"])
        forms.append((sorted(found.content), tables.to_pylist(), len(found.attributes)))
    assert forms[0] == forms[1]


@cases(__file__, "changes", "expected")
def test_what_is_wrong_is_told_before_data_are_opened(
    tmp_path: Path, cli: Cli, changes: dict[str, Any], expected: str
) -> None:
    document = document_at(tmp_path, 10)
    domains = document["selection"]["domains"] | changes.get("domains", {})
    document["selection"] |= changes | {"domains": domains}
    (tmp_path / "people.parquet").unlink()
    cli.ends(2, "select", document_file(tmp_path, document), says=expected)
    assert not (tmp_path / "ledger").exists()


@cases(__file__, "change", "expected")
def test_ledgers_that_nothing_is_charged_to(
    tmp_path: Path, cli: Cli, change: Any, expected: str
) -> None:
    document = document_at(tmp_path, 10)
    document["ledger"] |= change or {}
    if change is None:
        del document["ledger"]
    cli.ends(2, "select", document_file(tmp_path, document), says=expected)
    assert not (tmp_path / "ledger").exists()


def test_ledgers_of_other_people(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, 100)
    cli.ends(0, "select", document_file(tmp_path, document))
    document["selection"]["output"] = str(tmp_path / "other")
    for section, changes, expected in (
        ("ledger", {"limit": 3}, "ledger.limit: found 3. The ledger at"),
        ("selection", {"person": "name"}, "found a person of 'name' with at most 1 records. The"),
    ):
        other = document | {section: document[section] | changes}
        for words in ((), ("--dry-run",)):
            shown = cli.ends(2, "select", document_file(tmp_path, other), *words, says=expected)
    del document["ledger"]["limit"]
    # What is replaced is removed and added: half of it is charged.
    document["selection"]["neighbors"] = "replace"
    shown = cli.ends(0, "select", document_file(tmp_path, document))
    assert "1-differentially private for one record replaced by another. Entry 2" in shown.out
    assert "1.5 of 2.5 spent" in shown.out


def test_a_broken_chain_stops_everything(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, 100)
    path = document_file(tmp_path, document)
    cli.ends(0, "select", path)
    entry = tmp_path / "ledger" / "people" / "000001.json"
    entry.write_text(entry.read_text().replace('"spent_after": "1"', '"spent_after": "1/2"'))
    more = ("--set", f"selection.output={tmp_path / 'other'}")
    for words in (("select", path, *more), ("select", path, *more, "--dry-run")):
        cli.ends(4, *words, says="000001.json has another signature")
    for verb in ("show", "check"):
        cli.ends(4, "ledger", verb, tmp_path / "ledger")
    assert len(list((tmp_path / "ledger" / "people").iterdir())) == 2
    (tmp_path / "ledger" / "people" / "limit.json").unlink()
    cli.ends(4, "ledger", "check", tmp_path / "ledger")
    cli.ends(4, "select", path, *more)


def test_ledgers_are_shown_and_checked(tmp_path: Path, cli: Cli) -> None:
    for name in ("people", "visits"):
        document = document_at(tmp_path, 100, output=str(tmp_path / name), tables_epsilon="0.25")
        document["ledger"]["dataset"] = name
        cli.ends(0, "select", document_file(tmp_path, document))
    folder = tmp_path / "ledger"
    shown = cli.ends(0, "ledger", "check", folder)
    assert shown.out.split("\n")[:2] == [
        f"{name}: 1 entries, which follow from one another" for name in ("people", "visits")
    ]
    told = json.loads(cli("ledger", "check", folder, "--json").out)
    assert told == {"holds": True, "datasets": ["people", "visits"]}
    told = json.loads(cli("ledger", "show", folder, "--json").out)
    assert [one["left"] for one in told.values()] == ["5/4", "5/4"]
    assert "visits: 1.25 of 2.5" in cli("ledger", "show", folder).out
    cli.ends(2, "ledger", "show", folder, "--dataset", "nobody", says="found no ledger at")
    cli.ends(2, "ledger", "show", folder, "--dataset", "no/body")
    cli.ends(2, "ledger", "show", tmp_path / "people")


def test_what_is_declared_nowhere(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path, 10)
    del document["selection"]["domains"]["job"]
    shown = cli.ends(2, "select", document_file(tmp_path, document))
    assert "selection.domains.job: missing. The values of 'job' are declared nowhere" in shown.err
    assert not (tmp_path / "ledger").exists()


def test_more_records_than_is_said(tmp_path: Path, cli: Cli) -> None:
    """A bound that does not hold is no error, because the answer would count the records."""
    for bound in (1, 499, 500, 501):
        output = str(tmp_path / str(bound))
        changes = {"score": "information_gain", "records_at_most": bound, "output": output}
        changes |= {"epsilon": "0.01"}
        shown = cli.ends(
            0, "select", document_file(tmp_path, document_at(tmp_path, 500, **changes))
        )
        assert "bound" not in shown.out + shown.err
    told = json.loads(cli("ledger", "show", tmp_path / "ledger", "--json").out)
    assert told["people"]["left"] == "123/50"


def test_other_commands_pass_over_the_sections(tmp_path: Path) -> None:
    document = document_at(tmp_path, 10)
    document |= {"privacy": {"k": 2}, "output": {"path": str(tmp_path / "out")}}
    assert load_configuration(document_file(tmp_path, document)).privacy.k == 2


def test_no_record_decides_how_others_are_read(tmp_path: Path) -> None:
    """Were types inferred, one word would move all records of the column to other rows."""
    document = document_at(tmp_path, 10)
    document["attributes"] = {"age": "quasi_identifier", "ill": "sensitive"}
    document["selection"] |= {"count": 1, "domains": {"ill": {"values": ["no", "yes"]}}}
    document["selection"]["domains"]["age"] = {"values": ["17.0", "TRUE"]}
    options = {"header": "true", "InferSchema": "true"}
    document["input"] = {"path": str(tmp_path / "people.csv"), "format": "csv", "options": options}
    settings = parse_selection(document)
    engine, counts = LocalEngine(), []
    for more in ("", "word,no\n"):
        (tmp_path / "people.csv").write_text("age,ill\n" + "17.0,no\n" * 9 + more)
        table, wanted = open_query(engine, settings)
        (found,) = count_tables(table, wanted.candidates, wanted.target, [], drop_missing=False)
        counts.append(found[:, 0].tolist())
    assert counts == [[9, 0, 0, 0], [9, 0, 1, 0]]


@pytest.mark.parametrize("data_format", ["json", "XML", "text", "anything"])
def test_formats_whose_types_may_be_those_of_the_records(
    tmp_path: Path, cli: Cli, data_format: str
) -> None:
    document = document_at(tmp_path, 10)
    document["input"] |= {"format": data_format}
    shown = cli.ends(2, "select", document_file(tmp_path, document))
    assert (
        f"input.format: found {data_format!r}, whose columns and types may be derived from all "
        "records" in shown.err
    )
    assert not (tmp_path / "ledger").exists()
