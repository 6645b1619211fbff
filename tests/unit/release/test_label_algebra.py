"""What a label covers, asked in every way: evaluations, questions and reports count its values."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.reading.attributes import ReadAttribute
from anonspark.reading.sets import FIRST, CategorySet, OrderedSet
from anonspark.reading.shares import regions_of
from anonspark.release.axes import Axis
from anonspark.release.regions import PublishedAttribute, read_regions
from anonspark.reporting.axes import (
    GroupAxis,
    OrderedAxis,
    numbers_axis,
    spread_present,
)
from anonspark.reporting.bins import Bins
from anonspark.reporting.groups import Groups

LETTERS = "abcdef"


def day(number: int) -> str:
    return str(date(1970, 1, 1) + timedelta(days=number))


@pytest.mark.parametrize(
    ("kind", "written", "divider"), [("integer", str, "-"), ("date", day, "/")]
)
@settings(max_examples=40)
@given(
    ends=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6),
    edge=st.integers(-1, 32),
)
def test_values_of_intervals_are_counted(
    kind: Any, written: Any, divider: str, ends: list[tuple[int, int]], edge: int
) -> None:
    ends = [(min(one), max(one)) for one in ends]
    labels = [
        written(low) if low == high else f"[{written(low)}{divider}{written(high)}]"
        for low, high in ends
    ]
    covered = [range(low, high + 1) for low, high in ends]
    below = [float(Fraction(sum(own < edge for own in one), len(one))) for one in covered]
    published = PublishedAttribute("x", kind, "interval", ("x",))
    column = pa.array(labels)

    regions, numbers = read_regions([column], published)
    axis = numbers_axis(published)
    spread = spread_present(axis, regions)
    shares = spread.shares(np.array([-np.inf]), np.array([edge - 1.0]))[numbers, 0]
    np.testing.assert_allclose(shares, below)
    np.testing.assert_allclose(
        spread.centers()[numbers], [sum(one) / len(one) for one in covered], atol=1e-9
    )
    parts = OrderedAxis(Bins("whole", (float(edge),)), 0.0, 1.0, axis).parts(regions)[numbers]
    np.testing.assert_allclose(parts[:, 0], below)
    quickly, places = axis.spread([column])
    np.testing.assert_array_equal(quickly.low[places], [low for low, _ in ends])
    np.testing.assert_array_equal(quickly.high[places], [high for _, high in ends])

    asked = regions_of(ReadAttribute("x", kind, ("x",), published), [column])
    wanted = OrderedSet((FIRST, (edge, 0)))
    np.testing.assert_allclose(asked.shares(wanted), below)
    assert asked.may_have(wanted).tolist() == [share > 0 for share in below]


@settings(max_examples=40)
@given(
    sets=st.lists(st.sets(st.sampled_from([*LETTERS, None]), min_size=1), min_size=1, max_size=6),
    named=st.sets(st.sampled_from(LETTERS)),
)
def test_values_of_sets_are_counted(sets: list[set[str | None]], named: set[str]) -> None:
    members = [sorted(one, key=str) for one in sets]
    column = pa.array(members, pa.list_(pa.string()))
    published = PublishedAttribute("x", "category", "bounds", ("x",))
    inside = [float(Fraction(len(one & named), len(one))) for one in sets]

    regions, numbers = read_regions([column], published)
    axis = Axis.of_regions(published, regions, whole=True)
    assert [set(axis.texts_of(regions[number])) for number in numbers] == [
        one - {None} for one in sets
    ]
    spread, places = axis.spread([column])
    positions = np.flatnonzero([text in named for text in axis.texts]).astype(np.float64)
    np.testing.assert_allclose(spread.share_of(positions)[places], inside)
    np.testing.assert_allclose(
        spread.shares(positions, positions).sum(axis=1)[places], inside, atol=1e-12
    )
    groups = Groups(("named", "others"), dict.fromkeys(named, 0))
    parts = GroupAxis(groups, axis).parts(regions)[numbers]
    np.testing.assert_allclose(parts[:, 0], inside, atol=1e-12)
    np.testing.assert_allclose(parts[:, 2], [(None in one) / len(one) for one in sets])

    asked = regions_of(ReadAttribute("x", "category", ("x",), published), [column])
    wanted = CategorySet(frozenset(named))
    np.testing.assert_allclose(asked.shares(wanted), inside, atol=1e-12)
    assert asked.may_have(wanted).tolist() == [bool(one & named) for one in sets]
