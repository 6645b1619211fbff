"""What a label covers, asked in every way: each of them counts the values of a small domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.labels.axes import Axis
from anonspark.labels.region_axes import sets_of_codes
from anonspark.labels.regions import Leaves, PublishedAttribute, read_regions
from anonspark.reading.attributes import FIRST, CategorySet, OrderedSet, ReadAttribute
from anonspark.reading.shares import regions_of
from anonspark.reporting.bins import Bins
from anonspark.reporting.marginals import (
    GroupAxis,
    Groups,
    OrderedAxis,
    numbers_axis,
    spread_present,
)

LETTERS = "abcdef"

GROUPS = {"a": ["a"], "f": ["f"], "few": ["b", "c"], "many": ["d", "e", "f"], "all": [*LETTERS]}


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
    parts = OrderedAxis(Bins("whole", (float(edge),)), axis).parts(regions)[numbers]
    np.testing.assert_allclose(parts[:, 0], below)
    quickly, places = axis.spread([column])
    np.testing.assert_array_equal(quickly.low[places], [low for low, _ in ends])
    np.testing.assert_array_equal(quickly.high[places], [high for _, high in ends])

    exact, runs = sets_of_codes(regions, "integer", None)
    values = range(-1, 32)
    codes = exact.encode(pa.array(values))
    assert [held(values, codes, runs[number]) for number in numbers] == list(map(list, covered))

    asked = regions_of(ReadAttribute("x", kind, ("x",), published), [column])
    wanted = OrderedSet((FIRST, (edge, 0)))
    np.testing.assert_allclose(asked.shares(wanted), below)
    assert asked.may_have(wanted).tolist() == [share > 0 for share in below]


def held(values: Iterable[Any], codes: Any, runs: Any) -> list[Any]:
    """Return the values whose codes lie in runs."""
    pairs = zip(values, codes, strict=True)
    return [value for value, code in pairs if any(low <= code <= high for low, high in runs)]


@settings(max_examples=40)
@given(
    sets=st.lists(st.sets(st.sampled_from([*LETTERS, None]), min_size=1), min_size=1, max_size=6),
    named=st.sets(st.sampled_from(LETTERS)),
)
def test_values_of_sets_are_counted(sets: list[set[str | None]], named: set[str]) -> None:
    column = pa.array([sorted(one, key=str) for one in sets], pa.list_(pa.string()))
    require_counted(column, PublishedAttribute("x", "category", "bounds", ("x",)), sets, named)


@settings(max_examples=40)
@given(
    labels=st.lists(st.tuples(st.sampled_from([*GROUPS]), st.booleans()), min_size=1, max_size=6),
    named=st.sets(st.sampled_from(LETTERS)),
)
def test_values_of_groups_are_counted(labels: list[tuple[str, bool]], named: set[str]) -> None:
    column = pa.array([f"{label}{' or missing' * missing}" for label, missing in labels])
    sets = [{*GROUPS[label], *[None] * missing} for label, missing in labels]
    published = PublishedAttribute("x", "category", "interval", ("x",))
    require_counted(column, published, sets, named, GROUPS)


def require_counted(
    column: pa.Array,
    published: PublishedAttribute,
    sets: Sequence[set[str | None]],
    named: set[str],
    leaves: Leaves | None = None,
) -> None:
    """Check that every reading of a column counts the values of its sets."""
    inside = [float(Fraction(len(one & named), len(one))) for one in sets]

    regions, numbers = read_regions([column], published, leaves)
    axis = Axis.of_regions(published, regions, leaves, whole=True)
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

    exact, runs = sets_of_codes(regions, None, leaves)
    codes = [*exact.encode(pa.array([*LETTERS])), exact.missing]
    assert [{*held([*LETTERS, None], codes, runs[number])} for number in numbers] == list(sets)

    asked = regions_of(ReadAttribute("x", "category", ("x",), published, leaves), [column])
    wanted = CategorySet(frozenset(named))
    np.testing.assert_allclose(asked.shares(wanted), inside, atol=1e-12)
    assert asked.may_have(wanted).tolist() == [bool(one & named) for one in sets]
