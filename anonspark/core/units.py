"""The people that records are about, where one may have several records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Integers

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Units:
    """The known facts about the people of a table.

    Parameters
    ----------
    number : int
        Number of different people.
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
        """Return whether any person has several records, else k people are k records."""
        return self.most_records > 1


def with_units(hashes: Integers, units: Integers) -> Integers:
    """Return hashes that distinguish equal records of different people.

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
        Number of different people.
    """
    found, numbers = np.unique(units, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(found)


@dataclass(frozen=True)
class PairedPeople:
    """The people of some records and the sensitive values that each of them has, numbered.

    Parameters
    ----------
    first : int64 ndarray of shape (s + 2,)
        Where the numbers of each attribute's pairs begin, and those of people, and where they end.
    values, people : int64 ndarray of shape (pairs,)
        Value, numbered through all attributes, and person of each pair. By attribute, value and
        person.
    """

    first: Integers
    values: Integers
    people: Integers

    @property
    def number(self) -> int:
        """Number of different people."""
        return int(self.first[-1] - self.first[-2])


@dataclass(frozen=True)
class PeopleOfGroup:
    """The requirements of criteria for the people of a group.

    Parameters
    ----------
    number : int
        Number of different people.
    counts : sequence of int64 ndarray
        Of each sensitive attribute, the people with each of its values.
    matched : sequence of int
        Of each sensitive attribute, the values that are of another person each, at most as many as
        are asked for.
    ranges : sequence of (int64 ndarray, int64 ndarray) or None
        Of each sensitive attribute, the people by the first and by the last of their values. None
        where nothing asks for them.
    is_estimate : bool
        Whether more is matched than may be, and ranges are not known yet: what violates a criterion
        so violates it for certain.
    """

    number: int
    counts: Sequence[Integers]
    matched: Sequence[int]
    ranges: Sequence[tuple[Integers, Integers]] | None = None
    is_estimate: bool = False


def paired(values: Integers) -> tuple[Integers, PairedPeople]:
    """Give numbers to people, and to each pair of a sensitive value and a person.

    Parameters
    ----------
    values : int64 ndarray of shape (n, s + 1)
        Numbers of the sensitive values, those of all attributes numbered through, and the hash of
        whom the record is about.

    Returns
    -------
    numbers : int64 ndarray of shape (n, s + 1)
        Of the pair that each record is of, for each attribute, and of the person, numbered through.
    pairs : PairedPeople

    Notes
    -----
    O(n log n) for each attribute. No order of the records matters.
    """
    people, number = numbered(values[:, -1])
    found = [
        np.unique(values[:, place] * max(number, 1) + people, return_inverse=True)
        for place in range(values.shape[1] - 1)
    ]
    sizes = [*(len(pairs) for pairs, _ in found), number]
    first = np.cumsum([0, *sizes]).astype(np.int64)
    numbers = np.empty_like(values)
    for place, (_, own) in enumerate(found):
        numbers[:, place] = first[place] + own
    numbers[:, -1] = first[-2] + people
    pairs = np.concatenate([np.zeros(0, np.int64), *(pairs for pairs, _ in found)])
    own_values, own_people = np.divmod(pairs, max(number, 1))
    return numbers, PairedPeople(first, own_values, own_people)
