"""Functional dependencies: columns that give another one away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonspark.profiling.uniqueness import dense_codes

Integers = npt.NDArray[np.int64]

NEARLY = 0.95
"""Share of records for which a dependency has to hold to be told."""

_GAINED = 0.8
"""Of the records that a guess without the first column gets wrong, the share that has to go."""


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
    """

    column: str
    determines: str
    holds: float
    records: int

    @property
    def exact(self) -> bool:
        """Whether it holds for all records of the sample."""
        return self.holds == 1

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**self.__dict__, "exact": self.exact}


def find_dependencies(
    names: Sequence[str],
    codes: Sequence[Integers],
    determinants: Sequence[str],
    determined: Sequence[str] | None = None,
) -> list[Dependency]:
    """Find which columns give which away.

    Parameters
    ----------
    names : sequence of str
    codes : sequence of int64 ndarray of shape (n,)
        Of each column, from 0 up to below n; missing is a value like others.
    determinants : sequence of str
        The columns to begin with.
    determined : sequence of str or None
        Those that they may give away; None are all.

    Returns
    -------
    list of Dependency
        That hold for at least :data:`NEARLY` of the records, for much more than what one value for
        all would be right for, and of a column whose values repeat in at least half of the records.
    """
    by_name = dict(zip(names, codes, strict=True))
    found = []
    for first in determinants:
        sizes = np.bincount(by_name[first])
        repeated = sizes[by_name[first]] > 1
        records = int(repeated.sum())
        if 2 * records < len(repeated) or not records:
            continue
        groups = by_name[first][repeated]
        for second in names if determined is None else determined:
            if second == first:
                continue
            values = by_name[second][repeated]
            base = int(np.bincount(values).max())
            if base == records:
                continue
            right = most_frequent(groups, values)
            holds = right / records
            if holds >= NEARLY and right - base >= _GAINED * (records - base):
                found.append(Dependency(first, second, holds, records))
    return found


def most_frequent(groups: Integers, values: Integers) -> int:
    """Return how many records have the most frequent value of their group."""
    pairs, which = dense_codes(groups * (np.int64(values.max()) + 1) + values)
    counts = np.bincount(pairs)
    of_groups = which // (int(values.max()) + 1)
    best = np.zeros(int(groups.max()) + 1, np.int64)
    np.maximum.at(best, of_groups, counts)
    return int(best.sum())
