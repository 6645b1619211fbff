"""Check the schedules and docker-compose.yml against the real things: `make check-schedules`.

Kubernetes' own schemas, the Spark operator's models, the schema of Compose and Airflow come from
PyPI (check-requirements.txt); systemd-analyze and shellcheck have to be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from kubeflow_spark_api.models import (
    SparkV1beta2ScheduledSparkApplication,
    SparkV1beta2SparkApplication,
)

SCHEDULES = Path(__file__).resolve().parent
REPOSITORY = SCHEDULES.parent
OPERATOR_KINDS = {
    "SparkApplication": SparkV1beta2SparkApplication,
    "ScheduledSparkApplication": SparkV1beta2ScheduledSparkApplication,
}


def run(*command: str | Path, **environment: str) -> str:
    """Run a command; what it says, or the end of everything if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def program(name: str, package: str) -> str:
    """Find a program."""
    found = shutil.which(name)
    if found is None:
        sys.exit(f"{name} is not installed. What to do: apt install {package}")
    return found


def unknown_keys(given: Any, understood: Any, path: str = "") -> list[str]:
    """List the keys that a model has dropped."""
    if isinstance(given, dict) and isinstance(understood, dict):
        return [
            name
            for key, value in given.items()
            for name in (
                unknown_keys(value, understood[key], f"{path}.{key}")
                if key in understood
                else [f"{path}.{key}"]
            )
        ]
    if isinstance(given, list) and isinstance(understood, list):
        pairs = enumerate(zip(given, understood, strict=True))
        return [name for i, (a, b) in pairs for name in unknown_keys(a, b, f"{path}[{i}]")]
    return []


def check_manifest(document: dict[str, Any]) -> str:
    """Check one Kubernetes object; return what it was checked against."""
    model = OPERATOR_KINDS.get(document["kind"])
    if model is None:
        version = kubernetes_validate.latest_version()
        kubernetes_validate.validate(document, version, strict=True)
        return f"Kubernetes {version}"
    understood = model.model_validate(document).model_dump(by_alias=True, exclude_none=True)
    if unknown := unknown_keys(document, understood):
        sys.exit(f"{document['kind']}: the operator does not know {', '.join(unknown)}")
    return "the Kubeflow Spark operator's models"


def check_manifests() -> None:
    """Check all Kubernetes manifests, and the pod that one of them carries as a text."""
    for path in sorted((SCHEDULES / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            print(f"{path.name}: {document['kind']} fits {check_manifest(document)}")
            if document["kind"] == "ConfigMap":
                pod = yaml.safe_load(document["data"]["executor.yaml"])
                print(f"{path.name}: pod template fits {check_manifest(pod)}")


def check_units() -> None:
    """Check the systemd units, with a program in place of the script that is installed later."""
    analyze = program("systemd-analyze", "systemd")
    with tempfile.TemporaryDirectory() as folder:
        for path in (SCHEDULES / "systemd").iterdir():
            text = path.read_text(encoding="utf-8")
            script = "/opt/anonspark/schedules/cron/anonspark-nightly"
            Path(folder, path.name).write_text(text.replace(script, "/bin/true"), encoding="utf-8")
        unit = Path(folder, "anonspark@.service")
        said = run(analyze, "verify", "--man=no", unit, Path(folder, "anonspark@.timer"))
        if said.strip():
            sys.exit(said)
        print(run(analyze, "security", "--offline=true", unit).strip().splitlines()[-1])


def check_dag(airflow: Path) -> None:
    """Let Airflow load the DAG."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "AIRFLOW_HOME": folder,
            "AIRFLOW__CORE__DAGS_FOLDER": str(SCHEDULES / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        run(airflow, "db", "migrate", **environment)
        listed = run(airflow, "dags", "list", "--local", "--output", "json", **environment)
        if '"anonspark_people"' not in listed:
            errors = run(airflow, "dags", "list-import-errors", "--local", **environment)
            sys.exit(f"Airflow cannot import the DAG:\n{errors}")
        version = run(airflow, "version", **environment).strip().splitlines()[-1]
        print(f"Airflow {version} loads the DAG anonspark_people")


def main() -> None:
    """Check everything."""
    scripts = [SCHEDULES / "cron" / "anonspark-nightly", *(REPOSITORY / "docker").rglob("*.sh")]
    run(program("shellcheck", "shellcheck"), *scripts)
    print(f"shellcheck: {', '.join(script.name for script in scripts)}")
    check_manifests()
    compose = REPOSITORY / "docker-compose.yml"
    programs = Path(sys.executable).parent
    run(programs / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)
    print("docker-compose.yml fits the Compose specification")
    check_units()
    check_dag(programs / "airflow")


if __name__ == "__main__":
    main()
