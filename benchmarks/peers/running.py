"""Running a tool, or one of our models, over a table: whole processes, with a time limit."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import yaml
from measuring import Watched, watched
from standalone import SCRIPTS, spark_environment
from tables import TABLES

from peers.environments import python_of
from peers.tool import Job, Tool

__all__ = ["TABLE", "columns", "make_table", "run_model", "run_tool", "why"]

BENCHMARKS = Path(__file__).resolve().parents[1]
TABLE = "adult"
CSV_OPTIONS = {"header": "true", "inferSchema": "true"}


def columns() -> tuple[list[str], str]:
    """Return the quasi-identifiers and the sensitive column of the table."""
    roles = TABLES[TABLE].attributes
    names = [name for name, role in roles.items() if role == "quasi_identifier"]
    return names, next(name for name, role in roles.items() if role == "sensitive")


def make_table(directory: Path, rows: int) -> Path:
    """Write the table as one CSV file, unless it is there; return where."""
    path = directory / f"{TABLE}-{rows}.csv"
    if not path.is_file():
        parts = path.with_suffix(".parts")
        if not (parts / "_SUCCESS").exists():
            script = str(BENCHMARKS / "tables.py")
            command = [sys.executable, script, TABLE, str(rows), str(parts), "--csv"]
            subprocess.run(command, check=True)
        (part,) = parts.glob("part-*.csv")
        part.rename(path)
    return path


def run_tool(tool: Tool, job: Job, folder: Path, limit: float) -> Watched:
    """Run a tool in its environment; what it says goes to ``run.log`` of the folder."""
    python = str(python_of(tool))
    environment = spark_environment() | {
        "PYTHONPATH": str(BENCHMARKS),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    with (folder / "run.log").open("w", encoding="utf-8") as log:
        return watched(
            [python, "-m", tool.module, job.as_argument()],
            limit=limit,
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def run_model(
    settings: dict[str, object], table: Path, k: int, folder: Path, limit: float
) -> Watched:
    """Run one of our models through the command line, into ``release`` of the folder.

    By the engine that its users get: for such tables the one without Java.
    """
    document = {
        "input": {"path": str(table), "format": "csv", "options": CSV_OPTIONS},
        "attributes": dict(TABLES[TABLE].attributes),
        "privacy": {"k": k},
        "model": settings,
        "output": {"path": str(folder / "release"), "mode": "overwrite"},
    }
    configuration = folder / "run.yaml"
    configuration.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    command = [str(SCRIPTS / "anonspark"), "run", str(configuration)]
    with (folder / "run.log").open("w", encoding="utf-8") as log:
        return watched(
            [*command, "--quiet"], limit=limit, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )


def why(exit_code: int, log: str) -> str:
    """Tell why a tool ended, without what its message may hold of the data.

    Parameters
    ----------
    exit_code : int
        Negative where a signal ended it.
    log : str
        What it wrote.
    """
    if exit_code < 0:
        return f"ended by {signal.Signals(-exit_code).name}"
    # A traceback ends with the error's name and its message.
    named = re.findall(r"^([\w.]*(?:Error|Exception|Interrupt|Exit))(?::|$)", log, re.M)
    return named[-1].rpartition(".")[2] if named else f"exit code {exit_code}"
