"""Publishing many small files on S3, one by one and 32 at a time.

    python benchmarks/on_object_store.py --files 4000 --alone 400
    python benchmarks/on_object_store.py --files 400 --alone 40 --milliseconds 20

S3Proxy serves a folder on the loopback interface (``make systems`` fetches it), behind a proxy that
keeps each request waiting for so many milliseconds, as a network would. Measured are the renames of
a release from its staging to its path, each of which copies an object and deletes the old one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession
from serial_seconds import cpu_seconds
from standalone import REPOSITORY, free_port

from anonspark.engine import files as engine_files
from anonspark.engine.spark.filesystem import FileSystem

BYTES = 20_000
THREADS = (1, 32)


def measure(
    files: FileSystem, root: str, count: int, threads: int, asked: Callable[[], int | None]
) -> dict[str, Any]:
    """Write small files, publish them by so many threads, and return what that took."""
    staged, release = f"{root}/staged-{threads}", f"{root}/release-{threads}"
    names = [f"part-{number:05d}.parquet" for number in range(count)]
    with ThreadPoolExecutor(THREADS[-1]) as pool:
        list(pool.map(lambda name: files.write_bytes(f"{staged}/{name}", bytes(BYTES)), names))
    before, start, first = sum(cpu_seconds()), time.monotonic(), asked() or 0
    with patch.object(engine_files, "_RENAMES", threads):
        files.rename_each({f"{staged}/{name}": f"{release}/{name}" for name in names})
    clock, cpu = time.monotonic() - start, sum(cpu_seconds()) - before
    requests = (asked() or 0) - first
    if len(files.files_below(release)) != count:
        sys.exit(f"{release}: not all files are there")
    measured = {"files": count, "threads": threads, "requests": requests or None}
    return measured | {"clock": round(clock, 1), "cpu": round(cpu, 1)}


def main() -> None:
    """Print a line of JSON for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--files", type=int, default=4_000)
    parser.add_argument("--alone", type=int, help="files one by one, as many by default")
    parser.add_argument("--milliseconds", type=float, default=0)
    arguments = parser.parse_args()
    sys.path.append(str(REPOSITORY / "tests" / "support"))
    from object_store import IDENTITY, SECRET, S3Proxy
    from service_jars import locked_jars
    from unreliable_proxy import UnreliableProxy

    answer = UnreliableProxy.hand_on

    def answer_late(proxy: Any, request: Any) -> None:
        """Wait, then answer as the server does."""
        time.sleep(arguments.milliseconds / 1e3)
        answer(proxy, request)

    UnreliableProxy.hand_on = answer_late

    with tempfile.TemporaryDirectory(prefix="anonspark-s3-") as folder:
        store = S3Proxy(Path(folder))
        store.start()
        try:
            port = free_port() if arguments.milliseconds else store.port
            proxy = UnreliableProxy(port, store.port) if arguments.milliseconds else None
            keys = {"fs.s3a.access.key": IDENTITY, "fs.s3a.secret.key": SECRET}
            hadoop = store.settings | keys | {"fs.s3a.endpoint": f"http://127.0.0.1:{port}"}
            classes = ":".join(map(str, locked_jars("hadoop-aws", "bundle")))
            builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            builder.config("spark.driver.extraClassPath", classes)
            for key, value in hadoop.items():
                builder.config(f"spark.hadoop.{key}", value)
            files = FileSystem(builder.getOrCreate())
            asked = partial(getattr, proxy, "requests", None)
            measure(files, f"{store.address}/warm", 50, THREADS[-1], asked)
            for threads in THREADS:
                count = arguments.alone if threads == 1 and arguments.alone else arguments.files
                line = measure(files, f"{store.address}/measured", count, threads, asked)
                print(json.dumps(line), flush=True)
        finally:
            store.stop()


if __name__ == "__main__":
    main()
