"""One run over the same people on the local disk and on HDFS, one after the other.

    python benchmarks/on_hdfs.py --rows 10000000

A NameNode and two DataNodes start on the loopback interface (``make systems`` fetches what they
need) and keep two copies of every block. Printed are the seconds of both runs and of their stages;
the program ends with 1 unless both published the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from standalone import GENERATE, REPOSITORY, SCRIPTS, spark_environment


def main() -> None:
    """Generate people, anonymize them twice, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--memory", default="4g", help="of the driver, which does all the work")
    arguments = parser.parse_args()
    sys.path.append(str(REPOSITORY / "tests" / "support"))
    from hadoop import Hdfs

    with tempfile.TemporaryDirectory(prefix="anonspark-hdfs-") as name:
        folder = Path(name)
        people = folder / "people"
        generate = [*GENERATE, "--rows", str(arguments.rows)]
        subprocess.run([*generate, "--out", str(people)], check=True, capture_output=True)
        hdfs = Hdfs(folder / "hadoop")
        try:
            hdfs.start()
            hdfs.shell("-put", str(people), "/people").check_returncode()
            fingerprints = set()
            for place in (str(folder), hdfs.address):
                fingerprints.add(measure(folder, place, hdfs, arguments))
            left = hdfs.shell("-ls", "-C", "/").stdout.split()
            print(f"left on HDFS: {' '.join(left)}")
        finally:
            hdfs.stop()
    sys.exit(len(fingerprints) > 1)


def measure(folder: Path, place: str, hdfs: Any, arguments: argparse.Namespace) -> str:
    """Run once, print seconds and stages, and return the fingerprint of the release."""
    document: dict[str, Any] = yaml.safe_load(
        (REPOSITORY / "conf" / "people.yaml").read_text(encoding="utf-8")
    )
    document |= {
        "input": {"path": f"{place}/people"},
        "output": {"path": f"{place}/release"},
        "model": {"name": "smondrian"},
    }
    document["privacy"]["k"] = arguments.k
    configuration = folder / "configuration.yaml"
    configuration.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    start = time.monotonic()
    done = subprocess.run(
        [
            *(SCRIPTS / "spark-submit", "--master", "local[2]"),
            *("--driver-memory", arguments.memory, "--conf", "spark.ui.enabled=false"),
            *(REPOSITORY / "jobs" / "anonymize.py", configuration),
        ],
        # On HDFS with its settings, whose file system a path without a scheme would be of.
        env=spark_environment()
        | {"PYTHONPATH": str(REPOSITORY)}
        | ({"HADOOP_CONF_DIR": str(hdfs.configuration)} if place == hdfs.address else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{place}: {done.stderr[-5000:]}")
    path = f"{place}/release/manifest.json"
    local = Path(path).exists()
    text = Path(path).read_text(encoding="utf-8") if local else hdfs.shell("-cat", path).stdout
    manifest = json.loads(text)
    print(f"{place}: {seconds:.1f} s", flush=True)
    for stage, took in manifest["seconds"].items():
        print(f"    {stage}: {took:.1f} s", flush=True)
    fingerprint: str = manifest["fingerprints"]["output"]
    return fingerprint


if __name__ == "__main__":
    main()
