"""Commands that spark-submit starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import configuration_file, contents, summary, write_table
from places import REPOSITORY

from anonspark.engine.spark.java import find_java


@pytest.mark.system
def test_spark_submit(quick_start: dict[str, str], tmp_path: Path) -> None:
    """The session that spark-submit makes is taken, and exit codes reach the shell."""
    random = np.random.default_rng(1)
    table = {"age": random.integers(20, 70, 200), "disease": ["flu", "cold"] * 100}
    write_table(tmp_path / "input.parquet", table)
    age = {"role": "quasi_identifier", "grid": 1}
    attributes = {"age": age, "disease": "sensitive"}
    configuration = configuration_file(tmp_path, attributes=attributes)
    programs = Path(sys.executable).parent
    environment = quick_start | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Java writes both streams of Python to one, so a warning would stand before the JSON.
        "ANONSPARK_SEED": str(2**60),
    }
    java = find_java().home
    if java is not None:
        environment["JAVA_HOME"] = str(java)

    def submit(*arguments: object) -> subprocess.CompletedProcess[str]:
        options = ["--master", "local[2]", "--driver-memory", "1g", "--name", "submitted"]
        script = REPOSITORY / "jobs" / "anonymize.py"
        return subprocess.run(
            [programs / "spark-submit", *options, script, *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=500,
        )

    # Ranges without a grid and a sensitive attribute without a criterion are warned of.
    settings = ["--set", "privacy.k=7", "--set", "privacy.l_diversity=2"]
    done = submit(configuration, *settings, "--json", "--no-progress")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["k"] == 7
    assert summary(tmp_path / "release")["published_min_class_size"] >= 7

    before = contents(tmp_path)
    gone = f"{tmp_path}/gone.parquet"
    done = submit(configuration, "--set", f"input.path={gone}", "--set", "output.mode=overwrite")
    assert done.returncode == 3, done.stderr
    # spark-submit sends both streams of a Python program to its standard output.
    assert f"error: input.path: {gone} is not there" in done.stdout + done.stderr
    assert contents(tmp_path) == before
