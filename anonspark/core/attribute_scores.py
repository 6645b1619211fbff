"""Scores of attributes for a target, from their tables of counts.

For a private choice scores are whole numbers, and adding one record changes those of all attributes
by something in one common interval, whose width is documented with each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anonspark.core.arrays import Figures, Integers
from anonspark.core.association import entropy

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
