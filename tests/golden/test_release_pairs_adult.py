"""Two releases of Adult, or of most of it, attacked together from their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cases import one_by_day
from recipients import RECIPIENTS, carry_out, plan_of, write_persons

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.sharing.pairs.classes import ReadRelease, compatible_pairs, read_cells
from anonspark.sharing.pairs.figures import BoundedPairs, bound_pairs
from anonspark.sharing.pairs.original import count_pair_candidates
from anonspark.sharing.pairs.relation import Statement
from anonspark.sharing.pairs.releases import Attack, PairVerification, audit_releases
from anonspark.verification.opening import open_release

OCCUPATION = ("occupation",)
MORE = ("occupation", "marital-status", "race")

Pair = tuple[int, str, tuple[str, ...]]

# k, releases, payload: pairs, with payloads, impossible, possible, proven, breaches, the people in
# them, and original records that are fewer than k.
FIGURES: dict[Pair, tuple[int, ...]] = {
    (5, "ab", OCCUPATION): (47_576, 121_557, 1_183, 30_415, 851, 116, 119, 3_494),
    (5, "ab", MORE): (47_576, 92_037, 9_360, 32_010, 3_830, 1_695, 2_003, 7_204),
    (10, "ab", OCCUPATION): (27_999, 119_219, 8, 18_036, 371, 58, 62, 4_707),
    (10, "ab", MORE): (27_999, 106_171, 989, 23_415, 2_705, 1_403, 1_843, 9_571),
    (10, "bc", OCCUPATION): (39_488, 177_964, 124, 26_013, 83, 58, 67, 4_828),
}

BY_DAY: Pair = (5, "ab", MORE)
AT_NIGHT = [pair for pair in FIGURES if pair != BY_DAY]

Made = Callable[[str, int, Sequence[str]], Path]


def release(table: pa.Table, path: Path, name: str, k: int, payload: Sequence[str]) -> Path:
    """Make the release of a recipient by itself."""
    configuration = parse_configuration(
        {
            "input": {"path": "the table"},
            "attributes": {
                **dict.fromkeys(RECIPIENTS[name], "quasi_identifier"),
                "occupation": "sensitive",
                **{one: "insensitive" for one in payload if one != "occupation"},
            },
            "privacy": {"k": k},
            "model": {"name": "smondrian"},
            "output": {"path": str(path)},
        }
    )
    engine = LocalEngine()
    run(engine, configuration, table=engine.wrap(table))
    return path


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> pa.Table:
    """The whole table."""
    return pyarrow.csv.read_csv(adult_path)


@pytest.fixture(scope="module")
def original(adult: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the whole table is, in a file that is read faster than the one of texts."""
    path = tmp_path_factory.mktemp("original") / "adult.parquet"
    pq.write_table(adult, path)
    return str(path)


@pytest.fixture(scope="module")
def made(adult: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a release, each once."""
    folder = tmp_path_factory.mktemp("releases")

    def make(name: str, k: int, payload: Sequence[str]) -> Path:
        path = folder / f"{name}-{k}-{len(payload)}"
        return path if path.exists() else release(adult, path, name, k, payload)

    return make


def together(paths: Sequence[Path], said: Statement | None, **attack: object) -> PairVerification:
    found = audit_releases(LocalEngine(), list(map(str, paths)), attack=Attack(said=said, **attack))
    assert all(one.holds for one in found.releases)
    (pair,) = found.pairs
    return pair


@pytest.mark.parametrize("of", one_by_day(BY_DAY, *AT_NIGHT), ids=str)
def test_two_releases_of_the_same_people(made: Made, original: str, of: Pair) -> None:
    k, names, payload = of
    paths = [made(name, k, payload) for name in names]
    found = together(paths, "same people", original=original)
    own = found.figures
    assert found.payload == list(payload)
    assert found.original is not None
    assert found.original.matched == found.original.records == 30_162
    assert (
        own.pairs,
        own.payload_pairs,
        own.impossible,
        own.possible,
        own.proven,
        own.breaches,
        own.persons_in_breaches,
        found.original.persons_below_k,
    ) == FIGURES[of]
    assert own.breaches_absent == 0
    assert len(found.failures) == 2


# Of the same, the people who really are in breaches.
REALLY: dict[Pair, int] = {
    (5, "ab", OCCUPATION): 183,
    (5, "ab", MORE): 2_698,
    (10, "ab", OCCUPATION): 169,
    (10, "ab", MORE): 3_555,
    (10, "bc", OCCUPATION): 152,
}


@pytest.mark.parametrize("of", one_by_day(BY_DAY, *AT_NIGHT), ids=str)
def test_people_in_breaches(made: Made, adult: pa.Table, of: Pair) -> None:
    """Regions of these releases lie apart, so that each record has one pair of classes."""
    k, names, payload = of
    engine = LocalEngine()
    opened = [open_release(engine, str(made(name, k, payload))) for name in names]
    releases = [
        ReadRelease(one.path, one.data, one.claim, one.claim.attributes or ()) for one in opened
    ]
    cells = read_cells(*releases)
    compatible = compatible_pairs(releases, cells, ({}, {}))
    bounded, _ = bound_pairs(cells, compatible, "same people")
    breaches = (bounded.lower > 0) & (bounded.upper < k)
    own = BoundedPairs(
        *(figure[breaches] for figure in (bounded.first, bounded.second)),
        *(figure[breaches] for figure in (bounded.lower, bounded.upper)),
        *(
            {name: values[breaches] for name, values in figures.items()}
            for figures in (bounded.fewest, bounded.most, bounded.distinct)
        ),
        absent=bounded.absent,
    )
    found = count_pair_candidates(
        releases, cells, own, engine.wrap(adult), ({}, {}), k=k, required=(), missing_markers=()
    )
    assert found.matched == REALLY[of]


# Who is left out of the second: breaches, those by absence, people there at least by absence.
DIFFERENCES = {
    ("workclass", "Without-pay"): (14, 51, 11),
    ("occupation", "Armed-Forces"): (9, 10, 9),
}


@pytest.mark.parametrize(("column", "value"), DIFFERENCES)
def test_without_a_few(
    made: Made, adult: pa.Table, tmp_path: Path, column: str, value: str
) -> None:
    persons, breaches, absent = DIFFERENCES[column, value]
    rest = adult.filter(pc.not_equal(adult[column], value))
    assert rest.num_rows == 30_162 - persons
    second = release(rest, tmp_path / "rest", "a", 10, OCCUPATION)
    found = together([made("a", 10, OCCUPATION), second], "inside")
    assert found.relation == "second inside first"
    assert (found.figures.breaches, found.figures.breaches_absent) == (breaches, absent)
    turned = together([second, made("a", 10, OCCUPATION)], "inside")
    assert turned.relation == "first inside second"
    # Who is absent is told of each by itself: of the smaller one nobody is.
    first, second = found.figures.absent_from_first, found.figures.absent_from_second
    assert first == 0
    assert turned.figures == replace(
        found.figures, absent_from_first=second, absent_from_second=first
    )


def test_nothing_is_proven_where_nothing_tells_who_is_there(made: Made) -> None:
    found = together([made("a", 10, OCCUPATION), made("b", 10, OCCUPATION)], None)
    assert found.relation == "unknown"
    assert (found.figures.pairs, found.figures.proven, found.figures.breaches) == (27_999, 0, 0)
    assert not found.failures


def test_nested_releases_never_breach(adult_path: Path, tmp_path: Path) -> None:
    persons = write_persons(adult_path, tmp_path / "persons.parquet")
    plan = plan_of(persons, tmp_path, dict.fromkeys("abc", 10), collusion={"k": 5})
    given = carry_out(plan)
    paths = [str(given.releases[name].path) for name in "abc"]
    audit = audit_releases(LocalEngine(), paths, attack=Attack(original=str(persons)))
    assert audit.holds
    assert len(audit.pairs) == 3
    for found in audit.pairs:
        assert found.relation == "same people"
        assert found.k == 5
        assert found.figures.proven > 0
        assert found.figures.breaches == 0
        assert found.original is not None
        assert found.original.persons_below_k == 0
        assert not found.failures


def test_nested_releases_of_some_rows(adult_path: Path, tmp_path: Path) -> None:
    persons = write_persons(adult_path, tmp_path / "persons.parquet")
    where = {"b": {"sex": "Female"}, "c": {"age": {"min": 30}}}
    plan = plan_of(persons, tmp_path, dict.fromkeys("abc", 10), where=where, collusion={"k": 5})
    given = carry_out(plan)
    paths = [str(given.releases[name].path) for name in "abc"]
    found = audit_releases(LocalEngine(), paths, attack=Attack(original=str(persons)))
    relations = [pair.relation for pair in found.pairs]
    assert relations == ["second inside first", "second inside first", "unknown"]
    assert [pair.figures.breaches for pair in found.pairs] == [0, 0, 0]
    # Who is no woman is in none of b's classes, whatever their regions hold.
    assert found.pairs[0].original is not None
    assert found.pairs[0].original.persons_below_k > 0
    assert "if they are in both releases" in "".join(found.warnings)
    assert found.holds


def test_values_that_a_plan_requires(adult_path: Path, tmp_path: Path) -> None:
    persons = write_persons(adult_path, tmp_path / "persons.parquet")
    # The check of the plan is switched off, so that the files have something to show.
    collusion = {"k": 5, "l_diversity": {"attribute": "occupation", "l": 5}, "recipients": 1}
    plan = plan_of(
        persons, tmp_path, {"a": 10, "b": 10}, collusion=collusion, strategy="independent"
    )
    given = carry_out(plan)
    found = together([Path(given.releases[name].path) for name in "ab"], None)
    assert found.figures.disclosed == found.figures.disclosed_required > 0
    assert any("collusion.l_diversity" in text for text in found.failures)
