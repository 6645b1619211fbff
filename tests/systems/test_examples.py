"""The examples of dbt and Airflow, each by the real program in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from commands import Cli
from helpers import document_file, published, write_table
from places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
ENVIRONMENTS = Path(os.environ.get("ANONSPARK_EXAMPLES") or REPOSITORY / "build" / "examples")
# What anonspark needs without Spark; the code is that of the repository.
NEEDED = ("jinja2", "narwhals", "numpy", "pyarrow", "pydantic", "pyyaml", "rich", "typer")
SEED = "-4421968573520014293"

PATIENTS = pa.table(
    {
        "name": [f"patient {n}" for n in range(2000)],
        "age": [20 + n * 7 % 50 for n in range(2000)],
        "sex": ["fm"[n % 2] for n in range(2000)],
        "city": ["ABC"[n * n % 3] for n in range(2000)],
        "illness": [("flu", "cold", "none", "asthma")[n // 7 % 4] for n in range(2000)],
    }
)
ATTRIBUTES = {**dict.fromkeys(("age", "sex", "city"), "quasi_identifier"), "illness": "sensitive"}

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]


def program(example: str, name: str) -> Path:
    """Return a program of an example's environment, which is made if it is not there."""
    folder = ENVIRONMENTS / example
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [folder / "bin" / "pip", "install", "--quiet", "--only-binary", ":all:"]
        listed = EXAMPLES / example / "requirements.txt"
        subprocess.run([*install, "--requirement", listed, *NEEDED], check=True)
        (folder / "ready").touch()
    return folder / "bin" / name


def environment(**variables: object) -> dict[str, str]:
    own = {name: str(value) for name, value in variables.items()}
    return os.environ | {"PYTHONPATH": str(REPOSITORY), "ANONSPARK_SEED": SEED} | own


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    write_table(tmp_path / "patients.parquet", PATIENTS)
    return tmp_path / "patients.parquet"


def configure(folder: Path, **sections: object) -> Path:
    """Write the configuration that the model of dbt has."""
    document = {
        "input": {"path": str(folder / "patients.parquet")},
        "attributes": ATTRIBUTES,
        "privacy": {"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
        "output": {"path": str(folder / "release")},
    }
    return document_file(folder, document | sections, "people.yaml")


def build(folder: Path, patients: Path) -> subprocess.CompletedProcess[str]:
    """Let dbt build the example."""
    project = EXAMPLES / "dbt"
    words = ["build", "--project-dir", project, "--profiles-dir", project]
    words += ["--target-path", folder / "target", "--log-path", folder / "logs"]
    return subprocess.run(
        [program("dbt", "dbt"), *words, "--vars", json.dumps({"patients": str(patients)})],
        env=environment(CLINIC=folder / "clinic.duckdb", DO_NOT_TRACK=1),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_model_of_dbt_publishes_what_a_run_does(
    patients: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = build(tmp_path, patients)
    assert done.returncode == 0, done.stdout[-3000:]
    monkeypatch.setenv("ANONSPARK_SEED", SEED)
    cli.ends(0, "run", configure(tmp_path))
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as warehouse:
        found = warehouse.sql("FROM patients_published").to_arrow_table()
    expected = published(tmp_path / "release")
    assert found.column_names == list(ATTRIBUTES)
    assert found.to_pylist() == expected.to_pylist()
    # A part of the records came: nothing replaces the table of the night before.
    write_table(patients, PATIENTS.slice(0, 500))
    refused = build(tmp_path, patients)
    assert refused.returncode == 1
    assert "gates.rows_published" in refused.stdout
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as warehouse:
        assert warehouse.sql("FROM patients_published").to_arrow_table() == found


@pytest.mark.night
def test_a_night_of_airflow(patients: Path, tmp_path: Path) -> None:
    assert patients.exists()
    configure(tmp_path, gates={"rows_published": {"min": 1000}})
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "anonspark").write_text(f'#!/bin/sh\nexec {sys.executable} -m anonspark "$@"\n')
    (folder / "anonspark").chmod(0o755)
    airflow = program("airflow", "airflow")
    variables = environment(
        AIRFLOW_HOME=tmp_path / "airflow",
        AIRFLOW__CORE__DAGS_FOLDER=EXAMPLES / "airflow",
        AIRFLOW__CORE__LOAD_EXAMPLES=False,
        AIRFLOW_VAR_ANONSPARK_PEOPLE=tmp_path / "people.yaml",
        AIRFLOW_VAR_ANONSPARK_RELEASES=tmp_path / "releases",
        PATH=f"{folder}:{os.environ['PATH']}",
    )

    def call(*words: str) -> str:
        done = subprocess.run(
            [airflow, *words], env=variables, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    call("db", "migrate")
    said = call("dags", "test", "anonspark_local", "2026-11-20")
    release = tmp_path / "releases" / "2026-11-20"
    assert (release / "manifest.json").exists(), said[-3000:]
    manifest = json.loads((release / "manifest.json").read_text())
    assert (manifest["run_id"], manifest["published"]["rows"]) == ("people-2026-11-20", 2000)
    write_table(patients, PATIENTS.slice(0, 500))
    said = call("dags", "test", "anonspark_local", "2026-11-21")
    assert "anonspark ended with exit code 4. Nothing was published" in said, said[-3000:]
    assert not (tmp_path / "releases" / "2026-11-21").exists()
