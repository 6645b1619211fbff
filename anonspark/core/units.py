"""The people that records are about, where one may have several records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Units:
    """What is known of the people of a table.

    Parameters
    ----------
    number : int
        Of different people.
    most_records : int
        Of one of them.
    of_fewer_than_k : int
        Records that k - 1 people have at most: more records are about k people at least, in any
        part of the table.
    """

    number: int
    most_records: int
    of_fewer_than_k: int

    @property
    def repeat(self) -> bool:
        """Whether anybody has several records; else k people are k records."""
        return self.most_records > 1


def with_units(hashes: Integers, units: Integers) -> Integers:
    """Return hashes that tell apart records of equal content that are about different people.

    Parameters
    ----------
    hashes : int64 ndarray of shape (n,)
        Of the records' content.
    units : int64 ndarray of shape (n,)
        Hashes of whom they are about.

    Notes
    -----
    Records that are equal in everything but whom they are about are ordered by it, for it matters
    who stays in a class.
    """
    mixed = (hashes.view(np.uint64) ^ (units.view(np.uint64) * _MIX)) * _MIX
    return (mixed ^ (mixed >> np.uint64(32))).view(np.int64)


def numbered(units: Integers) -> tuple[Integers, int]:
    """Give each of the people of some records a number.

    Parameters
    ----------
    units : int64 ndarray of shape (n,)

    Returns
    -------
    numbers : int64 ndarray of shape (n,)
        From 0 on, in the order of the hashes.
    number : int
        Of different people.
    """
    found, numbers = np.unique(units, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(found)
