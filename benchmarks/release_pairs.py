"""What it takes to attack two releases together: seconds and memory of ``verify --with``.

    python benchmarks/release_pairs.py                      200,000 classes each, 5,000,000 pairs
    python benchmarks/release_pairs.py --people 1950000     and as many payloads as there may be

Two tables of generated people are written whose classes are long and thin, of the one along the
first attribute and of the other along the second, so that each class meets some 25 others.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from anonspark.engine.local.engine import LocalEngine
from anonspark.sharing.pairs.releases import Attack, audit_releases
from anonspark.verification.claims.roles import Roles

FINE, COARSE = 2_236, 89
RANGE = 1_000_000


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--values", type=int, default=14, help="different values of the payload")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    first, second = random.integers(0, RANGE, (2, options.people))
    payload = pa.array(random.integers(0, options.values, options.people).astype(str))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, parts in (("one", (FINE, COARSE)), ("other", (COARSE, FINE))):
            path = Path(folder) / f"{name}.parquet"
            labels = [
                labels_of(values, own) for values, own in zip((first, second), parts, strict=True)
            ]
            pq.write_table(pa.table({"x": labels[0], "y": labels[1], "value": payload}), path)
            paths.append(str(path))
        roles = Roles(("x", "y"), ("value",), 2)
        wall, processor = time.perf_counter(), time.process_time()
        found = audit_releases(
            LocalEngine(), paths, roles=roles, attack=Attack("same people", joint_k=5)
        )
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("classes", [one.published.classes for one in found.releases])
    print(found.pairs[0].figures)
    print(f"{wall:.1f} seconds, {processor:.1f} of processors, {memory:.1f} GB")


def labels_of(values: npt.NDArray[np.int64], parts: int) -> pa.Array:
    """Return the interval of each value, of so many of equal length."""
    width = -(-RANGE // parts)
    low = values // width * width
    pairs = zip(low.tolist(), (low + width - 1).tolist(), strict=True)
    return pa.array([f"[{start}, {end}]" for start, end in pairs])


if __name__ == "__main__":
    main()
