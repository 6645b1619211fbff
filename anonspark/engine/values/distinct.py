"""Count different values, in memory of a fixed size and independent of their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_NONE: Hashes = np.empty(0, np.uint64)
_ALL = 2.0**64


class Distinct:
    """Counts different values by their hashes, of which the smallest are kept.

    What is kept depends on the values alone, not on how often, in which order or in which task they
    came. So counts of parts can be merged in any order.

    Parameters
    ----------
    most : int
        Hashes that are kept. Up to here the count is exact, but for values of one hash. Beyond, its
        relative standard error is about ``1 / sqrt(most)``.
    hashes : uint64 ndarray of shape (m,), optional
        Of values seen.

    Notes
    -----
    16 bytes for each hash that is kept. A hash that is added costs a share of a sort of as many as
    are kept.
    """

    def __init__(self, most: int, hashes: Hashes = _NONE) -> None:
        self.most = most
        self._smallest = np.unique(hashes)[:most]
        self._waiting: list[Hashes] = []
        self._waits = 0

    def add(self, hashes: Hashes) -> None:
        """Take in hashes of values, uint64 ndarray of shape (n,)."""
        if len(self._smallest) == self.most:
            hashes = hashes[hashes < self._smallest[-1]]
        self._waiting.append(hashes)
        self._waits += len(hashes)
        if self._waits >= self.most:
            self._settle()

    def smallest(self) -> Hashes:
        """Return the hashes that are kept, rising, uint64 ndarray of shape (at most ``most``,)."""
        if self._waiting:
            self._settle()
        return self._smallest

    def count(self) -> int:
        """Return how many different values there were, more or less."""
        smallest = self.smallest()
        if len(smallest) < self.most:
            return len(smallest)
        return max(round((self.most - 1) / ((float(smallest[-1]) + 1.0) / _ALL)), self.most)

    def _settle(self) -> None:
        self._smallest = np.unique(np.concatenate([self._smallest, *self._waiting]))[: self.most]
        self._waiting, self._waits = [], 0
