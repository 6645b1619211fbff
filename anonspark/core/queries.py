"""Random COUNT queries: ranges of some quasi-identifiers, and of a sensitive attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Figures, Flags

# Sums of shares are rounded: a range that misses the wanted share by less is long enough.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of one attribute that queries may select.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        Where ranges begin and end, in order, each once.
    shares : float64 ndarray of shape (n,)
        Of the records, those with each value, or between it and the next. The sum is 1, or n is 0.
    evenly : bool
        Whether a range begins at each value as often as at any other, or as often as records have
        it.
    """

    values: Figures
    shares: Figures
    evenly: bool


@dataclass(frozen=True, eq=False)
class Queries:
    """``SELECT count(*) WHERE low <= attribute AND attribute <= high AND ...``.

    Parameters
    ----------
    low, high : float64 ndarray of shape (attributes, queries)
        The ranges, both ends included. Anything where an attribute is not asked for.
    asked : bool ndarray of shape (attributes, queries)
        Whether a query asks for the attribute.
    """

    low: Figures
    high: Figures
    asked: Flags

    def __len__(self) -> int:
        return int(self.low.shape[1])


def draw_queries(
    quasi_identifiers: Sequence[Domain],
    filters: Sequence[Domain],
    *,
    count: int,
    selectivity: float,
    seed: int = 0,
) -> Queries:
    """Draw queries that select about a chosen share of the records.

    A query asks for 1 to d of the d quasi-identifiers, each number equally often, and for one of
    the filters, if there are any: so do Xiao and Tao (2006). A range begins at a random value and
    ends where it holds the wanted share of the records, or with the last value. Wanted of each of
    the r attributes still to come is the r-th root of what is left to be reached, if attributes are
    independent. Those with few values, whose shares are far from the wanted one, come first.

    Parameters
    ----------
    quasi_identifiers : sequence of Domain
        At least one, none empty, and in the same order for every release that is to be compared.
    filters : sequence of Domain
        Of sensitive attributes. None empty.
    count : int
    selectivity : float
        In (0, 1].
    seed : int

    Returns
    -------
    Queries
        Of the quasi-identifiers, then of the filters. The same for the same arguments.

    Notes
    -----
    Python time for each range.
    """
    random = np.random.default_rng(seed)
    domains = [*quasi_identifiers, *filters]
    sums = [np.cumsum(domain.shares) for domain in domains]
    shape = (len(domains), count)
    low, high, asked = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    d = len(quasi_identifiers)
    for query in range(count):
        chosen = random.choice(d, int(random.integers(1, d + 1)), replace=False).tolist()
        if filters:
            chosen.append(d + int(random.integers(len(filters))))
        chosen.sort(key=lambda index: len(domains[index].values))
        reached = 1.0
        for done, index in enumerate(chosen):
            domain, upto = domains[index], sums[index]
            share = min(1.0, (selectivity / reached) ** (1 / (len(chosen) - done)))
            if domain.evenly:
                first = int(random.integers(len(upto)))
            else:
                first = int(np.searchsorted(upto, random.random() * upto[-1], "right"))
            before = upto[first] - domain.shares[first]
            last = int(np.searchsorted(upto, before + share - _TOLERANCE))
            last = min(max(first, last), len(upto) - 1)
            reached *= upto[last] - before
            low[index, query], high[index, query] = domain.values[first], domain.values[last]
            asked[index, query] = True
    return Queries(low, high, asked)
