"""``anonspark init``: what it writes can be checked and run as it is."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import re
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cases import one_by_day
from commands import Cli
from helpers import summary, write_table
from places import REPOSITORY, require_data
from typer.testing import CliRunner

from anonspark.cli.application import application
from anonspark.cli.command import ERR
from anonspark.cli.engine_runner import ended_by_signals
from anonspark.cli.logs import LOG, CommandLog
from anonspark.config import load_configuration
from anonspark.config.decision import read_decision
from anonspark.config.models import MondrianOptions
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.profiling import draft


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    shutil.copy(REPOSITORY / "data" / "people.csv", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def write_rows(path: Path, rows: Iterable[Sequence[Any]], delimiter: str = ",") -> None:
    with path.open("w", newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows(rows)


def roles(path: Path) -> dict[str, str]:
    attributes = written(path)["attributes"]
    return {name: one if isinstance(one, str) else one["role"] for name, one in attributes.items()}


def names_of(path: Path, role: str) -> list[str]:
    return [name for name, one in roles(path).items() if one == role]


def answered(answers: str) -> tuple[int, str]:
    """Return the exit code of questions that are answered so, and what is printed."""
    log = CommandLog(ERR)
    LOG.set(log)
    # As of any command: else what other tests log goes to the runner's error stream, which closes.
    with ended_by_signals(), log.opened():
        asked = CliRunner().invoke(application, ["init", "data/people.csv", "-iq"], input=answers)
    return asked.exit_code, asked.output


def test_weights_by_uniqueness(folder: Path, cli: Cli) -> None:
    cli.ends(0, "init", "data/people.csv", "--no-progress")
    out = ("--out", "weighted.yaml")
    cli.ends(0, "init", "data/people.csv", "--weights", "--no-progress", *out)
    plain, weighted = written(folder / "people.yaml"), written(folder / "weighted.yaml")
    weights = {}
    for name, attribute in weighted["attributes"].items():
        if "quasi_identifier" in str(attribute):
            weights[name] = attribute.pop("weight")
            weighted["attributes"][name] = attribute if len(attribute) > 1 else "quasi_identifier"
    assert weighted["attributes"] == plain["attributes"]
    profile = json.loads(cli("profile", "data/people.csv", "--no-progress", "--json").out)
    assert weights == profile["weights"]
    assert weights["birth_date"] < weights["body_mass_index"] < weights["sex"]
    assert sum(weights.values()) / len(weights) == pytest.approx(1, abs=0.05)
    cli.ends(0, "run", "weighted.yaml", "--no-progress")
    manifest = json.loads((folder / "out" / "weighted" / "manifest.json").read_text())
    attributes = manifest["configuration"]["attributes"]
    assert {name: attributes[name]["weight"] for name in weights} == weights


def test_init_of_people_writes_a_configuration_that_runs(folder: Path, cli: Cli) -> None:
    outcome = cli("init", "data/people.csv", "--no-progress")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "Written: people.yaml",
        "Written: people.seed",
        "Written: anonspark.schema.json",
        "Next: read it, then anonspark check people.yaml",
    ]
    text = (folder / "people.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=anonspark.schema.json\n")
    document = written(folder / "people.yaml")
    assert document["input"] == {
        "path": "data/people.csv",
        "format": "csv",
        "options": {"header": "true", "inferSchema": "true"},
    }
    assert names_of(folder / "people.yaml", "identifier") == ["person_id"]
    assert names_of(folder / "people.yaml", "quasi_identifier") == [
        "birth_date", "sex", "postal_code", "education", "marital_status", "income",
        "body_mass_index", "last_visit",
    ]  # fmt: skip
    assert names_of(folder / "people.yaml", "sensitive") == ["diagnosis"]
    assert document["attributes"]["postal_code"]["hierarchy"] == {"prefix": [1, 2, 3, 4]}
    assert document["privacy"] == {"k": 5, "l_diversity": [{"attribute": "diagnosis", "l": 3}]}
    # Each row is a person: person_id has no value twice.
    assert "Who is a person here?" not in text
    for name in ("full_name", "city", "capital_gain", "hours_per_week", "visits"):
        assert f"\n  # {name}" in text
    # What is written has no value of the data in it.
    with (folder / "data" / "people.csv").open() as opened:
        people = list(csv.DictReader(opened))
    values = {row[name] for row in people for name in ("full_name", "city", "diagnosis")}
    assert not [value for value in values if value in text]
    seed = folder / "people.seed"
    for private in (seed, folder / "people.yaml"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    number = int(seed.read_text())
    assert abs(number) > 2**32
    assert load_configuration(str(folder / "people.yaml")).execution.seed == number
    cli.ends(0, "run", "people.yaml", "--no-progress")
    assert summary(folder / "out" / "people")["classes"] > 100
    # The template of a decision keeps the reasons.
    again = ("init", "data/people.csv", "--out", "again.yaml", "--decision", "--no-progress")
    outcome = cli(*again)
    assert "Written: again.decision.yaml" in outcome.out.splitlines(), outcome.err
    stated = read_decision("again.decision.yaml")
    for name, reason in (stated.columns or {}).items():
        assert f" {name}: " in text or f"# {name}" in text
        assert str(reason) in text
    assert len(stated.columns or {}) == 15
    assert set(stated.model_dump(exclude={"columns"}).values()) == {None}
    for file in ("again.yaml", "again.seed"):
        (folder / file).unlink()
    cli.ends(2, *again, says="found again.decision.yaml already")


def test_larger_tables_try_no_models(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "_TRIES_MODELS", 1_999)
    cli.ends(0, "init", "data/people.csv", "--no-progress")
    own = load_configuration(str(folder / "people.yaml")).model
    assert own == MondrianOptions(name="su-mondrian")


def _some(source: Path, target: Path, rows: int) -> Path:
    content = source.read_bytes()
    text = (gzip.decompress(content) if source.suffix == ".gz" else content).decode()
    header, *lines = text.splitlines(keepends=True)
    # Attacks come one after another, and so do the visits of a patient.
    step = len(lines) // rows if "kddcup" in source.name else 1
    target.write_text("".join([header, *lines[::step][:rows]]))
    return target


def test_public_tables_are_right_without_an_edit(
    folder: Path, data_directory: Path, cli: Cli
) -> None:
    # The whole of them takes two minutes.
    files = (
        "adult.csv",
        "adult_raw.csv",
        "fars.csv",
        "diabetic_data.csv.gz",
        "kddcup99_10_percent.csv.gz",
    )
    tables = {}
    for file in files:
        name = file.partition(".")[0]
        require_data(data_directory / file)
        tables[name] = _some(data_directory / file, folder / f"{name}.csv", 4_000)
    for name, path in tables.items():
        cli.ends(0, "init", str(path), "--no-progress")
        cli.ends(0, "check", f"{name}.yaml")
    adult = folder / "adult.yaml"
    assert names_of(adult, "quasi_identifier") == [
        "age", "workclass", "education", "marital-status", "occupation", "race", "sex",
        "native-country",
    ]  # fmt: skip
    assert roles(adult)["income"] == "sensitive"
    assert (
        "education-num: {role: quasi_identifier, grid: 1}  # education gives it away"
        in adult.read_text()
    )
    assert written(adult)["missing"] == "drop"
    assert written(folder / "adult_raw.yaml")["missing"] == "category"
    diabetes = folder / "diabetic_data.yaml"
    assert names_of(diabetes, "identifier") == ["encounter_id", "patient_nbr"]
    assert names_of(diabetes, "quasi_identifier") == [
        "race", "gender", "age", "time_in_hospital", "medical_specialty", "num_lab_procedures",
        "num_medications", "number_diagnoses",
    ]  # fmt: skip
    assert names_of(diabetes, "sensitive") == ["diag_1", "diag_2", "diag_3", "readmitted"]
    assert written(diabetes)["privacy"]["unit"] == "patient_nbr"
    assert names_of(folder / "fars.yaml", "sensitive") == ["iinjury"]
    assert names_of(folder / "kddcup99_10_percent.yaml", "sensitive") == ["label"]
    assert len(names_of(folder / "kddcup99_10_percent.yaml", "quasi_identifier")) == 8


@pytest.mark.usefixtures("folder")
def test_values_that_are_no_numbers_are_counted(tmp_path: Path, cli: Cli) -> None:
    ages = ["forty-two" if n % 60 == 7 else str(20 + n % 50) for n in range(300)]
    write_rows(
        tmp_path / "odd.csv",
        [["age", "sex"], *([age, "fm"[n % 2]] for n, age in enumerate(ages))],
        ",",
    )
    cli.ends(0, "init", "odd.csv", "--no-progress")
    assert "5 values are no numbers, so all are texts" in (tmp_path / "odd.yaml").read_text()
    # A grid of numbers: what is wrong are the values.
    numbers = ("--set", "attributes.age={role: quasi_identifier, grid: 5}")
    outcome = cli.ends(3, "check", "odd.yaml", *numbers)
    assert "attributes.age: a text column in which 295 of 300 values are numbers" in outcome.err
    # Without numbers the grid is.
    wrong = ("--set", "attributes.sex={role: quasi_identifier, grid: 5}")
    outcome = cli.ends(2, "check", "odd.yaml", *wrong)
    assert "attributes.sex.grid: does not fit the column, whose kind is category" in outcome.err


@pytest.mark.usefixtures("folder")
def test_awkward_columns_get_a_configuration_that_checks(tmp_path: Path, cli: Cli) -> None:
    header = ["yes", "zip: code", "# children", "Größe", "born", "ccy"]
    cities = [f"c{number}" for number in range(60)]
    rows = [
        [
            "on" if n % 3 else "off",
            f"{(n * n) % 91:05}",
            str(n % 50) if n % 9 else "?",
            f"{n % 40},5",
            f"19{n % 70 + 10}-01-0{n % 9 + 1}",
            cities[min(n % 7, n % 60)],
        ]
        for n in range(900)
    ]
    write_rows(tmp_path / "odd.csv", [header, *rows], ";")
    cli.ends(0, "init", "odd.csv", "--no-progress")
    document = written(tmp_path / "odd.yaml")
    # Codes with leading zeros stay texts.
    options = {"header": "true", "inferSchema": "true", "sep": ";", "decimal": ","}
    assert document["input"]["options"] == options
    assert document["attributes"]["zip: code"] == {
        "role": "quasi_identifier",
        "type": "text",
        "hierarchy": {"prefix": [1, 2, 3, 4]},
    }
    whole = {"role": "quasi_identifier", "type": "number", "grid": 1}
    assert document["attributes"]["# children"] == whole
    assert document["attributes"]["born"] == {"role": "quasi_identifier", "grid": "month"}
    cli.ends(0, "check", "odd.yaml")


@pytest.mark.usefixtures("folder")
def test_words_that_mean_missing(tmp_path: Path, cli: Cli) -> None:
    rows = [["mw"[n % 2], f"{10001 + n % 90}", str(20 + n % 50)] for n in range(600)]
    for place, word in enumerate(["-", "k.A.", "unbekannt"]):
        rows[place][1] = rows[place][2] = word
    write_rows(tmp_path / "dash.csv", [["Geschlecht", "PLZ", "Alter"], *rows], ";")
    cli.ends(0, "init", "dash.csv", "--no-progress")
    document = written(tmp_path / "dash.yaml")
    assert document["input"]["missing_markers"] == ["", "?", "-", "k.A.", "unbekannt"]
    whole = {"role": "quasi_identifier", "type": "number", "grid": 1}
    assert document["attributes"]["Alter"] == whole
    cli.ends(0, "check", "dash.yaml")


@pytest.mark.usefixtures("folder")
def test_a_word_among_days_of_a_form_that_was_said(tmp_path: Path, cli: Cli) -> None:
    rows = [["mw"[n % 2], f"{n % 28 + 1:02}.{n % 12 + 1:02}.1950"] for n in range(600)]
    rows[7][1] = "k.A."
    write_rows(tmp_path / "days.csv", [["sex", "born"], *rows], ";")
    given: list[str] = []
    for option, told in (
        ("dateFormat=dd.MM.yyyy", "convert them, or set dateFormat"),
        ("inferSchema=true", "convert them, or set inferSchema together with dateFormat"),
        (
            "nullValue=k.A.",
            "not match dateFormat. If that is one word for missing, set it as nullV",
        ),
    ):
        cli.ends(0, "init", "days.csv", "--no-progress", *given)
        text = (tmp_path / "days.yaml").read_text()
        assert told in text
        for name in ("days.yaml", "days.seed"):
            (tmp_path / name).unlink()
        given += ["--option", option]
    # As text with a type the days are read, and the word is missing.
    attribute = "  born: {role: quasi_identifier, type: date}"
    (tmp_path / "text.yaml").write_text(text.replace("attributes:", f"attributes:\n{attribute}"))
    (tmp_path / "days.seed").write_text("1\n")
    checked = cli("check", "text.yaml")
    assert (checked.code, "1 to be dropped" in checked.out) == (0, True)
    (tmp_path / "days.seed").unlink()
    cli.ends(0, "init", "days.csv", "--no-progress", *given)
    assert roles(tmp_path / "days.yaml")["born"] == "quasi_identifier"
    cli.ends(0, "check", "days.yaml")


def test_people_who_have_no_name(folder: Path, cli: Cli, tmp_path: Path) -> None:
    rows = [
        [f"P{n // 3:04}", f"{n // 3 * 7 % 28 + 1}.{n // 3 % 12 + 1}.1950", "mwd"[n // 3 % 3],
         f"{n // 3 * 11 % 90:05}", f"x{n % 9}"]
        for n in range(1200)
    ]  # fmt: skip
    write_rows(tmp_path / "bare.csv", rows, ";")
    cli.ends(0, "init", "bare.csv", "--no-progress", "--option", "header=false")
    bare = folder / "bare.yaml"
    # No name says who a person is, so you are asked.
    assert "unit" not in written(bare)["privacy"]
    assert "_c0" not in [*names_of(bare, "identifier"), *names_of(bare, "quasi_identifier")]
    assert "# it may be _c0" in bare.read_text()
    for name in ("init", "check", "run"):
        options = ("--out", "other.yaml", "--option", "header=false") if name == "init" else ()
        told = cli.ends(0, name, "bare.csv" if options else "bare.yaml", "--no-progress", *options)
        assert "_c0 repeats: 1,200 records of 400 different values, at most 3 of one" in told.err
        assert "--set attributes._c0=identifier --set privacy.unit=_c0" in told.err
        assert "attributes._c0: {role: quasi_identifier, type: number}" in told.err


def test_a_program_is_told_what_was_written(folder: Path, cli: Cli) -> None:
    asked = ("init", "data/people.csv", "--json", "--no-progress")
    outcome = cli(*asked, "--interactive")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: --json: found together with --interactive")
    outcome = cli(*asked)
    assert (outcome.code, outcome.err) == (0, "")
    files = ["people.yaml", "people.seed", "anonspark.schema.json"]
    assert json.loads(outcome.out) == {"written": files}
    assert all((folder / name).is_file() for name in files)


def test_nothing_is_overwritten(folder: Path, cli: Cli) -> None:
    for name in ("people.yaml", "people.seed"):
        (folder / name).write_text("mine")
        outcome = cli.ends(2, "init", "data/people.csv", "--no-progress")
        assert f"--out: found {name} already, which is not overwritten" in outcome.err
        assert (folder / name).read_text() == "mine"
        (folder / name).unlink()
    assert [one.name for one in folder.iterdir()] == ["data"]
    outcome = cli.ends(2, "init", "data/people.csv", "--out", "hdfs:///people.yaml")
    assert "--out: found the address" in outcome.err
    outcome = cli.ends(2, "init", "data/people.csv", "--out", "data/people.csv/new/x.yaml")
    assert "x.yaml cannot be written, for data/people.csv is a file" in outcome.err
    (folder / "conf").mkdir()
    outcome = cli.ends(2, "init", "data/people.csv", "--out", "conf")
    assert "--out: found the directory conf. Expected a path of a file" in outcome.err
    (folder / "conf" / "anonspark.schema.json").write_text("mine")
    cli.ends(0, "init", "data/people.csv", "--out", "conf/x.yaml", "-q")
    assert (folder / "conf" / "anonspark.schema.json").read_text() == "mine"
    assert written(folder / "conf" / "x.yaml")["execution"]["seed_file"] == "conf/x.seed"
    cli.ends(0, "check", "conf/x.yaml")


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (OSError(28, "No space left"), PublishingError),
        (FileExistsError(17, "", "x"), ConfigurationError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_nothing_half_written_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    error: type[BaseException],
) -> None:
    real, calls = os.link, []

    def link(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 3:
            raise failure
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    last = str(tmp_path / "c.yaml")
    with pytest.raises(error):
        draft.write_files({str(tmp_path / "a"): "1", str(tmp_path / "b"): "2", last: "3"}, ())
    assert [Path(one).name for one in calls] == ["a", "b", "c.yaml"]
    assert list(tmp_path.iterdir()) == []


def test_names_of_files_and_columns_have_no_variables(folder: Path, cli: Cli) -> None:
    rows = (f"{n},{'ab'[n % 2]}${{A}}\n" for n in range(60))
    (folder / "t ${HOME}.csv").write_text("${HOME},area ${HOME}\n" + "".join(rows))
    cli.ends(0, "init", "t ${HOME}.csv", "--out", "c ${HOME}.yaml", "--no-progress")
    configured = load_configuration("c ${HOME}.yaml")
    assert configured.input.path == "t ${HOME}.csv"
    assert list(configured.attributes) == ["${HOME}", "area ${HOME}"]


def test_answers_to_questions_decide_the_roles(folder: Path, cli: Cli) -> None:
    answers = [
        "person_id, nobody",  # no such column: asked again
        "person_id",
        "sex, city",
        "sex",  # has a role already: asked again
        "diagnosis",
        "visits",
        "one",  # no number: asked again
        "7",
        "out/mine",
        "n",
    ]
    code, told = answered("\n".join(answers) + "\n")
    assert code == 0, told
    assert "there is no column 'nobody'" in told
    assert "sex has another role already" in told
    document = written(folder / "people.yaml")
    assert roles(folder / "people.yaml") == {
        "person_id": "identifier",
        "sex": "quasi_identifier",
        "city": "quasi_identifier",
        "diagnosis": "sensitive",
        "visits": "insensitive",
    }
    assert document["privacy"]["k"] == 7
    assert document["output"]["path"] == "out/mine"
    assert "visits: insensitive  # you said so" in (folder / "people.yaml").read_text()
    cli.ends(0, "check", "people.yaml")


def test_defaults_of_questions_and_orders(folder: Path) -> None:
    code, told = answered("\n" * 6 + "y\n")
    assert code == 0, told
    assert set(roles(folder / "people.yaml")) >= {"birth_date", "person_id", "diagnosis"}
    orders = written(folder / "people.orders" / "orders.yaml")
    assert "education" in str(orders)


def test_who_ends_the_questions_gets_no_file(folder: Path) -> None:
    code, _ = answered("\n")
    assert code != 0
    assert [one.name for one in folder.iterdir()] == ["data"]


@pytest.mark.usefixtures("folder")
def test_the_page_shows_what_is_written(tmp_path: Path, cli: Cli) -> None:
    outcome = cli("init", "data/people.csv", "--no-progress")
    page = (REPOSITORY / "docs" / "profile.md").read_text()
    assert f"```text\n{outcome.out}```" in page
    assert f"```yml\n{(tmp_path / 'people.yaml').read_text()}```" in page


def test_columns_of_households_become_the_unit(folder: Path, cli: Cli) -> None:
    for name in ("household_id", "hhid"):
        table = folder / f"{name}.csv"
        rows = [f"{n // 4},{n * 13 % 90},{'fm'[n % 2]},{20000 + n // 4 % 7},{'abcd'[n % 4]}"
                for n in range(320)]  # fmt: skip
        table.write_text("\n".join([f"{name},age,sex,zip,dx", *rows, ""]))
        cli.ends(0, "init", table, "--no-progress")
        path = folder / f"{name}.yaml"
        assert names_of(path, "identifier") == [name]
        assert written(path)["privacy"]["unit"] == name
        assert f"unit: {name}  # k counts households" in path.read_text()
        cli.ends(0, "check", path, "--no-progress")


@pytest.mark.usefixtures("folder")
def test_who_a_person_is_where_nothing_says_it(tmp_path: Path, cli: Cli) -> None:
    random = [(n * 7919 + 13) % 1009 for n in range(600)]
    rows = [
        f"{random[n // 20] % 40},{20 + one % 50},{'fm'[one % 2]}" for n, one in enumerate(random)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["nr,age,sex", *rows, ""]))
    cli.ends(0, "init", "t.csv", "--no-progress")
    text = (tmp_path / "t.yaml").read_text()
    assert "unit" not in written(tmp_path / "t.yaml")["privacy"]
    assert "# Who is a person here?" in text
    assert "# unit: COLUMN  # it may be nr" in text
    assert names_of(tmp_path / "t.yaml", "identifier") == []
    assert "nr" not in names_of(tmp_path / "t.yaml", "quasi_identifier")
    # With its comment taken away the file is right.
    cli.ends(0, "check", "t.yaml", "--no-progress")
    (tmp_path / "t.yaml").unlink()
    (tmp_path / "t.seed").unlink()
    log = CommandLog(ERR)
    LOG.set(log)
    with ended_by_signals(), log.opened():
        asked = CliRunner().invoke(
            application, ["init", "t.csv", "-iq"], input="\n" * 4 + "age\nnobody\nnr\n\n\n"
        )
    assert asked.exit_code == 0, asked.output
    assert "Who is a person here" in asked.output
    assert "age has another role already" in asked.output
    assert "there is no column 'nobody'" in asked.output
    assert names_of(tmp_path / "t.yaml", "identifier") == ["nr"]
    assert written(tmp_path / "t.yaml")["privacy"]["unit"] == "nr"


@pytest.mark.usefixtures("folder")
def test_comments_are_right_as_they_stand(tmp_path: Path, cli: Cli) -> None:
    names = ["age", "sex", *(f"x{place}" for place in range(6)), "pre"]
    rows = [[20 + n % 40, "fm"[n % 2], *((n * 31 + n // 7) % (50 + place) for place in range(6)),
             ("007", "012")[n % 2]] for n in range(400)]  # fmt: skip
    write_rows(tmp_path / "p.csv", [names, *rows])
    cli.ends(0, "init", "p.csv", "--no-progress")
    text = (tmp_path / "p.yaml").read_text()
    assert "\n  # pre: {role: quasi_identifier, type: text" in text
    (tmp_path / "p.yaml").write_text(text.replace("\n  # pre:", "\n  pre:"))
    cli.ends(0, "check", "p.yaml", "--no-progress")


@pytest.mark.usefixtures("folder")
def test_groups_are_in_the_order_of_their_numbers(tmp_path: Path, cli: Cli) -> None:
    groups = ["<5", "5-9", "10-14", "15-19", ">=85"]
    rows = [f"{groups[n * 7 % 5]},{150 + n * 31 % 60}" for n in range(200)]
    (tmp_path / "g.csv").write_text("\n".join(["agegroup,h", *rows, ""]))
    cli.ends(0, "init", "g.csv", "--no-progress")
    assert written(tmp_path / "g.yaml")["attributes"]["agegroup"] == {
        "role": "quasi_identifier",
        "order": groups,
    }
    cli.ends(0, "check", "g.yaml", "--no-progress")
    # A rare group is a value of few people, which no file holds that others may read.
    (tmp_path / "rare.csv").write_text("\n".join(["agegroup,h", *rows, "90+,160", ""]))
    cli.ends(0, "init", "rare.csv", "--no-progress")
    assert roles(tmp_path / "rare.yaml")["agegroup"] == "quasi_identifier"
    assert "90+" not in (tmp_path / "rare.yaml").read_text()


@pytest.mark.usefixtures("folder")
def test_a_table_of_which_nothing_can_be_proposed(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "p.csv").write_text("age,sex\n44,f\n30,m\n")
    refused = cli.ends(3, "init", "p.csv", "--no-progress")
    assert "DATA: p.csv has 2 rows, and k = 5 needs that many at least" in refused.err
    (tmp_path / "p.csv").write_text("age,sex\n" + "44,f\n" * 9)
    refused = cli.ends(3, "init", "p.csv", "--no-progress")
    assert "DATA: no column of p.csv can be proposed as a quasi-identifier" in refused.err
    assert not (tmp_path / "p.yaml").exists()
    assert not (tmp_path / "p.seed").exists()


@pytest.mark.usefixtures("folder")
def test_numbers_that_stand_for_names_are_texts(tmp_path: Path, cli: Cli) -> None:
    draw = random.Random(4)  # noqa: S311
    rows = [
        [
            draw.randint(1, 5),
            draw.randint(1, 2),
            draw.choice(["", "1.0", "2.0", "6.0"]),
            draw.randint(1, 7),
            draw.randint(6, 18),
            draw.randint(18, 90),
        ]
        for _ in range(800)
    ]
    header = ["race", "sex", "marital", "admission_type_id", "education_years", "age"]
    write_rows(tmp_path / "codes.csv", [header, *rows])
    cli.ends(0, "init", "codes.csv", "--no-progress")
    text, attributes = (tmp_path / "codes.yaml").read_text(), written(tmp_path / "codes.yaml")
    for name in header[:4]:
        declared = {"role": "quasi_identifier", "type": "text"}
        assert attributes["attributes"][name] == declared
    assert text.count("Its numbers stand for names.") == 4
    assert attributes["attributes"]["education_years"]["grid"] == 1
    assert "hierarchy: {intervals: [5, 10], top: 90}" in text
    assert "codes_as_numbers" not in cli("check", "codes.yaml", "--json").out
    # As numbers they are warned of, and confirmed by a type.
    for kind in ("null", "number"):
        checked = cli("check", "codes.yaml", "--json", "--set", f"attributes.race.type={kind}")
        warned = [one["attribute"] for one in json.loads(checked.out)["warnings"]]
        assert ("race" in warned) is (kind == "null"), checked.err
    assert "Declare its type as text" not in checked.err


@pytest.mark.usefixtures("folder")
def test_codes_of_other_lengths_are_grouped_by_their_beginning(tmp_path: Path, cli: Cli) -> None:
    codes = ["E11", "E11.9", "E11.65", "I10", "I50.22", "J45.909", "A01.1"]
    areas = ["SW1A 1AA", "M1 1AE", "B33 8TH", "CR2 6XH", "DN55 1PT", "W1A 0AX"]
    draw = random.Random(5)  # noqa: S311
    header = ["postcode", "age", *(f"diagnosis_{n}" for n in range(5))]
    rows = [
        [draw.choice(areas), draw.randint(18, 90), *(draw.choice(codes) for _ in range(5))]
        for _ in range(600)
    ]
    write_rows(tmp_path / "icd.csv", [header, *rows])
    cli.ends(0, "init", "icd.csv", "--no-progress")
    text = (tmp_path / "icd.yaml").read_text()
    rule = "{role: quasi_identifier, hierarchy: {keep: [3, 1]}}"
    assert f"  # postcode: {rule}  # three characters, then one\n" in text
    assert f"  # diagnosis_4: {rule}" in text
    # As it says: take the # away.
    commented = text.replace("  # diagnosis_4: {", "  diagnosis_4: {")
    (tmp_path / "icd.yaml").write_text(commented)
    cli.ends(0, "check", "icd.yaml")


PEOPLE = "data/people.csv"
VALUES = ("PE8F2E4592B8FDBA4", "Kowalski", "Brookview", "depression")


@pytest.mark.usefixtures("folder")
def test_the_page_shows_what_the_command_prints(cli: Cli) -> None:
    outcome = cli("profile", PEOPLE, "--no-progress")
    assert (outcome.code, outcome.err) == (0, "")
    printed = "\n".join(line.rstrip() for line in outcome.out.splitlines())
    page = (REPOSITORY / "docs" / "profile.md").read_text()
    shown = re.search(r"<!-- made by .*? -->\n\n```text\n(.*?)\n```", page, re.S)
    assert shown is not None
    assert printed == shown[1]


@pytest.mark.usefixtures("folder")
def test_no_value_is_shown(tmp_path: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "profile", PEOPLE, "--html", "page.html")
    assert outcome.err.startswith("20")
    assert "look at the data" in outcome.err.splitlines()[0]
    page = (tmp_path / "page.html").read_text()
    assert "postal_code gives city away" in page
    told = outcome.out + outcome.err + page
    assert not [value for value in VALUES if value in told]


@pytest.mark.usefixtures("folder")
def test_values_and_json(tmp_path: Path, cli: Cli) -> None:
    plain = json.loads(cli("profile", PEOPLE, "--no-progress", "--json", "--k", "10").out)
    assert (plain["rows"], plain["k"]) == (2000, 10)
    assert plain["sample"] == {"rows": 2000, "seed": 0}
    by_name = {one["name"]: one for one in plain["columns"]}
    assert by_name["person_id"]["role"] == "identifier"
    assert "examples" not in by_name["diagnosis"]
    assert [(one["column"], one["determines"], one["within"]) for one in plain["dependencies"]] == [
        ("postal_code", "city", None),
        ("city", "postal_code", 0.05),
    ]
    assert len(plain["sets"]["triples"]) == 165
    arguments = ("profile", PEOPLE, "--no-progress", "--show-values", "--html", "page.html")
    shown = cli(*arguments)
    assert "examples" in shown.out
    assert "married" in shown.out
    assert "married" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nowhere.csv",), 3, "DATA: no file is at nowhere.csv. Check the path"),
        (("hdfs:///people",), 2, "DATA: the name 'hdfs:///people' does not show the format"),
        (("data/people.csv", "--option", "header"), 2, "--option: found 'header'. Expected NAME="),
        (("data/people.csv", "--engine", "odd"), 2, "--engine: found 'odd'. Expected one of"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_profile_names_the_wrong_argument(
    arguments: tuple[str, ...], code: int, message: str, cli: Cli
) -> None:
    cli.ends(code, "profile", *arguments, "--no-progress", says=message)


TWENTY = list(range(20)) * 2

NAMES = [
    *("age", "sex", "zip", "diagnosis", "income", "household_id", "pid", "id", "birth_date"),
    *("city", "religion", "label", "score", "num_visits", "date", "time", "code", "notes"),
    *("email", "x", "county", "school_id", "a b", "c.d", "e: f", "it's", "#g"),
]
QUOTED = ["my age", "a.b", "x: y", 'it\'s "q"', "#c", "- d", "{e}", "`f`"]
READ_BY_YAML = ["true", "null", "1", "1.5", "2020-01-01", "no", "~", "*"]

ODD: dict[str, dict[str, Any]] = {
    "fewer rows than k": {"age": [1, 2, 3], "sex": ["f", "m", "f"]},
    "as many rows as k": {"age": [1, 2, 3, 4, 5], "income": [1, 2, 3, 4, 5]},
    "a sensitive value of all": {"age": TWENTY, "diagnosis": ["flu"] * 40},
    "a sensitive value of nearly all": {"age": TWENTY, "diagnosis": ["flu"] * 37 + ["x"] * 3},
    "sensitive values in small classes": {"age": [1, 2, 3, 4, 5, 6], "diagnosis": list("aaaabc")},
    "several sensitive": {
        "age": TWENTY, "diagnosis": ["a"] * 20 + ["b"] * 20, "income": [1] * 19 + [2] * 21,
        "religion": ["x"] * 30 + ["y"] * 10,
    },
    "sensitive values that are missing": {"age": TWENTY, "diagnosis": [None] * 20 + ["b"] * 20},
    "names": dict.fromkeys(QUOTED, TWENTY),
    "names that YAML reads": dict.fromkeys(READ_BY_YAML, TWENTY),
    "a long name": {"x" * 300: TWENTY},
    "no values": {"a": [None] * 40, "b": [None] * 40},
    "mostly missing": {"age": [None] * 30 + list(range(10)), "sex": ["f", "m"] * 20},
    "no complete row": {
        "age": [None if row % 2 else row for row in range(40)],
        "zip": [10_000 + row % 7 if row % 2 else None for row in range(40)],
    },
    "truth values": {"a": [True, False] * 20, "b": [True] * 20 + [False] * 20},
    "a column": {"x": TWENTY},
    "a sensitive column": {"diagnosis": ["a", "b"] * 20},
    "two hundred columns": {f"c{place}": TWENTY for place in range(200)},
    "keys": {"id": list(range(40)), "email": [f"a{row}@b.de" for row in range(40)]},
    "households": {
        "household_id": [row // 4 for row in range(40)], "age": TWENTY,
        "diagnosis": [["a", "b", "c", "d"][row % 4] if row < 8 else "a" for row in range(40)],
    },
    "fewer households than k": {"household_id": [row // 10 for row in range(40)], "age": TWENTY},
    "infinite": {"age": [float("inf"), *range(39)], "x": TWENTY},
    "nested": {"a": [[1, 2]] * 40, "b": TWENTY},
    "names that differ in case": {"age": TWENTY, "Age": TWENTY},
    "postal codes with a fraction": {"zip": [row % 7 / 2 for row in range(40)]},
}  # fmt: skip


def check_draft(cli: Cli, folder: Path, name: str, *options: str) -> None:
    before = sorted(folder.iterdir())
    drafted = cli("init", name, "--no-progress", *options)
    if drafted.code:
        assert drafted.code == 3, drafted.err
        assert sorted(folder.iterdir()) == before
        return
    cli.ends(0, "check", "t.yaml", "--no-progress", "--set", "execution.engine=local")


@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
def test_an_odd_table(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "t.parquet", table)
    check_draft(cli, tmp_path, "t.parquet")


def texts_of(random: np.random.Generator, rows: int) -> Sequence[str]:
    """Return values of a form, of which some may be missing and one may be frequent."""
    values = random.integers(0, random.choice([1, 2, 3, 5, 10, 40, 200]), rows)
    if random.random() < 0.4:
        values[random.random(rows) < 0.8] = 0
    forms = [
        "v{0}", "{0}", "{0}.0", "{0}.{1}", "{0:04}", "19{2}-0{1}-1{1}", "1{1}.0{1}.19{2}",
        "2020-01-0{1} 10:00:0{1}", "{0}-{1}", "{0},{1}", "A{2}.{1}", "{0}%", "${0}", "x{1} {1}",
    ]  # fmt: skip
    form = random.choice(forms)
    missing = random.choice(["", "NA", "?", "-", "unknown"])
    absent = random.random(rows) < random.choice([0, 0, 0, 0.1, 0.5, 0.95])
    return [
        missing if lacks else form.format(value, 1 + value % 9, 10 + value % 90)
        for value, lacks in zip(values, absent, strict=True)
    ]


@pytest.mark.parametrize("seed", one_by_day(*range(5)))
def test_tables_at_random(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    random = np.random.default_rng(seed)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        rows = int(random.choice([1, 4, 5, 6, 9, 12, 20, 33, 60, 150]))
        names = random.choice(NAMES, random.integers(1, 9), replace=False)
        columns = [texts_of(random, rows) for _ in names]
        with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *zip(*columns, strict=True)])
        check_draft(cli, folder, "t.csv", "--option", "header=true")


def test_a_line_with_one_comma_more_does_not_make_one_column_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A sign that is in no line cuts all lines alike: each whole line would be one value."""
    monkeypatch.chdir(tmp_path)
    lines = [f"Person {i},{20 + i % 40},{'fm'[i % 2]}" for i in range(100)]
    lines[50] = "Miller, Person 50,51,f"
    Path("survey.csv").write_text("\n".join(["name,age,sex", *lines]) + "\n")

    assert (
        "line 52: a record has too few or too many values" in cli.ends(3, "init", "survey.csv").err
    )
    assert not Path("survey.yaml").exists()
