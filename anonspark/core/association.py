"""Measure the association with a target: the share of its uncertainty that a release removes.

For each attribute, by itself: the share of the target's entropy that its values remove, taken from
the original, and from a release. By Gibbs' inequality the second is not above the first, but for
the smoothing. Below 0 it is where the release misleads. The formulas are in docs/utility.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anonspark.core.arrays import Figures, Integers

QUANTILES = 20
"""Into so many parts the present values of numbers and times are divided."""

LEAST_ASSOCIATION = 0.001
"""Below this sum over all attributes nothing can be said to be lost."""


def removed_uncertainty(original: Integers, released: Figures, classes: Integers) -> float | None:
    """Return the share of a target's uncertainty that is removed by who believes a table.

    Parameters
    ----------
    original : int64 ndarray of shape (bins, c)
        Records of the original, by value and class.
    released : float64 ndarray of shape (bins, c)
        The same by the table.
    classes : int64 ndarray of shape (c,)
        Records of the table, by class.

    Returns
    -------
    float or None
        At most 1. 0 where the table holds no information. None where the target is constant.
    """
    of_target = original.sum(axis=0)
    uncertainty = entropy(of_target)
    if uncertainty <= 0:
        return None
    records = int(of_target.sum())
    share = (classes + 1) / (classes.sum() + len(classes))
    predicted = (released + share) / (released.sum(axis=1, keepdims=True) + 1)
    some = original > 0
    # Exactly rounded sums: the order of bins decides no digit.
    terms = (original[some] / records) * np.log2(predicted[some])
    return 1 + math.fsum(terms.tolist()) / uncertainty


def entropy(counts: Integers | Figures) -> float:
    """Return the entropy of counts, in bits."""
    shares = counts[counts > 0] / counts.sum()
    return -math.fsum((shares * np.log2(shares)).tolist())


def association_loss(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    """Return what a release loses of the association of all attributes.

    Parameters
    ----------
    before, after : sequence of float or None
        Of each attribute, by the original and by the release.

    Returns
    -------
    float or None
        0 for a release that is its original, about 1 where it holds no information. More where it
        misleads. None where the original holds no information, or the target is constant.
    """
    total = math.fsum(value for value in before if value is not None)
    if total <= LEAST_ASSOCIATION:
        return None
    return 1 - math.fsum(value for value in after if value is not None) / total


# For a private choice scores are whole numbers, and adding one record changes those of all
# attributes by something in one common interval, whose width is documented with each.

UNITS = 256
"""Units of a whole score for a record."""

_BINARY_PLACES = 40


def gini_score(counts: Integers) -> int:
    """Return the sum over rows of the squares of their cells by the records of the row, in units.

    Parameters
    ----------
    counts : int64 ndarray of shape (rows, c)

    Returns
    -------
    int
        From 0 to 256 times the records. One record more changes it by -256 to 256.
    """
    return sum(
        UNITS * sum(cell * cell for cell in row) // total
        for row in counts.tolist()
        if (total := sum(row))
    )


def information_score(counts: Integers, records_at_most: int | None = None) -> int:
    """Return minus the records times the entropy of the target given the rows, in units of bits.

    Parameters
    ----------
    counts : int64 ndarray of shape (rows, c)
    records_at_most : int or None
        Rows of more records are scored by :func:`_capped_bits`. None scores no row so.

    Returns
    -------
    int
        One record more changes it by at most :func:`width_of_information`, however many there are.
    """
    terms = []
    for row in counts.tolist():
        total = sum(row)
        if records_at_most is None or total <= records_at_most:
            terms += [cell * math.log2(cell) for cell in row if cell]
            terms += [-total * math.log2(total)] if total else []
        else:
            terms.append(-_capped_bits(row, _largest_change(records_at_most - 1)))
    return math.floor(UNITS * math.fsum(terms))


def _capped_bits(row: Sequence[int], most: float) -> float:
    """Return the bits of the classes of a row, where no record takes more than so many.

    The fewest bits that any code of the classes takes, whose words have ``most`` bits at most: the
    rarest classes take as many each, the others their entropy. Of each code one record more takes
    0 to ``most`` bits more, and so does it of the best one.
    """
    total, counted, logarithms = sum(row), 0, 0
    fewest = _exact(most) * total
    for cell in sorted(filter(None, row), reverse=True):
        counted += cell
        logarithms += _exact(cell * math.log2(cell))
        bits = _exact(counted * math.log2(counted)) - logarithms + _exact(most) * (total - counted)
        fewest = min(fewest, bits)
    return math.ldexp(fewest, -_BINARY_PLACES)


def _exact(bits: float) -> int:
    """Return a number of bits as a whole number, so that sums of many are not rounded."""
    return int(math.ldexp(bits, _BINARY_PLACES))


WIDTH_OF_GINI = 2 * UNITS
"""Width of the interval in which one record changes all scores of :func:`gini_score`."""


def width_of_information(records_at_most: int) -> int:
    """Return the same of :func:`information_score` with the same bound, for tables of any size."""
    return math.ceil(UNITS * _largest_change(records_at_most - 1)) + 2


def _largest_change(x: int) -> float:
    """Return (x + 1) log2(x + 1) - x log2 x."""
    return math.log2(x + 1) + x * math.log2(1 + 1 / x) if x else 0.0


def chi_square(counts: Figures | Integers) -> float:
    """Return chi-square of a table. Cells whose expectation is 0 are left out."""
    total = counts.sum()
    if total <= 0:
        return 0.0
    # In whole numbers the products of many records would be beyond 64 bits.
    of_rows, of_columns = (counts.sum(axis=axis).astype(np.float64) for axis in (1, 0))
    expected = np.outer(of_rows, of_columns) / total
    some = expected > 0
    return math.fsum(((counts[some] - expected[some]) ** 2 / expected[some]).tolist())


def information_gain(counts: Figures | Integers) -> float:
    """Return the bits of information about the target in the rows of a table."""
    total = counts.sum()
    if total <= 0:
        return 0.0
    rows = [count.sum() / total * entropy(count) for count in counts if count.sum() > 0]
    return entropy(counts.sum(axis=0)) - math.fsum(rows)


def cleaned(noisy: Integers, scale: float) -> Integers:
    """Return a noisy table of which scores can be made.

    Parameters
    ----------
    noisy : int64 ndarray of shape (rows, c)
    scale : float
        Of the noise.

    Returns
    -------
    int64 ndarray of shape (other rows, c)
        Rows below the largest noise that is to be expected are one row. No cell is below 0.
    """
    low = noisy.sum(axis=1) < scale * math.log(noisy.size)
    parts: Sequence[Integers] = [noisy[~low]]
    if low.any():
        parts = [*parts, noisy[low].sum(axis=0, keepdims=True)]
    return np.maximum(np.concatenate(parts), 0)
