"""What a private selection takes, beside the identity job and a pass that only hashes.

    .venv/bin/python benchmarks/private_selection.py --rows 10000000 --candidates 50

Makes a table of a person's number, candidates of many kinds (texts of 2 to 40 values, whole numbers
and floats that go to bins, booleans) and a target. The identity job (read, shuffle, write) and
``anonspark select`` are processes of their own, on the same Spark, and on the local engine. The
hashing pass reads the same columns as the counting pass does, and both are in one process. Prints
Markdown, with the bars of the specification.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from measuring import IDENTITY, machine, measured

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.request import open_query
from anonspark.sharing.selection.settings import load_selection

ROWS_PER_FILE = 500_000
MOST_OF_IDENTITY = 1.0
MOST_OF_HASHING = 3.0
TARGET = "ill"


def kind_of(number: int) -> str:
    """Return what the values of a candidate are: of ten four texts, two of each other kind."""
    return "tttthhffbb"[number % 10]


def column(kind: str, number: int, draw: np.random.Generator, ill: Any) -> pa.Array:
    """Draw the values of a candidate, some of which tell of the target."""
    rows, shift = len(ill), ill * (number % 5)
    if kind == "t":
        texts = pa.array([f"value {one}" for one in range(2 + number)])
        return texts.take(pa.array((draw.integers(0, 2 + number, rows) + shift) % (2 + number)))
    if kind == "h":
        return pa.array(draw.integers(0, 90, rows) + shift)
    if kind == "f":
        return pa.array(draw.gamma(2.0, 10_000.0, rows).round(2) + shift)
    return pa.array(draw.random(rows) < 0.3 + 0.1 * shift)


def domain(kind: str, number: int) -> dict[str, Any] | None:
    """Return what is declared of a candidate."""
    if kind == "t":
        return {"values": [f"value {one}" for one in range(2 + number)]}
    if kind == "h":
        return {"bins": {"from": 10, "to": 90, "width": 10}}
    return {"bins": {"from": 5_000, "to": 100_000, "width": 5_000}} if kind == "f" else None


def batches(rows: int, candidates: int) -> Iterator[pa.Table]:
    """Draw the table, a file at a time."""
    for start in range(0, rows, ROWS_PER_FILE):
        draw = np.random.default_rng([1, start])
        many = min(ROWS_PER_FILE, rows - start)
        ill = draw.integers(0, 2, many)
        columns = {"person_id": pa.array(np.arange(start, start + many))}
        for number in range(candidates):
            columns[f"a{number:02}"] = column(kind_of(number), number, draw, ill)
        yield pa.table({**columns, TARGET: pa.array(["no", "yes"]).take(pa.array(ill))})


def write_configuration(folder: Path, candidates: int) -> Path:
    """Write what ``anonspark select`` is asked for."""
    names = [f"a{number:02}" for number in range(candidates)]
    domains = {name: domain(kind_of(number), number) for number, name in enumerate(names)}
    document = {
        "input": {"path": str(folder / "table")},
        "attributes": {
            "person_id": "identifier",
            **dict.fromkeys(names, "quasi_identifier"),
            TARGET: "sensitive",
        },
        "selection": {
            "target": TARGET,
            "count": 7,
            "epsilon": "0.5",
            "domains": {name: one for name, one in domains.items() if one}
            | {TARGET: {"values": ["no", "yes"]}},
            "output": str(folder / "selection"),
        },
        "ledger": {"path": str(folder / "ledger"), "dataset": "people", "limit": "100"},
    }
    path = folder / "select.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def seconds(function: Callable[[], Any]) -> float:
    """Run something and return how long it took."""
    start = time.monotonic()
    function()
    return time.monotonic() - start


def select_in_a_process(folder: Path, path: Path, words: list[str]) -> tuple[float, dict[str, Any]]:
    """Run the command, and return its seconds and what it chose."""
    shutil.rmtree(folder / "selection", ignore_errors=True)
    command = [
        str(Path(sys.executable).with_name("anonspark")),
        "select",
        str(path),
        "--json",
        "--quiet",
    ]
    took, peaks, printed = measured([*command, *words])
    return took, {"attributes": json.loads(printed)["attributes"], "peaks": peaks}


def passes(engine: Engine, path: Path) -> tuple[float, float]:
    """Return the seconds of the counting pass and of the one that hashes the same columns."""
    settings = load_selection(path)
    table, wanted = open_query(engine, settings)
    names = [*settings.candidates, TARGET]
    markers = settings.configuration.input.missing_markers

    def count() -> None:
        count_tables(table, wanted.candidates, wanted.target, markers, drop_missing=True)

    def hash_all() -> None:
        hashed = table.select(names).with_hashes({"hash": names})
        hashed.aggregate([], hashes="hash").collect()

    # Once for what is loaded and compiled.
    for function in (count, hash_all):
        function()
    return seconds(count), seconds(hash_all)


def main() -> None:
    """Make the table, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="where the table is made, and kept")
    parser.add_argument("--without-identity", action="store_true", help="the two passes only")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="select-"))
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "table"
    if not table.exists():
        table.mkdir()
        for number, one in enumerate(batches(options.rows, options.candidates)):
            pq.write_table(one, table / f"part-{number:05}.parquet")
    path = write_configuration(folder, options.candidates)
    print(f"{options.rows:,} rows, {options.candidates} candidates", *machine().values(), sep="; ")
    print("\n| what | seconds | times | of | bar |\n| --- | --- | --- | --- | --- |", flush=True)
    if not options.without_identity:
        command = [sys.executable, "-c", IDENTITY, str(table), str(folder / "identity")]
        identity, _, _ = measured([*command, options.master])
        shutil.rmtree(folder / "identity", ignore_errors=True)
        print(f"| identity job | {identity:.1f} | | | |", flush=True)
        for name, words in (("Spark", ["--master", options.master]), ("local engine", [])):
            took, found = select_in_a_process(folder, path, words)
            ratio = f"{took / identity:.2f} | the identity job | {MOST_OF_IDENTITY}"
            print(f"| select, {name} | {took:.1f} | {ratio} |", flush=True)
            print(f"{name}: {found}", file=sys.stderr)
    with open_session(options.master) as spark:
        for name, engine in (("local engine", LocalEngine()), ("Spark", SparkEngine(spark))):
            counting, hashing = passes(engine, path)
            print(f"| hashing pass, {name} | {hashing:.1f} | | | |", flush=True)
            ratio = f"{counting / hashing:.2f} | the hashing pass | {MOST_OF_HASHING}"
            print(f"| counting pass, {name} | {counting:.1f} | {ratio} |", flush=True)
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
