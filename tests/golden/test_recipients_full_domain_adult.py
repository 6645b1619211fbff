"""Several releases of Adult by full-domain recoding: each by itself, and at or above one node."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from recipients import carry_out, with_ledger, write_persons
from test_distribution_adult import SIX, People

from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.sharing.recipients.joint_check import require_joint_classes

COLUMNS = {
    "a": ("workclass", "education", "occupation", "sex"),
    "b": ("age", "sex", "hours-per-week"),
    "c": ("age", "education", "hours-per-week", "workclass"),
}
DIVERSE = {"attribute": "income", "l": 2}


@pytest.fixture(scope="module")
def folder(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adult, every row a person, and its hierarchies."""
    made = tmp_path_factory.mktemp("adult")
    write_persons(adult_path, made / "persons.parquet")
    for name, rows in People(adult_path).rows.items():
        with (made / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";").writerows(rows)
    return made


def plan_of(folder: Path, out: Path, **sections: Any) -> dict[str, Any]:
    return {
        "base": {
            "input": {"path": str(folder / "persons.parquet")},
            "attributes": {
                "person": {"role": "identifier"},
                **{
                    name: {"role": "quasi_identifier", "hierarchy": str(folder / f"{name}.csv")}
                    for name in SIX
                },
                "income": {"role": "sensitive"},
            },
            "privacy": {"k": 10, "l_diversity": DIVERSE},
            "model": {
                "name": "full-domain",
                "objective": "monotonic_discernibility",
                "suppression_limit": 0.05,
            },
            "execution": {"seed": 7},
        },
        "subject": "person",
        "output": str(out / "releases"),
        "recipients": {
            name: {"approved": "a test", "columns": [*columns, "income"]}
            for name, columns in COLUMNS.items()
        },
        **sections,
    }


def levels_of(release: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    (first,) = release.rounds
    levels = dict(part.split("=") for part in first["levels"].split(", "))
    return tuple(int(levels[name]) for name in names)


# Joint classes below 10: persons, alone, in joint classes with one income.
TOGETHER = {
    ("a", "b"): (13_068, 2_090, 11_613),
    ("a", "c"): (5_463, 444, 5_857),
    ("b", "c"): (4_552, 225, 4_640),
    ("a", "b", "c"): (20_964, 5_344, 16_839),
}


@pytest.mark.parametrize("size", [2, "all"])
def test_independent(folder: Path, tmp_path: Path, size: int | str) -> None:
    collusion = {"k": 10, "l_diversity": DIVERSE, "recipients": size}
    plan = plan_of(folder, tmp_path, strategy="independent", collusion=collusion)
    # Without a ledger, which has no plan whose model leaves records out.
    joint = "anonspark.sharing.recipients.distribute.require_joint_classes"
    with patch(joint, wraps=require_joint_classes) as asked, pytest.raises(GuaranteeError):
        carry_out(plan)
    told = {
        (*row["recipients"], *([row["attribute"]] if row["attribute"] else [])): row
        for row in asked.call_args.args[0]
    }
    for coalition, (below, alone, homogeneous) in TOGETHER.items():
        if (len(coalition) == 3) == (size == "all"):
            assert told[coalition]["persons_below"] == below
            assert told[coalition]["persons_alone"] == alone
            assert told[*coalition, "income"]["persons_below"] == homogeneous


def test_independent_levels(folder: Path, tmp_path: Path) -> None:
    plan = plan_of(folder, tmp_path, strategy="independent", collusion={"k": 1})
    plan["base"]["privacy"]["allow_k_1"] = True
    given = carry_out(plan).releases
    expected = {"a": ((3, 0, 0, 0), 1_466), "b": ((0, 1, 5), 1_431), "c": ((2, 0, 4, 2), 1_340)}
    for name, (levels, suppressed) in expected.items():
        names = (
            COLUMNS[name] if name != "c" else ("age", "education", "hours-per-week", "workclass")
        )
        assert levels_of(given[name], names) == levels
        assert given[name].summary["rows_suppressed"] == suppressed
    assert given["b"].summary["classes"] == 63
    assert given["c"].summary["classes"] == 195


def test_presence(folder: Path, tmp_path: Path) -> None:
    """Of 3,992 managers among 30,162 people, in regions that depend on no record."""
    plan = plan_of(folder, tmp_path, strategy="independent")
    plan["recipients"] = {"b": plan["recipients"]["b"]}
    levels = {"age": 4, "sex": 0, "hours-per-week": 5}
    fixed = {"name": "full-domain", "suppression_limit": 0.0, "levels": [levels]}
    plan["recipients"]["b"] |= {
        "where": {"occupation": "Exec-managerial"},
        "presence": {"max": 0.1},
    }
    with pytest.raises(ConfigurationError, match=r"recipients\.b\.presence: found together with"):
        carry_out(plan)
    plan["recipients"]["b"]["model"] = fixed
    with pytest.raises(GuaranteeError, match="of 30,162 records of the source are") as failed:
        carry_out(plan)
    assert "up to 0.1751" in str(failed.value)
    plan["recipients"]["b"]["presence"]["max"] = 0.18
    assert carry_out(plan).releases["b"].summary["rows_published"] == 3_992


def test_nested(folder: Path, tmp_path: Path) -> None:
    plan = plan_of(folder, tmp_path, collusion={"k": 5, "l_diversity": DIVERSE})
    with_ledger(plan, tmp_path)
    with pytest.raises(ConfigurationError, match=r"base\.model\.residual: found drop. Expected s"):
        carry_out(plan)
    plan["base"]["model"]["residual"] = "suppress"
    with_ledger(plan, tmp_path)
    given = carry_out(plan)
    base = [one for one in with_ledger(plan, tmp_path).events.events if one.type == "base"]
    assert base[0].content["atoms"] == 318
    assert base[0].content["persons"] == 30_162 - 1_505
    expected = {
        "a": ((2, 3, 0, 0), 12, 41),
        "b": ((2, 0, 4), 17, 26),
        "c": ((2, 3, 4, 2), 12, 26),
    }
    for name, (levels, suppressed, classes) in expected.items():
        release = given.releases[name]
        assert levels_of(release, COLUMNS[name]) == levels
        assert release.summary["rows_withheld"] is None
        assert given.withheld[name] == 1_505
        assert release.summary["rows_suppressed"] == suppressed
        assert release.summary["classes"] == classes
    assert given.coalitions[0]["smallest"] == 5
    assert all(row["holds"] for row in given.coalitions)


# At five by day.
@pytest.mark.night
def test_nested_at_ten(folder: Path, tmp_path: Path) -> None:
    plan = plan_of(folder, tmp_path, collusion={"k": 10, "l_diversity": DIVERSE})
    given = carry_out(plan).releases
    assert levels_of(given["a"], COLUMNS["a"]) == (3, 3, 0, 0)
    assert given["a"].summary["rows_withheld"] == 1_107


def test_nested_strata(folder: Path, tmp_path: Path) -> None:
    plan = plan_of(folder, tmp_path, collusion={"k": 5, "l_diversity": DIVERSE})
    plan["recipients"]["b"]["where"] = {"sex": "Female"}
    plan["recipients"]["c"]["where"] = {"age": {"min": 40}}
    given = carry_out(plan)
    assert all(row["holds"] for row in given.coalitions)
    assert min(row["smallest"] for row in given.coalitions) >= 5
