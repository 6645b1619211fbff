"""Plans of one ledger, also about people with several records, beside every coalition."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from recipients import carry_out, plan_about, with_ledger

from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.recipients.plan import parse_plan

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
    recipients = {
        name: {
            "columns": [*columns, "illness", "mark"],
            "privacy": {"k": int(draw.integers(K, 8))},
            "where": {"year": {"min": int(draw.integers(0, 5))}},
        }
        for name, columns in COLUMNS.items()
    }
    base = {"privacy": {"k": K}, "model": model, "execution": {"seed": 7}}
    collusion = {"k": K, "l_diversity": {"attribute": "illness", "l": LEAST}}
    return plan_about(source, roles, recipients, base, collusion=collusion)


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


LADDERS: dict[str, Any] = {
    "age": {"intervals": [5, 20]},
    "zone": {"intervals": [3]},
    "sex": {"prefix": [1]},
}
VISITS, PATIENTS = 700, 240
VISIT_K = 4
Labels = dict[int, tuple[Any, ...]]


def whose() -> np.ndarray:
    """Return the patient of each visit: some have many, most have one or two."""
    draw = np.random.default_rng(11)
    return np.minimum((draw.pareto(1.0, VISITS) * 40).astype(np.int64), PATIENTS - 1)


PATIENT = whose()


def visits(draw: np.random.Generator) -> pa.Table:
    """Return some of the visits, each of which has a mark that is published with it."""
    here = np.flatnonzero(draw.random(VISITS) < 0.98)
    n = len(here)
    return pa.table(
        {
            "patient": pa.array([f"p{number}" for number in PATIENT[here]]),
            "visit": pa.array(here + 5000),
            "mark": pa.array(here),
            "age": pa.array(20 + PATIENT[here] % 40 + here % 2),
            "zone": pa.array(draw.integers(0, 9, n)),
            "sex": pa.array(np.where(PATIENT[here] % 2, "f", "m")),
            "year": pa.array(draw.integers(0, 10, n)),
        }
    )


def plan_of_visits(folder: Path, table: pa.Table, model: str, **sections: Any) -> dict[str, Any]:
    source = folder / "visits.parquet"
    pq.write_table(table, source)
    roles = dict.fromkeys(("age", "zone", "sex"), "quasi_identifier")
    roles |= {"patient": "identifier", "visit": "identifier"}
    roles |= {"mark": "insensitive", "year": "insensitive"}
    return {
        "base": {
            "input": {"path": str(source)},
            "attributes": {
                name: {"role": role} | ({"hierarchy": LADDERS[name]} if name in LADDERS else {})
                for name, role in roles.items()
            }
            if model == "full-domain"
            else roles,
            "privacy": {"k": VISIT_K},
            "model": {"name": model},
            "execution": {"seed": 7},
        },
        "subject": "patient",
        "record": "visit",
        "output": str(folder / "releases"),
        "recipients": {
            name: {
                "approved": "a test",
                "columns": [*columns, "mark"],
                "privacy": {"k": VISIT_K + place},
                "where": {"year": {"min": 2 * place}},
            }
            for place, (name, columns) in enumerate(COLUMNS.items())
        },
    } | sections


def fewest_patients(releases: list[Labels]) -> int:
    """Return the smallest number of patients whom releases together do not tell apart."""
    joint = defaultdict(set)
    for visit in range(VISITS):
        signature = tuple(own.get(visit) for own in releases)
        if any(label is not None for label in signature):
            joint[signature].add(int(PATIENT[visit]))
    return min(map(len, joint.values()))


def labels_in(folder: Path, name: str) -> Labels:
    rows = pq.read_table(folder / name / "data").to_pylist()
    return {row["mark"]: tuple(row[one] for one in COLUMNS[name]) for row in rows}


@cases(__file__, "model", "seed", "plans")
def test_every_coalition_of_visits_holds(tmp_path: Path, model: str, seed: int, plans: int) -> None:
    draw = np.random.default_rng(seed)
    known: list[tuple[str, Labels]] = []
    for number in range(plans):
        folder = tmp_path / str(number)
        plan = plan_of_visits(tmp_path, visits(draw), model, output=str(folder))
        if model == "full-domain":
            plan["base"]["model"]["residual"] = "suppress"
        ledger = with_ledger(plan, tmp_path, ("patient",), ("visit",))
        given = carry_out(plan, f"plan-{number}")
        for place, name in enumerate(given.releases):
            own = labels_in(folder, name)
            assert fewest_patients([own]) >= VISIT_K + place
            known.append((name, own))
        told = {tuple(row["recipients"]): row["smallest"] for row in given.coalitions}
        for size in range(2, 4):
            for coalition in combinations(COLUMNS, size):
                found = fewest_patients([own for name, own in known if name in coalition])
                assert told.get(coalition, found) == found >= VISIT_K
        ledger = with_ledger(plan, tmp_path, ("patient",), ("visit",))
        checked = check_ledger(
            LocalEngine(), ledger, required_coalitions(ledger), demand_of(ledger), with_files=True
        )
        assert checked.problems == []


def test_records_alone_would_not_do(tmp_path: Path) -> None:
    table = visits(np.random.default_rng(0))
    # Each visit is a person of its own.
    plan = plan_of_visits(tmp_path, table, "smondrian") | {"subject": "visit"}
    del plan["record"]
    del plan["base"]["attributes"]["patient"]
    carry_out(plan)
    folder = tmp_path / "releases"
    assert fewest_patients([labels_in(folder, name) for name in COLUMNS]) < VISIT_K


def test_separate_releases_are_refused(tmp_path: Path) -> None:
    plan = plan_of_visits(
        tmp_path, visits(np.random.default_rng(0)), "smondrian", strategy="independent"
    )
    with pytest.raises(GuaranteeError, match="persons are in joint classes of fewer than"):
        carry_out(plan)
    assert not (tmp_path / "releases").exists()


@cases(__file__, "changes", "expected")
def test_what_is_wrong_in_a_plan(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    table = visits(np.random.default_rng(0))
    with pytest.raises(ConfigurationError, match=expected):
        parse_plan(plan_of_visits(tmp_path, table, "smondrian") | changes)


def test_what_counts_records_is_refused(tmp_path: Path) -> None:
    plan = plan_of_visits(tmp_path, visits(np.random.default_rng(0)), "smondrian")
    plan["recipients"]["a"]["presence"] = {"max": 0.9}
    with pytest.raises(
        ConfigurationError, match=r"recipients\.a\.presence: found together with record"
    ):
        parse_plan(plan)


def test_records_that_are_there_twice(tmp_path: Path) -> None:
    table = visits(np.random.default_rng(0))
    plan = plan_of_visits(tmp_path, pa.concat_tables([table, table.slice(0, 3)]), "smondrian")
    with pytest.raises(DataError, match="record: 3 records occur several times"):
        carry_out(plan)
    without = plan_of_visits(tmp_path, table, "smondrian")
    del without["record"]
    with pytest.raises(DataError, match="Name the columns that distinguish records as record"):
        carry_out(without)


def test_all_that_somebody_may_have_is_withheld(tmp_path: Path) -> None:
    table = visits(np.random.default_rng(0))
    plan = plan_of_visits(tmp_path, table, "smondrian")
    with_ledger(plan, tmp_path, ("patient",), ("visit",))
    carry_out(plan, "first")
    # Everybody is there still with half of the visits.
    later = plan_of_visits(tmp_path, table.take(np.arange(0, len(table), 7)), "smondrian")
    later |= {"output": str(tmp_path / "later"), "ledger": plan["ledger"]}
    with pytest.raises(DataError, match=r"recipients\..*: .* records are withheld"):
        carry_out(later, "second")


def test_the_same_records_in_ledger_and_plan(tmp_path: Path) -> None:
    plan = plan_of_visits(tmp_path, visits(np.random.default_rng(0)), "smondrian")
    with_ledger(plan, tmp_path, ("patient",))
    with pytest.raises(ConfigurationError, match=r"record: found visit. The ledger has none"):
        carry_out(plan)
