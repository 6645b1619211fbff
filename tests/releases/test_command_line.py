"""The commands, as a user types them."""

from __future__ import annotations

import json
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
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyspark
import pytest
import yaml
from cases import cases
from helpers import command, configuration_file, contents, metrics, published, summary, write_table
from places import REPOSITORY

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
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "run", configuration, "--run-id", "first")
    assert outcome.code == 0, outcome.err
    assert "Release first" in outcome.out
    assert f"anonspark verify {tmp_path}/release" in outcome.out
    assert "round 1 of 5: 199 rows: done" in outcome.err
    assert "Zebediah" not in outcome.out + outcome.err
    assert summary(tmp_path / "release")["run_id"] == "first"
    assert metrics(tmp_path / "release", "rounds")[0]["run_id"] == "first"


def test_run_quietly_with_json(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "run", configuration, "--no-progress", "--json")
    assert outcome.code == 0, outcome.err
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


def test_run_with_overrides(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = (
        "privacy.k=9",
        "model={name: smondrian, split: relaxed}",
        f"output.path={tmp_path}/elsewhere",
        "output.style=bounds",
        "missing=category",
        'attributes."disease"=insensitive',
    )
    given = [part for override in overrides for part in ("--set", override)]
    assert command(capsys, "run", configuration, *given).code == 0
    row = summary(tmp_path / "elsewhere")
    assert (row["k"], row["model"], row["rows_published"]) == (9, "smondrian", 200)
    assert row["min_class_size"] >= 9
    assert "age_min" in published(tmp_path / "elsewhere").column_names
    assert not (tmp_path / "release").exists()
    manifest = json.loads((tmp_path / "elsewhere" / "manifest.json").read_text())
    assert manifest["configuration"]["attributes"]["disease"]["role"] == "insensitive"


def test_overwriting_replaces_the_whole_release(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(capsys, "run", configuration).code == 0
    before = set(contents(tmp_path))
    overwrite = ("--set", "output.mode=overwrite")
    # Of somebody else: it would be gone with the release.
    foreign = tmp_path / "release" / "data" / "part-from-before.parquet"
    foreign.write_bytes(b"no Parquet")
    assert command(capsys, "run", configuration, *overwrite).code == 2
    foreign.unlink()
    again = command(capsys, "run", configuration, *overwrite)
    assert again.code == 0, again.err
    assert published(tmp_path / "release").num_rows == 199
    assert not {name for name in set(contents(tmp_path)) - before if "/" not in name}


@pytest.mark.parametrize(
    ("name", "content"), [("extra.txt", b"hi\n"), ("extra.parquet", b""), ("extra.csv", b"a,b\n")]
)
def test_a_file_that_is_not_of_the_release_is_told_alone(
    configuration: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: bytes,
) -> None:
    assert command(capsys, "run", configuration).code == 0
    (tmp_path / "release" / "data" / name).write_bytes(content)
    verified = command(capsys, "verify", tmp_path / "release")
    assert verified.code == 4
    (error,) = [line for line in verified.err.splitlines() if line.startswith("error: ")]
    assert f"holds what does not belong to the release: data/{name}. " in error


@pytest.mark.parametrize("options", [(), ("--plan",)])
def test_looking_ahead_writes_nothing(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Sequence[str]
) -> None:
    before = contents(tmp_path)
    arguments = ("check", configuration, "--set", "execution.task_rows=60")
    outcome = command(capsys, *arguments, *options)
    assert outcome.code == 0, outcome.err
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


def test_verify(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "verify", release)
    assert outcome.code == 0, outcome.err
    assert "All criteria hold" in " ".join(outcome.out.split())

    outcome = command(capsys, "verify", f"{release}/", "--json")
    found = json.loads(outcome.out)
    row = summary(release)
    assert found["k"] == 5
    assert found["quasi_identifier_columns"] == ["age", "height"]
    assert found["rows"] == row["rows_published"]
    assert found["smallest"] == row["published_min_class_size"]
    assert found["classes"] == row["published_classes"]
    assert found["fingerprint"] == row["output_fingerprint"]


def test_a_report_that_fails_leaves_a_complete_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonspark.reporting import build_report

    def fail(*_: object) -> None:
        raise DataError("input.path: it vanished")

    monkeypatch.setattr(build_report, "report_run", fail)
    write_table(tmp_path / "input.parquet", {"age": list(range(40))})
    path = configuration_file(tmp_path, attributes={"age": "quasi_identifier"})
    outcome = command(capsys, "run", path, "--report", "--json")
    assert outcome.code == 3
    assert f"report: the release at {tmp_path}/release is complete" in outcome.err
    assert "it vanished" in outcome.err
    assert json.loads(outcome.out)["summary"]["rows_published"] == 40
    assert command(capsys, "verify", tmp_path / "release").code == 0


def test_verify_requires_the_given_configuration(
    release: Path, configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(capsys, "verify", release, "--config", configuration).code == 0

    document = yaml.safe_load(configuration.read_text())
    document["privacy"]["k"] = 50
    stricter = tmp_path / "stricter.yaml"
    stricter.write_text(yaml.safe_dump(document))
    outcome = command(capsys, "verify", release, "--config", stricter)
    assert outcome.code == 4
    assert "expected at least k = 50" in outcome.err

    document["attributes"]["weight"] = "quasi_identifier"
    stricter.write_text(yaml.safe_dump(document))
    outcome = command(capsys, "verify", release, "--config", stricter)
    assert outcome.code == 3
    assert "lacks the published columns 'weight'" in outcome.err


@cases(__file__, "damage", "told")
def test_verify_of_what_is_no_release(
    release: Path, capsys: pytest.CaptureFixture[str], damage: str, told: str
) -> None:
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
    outcome = command(capsys, "verify", target)
    # Where there is no release at all it is the wrong path.
    assert outcome.code == (3 if damage in ("no-release", "no-manifest") else 4), outcome.err
    assert told in outcome.err
    assert str(target) in outcome.err
    assert "Zebediah" not in outcome.err


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "doctor", "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    found = json.loads(outcome.out)
    assert (found["Python"].split()[0], found["pyspark"]) == (
        platform.python_version(),
        pyspark.__version__,
    )
    assert found.keys() >= {"anonspark", "Java", "pyarrow", "NumPy", "kernels", "memory"}


def test_what_needs_spark_without_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> str:
        raise EnvironmentProblem("pyspark is not installed")

    monkeypatch.setattr("anonspark.engine.spark.java.installed_spark_version", fail)
    outcome = command(capsys, "history", "hdfs:///people")
    assert (outcome.code, outcome.err) == (6, "error: pyspark is not installed\n")
    assert command(capsys, "doctor").code == 0


def test_doctor_names_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none() -> None:
        raise EnvironmentProblem("No Java was found. What to do: install one")

    monkeypatch.setattr("anonspark.engine.spark.java.find_java", find_none)
    monkeypatch.setattr("anonspark.kernels.built.built", lambda: None)
    monkeypatch.setattr("anonspark.kernels.built.version_of_numba", str)
    outcome = command(capsys, "doctor")
    assert outcome.code == 6
    assert "Java        none\n" in outcome.out
    assert "No Java was found. What to do: install one. Kernels" in outcome.err
    assert "anonspark[numba]" in outcome.err


def test_schema(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "schema")
    assert outcome.code == 0
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


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "--version") == (0, f"{__version__}\n", "")


def test_as_a_module_of_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["anonspark", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("anonspark", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{__version__}\n")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "--help")
    assert outcome.code == 0
    for name in ("run", "check", "verify", "demo", "doctor", "schema"):
        assert name in outcome.out


@pytest.mark.parametrize("group", [[], ["ledger"]])
def test_without_a_command_there_is_the_help(
    capsys: pytest.CaptureFixture[str], group: list[str]
) -> None:
    asked = command(capsys, *group, "--help")
    outcome = command(capsys, *group)
    assert (outcome.code, outcome.out, outcome.err) == (2, asked.out, "")


@pytest.mark.parametrize("given", [[], ["run"], ["ledger"], ["ledger", "init"]])
def test_the_short_option_of_the_help(capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    asked, short = command(capsys, *given, "--help"), command(capsys, *given, "-h")
    assert asked.code == short.code == 0
    assert asked.out == short.out
    assert "--help, -h" in asked.out or "-h, --help" in asked.out


def test_a_bug_of_ours_shows_no_data(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("Zebediah is here")

    monkeypatch.setattr("anonspark.pipeline.run.run", fail)
    outcome = command(capsys, "run", configuration)
    assert outcome.code == 1
    assert "unexpected RuntimeError: a bug of anonspark" in outcome.err
    assert "Zebediah" not in outcome.err
    outcome = command(capsys, "run", configuration, "--debug")
    assert outcome.code == 1
    assert "Traceback" in outcome.err
    assert "Zebediah is here" in outcome.err


ROWS = 700


def test_before_and_after_are_the_same_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "demo", "--rows", str(ROWS), "--out", tmp_path, "--no-progress")
    assert outcome.code == 0, outcome.err
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


def test_its_release_can_be_verified_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        outcome = command(capsys, "demo", "--rows", str(ROWS), "--out", tmp_path, "--json")
        assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["summary"]["rows_published"] == ROWS
    outcome = command(capsys, "verify", tmp_path / "release")
    assert outcome.code == 0, outcome.err


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
