"""Regions spread over the values that they cover, against counting value by value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.uniform_mass import Runs, joined_runs, spread_out

WHOLE = st.integers(-20, 20).map(float)


def run_lists(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, float]]]:
    pairs = st.tuples(values, values).map(lambda pair: (min(pair), max(pair)))
    return st.lists(pairs, min_size=1, max_size=4)


def share_by_counting(region: Runs, low: float, high: float) -> float:
    """Every covered whole number once, and those without a place."""
    covered = [value for first, last in region.ends for value in range(int(first), int(last) + 1)]
    inside = sum(low <= value <= high for value in covered)
    return inside / (len(covered) + region.elsewhere + region.missing)


def share_by_sampling(region: Runs, low: float, high: float) -> float:
    """The middles of many equal pieces, each piece inside or not."""
    pieces = 20_000
    inside = length = 0.0
    for first, last in region.ends:
        middles = first + (np.arange(pieces) + 0.5) * (last - first) / pieces
        inside += ((middles >= low) & (middles <= high)).mean() * (last - first)
        length += last - first
    return inside / length


@given(
    st.lists(
        st.builds(
            lambda runs, missing, elsewhere: Runs(
                joined_runs(runs, whole=True), missing, elsewhere
            ),
            run_lists(WHOLE),
            st.booleans(),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=5),
)
def test_whole_numbers_are_counted(regions: list[Runs], ranges: list[tuple[float, float]]) -> None:
    low, high = np.array(ranges).T
    found = spread_out(regions, whole=True).shares(low, high)
    expected = [[share_by_counting(region, *one) for one in ranges] for region in regions]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(
    run_lists(st.floats(-20, 20).map(lambda value: round(value, 3))),
    st.floats(-25, 25),
    st.floats(0, 20),
)
def test_lengths_are_shared_out(runs: list[tuple[float, float]], low: float, width: float) -> None:
    region = Runs(joined_runs(runs, whole=False))
    if not any(first < last for first, last in region.ends):
        region = Runs(((0.0, 1.0),))
    spread = spread_out([region], whole=False)
    found = spread.shares(np.array([low]), np.array([low + width]))[0, 0]
    assert found == pytest.approx(share_by_sampling(region, low, low + width), abs=1e-3)


@given(run_lists(WHOLE), st.booleans())
def test_joined_runs_cover_the_same_values_once(
    runs: list[tuple[float, float]], whole: bool
) -> None:
    joined = joined_runs(runs, whole=whole)
    points = np.arange(-21, 21.5, 0.5) if not whole else np.arange(-21, 22)
    for point in points:
        expected = any(first <= point <= last for first, last in runs)
        assert sum(first <= point <= last for first, last in joined) == expected


@given(st.lists(WHOLE, min_size=1, max_size=20), st.booleans())
def test_single_values_are_in_a_range_or_not(values: list[float], whole: bool) -> None:
    spread = spread_out([Runs(((value, value),)) for value in values], whole=whole)
    low, high = np.array([-5.0, 3.0, -30.0]), np.array([5.0, 3.0, 30.0])
    found = spread.shares(low, high)
    column = np.array(values)[:, None]
    np.testing.assert_array_equal(found, (low <= column) & (column <= high))
    np.testing.assert_array_equal(spread.centers(), values)


def test_missing_is_one_more_value_and_nothing_beside_a_length() -> None:
    everything = (np.array([-np.inf]), np.array([np.inf]))
    counted = spread_out([Runs(((1.0, 3.0),), missing=True), Runs((), missing=True)], whole=True)
    np.testing.assert_allclose(counted.shares(*everything)[:, 0], [0.75, 0.0])
    np.testing.assert_allclose(counted.missing, [0.25, 1.0])
    assert np.isnan(counted.centers()[1])
    long = spread_out([Runs(((1.0, 3.0),), missing=True)], whole=False)
    assert long.shares(*everything)[0, 0] == 1.0
    assert long.missing[0] == 0.0


def test_centers_are_means_of_the_covered_values() -> None:
    regions = [Runs(((17.0, 25.0),)), Runs(((1.0, 2.0), (9.0, 9.0))), Runs((), elsewhere=2)]
    centers = spread_out(regions, whole=True).centers()
    np.testing.assert_allclose(centers[:2], [21.0, 4.0])
    assert np.isnan(centers[2])


def test_many_runs_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    regions = []
    for _ in range(50):
        starts = np.cumsum(random.integers(2, 9, random.integers(1, 6))).astype(float)
        regions.append(Runs(tuple((start, start + 1) for start in starts.tolist())))
    spread = spread_out(regions, whole=True)
    low = random.integers(0, 20, 7).astype(float)
    high = low + random.integers(0, 10, 7)
    whole = spread.shares(low, high)
    monkeypatch.setattr("anonspark.core.uniform_mass._BLOCK", 20)
    np.testing.assert_array_equal(spread.shares(low, high), whole)


def test_a_region_covers_something() -> None:
    with pytest.raises(ValueError, match="covers nothing"):
        spread_out([Runs(())], whole=True)
