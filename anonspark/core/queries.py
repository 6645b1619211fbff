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

    Ranges begin and end at ``values`` (float64, ascending, different). ``shares`` are the shares of
    records with each value, or between it and the next one; their sum is 1 unless both are empty.
    With ``evenly``, a range begins at each value equally often, otherwise as often as records have
    the value.
    """

    values: Figures
    shares: Figures
    evenly: bool


@dataclass(frozen=True, eq=False)
class Queries:
    """``SELECT count(*) WHERE low <= attribute AND attribute <= high AND ...``, of many queries.

    All arrays have the shape (attributes, queries). Both ends of a range are included, and mean
    nothing if ``asked`` is False: then the query does not ask for the attribute.
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
    """Draw queries that select about the share ``selectivity``, in (0, 1], of the records.

    A query uses 1 to d of the d quasi-identifiers, each number equally often, and one of the
    filters, if there are any (Xiao and Tao 2006). A range begins at a random value and ends as soon
    as it holds its share of the records, or with the last value. The share of an attribute is the
    r-th root of the selectivity that is still to be reached, if r attributes are left and all are
    independent. Attributes with few values, whose shares miss it by much, come first.

    Releases that are compared must pass their quasi-identifiers in the same order. No domain may be
    empty. The rows of the result are the quasi-identifiers, then the filters, and the same
    arguments give the same queries. Takes Python time for each range.

    >>> age = Domain(np.arange(100.0), np.full(100, 0.01), evenly=True)
    >>> queries = draw_queries([age], [], count=2, selectivity=0.1)
    >>> (queries.high - queries.low).tolist()
    [[9.0, 9.0]]
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
            domain, cumulative = domains[index], sums[index]
            share = min(1.0, (selectivity / reached) ** (1 / (len(chosen) - done)))
            if domain.evenly:
                first = int(random.integers(len(cumulative)))
            else:
                first = int(np.searchsorted(cumulative, random.random() * cumulative[-1], "right"))
            before = cumulative[first] - domain.shares[first]
            last = int(np.searchsorted(cumulative, before + share - _TOLERANCE))
            last = min(max(first, last), len(cumulative) - 1)
            reached *= cumulative[last] - before
            low[index, query], high[index, query] = domain.values[first], domain.values[last]
            asked[index, query] = True
    return Queries(low, high, asked)
