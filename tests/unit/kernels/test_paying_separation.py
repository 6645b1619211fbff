"""The records that a group keeps because giving them up does not pay, against a slow reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from drawn_numbers import among
from hypothesis import given
from hypothesis import strategies as st
from references import criterion_about, k_alone, may_be_a_group, no_values, sensitive_attributes

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.paying_separation import separate_where_paying
from anonspark.kernels.separation import distinct_points, nearest_to_reference
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.outliers.separation import spans_of

TREE = Hierarchy.from_rows(
    [
        ("Ankara", "west", "Asia", "*"),
        ("Bursa", "west", "Asia", "*"),
        ("Van", "east", "Asia", "*"),
        ("Bonn", "Rhine", "Europe", "*"),
        ("Köln", "Rhine", "Europe", "*"),
        ("Ulm", "Danube", "Europe", "*"),
    ]
)


def number(name: str, *, missing: bool, weight: float = 1.0) -> QuasiIdentifier:
    return QuasiIdentifier(name, "integer", pa.int64(), 0, 20, has_missing=missing, weight=weight)


def place(*, missing: bool) -> QuasiIdentifier:
    leaves = TREE.leaves
    return QuasiIdentifier(
        "place", "category", pa.string(), 0, len(leaves) - 1, categories=leaves,
        has_missing=missing, weight=2.0, hierarchy=TREE,
    )  # fmt: skip


def colour(*, missing: bool) -> QuasiIdentifier:
    names = ("blue", "green", "red", "white")
    return QuasiIdentifier(
        "colour", "category", pa.string(), 0, 3, categories=names, has_missing=missing
    )


@dataclass(frozen=True)
class Case:
    """One group of records, and what it is judged by."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    codes: np.ndarray
    values: np.ndarray
    criteria: Criteria
    price: float
    by_density: bool

    @property
    def normalized(self) -> np.ndarray:
        columns = [
            one.normalized(one.positions(self.codes[:, j]))
            for j, one in enumerate(self.quasi_identifiers)
        ]
        return np.ascontiguousarray(np.stack(columns, axis=1))

    @property
    def order(self) -> np.ndarray:
        order = np.arange(len(self.codes))
        sort_groups(self.codes, np.arange(len(self.codes)), order, np.array([0, len(order)]))
        return order

    def penalty(self, records: list[int]) -> float:
        """Return what each record of a class would lose, by the code that publishes it."""
        generalizer = Generalizer(self.quasi_identifiers, "interval", shows_missing=True)
        group = np.array([0, len(records)])
        return float(generalizer.penalty(self.codes[records], group)[0]) / len(records)


def kept_by_kernel(case: Case) -> set[int]:
    order = case.order
    kept = separate_where_paying(
        case.codes,
        case.normalized,
        case.values,
        order,
        np.array([0, len(order)]),
        case.criteria.requirements,
        spans_of(case.quasi_identifiers),
        3,
        case.by_density,
        case.price,
    )
    return set(order[kept].tolist())


def boxes_by_reference(case: Case) -> dict[frozenset[int], float]:
    """Return what may be kept, with its cost: the box of every prefix, with all that it holds."""
    order = case.order
    size = len(order)
    first = distinct_points(case.codes, order, 0, size)
    nearest = nearest_to_reference(case.normalized, order, first, 3, case.by_density)
    prefix: list[int] = []
    boxes = {}
    for point in nearest:
        prefix += order[first[point] : first[point + 1]].tolist()
        penalty = case.penalty(prefix)
        kept = [
            record
            for record in order.tolist()
            if case.penalty([*prefix, record]) == pytest.approx(penalty, abs=1e-12)
        ]
        if may_be_a_group(case.criteria, case.values, kept):
            boxes[frozenset(kept)] = len(kept) * penalty + (size - len(kept)) * case.price
    return boxes


def assert_cheapest(case: Case, kept: set[int]) -> None:
    boxes = boxes_by_reference(case)
    least = min(boxes.values())
    assert boxes[frozenset(kept)] == pytest.approx(least, rel=1e-8, abs=1e-12)
    # Of equally cheap boxes the largest.
    equal = [box for box, cost in boxes.items() if cost == pytest.approx(least, rel=1e-12)]
    assert len(kept) >= max(map(len, equal))


@st.composite
def cases(draw: st.DrawFn, *, beyond_k: bool = False) -> Case:
    """Draw a group with many ties, of numbers, a hierarchy and plain categories."""
    kinds = [
        number("age", missing=draw(st.booleans())),
        number("income", missing=False, weight=0.5),
        place(missing=draw(st.booleans())),
        colour(missing=draw(st.booleans())),
    ]
    chosen = draw(st.lists(st.sampled_from(range(4)), min_size=1, max_size=3, unique=True))
    quasi_identifiers = tuple(kinds[index] for index in chosen)
    k = draw(st.integers(1, 5))
    size = draw(st.integers(k + 1, 24))
    columns = []
    for one in quasi_identifiers:
        largest = one.missing_code if one.has_missing else one.highest
        ends, every = among(draw, size, [0, 1, largest]), among(draw, size, range(largest + 1))
        columns.append(np.where(among(draw, size, [False, True]), ends, every))
    values, criteria = no_values(size), k_alone(k)
    if beyond_k:
        own = among(draw, size, range(3))
        values = own[:, None]
        attribute = draw(sensitive_attributes("disease", np.bincount(own, minlength=3)))
        drawn = [draw(criterion_about([attribute])) for _ in range(draw(st.integers(1, 3)))]
        # Groups satisfy the criteria, so the whole one does.
        everybody = list(range(size))
        satisfied = tuple(
            one
            for one in drawn
            if may_be_a_group(Criteria(1, (one,), (attribute,)), values, everybody)
        )
        criteria = Criteria(k, satisfied, (attribute,))
    return Case(
        quasi_identifiers,
        np.array(columns, np.int64).T.copy(),
        values,
        criteria,
        draw(st.sampled_from([0.0, 0.05, 0.3, 1.0, 100.0])),
        draw(st.booleans()),
    )


@given(case=cases())
def test_the_cheapest_box_is_kept(case: Case) -> None:
    kept = kept_by_kernel(case)
    assert_cheapest(case, kept)
    assert len(kept) >= case.criteria.k
    everybody = list(range(len(case.codes)))
    cost = len(kept) * case.penalty(sorted(kept)) + (len(everybody) - len(kept)) * case.price
    assert cost <= len(everybody) * case.penalty(everybody) + 1e-9


@given(case=cases(beyond_k=True))
def test_the_cheapest_box_that_satisfies_the_criteria_is_kept(case: Case) -> None:
    kept = kept_by_kernel(case)
    assert_cheapest(case, kept)
    assert may_be_a_group(case.criteria, case.values, sorted(kept))


def ages(*codes: int, k: int, price: float) -> Case:
    values = no_values(len(codes))
    column = np.array(codes, np.int64)[:, None]
    return Case((number("age", missing=False),), column, values, k_alone(k), price, False)


def test_equal_records_stay_together() -> None:
    # As published, all but three would be given up, and lose elsewhere what they do not lose here.
    assert kept_by_kernel(ages(*[4] * 50, k=3, price=0.0)) == set(range(50))
    with_others = ages(*[4] * 50, 18, 19, k=3, price=0.1)
    assert kept_by_kernel(with_others) == set(range(50))


def test_nothing_is_given_up_that_loses_more_elsewhere() -> None:
    case = ages(1, 2, 3, 4, 5, 20, k=3, price=100.0)
    assert kept_by_kernel(case) == set(range(6))


def test_a_missing_value_costs_nothing_where_all_are_covered() -> None:
    codes = np.array([[0], [0], [0], [3], [6]], np.int64)
    case = Case((place(missing=True),), codes, no_values(5), k_alone(4), 0.0, False)
    # Ankara and Bonn have nothing but the root in common.
    assert kept_by_kernel(case) == set(range(5))


def test_groups_of_k_are_kept() -> None:
    assert kept_by_kernel(ages(0, 10, 20, k=3, price=0.0)) == {0, 1, 2}
