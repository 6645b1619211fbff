"""Functional dependencies: columns that give another one away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Integers

Floats = npt.NDArray[np.float64]

NEARLY = 0.95
"""Share of records for which a dependency must hold to be reported."""

WITHIN = 0.05
"""Share of a column's range by which a number may be missed that is given away nearly."""

_GAINED = 0.8
"""Share of the wrong guesses without the first column that it must correct."""

# What lies further out than these shares of the values says nothing of a column's range.
_OUTERMOST = 0.01


@dataclass(frozen=True)
class Dependency:
    """A column that gives another one away.

    Parameters
    ----------
    column : str
    determines : str
    holds : float
        Share of records for which the most frequent value of the second column, given the first,
        is theirs (1 - g3 of Kivinen and Mannila 1995): 1 if the first determines the second.
    records : int
        Of which it is measured: those whose value of the first column another record has, too.
    within : float or None
        Share of the second column's range by which what is guessed may miss. None if it is the
        value itself.
    """

    column: str
    determines: str
    holds: float
    records: int
    within: float | None = None

    @property
    def exact(self) -> bool:
        """Return whether it holds for all records of the sample."""
        return self.holds == 1 and self.within is None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {**self.__dict__, "exact": self.exact}


def find_dependencies(
    names: Sequence[str],
    codes: Sequence[Integers],
    determinants: Sequence[str],
    determined: Sequence[str] | None = None,
    numbers: Mapping[str, Floats] | None = None,
) -> list[Dependency]:
    """Find which columns give which away.

    Parameters
    ----------
    names : sequence of str
    codes : sequence of int64 ndarray of shape (n,)
        Of each column, from 0 up to below n. Missing is a value like others.
    determinants : sequence of str
        The columns to begin with.
    determined : sequence of str or None
        Those that they may give away. None are all.
    numbers : mapping of str to float64 ndarray of shape (n,), or None
        Of the columns that are numbers, days or times, NaN where they are missing. Of these it
        counts, too, if they are given away within :data:`WITHIN` of their range: by the median of
        the records that have the same value, or, where values of a number hardly repeat, by the
        records that have the next lower and the next higher one.

    Returns
    -------
    list of Dependency
        That hold for at least :data:`NEARLY` of the records, for much more than what one value for
        all would be right for, and of a column whose values repeat in at least half of the records.
    """
    by_name = dict(zip(names, codes, strict=True))
    numeric = numbers or {}
    dependencies = []
    for first in determinants:
        sizes = np.bincount(by_name[first])
        repeated = sizes[by_name[first]] > 1
        records = int(repeated.sum())
        repeats = bool(records) and 2 * records >= len(repeated)
        groups = by_name[first][repeated]
        for second in names if determined is None else determined:
            if second == first:
                continue
            dependency: Dependency | None = None
            if repeats:
                dependency = _exactly(first, second, groups, by_name[second][repeated])
            if dependency is None and second in numeric:
                if repeats:
                    dependency = _nearly(first, second, groups, numeric[second][repeated])
                elif first in numeric:
                    dependency = _by_neighbors(first, second, numeric, by_name[second])
            if dependency is not None:
                dependencies.append(dependency)
    return dependencies


def _exactly(first: str, second: str, groups: Integers, values: Integers) -> Dependency | None:
    """Return whether the most frequent value of each group is nearly always right."""
    base = int(np.bincount(values).max())
    return _judged(first, second, most_frequent(groups, values), base, len(groups), None)


def _nearly(first: str, second: str, groups: Integers, numbers: Floats) -> Dependency | None:
    """Return whether the median of each group is nearly always close."""
    present = ~np.isnan(numbers)
    if 2 * present.sum() < len(present):
        return None
    groups, numbers = groups[present], numbers[present]
    order = np.lexsort((numbers, groups))
    numbers, sizes = numbers[order], np.bincount(groups)
    ends = np.cumsum(sizes)
    sizes, ends = sizes[sizes > 0], ends[sizes > 0]
    # In all groups but the even ones this is the median; there it is one of the two in the middle.
    guessed = np.repeat(numbers[ends - 1 - sizes // 2], sizes)
    return _close(first, second, guessed, numbers)


def _by_neighbors(
    first: str, second: str, numbers: Mapping[str, Floats], codes: Integers
) -> Dependency | None:
    """Return whether records with the next values of a number are nearly always close."""
    present = ~(np.isnan(numbers[first]) | np.isnan(numbers[second]))
    # Equal ones in no order that their values would decide.
    order = np.lexsort((codes[present] * 0x9E3779B1 % 2**32, numbers[first][present]))
    values = numbers[second][present][order]
    if len(values) < max(3, len(present) / 2):
        return None
    return _close(first, second, (values[:-2] + values[2:]) / 2, values[1:-1])


def _close(first: str, second: str, guessed: Floats, values: Floats) -> Dependency | None:
    """Return whether guesses are nearly always within a small part of the range."""
    if not len(values):
        return None
    low, middle, high = np.quantile(
        values, (_OUTERMOST, 0.5, 1 - _OUTERMOST), method="inverted_cdf"
    )
    most = WITHIN * (high - low)
    right, base = (int((np.abs(guess - values) <= most).sum()) for guess in (guessed, middle))
    return _judged(first, second, right, base, len(values), WITHIN)


def _judged(
    first: str, second: str, right: int, base: int, records: int, within: float | None
) -> Dependency | None:
    """Return a dependency if it holds nearly, and says much more than one value for all."""
    if base == records or right < NEARLY * records or right - base < _GAINED * (records - base):
        return None
    return Dependency(first, second, right / records, records, within)


def most_frequent(groups: Integers, values: Integers) -> int:
    """Return how many records have the most frequent value of their group."""
    pairs, which = dense_codes(groups * (np.int64(values.max()) + 1) + values)
    counts = np.bincount(pairs)
    of_groups = which // (int(values.max()) + 1)
    best = np.zeros(int(groups.max()) + 1, np.int64)
    np.maximum.at(best, of_groups, counts)
    return int(best.sum())


def joined_codes(first: Integers, second: Integers) -> Integers:
    """Return codes of the pairs of two columns."""
    # Below n * n, which 64 bits hold.
    return dense_codes(first * (np.int64(second.max(initial=0)) + 1) + second)[0]


def dense_codes(numbers: Integers) -> tuple[Integers, Integers]:
    """Return codes of numbers, from 0 on, and the number of each code."""
    coded = pa.array(numbers).dictionary_encode()
    codes: Integers = coded.indices.to_numpy().astype(np.int64)
    return codes, coded.dictionary.to_numpy()
