"""Bins of an attribute's values: where they begin and end, and what a published region has in each.

Numbers and times are divided at quantiles. Of texts the most frequent have a bin each, and all
others one. The last bin is that of missing values.
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

    Parameters
    ----------
    axis : Axis
        Of texts, its `frequent` ones have a bin each.
    edges : float64 ndarray of shape (e,)
        Of numbers and times: last value of each bin but the last one, ascending.
    """

    axis: Axis
    edges: Figures

    @property
    def number(self) -> int:
        """Return the number of bins, with those for the rest and for missing."""
        values = self.axis.frequent if self.axis.scale == "text" else self.edges
        return len(values) + 2

    def add_records(self, spread: Spread, counts: Integers, unit: float, sums: Integers) -> None:
        """Spread published records over the bins.

        Parameters
        ----------
        spread : Spread
            Of the axis, n regions.
        counts : int64 ndarray of shape (n, c)
            Records that have them, by class.
        unit : float
            Shares are rounded to whole multiples of it. The sums are not, so that how records are
            divided among tasks decides no digit.
        sums : int64 ndarray of shape (number, c)
            To which the records are added, in units.
        """
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
        nothing = np.zeros((len(missing), 1))
        ends = np.concatenate([nothing, below, 1 - missing], axis=1)
        shares = np.maximum(np.diff(ends, axis=1), 0.0)
        return np.concatenate([shares, missing], axis=1)


def quantile_places(counts: Integers) -> Integers:
    """Return the places of the different quantiles among ascending values, given their records.

    Parameters
    ----------
    counts : int64 ndarray of shape (values, c)
        Records by class.
    """
    up_to = np.cumsum(counts.sum(axis=1))
    records = int(up_to[-1]) if len(up_to) else 0
    if not records:
        return np.zeros(0, np.int64)
    ranks = -(-np.arange(1, QUANTILES) * records // QUANTILES)
    return np.unique(np.searchsorted(up_to, ranks))


def frequent_of(records: Integers) -> Figures:
    """Return the places of the most frequent values, ascending. Of equal ones the first."""
    return np.sort(np.argsort(-records, kind="stable")[:MOST_FREQUENT]).astype(np.float64)
