"""How strongly attributes go together, from sums of products alone.

Two ordered attributes: Pearson's correlation, -1 to 1. Two categories: Cramer's V, 0 to 1
(Cramer 1946, section 21.9). A category and an ordered attribute: the correlation ratio eta, 0 to 1
(Fisher 1925, section 45). Records in which one of the two is missing do not count. A published
interval stands for its middle, a published set for equal parts of each of its values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Figures, Integers

SCALE = 1 << 18
"""Parts and positions are counted in units of 1 / SCALE: sums of integers have one result."""

# Products of a block add up to at most 2**50, which float64 holds exactly.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Part:
    """The columns of one attribute.

    Parameters
    ----------
    name : str
        Of the attribute.
    ordered : bool
        Whether its columns are presence, position and squared position, which is the third one
        and the fourth one by SCALE, else parts of its groups.
    columns : slice
    """

    name: str
    ordered: bool
    columns: slice


def weighted_products(columns: Figures) -> Integers:
    """Return the sums of the products of all pairs of columns.

    Parameters
    ----------
    columns : float64 ndarray of shape (n, m)
        In [0, 1].

    Returns
    -------
    int64 ndarray of shape (m, m)
        In units of ``SCALE ** -2``. Exact, whatever the order of the rows.
    """
    units = np.rint(columns * SCALE)
    total = np.zeros((columns.shape[1],) * 2, np.int64)
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK]
        total += (block.T @ block).astype(np.int64)
    return total


def associations(products: Figures, parts: Sequence[Part]) -> Figures:
    """Return how strongly each pair of attributes goes together.

    Parameters
    ----------
    products : float64 ndarray of shape (m, m)
        See :func:`weighted_products`.
    parts : sequence of Part

    Returns
    -------
    float64 ndarray of shape (attributes, attributes)
        NaN where an attribute does not vary.
    """
    found = np.full((len(parts), len(parts)), np.nan)
    for row, first in enumerate(parts):
        for column, second in enumerate(parts):
            block = products[first.columns, :][:, second.columns]
            if first.ordered and second.ordered:
                found[row, column] = _pearson(block)
            elif not first.ordered and not second.ordered:
                found[row, column] = _cramer(block) if row != column else _itself(block)
            elif first.ordered:
                found[row, column] = _correlation_ratio(block)
            else:
                found[row, column] = _correlation_ratio(block.T)
    return found


def _pearson(block: Figures) -> float:
    """Return Pearson's correlation from the products of (presence, position, square) of both."""
    n = block[0, 0]
    if n <= 0:
        return math.nan
    mean_first, mean_second = block[1, 0] / n, block[0, 1] / n
    variance_first = (block[2, 0] + block[3, 0] / SCALE) / n - mean_first**2
    variance_second = (block[0, 2] + block[0, 3] / SCALE) / n - mean_second**2
    if min(variance_first, variance_second) <= 1e-12:
        return math.nan
    covariance = block[1, 1] / n - mean_first * mean_second
    return _within(covariance / math.sqrt(variance_first * variance_second), -1.0)


def _correlation_ratio(block: Figures) -> float:
    """Return eta from the products of (presence, position, square) with each group."""
    sizes, sums, squares = block[0], block[1], block[2] + block[3] / SCALE
    n = sizes.sum()
    if n <= 0:
        return math.nan
    mean = sums.sum() / n
    variance = squares.sum() / n - mean**2
    kept = sizes > 0
    if variance <= 1e-12 or kept.sum() < 2:
        return math.nan
    between = (sums[kept] ** 2 / sizes[kept]).sum() / n - mean**2
    return _within(math.sqrt(max(between, 0.0) / variance), 0.0)


def _cramer(block: Figures) -> float:
    """Return Cramer's V of a table of counts."""
    rows, columns = block.sum(axis=1), block.sum(axis=0)
    block = block[rows > 0][:, columns > 0]
    rows, columns = rows[rows > 0], columns[columns > 0]
    n, smaller = block.sum(), min(block.shape) - 1
    if smaller < 1:
        return math.nan
    expected = np.outer(rows, columns) / n
    chi_squared = ((block - expected) ** 2 / expected).sum()
    return _within(math.sqrt(chi_squared / (n * smaller)), 0.0)


def _itself(block: Figures) -> float:
    return 1.0 if (block.sum(axis=1) > 0).sum() > 1 else math.nan


def _within(value: float, lowest: float) -> float:
    return min(max(value, lowest), 1.0)
