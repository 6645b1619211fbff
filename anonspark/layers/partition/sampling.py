"""A sample of the records, from which the tree is predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.kernels.brackets import find_outermost
from anonspark.kernels.descent import draw_records

MOST_SAMPLED = 2**18
"""Records of a sample, more or less: what the driver gets of a table of any size."""

# One of so many records at most: reading more of a small table helps less than it costs.
_SMALLEST_SHARE = 16
# Beside the sample, records with the outermost values, which decide how wide a node is: one for so
# many sampled ones.
_SAMPLED_PER_OUTERMOST = 8

# An odd number with about as many ones as zeros; scatters the numbers of records.
_SCATTER = np.int64(-0x61C8864680B583EB)


@dataclass(frozen=True)
class Sampling:
    """Which records are sampled.

    Parameters
    ----------
    rows : int
        Records of the table.
    salt : int
        Tells this draw from others.
    """

    rows: int
    salt: int

    @property
    def expected(self) -> int:
        """How many records are drawn, more or less."""
        return min(MOST_SAMPLED, self.rows // _SMALLEST_SHARE)

    def draw(self, keys: Integers, d: int) -> tuple[Integers, Integers]:
        """Draw among the records of a batch.

        Parameters
        ----------
        keys : int64 ndarray of shape (n, width)
            See :func:`anonspark.staged.keys.key_matrix`.
        d : int
            Quasi-identifiers.

        Returns
        -------
        records : int64 ndarray
        weights : int64 ndarray of the same length
            1 for records of the sample, 0 for those that are taken for their outermost values.

        Notes
        -----
        By the keyed hashes of the records, whose values nobody can choose, and by their numbers,
        so that of equal records each is drawn by itself. Both are staged, so a task that runs
        again draws the same. O(n d) time.
        """
        limit = np.array([2**64 * self.expected // self.rows], np.uint64)
        scattered = keys[:, d] ^ (keys[:, d + 1] * _SCATTER)
        first_draw = np.array([0, 1])
        leaves = np.zeros(len(keys), np.int32)
        salt = np.array([self.salt], np.uint64)
        _, drawn, _ = draw_records(scattered, leaves, first_draw, salt, limit)
        of_batch = len(keys) * self.expected // (self.rows * _SAMPLED_PER_OUTERMOST)
        outermost = np.zeros((d, 2, of_batch // (2 * d)), np.int64)
        find_outermost(keys, outermost)
        others = np.unique(outermost)
        weights = np.repeat(np.array([1, 0]), [len(drawn), len(others)])
        return np.concatenate([drawn, others]), weights
