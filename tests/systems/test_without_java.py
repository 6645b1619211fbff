"""The engine without Java as its users meet it: processes of their own, and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers import configuration_file, write_table
from places import REPOSITORY

# What is loaded at the end tells what a command needs.
COMMANDS = """
import json, sys
from anonspark.cli.application import main
codes = [main(arguments) for arguments in json.loads(sys.argv[1])]
loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j"})
print(json.dumps([codes, loaded]))
"""


def environment() -> dict[str, str]:
    """Return an environment in which no Spark is given and no Java is found."""
    given = ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
    kept = {name: value for name, value in os.environ.items() if name not in given}
    return kept | {"PATH": "/usr/bin:/bin" if not Path("/usr/bin/java").exists() else "/nowhere"}


def run_script(script: str, arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script in such an environment, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(arguments)],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_commands_need_no_spark(tmp_path: Path) -> None:
    release = str(tmp_path / "release")
    set_output = ["--set", f"output.path={release}"]
    people = str(REPOSITORY / "data" / "people.csv")
    commands = [
        ["check", "conf/people.yaml", *set_output],
        ["check", "--plan", "conf/people.yaml", *set_output],
        ["run", "conf/people.yaml", *set_output, "--report"],
        ["verify", release, "--original", people],
        ["evaluate", release, "--original", people],
        ["report", release, "--original", people, "--out", str(tmp_path / "report.html")],
        ["clean", "conf/people.yaml", *set_output],
    ]
    done = run_script(COMMANDS, commands)
    codes, loaded = json.loads(done.stdout.splitlines()[-1])
    assert codes == [0] * len(commands), done.stderr
    assert loaded == []
    assert "Engine: local, because no Spark is given" in done.stdout
    assert "</html>" in (tmp_path / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release", "report.html"]


# Each takes as long to load as a small table takes to be anonymized, or brings what is not needed.
SLOW = {"pandas", "numba", "llvmlite", "pyspark", "sklearn", "http", "asyncio", "doctest"}

# As the script of the package does it.
PROCESS = """
import json, sys
from anonspark.cli.application import run_and_exit
sys.argv = ["anonspark", *json.loads(sys.argv[1])]
try:
    run_and_exit()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_a_small_table_loads_nothing_slow(tmp_path: Path) -> None:
    output = f"output.path={tmp_path / 'release'}"
    command = ["run", "conf/people.yaml", "--set", output, "--set", "execution.engine=local"]
    done = run_script(PROCESS, command)
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert sorted(SLOW.intersection(loaded)) == []


def test_pandas_is_there_for_other_commands_of_a_process(tmp_path: Path) -> None:
    command = ["run", "conf/people.yaml", "--set", f"output.path={tmp_path / 'release'}"]
    script = f"{COMMANDS}\nimport pandas, pyarrow\nprint(pyarrow.array(pandas.Series([1])).type)"
    done = run_script(script, [command])
    assert done.stdout.splitlines()[-1] == "int64"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_that_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    random = np.random.default_rng(0)
    rows = 300_000
    table = pa.table({name: random.integers(0, 10**6, rows) for name in ("a", "b", "c", "d")})
    write_table(tmp_path / "input.parquet", table)
    configuration = configuration_file(
        tmp_path,
        attributes=dict.fromkeys(table.column_names, "quasi_identifier"),
        model={"name": "microaggregation"},
    )
    command = [Path(sys.executable).with_name("anonspark"), "run", configuration]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while not list(tmp_path.glob(".release*/records-1/snapshot/**/*.arrow")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 128 + number, told
    assert "No release was published" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "configuration.yaml",
        "input.parquet",
    ]
