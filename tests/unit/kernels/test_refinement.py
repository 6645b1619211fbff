"""Refinement of groups: what holds of each group before holds after, and nothing costs more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import references
from hypothesis import given
from hypothesis import strategies as st
from references import Table, attribute_of, k_alone, may_be_a_group, tables_and_criteria

from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.criteria import checker_of, satisfies_after
from anonspark.kernels.group_exchange import exchange_records
from anonspark.kernels.merging import total_penalty
from anonspark.kernels.mondrian import CELL_RECORDS, cut_into_cells
from anonspark.kernels.refinement import refine_groups, refine_in_cells

Codes = npt.NDArray[np.int64]


def split(order: Codes, starts: Codes) -> list[tuple[int, ...]]:
    return [tuple(order[start:stop].tolist()) for start, stop in itertools.pairwise(starts)]


def cut(table: Table, criteria: Criteria) -> tuple[Codes, Codes, Codes]:
    """Return the groups of balanced strict Mondrian: records, starts and cells."""
    order, starts, _, cells = cut_into_cells(
        *table.node(1), criteria.requirements, False, True, False
    )
    return order, starts, cells


def refine(table: Table, criteria: Criteria, passes: int) -> tuple[Codes, Codes, Codes]:
    order, starts, cells = cut(table, criteria)
    canonical = order.copy()
    sort_groups(table.codes, table.hashes, canonical, starts[cells])
    points = table.positions / table.units
    refined: tuple[Codes, Codes, Codes] = refine_in_cells(
        points, table.values, canonical, order, starts, cells, criteria.requirements, passes
    )
    return refined


def random_table(seed: int, n: int, d: int) -> Table:
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, 50, n) for _ in range(d)]
    return references.table_of(columns, references.content_hashes(*columns, np.arange(n)))


@given(tables_and_criteria(), st.integers(1, 4))
def test_every_group_satisfies_every_criterion_and_nothing_costs_more(
    drawn: tuple[Table, Criteria], passes: int
) -> None:
    table, criteria = drawn
    order, starts, _ = cut(table, criteria)

    refined, refined_starts, _ = refine(table, criteria, passes)

    groups = split(refined, refined_starts)
    assert sorted(refined.tolist()) == list(range(len(table)))
    if len(table) >= criteria.k:
        assert all(may_be_a_group(criteria, table.values, group) for group in groups)
    points = table.positions / table.units
    before = total_penalty(points, order, starts)
    assert total_penalty(points, refined, refined_starts) <= before * (1 + 1e-9) + 1e-12


@given(tables_and_criteria(), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_the_records(
    drawn: tuple[Table, Criteria], random: object
) -> None:
    table, criteria = drawn
    order = list(range(len(table)))
    random.shuffle(order)  # type: ignore[attr-defined]
    moved = references.Table(
        *(getattr(table, name)[order] for name in ("codes", "positions")),
        table.origins,
        table.units,
        *(getattr(table, name)[order] for name in ("hashes", "values")),
    )

    def contents(of: Table, groups: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
        rows = np.column_stack([of.codes, of.hashes])
        return [sorted(map(tuple, rows[list(group)].tolist())) for group in groups]

    here = refine(table, criteria, 2)
    there = refine(moved, criteria, 2)
    assert contents(table, split(*here[:2])) == contents(moved, split(*there[:2]))


@given(tables_and_criteria(), st.data())
def test_a_changed_group_is_judged_as_the_reference_judges_it(
    drawn: tuple[Table, Criteria], data: st.DataObject
) -> None:
    table, criteria = drawn
    n = len(table)
    size = data.draw(st.integers(0, n - 1))
    leaving = data.draw(st.integers(-1, size - 1))
    entering = data.draw(st.sampled_from([-1, size]))
    members = np.arange(n)
    after = [i for i in range(size) if i != leaving] + [size] * (entering >= 0)
    if not after:
        return
    without_k = Criteria(1, criteria.criteria, criteria.sensitive)

    satisfied = satisfies_after(
        checker_of(without_k.requirements), table.values, members, size, leaving, entering
    )

    assert satisfied == may_be_a_group(without_k, table.values, after)


TWO = Criterion("s", "distinct", 2)
HALF = Criterion("s", "alpha", 0.5)


@pytest.mark.parametrize(
    ("letters", "members", "leaving", "entering", "most", "satisfied"),
    [
        pytest.param("caab", [0, 1, 2, 3], 0, -1, 0.5, False, id="leaves"),
        pytest.param("cab", [1, 2], -1, 0, 0.4, True, id="enters"),
    ],
)
def test_the_first_record_is_one_of_the_records(
    letters: str, members: list[int], leaving: int, entering: int, most: float, satisfied: bool
) -> None:
    values = np.array([["abc".index(letter)] for letter in letters])
    criteria = Criteria(1, (Criterion("s", "alpha", most),), (attribute_of("s", [9, 9, 9]),))
    checker = checker_of(criteria.requirements)

    found = satisfies_after(checker, values, np.array(members), len(members), leaving, entering)

    assert found == satisfied


# Records stand at 0, 1, 9 (and 2) in one group, from 10 on in the other, which is nearer to 9.
@pytest.mark.parametrize(
    ("criterion", "givers", "getters", "moves"),
    [
        (TWO, "aab", "ab", False),
        (TWO, "abb", "ab", True),
        (TWO, "abc", "ab", True),
        (HALF, "aabc", "ac", False),
        (HALF, "abcc", "ab", True),
        (HALF, "abc", "cb", False),
        (HALF, "abc", "ab", True),
        (None, "aa", "ab", False),
    ],
)
def test_a_single_record_is_given_where_the_exchange_leaves_both_groups_their_criteria(
    criterion: Criterion | None, givers: str, getters: str, *, moves: bool
) -> None:
    positions = [0, 1, 9, 2][: len(givers)] if len(givers) > 2 else [0, 9]
    axes = np.array([[*positions, *range(10, 10 + len(getters))]], np.float64)
    values = np.array([["abc".index(letter)] for letter in givers + getters])
    own = (criterion,) if criterion else ()
    criteria = Criteria(2, own, (attribute_of("s", [9, 9, 9]),) if own else ())
    group_of = np.repeat([0, 1], [len(givers), len(getters)])

    exchange_records(axes, values, group_of, 2, checker_of(criteria.requirements))

    assert group_of[positions.index(9)] == int(moves)
    assert group_of.sum() == len(getters) + moves


@pytest.mark.parametrize(("near", "swaps"), [("a", True), ("b", False)])
def test_records_are_swapped_where_the_exchange_leaves_both_groups_their_criteria(
    near: str, *, swaps: bool
) -> None:
    """Both records have the same value of another attribute."""
    axes = np.array([[0.0, 9.0, 1.0, 10.0]])
    first = ["abc".index(letter) for letter in ("b", "a", near, "c")]
    values = np.array([[value, 3] for value in first])
    sensitive = attribute_of("s", [9, 9, 9]), attribute_of("t", [9])
    group_of = np.array([0, 0, 1, 1])

    requirements = Criteria(2, (TWO,), sensitive).requirements
    exchange_records(axes, values, group_of, 2, checker_of(requirements))

    assert (group_of[0] == group_of[2]) == swaps
    assert group_of.sum() == 2


@pytest.mark.parametrize("k", [2, 10, 50])
def test_records_stay_in_their_cell_and_most_cells_lose_less(k: int) -> None:
    table, criteria = random_table(3, 3 * CELL_RECORDS, 4), k_alone(k)
    order, starts, cells = cut(table, criteria)

    refined, refined_starts, refined_cells = refine(table, criteria, 2)

    assert len(cells) == len(refined_cells) > 2
    points = table.positions / table.units
    for cell in range(len(cells) - 1):
        first, last = cells[cell], cells[cell + 1]
        new_first, new_last = refined_cells[cell], refined_cells[cell + 1]
        assert starts[first] == refined_starts[new_first]
        own = order[starts[first] : starts[last]]
        new = refined[starts[first] : starts[last]]
        assert sorted(own.tolist()) == sorted(new.tolist())
        before = total_penalty(points, own, starts[first : last + 1] - starts[first])
        inner = refined_starts[new_first : new_last + 1] - starts[first]
        assert total_penalty(points, new, inner) < 0.95 * before


def test_groups_that_are_much_larger_stay_as_they_are() -> None:
    n, k = 3000, 5
    points = np.random.default_rng(4).random((n, 3))
    order = np.argsort(points[:, 0])
    starts = np.array([0, 2000, *range(2005, n + 1, 5)])

    refined, refined_starts = refine_groups(
        points, references.no_values(n), order, starts, k_alone(k).requirements, 3, 0
    )

    groups = split(refined, refined_starts)
    assert tuple(order[:2000].tolist()) in groups
    assert total_penalty(points, refined, refined_starts) < total_penalty(points, order, starts)
