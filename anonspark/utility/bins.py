"""Bins of an attribute's values: where they begin and end, and the share of a region in each.

Numbers and times are divided at quantiles. The most frequent texts have a bin each, and all others
share one. The last bin is that of missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Figures, Integers
from anonspark.core.association import QUANTILES
from anonspark.core.uniform_mass import Spread
from anonspark.kernels.bin_shares import spread_over_bins
from anonspark.labels.axes import Axis

MOST_FREQUENT = 100
"""Texts that have a bin of their own."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one attribute.

    Each of the `frequent` texts of ``axis`` has a bin. ``edges`` (float64, ascending) are the last
    values of all bins of numbers and times except the last bin.
    """

    axis: Axis
    edges: Figures

    @property
    def number(self) -> int:
        """Return the number of bins, with those for the rest and for missing values."""
        values = self.axis.frequent if self.axis.scale == "text" else self.edges
        return len(values) + 2

    def add_records(self, spread: Spread, counts: Integers, unit: float, sums: Integers) -> None:
        """Spread published records over the bins, and add them to ``sums``.

        ``spread`` has n regions, ``counts`` (int64, shape (n, c)) their records by class, and
        ``sums`` (int64, shape (number, c)) counts in multiples of ``unit``. Each share is rounded
        to a whole multiple of it, so the sums do not depend on how tasks divide the records.
        """
        # A kernel does the same for single runs of numbers, without an array of all shares.
        if self.axis.scale != "text" and len(spread.starts) == len(spread.low):
            ends = (spread.low, spread.high, spread.points, spread.total, spread.missing)
            spread_over_bins(*ends, self.edges, spread.starts, counts, unit, sums)
            return
        units = np.rint(self._shares(spread) / unit)
        # The products are whole, and float64 has them exactly: there are far fewer than 2**23
        # records.
        sums += np.rint(units.T @ counts.astype(np.float64)).astype(np.int64)

    def _shares(self, spread: Spread) -> Figures:
        """Return the share of each region in each bin."""
        missing = spread.missing[:, None]
        if self.axis.scale == "text":
            shares = spread.shares(self.axis.frequent, self.axis.frequent)
            rest = np.maximum(1 - shares.sum(axis=1, keepdims=True) - missing, 0.0)
            return np.concatenate([shares, rest, missing], axis=1)
        below = spread.shares(np.full(len(self.edges), -np.inf), self.edges)
        zeros = np.zeros((len(missing), 1))
        ends = np.concatenate([zeros, below, 1 - missing], axis=1)
        shares = np.maximum(np.diff(ends, axis=1), 0.0)
        return np.concatenate([shares, missing], axis=1)


def quantile_positions(counts: Integers) -> Integers:
    """Return the positions of the different quantiles among ascending values.

    ``counts`` (int64, shape (values, c)) holds the records of each value by class.

    >>> quantile_positions(np.array([[10], [80], [10]])).tolist()
    [0, 1, 2]
    """
    up_to = np.cumsum(counts.sum(axis=1))
    records = int(up_to[-1]) if len(up_to) else 0
    if not records:
        return np.zeros(0, np.int64)
    ranks = -(-np.arange(1, QUANTILES) * records // QUANTILES)
    return np.unique(np.searchsorted(up_to, ranks))


def frequent_of(records: Integers) -> Figures:
    """Return the positions of the most frequent values, ascending. On a tie the first values win.

    >>> frequent_of(np.array([3, 9, 1])).tolist()
    [0.0, 1.0, 2.0]
    """
    return np.sort(np.argsort(-records, kind="stable")[:MOST_FREQUENT]).astype(np.float64)
