"""Tables that a process has no memory for: a release, or an error that names what to change."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import configuration_file, contents

pytestmark = [pytest.mark.system, pytest.mark.night]

# What Python, Arrow and numpy map before a table is read is about half of it.
MEBIBYTES = 2_000
ATTRIBUTES = {"age": "quasi_identifier", "zip": "quasi_identifier", "disease": "sensitive"}


def write_large(path: Path) -> None:
    """Write four times of what is left."""
    draw = np.random.default_rng(1)
    rows = 5_000_000
    diseases = pa.array(draw.choice(["a", "b", "c"], rows))
    schema = pa.schema([("age", pa.int64()), ("zip", pa.int64()), ("disease", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(30):
            ages, zips = draw.integers(18, 99, rows), draw.integers(0, 9_999, rows)
            writer.write_table(pa.table([ages, zips, diseases], schema=schema))


def write_equal(path: Path) -> None:
    rows = 5_000_000
    diseases = pa.array(np.random.default_rng(1).choice(["a", "b", "c"], rows))
    numbers = pa.array(np.full(rows, 40))
    pq.write_table(pa.table({"age": numbers, "zip": numbers, "disease": diseases}), path)


def write_long(path: Path) -> None:
    lines = [f"{20 + number % 60},{number % 50},{'abc'[number % 3]}" for number in range(200)]
    path.write_text("\n".join(["age,zip,disease", *lines, f"40,7,{'x' * 50_000_000}", ""]))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "write"),
    [("large.parquet", write_large), ("equal.parquet", write_equal), ("long.csv", write_long)],
)
def test_a_release_or_what_to_change(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    path = configuration_file(
        tmp_path,
        input={"path": str(tmp_path / name)},
        attributes=ATTRIBUTES,
        model={"name": "su-mondrian"},
        execution={"engine": "local", "seed": 7},
    )
    before = set(contents(tmp_path))
    limit = MEBIBYTES << 20
    ended = subprocess.run(
        [sys.executable, "-m", "anonspark", "run", path, "--no-progress"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 6), (ended.returncode, ended.stderr)
    if ended.returncode:
        assert "execution.task_rows" in ended.stderr or "ulimit" in ended.stderr
        assert set(contents(tmp_path)) == before
    else:
        assert (tmp_path / "release" / "manifest.json").exists()
