"""Run the DAG of schedules/airflow for three nights by a real Airflow: `make airflow-nights`.

Airflow's standalone mode (scheduler, DAG processor, API server, LocalExecutor) runs beside a Spark
master and a worker on the loopback interface. The DAG is as it is, but for its paths and the pause
between two tries.

1. The scheduler starts last night's run by itself; it publishes.
2. The table of an earlier night came with a part of its records only; a gate refuses it: one try,
   nothing published, the release of the first night untouched.
3. The whole table again; Java and Python of the driver are killed after round 1. The second try
   goes on with that round and publishes the same classes as the first night.

Afterwards no log of Airflow may hold a value of the table, nor the seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.append(str(REPOSITORY / "benchmarks"))

from standalone import (  # noqa: E402 - found by the line above
    GENERATE,
    SCRIPTS,
    Cluster,
    ClusterError,
    Process,
    command_line_of,
    descendants_of,
    free_port,
    spark_environment,
)

DAG = "anonspark_people"
ROWS = 20_000
SEED = 271828182845
PATIENCE = 900
"""Seconds for one night, on a machine that is busy with other things."""


@dataclass(frozen=True)
class Places:
    """Where the DAG of these nights looks, below one folder.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @property
    def table(self) -> Path:
        """What the source delivers every night."""
        return self.folder / "people.csv"

    @property
    def releases(self) -> Path:
        """One folder for each night."""
        return self.folder / "releases"

    @property
    def configuration(self) -> Path:
        """Of all nights."""
        return self.folder / "people.yaml"

    @property
    def home(self) -> Path:
        """Airflow's database, logs and DAGs."""
        return self.folder / "airflow"

    def prepare(self) -> None:
        """Write the configuration, and the DAG with the paths of here."""
        document = yaml.safe_load((REPOSITORY / "conf" / "people.yaml").read_text("utf-8"))
        document["input"]["path"] = str(self.table)
        document["model"] = {"name": "su-mondrian", "rho": 3, "separation": "always"}
        document["output"] = {"path": "given by the schedule"}
        document["execution"] = {"seed": SEED, "task_rows": 2_000}
        document["gates"] = {"rows_in": {"min": ROWS}}
        self.configuration.touch(mode=0o600)
        self.configuration.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        text = (REPOSITORY / "schedules" / "airflow" / f"{DAG}.py").read_text("utf-8")
        for there, here in (
            ("/opt/anonspark/jobs", str(REPOSITORY / "jobs")),
            ("/etc/anonspark/people.yaml", str(self.configuration)),
            ("/srv/releases/people", str(self.releases)),
            ("timedelta(minutes=5)", "timedelta(seconds=5)"),
        ):
            if there not in text:
                raise ClusterError(f"the DAG does not name {there}")
            text = text.replace(there, here)
        (self.home / "dags").mkdir(parents=True)
        (self.home / "dags" / f"{DAG}.py").write_text(text, "utf-8")

    def release(self, night: str) -> dict[str, Any]:
        """Return the manifest of a night."""
        path = self.releases / night / "manifest.json"
        return dict(json.loads(path.read_text("utf-8")))

    def staged(self, night: str) -> Path:
        """Return the staging directory of a night."""
        return self.releases / f".{night}.anonspark-people-{night}"


class Airflow:
    """Airflow's standalone mode, asked through its public API.

    Parameters
    ----------
    program : Path
        `airflow`, in an environment of its own.
    places : Places
    master : str
        Of Spark, for the connection that the DAG uses.
    """

    def __init__(self, program: Path, places: Places, master: str) -> None:
        port = free_port()
        self._api = f"http://127.0.0.1:{port}"
        host, _, spark_port = master.rpartition(":")
        connection = {"conn_type": "spark", "host": host, "port": int(spark_port)}
        environment = spark_environment() | {
            "PATH": f"{program.parent}:{SCRIPTS}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "AIRFLOW_HOME": str(places.home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self._api}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
        }
        log = places.home / "standalone.log"
        with log.open("wb") as output:
            handle = subprocess.Popen(
                [program, "standalone"], env=environment, stdout=output, stderr=output
            )
        self.process = Process(handle, log)
        self.version = ""
        self._token = ""

    def wait_until_ready(self) -> None:
        """Wait until the DAG is loaded."""

        def ready() -> bool:
            with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                self._token = self._ask("/auth/token")["access_token"]
                self.version = self.ask("/version")["version"]
                return any(dag["dag_id"] == DAG for dag in self.ask("/dags")["dags"])
            return False

        self._wait(ready, "Airflow does not load the DAG")

    def ask(
        self, path: str, body: dict[str, Any] | None = None, method: str | None = None
    ) -> dict[str, Any]:
        """Call the public API."""
        return self._ask(f"/api/v2{path}", body, method)

    def _ask(
        self, path: str, body: dict[str, Any] | None = None, method: str | None = None
    ) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - of the loopback interface
            self._api + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return dict(json.load(answer))

    def _wait(self, reached: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            if self.process.handle.poll() is not None or time.monotonic() > deadline:
                raise ClusterError(f"{complaint}: {self.process.said[-5000:]}")
            time.sleep(0.5)

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of the DAG."""
        return list(self.ask(f"/dags/{DAG}/dagRuns")["dag_runs"])

    def switch_on(self) -> None:
        """Let the scheduler start the run that is due; wait until it is there."""
        self.ask(f"/dags/{DAG}", {"is_paused": False}, "PATCH")
        self._wait(lambda: bool(self.runs()), "the scheduler starts no run")

    def start(self, date: datetime) -> None:
        """Let the scheduler make up for the night of a date."""
        day = date.strftime("%Y-%m-%dT00:00:00Z")
        end = date.strftime("%Y-%m-%dT23:59:59Z")

        def accepted() -> bool:
            try:
                self.ask("/backfills", {"dag_id": DAG, "from_date": day, "to_date": end})
            except urllib.error.HTTPError as error:
                # The one before is not yet noted as complete, though its run has ended.
                if error.code != HTTPStatus.CONFLICT:
                    raise
                return False
            return True

        self._wait(accepted, f"the night of {day} is not made up for")

    def wait(
        self, night: str, meanwhile: Callable[[], None] | None = None
    ) -> tuple[str, list[str]]:
        """Wait until the run of a night ends; return its state, and that of every try."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = [run for run in self.runs() if run["logical_date"].startswith(night)]
            return bool(found)

        def ended() -> bool:
            return is_there() and found[0]["state"] in {"success", "failed"}

        self._wait(is_there, f"no run of {night} was made")
        if meanwhile is not None:
            meanwhile()
        self._wait(ended, f"the run of {night} does not end")
        run = found[0]
        tries = self.ask(f"/dags/{DAG}/dagRuns/{run['dag_run_id']}/taskInstances/anonymize/tries")
        states = sorted((one["try_number"], one["state"]) for one in tries["task_instances"])
        return run["state"], [state for _, state in states]

    def stop(self) -> None:
        """End all of its processes."""
        self.process.kill()


def kill_driver(airflow: Airflow, places: Places, night: str) -> None:
    """Kill Java and Python of the driver, as the system does without memory, after round 1."""
    deadline = time.monotonic() + PATIENCE
    while not (places.staged(night) / "state" / "round-1.json").exists():
        if time.monotonic() > deadline:
            raise ClusterError(f"the run of {night} does not finish round 1")
        time.sleep(0.05)
    run_id = f"people-{night}".encode()
    driver = [
        one
        for one in descendants_of(airflow.process.handle.pid)
        if b"anonymize.py" in command_line_of(one) and run_id in command_line_of(one)
    ]
    for one in driver:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    print(f"  killed {len(driver)} processes of the driver after round 1", flush=True)


def told(places: Places) -> list[str]:
    """Return values of the table, or the seed, that logs of Airflow hold.

    Looked for are texts and dates of at least six characters; short ones and numbers stand there
    by chance.
    """
    lines = places.table.read_text("utf-8").splitlines()[1:]
    values = {value.strip('"') for line in lines for value in line.split(",")}
    values = {value for value in values if len(value) >= 6 and not re.fullmatch(r"[\d.]+", value)}
    said: set[str] = set()
    for log in places.home.rglob("*.log"):
        words = re.findall(r"[\w.-]+", log.read_text("utf-8", errors="replace"))
        said.update(words)
        said.update(map(" ".join, itertools.pairwise(words)))
    # An education, and what Spark calls a cluster's head.
    return sorted(((values - {"master"}) | {str(SEED)}) & said)


def expect(found: object, expected: object, what: str) -> None:
    """End the program where something is not as it should be."""
    if found != expected:
        raise ClusterError(f"{what}: found {found}, expected {expected}")


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of all files of a folder."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def nights(airflow: Airflow, places: Places, whole: Path) -> None:
    """Run the three nights, and compare what came of them."""
    start = time.monotonic()
    airflow.wait_until_ready()
    print(f"Airflow {airflow.version}: ready after {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    airflow.switch_on()
    last = datetime.fromisoformat(airflow.runs()[0]["logical_date"])
    first, second, third = (
        (last - timedelta(days=days)).strftime("%Y-%m-%d") for days in (0, 2, 1)
    )
    expect(airflow.wait(first), ("success", ["success"]), "night 1")
    published = places.release(first)
    print(f"night 1, {first}: published, {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    before = files_of(places.releases / first)
    lines = whole.read_text("utf-8").splitlines(keepends=True)
    places.table.write_text("".join(lines[:1001]), "utf-8")
    airflow.start(last - timedelta(days=2))
    expect(airflow.wait(second), ("failed", ["failed"]), "night 2")
    expect((places.releases / second).exists(), False, "a release of night 2")
    expect(files_of(places.releases / first), before, "the release of night 1")
    print(f"night 2, {second}: refused, one try, {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    shutil.copy(whole, places.table)
    airflow.start(last - timedelta(days=1))
    state = airflow.wait(third, lambda: kill_driver(airflow, places, third))
    expect(state, ("success", ["failed", "success"]), "night 3")
    again = places.release(third)
    expect(again["attempt"], 2, "the attempts of night 3")
    for kind in ("input", "output"):
        found, expected = (one["fingerprints"][kind] for one in (again, published))
        expect(found, expected, f"the fingerprint of night 3's {kind}")
    expect(places.staged(third).exists(), False, "what night 3 staged")
    print(f"night 3, {third}: killed, then published, {time.monotonic() - start:.0f} s", flush=True)
    expect(told(places), [], "values in Airflow's logs")


def main() -> None:
    """Start everything, run the nights and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--airflow", type=Path, required=True, help="the program airflow")
    parser.add_argument("--folder", type=Path, help="kept, with all logs; else a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anonspark-nights-") as temporary:
        places = Places((arguments.folder or Path(temporary)).resolve())
        places.prepare()
        whole = places.folder / "whole.csv"
        generated = places.folder / "generated"
        generate = [*GENERATE, "--rows", str(ROWS), "--format", "csv"]
        subprocess.run([*generate, "--out", generated], check=True, capture_output=True)
        parts = sorted(generated.glob("*.csv"))
        lines = [part.read_text("utf-8").splitlines(keepends=True) for part in parts]
        whole.write_text(lines[0][0] + "".join(line for p in lines for line in p[1:]), "utf-8")
        shutil.copy(whole, places.table)
        cluster = Cluster(places.folder, spark_environment() | {"PYTHONPATH": str(REPOSITORY)})
        try:
            # As much as the DAG asks for.
            cluster.add_worker(cores=2, memory="8g")
            cluster.wait_for_workers()
            airflow = Airflow(arguments.airflow.absolute(), places, cluster.url)
            try:
                nights(airflow, places, whole)
            finally:
                airflow.stop()
        finally:
            cluster.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")


if __name__ == "__main__":
    main()
