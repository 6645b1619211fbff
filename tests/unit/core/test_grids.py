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
