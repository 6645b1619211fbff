"""Random nested plans of one ledger, beside every coalition that puts its files together."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recipients import carry_out, with_ledger

# Of the catalogue, and what each recipient asks for besides the illness and the mark.
COLUMNS = {"a": ["age", "zone"], "b": ["zone", "sex"], "c": ["age", "zone", "sex"]}
PERSONS = 90
K, LEAST = 3, 2


def people(draw: np.random.Generator) -> pa.Table:
    """Return some of the people, each of whom has a mark that is published with every record."""
    here = np.flatnonzero(draw.random(PERSONS) < 0.9)
    n = len(here)
    return pa.table(
        {
            "person": pa.array([f"p{number}" for number in here]),
            "mark": pa.array(here),
            "age": pa.array(draw.integers(20, 60, n)),
            "zone": pa.array(draw.integers(0, 9, n)),
            "sex": pa.array(draw.choice(["f", "m"], n)),
            "illness": pa.array(draw.choice(["flu", "cold", "gout"], n)),
            "year": pa.array(draw.integers(0, 10, n)),
        }
    )


def plan_of(
    folder: Path, table: pa.Table, draw: np.random.Generator, model: dict[str, Any]
) -> dict[str, Any]:
    source = folder / "people.parquet"
    pq.write_table(table, source)
    roles = dict.fromkeys(("age", "zone", "sex"), "quasi_identifier")
    roles |= {"person": "identifier", "illness": "sensitive"}
    roles |= {"mark": "insensitive", "year": "insensitive"}
    return {
        "base": {
            "input": {"path": str(source)},
            "attributes": {name: {"role": role} for name, role in roles.items()},
            "privacy": {"k": K},
            "model": model,
            "execution": {"seed": 7},
        },
        "subject": "person",
        "collusion": {"k": K, "l_diversity": {"attribute": "illness", "l": LEAST}},
        "recipients": {
            name: {
                "approved": "a test",
                "columns": [*columns, "illness", "mark"],
                "privacy": {"k": int(draw.integers(K, 8))},
                "where": {"year": {"min": int(draw.integers(0, 5))}},
            }
            for name, columns in COLUMNS.items()
        },
    }


@pytest.mark.parametrize(
    ("model", "seed"),
    [
        pytest.param({"name": "smondrian"}, 0, marks=pytest.mark.night),
        ({"name": "microaggregation"}, 1),
        ({"name": "smondrian"}, 2),
        ({"name": "su-mondrian", "refine": 2}, 3),
    ],
)
def test_every_coalition_holds(tmp_path: Path, model: dict[str, Any], seed: int) -> None:
    draw = np.random.default_rng(seed)
    known: list[tuple[str, dict[int, tuple[tuple[Any, ...], str]]]] = []
    for number in range(2):
        table = people(draw)
        plan = plan_of(tmp_path, table, draw, model) | {"output": str(tmp_path / str(number))}
        with_ledger(plan, tmp_path)
        given = carry_out(plan, f"plan-{number}")
        planned = with_ledger(plan, tmp_path).releases
        years = dict(zip(table["mark"].to_pylist(), table["year"].to_pylist(), strict=True))
        for name in given.releases:
            rows = pq.read_table(tmp_path / str(number) / name / "data").to_pylist()
            request = plan["recipients"][name]
            asked = {one for one, year in years.items() if year >= request["where"]["year"]["min"]}
            told = planned[f"{name}-plan-{number}"].content
            marks = {row["mark"] for row in rows}
            assert marks <= asked
            assert len(marks) == len(rows) == len(asked) - told["rows_withheld"]
            own = {
                row["mark"]: (tuple(row[one] for one in COLUMNS[name]), row["illness"])
                for row in rows
            }
            classes = [label for label, _ in own.values()]
            assert min(classes.count(label) for label in classes) >= request["privacy"]["k"]
            known.append((name, own))
    for size in range(1, 4):
        for coalition in combinations(COLUMNS, size):
            _require_joint_classes([own for name, own in known if name in coalition])


def _require_joint_classes(releases: list[dict[int, tuple[tuple[Any, ...], str]]]) -> None:
    joint = defaultdict(list)
    for person in range(PERSONS):
        signature = tuple(own[person][0] if person in own else None for own in releases)
        if any(label is not None for label in signature):
            joint[signature].append(person)
    assert min(map(len, joint.values())) >= K
    for signature, persons in joint.items():
        for label, own in zip(signature, releases, strict=True):
            assert label is None or len({own[one][1] for one in persons}) >= LEAST
