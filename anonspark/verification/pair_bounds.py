"""How many people can lie in one class of one release and in another of another: bounds.

The shuttle algorithm (Buzzigoli and Giusti 1999) on the records of each class by payload. Nothing
that it proves can be wrong, for it uses nothing but the sums that hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonspark.errors import DataError

Integers = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]

_MOST_ROUNDS = 100


@dataclass(frozen=True)
class Margin:
    """Classes of a release by payload, its cells, and whether their records are all accounted for.

    Parameters
    ----------
    records : int64 ndarray of shape (cells,)
        Of each cell; at most so many where they are not known.
    known : bool ndarray of shape (cells,)
        Whether each of these records is in one of the unknowns of the cell, so that those add up to
        ``records``; else they add up to no more.
    """

    records: Integers
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Bounds:
    """Bounds of every unknown: the people of a cell of one release and one of the other.

    Parameters
    ----------
    lower, upper : int64 ndarray of shape (unknowns,)
    rounds : int
        In which anything changed.
    """

    lower: Integers
    upper: Integers
    rounds: int


def bound_unknowns(one: Margin, other: Margin, of_one: Cells, of_other: Cells) -> Bounds:
    """Bound the numbers of people that two tables of sums leave possible.

    Parameters
    ----------
    one, other : Margin
        Of the two releases.
    of_one, of_other : int32 ndarray of shape (unknowns,)
        The cell of each unknown on both sides; no two unknowns agree in both.

    Returns
    -------
    Bounds
        Of a fixed point, or of 100 rounds.

    Raises
    ------
    DataError
        If no numbers have these sums.

    Notes
    -----
    O(unknowns) time a round and 40 bytes an unknown at once. All of a round comes from the values
    of the round before, so that no order is of account. Sums are exact up to 2^53 records.
    """
    upper = np.minimum(one.records[of_one], other.records[of_other])
    lower = np.zeros_like(upper)
    rounds = 0
    sides = ((one, of_one), (other, of_other))
    for margin, cells in sides:
        most = _sums(cells, upper, margin)
        _require_solution(bool((most[margin.known] >= margin.records[margin.known]).all()))
    while rounds < _MOST_ROUNDS:
        least, greatest = lower, upper
        for margin, cells in sides:
            proven = margin.records - _sums(cells, lower, margin)
            greatest = np.minimum(greatest, proven[cells] + lower)
            missing = margin.records - _sums(cells, upper, margin)
            missing[~margin.known] = np.iinfo(np.int64).min // 2
            least = np.maximum(least, missing[cells] + upper)
        _require_solution(bool((least <= greatest).all()))
        if np.array_equal(least, lower) and np.array_equal(greatest, upper):
            break
        lower, upper = least, greatest
        rounds += 1
    return Bounds(lower, upper, rounds)


def _sums(cells: Cells, values: Integers, margin: Margin) -> Integers:
    # Whole numbers are exact in float64.
    return np.bincount(cells, values, len(margin.records)).astype(np.int64)


def _require_solution(solvable: bool) -> None:
    if not solvable:
        raise DataError(
            "verify --with: no people can be in these releases as it is said that they are; they "
            "are not the same people, or not the one within the other: leave --same-people and "
            "--inside out, or name the releases that were made of one table"
        )
