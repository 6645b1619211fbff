"""Count different values in a fixed amount of memory, whatever their order.

The k smallest hashes estimate the number of all (Beyer et al. 2007).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_NONE: Hashes = np.empty(0, np.uint64)
_ALL = 2.0**64


class Distinct:
    """Counts different values by their smallest hashes, uint64 (m,), at most ``most`` of them.

    These depend on the values alone, not on their number, order or task. So counts of parts can be
    merged in any order. Up to ``most`` the count is exact, but for values with equal hashes.
    Beyond, its relative standard error is about ``1 / sqrt(most)``. A hash takes 16 bytes, and its
    share of sorting ``most``.

    >>> distinct = Distinct(most=100, hashes=np.array([7, 7, 9], np.uint64))
    >>> distinct.add(np.array([9, 11], np.uint64))
    >>> distinct.count()
    3
    """

    def __init__(self, most: int, hashes: Hashes = _NONE) -> None:
        self.most = most
        self._smallest = np.unique(hashes)[:most]
        self._waiting: list[Hashes] = []
        self._waits = 0

    def add(self, hashes: Hashes) -> None:
        """Add hashes of values, uint64 (n,)."""
        if len(self._smallest) == self.most:
            hashes = hashes[hashes < self._smallest[-1]]
        self._waiting.append(hashes)
        self._waits += len(hashes)
        if self._waits >= self.most:
            self._settle()

    def smallest(self) -> Hashes:
        """Return the smallest hashes, ascending, uint64 (at most ``most``,)."""
        if self._waiting:
            self._settle()
        return self._smallest

    def count(self) -> int:
        """Return the number of different values, or an estimate if they are more than ``most``."""
        smallest = self.smallest()
        if len(smallest) < self.most:
            return len(smallest)
        return max(round((self.most - 1) / ((float(smallest[-1]) + 1.0) / _ALL)), self.most)

    def _settle(self) -> None:
        """Merge the waiting hashes into the smallest."""
        self._smallest = np.unique(np.concatenate([self._smallest, *self._waiting]))[: self.most]
        self._waiting, self._waits = [], 0
