"""Criteria that count people, beside all ways in which each person stands for one value."""

from __future__ import annotations

from itertools import product
from math import exp, log

import numpy as np
import pyarrow as pa
from hypothesis import example, given, note
from hypothesis import strategies as st
from references import most_values_with_people

from anonspark.core.criteria import Criteria, PeopleOfGroup, Units, paired
from anonspark.core.criterion import Criterion
from anonspark.core.sensitive import SensitiveAttribute
from anonspark.kernels.criteria import group_satisfies, judge
from anonspark.kernels.people import match_values

NONE = np.zeros(0, np.int64)

Pairs = list[tuple[int, int]]
"""A value, and a person who has it."""

groups = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=10, unique=True
)


def each_assignment(pairs: Pairs) -> list[tuple[int, ...]]:
    """Return the values that people stand for, of all ways to choose one each."""
    people = sorted({u for _, u in pairs})
    return list(product(*([v for v, owner in pairs if owner == u] for u in people)))


def assignments(pairs: Pairs) -> list[list[int]]:
    """Return the numbers of people who stand for each value, of all ways to choose one each."""
    return [[way.count(v) for v in set(way)] for way in each_assignment(pairs)]


def criteria_of(kind: str, bound: float, c: float, table: Pairs, k: int = 1) -> Criteria:
    people = np.array([len({u for v, u in table if v == value}) for value in range(4)])
    number = len({u for _, u in table})
    attribute = SensitiveAttribute(
        "s",
        "s",
        pa.array(range(4)),
        np.ones(4, np.int64),
        NONE,
        NONE,
        people=people,
        even_shares=even_shares(table),
    )
    units = Units(number, len(table), len(table))
    return Criteria(k, (Criterion("s", kind, bound, c),), (attribute,), units)


def even_shares(table: Pairs) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the share of each value where people count as one, in equal parts."""
    people = {u for _, u in table}
    shares = np.zeros(4)
    for u in people:
        own = [v for v, owner in table if owner == u]
        shares[own] += 1 / len(own) / len(people)
    return shares


def holds(criteria: Criteria, table: Pairs, stop: int) -> tuple[bool, int]:
    """Return whether the first records are a group that satisfies, and the records that lack."""
    values, pairs = paired(np.array(table, np.int64))
    requirements = criteria.requirements_among(pairs)
    counts = np.zeros(len(requirements.shares), np.int64)
    order = np.arange(len(table))
    own = group_satisfies(requirements, values, order, 0, stop, counts, np.empty_like(counts))
    present = np.unique(values[:stop])
    room = np.concatenate([present, np.zeros(len(counts) - len(present), np.int64)])
    counts[present] = 1
    _, missing = judge(requirements, counts, room, len(present), stop)
    return bool(own), int(missing)


def of_group(pairs: Pairs, most: int) -> PeopleOfGroup:
    counts = np.array([sum(v == value for v, _ in pairs) for value in range(4)])
    people = {u for _, u in pairs}
    ranges = []
    for end in (min, max):
        ends = [end(v for v, owner in pairs if owner == u) for u in people]
        ranges.append(np.bincount(ends, minlength=4).astype(np.int64))
    matched = [min(most_values_with_people(pairs), most)]
    return PeopleOfGroup(len(people), [counts], matched, [(ranges[0], ranges[1])])


@given(pairs=groups, most=st.integers(1, 5))
@example(pairs=[(0, 0), (1, 0), (1, 1), (2, 1), (2, 0)], most=3)
def test_values_that_have_a_person_each(pairs: Pairs, most: int) -> None:
    ordered = np.array(sorted(pairs), np.int64)
    chosen = match_values(ordered[:, 0].copy(), ordered[:, 1].copy(), most)
    assert len(chosen) == min(most_values_with_people(pairs), most)
    own = ordered[chosen]
    assert len(set(own[:, 0].tolist())) == len(set(own[:, 1].tolist())) == len(chosen)


BOUNDS: list[tuple[str, float, float]] = [
    ("distinct", 2.0, 0.0),
    ("distinct", 3.0, 0.0),
    ("entropy", 1.7, 0.0),
    ("entropy", 2.0, 0.0),
    ("recursive", 2.0, 1.6),
    ("recursive", 3.0, 3.0),
    ("alpha", 0.5, 0.0),
    ("alpha", 0.7, 0.0),
    ("beta", 0.3, 0.0),
    ("equal distance", 0.2, 0.0),
    ("equal distance", 0.4, 0.0),
    ("ordered distance", 0.2, 0.0),
    ("ordered distance", 0.35, 0.0),
]


@given(pairs=groups, data=st.data())
def test_a_group_whichever_of_their_values_people_stand_for(
    pairs: Pairs, data: st.DataObject
) -> None:
    stop = data.draw(st.integers(1, len(pairs)))
    for kind, bound, c in BOUNDS:
        note(f"{kind} {bound} {c}")
        require_whichever(kind, bound, c, pairs, stop)


def test_as_many_values_and_people_as_asked_for_that_do_not_match() -> None:
    pairs = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert not holds(criteria_of("distinct", 3.0, 0.0, pairs), pairs, len(pairs))[0]
    require_whichever("distinct", 3.0, 0.0, pairs, len(pairs))


def require_whichever(kind: str, bound: float, c: float, pairs: Pairs, stop: int) -> None:
    """Require of the first records that they are judged whatever values their people stand for."""
    own = pairs[:stop]
    criteria = criteria_of(kind, bound, c, pairs)
    found, missing = holds(criteria, pairs, stop)
    assert found == (criteria.violated_by_people(of_group(own, int(bound))) is None)
    # What it takes to mend it is never told to be more than it is.
    if not found:
        assert missing >= 1
        for longer in range(stop + 1, min(stop + missing, len(pairs))):
            assert not holds(criteria, pairs, longer)[0]
    people = len({u for _, u in own})
    shares = {v: sum(v == value for value, _ in own) / people for v in range(4)}
    if kind == "distinct":
        assert found == (most_values_with_people(own) >= bound)
    elif kind == "alpha":
        assert found == (max(shares.values()) <= bound + 1e-12)
    elif kind == "beta":
        number = len({u for _, u in pairs})
        of_all = {v: sum(v == value for value, _ in pairs) / number for v in range(4)}
        assert found == all(shares[v] <= (1 + bound) * of_all[v] * (1 + 1e-12) for v in range(4))
    elif kind == "equal distance":
        expected = even_shares(pairs)
        far = sum(max(shares[v] - expected[v], 0.0) for v in range(4))
        assert found == (min(far, 1.0) <= bound + 1e-12)
        for way in each_assignment(own) if found else ():
            own_shares = [way.count(v) / people for v in range(4)]
            assert 0.5 * sum(map(abs, own_shares - expected)) <= bound + 1e-9
    elif kind == "ordered distance":
        expected = np.cumsum(even_shares(pairs))
        for way in each_assignment(own) if found else ():
            below = np.cumsum([way.count(v) / people for v in range(4)])
            assert np.abs(below - expected).sum() / 3 <= bound + 1e-9
    elif found:
        for way in assignments(own):
            if kind == "entropy":
                entropy = -sum(n / people * log(n / people) for n in way)
                assert exp(entropy) >= bound - 1e-9
            else:
                descending = sorted(way, reverse=True)
                assert descending[0] < c * sum(descending[int(bound) - 1 :])


def test_people_of_one_value_each_are_records() -> None:
    """Where nobody has two values in a group the bounds are met by it, not by the worst case."""
    pairs = [(0, 0), (0, 1), (1, 2), (2, 3)]
    entropy = exp(-(0.5 * log(0.5) + 2 * 0.25 * log(0.25)))
    for bound, expected in ((entropy, True), (entropy + 1e-6, False)):
        assert holds(criteria_of("entropy", bound, 0.0, pairs), pairs, 4)[0] == expected
    for c, expected in ((1.01, True), (1.0, False)):
        assert holds(criteria_of("recursive", 2, c, pairs), pairs, 4)[0] == expected


def test_a_share_is_not_closed_under_union() -> None:
    """Two people, each with either value in another class: both classes keep it, not together."""
    pairs = [(0, 0), (1, 1), (1, 0), (0, 1)]
    criteria = criteria_of("alpha", 0.5, 0.0, pairs)
    assert holds(criteria, pairs, 2)[0]
    assert holds(criteria, pairs[2:], 2)[0]
    assert not holds(criteria, pairs, 4)[0]
