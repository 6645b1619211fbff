"""What it takes that k counts people: what classes lose, and the seconds of a run.

    python benchmarks/units.py                      Diabetes, where patients come several times
    python benchmarks/units.py --visits 10000000    generated visits, few people with very many

The first prints, for each model and k, the fewest patients of a class without and with
``privacy.unit``, and what both lose. The second prints the seconds of runs on Spark without and
with it, of a table in which people have several records, and of one in which each has one; with
``--diversity 3`` distinct l-diversity of the diagnosis is required, too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from data_sets import DATA_SETS
from standalone import REPOSITORY

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run

PATIENT = "patient_nbr"
MODELS: tuple[dict[str, Any], ...] = (
    {"name": "smondrian"},
    {"name": "su-mondrian", "rho": 5, "refine": 0},
    {"name": "su-mondrian", "rho": 5, "separation": "always"},
    {"name": "canon"},
    {"name": "u-canon", "rho": 5},
    {"name": "microaggregation"},
    {"name": "full-domain"},
    {"name": "rho-gain", "rho": 2},
)
ROWS_OF_A_FILE = 1_000_000


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visits", type=int, default=0, help="rows of generated visits")
    parser.add_argument("--k", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--model", default="smondrian", help="of the generated visits")
    parser.add_argument("--diversity", type=int, default=0, help="l of the generated visits")
    parser.add_argument("--only", nargs="+", help="models of Diabetes, by name")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anonspark-units-") as name:
        if arguments.visits:
            privacy: dict[str, Any] = {"k": arguments.k[-1]}
            if arguments.diversity:
                privacy["l_diversity"] = {"attribute": "diagnosis", "l": arguments.diversity}
            measure_visits(Path(name), arguments.visits, arguments.model, privacy)
        else:
            measure_diabetes(Path(name), arguments.k, arguments.only)


def measure_diabetes(folder: Path, sizes: list[int], only: list[str] | None) -> None:
    """Print the fewest patients of a class, and gcp, without and with the unit."""
    data = Path(os.environ.get("ANONSPARK_DATA", REPOSITORY.parent / "shared" / "data"))
    names = DATA_SETS["Diabetes"].quasi_identifiers
    with gzip.open(data / DATA_SETS["Diabetes"].file) as file:
        table = pyarrow.csv.read_csv(file).select([PATIENT, *names])
    pq.write_table(table, folder / "input.parquet")
    print(f"{len(table):,} records of {len(pc.unique(table[PATIENT])):,} patients")
    print("| model | k | fewest patients | ... with unit | gcp | ... with unit |")
    print("| --- | --- | --- | --- | --- | --- |")
    for model in MODELS:
        if only is not None and model["name"] not in only:
            continue
        by_hierarchy = model["name"] in ("full-domain", "rho-gain")
        roles = {
            name: {"role": "quasi_identifier", **_intervals(table[name], by_hierarchy)}
            for name in names
        }
        told = ", ".join(str(value) for value in model.values())
        for k in sizes:
            found = []
            for unit in ([], [PATIENT]):
                own = {PATIENT: "insensitive", **roles}
                release = anonymize(LocalEngine(), folder, own, model, {"k": k}, unit)
                data = pq.read_table(release / "data")
                columns = [name for name in data.column_names if name != PATIENT]
                counted = data.group_by(columns).aggregate([(PATIENT, "count_distinct")])
                manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
                fewest = pc.min(counted[f"{PATIENT}_count_distinct"]).as_py()
                found.append((fewest, manifest["summary"]["gcp"]))
            (before, lost), (after, lost_then) = found
            row = (told, k, before, after, f"{lost:.4f}", f"{lost_then:.4f}")
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


def _intervals(values: pa.ChunkedArray, wanted: bool) -> dict[str, Any]:
    if not wanted:
        return {}
    span = pc.max(values).as_py() - pc.min(values).as_py() + 1
    # Of eight quasi-identifiers: a lattice of 3^8 nodes.
    return {"hierarchy": {"intervals": [max(span // 8, 2)]}}


def measure_visits(folder: Path, rows: int, model: str, privacy: dict[str, Any]) -> None:
    """Print the seconds of runs over visits, without and with the unit."""
    generator = np.random.default_rng(1)
    people = folder / "input.parquet"
    people.mkdir()
    for first in range(0, rows, ROWS_OF_A_FILE):
        number = min(ROWS_OF_A_FILE, rows - first)
        # One person in a hundred thousand comes more often than a hundred thousand times.
        patient = np.minimum(generator.zipf(1.3, number), rows)
        columns = {
            PATIENT: patient,
            "record": np.arange(first, first + number),
            "age": np.clip(generator.normal(50, 18, number), 0, 100).astype(np.int64),
            "postal_code": generator.integers(10_000, 99_999, number),
            "income": generator.lognormal(10, 1, number).astype(np.int64),
            "sex": generator.choice(["f", "m"], number),
            "diagnosis": generator.integers(0, 300, number),
        }
        pq.write_table(pa.table(columns), people / f"part-{first:010}.parquet")
    roles: dict[str, Any] = dict.fromkeys(("age", "postal_code", "income"), "quasi_identifier")
    roles |= {"sex": {"role": "quasi_identifier", "order": ["f", "m"]}, "diagnosis": "sensitive"}
    with open_session("local[2]") as session:
        engine = SparkEngine(session)
        # The first run of a session pays for its start.
        anonymize(engine, folder, {"record": "identifier", **roles}, {"name": model}, privacy, [])
        for column in (PATIENT, "record"):
            seconds = []
            for unit in ([], [column]):
                begin = time.monotonic()
                own = {column: "identifier", **roles}
                release = anonymize(engine, folder, own, {"name": model}, privacy, unit)
                seconds.append(time.monotonic() - begin)
            summary = json.loads((release / "manifest.json").read_text(encoding="utf-8"))["summary"]
            print(
                f"{rows:,} records of {summary['units']:,} people: {seconds[0]:.1f} s without, "
                f"{seconds[1]:.1f} s with privacy.unit, {seconds[1] / seconds[0]:.2f} times; "
                f"fewest people of a class: {summary['smallest_units']}",
                flush=True,
            )


def anonymize(
    engine: Engine,
    folder: Path,
    roles: dict[str, Any],
    model: dict[str, Any],
    privacy: dict[str, Any],
    unit: list[str],
) -> Path:
    """Run once; return the folder of the release."""
    release = folder / "release"
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": roles,
        "privacy": {**privacy, "unit": unit},
        "model": model,
        "output": {"path": str(release), "mode": "overwrite"},
        "execution": {"seed": 2**40},
    }
    run(engine, parse_configuration(document))
    return release


if __name__ == "__main__":
    main()
