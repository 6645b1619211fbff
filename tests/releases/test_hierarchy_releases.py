"""Runs with hierarchies: public ones, rules, codes, and ordered groups in disguise."""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from cases import cases
from commands import Cli
from data_sets import ADULT_BY_HIERARCHIES
from helpers import configuration_file, contents, metrics, published, summary, write_table
from places import require_data

from anonspark.config import load_configuration
from anonspark.core.recognition.disguised import (
    OTHER_DAY,
    OTHER_NUMBER,
    disguise_of,
    letters_misorder,
)
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    pass


ADULT = ADULT_BY_HIERARCHIES.quasi_identifiers


class Groups:
    """A hierarchy file, looked at row by row."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8", newline="") as file:
            self.rows = {row[0]: row for row in csv.reader(file, delimiter=";")}
        self.below: dict[str, set[str]] = {}
        for value, row in self.rows.items():
            for label in row:
                self.below.setdefault(label, set()).add(value)

    def penalty(self, label: str) -> float:
        covered = len(self.below[label])
        return covered / len(self.rows) if covered > 1 else 0.0


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> pa.Table:
    table = pyarrow.csv.read_csv(adult_path).select([*ADULT, "income"])
    return table.append_column("row", pa.array(range(table.num_rows)))


def adult_configuration(tmp_path: Path, data_directory: Path, **sections: Any) -> Path:
    require_data(data_directory / "hierarchies")
    attributes: dict[str, Any] = {
        name: {
            "role": "quasi_identifier",
            "hierarchy": str(data_directory / "hierarchies" / f"adult_hierarchy_{name}.csv"),
        }
        for name in ADULT
    }
    attributes |= {"row": "insensitive", "income": "sensitive"}
    return configuration_file(
        tmp_path, attributes=attributes, model={"name": "smondrian"}, **sections
    )


def test_adult(engine: LocalEngine, adult: pa.Table, data_directory: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "input.parquet", adult)
    path = adult_configuration(tmp_path, data_directory)
    run(engine, load_configuration(path))
    release = tmp_path / "release"
    groups = {
        name: Groups(data_directory / "hierarchies" / f"adult_hierarchy_{name}.csv")
        for name in ADULT
    }
    table = published(release).sort_by("row")
    assert table.num_rows == adult.num_rows
    lost = dict.fromkeys(ADULT, 0.0)
    for name in ADULT:
        values = adult[name].cast(pa.string()).to_pylist()
        for value, label in zip(values, table[name].to_pylist(), strict=True):
            # A label of the hierarchy, and one above the record's own value.
            assert value in groups[name].below[label]
            lost[name] += groups[name].penalty(label)
    figures = summary(release)
    assert figures["gcp_total"] == pytest.approx(sum(lost.values()), rel=1e-9)
    for row in metrics(release, "attributes"):
        assert row["kind"] == "category"
        assert row["ncp_total"] == pytest.approx(lost[row["attribute"]], rel=1e-9)
        assert 0 < row["iloss"] <= row["ncp"] <= 1

    assert audit_release(engine, str(release)).require().published.smallest >= 5
    assert (
        audit_release(engine, str(release), load_configuration(path)).require().published.smallest
        >= 5
    )
    manifest = (release / "manifest.json").read_text()
    assert "Armed-Forces" not in manifest
    described = json.loads(manifest)["published"]["quasi_identifiers"]
    assert described[0]["hierarchy"] == {"height": 4, "leaves": 100}

    # The same classes where the tree is cut on the cluster.
    again = adult_configuration(
        tmp_path,
        data_directory,
        output={"path": str(tmp_path / "again")},
        execution={"task_rows": 4_000},
    )
    run(engine, load_configuration(again))
    assert summary(tmp_path / "again")["output_fingerprint"] == figures["output_fingerprint"]


# Rules and styles ---------------------------------------------------------------------------------


def numbered(rows: int = 48) -> dict[str, Any]:
    day = datetime.date(2020, 1, 15)
    return {
        "age": pa.array([20 + 5 * (place % 4) for place in range(rows)], pa.int16()),
        "height": [150.0 + 0.5 * (place % 3) for place in range(rows)],
        "price": pa.array([Decimal(place % 2) / 4 for place in range(rows)], pa.decimal128(6, 2)),
        "zip": [f" 061{place % 2}{place % 5} " for place in range(rows)],
        "born": [day.replace(month=1 + place % 12) for place in range(rows)],
        "text": [str(10 * (place % 2)) + ".0" for place in range(rows)],
        "row": list(range(rows)),
    }


RULES: dict[str, Any] = {
    "age": {"intervals": [10, 20]},
    "height": {"intervals": [0.5, 1]},
    "price": {"intervals": [0.5]},
    "zip": {"prefix": [1, 2]},
    "born": {"calendar": ["month", "quarter", "year"]},
    "text": {"intervals": [5, 20]},
}


def rule_configuration(tmp_path: Path, rules: dict[str, Any] = RULES, **sections: Any) -> Path:
    attributes = {
        name: {"role": "quasi_identifier", "hierarchy": rule} for name, rule in rules.items()
    }
    return configuration_file(tmp_path, attributes={**attributes, "row": "insensitive"}, **sections)


def test_rules_where_everything_is_one_class(engine: LocalEngine, tmp_path: Path) -> None:
    write_table(tmp_path / "input.parquet", numbered())
    configuration = load_configuration(rule_configuration(tmp_path, privacy={"k": 48}))
    run(engine, configuration)
    (labels,) = {tuple(row[name] for name in RULES) for row in published(
        tmp_path / "release").to_pylist()}  # fmt: skip
    assert labels == ("[20-40[", "*", "[0-0.5[", "061**", "2020", "[0-20[")
    # Every value was generalized to everything that occurs.
    assert summary(tmp_path / "release")["gcp"] == 1


def test_rules_where_nothing_is_generalized(engine: LocalEngine, tmp_path: Path) -> None:
    write_table(tmp_path / "input.parquet", numbered())
    configuration = load_configuration(
        rule_configuration(tmp_path, privacy={"k": 1, "allow_k_1": True})
    )
    run(engine, configuration)
    table = published(tmp_path / "release").sort_by("row")
    assert table["age"].to_pylist()[:4] == ["20", "25", "30", "35"]
    assert table["height"].to_pylist()[:3] == ["150", "150.5", "151"]
    assert table["price"].to_pylist()[:2] == ["0.00", "0.25"]
    assert table["zip"].to_pylist()[:2] == ["06100", "06111"]
    assert table["born"].to_pylist()[11] == "2020-12-15"
    assert table["text"].to_pylist()[:2] == ["0", "10"]
    assert summary(tmp_path / "release")["gcp_total"] == 0


@pytest.mark.parametrize(
    ("model", "style"),
    [
        *(("su-mondrian", style) for style in ("interval", "bounds", "mean")),
        ("canon", "bounds"),
        ("microaggregation", "interval"),
    ],
)
def test_classes_tell_no_more_of_a_value_than_the_data(
    engine: LocalEngine, tmp_path: Path, model: str, style: str
) -> None:
    numbers = range(300)
    write_table(
        tmp_path / "input.parquet",
        {
            "code": [f"{97 * number % 90_000 + 10_000}" for number in numbers],
            "age": [7 * number % 71 for number in numbers],
            "illness": ["flu", "cold", "none"] * 100,
        },
    )
    path = configuration_file(
        tmp_path,
        attributes={
            "code": {"role": "quasi_identifier", "hierarchy": {"prefix": [2, 3, 4]}},
            "age": "quasi_identifier",
            "illness": "sensitive",
        },
        privacy={"k": 5},
        model={"name": model},
        output={"style": style},
    )
    run(engine, load_configuration(path))
    table = published(tmp_path / "release")
    found = metrics(tmp_path / "release", "classes")
    codes = {end: [row[f"code_{end}"] for row in found] for end in ("min", "max")}
    if style == "bounds":
        told = {value for values in table["code"].to_pylist() for value in values}
        assert {*codes["min"], *codes["max"]} <= told
    else:
        assert any("*" in code for code in codes["min"])
        assert codes["min"] == codes["max"]
        assert set(codes["min"]) == set(table["code"].to_pylist())
    ages = {(row["age_min"], row["age_max"]) for row in found}
    if style == "mean":
        assert ages == {(None, None)}
    elif style == "bounds":
        ends = (table[f"age_{end}"].to_pylist() for end in ("min", "max"))
        assert ages == set(zip(*ends, strict=True))
    else:
        labels = {str(low) if low == high else f"[{low}-{high}]" for low, high in ages}
        assert labels == set(table["age"].to_pylist())


@cases(__file__, "style", "ages", "expected")
def test_missing_values_are_told(
    engine: LocalEngine, tmp_path: Path, style: str, ages: list[int | None], expected: list[Any]
) -> None:
    write_table(tmp_path / "input.parquet", {"age": ages, "row": list(range(len(ages)))})
    path = rule_configuration(
        tmp_path,
        {"age": {"intervals": [5, 10]}},
        privacy={"k": 3},
        missing="category",
        model={"name": "smondrian"},
        output={"style": style},
    )
    run(engine, load_configuration(path))
    values = published(tmp_path / "release").sort_by("row")["age"].to_pylist()
    assert values == [expected[place >= 3] for place in range(len(ages))]


def test_integers_are_matched_by_their_text(engine: LocalEngine, tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("1,low,*\n2,low,*\n3,high,*\n", encoding="utf-8-sig")
    write_table(tmp_path / "input.parquet", {"code": [1, 2, 1, 3, 3, 3], "row": list(range(6))})
    path = rule_configuration(
        tmp_path,
        {"code": str(tmp_path / "codes.csv")},
        privacy={"k": 3},
        model={"name": "smondrian"},
    )
    run(engine, load_configuration(path))
    values = published(tmp_path / "release").sort_by("row")["code"].to_pylist()
    assert values == ["low", "low", "low", "3", "3", "3"]


# What is refused ----------------------------------------------------------------------------------

CITIES = "Ankara;Anatolia;*\nBursa;Marmara;*\nZonguldak;Black Sea;*\n"


def require_refusal(cli: Cli, tmp_path: Path, path: Path, code: int, *told: str) -> None:
    before = contents(tmp_path)
    for name in ("check", "run"):
        outcome = cli.ends(code, name, path)
        for text in told:
            assert text in outcome.err
        for secret in ("Ankara", "Bursa", "Zonguldak", "Marmara", "Traceback"):
            assert secret not in outcome.err
        assert contents(tmp_path) == before


def city_configuration(tmp_path: Path, **changes: Any) -> Path:
    attribute = {"role": "quasi_identifier", "hierarchy": str(tmp_path / "cities.csv"), **changes}
    attributes = {"city": attribute, "age": "quasi_identifier"}
    return configuration_file(tmp_path, attributes=attributes, privacy={"k": 2})


def test_lacking_values(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("Ankara;Anatolia;*\nIzmir;Aegean;*\n")
    cities = ["Ankara", " Ankara ", "Bursa", "Bursa", "Zonguldak", "?"]
    write_table(tmp_path / "input.parquet", {"city": cities, "age": list(range(6))})
    require_refusal(
        cli,
        tmp_path,
        city_configuration(tmp_path),
        3,
        f"attributes.city.hierarchy: {tmp_path}/cities.csv lacks 2 of the column's 3 different "
        "values. Add them to the file, or name those that mean missing in input.missing_markers",
    )


def test_several_problems_of_the_data_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("Ankara;Anatolia;*\n")
    columns = {
        "city": ["Bursa", "Ankara"] * 2,
        "zip": ["06*", "061"] * 2,
        "letter": ["Zonguldak", "Z"] * 2,
    }
    write_table(tmp_path / "input.parquet", columns)
    rules: dict[str, Any] = {"zip": {"prefix": [1]}, "letter": {"prefix": [1]}}
    attributes = {
        name: {"role": "quasi_identifier", "hierarchy": rule}
        for name, rule in {"city": str(tmp_path / "cities.csv"), **rules}.items()
    }
    require_refusal(
        cli,
        tmp_path,
        configuration_file(tmp_path, attributes=attributes, privacy={"k": 2}),
        3,
        "cities.csv lacks 1 of the column's 2 different values",
        "attributes.zip.hierarchy: 1 of the column's 2 different values hold the sign *",
        "attributes.letter.hierarchy: 1 of the column's 2 different values have one character",
    )


@pytest.mark.parametrize("role", ["quasi_identifier", "sensitive"])
@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param(None, "no hierarchy file is at", id="missing"),
        pytest.param(CITIES + "Bursa;Anatolia;*\n", "line 4: lists the value", id="twice"),
        pytest.param("Ankara\n", "found one column or none", id="one column"),
        pytest.param(b"Ankara;\xff;*\n", "is not UTF-8 text", id="not text"),
        pytest.param(..., "cannot be read. Expected a CSV file", id="directory"),
    ],
)
def test_bad_files(cli: Cli, tmp_path: Path, written: Any, told: str, role: str) -> None:
    file = tmp_path / "cities.csv"
    if written is ...:
        file.mkdir()
    elif isinstance(written, bytes):
        file.write_bytes(written)
    elif written is not None:
        file.write_text(written)
    # There is no input: the file is looked at first.
    place = "attributes.city.hierarchy: "
    require_refusal(cli, tmp_path, city_configuration(tmp_path, role=role), 2, place, told)


@pytest.mark.parametrize(
    ("rule", "column", "told"),
    [
        ({"calendar": ["year"]}, [1, 2, 3], "its hierarchy needs a date, but the column has type"),
        ({"intervals": [5]}, [True, False, True], "its hierarchy needs a number, but the column"),
        ({"intervals": [5]}, ["1", "x", "3"], "1 of 3 values are not of the declared type number"),
        ({"intervals": [5]}, [1.0, float("inf"), 2.0], "1 of 3 values are infinite"),
        ({"calendar": ["year"]}, ["2020-01-01", "2020", "x"], "not of the declared type date"),
    ],
)
def test_columns_that_do_not_fit(
    cli: Cli, tmp_path: Path, rule: Any, column: list[Any], told: str
) -> None:
    write_table(tmp_path / "input.parquet", {"city": column, "age": [1, 2, 3]})
    path = city_configuration(tmp_path, hierarchy=rule)
    require_refusal(cli, tmp_path, path, 3, "attributes.city: ", told)


def test_too_many_values(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonspark.layers.prepare.inspection._MOST_CATEGORIES", 20)
    write_table(tmp_path / "input.parquet", {"city": list(range(100)), "age": [1] * 100})
    path = city_configuration(tmp_path, hierarchy={"intervals": [10]})
    told = "more than 20 different values, too many for a hierarchy. Is it an identifier?"
    require_refusal(cli, tmp_path, path, 3, told)


ROWS = 400
CODE_RULES: dict[str, Any] = {
    "age": {"intervals": [5, 10], "top": 80},
    "born": {"calendar": ["year", "decade"]},
    "icd": {"keep": [3, 1]},
}


def people() -> dict[str, Any]:
    draw = random.Random(11)  # noqa: S311
    first = datetime.date(1935, 1, 1)
    codes = ["E11", "E11.9", "E11.65", "E10.1", "I10", "I50.22", "I50.9", "J45.909", "J4"]
    return {
        "age": [draw.randint(18, 104) for _ in range(ROWS)],
        "born": [first + datetime.timedelta(days=draw.randint(0, 25_000)) for _ in range(ROWS)],
        "icd": [draw.choice(codes) for _ in range(ROWS)],
        "illness": [draw.choice(["flu", "cold", "none"]) for _ in range(ROWS)],
    }


def release_of(cli: Cli, folder: Path, style: str, model: dict[str, Any]) -> Path:
    write_table(folder / "input.parquet", people())
    path = configuration_file(
        folder,
        attributes={
            **{
                name: {"role": "quasi_identifier", "hierarchy": rule}
                for name, rule in CODE_RULES.items()
            },
            "illness": "sensitive",
        },
        privacy={"k": 5},
        model=model,
        output={"style": style},
        execution={"seed": 8_152_637_485_960_714},
    )
    cli.ends(0, "run", path, "--no-progress")
    return path


@cases(__file__, "model", "style")
def test_releases_hold_with_the_original(
    cli: Cli, tmp_path: Path, model: dict[str, Any], style: str
) -> None:
    path = release_of(cli, tmp_path, style, model)
    release = tmp_path / "release"
    cli.ends(0, "verify", release, "--config", path, "--json")
    cli.ends(0, "verify", release, "--original", tmp_path / "input.parquet", "--json")
    for name in ("evaluate", "report"):
        cli.ends(0, name, release, "--original", tmp_path / "input.parquet")


def test_every_label_holds_its_records(cli: Cli, tmp_path: Path) -> None:
    release_of(cli, tmp_path, "interval", {"name": "su-mondrian"})
    release, raw = tmp_path / "release", pa.table(people()).to_pylist()
    labels = {name: set(published(release)[name].to_pylist()) for name in CODE_RULES}
    assert "80+" in labels["age"]
    assert any(label.endswith("0s") for label in labels["born"])
    assert any(label.endswith("*") and len(label) == 4 for label in labels["icd"])
    for question, holds in (
        ("icd = 'E11*'", lambda row: row["icd"].startswith("E11")),
        ("icd = 'E11'", lambda row: row["icd"] == "E11"),
        ("icd in ('J*', 'I10')", lambda row: row["icd"][0] == "J" or row["icd"] == "I10"),
        ("age >= 80", lambda row: row["age"] >= 80),
        ("age between 95 and 97", lambda row: 95 <= row["age"] <= 97),
        ("born < '1950-01-01'", lambda row: row["born"].year < 1950),
    ):
        outcome = cli.ends(0, "query", release, question, "--json")
        answer = json.loads(outcome.out)
        truth = sum(map(holds, raw))
        assert answer["lower"] <= truth <= answer["upper"], question
        assert answer["lower"] <= answer["estimate"] <= answer["upper"], question


def test_the_mapping_of_an_open_interval_has_no_end(cli: Cli, tmp_path: Path) -> None:
    release_of(cli, tmp_path, "interval", {"name": "full-domain", "suppression_limit": 0.1})
    outcome = cli("mapping", tmp_path / "release")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    (row,) = [row for row in rows if row["label"] == "80+"]
    assert (row["low"], row["high"], row["high_included"]) == ("80", "", "")


DAYS = [
    *("31.12.1980", "12/31/1980", "1980/12/31", "31-12-80", "1.1.1980", "31 Dec 1980"),
    *("Dec 31, 1980", "31.12.1980 10:00", "31. Dezember 1980", "31DEC1980", "1980W05", "1980-W05"),
    *("1980-12", "12/1980", "Dec 1980", "Dec-80", "31/12/80", "1980.12.31"),
]
NUMBERS = [
    *("3,5", "-3,5", "1,234", "1,234.5", "1.234,5", "1.234.567", "1 234", "1\u202f234,5"),
    *("1'234.5", "45%", "-4.5 %", "$12", "12 \u20ac", "\u20ac 1.234,50", "12 EUR", "$1,234.50"),
]
NEITHER = ["abc", "12D", "0-4", "123 456 789", "52.5,13.4", "12 Main Street", "1.2.", "10:30", ""]
NEITHER += ["Mark 12", "1980-85", "Decker 1234", "12 kg"]


@pytest.mark.parametrize("text", DAYS)
def test_days_are_recognized(text: str) -> None:
    assert disguise_of([text]) == "other date"
    assert pc.match_substring_regex(pa.array([text]), OTHER_DAY).to_pylist() == [True]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_recognized(text: str) -> None:
    assert disguise_of([text, "12"]) == "other number"
    assert pc.match_substring_regex(pa.array([text]), OTHER_NUMBER).to_pylist() == [True]


@pytest.mark.parametrize("text", NEITHER)
def test_others_are_neither(text: str) -> None:
    assert disguise_of([text]) is None


def test_units_and_moments() -> None:
    assert disguise_of(["12kg", "8.5 kg", "100 kg"]) == "other number"
    assert disguise_of(["-5 \u00b0C", "3 \u00b0C"]) == "other number"
    # Letters that differ are no unit.
    assert disguise_of(["10A", "10B", "12C"]) is None
    assert disguise_of(["1980-12-31 10:00:00", "1999-01-01T00:00Z"]) == "timestamp"


@cases(__file__, "values", "wrong")
def test_orders_of_letters(values: list[str], wrong: bool) -> None:
    assert letters_misorder(values) is wrong
    assert letters_misorder(values[::-1]) is wrong


def codes(text: str) -> list[tuple[str, str]]:
    return [(one["code"], one["attribute"]) for one in json.loads(text)["warnings"]]


def test_check_and_run_warn_with_the_remedy(tmp_path: Path, cli: Cli) -> None:
    rows = range(60)
    columns = {
        "born": [f"{row % 28 + 1:02d}.{row % 12 + 1:02d}.{1950 + row % 50}" for row in rows],
        "seen": [f"{2000 + row % 20}-01-{row % 28 + 1:02d}" for row in rows],
        "weight": [f"{50 + row % 40},{row % 10}" for row in rows],
        "agegroup": [("0-4", "5-9", "10-14", "85+")[row % 4] for row in rows],
    }
    write_table(tmp_path / "input.parquet", columns)
    seed = {"seed": 5_164_208_731_946_275_003}
    roles = dict.fromkeys(columns, "quasi_identifier")
    path = configuration_file(tmp_path, attributes=roles, execution=seed)
    expected = [
        ("text_days", "born"),
        ("text_days", "seen"),
        ("text_numbers", "weight"),
        ("order_of_letters", "agegroup"),
    ]
    checked = cli("check", path, "--json")
    assert codes(checked.out) == expected
    ran = cli("run", path, "--json", "--no-progress")
    assert codes(ran.out) == expected
    assert codes((tmp_path / "release" / "manifest.json").read_text()) == expected
    for said in (
        *("born: nearly all of its values are days", "Declare its type as date", "1234.5"),
        *("attributes.agegroup.order", "written as 2026-01-31"),
    ):
        assert said in checked.err
        assert said in ran.err
    assert not any(value in checked.err + ran.err for own in columns.values() for value in own)

    # What is advised helps.
    write_table(tmp_path / "input.csv", columns, "csv")
    groups = {"role": "quasi_identifier", "order": ["0-4", "5-9", "10-14", "85+"]}
    for more, wanted in (
        ({}, [("text_days", "born"), ("text_days", "seen")]),
        ({"dateFormat": "dd.MM.yyyy"}, [("text_days", "born"), ("text_days", "seen")]),
        ({"dateFormat": "dd.MM.yyyy", "inferSchema": "true"}, []),
    ):
        path = configuration_file(
            tmp_path,
            input={
                "path": str(tmp_path / "input.csv"),
                "format": "csv",
                "options": {"header": "true"} | more,
            },
            attributes={
                **{key: {"role": "quasi_identifier", "grid": "auto"} for key in ("born", "seen")},
                "agegroup": groups,
            },
            output={"mode": "overwrite"},
            execution=seed,
        )
        outcome = cli.ends(0, "check", path, "--json")
        assert codes(outcome.out) == wanted
        assert ("inferSchema" in outcome.err) == bool(wanted)
        if wanted:
            outcome = cli("check", path, "--json", "--set", "attributes.seen.type=date")
            assert codes(outcome.out) == [("text_days", "born")]
