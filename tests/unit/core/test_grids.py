"""Grids: lines that do not depend on the records, and the strips between them."""

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


@given(
    st.integers(1, 4),
    st.integers(0, 2),
    st.floats(0.01, 1.0),
    st.integers(0, 2**32),
)
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
