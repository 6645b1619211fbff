"""The lattice and its search, against all nodes, and what is told of those that were looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from lattice_tables import RandomTable, quasi_identifier, random_table

from anonspark.config.models import ObjectiveName
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.generalize.full_domain import FullDomainRecoding
from anonspark.layers.partition.lattice.domain import AttributeGroups, Levels
from anonspark.layers.partition.lattice.lattice import Lattice
from anonspark.layers.partition.lattice.objectives import create_objective
from anonspark.layers.partition.lattice.search import (
    SMALLEST_CLASS,
    NodePreview,
    Problem,
    Scored,
    WatchedProblem,
    best_of,
    describe_node,
    requirements_of,
    search_exhaustively,
    search_pruned,
    walk,
)

OBJECTIVES: tuple[ObjectiveName, ...] = (
    "average_class_size",
    "discernibility",
    "monotonic_discernibility",
    "precision",
    "loss",
    "entropy",
)


def problem_of(table: RandomTable, name: ObjectiveName, most_suppressed: int) -> Problem:
    bottom = table.tuples
    lattice = Lattice((0,) * len(table.heights), table.heights)
    groups = bottom.score(Criteria(1), by_group=True).groups
    records = np.split(groups, np.cumsum(table.domain.groups(lattice.lowest))[:-1])
    objective = create_objective(name, table.domain, lattice.lowest, records)
    return Problem(lattice, table.criteria, objective, table.rows, most_suppressed)


def ignore(scored: int) -> None:
    """Tell nobody."""


def test_lattice_of_36_nodes() -> None:
    lattice = Lattice((0, 0, 0), (2, 1, 5))
    assert lattice.size == 36
    assert np.bincount(lattice.nodes.sum(axis=1)).tolist() == [1, 3, 5, 6, 6, 6, 5, 3, 1]
    assert len({tuple(node) for node in lattice.nodes.tolist()}) == 36


def test_lattice_between_bounds() -> None:
    lattice = Lattice((1, 0), (2, 2))
    assert lattice.nodes.tolist() == [[1, 0], [1, 1], [2, 0], [1, 2], [2, 1], [2, 2]]
    assert lattice.successors((1, 1)) == [(2, 1), (1, 2)]
    assert lattice.successors((2, 2)) == []
    assert lattice.nodes[lattice.above((2, 0))].tolist() == [[2, 0], [2, 1], [2, 2]]
    assert lattice.nodes[lattice.below((1, 1))].tolist() == [[1, 0], [1, 1]]


def test_every_node_is_visited_once_with_its_own_tuples() -> None:
    random = np.random.default_rng(11)
    for _ in range(20):
        table = random_table(random, "distinct", missing=True)
        bottom = table.tuples
        lattice = Lattice((0,) * len(table.heights), table.heights)
        visited: dict[Levels, list[int]] = {}
        for tuples in walk(bottom, lattice):
            assert tuples.levels not in visited
            directly = bottom.roll_up(tuples.levels)
            assert tuples.codes.tolist() == directly.codes.tolist()  # type: ignore[attr-defined]
            assert tuples.counts.tolist() == directly.counts.tolist()  # type: ignore[attr-defined]
            visited[tuples.levels] = sorted(tuples.counts.tolist())  # type: ignore[attr-defined]
        assert set(visited) == set(product(*(range(height + 1) for height in table.heights)))


def test_scores_are_those_of_the_definitions() -> None:
    random = np.random.default_rng(12)
    for number in range(60):
        kinds = (("distinct",), ("entropy",), ("equal distance", "distinct"), ())[number % 4]
        table = random_table(random, *kinds, missing=number % 3 == 0)
        objectives = {name: problem_of(table, name, table.rows).objective for name in OBJECTIVES}
        bottom = table.tuples
        for levels in table.nodes():
            score = bottom.roll_up(levels).score(table.criteria, by_group=True)
            classes = table.classes(levels)
            kept = [rows for rows in classes.values() if table.satisfies(rows)]
            assert score.classes == len(classes)
            assert score.utility_classes == len(kept)
            assert score.squares == sum(len(rows) ** 2 for rows in classes.values())
            assert score.utility_squares == sum(len(rows) ** 2 for rows in kept)
            for name, objective in objectives.items():
                expected, suppressed = table.cost(name, levels)
                assert score.suppressed == suppressed
                assert objective.cost(levels, score) == pytest.approx(expected, abs=2e-6)


def test_bounds_hold_for_every_node_above() -> None:
    random = np.random.default_rng(13)
    for _ in range(40):
        table = random_table(random, "equal distance", missing=True)
        bottom = table.tuples
        scores = {
            levels: bottom.roll_up(levels).score(table.criteria, by_group=True)
            for levels in table.nodes()
        }
        for name in OBJECTIVES:
            objective = problem_of(table, name, table.rows).objective
            for low, high in product(scores, scores):
                if all(a <= b for a, b in zip(low, high, strict=True)):
                    cost = objective.cost(high, scores[high])
                    assert objective.least_cost_above(low, scores[low]) <= cost
                    assert objective.least_cost(low) <= cost


@pytest.mark.parametrize("kinds", [(), ("distinct",)], ids=["k", "k-and-distinct"])
def test_searches_find_the_best_node_of_80_tables(kinds: tuple[str, ...]) -> None:
    random = np.random.default_rng(14)
    spared = dict.fromkeys((search_exhaustively, search_pruned), 0)
    for number in range(80):
        table = random_table(random, *kinds, missing=number % 2 == 0)
        name = OBJECTIVES[number % len(OBJECTIVES)]
        most = int(table.rows * (0.0, 0.1, 0.3, 1.0)[number % 4])
        expected = table.best(name, most)
        for search in spared:
            found = search(table.tuples, problem_of(table, name, most), ignore)
            assert (None if found is None else found.levels) == (
                None if expected is None else expected[0]
            )
            if found is not None and expected is not None:
                assert found.cost == pytest.approx(expected[1], abs=2e-6)
                spared[search] += sum(1 for _ in table.nodes()) - found.scored
    assert spared[search_exhaustively] == 0 < spared[search_pruned]


@pytest.mark.parametrize("kind", ["entropy", "equal distance"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_pruned_search_of_any_criterion_where_nothing_or_everything_may_be_suppressed(
    kind: str, share: float
) -> None:
    random = np.random.default_rng(15)
    for number in range(60):
        table = random_table(random, kind)
        name = OBJECTIVES[number % len(OBJECTIVES)]
        problem = problem_of(table, name, int(table.rows * share))
        pruned = search_pruned(table.tuples, problem, ignore)
        every = search_exhaustively(table.tuples, problem, ignore)
        assert (pruned and pruned.levels) == (every and every.levels)


def test_pruned_search_of_criteria_that_are_not_monotone_keeps_the_limit() -> None:
    random = np.random.default_rng(16)
    worse = 0
    for number in range(100):
        table = random_table(random, ("entropy", "equal distance")[number % 2])
        most = table.rows // 4
        problem = problem_of(table, "average_class_size", most)
        pruned = search_pruned(table.tuples, problem, ignore)
        every = search_exhaustively(table.tuples, problem, ignore)
        if pruned is None:
            worse += every is not None
            continue
        assert every is not None
        assert pruned.score.suppressed <= most
        assert pruned.cost >= every.cost
        worse += pruned.levels != every.levels
    # That is the difference which the documentation explains.
    assert worse > 0


def test_no_node_suppresses_little_enough() -> None:
    table = random_table(np.random.default_rng(17))
    lattice = Lattice((0,) * len(table.heights), (0,) * len(table.heights))
    problem = problem_of(table, "loss", 0)
    bounded = Problem(lattice, Criteria(table.rows + 1), problem.objective, 1, 0)
    assert search_exhaustively(table.tuples, bounded, ignore) is None
    assert search_pruned(table.tuples, bounded, ignore) is None


def test_progress_is_told() -> None:
    table = random_table(np.random.default_rng(18))
    told: list[int] = []
    search_exhaustively(table.tuples, problem_of(table, "loss", table.rows), told.append)
    assert told == list(range(1, sum(1 for _ in table.nodes()) + 1))


def test_groups_of_a_hierarchy_with_missing_values() -> None:
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]]
    groups = AttributeGroups(quasi_identifier("q", rows, has_missing=True), 0)
    assert [groups.number(level) for level in range(3)] == [4, 3, 1]
    assert [groups.leaves(level).tolist() for level in range(3)] == [[1, 1, 1, 1], [2, 1, 1], [4]]
    assert [groups.of_codes(level).tolist() for level in range(3)] == [
        [0, 1, 2, 3],
        [0, 0, 1, 2],
        [0, 0, 0, 0],
    ]
    assert groups.between(0, 1).tolist() == [0, 0, 1, 2]
    assert groups.between(1, 2).tolist() == [0, 0, 0]
    assert groups.between(1, 1).tolist() == [0, 1, 2]


def test_values_beyond_the_largest_that_occurs() -> None:
    # Codes of missing values follow the largest value that occurs, not the largest leaf.
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]]
    whole = quasi_identifier("q", rows, has_missing=True)
    one = type(whole)(**{**vars(whole), "highest": 1})
    groups = AttributeGroups(one, 0)
    assert groups.of_codes(0).tolist() == [0, 1, 3]
    assert groups.of_codes(1).tolist() == [0, 0, 2]
    assert groups.of_codes(2).tolist() == [0, 0, 0]


def watched(table: RandomTable, most_suppressed: int) -> WatchedProblem:
    return WatchedProblem.of(problem_of(table, "average_class_size", most_suppressed))


def suppressed_by(table: RandomTable, criteria: Criteria, levels: Sequence[int]) -> int:
    """Return the records of classes that do not satisfy some of the criteria."""
    alone = replace(table, criteria=criteria)
    classes = alone.classes(tuple(levels)).values()
    return sum(len(rows) for rows in classes if not alone.satisfies(rows))


def test_figures_are_those_of_the_definitions() -> None:
    random = np.random.default_rng(21)
    for number in range(16):
        kinds = (("distinct",), ("entropy", "distinct"), ("equal distance",), ())[number % 4]
        table = random_table(random, *kinds, missing=number % 3 == 0)
        most = int(random.integers(0, table.rows + 1))
        problem = watched(table, most)
        found = search_exhaustively(table.tuples, problem, ignore)
        assert sorted(one.levels for one in problem.seen) == sorted(table.nodes())
        assert (found is None) == (table.best("average_class_size", most) is None)
        for scored in best_of(problem.seen, found):
            told = describe_node(table.tuples, table.domain, table.criteria, scored, found)
            assert tuple(told.levels.values()) == scored.levels
            assert_told(table, told, most)
            assert told.is_chosen == (found is not None and scored.levels == found.levels)


def assert_told(table: RandomTable, told: NodePreview, most: int) -> None:
    levels = tuple(told.levels.values())
    kept = [rows for rows in table.classes(levels).values() if table.satisfies(rows)]
    cost, suppressed = table.cost("loss", levels)
    weights = sum(one.weight for one in table.quasi_identifiers)
    assert (told.classes, told.suppressed, told.height) == (len(kept), suppressed, sum(levels))
    assert told.loss == pytest.approx(cost / (weights * table.rows), abs=1e-12)
    assert told.is_allowed == (suppressed <= most and bool(kept))
    alone = {SMALLEST_CLASS: suppressed_by(table, replace(table.criteria, criteria=()), levels)}
    for one in table.criteria.criteria:
        own = replace(table.criteria, k=1, criteria=(one,))
        alone[f"{one.describe()} (s)"] = suppressed_by(table, own, levels)
    assert list(alone) == list(requirements_of(table.criteria))
    if told.binds is None:
        assert not any(alone.values())
    else:
        assert alone[told.binds] == max(alone.values()) > 0


def scored(cost: float, suppressed: int, place: int, *, is_allowed: bool) -> Scored:
    return Scored(cost, suppressed, place, (place,), is_allowed)


def test_the_best_and_those_just_missed() -> None:
    allowed = [scored(float(place), 0, place, is_allowed=True) for place in range(30)]
    better = [scored(-1.0, 40 - place, place, is_allowed=False) for place in range(15)]
    worse = [scored(5.0, 1, 99, is_allowed=False)]
    problem = watched(random_table(np.random.default_rng(1)), 0)
    found = search_exhaustively(random_table(np.random.default_rng(1)).tuples, problem, ignore)
    assert found is not None
    chosen = replace(found, levels=(0,), cost=0.0)
    best = best_of([*worse, *reversed(allowed), *better], chosen)
    # Of those that would be better, the ten that suppress fewest.
    assert [one for one in best if not one.is_allowed] == sorted(better[5:])
    assert [one for one in best if one.is_allowed] == allowed[:10]
    assert best == sorted(best)
    # Where none may be chosen, those that are nearest to it.
    nearest = best_of([*better, *worse], None)
    assert len(nearest) == 16
    assert worse[0] in nearest


def test_a_pruned_search_tells_of_those_that_it_scored() -> None:
    random = np.random.default_rng(23)
    for _ in range(10):
        table = random_table(random)
        problem = watched(table, 2)
        found = search_pruned(table.tuples, problem, ignore)
        assert found is not None or not any(one.is_allowed for one in problem.seen)
        assert len({one.levels for one in problem.seen}) == len(problem.seen)
        if found is not None:
            assert len(problem.seen) == found.scored
            best = best_of(problem.seen, found)
            assert next(one for one in best if one.is_allowed).levels == found.levels


ROWS = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"]]
OTHERS = [["e", "*"], ["f", "*"]]


def recoding(levels: tuple[int, int], *, has_missing: bool = False) -> FullDomainRecoding:
    attributes = (
        quasi_identifier("q", ROWS, has_missing=has_missing),
        quasi_identifier("r", OTHERS),
    )
    columns = Generalizer(attributes, "interval", shows_missing=has_missing).columns()
    return FullDomainRecoding(
        tuple(AttributeGroups(one, place) for place, one in enumerate(attributes)),
        levels,
        tuple(columns),
    )


def groups(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, np.int32)


@cases(__file__, "levels", "rows", "labels")
def test_labels_are_those_of_the_level(
    levels: tuple[int, int], rows: list[tuple[int, int]], labels: list[list[str]]
) -> None:
    assert [column.to_pylist() for column in recoding(levels).publish(groups(*rows))] == labels


def test_one_leaf_alone_is_published_at_the_level_too() -> None:
    rows = [["a", "x", "*"], ["b", "y", "*"], ["c", "y", "*"]]
    one = quasi_identifier("q", rows)
    columns = tuple(Generalizer((one,), "interval", shows_missing=False).columns())
    recoded = FullDomainRecoding((AttributeGroups(one, 0),), (1,), columns)
    only = np.array([[0], [1]], np.int32)
    assert [column.to_pylist() for column in recoded.publish(only)] == [["x", "y"]]
    figures = recoded.figures(only, np.array([5, 6], np.int64))
    # It tells as much as the value itself.
    assert figures.penalties.tolist() == [[0.0], [2 / 3]]
    assert figures.losses.tolist() == [[0.0], [1 / 3]]
    assert figures.levels.tolist() == [[1], [1]]


def test_missing_values_stay_apart_below_the_top() -> None:
    recoded = recoding((1, 0), has_missing=True)
    label, _ = recoded.publish(groups((0, 0), (2, 0)))
    assert label.to_pylist() == ["x", "missing"]
    figures = recoded.figures(groups((0, 0), (2, 0)), np.array([3, 4], np.int64))
    assert figures.penalties[:, 0].tolist() == [0.5, 0.0]
    assert figures.losses[:, 0].tolist() == [0.2, 0.0]


def test_the_top_takes_in_missing_values() -> None:
    recoded = recoding((2, 0), has_missing=True)
    label, _ = recoded.publish(groups((0, 0)))
    assert label.to_pylist() == ["* or missing"]
    figures = recoded.figures(groups((0, 0)), np.array([3], np.int64))
    assert figures.penalties[0].tolist() == [1.0, 0.0]
    assert figures.losses[0].tolist() == [4 / 5, 0.0]


def test_bounds_are_labels_for_values_may_be_those_of_records_left_out() -> None:
    figures = recoding((1, 1)).figures(groups((1, 0)), np.array([7], np.int64))
    assert [column.to_pylist() for column in figures.lowest] == [["y"], ["*"]]
    assert [column.to_pylist() for column in figures.highest] == [["y"], ["*"]]
    assert figures.lowest[0].type == pa.string()
    assert figures.sizes.tolist() == [7]


def test_an_attribute_without_any_value() -> None:
    one = QuasiIdentifier(
        "q", "category", pa.string(), 0, -1, has_missing=True, hierarchy=Hierarchy.from_rows([], 2)
    )
    own = AttributeGroups(one, 0)
    columns = tuple(Generalizer((one,), "interval", shows_missing=True).columns())
    for level in range(3):
        assert own.number(level) == 1
        assert own.leaves(level).tolist() == [1]
        assert own.of_codes(level).tolist() == [0]
        assert own.between(0, level).tolist() == [0]
        recoded = FullDomainRecoding((own,), (level,), columns)
        only = np.zeros((2, 1), np.int32)
        assert [column.to_pylist() for column in recoded.publish(only)] == [["missing"] * 2]
        figures = recoded.figures(only, np.array([3, 4], np.int64))
        assert figures.penalties.tolist() == figures.losses.tolist() == [[0.0], [0.0]]


def test_columns_and_figures_are_in_the_order_of_the_configuration() -> None:
    attributes = (quasi_identifier("r", OTHERS), quasi_identifier("q", ROWS))
    columns = tuple(Generalizer(attributes, "interval", shows_missing=False).columns())
    # The larger hierarchy comes first in a table of tuples.
    own = (AttributeGroups(attributes[1], 1), AttributeGroups(attributes[0], 0))
    recoded = FullDomainRecoding(own, (1, 0), columns)
    assert [column.to_pylist() for column in recoded.publish(groups((1, 0)))] == [["e"], ["y"]]
    figures = recoded.figures(groups((1, 0)), np.array([7], np.int64))
    assert figures.levels.tolist() == [[0, 1]]
    assert figures.penalties.tolist() == [[0.0, 0.5]]
    assert [column.to_pylist() for column in figures.lowest] == [["e"], ["y"]]
