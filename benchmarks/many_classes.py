"""What it takes to verify a release of many classes with its original: seconds and memory.

    python benchmarks/many_classes.py                     2,000,000 classes of three records
    python benchmarks/many_classes.py --cells 215         10,000,000 classes

Generated people have three quasi-identifiers in a grid of cells, a class each.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonspark.engine.local.engine import LocalEngine
from anonspark.verification.audit import audit_release
from anonspark.verification.claims.roles import Roles

NAMES = ("x", "y", "z")
WIDTH, FILES = 1_000, 8


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=126, help="of each quasi-identifier")
    parser.add_argument("--records", type=int, default=3, help="of each class")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release, original = Path(folder) / "release", Path(folder) / "original"
        release.mkdir()
        original.mkdir()
        write_people(release, original, options.cells, options.records)
        wall = time.perf_counter()
        proof = audit_release(
            LocalEngine(),
            str(release),
            roles=Roles(NAMES, ("illness",), options.records),
            original=str(original),
        )
        wall = time.perf_counter() - wall
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    print(f"{proof.published.rows:,} records in {proof.published.classes:,} classes")
    print(proof.failures, proof.truthfulness, proof.linkage, proof.loss, sep="\n")
    memory = ", ".join(f"{usage.ru_maxrss / 2**20:.1f} GB" for usage in usages)
    print(f"{wall:.0f} s, {processor:.0f} s of processors, at most {memory} (this process, a task)")


def write_people(release: Path, original: Path, cells: int, records: int) -> None:
    """Write so many records of each cell, in any order, and their labels."""
    draw = np.random.default_rng(1)
    classes = draw.permutation(np.repeat(np.arange(cells**3, dtype=np.int32), records))
    starts = np.arange(cells) * WIDTH
    labels = pa.array([f"[{start}-{start + WIDTH - 1}]" for start in starts.tolist()])
    for number, rows in enumerate(np.array_split(classes, FILES)):
        places = np.unravel_index(rows, (cells,) * 3)
        illness = pa.array(draw.choice(["flu", "gout", "mumps", "none"], len(rows)))
        published = {
            name: labels.take(pa.array(at)) for name, at in zip(NAMES, places, strict=True)
        }
        values = {
            name: starts[at] + draw.integers(0, WIDTH, len(rows))
            for name, at in zip(NAMES, places, strict=True)
        }
        for folder, columns in ((release, published), (original, values)):
            pq.write_table(pa.table(columns | {"illness": illness}), folder / f"{number}.parquet")


if __name__ == "__main__":
    main()
