"""Random queries: how many attributes they ask for, and how much they select."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.queries import Domain, Queries, draw_queries


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
