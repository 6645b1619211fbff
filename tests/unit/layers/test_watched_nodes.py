"""What is told of the nodes that a search looked at, against the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from lattice_tables import RandomTable, random_table

from anonspark.core.criteria import Criteria
from anonspark.layers.partition.lattice.lattice import Lattice
from anonspark.layers.partition.lattice.objectives import create_objective
from anonspark.layers.partition.lattice.search import Problem, search_exhaustively, search_pruned
from anonspark.layers.partition.lattice.watching import (
    SMALLEST_CLASS,
    LookedAt,
    Scored,
    WatchedProblem,
    best_of,
    describe_node,
    requirements_of,
)


def problem_of(table: RandomTable, most_suppressed: int) -> WatchedProblem:
    lattice = Lattice((0,) * len(table.heights), table.heights)
    groups = table.tuples.score(Criteria(1), by_group=True).groups
    records = np.split(groups, np.cumsum(table.domain.groups(lattice.lowest))[:-1])
    objective = create_objective("average_class_size", table.domain, lattice.lowest, records)
    problem = Problem(lattice, table.criteria, objective, table.rows, most_suppressed)
    return WatchedProblem.of(problem)


def ignore(scored: int) -> None:
    """Tell nobody."""


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
        problem = problem_of(table, most)
        found = search_exhaustively(table.tuples, problem, ignore)
        assert sorted(one.levels for one in problem.seen) == sorted(table.nodes())
        assert (found is None) == (table.best("average_class_size", most) is None)
        for scored in best_of(problem.seen, found):
            told = describe_node(table.tuples, table.domain, table.criteria, scored, found)
            assert tuple(told.levels.values()) == scored.levels
            assert_told(table, told, most)
            assert told.is_chosen == (found is not None and scored.levels == found.levels)


def assert_told(table: RandomTable, told: LookedAt, most: int) -> None:
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
    problem = problem_of(random_table(np.random.default_rng(1)), 0)
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
        problem = problem_of(table, 2)
        found = search_pruned(table.tuples, problem, ignore)
        assert found is not None or not any(one.is_allowed for one in problem.seen)
        assert len({one.levels for one in problem.seen}) == len(problem.seen)
        if found is not None:
            assert len(problem.seen) == found.scored
            best = best_of(problem.seen, found)
            assert next(one for one in best if one.is_allowed).levels == found.levels
