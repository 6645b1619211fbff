"""What a block that cannot be cut costs: one task takes it, however large it is.

    .venv/bin/python benchmarks/large_blocks.py                    # 2,000,000 rows, both engines
    .venv/bin/python benchmarks/large_blocks.py --engines local --rows 500000

Prints the table of docs/performance.md. Each run is a process of its own. Its records are equal in
three quasi-identifiers, or a criterion allows no cut, or, to compare with, all can be cut.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import DRIVER, JVM, WORKER, watched

QUASI_IDENTIFIERS = ("age", "sex", "town")
# The share of the ill grows with the age, so that every cut makes two parts that differ.
CLOSE = {"t_closeness": {"attribute": "ill", "t": 0.001}}
PUBLISHED = {"name": "su-mondrian", "published": "canbay-2019"}
RUNS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("all differ", "smondrian", {"name": "smondrian"}, {}),
    ("all differ", "su-mondrian", {"name": "su-mondrian", "refine": 0}, {}),
    ("equal", "smondrian", {"name": "smondrian"}, {}),
    ("equal", "su-mondrian", {"name": "su-mondrian", "refine": 0}, {}),
    ("equal", "su-mondrian, published: canbay-2019", PUBLISHED, {}),
    ("all differ", "smondrian, t = 0.001", {"name": "smondrian"}, CLOSE),
)


def write(path: Path, rows: int, records: str) -> None:
    """Write a table whose records are equal in all quasi-identifiers, or differ in age and town."""
    generator = np.random.default_rng(1)
    age = generator.integers(18, 99, rows)
    # By town, too: a cut by either makes two parts that differ.
    town = 100 * age + generator.integers(0, 100, rows)
    ill = generator.random(rows) < age / 200
    if records == "equal":
        age[:], town[:] = 40, 1
    columns = {
        "age": age,
        "sex": pa.array(["female"] * rows).dictionary_encode(),
        "town": town,
        "ill": ill.astype(str),
        "visit": generator.integers(0, 1_000, rows),
    }
    pq.write_table(pa.table(columns), path, row_group_size=rows // 8)


def figures(
    engine: str, rows: int, records: str, model: dict[str, Any], privacy: dict[str, Any]
) -> dict[str, Any]:
    """Run once; return MiB of the processes, and what the manifest says of the largest block."""
    with tempfile.TemporaryDirectory(prefix="anonspark-blocks-") as folder:
        place = Path(folder)
        write(place / "people.parquet", rows, records)
        configuration = {
            "input": {"path": str(place / "people.parquet")},
            "attributes": dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
            | {"ill": "sensitive", "visit": "insensitive"},
            "privacy": {"k": 10, **privacy},
            "model": model,
            "output": {"path": str(place / "release")},
            "execution": {"engine": engine, "seed": 2**60 + 1},
        }
        (place / "people.yaml").write_text(json.dumps(configuration))
        command = [sys.executable, "-m", "anonspark", "run", str(place / "people.yaml"), "--quiet"]
        if engine == "spark":
            command += ["--master", "local[2]"]
        done = watched(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)
        if done.exit_code:
            sys.exit(f"{engine}, {records}, {model}: the run ended with {done.exit_code}")
        manifest = json.loads((place / "release" / "manifest.json").read_text())
    blocks = [
        one["figures"]["records"] for one in manifest["warnings"] if one["code"] == "large_block"
    ]
    return {"peaks": done.peaks, "block": blocks}


def table(rows: int, engines: list[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| engine | records | model | largest block | MiB of the process | MiB of the largest worker | MiB of the JVM |"  # noqa: E501
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    for engine in engines:
        for records, name, model, privacy in RUNS:
            found = figures(engine, rows, records, model, privacy)
            block = f"{found['block'][0]:,}" if found["block"] else "usual"
            memory = [f"{found['peaks'][kind]:,.0f}" if kind in found["peaks"] else "-"
                      for kind in (DRIVER, WORKER, JVM)]  # fmt: skip
            cells = [engine, records, name, block, *memory]
            yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--engines", nargs="+", default=["local", "spark"])
    options = parser.parse_args()
    for line in table(options.rows, options.engines):
        print(line, flush=True)


if __name__ == "__main__":
    main()
