"""Several releases about the people of Adult, each made by itself, and put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases import one_by_day
from recipients import COLUMNS, carry_out, plan_of, refused, with_ledger, write_persons

OCCUPATION = {"attribute": "occupation", "l": 2}

# k: classes, dm, gcp of a, b, c.
RELEASES = {
    5: {
        "a": (2_773, 756_764, 0.01188),
        "b": (1_255, 3_396_518, 0.00498),
        "c": (1_744, 2_618_690, 0.00532),
    },
    10: {
        "a": (1_604, 887_362, 0.02166),
        "b": (804, 3_448_926, 0.00931),
        "c": (1_054, 2_701_794, 0.01001),
    },
}

# k and coalition: joint classes, persons below k, alone, in joint classes with one occupation.
TOGETHER = {
    5: {
        ("a", "b"): (9_898, 13_333, 5_727, 6_851),
        ("b", "c"): (10_962, 14_279, 6_954, 8_116),
        ("a", "b", "c"): (11_399, 14_406, 7_640, 8_698),
    },
    10: {
        ("a", "b"): (8_611, 17_466, 4_429, 5_570),
        ("a", "c"): (7_305, 17_106, 2_975, 4_056),
        ("b", "c"): (9_875, 18_309, 5_558, 6_736),
        ("a", "b", "c"): (10_745, 18_371, 6_736, 7_854),
    },
}


@pytest.fixture(scope="module")
def persons(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adult, every row a person."""
    return write_persons(adult_path, tmp_path_factory.mktemp("adult") / "persons.parquet")


@pytest.mark.parametrize("k", one_by_day(10, 5))
def test_independent_releases(persons: Path, tmp_path: Path, k: int) -> None:
    plan = plan_of(persons, tmp_path, dict.fromkeys("abc", k), strategy="independent")
    plan["collusion"] = {"k": 1}
    given = carry_out(plan)
    for name, (classes, dm, gcp) in RELEASES[k].items():
        summary = given.releases[name].summary
        assert (summary["classes"], summary["dm"]) == (classes, dm)
        assert summary["gcp"] == pytest.approx(gcp, abs=5e-6)
        assert (summary["rows_requested"], summary["rows_withheld"]) == (30_162, 0)


@pytest.mark.parametrize(
    "of", one_by_day(*((k, size) for k in (10, 5) for size in ("all", 2))), ids=str
)
def test_independent_releases_together(
    persons: Path, tmp_path: Path, of: tuple[int, int | str]
) -> None:
    k, size = of
    plan = plan_of(persons, tmp_path, dict.fromkeys("abc", k), strategy="independent")
    plan["collusion"] = {"recipients": size, "l_diversity": OCCUPATION}
    told = refused(plan, tmp_path)
    expected = {one: row for one, row in TOGETHER[k].items() if (len(one) == 3) == (size == "all")}
    assert expected
    for coalition, (classes, below, alone, homogeneous) in expected.items():
        row = told[coalition]
        assert (row["joint_classes"], row["smallest"], row["persons"]) == (classes, 1, 30_162)
        assert (row["persons_below"], row["persons_alone"]) == (below, alone)
        assert told[*coalition, "occupation"]["persons_below"] == homogeneous
    assert not (tmp_path / "releases").exists()


def test_the_same_columns_twice(persons: Path, tmp_path: Path) -> None:
    columns = {"a": ("age", "education-num", "hours-per-week", "sex")}
    columns["again"] = columns["a"]
    plan = plan_of(
        persons, tmp_path, {"a": 10, "again": 5}, columns=columns, strategy="independent"
    )
    plan["collusion"] = {"together": [["a", "again"]]}
    row = refused(plan, tmp_path)["a", "again"]
    assert (row["persons_below"], row["smallest"]) == (901, 1)
    plan = plan_of(
        persons, tmp_path, {"a": 10, "again": 10}, columns=columns, strategy="independent"
    )
    (row,) = carry_out(plan).coalitions
    assert (row["joint_classes"], row["smallest"]) == (1_604, 10)


# Who asks for what, besides the occupation.
WITH_D = {
    "a": ("age", "education-num", "hours-per-week", "sex"),
    "b": ("age", "education-num", "capital-gain", "capital-loss"),
    "c": ("age", "hours-per-week", "capital-gain", "sex"),
    "d": ("age", "hours-per-week", "sex"),
}
WHERE: Mapping[str, Any] = {
    "b": {"sex": "Female"},
    "c": {"age": {"min": 30}},
    "d": {"workclass": ["Without-pay"]},
}


@pytest.mark.parametrize("size", [2, "all"])
def test_conditions(persons: Path, tmp_path: Path, size: int | str) -> None:
    plan = plan_of(
        persons,
        tmp_path,
        dict.fromkeys("abcd", 10),
        columns=WITH_D,
        where=WHERE,
        strategy="independent",
        collusion={"k": 5, "recipients": size},
    )
    told = refused(plan, tmp_path)
    if size == "all":
        row = told["a", "b", "c", "d"]
        assert (row["persons_below"], row["persons_alone"]) == (10_138, 3_651)
        return
    found = {pair: (row["persons_below"], row["persons_alone"]) for pair, row in told.items()}
    assert found["a", "b"][0] == 3_792
    assert found["a", "c"][0] == 8_475
    assert found["a", "d"] == (14, 14)


# collusion.k, k: what a, b and c get of the base partition: gcp, classes.
NESTED = {
    (2, 10): ((0.0297, 1_609), (0.0156, 1_685), (0.0166, 1_626)),
    (5, 10): ((0.0348, 1_611), (0.0226, 1_596), (0.0213, 1_583)),
    (5, 20): ((0.0523, 885), (0.0321, 879), (0.0305, 866)),
}
# k, that of the coalition, too: atoms, gcp of a, b and c, classes by published tuple.
ONE_PARTITION = {
    5: (3_050, (0.02148, 0.01691, 0.01538), (3_039, 1_988, 2_453)),
    10: (1_721, (0.03750, 0.03004, 0.02662), (1_719, 1_278, 1_421)),
}


@pytest.mark.parametrize(
    "of", one_by_day((5, 10, 8_000), (2, 10, 1_000_000), (5, 20, 1_000_000)), ids=str
)
def test_nested_releases(persons: Path, tmp_path: Path, of: tuple[int, int, int]) -> None:
    k_of_all, k, task_rows = of
    plan = plan_of(persons, tmp_path, dict.fromkeys("abc", k), collusion={"k": k_of_all})
    plan["set"] = {"execution.task_rows": task_rows}
    given = carry_out(plan)
    (row,) = given.coalitions
    assert row["smallest"] >= k_of_all
    assert row["holds"]
    for name, (gcp, classes) in zip("abc", NESTED[k_of_all, k], strict=True):
        summary = given.releases[name].summary
        assert summary["gcp"] == pytest.approx(gcp, abs=5.1e-5)
        assert summary["classes"] == classes
        assert summary["min_class_size"] >= k


@pytest.mark.parametrize("k", one_by_day(10, 5))
def test_one_partition_for_all(persons: Path, tmp_path: Path, k: int) -> None:
    given = carry_out(plan_of(persons, tmp_path, dict.fromkeys("abc", k)))
    atoms, losses, tuples = ONE_PARTITION[k]
    for name, gcp, classes in zip("abc", losses, tuples, strict=True):
        summary = given.releases[name].summary
        assert summary["classes"] == atoms
        assert summary["published_classes"] == classes
        assert summary["gcp"] == pytest.approx(gcp, abs=5e-6)
    (row,) = given.coalitions
    assert row["smallest"] >= k


def test_nested_releases_of_strata(persons: Path, tmp_path: Path) -> None:
    plan = plan_of(
        persons,
        tmp_path,
        dict.fromkeys("abcd", 10),
        columns=WITH_D,
        where=WHERE,
        collusion={"k": 5},
    )
    with_ledger(plan, tmp_path)
    given = carry_out(plan)
    expected = {
        "a": (30_162, 0.0354, 0.02),
        "b": (9_782, 0.0320, 0.02),
        "c": (21_378, 0.0240, 0.02),
        "d": (14, 0.744, 0.001),
    }
    for name, (rows, gcp, tolerance) in expected.items():
        summary = given.releases[name].summary
        assert summary["gcp"] == pytest.approx(gcp, rel=tolerance)
        # Four of d's are withheld. With a ledger no release shows how many are.
        assert summary["rows_published"] == (10 if name == "d" else rows)
        assert summary["rows_requested"] is None
    events = with_ledger(plan, tmp_path).releases
    assert {one.recipient: one.content["rows_withheld"] for one in events.values()} == {
        "a": 0,
        "b": 0,
        "c": 0,
        "d": 4,
    }
    (row,) = given.coalitions
    assert row["smallest"] == 5
    assert row["persons"] == 30_162


def test_the_same_recipient_again_independently(adult_path: Path, tmp_path: Path) -> None:
    first, second = _two_months(adult_path, tmp_path, 100)
    plan = plan_of(first, tmp_path, {"a": 10}, strategy="independent", collusion={"k": 5})
    with_ledger(plan, tmp_path)
    carry_out(plan, "first")
    plan["base"]["input"]["path"] = str(second)
    plan["output"] = str(tmp_path / "second")
    row = refused(plan, tmp_path)["a",]
    assert (row["persons_below"], row["persons_alone"]) == (3_590, 775)


# Whose number is a multiple of this leaves: atoms that lost somebody, withheld, published.
LEAVING = {100: (1_245, 28_647, 0.0404), 1_000: (128, 30_007, None)}


@pytest.mark.parametrize("every", one_by_day(100, 1_000))
def test_the_same_recipient_again(adult_path: Path, tmp_path: Path, every: int) -> None:
    first, second = _two_months(adult_path, tmp_path, every)
    # The catalogue of all recipients' columns: atoms are those of the union.
    plan = plan_of(first, tmp_path, dict.fromkeys("abc", 10), collusion={"k": 5})
    plan["recipients"] = {"a": plan["recipients"]["a"] | {"columns": [*COLUMNS, "occupation"]}}
    del plan["recipients"]["a"]["where"]
    with_ledger(plan, tmp_path)
    given = carry_out(plan, "first")
    base = [one for one in with_ledger(plan, tmp_path).events.events if one.type == "base"]
    assert base[0].content["atoms"] == 2_773
    plan["base"]["input"]["path"] = str(second)
    plan["output"] = str(tmp_path / "second")
    given = carry_out(plan, "second")
    withheld, published, _ = LEAVING[every]
    summary = given.releases["a"].summary
    assert given.withheld["a"] == withheld
    assert summary["rows_published"] == published
    (row,) = given.coalitions
    assert row["smallest"] == 5
    assert row["holds"]


def _two_months(adult: Path, folder: Path, every: int) -> tuple[Path, Path]:
    """Write persons up to 27,000, and all but some of those."""
    first = write_persons(adult, folder / "1.parquet", lambda t: pc.less_equal(t["person"], 27_000))
    second = write_persons(
        adult,
        folder / "2.parquet",
        lambda t: pc.or_(
            pc.greater(t["person"], 27_000),
            pa.array([number % every != 0 for number in t["person"].to_pylist()]),
        ),
    )
    return first, second
