"""The commands as a user types them: what they tell, show, and say of a wrong line."""

from __future__ import annotations

import json
import os
import platform
import re
import runpy
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyspark
import pytest
import yaml
from cases import cases, data_beside
from commands import Cli
from helpers import configuration_file, contents, metrics, published, summary, write_table
from places import REPOSITORY

import anonspark
from anonspark import __version__
from anonspark.cli.application import main
from anonspark.demo.people import PEOPLE_SCHEMA, find_class, people_of
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import DataError, EnvironmentProblem
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.release.manifest import read_manifest

ATTRIBUTES = {
    "age": "quasi_identifier",
    "height": "quasi_identifier",
    "name": "identifier",
    "disease": "sensitive",
}  # fmt: skip


def write_input(folder: Path) -> Path:
    """Write a table and its configuration; return the latter's path."""
    random = np.random.default_rng(1)
    table = {
        "name": [f"Zebediah {number}" for number in range(200)],
        "age": [None, *(int(age) for age in random.integers(20, 70, 199))],
        "height": random.normal(170, 10, 200),
        "disease": ["flu", "cold"] * 100,
    }
    write_table(folder / "input.parquet", table)
    return configuration_file(folder, attributes=ATTRIBUTES)


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    return write_input(tmp_path)


def test_run_shows_figures_and_says_where_they_are(
    configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    outcome = cli.ends(0, "run", configuration, "--run-id", "first")
    assert "Release first" in outcome.out
    assert f"anonspark verify {tmp_path}/release" in outcome.out
    assert "round 1 of 5: 199 rows: done" in outcome.err
    assert "Zebediah" not in outcome.out + outcome.err
    assert summary(tmp_path / "release")["run_id"] == "first"
    assert metrics(tmp_path / "release", "rounds")[0]["run_id"] == "first"


def test_run_quietly_with_json(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "run", configuration, "--no-progress", "--json")
    # What is not asked for are the stages.
    lines = outcome.err.splitlines()
    told = [line.partition(": ")[2].partition(" ")[0] for line in lines]
    assert told == ["execution.seed", "ranges", "attributes.disease:"]
    told = json.loads(outcome.out)
    assert told["path"] == str(tmp_path / "release")
    written = summary(tmp_path / "release")
    assert told["summary"]["dm"] == int(written["dm"])
    assert told["summary"]["gcp"] == written["gcp"]
    assert len(told["rounds"]) == len(metrics(tmp_path / "release", "rounds"))
    assert [row["attribute"] for row in told["attributes"]] == ["age", "height"]
    assert set(told["seconds"]) >= {"prepare", "publish", "verify"}


def test_run_with_overrides(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    overrides = (
        "privacy.k=9",
        "model={name: smondrian, split: relaxed}",
        f"output.path={tmp_path}/elsewhere",
        "output.style=bounds",
        "missing=category",
        'attributes."disease"=insensitive',
    )
    given = [part for override in overrides for part in ("--set", override)]
    cli.ends(0, "run", configuration, *given)
    row = summary(tmp_path / "elsewhere")
    assert (row["k"], row["model"], row["rows_published"]) == (9, "smondrian", 200)
    assert row["min_class_size"] >= 9
    assert "age_min" in published(tmp_path / "elsewhere").column_names
    assert not (tmp_path / "release").exists()
    manifest = json.loads((tmp_path / "elsewhere" / "manifest.json").read_text())
    assert manifest["configuration"]["attributes"]["disease"]["role"] == "insensitive"


def test_overwriting_replaces_the_whole_release(
    configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    cli.ends(0, "run", configuration)
    before = set(contents(tmp_path))
    overwrite = ("--set", "output.mode=overwrite")
    # Of somebody else: it would be gone with the release.
    foreign = tmp_path / "release" / "data" / "part-from-before.parquet"
    foreign.write_bytes(b"no Parquet")
    cli.ends(2, "run", configuration, *overwrite)
    foreign.unlink()
    cli.ends(0, "run", configuration, *overwrite)
    assert published(tmp_path / "release").num_rows == 199
    assert not {name for name in set(contents(tmp_path)) - before if "/" not in name}


@pytest.mark.parametrize(
    ("name", "content"), [("extra.txt", b"hi\n"), ("extra.parquet", b""), ("extra.csv", b"a,b\n")]
)
def test_a_file_that_is_not_of_the_release_is_told_alone(
    configuration: Path, tmp_path: Path, cli: Cli, name: str, content: bytes
) -> None:
    cli.ends(0, "run", configuration)
    (tmp_path / "release" / "data" / name).write_bytes(content)
    verified = cli.ends(4, "verify", tmp_path / "release")
    (error,) = [line for line in verified.err.splitlines() if line.startswith("error: ")]
    assert f"holds what does not belong to the release: data/{name}. " in error


@pytest.mark.parametrize("options", [(), ("--plan",)])
def test_looking_ahead_writes_nothing(
    configuration: Path, tmp_path: Path, cli: Cli, options: Sequence[str]
) -> None:
    before = contents(tmp_path)
    arguments = ("check", configuration, "--set", "execution.task_rows=60")
    outcome = cli.ends(0, *arguments, *options)
    assert contents(tmp_path) == before
    assert "200" in outcome.out
    assert "Zebediah" not in outcome.out
    if not options:
        assert "attributes.age: 1 values are missing" in outcome.out
        assert "1 to be dropped" in outcome.out
    else:
        # Without the frame of the tables, and however their lines were broken.
        told = re.sub(r"[\s│]", "", outcome.out)
        assert "rowsoftheinput200rowsdroppedformissingvalues1roundsatmost5" in told
        assert "tasksofround1atleast4" in told
        assert "columnspublishedage,height,disease" in told
        assert f"Output: file:{tmp_path}/release" in outcome.out


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    assert main(["run", str(write_input(folder)), "--no-progress"]) == 0
    return folder / "release"


@pytest.fixture
def release(published_once: Path, tmp_path: Path) -> Path:
    """Copy a release, to be spoilt."""
    return shutil.copytree(published_once, tmp_path / "release")


def test_verify_prints_the_figures_of_the_release(release: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "verify", release)
    assert "All criteria hold" in " ".join(outcome.out.split())

    outcome = cli("verify", f"{release}/", "--json")
    found = json.loads(outcome.out)
    row = summary(release)
    assert found["k"] == 5
    assert found["quasi_identifier_columns"] == ["age", "height"]
    assert found["rows"] == row["rows_published"]
    assert found["smallest"] == row["published_min_class_size"]
    assert found["classes"] == row["published_classes"]
    assert found["fingerprint"] == row["output_fingerprint"]


def test_a_report_that_fails_leaves_a_complete_release(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonspark.reporting import build_report

    def fail(*_: object) -> None:
        raise DataError("input.path: it vanished")

    monkeypatch.setattr(build_report, "report_run", fail)
    write_table(tmp_path / "input.parquet", {"age": list(range(40))})
    path = configuration_file(tmp_path, attributes={"age": "quasi_identifier"})
    outcome = cli.ends(3, "run", path, "--report", "--json")
    assert f"report: the release at {tmp_path}/release is complete" in outcome.err
    assert "it vanished" in outcome.err
    assert json.loads(outcome.out)["summary"]["rows_published"] == 40
    cli.ends(0, "verify", tmp_path / "release")


def test_verify_requires_the_given_configuration(
    release: Path, configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    cli.ends(0, "verify", release, "--config", configuration)

    document = yaml.safe_load(configuration.read_text())
    document["privacy"]["k"] = 50
    stricter = tmp_path / "stricter.yaml"
    stricter.write_text(yaml.safe_dump(document))
    cli.ends(4, "verify", release, "--config", stricter, says="expected at least k = 50")

    document["attributes"]["weight"] = "quasi_identifier"
    stricter.write_text(yaml.safe_dump(document))
    outcome = cli.ends(3, "verify", release, "--config", stricter)
    assert "lacks the published columns 'weight'" in outcome.err


@cases(__file__, "damage", "told")
def test_verify_of_what_is_no_release(release: Path, cli: Cli, damage: str, told: str) -> None:
    data = published(release)
    target = release
    manifest = release / "manifest.json"
    parts = list((release / "data").iterdir())
    match damage:
        case "no-release":
            target = release / "nowhere"
        case "no-manifest":
            manifest.unlink()
        case "broken-manifest":
            manifest.write_text(manifest.read_text()[:100])
        case "other-manifest":
            manifest.write_text('{"published": {}}')
        case _:
            for part in parts:
                part.unlink()
    match damage:
        case "no-data":
            (release / "data").rmdir()
        case "broken-data":
            (release / "data" / "part-0.parquet").write_bytes(b"Zebediah" * 50)
        case "column-removed":
            # Spark would believe its own schema, which pyarrow hands on.
            lacking = data.drop_columns("age").replace_schema_metadata(None)
            pq.write_table(lacking, parts[0])
    outcome = cli("verify", target)
    # Where there is no release at all it is the wrong path.
    assert outcome.code == (3 if damage in ("no-release", "no-manifest") else 4), outcome.err
    assert told in outcome.err
    assert str(target) in outcome.err
    assert "Zebediah" not in outcome.err


def test_doctor_lists_versions(cli: Cli) -> None:
    outcome = cli("doctor", "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    found = json.loads(outcome.out)
    assert (found["Python"].split()[0], found["pyspark"]) == (
        platform.python_version(),
        pyspark.__version__,
    )
    assert found.keys() >= {"anonspark", "Java", "pyarrow", "NumPy", "kernels", "memory"}


def test_what_needs_spark_without_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    def fail() -> str:
        raise EnvironmentProblem("pyspark is not installed")

    monkeypatch.setattr("anonspark.engine.spark.java.installed_spark_version", fail)
    outcome = cli("history", "hdfs:///people")
    assert (outcome.code, outcome.err) == (6, "error: pyspark is not installed\n")
    cli.ends(0, "doctor")


def test_doctor_names_the_remedy(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none() -> None:
        raise EnvironmentProblem("No Java was found. What to do: install one")

    monkeypatch.setattr("anonspark.engine.spark.java.find_java", find_none)
    monkeypatch.setattr("anonspark.kernels.built.built", lambda: None)
    monkeypatch.setattr("anonspark.kernels.built.version_of_numba", str)
    outcome = cli.ends(6, "doctor")
    assert "Java        none\n" in outcome.out
    assert "No Java was found. What to do: install one. Kernels" in outcome.err
    assert "anonspark[numba]" in outcome.err


def test_schema_is_that_of_the_repository(configuration: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "schema")
    schema = json.loads(outcome.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = yaml.safe_load(configuration.read_text())
    jsonschema.validate(document, schema)
    document["privacy"]["k"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    written = (REPOSITORY / "conf" / "anonspark.schema.json").read_text(encoding="utf-8")
    assert written == outcome.out, "conf/anonspark.schema.json is outdated: make schema"


@pytest.mark.parametrize("name", ["adult.yaml", "people.yaml"])
def test_configurations_of_the_repository_fit_the_schema(name: str) -> None:
    schema = json.loads((REPOSITORY / "conf" / "anonspark.schema.json").read_text())
    jsonschema.validate(yaml.safe_load((REPOSITORY / "conf" / name).read_text()), schema)


def test_version_is_printed_alone(cli: Cli) -> None:
    assert cli("--version") == (0, f"{__version__}\n", "")


def test_as_a_module_of_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["anonspark", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("anonspark", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{__version__}\n")


@pytest.mark.parametrize("given", [[], ["run"], ["ledger"], ["ledger", "init"]])
def test_the_help_has_a_short_option_and_is_shown_without_a_command(
    cli: Cli, given: list[str]
) -> None:
    asked, short = cli.ends(0, *given, "--help"), cli.ends(0, *given, "-h")
    assert asked.out == short.out
    assert "--help, -h" in asked.out or "-h, --help" in asked.out
    if given in ([], ["ledger"]):
        assert cli(*given) == (2, asked.out, "")
    if not given:
        names = ("run", "check", "verify", "demo", "doctor", "schema")
        assert all(name in asked.out for name in names)


def test_a_bug_of_ours_shows_no_data(
    configuration: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("Zebediah is here")

    monkeypatch.setattr("anonspark.pipeline.run.run", fail)
    outcome = cli.ends(1, "run", configuration, says="unexpected RuntimeError: a bug of anonspark")
    assert "Zebediah" not in outcome.err
    cli.ends(1, "run", configuration, "--debug", says=("Traceback", "Zebediah is here"))


ROWS = 700


def test_before_and_after_are_the_same_people(tmp_path: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "demo", "--rows", str(ROWS), "--out", tmp_path, "--no-progress")
    before, after = (
        pq.read_table(tmp_path / path) for path in (f"people-{ROWS}.parquet", "release/data")
    )
    attributes = published_attributes(read_manifest(LocalEngine().files, str(tmp_path / "release")))
    shown = find_class(before, after, attributes)
    assert shown is not None
    people, records = shown
    assert people["diagnosis"].to_pylist() == records["diagnosis"].to_pylist()
    assert len(people) == len(records) >= 10
    labels = records.select([one.name for one in attributes]).to_pylist()
    assert labels == [labels[0]] * len(records)
    for name in people["full_name"].to_pylist()[:5]:
        assert name in outcome.out
    assert max(map(len, outcome.out.partition("Release ")[0].splitlines())) <= 80


def test_its_release_can_be_verified_and_made_again(tmp_path: Path, cli: Cli) -> None:
    for _ in range(2):
        outcome = cli.ends(0, "demo", "--rows", str(ROWS), "--out", tmp_path, "--json")
    assert json.loads(outcome.out)["summary"]["rows_published"] == ROWS
    cli.ends(0, "verify", tmp_path / "release")


def test_no_class_is_shown_whose_labels_cover_others() -> None:
    people = pa.table({"age": [1, 2, 3], "diagnosis": ["a", "b", "c"]})
    published = pa.table({"age": ["[1-3]", "[1-3]"], "diagnosis": ["a", "b"]})
    age = PublishedAttribute("age", "integer", "label", ("age",))
    assert find_class(people, published, [age]) is None
    more = pa.concat_tables([published, published.slice(0, 1)])
    assert find_class(people, more, [age]) is not None


def test_people_are_those_of_the_table_that_comes_with_the_project() -> None:
    table = pa.Table.from_batches([people_of(0, np.arange(2000))])
    instants = pa.field("last_visit", pa.timestamp("s"))
    types = {one.name: one.type for one in PEOPLE_SCHEMA} | {instants.name: instants.type}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    expected = pyarrow.csv.read_csv(REPOSITORY / "data/people.csv", convert_options=options)
    at = PEOPLE_SCHEMA.get_field_index("last_visit")
    visits = expected["last_visit"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    assert expected.set_column(at, PEOPLE_SCHEMA.field(at), visits).equals(table)


@cases(__file__, "line", "told")
def test_what_is_said_of_a_wrong_line(cli: Cli, line: str, told: str) -> None:
    cli.ends(2, *line.split(), says=told)


@pytest.fixture
def wrong_file(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age,zip,disease\n" + "30,1,flu\n31,2,cold\n" * 9)
    path = tmp_path / "people.yaml"
    path.write_text(
        f"input: {{path: {tmp_path}/people.csv, options: {{header: true}}}}\n"
        "quasi_identifiers: [age, zipp]\n"
        "attributes:\n"
        "  disese: sensitive\n"
        "privacy: {k: 2}\n"
        "output:\n"
        f"  path: {tmp_path}/release\n"
    )
    return path


def test_what_the_data_show_is_told_at_the_place_of_its_key(wrong_file: Path, cli: Cli) -> None:
    for name in ("check", "run"):
        shown = cli.ends(3, name, wrong_file)
        listed, attribute = [line for line in shown.err.splitlines() if line.startswith("error: ")]
        assert listed.startswith(f"error: {wrong_file}:2:26: attributes.zipp: the input has no")
        assert attribute.startswith(f"error: {wrong_file}:4:3: attributes.disese: the input has")
    shown = cli("check", wrong_file, "--log-format", "json")
    told = json.loads(shown.err.splitlines()[-1])["message"]
    assert told == f"{listed}\n{attribute}".replace("error: ", "")

    (wrong_file.parent / "release").mkdir()
    cli.ends(2, "run", wrong_file, says=f"error: {wrong_file}:7:3: output.path: ")
    # What writes nothing says it, and looks at the rest.
    for options in ([], ["--plan"]):
        shown = cli.ends(3, "check", wrong_file, *options)
        assert f"output.path: {wrong_file.parent / 'release'} exists already" in shown.err


def test_what_the_file_does_not_say_has_no_place_in_it(wrong_file: Path, cli: Cli) -> None:
    shown = cli.ends(3, "check", wrong_file, "--set=input.path=/nowhere/people.csv")
    assert "error: input.path: /nowhere/people.csv is not there" in shown.err
    added = "--set=attributes.town=insensitive"
    shown = cli.ends(3, "check", wrong_file, added)
    assert "error: attributes.town: the input has no such column" in shown.err
    assert f"error: {wrong_file}:4:3: attributes.disese: " in shown.err


STAGES = data_beside(__file__)["STAGES"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, its configuration, a grid and nothing else."""
    folder = tmp_path_factory.mktemp("progress")
    random = np.random.default_rng(2)
    table = {
        "age": random.integers(20, 80, 120).tolist(),
        "city": random.choice(["Linz", "Graz", "Wien"], 120).tolist(),
        "ill": random.choice(["yes", "no"], 120).tolist(),
    }
    write_table(folder / "people.parquet", table)
    document = {
        "input": {"path": str(folder / "people.parquet")},
        "attributes": {
            "age": "quasi_identifier", "city": "quasi_identifier", "ill": "sensitive",
        },
        "privacy": {"k": 4},
        "execution": {"seed": 1},
        "output": {"path": str(folder / "release")},
    }  # fmt: skip
    (folder / "people.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    recoded = document | {
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
            "city": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 2]}},
            "ill": "sensitive",
        },
        "model": {"name": "full-domain", "suppression_limit": 0.2},
        "output": {"path": str(folder / "recoded")},
    }
    (folder / "recoded.yaml").write_text(yaml.safe_dump(recoded, sort_keys=False))
    grid = {"base": "people.yaml", "axes": {"privacy.k": [4, 8]}, "output": str(folder / "cells")}
    (folder / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    return folder


@pytest.fixture(scope="module")
def followed_release(place: Path) -> Path:
    """Return a release of the table, made by its command."""
    for name in ("people", "recoded"):
        assert main(["run", str(place / f"{name}.yaml"), "--no-progress"]) == 0
    return place / "release"


def arguments(name: str, place: Path, folder: Path) -> list[object]:
    """Return the arguments of a command that reads or makes the release."""
    configuration, followed_release = place / "people.yaml", place / "release"
    people = place / "people.parquet"
    return {
        "check": ["check", configuration, "--set", f"output.path={folder / 'other'}"],
        "plan": ["check", "--plan", configuration, "--set", f"output.path={folder / 'other'}"],
        "verify": ["verify", followed_release, "--original", people],
        "evaluate": ["evaluate", followed_release, "--original", people],
        "report": ["report", followed_release, "--out", folder / "report.html"],
        "arrange": ["arrange", configuration, "--target", "ill", "--out", folder / "arranged"],
        "clean": ["clean", configuration],
        "compare": ["compare", place / "grid.yaml"],
        "query": ["query", followed_release, "age < 40 by ill"],
        "mapping": ["mapping", place / "recoded"],
        "run": ["run", configuration, "--set", f"output.path={folder / 'other'}", "--report"],
        "profile": ["profile", people],
        "init": ["init", people, "--out", folder / "drafted.yaml"],
        "show": ["show", followed_release],
        "history": ["history", place],
        "union": ["union", followed_release, "--out", folder / "union"],
    }[name]


@pytest.mark.parametrize("name", STAGES)
def test_every_command_tells_its_stages(
    name: str, place: Path, followed_release: Path, tmp_path: Path, cli: Cli
) -> None:
    assert followed_release.is_dir()
    words = arguments(name, place, tmp_path)
    outcome = cli.ends(0, *words)
    told = [line.partition(" anonspark: ")[2] for line in outcome.err.splitlines()]
    done = [line.rpartition(": done in ")[0] for line in told if ": done in " in line]
    assert done[0] == "start"
    assert [stage for stage in done if stage in STAGES[name]] == STAGES[name]


@pytest.mark.parametrize("name", STAGES)
def test_commands_without_progress_tell_no_stage(
    name: str, place: Path, followed_release: Path, tmp_path: Path, cli: Cli
) -> None:
    assert followed_release.is_dir()
    outcome = cli.ends(0, *arguments(name, place, tmp_path), "--no-progress")
    assert " ..." not in outcome.err
    assert "done in" not in outcome.err


ANSWERS = {"plan", "evaluate", "compare", "query", "mapping", "profile", "show", "history"}


@pytest.mark.parametrize("name", [*STAGES, "run", "profile", "init", "show", "history", "union"])
def test_quiet_prints_nothing_but_an_answer(
    name: str, place: Path, followed_release: Path, tmp_path: Path, cli: Cli
) -> None:
    assert followed_release.is_dir()
    code = 2 if name == "union" else 0
    outcome = cli.ends(code, *arguments(name, place, tmp_path), "--quiet")
    # An error is shown, but no warning: the seed of the run is one that is guessed.
    assert bool(outcome.err) == (name == "union")
    assert bool(outcome.out) == (name in ANSWERS)


def test_quiet_keeps_json(place: Path, tmp_path: Path, cli: Cli) -> None:
    outcome = cli(*arguments("run", place, tmp_path), "--quiet", "--json")
    assert json.loads(outcome.out)["warnings"][0]["code"] == "guessable_seed"
    assert outcome.err == ""
    loud = cli(*arguments("check", place, tmp_path), "--no-progress")
    assert "guessable" not in loud.out
    assert "execution.seed" in loud.err


@pytest.mark.parametrize("name", ["query", "mapping"])
def test_what_is_printed_stays_as_it_is(
    name: str, place: Path, followed_release: Path, tmp_path: Path, cli: Cli
) -> None:
    assert followed_release.is_dir()
    words = arguments(name, place, tmp_path)
    for more in ([], ["--json"]):
        told, quiet = cli(*words, *more), cli(*words, *more, "--quiet")
        assert told.out == quiet.out != ""
        assert "anonspark: " not in told.out
    json.loads(quiet.out)


FILES = Path(__file__).with_name("terminal")
CONFIGURATION = """\
input: {path: people.csv, format: csv, options: {header: "true"}}
attributes:
  birth_date: {role: quasi_identifier, type: date}
  sex: quasi_identifier
  education: quasi_identifier
  income: {role: quasi_identifier, type: number}
  diagnosis: sensitive
missing: drop
privacy: {k: 5, l_diversity: {attribute: diagnosis, l: 3}}
execution: {seed: 4611686018427387905, engine: local}
output: {path: out}
"""
COMMANDS = {
    "profile": ("profile", "people.csv"),
    "check": ("check", "people.yaml"),
    "plan": ("check", "--plan", "people.yaml"),
    "run": ("run", "people.yaml", "--run-id", "monday", "--details"),
    "verify": ("verify", "out", "--original", "people.csv"),
    "query": ("query", "out", "by sex"),
    "evaluate": ("evaluate", "out", "--original", "people.csv"),
}


def compare(name: str, shown: str) -> None:
    """Compare a text with the file of its name."""
    shown = re.sub(r"About \d+ seconds", "About N seconds", shown)
    shown = re.sub(r" +$", "", shown, flags=re.M)
    file = FILES / f"{name}.txt"
    if os.environ.get("ANONSPARK_SNAPSHOTS") == "write":
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


def test_a_terminal_shows_what_it_showed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    lines = (REPOSITORY / "data" / "people.csv").read_text(encoding="utf-8").splitlines()
    Path("people.csv").write_text("\n".join(lines[:401]) + "\n", encoding="utf-8")
    Path("people.yaml").write_text(CONFIGURATION, encoding="utf-8")
    for name, line in COMMANDS.items():
        done = cli.ends(0, *line)
        compare(name, done.out.replace(str(tmp_path), ""))
    # Tables and figures are never wider than the terminal; sentences are broken by it.
    frames = [line for line in done.out.splitlines() if "──" in line or line.startswith("  ")]
    assert max(map(len, frames)) <= 80


def test_a_notebook_shows_what_it_showed() -> None:
    people = pd.read_csv(REPOSITORY / "data" / "people.csv", nrows=400)
    roles = {"quasi_identifiers": ["sex", "income"], "sensitive": ["diagnosis"]}
    columns = ["sex", "income", "diagnosis"]
    with anonspark.anonymize(people[columns], k=5, l=3, seed=2**62 + 1, **roles) as release:
        compare("notebook_release", f"{release!r}\n")
        compare("notebook_verification", f"{release.verify(original=people)!r}\n")
    compare("notebook_profile", f"{anonspark.profile(people[columns])!r}\n")


def test_the_picture_of_a_terminal_is_what_the_commands_print() -> None:
    drawn = runpy.run_path(str(REPOSITORY / "tools" / "draw_terminal.py"))["draw"]()
    picture = REPOSITORY / "docs" / "images" / "terminal.svg"
    assert drawn == picture.read_text(encoding="utf-8"), "run tools/draw_terminal.py"
