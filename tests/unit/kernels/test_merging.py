"""Merging groups and atoms until all satisfy the criteria, against obvious references."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.criteria import Criteria, SensitiveAttribute
from anonspark.core.criterion import Criterion
from anonspark.kernels.atom_merging import merge_atoms, merge_atoms_of_leaves
from anonspark.kernels.merging import merge_unsatisfied, name_groups, total_penalty
from anonspark.kernels.paths import child_path, root_path
from anonspark.kernels.separation import without_noise


def criteria_of(values: np.ndarray, k: int, criterion: Criterion) -> Criteria:
    """Return criteria about one attribute whose values are numbered."""
    import pyarrow as pa

    none = np.zeros(0, np.int64)
    counts = np.bincount(values)
    attribute = SensitiveAttribute("s", "s", pa.array(range(len(counts))), counts, none, none)
    return Criteria(k, (criterion,), (attribute,))


def satisfies(values: np.ndarray, criteria: Criteria) -> bool:
    domain = len(criteria.sensitive[0].values)
    return criteria.satisfied_by(len(values), [np.bincount(values, minlength=domain)])


def cost(points: np.ndarray) -> float:
    return len(points) * float((points.max(axis=0) - points.min(axis=0)).sum())


def reference(
    points: np.ndarray, values: np.ndarray, starts: np.ndarray, criteria: Criteria
) -> list[int]:
    """Merge from the first group to the last, each time with the cheaper neighbour."""
    groups = [list(range(a, b)) for a, b in pairwise(starts.tolist())]
    finished: list[list[int]] = []
    while groups:
        own = groups.pop(0)
        while not satisfies(values[own], criteria):
            candidates = []
            if finished:
                merged = finished[-1] + own
                added = cost(points[merged]) - cost(points[finished[-1]]) - cost(points[own])
                candidates.append((added, 0))
            if groups:
                merged = own + groups[0]
                added = cost(points[merged]) - cost(points[groups[0]]) - cost(points[own])
                candidates.append((added, 1))
            if not candidates:
                break
            _, side = min(candidates)
            own = finished.pop() + own if side == 0 else own + groups.pop(0)
        finished.append(own)
    return [group[0] for group in finished] + [len(points)]


@st.composite
def groups_with_values(
    draw: st.DrawFn,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, Criterion]:
    k = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(k, 2 * k), min_size=1, max_size=12))
    n = sum(sizes)
    # Eighths: sums and products are exact, so the reference meets the very same ties.
    coordinates = st.lists(st.integers(0, 64), min_size=2 * n, max_size=2 * n)
    points = np.array(draw(coordinates), np.float64).reshape(n, 2) / 8
    values = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    criterion = draw(
        st.sampled_from(
            [
                Criterion("s", "distinct", 2),
                Criterion("s", "distinct", 3),
                Criterion("s", "entropy", 1.7),
                Criterion("s", "recursive", 2, 1.5),
                Criterion("s", "alpha", 0.6),
                Criterion("s", "equal distance", 0.25),
                Criterion("s", "ordered distance", 0.2),
            ]
        )
    )
    return points, values, np.cumsum([0, *sizes]).astype(np.int64), k, criterion


@given(groups_with_values())
def test_same_groups_as_the_reference(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray, int, Criterion],
) -> None:
    points, values, starts, k, criterion = drawn
    criteria = criteria_of(values, k, criterion)
    order = np.arange(len(points))
    merged = merge_unsatisfied(points, values[:, None], order, starts, criteria.requirements)
    assert merged.tolist() == reference(points, values, starts, criteria)
    if satisfies(values, criteria):
        for start, stop in pairwise(merged.tolist()):
            assert satisfies(values[start:stop], criteria)
    expected = sum(cost(points[start:stop]) for start, stop in pairwise(merged.tolist()))
    assert total_penalty(points, order, merged) == expected


def test_groups_that_satisfy_stay_as_they_are() -> None:
    values = np.array([0, 1, 1, 0, 0, 1])
    criteria = criteria_of(values, 2, Criterion("s", "distinct", 2))
    starts = np.array([0, 2, 4, 6])
    points = np.arange(6.0)[:, None]
    found = merge_unsatisfied(points, values[:, None], np.arange(6), starts, criteria.requirements)
    assert found.tolist() == [0, 2, 4, 6]


def test_one_value_far_away_takes_everything_with_it() -> None:
    values = np.array([0] * 9 + [1])
    criteria = criteria_of(values, 2, Criterion("s", "distinct", 2))
    starts = np.array([0, 2, 4, 6, 8, 10])
    points = np.arange(10.0)[:, None]
    found = merge_unsatisfied(points, values[:, None], np.arange(10), starts, criteria.requirements)
    assert found.tolist() == [0, 10]


def test_a_million_records_that_end_in_one_group_take_linear_time() -> None:
    n = 1_000_000
    values = np.zeros(n, np.int64)
    values[-1] = 1
    criteria = criteria_of(values, 5, Criterion("s", "distinct", 2))
    starts = np.arange(0, n + 1, 5)
    points = np.linspace(0, 1, n)[:, None]
    found = merge_unsatisfied(points, values[:, None], np.arange(n), starts, criteria.requirements)
    assert found.tolist() == [0, n]


def test_names_differ_from_each_other_and_from_those_of_nodes() -> None:
    path = np.uint64(root_path(7, 1))
    names = name_groups(path, 10_000).tolist()
    others = [int(child_path(path, np.uint64(side))) for side in range(4)]
    assert len({*names, *others, int(path)}) == 10_005


# Powers of two: sums of edges are exact.
UNITS = (4.0, 8.0)
VALUES = 3
Atom = tuple[tuple[int, ...], tuple[int, ...], list[int]]
"""Low and high positions, and the sensitive value of each record."""
sides = st.tuples(st.integers(0, 5), st.integers(0, 3))
drawn = st.lists(
    st.tuples(sides, sides, st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=4)),
    min_size=1,
    max_size=14,
)


def atoms_of(found: list[tuple[tuple[int, int], tuple[int, int], list[int]]]) -> list[Atom]:
    """Return atoms in their order, given the low end and the width of each side."""
    atoms: list[Atom] = [
        ((x, y), (x + width, y + height), values) for (x, width), (y, height), values in found
    ]
    return sorted(atoms, key=lambda one: (one[0], one[1], len(one[2])))


def criteria_of_atoms(k: int, least: int) -> Criteria:
    none = np.zeros(0, np.int64)
    attribute = SensitiveAttribute(
        "s", "s", pa.array(range(VALUES)), np.ones(VALUES, np.int64), none, none
    )
    return Criteria(k, (Criterion("s", "distinct", least),), (attribute,))


def cluster_satisfies(atoms: list[Atom], cluster: list[int], k: int, least: int) -> bool:
    values = [value for one in cluster for value in atoms[one][2]]
    return len(values) >= k and len(set(values)) >= least


def size(atoms: list[Atom], cluster: list[int]) -> int:
    return sum(len(atoms[one][2]) for one in cluster)


def edges(atoms: list[Atom], cluster: list[int]) -> float:
    """Return the sum of the edges of the box around a cluster."""
    return sum(
        (max(atoms[one][1][j] for one in cluster) - min(atoms[one][0][j] for one in cluster)) / unit
        for j, unit in enumerate(UNITS)
    )


def added_up(atoms: list[Atom], k: int, least: int) -> list[list[int]]:
    """Return clusters after neighbours with equal boxes are added up."""
    clusters = []
    for _, run in groupby(range(len(atoms)), key=lambda one: atoms[one][:2]):
        finished: list[list[int]] = []
        rest: list[int] = []
        for one in run:
            rest.append(one)
            if cluster_satisfies(atoms, rest, k, least):
                finished.append(rest)
                rest = []
        if rest and finished:
            finished[-1] += rest
        elif rest:
            finished.append(rest)
        clusters += finished
    return clusters


def merged(atoms: list[Atom], k: int, least: int) -> list[int]:
    """Return the smallest index in the cluster of each atom."""
    clusters = added_up(atoms, k, least)
    while len(clusters) > 1:
        unsatisfied = [one for one in clusters if not cluster_satisfies(atoms, one, k, least)]
        if not unsatisfied:
            break
        u = min(unsatisfied, key=lambda one: (size(atoms, one), min(one)))

        def growth(c: list[int], u: list[int] = u) -> float:
            both = size(atoms, u + c) * edges(atoms, u + c)
            apart = size(atoms, u) * edges(atoms, u) + size(atoms, c) * edges(atoms, c)
            return float(without_noise(both - apart))

        others = [one for one in clusters if one is not u]
        c = min(others, key=lambda one: (growth(one), size(atoms, one), min(one)))
        clusters = [one for one in clusters if one is not u and one is not c] + [u + c]
    return [min(own) for one in range(len(atoms)) for own in clusters if one in own]


def by_kernel(atoms: list[Atom], k: int, least: int) -> list[int]:
    sizes = [len(values) for _, _, values in atoms]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.array([value for one in atoms for value in one[2]], np.int64).reshape(-1, 1)
    # Records lie in any order.
    order = np.random.default_rng(0).permutation(len(values)).astype(np.int64)
    mixed = np.empty_like(values)
    mixed[order] = values
    found = merge_atoms(
        np.array([low for low, _, _ in atoms], np.float64),
        np.array([high for _, high, _ in atoms], np.float64),
        np.array(UNITS),
        order,
        starts,
        mixed,
        criteria_of_atoms(k, least).requirements,
    )
    return [int(one) for one in found]


@given(drawn, st.integers(1, 9), st.integers(1, VALUES))
def test_clusters_are_those_of_lists(
    found: list[tuple[tuple[int, int], tuple[int, int], list[int]]], k: int, least: int
) -> None:
    atoms = atoms_of(found)
    everything = list(range(len(atoms)))
    if not cluster_satisfies(atoms, everything, k, least):
        # As a whole they satisfy, or there is no release.
        k, least = min(k, size(atoms, everything)), 1
    clusters = by_kernel(atoms, k, least)
    assert clusters == merged(atoms, k, least)
    for one in set(clusters):
        own = [place for place, cluster in enumerate(clusters) if cluster == one]
        assert cluster_satisfies(atoms, own, k, least)


@given(st.lists(drawn, min_size=1, max_size=4), st.integers(1, 4))
def test_leaves_are_merged_each_by_itself(
    found: list[list[tuple[tuple[int, int], tuple[int, int], list[int]]]], k: int
) -> None:
    of_leaves = [atoms_of(own) for own in found]
    expected, first = [], 0
    for atoms in of_leaves:
        expected += [first + one for one in by_kernel(atoms, k, 1)]
        first += len(atoms)
    every = [one for atoms in of_leaves for one in atoms]
    starts = np.cumsum([0, *(len(values) for _, _, values in every)]).astype(np.int64)
    merged_together = merge_atoms_of_leaves(
        np.array([low for low, _, _ in every], np.float64),
        np.array([high for _, high, _ in every], np.float64),
        np.array(UNITS),
        np.arange(starts[-1]),
        starts,
        np.cumsum([0, *map(len, of_leaves)]).astype(np.int64),
        np.zeros((starts[-1], 1), np.int64),
        criteria_of_atoms(k, 1).requirements,
    )
    assert merged_together.tolist() == expected


def test_atoms_that_satisfy_stay() -> None:
    atoms = atoms_of([((x, 1), (0, 1), [0, 1]) for x in range(5)])
    assert by_kernel(atoms, 2, 2) == [0, 1, 2, 3, 4]


def test_a_rest_of_equal_boxes_joins_the_last_that_is_finished() -> None:
    atoms = atoms_of([((0, 1), (0, 1), [0])] * 5 + [((5, 1), (0, 1), [0, 1])])
    assert by_kernel(atoms, 2, 1) == [0, 0, 2, 2, 2, 5]


@pytest.mark.parametrize("number", [4_097, 5_000])
def test_more_clusters_than_are_looked_at_together(number: int) -> None:
    draw = np.random.default_rng(number)
    atoms = atoms_of([((x, 0), (int(draw.integers(0, 9)), 0), [0]) for x in range(number)])
    clusters = by_kernel(atoms, 3, 1)
    sizes = np.bincount(clusters, minlength=number)
    assert sizes[sizes > 0].min() >= 3
    # No more than is needed, but for what is left.
    assert (sizes > 0).sum() > number // 6
    # The first 4,096 do not see what comes after them.
    assert clusters[:4_096] == by_kernel(atoms[:4_096], 3, 1)
