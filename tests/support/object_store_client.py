"""What tests do with an object store, in a process of its own: its packages are Spark's there.

``python object_store_client.py FOLDER ADDRESS PEOPLE PORT SERVER`` writes ``FOLDER/outcomes.json``;
the ports are those of the proxy that it starts and of the server behind that.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from golden_run import FINGERPRINTS, SECTIONS
from pyspark.sql import SparkSession
from unreliable_proxy import UnreliableProxy

from anonspark.cli.application import main
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import DataError
from anonspark.layers.publish import staging
from anonspark.pipeline import writing
from anonspark.release.manifest import MANIFEST
from anonspark.verification.audit import audit_release


def command(*arguments: str) -> dict[str, Any]:
    """Run a command of anonspark; return its exit code and what it said."""
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(list(arguments))
    return {"code": code, "said": said.getvalue()}


def claims(files: FileSystem, root: str) -> list[str]:
    """Create one file from several threads at the same moment."""
    together, ended = threading.Barrier(4), []

    def create() -> None:
        together.wait()
        try:
            files.create_text(f"{root}/claim", "mine")
            ended.append("created")
        except FileExistsError:
            ended.append("refused")

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files.delete(f"{root}/claim")
    return sorted(ended)


def asking_first(release: str, outcomes: dict[str, Any]) -> Callable[..., None]:
    """Return a rename that verifies the release as a reader would, before its manifest comes."""
    works = FileSystem.rename

    def rename(files: FileSystem, source: str, target: str) -> None:
        if target == f"{release}/{MANIFEST}":
            outcomes["before"] = sorted(entry.path for entry in files.tree(release))
            try:
                audit_release(SparkEngine(files.spark), release).require()
            except DataError as error:
                outcomes["refused"] = str(error)
        works(files, source, target)

    return rename


def use(folder: Path, root: str, people: str, proxy: UnreliableProxy) -> dict[str, Any]:
    """Do all of it; return the outcomes by name."""
    spark = SparkSession.builder.getOrCreate()
    spark.read.parquet(people).repartition(7).write.parquet(f"{root}/people")
    files, release = FileSystem(spark), f"{root}/release"
    document = {
        **SECTIONS,
        "input": {"path": f"{root}/people"},
        "output": {"path": release},
        "metrics": {"append_to": f"{root}/history"},
    }
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    outcomes: dict[str, Any] = {"claims": claims(files, root)}
    works = writing.write_records

    def lose_the_store(*given: Any, **named: Any) -> Any:
        proxy.dead = True
        return works(*given, **named)

    closes = staging._close

    def find_the_store(*given: Any, **named: Any) -> None:
        proxy.dead = False
        closes(*given, **named)

    proxy.refuse_every = 29
    with (
        patch.object(writing, "write_records", lose_the_store),
        patch.object(staging, "_close", find_the_store),
    ):
        outcomes["lost"] = command("run", str(path), "--resume", "--run-id", "night")
    outcomes["requests refused"] = proxy.refused
    outcomes["manifest of the lost run"] = files.exists(f"{release}/{MANIFEST}")
    # Nothing is there, so the release is written in its place.
    with patch.object(FileSystem, "rename", asking_first(release, outcomes)):
        outcomes["resumed"] = command("run", str(path), "--resume")
    outcomes["verify"] = command("verify", release, "--original", f"{root}/people")
    outcomes["report"] = command("report", release, "--out", str(folder / "report.html"))
    outcomes["names"] = [one.rpartition("/")[2] for one in files.children(root)]
    if files.exists(f"{release}/{MANIFEST}"):
        outcomes["manifest"] = files.read_text(f"{release}/{MANIFEST}")
        fingerprints = json.loads(outcomes["manifest"])["fingerprints"]
        outcomes["fingerprints"] = {name: fingerprints[name] for name in FINGERPRINTS}
    return outcomes


if __name__ == "__main__":
    _, given, address, table, port, server = sys.argv
    before = UnreliableProxy(int(port), int(server))
    (Path(given) / "outcomes.json").write_text(json.dumps(use(Path(given), address, table, before)))
