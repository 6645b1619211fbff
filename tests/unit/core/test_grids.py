"""Grids and regions spread over their values, against counting value by value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.grids import CALENDAR_UNITS, UnfitGridError, default_grid, grid_text, read_grid
from anonspark.core.labels import Kind, value_labels
from anonspark.core.queries import Domain, Queries, draw_queries
from anonspark.core.uniform_mass import Runs, joined_runs, spread_out

STEPS: dict[Kind, list[float | str]] = {
    "integer": [1, 2, 5, 10, 2000],
    "float": [0.1, 0.05, 0.002, 3, 2.5, 1000],
    "decimal": [0.1, 0.05, 1, 2.5, 1000],
    "date": list(CALENDAR_UNITS[2:]),
    "timestamp": list(CALENDAR_UNITS),
}
TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "decimal": pa.decimal128(18, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
MOST = {"date": 200_000, "timestamp": 10**16}


@st.composite
def coarse(draw: st.DrawFn) -> tuple[QuasiIdentifier, list[int | float]]:
    """Return an attribute with a grid, or with ends, and some of its values."""
    kind: Kind = draw(st.sampled_from(list(STEPS)))
    most = MOST.get(kind, 10**6)
    whole = st.integers(-most, most)
    some = st.one_of(st.floats(-1e6, 1e6), whole.map(float), whole.map(lambda one: one / 10))
    values = draw(st.lists(some if kind == "float" else whole, min_size=1, max_size=20))
    step = draw(st.sampled_from([None, *STEPS[kind]]))
    grid = None if step is None else read_grid(step, kind)
    ends = [Fraction(draw(whole)), Fraction(draw(whole))]
    bottom, top = min(ends), max(ends)
    own = QuasiIdentifier(
        "x", kind, TYPES[kind], 0, -1, scale=2 * (kind == "decimal"), grid=grid,
        bottom=draw(st.sampled_from([None, bottom])),
        top=draw(st.sampled_from([None, top])) if bottom < top else None,
    )  # fmt: skip
    return own, values


@given(coarse())
def test_values_lie_in_their_strips(drawn: tuple[QuasiIdentifier, list[int | float]]) -> None:
    own, values = drawn
    codes = np.array([own.code_of(Fraction(value)) for value in values])
    lines = own.coarsened(codes)
    low, high = own.first(lines), own.last(lines)
    below = np.zeros(len(codes), bool) if own.bottom is None else codes <= own.bottom_code
    above = np.zeros(len(codes), bool) if own.top is None else codes >= own.top_code
    assert ((low <= codes) & (codes <= high))[~below & ~above].all()
    assert (lines[below] == own.bottom_code).all()
    assert (lines[above] == own.top_code).all()
    if own.grid is not None and own.kind in ("integer", "float", "decimal"):
        is_zero = (codes == 0) & ~below & ~above
        assert not low[is_zero].any()
        assert not high[is_zero].any()
    # Equal for equal strips, in order, and the same from whichever value of the strip.
    in_order = lines[np.argsort(codes)]
    assert (in_order[1:] >= in_order[:-1]).all()
    assert (own.coarsened(lines) == lines).all()
    for ends, upper in ((low, False), (high, True)):
        column = own.decode(ends)
        as_read = column if own.kind in ("integer", "float", "decimal") else pa.array(ends)
        assert own.may_end(as_read, None, upper=upper).all()
    if own.grid is not None and own.kind in ("float", "decimal"):
        step, outer = Fraction(own.grid.step), {own.bottom, own.top}
        for end in (*low.tolist(), *high.tolist()):
            # As it is written in decimal, not as the float that is nearest to it.
            text = value_labels(own.decode(np.array([end])), own.kind)[0].as_py()
            assert Fraction(text) % step == 0 or own.value_of(end) in outer


@given(st.integers(1, 10**9), st.integers(0, 6), st.integers(-(10**9), 10**9))
def test_the_default_has_some_hundred_steps(width: int, places: int, low: int) -> None:
    start, size = Fraction(low, 10**places), Fraction(width, 10**places)
    grid = default_grid("float", start, start + size, 0)
    assert grid is not None
    assert 200 <= size / Fraction(grid.step) <= 500
    assert str(float(grid.step)).strip("0.e-+")[0] in "125"
    whole = default_grid("integer", Fraction(low), Fraction(low + width), 0)
    assert whole is not None
    assert whole.step == 1 or 200 <= Fraction(width) / Fraction(whole.step) <= 500


@pytest.mark.parametrize(
    ("kind", "days", "step"),
    [
        ("date", 3, "day"),
        ("date", 839, "day"),
        ("date", 840, "week"),
        ("date", 3599, "week"),
        ("date", 3600, "month"),
        ("timestamp", 1 / 1440, "minute"),
        ("timestamp", 5, "hour"),
        ("timestamp", 120, "day"),
        ("timestamp", 36000, "month"),
    ],
)
def test_the_default_of_days(kind: Kind, days: float, step: str) -> None:
    width = Fraction(days) * (1 if kind == "date" else 86_400_000_000)
    grid = default_grid(kind, Fraction(5), 5 + width, 0)
    assert grid is not None
    assert grid_text(grid) == step


@pytest.mark.parametrize(
    ("step", "kind"),
    [(0.5, "integer"), ("month", "integer"), (3, "date"), ("hour", "date"), (1, "category")],
)
def test_unfit_grids(step: float | str, kind: Kind) -> None:
    with pytest.raises(UnfitGridError):
        read_grid(step, kind)


def smooth(steps: int = 1000) -> Domain:
    return Domain(np.arange(steps + 0.0), np.full(steps, 1 / steps), evenly=False)


def texts(*shares: float) -> Domain:
    return Domain(np.arange(len(shares) + 0.0), np.array(shares), evenly=True)


def selected(queries: Queries, domains: list[Domain]) -> np.ndarray:
    """Return the share of the records, if attributes are independent."""
    share = np.ones(len(queries))
    for place, domain in enumerate(domains):
        inside = (queries.low[place][:, None] <= domain.values) & (
            domain.values <= queries.high[place][:, None]
        )
        share[queries.asked[place]] *= (inside @ domain.shares)[queries.asked[place]]
    return share


@given(st.integers(1, 4), st.integers(0, 2), st.floats(0.01, 1.0), st.integers(0, 2**32))
def test_queries_ask_for_some_attributes_and_one_filter(
    d: int, filters: int, selectivity: float, seed: int
) -> None:
    domains = [smooth(50), texts(0.9, 0.1), smooth(), texts(0.2, 0.3, 0.5)][:d]
    sensitive = [texts(0.75, 0.25), smooth(10)][:filters]
    arguments = {"count": 50, "selectivity": selectivity, "seed": seed}
    queries = draw_queries(domains, sensitive, **arguments)
    again = draw_queries(domains, sensitive, **arguments)
    number = queries.asked[:d].sum(axis=0)
    assert number.min() >= 1
    assert number.max() <= d
    assert (queries.asked[d:].sum(axis=0) == bool(filters)).all()
    assert (queries.low <= queries.high)[queries.asked].all()
    for place, domain in enumerate([*domains, *sensitive]):
        asked = queries.asked[place]
        assert np.isin(queries.low[place, asked], domain.values).all()
        assert np.isin(queries.high[place, asked], domain.values).all()
    np.testing.assert_array_equal(queries.low, again.low)
    np.testing.assert_array_equal(queries.high, again.high)
    np.testing.assert_array_equal(queries.asked, again.asked)


def test_smooth_attributes_make_up_for_those_with_few_values() -> None:
    domains, income = [smooth(), smooth()], texts(0.75, 0.25)
    queries = draw_queries(domains, [income], count=2000, selectivity=0.05)
    share = selected(queries, [*domains, income])
    # Ranges that begin near the largest value end there, so that it is somewhat less.
    assert 0.025 < share.mean() < 0.055
    assert np.quantile(share, 0.75) == pytest.approx(0.05, rel=0.1)
    # A filter of two values filters.
    both = (queries.low[2] == 0) & (queries.high[2] == 1)
    assert not both.any()


def test_a_whole_table_is_asked_for() -> None:
    queries = draw_queries([texts(1.0)], [], count=3, selectivity=1.0)
    assert queries.asked.all()
    assert (queries.low == 0).all()
    assert (queries.high == 0).all()


def test_another_seed_asks_for_something_else() -> None:
    one, other = (
        draw_queries([smooth()], [], count=20, selectivity=0.1, seed=seed) for seed in (0, 1)
    )
    assert (one.low != other.low).any()


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
