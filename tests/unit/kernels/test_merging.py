"""Merging groups until all satisfy the criteria, against an obvious reference."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.criteria import Criteria, SensitiveAttribute
from anonspark.core.criterion import Criterion
from anonspark.kernels.merging import merge_unsatisfied, name_groups, total_penalty
from anonspark.kernels.paths import child_path, root_path


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
