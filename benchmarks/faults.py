"""Run a job again and again on a cluster whose executors are killed at random, and compare.

    python benchmarks/faults.py --runs 20 --rows 200000

A master and two workers start on the loopback interface. Each run is a ``spark-submit`` of
``jobs/anonymize.py`` over the same generated people; meanwhile executors are killed with SIGKILL
at random moments. Printed are, for each run, the seconds, the executors killed and the fingerprint
of what was published; the program ends with 1 unless all are equal, and equal to the fingerprint of
a run that nobody disturbed.
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

import yaml
from standalone import REPOSITORY, SCRIPTS, Cluster, Process

MODEL = {"name": "su-mondrian", "rho": 5}


def main() -> None:
    """Generate people, disturb the runs and print what they published."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--task-rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)  # noqa: S311 - nothing secret
    with tempfile.TemporaryDirectory(prefix="anonspark-faults-") as name:
        folder = Path(name)
        people = folder / "people"
        generate = [str(SCRIPTS / "anonspark"), "generate", "--rows", str(arguments.rows)]
        subprocess.run([*generate, "--out", str(people)], check=True, capture_output=True)
        cluster = Cluster(folder)
        try:
            for _ in range(2):
                cluster.add_worker()
            cluster.wait_for_workers()
            fingerprints = []
            for run in range(arguments.runs + 1):
                own = folder / f"run-{run}"
                own.mkdir()
                configuration = write_configuration(people, own, arguments.task_rows)
                start = time.monotonic()
                driver = cluster.submit(own, REPOSITORY / "jobs" / "anonymize.py", configuration)
                killed = disturb(cluster, driver, moments) if run else 0
                code = driver.wait()
                if code:
                    sys.exit(f"run {run} ended with {code}: {driver.said}")
                manifest = json.loads((own / "release" / "manifest.json").read_text())
                fingerprints.append(manifest["fingerprints"]["output"])
                print(
                    f"run {run:2}: {time.monotonic() - start:5.1f} s, {killed} executors killed, "
                    f"{fingerprints[-1]}",
                    flush=True,
                )
        finally:
            cluster.stop()
    different = len(set(fingerprints))
    print(f"{len(fingerprints)} releases, {different} different fingerprints")
    sys.exit(different > 1)


def disturb(cluster: Cluster, driver: Process, moments: random.Random) -> int:
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


def write_configuration(people: Path, folder: Path, task_rows: int) -> Path:
    """Write the configuration of a run that publishes in the folder."""
    document = yaml.safe_load((REPOSITORY / "conf" / "people.yaml").read_text(encoding="utf-8"))
    document["input"] = {"path": str(people)}
    document["output"] = {"path": str(folder / "release")}
    document["model"] = MODEL
    document["execution"] = {"task_rows": task_rows}
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
