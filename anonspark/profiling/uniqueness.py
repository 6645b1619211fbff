"""How many records sets of columns single out, and by which values.

Records are given as codes: in each column equal numbers stand for equal values, and missing is a
value like others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from anonspark.core.arrays import Flags, Integers
from anonspark.core.dependencies import joined_codes

LARGEST_SET = 3
"""Columns of a set at most."""

_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class ColumnSet:
    """How some columns together single out the records of a sample.

    Parameters
    ----------
    columns : tuple of str
    distinct : int
        Different combinations of values.
    distinction : float
        These, divided by the records: 1 if all differ.
    separation : float
        Share of all pairs of records that differ in at least one of the columns.
    unique : int
        Records whose combination no other record has.
    few : int
        Records whose combination fewer than k records have, the unique ones among them.
    minimal_unique : int
        Records that are unique in these columns, but in none of them left out: the columns are a
        minimal sample unique of theirs, as SUDA (Elliot et al. 2002) calls it.
    """

    columns: tuple[str, ...]
    distinct: int
    distinction: float
    separation: float
    unique: int
    few: int
    minimal_unique: int

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {**self.__dict__, "columns": list(self.columns)}


@dataclass(frozen=True)
class Uniqueness:
    """How all sets of up to three columns single out records.

    Parameters
    ----------
    sets : list of ColumnSet
        Single columns, then pairs, then triples, each in the order of the columns.
    unique_by_size : tuple of int
        Records that are unique in at least one set of at most 1, 2 and 3 columns.
    """

    sets: list[ColumnSet]
    unique_by_size: tuple[int, ...]

    def of_size(self, size: int) -> list[ColumnSet]:
        """Return the sets of some number of columns, those that reveal most about records first."""
        some = [group for group in self.sets if len(group.columns) == size]
        return sorted(some, key=lambda group: (-group.separation, -group.unique, group.columns))

    def causing(self, most: int) -> list[ColumnSet]:
        """Return the sets with the most minimal sample uniques, of those that have any."""
        some = [group for group in self.sets if group.minimal_unique]
        return sorted(some, key=lambda group: (-group.minimal_unique, group.columns))[:most]


def measure_sets(names: Sequence[str], codes: Sequence[Integers], k: int) -> Uniqueness:
    """Measure all sets of up to three columns.

    Parameters
    ----------
    names : sequence of str
        Of c columns.
    codes : sequence of int64 ndarray of shape (n,)
        Of each, from 0 up to below n.
    k : int
        What few records are fewer than.

    Notes
    -----
    Time grows with n and with the cube of c: of 200,000 records and 12 columns there are 298 sets,
    which takes a few seconds.
    """
    records = len(codes[0]) if codes else 0
    unique: dict[tuple[int, ...], Flags] = {(): np.zeros(records, bool)}
    sets: list[ColumnSet] = []
    so_far = np.zeros(records, bool)
    by_size: list[int] = []
    joint: dict[tuple[int, ...], Integers] = {}
    for size in range(1, min(LARGEST_SET, len(names)) + 1):
        for indices in combinations(range(len(names)), size):
            if size == 1:
                groups = codes[indices[0]]
            else:
                groups = joined_codes(joint[indices[:-1]], codes[indices[-1]])
            sizes = np.bincount(groups)
            if size < LARGEST_SET:
                joint[indices] = groups
            of_records = sizes[groups]
            unique[indices] = of_records == 1
            below = np.logical_or.reduce(
                [unique[combination] for combination in combinations(indices, size - 1)]
            )
            sets.append(
                _measured(
                    tuple(names[index] for index in indices),
                    sizes,
                    int((unique[indices] & ~below).sum()),
                    k,
                )
            )
            so_far |= unique[indices]
            if size == LARGEST_SET:
                del unique[indices]
        by_size.append(int(so_far.sum()))
    return Uniqueness(sets, tuple(by_size))


def weigh_columns(measured: Uniqueness, names: Sequence[str], records: int) -> dict[str, float]:
    """Return a weight of each column: the smaller, the more records it makes unique.

    A column's share is the mean of what it adds to the unique records of sets of 0, 1 and 2 others.
    Its weight is the inverse square root of the share, to two digits, and the mean weight is 1.
    Columns that were not measured count as unique in every record, alone and with others.
    """
    unique = {frozenset(group.columns): group.unique for group in measured.sets} | {frozenset(): 0}
    shares = []
    for name in names:
        others = [other for other in names if other != name]
        means = []
        for size in range(min(LARGEST_SET, len(names))):
            sets = [frozenset(columns) for columns in combinations(others, size)]
            added = [
                unique.get(columns | {name}, records) - unique.get(columns, records)
                for columns in sets
            ]
            means.append(sum(added) / len(added))
        shares.append(sum(means) / len(means))
    mean = sum(shares) / len(shares) or 1.0
    # Without the tenth, a column by which no record is unique would outweigh all others.
    inverse = [(share / mean + _LEAST_SHARE) ** -0.5 for share in shares]
    return {
        name: float(f"{weight * len(names) / sum(inverse):.2g}")
        for name, weight in zip(names, inverse, strict=True)
    }


def _measured(columns: tuple[str, ...], sizes: Integers, minimal: int, k: int) -> ColumnSet:
    records = int(sizes.sum())
    distinct = int((sizes > 0).sum())
    # In whole numbers of Python, for squares of many records are large.
    alike = sum(int(size) * (int(size) - 1) * int(number) for size, number in _histogram(sizes))
    pairs = records * (records - 1)
    return ColumnSet(
        columns=columns,
        distinct=distinct,
        distinction=distinct / records if records else 0.0,
        separation=1 - alike / pairs if pairs else 0.0,
        unique=int((sizes == 1).sum()),
        few=int(sizes[sizes < k].sum()),
        minimal_unique=minimal,
    )


def _histogram(sizes: Integers) -> Iterator[tuple[int, int]]:
    values, numbers = np.unique(sizes, return_counts=True)
    return zip(values.tolist(), numbers.tolist(), strict=True)
