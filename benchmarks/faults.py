"""Run a job again and again on a cluster whose executors are killed at random, and compare.

    python benchmarks/faults.py --runs 20 --rows 200000
    python benchmarks/faults.py --runs 20 --rows 200000 --yarn

A master and two workers start on the loopback interface; with ``--yarn`` a ResourceManager and a
NodeManager, and an HDFS for input and releases (``make systems`` fetches what they need). Each run
is a ``spark-submit`` of ``jobs/anonymize.py`` over the same generated people; meanwhile executors
are killed with SIGKILL at random moments. Printed are, for each run, the seconds, the executors
killed and the fingerprint of what was published; the program ends with 1 unless all are equal, and
equal to the fingerprint of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from standalone import GENERATE, REPOSITORY, Cluster, Process

MODEL = {"name": "su-mondrian", "rho": 5}
JOB = REPOSITORY / "jobs" / "anonymize.py"


class OnStandalone:
    """Runs on a standalone cluster, which reads and writes the local disk.

    Parameters
    ----------
    folder : Path
    people : Path
        The table; copied to where runs read it.
    """

    def __init__(self, folder: Path, people: Path) -> None:
        self.cluster = Cluster(folder)
        for _ in range(2):
            self.cluster.add_worker()
        self.cluster.wait_for_workers()
        self.people = str(people)

    def release(self, own: Path) -> str:
        """Return where a run publishes."""
        return str(own / "release")

    def submit(self, own: Path, configuration: Path) -> Process:
        """Start a run."""
        return self.cluster.submit(own, JOB, configuration)

    def manifest(self, own: Path) -> str:
        """Return the manifest of a release."""
        return (own / "release" / "manifest.json").read_text(encoding="utf-8")

    def stop(self) -> None:
        """End everything."""
        self.cluster.stop()


class OnYarn:
    """The same on YARN, in client mode, with input and releases on HDFS."""

    def __init__(self, folder: Path, people: Path) -> None:
        sys.path.append(str(REPOSITORY / "tests" / "support"))
        from hadoop import Hdfs
        from yarn import Yarn

        self.hdfs = Hdfs(folder / "hadoop")
        self.cluster = Yarn(self.hdfs)
        self.hdfs.start()
        self.cluster.start()
        self.people = f"{self.hdfs.address}/people"
        self.hdfs.shell("-put", str(people), "/people").check_returncode()

    def release(self, own: Path) -> str:
        """Return where a run publishes."""
        return f"{self.hdfs.address}/{own.name}/release"

    def submit(self, own: Path, configuration: Path) -> Process:
        """Start a run; executors that were killed are replaced without end."""
        process: Process = self.cluster.submit(
            own,
            "client",
            JOB,
            configuration,
            settings={"spark.executor.maxNumFailures": "1000", "spark.task.maxFailures": "100"},
            environment={"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)},
        )
        return process

    def manifest(self, own: Path) -> str:
        """Return the manifest of a release."""
        return str(self.hdfs.shell("-cat", f"{self.release(own)}/manifest.json").stdout)

    def stop(self) -> None:
        """End everything."""
        self.hdfs.stop()


def main() -> None:
    """Generate people, disturb the runs and print what they published."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--task-rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--yarn", action="store_true", help="on YARN, with HDFS")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)  # noqa: S311 - nothing secret
    with tempfile.TemporaryDirectory(prefix="anonspark-faults-") as name:
        folder = Path(name)
        people = folder / "people"
        generate = [*GENERATE, "--rows", str(arguments.rows)]
        subprocess.run([*generate, "--out", str(people)], check=True, capture_output=True)
        place = (OnYarn if arguments.yarn else OnStandalone)(folder, people)
        try:
            fingerprints = []
            for run in range(arguments.runs + 1):
                own = folder / f"run-{run}"
                own.mkdir()
                configuration = write_configuration(
                    place.people, own, place.release(own), arguments.task_rows
                )
                start = time.monotonic()
                driver = place.submit(own, configuration)
                killed = disturb(place.cluster, driver, moments) if run else 0
                code = driver.wait()
                if code:
                    sys.exit(f"run {run} ended with {code}: {driver.said}")
                manifest = json.loads(place.manifest(own))
                fingerprints.append(manifest["fingerprints"]["output"])
                print(
                    f"run {run:2}: {time.monotonic() - start:5.1f} s, {killed} executors killed, "
                    f"{fingerprints[-1]}",
                    flush=True,
                )
        finally:
            place.stop()
    different = len(set(fingerprints))
    print(f"{len(fingerprints)} releases, {different} different fingerprints")
    sys.exit(different > 1)


def disturb(cluster: Any, driver: Process, moments: random.Random) -> int:
    """Kill executors of a job at random moments until it ends; return how many."""
    driver.wait_for(": prepare")
    killed = 0
    while True:
        pause = time.monotonic() + moments.uniform(4, 24)
        while time.monotonic() < pause:
            if driver.handle.poll() is not None:
                return killed
            time.sleep(0.1)
        if cluster.executors():
            cluster.kill_executor()
            killed += 1


def write_configuration(people: str, folder: Path, release: str, task_rows: int) -> Path:
    """Write the configuration of a run that publishes in the folder."""
    document = yaml.safe_load((REPOSITORY / "conf" / "people.yaml").read_text(encoding="utf-8"))
    document["input"] = {"path": people}
    document["output"] = {"path": release}
    document["model"] = MODEL
    document["execution"] = {"task_rows": task_rows}
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
