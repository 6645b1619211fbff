"""Distinct values of people, each of whom may have several values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from references import most_values_with_people

from anonspark.core.criteria import Criteria, PeopleOfGroup, SensitiveAttribute, Units, paired
from anonspark.core.criterion import Criterion
from anonspark.kernels.criteria import group_satisfies, judge
from anonspark.kernels.people import match_values

NONE = np.zeros(0, np.int64)

Pairs = list[tuple[int, int]]
"""A value, and a person who has it."""

groups = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=10, unique=True
)


def distinct(least: int, table: Pairs) -> Criteria:
    attribute = SensitiveAttribute("s", "s", pa.array(range(4)), np.ones(4, np.int64), NONE, NONE)
    units = Units(len({u for _, u in table}), len(table), len(table))
    return Criteria(1, (Criterion("s", "distinct", least),), (attribute,), units)


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


@given(pairs=groups, most=st.integers(1, 5))
@example(pairs=[(0, 0), (1, 0), (1, 1), (2, 1), (2, 0)], most=3)
def test_values_that_have_a_person_each(pairs: Pairs, most: int) -> None:
    ordered = np.array(sorted(pairs), np.int64)
    chosen = match_values(ordered[:, 0].copy(), ordered[:, 1].copy(), most)
    assert len(chosen) == min(most_values_with_people(pairs), most)
    own = ordered[chosen]
    assert len(set(own[:, 0].tolist())) == len(set(own[:, 1].tolist())) == len(chosen)


@given(pairs=groups, least=st.integers(1, 4), data=st.data())
def test_a_group_whichever_of_their_values_people_stand_for(
    pairs: Pairs, least: int, data: st.DataObject
) -> None:
    require_whichever(least, pairs, data.draw(st.integers(1, len(pairs))))


def test_as_many_values_and_people_as_asked_for_that_do_not_match() -> None:
    pairs = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert not holds(distinct(3, pairs), pairs, len(pairs))[0]
    require_whichever(3, pairs, len(pairs))


def require_whichever(least: int, pairs: Pairs, stop: int) -> None:
    """Require of the first records that they are judged whatever values their people stand for."""
    own = pairs[:stop]
    criteria = distinct(least, pairs)
    found, missing = holds(criteria, pairs, stop)
    most = most_values_with_people(own)
    assert found == (most >= least)
    people = PeopleOfGroup(len({u for _, u in own}), [min(most, least)])
    assert found == (criteria.violated_by_people(people) is None)
    # What it takes to mend it is never told to be more than it is.
    if not found:
        assert missing >= 1
        for longer in range(stop + 1, min(stop + missing, len(pairs))):
            assert not holds(criteria, pairs, longer)[0]
