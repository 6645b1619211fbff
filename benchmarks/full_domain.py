"""Full-domain recoding measured: the tables of docs/models.md, as Markdown.

    .venv/bin/python benchmarks/full_domain.py adult --data ../shared/data
    .venv/bin/python benchmarks/full_domain.py search --data ../shared/data
    .venv/bin/python benchmarks/full_domain.py people --rows 10000000

``adult`` compares releases of Adult; every one is verified. ``search`` times the search alone
against the number of nodes. ``people`` times a whole run on generated people with six hierarchical
quasi-identifiers, beside the job that reads, shuffles and writes the same rows in the same minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import yaml
from data_sets import ADULT_OF_ARX
from measuring import IDENTITY, measured
from standalone import GENERATE

HIERARCHIES = Path(__file__).resolve().parents[1] / "conf" / "hierarchies" / "adult-vural-2017"
NAMES = ADULT_OF_ARX.quasi_identifiers
ANONSPARK = str(Path(sys.executable).with_name("anonspark"))

EDUCATION = {
    "no degree": "school", "primary school": "school", "lower secondary": "school",
    "upper secondary": "secondary", "vocational training": "secondary",
    "bachelor": "higher", "master": "higher", "doctorate": "higher",
}  # fmt: skip
MARITAL_STATUS = {
    "single": "alone", "divorced": "alone", "widowed": "alone", "married": "together",
}  # fmt: skip


def adult(options: argparse.Namespace) -> None:
    """Compare models on Adult with the hierarchies of the thesis."""
    from anonspark.config import parse_configuration
    from anonspark.engine.spark.engine import SparkEngine
    from anonspark.engine.spark.session import open_session
    from anonspark.pipeline.run import run
    from anonspark.verification.audit import audit_release

    print("| model | classes | suppressed | levels of the first round | precision | loss | gcp |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows: list[tuple[str, dict[str, Any]]] = [
        ("full-domain, limit 0.05", {"name": "full-domain"}),
        ("full-domain, no limit", {"name": "full-domain", "suppression_limit": 1.0}),
        ("full-domain, no limit, loss",
         {"name": "full-domain", "suppression_limit": 1.0, "objective": "loss"}),
        ("rho-gain, rho 2", {"name": "rho-gain"}),
        ("rho-gain, rho 2, loss", {"name": "rho-gain", "objective": "loss"}),
        ("rho-gain, rho 9, loss", {"name": "rho-gain", "objective": "loss", "rho": 9}),
        ("smondrian", {"name": "smondrian"}),
        ("su-mondrian, always", {"name": "su-mondrian", "separation": "always"}),
    ]  # fmt: skip
    with open_session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        for number, (title, model) in enumerate(rows):
            output = f"{folder}/{number}"
            configuration = {
                "input": {
                    "path": str(options.data / ADULT_OF_ARX.file),
                    "format": "csv",
                    "options": {"header": True, "sep": ";"},
                },
                "attributes": {
                    name: {
                        "role": "quasi_identifier",
                        "hierarchy": str(HIERARCHIES / f"{name}.csv"),
                    }
                    for name in NAMES
                },
                "privacy": {"k": 5},
                "model": model,
                "output": {"path": output},
            }
            release = run(SparkEngine(spark), parse_configuration(configuration))
            audit_release(SparkEngine(spark), output).require()
            found = release.summary
            levels = release.rounds[0]["levels"] or ""
            print(
                f"| {title} | {found['classes']:,} | {_suppressed(found)} | "
                f"{str(levels).replace(', ', ' ')} | {found['precision']:.4f} | "
                f"{found['loss']:.4f} | {found['gcp']:.4f} |",
                flush=True,
            )


def _suppressed(summary: Mapping[str, Any]) -> str:
    count = summary["rows_suppressed"]
    return f"fewer than {summary['k']}" if count is None else f"{count:,}"


def search(options: argparse.Namespace) -> None:
    """Time the search alone on lattices of more and more of Adult's attributes."""
    from anonspark.config.models import ObjectiveName
    from anonspark.core.criteria import Criteria
    from anonspark.core.encoding import QuasiIdentifier
    from anonspark.core.hierarchies.files import parse_hierarchy
    from anonspark.layers.partition.lattice.domain import domain_of
    from anonspark.layers.partition.lattice.lattice import Lattice
    from anonspark.layers.partition.lattice.objectives import create_objective
    from anonspark.layers.partition.lattice.search import (
        Problem,
        search_exhaustively,
        search_pruned,
    )
    from anonspark.layers.partition.lattice.tuples import Tuples

    text = pc.ConvertOptions(column_types=dict.fromkeys(NAMES, "string"))
    separator = pc.ParseOptions(delimiter=";")
    path = options.data / ADULT_OF_ARX.file
    table = pc.read_csv(path, parse_options=separator, convert_options=text)
    print(
        "| attributes | nodes | tuples | objective | limit | exhaustive | pruned | nodes scored |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    criteria = Criteria(5)
    for attributes in (3, 5, 7, 9):
        described = []
        for name in NAMES[:attributes]:
            hierarchy = parse_hierarchy((HIERARCHIES / f"{name}.csv").read_text(), name)
            last = len(hierarchy.leaves) - 1
            described.append(
                QuasiIdentifier(
                    name, "category", pa.string(), 0, last,
                    categories=hierarchy.leaves, hierarchy=hierarchy,
                )
            )  # fmt: skip
        domain = domain_of(described, Criteria(5))
        columns = {
            f"quasi_identifier_{place}": table[name]
            for place, name in enumerate(NAMES[:attributes])
        }
        lattice = Lattice((0,) * attributes, domain.heights)
        codes, _ = domain.encode(pa.table(columns), lattice.lowest)
        codes, counts = np.unique(codes, axis=0, return_counts=True)
        bottom = Tuples(domain, lattice.lowest, np.ascontiguousarray(codes), counts)
        groups = bottom.score(Criteria(1), by_group=True).groups
        records = np.split(groups, np.cumsum(domain.groups(lattice.lowest))[:-1])
        names: tuple[ObjectiveName, ...] = ("average_class_size", "loss")
        for name in names:
            objective = create_objective(name, domain, lattice.lowest, records)
            for limit in (1.0, 0.05):
                most = int(limit * table.num_rows)
                problem = Problem(lattice, criteria, objective, table.num_rows, most)
                seconds, found = [], []
                for way in (search_exhaustively, search_pruned):
                    way(bottom, problem, lambda _: None)
                    start = time.perf_counter()
                    found.append(way(bottom, problem, lambda _: None))
                    seconds.append(time.perf_counter() - start)
                every, pruned = found
                if every is None or pruned is None or every.levels != pruned.levels:
                    sys.exit("the searches differ")
                print(
                    f"| {attributes} | {lattice.size:,} | {bottom.tuples:,} | {name} | {limit:g} | "
                    f"{seconds[0]:.2f} s | {seconds[1]:.2f} s | {pruned.scored:,} |",
                    flush=True,
                )


def people(options: argparse.Namespace) -> None:
    """Time a whole run on generated people."""
    folder = options.directory
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"people-{options.rows}"
    if not (table / "_SUCCESS").exists():
        generate = [*GENERATE, "--rows", str(options.rows), "--out", str(table)]
        subprocess.run([*generate, "--master", options.master], check=True)
    for name, groups in (("education", EDUCATION), ("marital_status", MARITAL_STATUS)):
        lines = [f"{value};{group};*" for value, group in groups.items()]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "sex.csv").write_text("female;*\nother;*\nmale;*\n")

    def hierarchy(of: object) -> dict[str, object]:
        return {"role": "quasi_identifier", "hierarchy": of}

    configuration = {
        "input": {"path": str(table)},
        "attributes": {
            "birth_date": hierarchy({"calendar": ["month", "quarter", "year"]}),
            "sex": hierarchy(str(folder / "sex.csv")),
            "postal_code": hierarchy({"prefix": [1, 2, 3, 4]}),
            "education": hierarchy(str(folder / "education.csv")),
            "marital_status": hierarchy(str(folder / "marital_status.csv")),
            "hours_per_week": hierarchy({"intervals": [5, 10, 20]}),
            "diagnosis": "sensitive",
            "city": "insensitive",
            "income": "insensitive",
            "visits": "insensitive",
        },
        "missing": "category",
        "privacy": {"k": options.k},
        "model": {
            "name": "rho-gain",
            "rho": 1,
            "minimum_levels": {"birth_date": 3, "postal_code": 2, "hours_per_week": 1},
            "driver_tuples": options.driver_tuples,
        },
        "output": {"path": str(folder / "release"), "mode": "overwrite"},
    }
    path = folder / "full-domain.yaml"
    path.write_text(yaml.safe_dump(configuration, sort_keys=False))
    identity_output = str(folder / "identity")
    identity, _, _ = measured(
        [sys.executable, "-c", IDENTITY, str(table), identity_output, options.master]
    )
    command = [ANONSPARK, "run", str(path), "--master", options.master, "--json", "--quiet"]
    seconds, peaks, output = measured(command)
    report = json.loads(output)
    print(f"{options.rows:,} rows, k={options.k}, {options.master}\n\n| what | |\n| --- | --- |")
    for stage, taken in report["seconds"].items():
        print(f"| {stage} | {taken:.1f} s |")
    print(f"| whole process | {seconds:.1f} s |")
    print(f"| identity job, whole process | {identity:.1f} s |")
    for kind, peak in sorted(peaks.items()):
        print(f"| peak memory, {kind} | {peak:,.0f} MiB |")
    for row in report["rounds"]:
        print(f"| levels of round {row['round']} | {row['levels'].replace(', ', ' ')} |")
        print(f"| classes, records left over | {row['classes']:,}, {row['outlier_rows']:,} |")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(required=True)
    for work in (adult, search):
        command = commands.add_parser(work.__name__)
        command.add_argument("--data", type=Path, default=Path("../shared/data"))
        command.set_defaults(work=work)
    command = commands.add_parser("people")
    command.add_argument("--rows", type=int, default=10_000_000)
    command.add_argument("--k", type=int, default=10)
    command.add_argument("--driver-tuples", type=int, default=20_000_000)
    command.add_argument("--master", default="local[2]")
    command.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()) / "anonspark-bench"
    )
    command.set_defaults(work=people)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
