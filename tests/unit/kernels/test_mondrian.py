"""Mondrian's kernel against the slow reference, and its guarantees."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
import references
from cases import cases
from counted_tables import contents_by_name
from drawn_numbers import order
from hypothesis import given, note
from hypothesis import strategies as st
from references import (
    Table,
    attribute_of,
    content_hashes,
    k_alone,
    may_be_a_group,
    one_of_each_kind,
    sizes_of_halving,
    table_of,
    table_under,
    tables_and_criteria,
)

from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.kernels.mondrian import choose_boundaries, cut_into_groups, further_ranks

INT64 = np.iinfo(np.int64)
ROOT = 77


@dataclass(frozen=True)
class Rule:
    relaxed: bool = False
    balanced: bool = False
    cell: bool = False


STRICT_PUBLISHED_CELL = Rule(cell=True)
STRICT_PUBLISHED_DATA = Rule()
STRICT_BALANCED_CELL = Rule(balanced=True, cell=True)
STRICT_BALANCED_DATA = Rule(balanced=True)
RELAXED_CELL = Rule(relaxed=True, cell=True)
RELAXED_DATA = Rule(relaxed=True)

RULES = {
    "strict published cell": STRICT_PUBLISHED_CELL,
    "strict published data": STRICT_PUBLISHED_DATA,
    "strict balanced cell": STRICT_BALANCED_CELL,
    "strict balanced data": STRICT_BALANCED_DATA,
    "relaxed cell": RELAXED_CELL,
    "relaxed data": RELAXED_DATA,
}

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
relaxed_rules = pytest.mark.parametrize("rule", [RELAXED_CELL, RELAXED_DATA], ids=["cell", "data"])


def cut(table: Table, criteria: Criteria, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run the kernel; return the records group by group, the groups' starts and their names."""
    result: tuple[np.ndarray, np.ndarray, np.ndarray] = cut_into_groups(
        *table.node(ROOT), criteria.requirements, rule.relaxed, rule.balanced, rule.cell
    )
    return result


def groups_under(table: Table, criteria: Criteria, rule: Rule) -> list[tuple[int, ...]]:
    order, starts, _ = cut(table, criteria, rule)
    return [tuple(order[start:stop].tolist()) for start, stop in itertools.pairwise(starts)]


def groups_of(table: Table, k: int, rule: Rule) -> list[tuple[int, ...]]:
    return groups_under(table, k_alone(k), rule)


def expected_under(table: Table, criteria: Criteria, rule: Rule) -> list[tuple[int, ...]]:
    if rule.relaxed:
        return references.relaxed_mondrian(table, criteria, cell=rule.cell)
    return references.strict_mondrian(table, criteria, balanced=rule.balanced, cell=rule.cell)


def expected_groups(table: Table, k: int, rule: Rule) -> list[tuple[int, ...]]:
    return expected_under(table, k_alone(k), rule)


def named_contents(table: Table, criteria: Criteria, rule: Rule) -> dict[int, object]:
    return contents_by_name(table, cut(table, criteria, rule))


def with_or_without(criteria: Criteria, *, alone: bool) -> Criteria:
    return replace(criteria, criteria=(), sensitive=()) if alone else criteria


@given(drawn=tables_and_criteria(), alone=st.booleans())
def test_same_groups_as_the_reference(drawn: tuple[Table, Criteria], alone: bool) -> None:
    table, criteria = drawn[0], with_or_without(drawn[1], alone=alone)
    for name, rule in RULES.items():
        note(name)
        groups = groups_under(table, criteria, rule)
        assert sorted(i for group in groups for i in group) == list(range(len(table)))
        expected = expected_under(table, criteria, rule)
        assert Counter(map(table.records, groups)) == Counter(map(table.records, expected))
        if len(table) >= criteria.k:
            # The whole table satisfies the criteria, and so does every group.
            assert all(may_be_a_group(criteria, table.values, group) for group in groups)
        if rule.relaxed and alone:
            assert list(map(len, groups)) == sizes_of_halving(len(table), criteria.k)
        elif alone:
            # No tie is shared out, so the very same records are together.
            assert set(map(frozenset, groups)) == set(map(frozenset, expected))


@given(drawn=tables_and_criteria(), alone=st.booleans(), data=st.data())
def test_independent_of_the_order_of_records(
    drawn: tuple[Table, Criteria], alone: bool, data: st.DataObject
) -> None:
    """Require the same groups by the same names of records in another order."""
    table, criteria = drawn[0], with_or_without(drawn[1], alone=alone)
    shuffled = table.taken(order(data.draw, len(table)))
    for name, rule in RULES.items():
        note(name)
        found = named_contents(shuffled, criteria, rule)
        assert found == named_contents(table, criteria, rule)


@relaxed_rules
def test_relaxed_shares_out_records_that_are_equal_in_everything(rule: Rule) -> None:
    table = table_of([np.zeros(1000, np.int64)], np.zeros(1000, np.int64))
    assert list(map(len, groups_of(table, 3, rule))) == sizes_of_halving(1000, 3)


@every_rule
@pytest.mark.parametrize("k", [1, 2, 5])
def test_random_tables_against_the_reference(rule: Rule, k: int) -> None:
    random = np.random.default_rng(k)
    n = 400
    zero_inflated = np.where(random.random(n) < 0.8, 0, random.integers(1, 100_000, n))
    table = table_of(
        [random.integers(17, 91, n), zero_inflated, random.normal(size=n)],
        random.integers(INT64.min, INT64.max, n),
    )
    groups = groups_of(table, k, rule)
    expected = expected_groups(table, k, rule)
    assert set(map(frozenset, groups)) == set(map(frozenset, expected))


@cases(__file__, "below", "equal", "size", "k", "balanced", "expected")
def test_choice_of_the_boundary(
    below: int, equal: int, size: int, k: int, balanced: bool, expected: list[list[int | bool]]
) -> None:
    chosen = choose_boundaries(below, equal, size, k, balanced)
    assert [[rows, bool(run_left)] for rows, run_left in chosen if rows] == expected
    # What there is comes first.
    assert [rows > 0 for rows, _ in chosen] == [place < len(expected) for place in range(2)]


@given(
    column=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 99)), min_size=1, max_size=60),
    k=st.integers(1, 12),
)
def test_with_k_alone_no_boundary_is_allowed_but_beside_the_median(
    column: list[int], k: int
) -> None:
    # Further out the smaller side is smaller still. So k alone never asks for other boundaries.
    size = len(column)
    median = sorted(column)[(size - 1) // 2]
    below, equal = sum(value < median for value in column), column.count(median)
    (best, _), _ = choose_boundaries(below, equal, size, k, balanced=True)
    left_sizes = {sum(other < value for other in column) for value in column}
    allowed = {rows for rows in left_sizes if min(rows, size - rows) >= k}
    assert (best in allowed) if allowed else best == 0
    assert all(abs(2 * best - size) <= abs(2 * rows - size) for rows in allowed)


@pytest.mark.parametrize("size", [1, 2, 3, 127, 128, 129, 1000, 2**20 + 1, 2**40])
def test_further_ranks(size: int) -> None:
    ranks = further_ranks(size).tolist()
    if size <= 128:
        assert ranks == list(range(1, size))
    else:
        assert ranks == [-(-size * part // 128) for part in range(1, 128)]


@pytest.mark.parametrize("balanced", [False, True], ids=["published", "balanced"])
def test_zero_inflated_column_is_cut_by_the_balanced_rule_only(balanced: bool) -> None:
    # The median equals the maximum: nothing lies above it.
    column = np.array([0] * 4 + [1] * 6)
    groups = groups_of(table_of([column], np.arange(10)), 2, Rule(balanced=balanced))
    assert sorted(map(len, groups)) == ([4, 6] if balanced else [10])


@every_rule
def test_fewer_than_2k_records_stay_together(rule: Rule) -> None:
    table = table_of([np.arange(9)], np.arange(9))
    order, starts, paths = cut(table, k_alone(5), rule)
    assert starts.tolist() == [0, 9]
    assert sorted(order.tolist()) == list(range(9))
    assert paths.tolist() == [ROOT]


@every_rule
def test_the_ends_of_64_bits(rule: Rule) -> None:
    column = np.array([INT64.min, INT64.max, 0, -1, 1, INT64.min + 1, INT64.max - 1, INT64.max])
    table = table_of([column, np.zeros(8, np.int64)], np.arange(8))
    groups = groups_of(table, 2, rule)
    assert set(map(frozenset, groups)) == set(map(frozenset, expected_groups(table, 2, rule)))


# Criteria beyond k --------------------------------------------------------------------------------


@every_rule
@pytest.mark.parametrize("criterion", one_of_each_kind(0.15), ids=lambda one: one.kind)
def test_random_tables_against_the_reference_under_criteria(
    rule: Rule, criterion: Criterion
) -> None:
    table, criteria = table_under(criterion, 300)
    groups = groups_under(table, criteria, rule)
    expected = expected_under(table, criteria, rule)
    assert set(map(frozenset, groups)) == set(map(frozenset, expected))
    assert 1 < len(groups) < len(groups_of(table, 3, rule))


@every_rule
def test_a_table_that_violates_a_criterion_is_not_cut(rule: Rule) -> None:
    values = np.array([[0], [1]] * 10)
    table = table_of([np.arange(20)], np.arange(20), values=values)
    criteria = Criteria(2, (Criterion("s", "distinct", 3),), (attribute_of("s", [10, 10, 10]),))
    assert list(map(len, groups_under(table, criteria, rule))) == [20]


def test_the_other_boundary_where_the_better_one_violates() -> None:
    # Nearer to halves is the boundary above the run of the median, 6 and 4. Its right side has
    # one value, but both sides of the one below the run have two.
    column = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    values = np.array([0, 1, 0, 0, 1, 1, 0, 0, 0, 0])[:, None]
    table = table_of([column], np.arange(10), values=values)
    criteria = Criteria(2, (Criterion("s", "distinct", 2),), (attribute_of("s", [7, 3]),))
    groups = groups_under(table, criteria, STRICT_BALANCED_DATA)
    assert sorted(map(sorted, groups)) == [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]]
    assert list(map(len, groups_under(table, criteria, STRICT_PUBLISHED_DATA))) == [10]


@pytest.mark.parametrize(
    ("other", "sizes"),
    [
        pytest.param(np.zeros(12, np.int64), [3, 9], id="instead of a leaf"),
        pytest.param(np.array([0, 0, 0, 9, 9, 9] * 2), [6, 6], id="after the other attribute"),
    ],
)
def test_a_boundary_further_out_where_all_beside_the_medians_violate(
    other: np.ndarray, sizes: list[int]
) -> None:
    # Both records of the second value lie left of the zeros, the run of the median: 3 | 9 tells
    # them apart. But the second column is cut first where its median allows it.
    column = np.array([-4, -3, -2, -1, 0, 0, 0, 0, 0, 0, 1, 2])
    values = np.array([1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])[:, None]
    table = table_of([column, other], np.arange(12), values=values, weights=[2.0, 1.0])
    criteria = Criteria(2, (Criterion("s", "distinct", 2),), (attribute_of("s", [10, 2]),))
    for rule in (STRICT_BALANCED_DATA, STRICT_BALANCED_CELL):
        assert list(map(len, groups_under(table, criteria, rule))) == sizes
        published = groups_under(table, criteria, replace(rule, balanced=False))
        assert list(map(len, published)) == ([6, 6] if sizes == [6, 6] else [12])


@pytest.mark.parametrize(
    ("column", "second_value", "k", "sizes"),
    [
        pytest.param([-4, -3, -2, -1, *[0] * 6, 1, 2], [0, 3], 3, [3, 9], id="k on the left"),
        pytest.param([-2, -1, *[0] * 6, 1, 2, 3, 4], [8, 11], 3, [9, 3], id="k on the right"),
        # 2 | 10 lacks one record of the second value: it is asked of the very next boundary.
        pytest.param([-4, -3, -2, -1, *[0] * 6, 1, 2], [2, 3], 2, [3, 9], id="as many as it lacks"),
    ],
)
def test_a_boundary_further_out_whose_side_is_just_large_enough(
    column: list[int], second_value: list[int], k: int, sizes: list[int]
) -> None:
    values = np.isin(np.arange(12), second_value).astype(np.int64)[:, None]
    table = table_of([np.array(column)], np.arange(12), values=values)
    criteria = Criteria(k, (Criterion("s", "distinct", 2),), (attribute_of("s", [10, 2]),))
    assert list(map(len, groups_under(table, criteria, STRICT_BALANCED_DATA))) == sizes


@relaxed_rules
def test_relaxed_takes_the_next_attribute_where_halves_violate(rule: Rule) -> None:
    # Halves by the wider first column have one value each; halves by the second one have two.
    first, second = np.array([0, 1, 2, 30, 31, 32, 33, 34]), np.array([0, 9, 1, 8, 2, 7, 6, 3])
    values = np.array([0, 0, 0, 0, 1, 1, 1, 1])[:, None]
    table = table_of([first, second], np.arange(8), values=values, weights=[2.0, 1.0])
    criteria = Criteria(4, (Criterion("s", "distinct", 2),), (attribute_of("s", [4, 4]),))
    groups = groups_under(table, criteria, rule)
    assert sorted(map(sorted, groups)) == [[0, 2, 4, 7], [1, 3, 5, 6]]


@relaxed_rules
@pytest.mark.parametrize("least", [1, 2])
def test_relaxed_shares_out_equal_records_only_if_both_halves_satisfy(
    rule: Rule, least: int
) -> None:
    # By hash, all records with the first value come before those with the second.
    values = np.repeat([0, 1], 10)[:, None]
    table = table_of([np.zeros(20, np.int64)], np.arange(20), values=values)
    attribute = attribute_of("s", [10, 10])
    criteria = Criteria(2, (Criterion("s", "distinct", least),), (attribute,))
    groups = groups_under(table, criteria, rule)
    assert list(map(len, groups)) == (sizes_of_halving(20, 2) if least == 1 else [20])


def test_many_records_and_values() -> None:
    random = np.random.default_rng(8)
    n, domain = 100_000, 1000
    column = random.integers(0, domain, n)
    table = table_of([random.integers(0, 5000, n), column], content_hashes(column, np.arange(n)))
    table = replace(table, values=column[:, None].copy())
    counts = np.bincount(column, minlength=domain).tolist()
    criteria = Criteria(5, (Criterion("s", "distinct", 4),), (attribute_of("s", counts),))
    order, starts, _ = cut(table, criteria, STRICT_BALANCED_DATA)
    sizes = [len(set(column[order[a:b]].tolist())) for a, b in itertools.pairwise(starts)]
    assert min(sizes) >= 4
    assert len(sizes) > 1000
