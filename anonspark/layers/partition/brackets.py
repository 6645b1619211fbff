"""Brackets: the interval in which a cut is expected, between a lower and an upper end.

Whatever the exact boundary inside of a bracket is, records outside of it go the same way. So they
need not be known one by one to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonspark.core.arrays import Flags, Integers
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.vantage_points import distances_from
from anonspark.layers.partition.cut_tree import Boundary
from anonspark.staged.keys import normalized_positions


@dataclass(frozen=True)
class Bracket:
    """An interval in the order of records, which are compared key by key, see :class:`Boundary`.

    ``lower`` and ``upper`` are the ends: values of the keys or of the first ones of them.
    ``lower_goes_left`` and ``upper_goes_right`` say whether records equal to an end are outside of
    the bracket already. ``vantage_point`` is the normalized origin of distances.
    """

    keys: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    lower_goes_left: bool = False
    upper_goes_right: bool = False
    vantage_point: tuple[float, ...] | None = None

    def allows(self, boundary: Boundary) -> bool:
        """Return whether a boundary keeps every record outside of the bracket on its side.

        >>> bracket = Bracket((0,), (17,), (42,))
        >>> bracket.allows(Boundary((0,), (30,))), bracket.allows(Boundary((0,), (50,)))
        (True, False)
        """
        shared = min(len(boundary.keys), len(self.keys))
        if boundary.keys[:shared] != self.keys[:shared]:
            return False
        if boundary.vantage_point != self.vantage_point:
            return False
        left = _comparison(boundary.thresholds, self.lower)
        right = _comparison(boundary.thresholds, self.upper)
        equal_left, equal_right = boundary.equal_goes_left, not boundary.equal_goes_left
        return (
            left > 0
            or (left == 0 and _agrees(boundary, self.lower, self.lower_goes_left, equal_left))
        ) and (
            right < 0
            or (right == 0 and _agrees(boundary, self.upper, self.upper_goes_right, equal_right))
        )

    def outside(self, columns: Integers) -> tuple[Flags, Flags]:
        """Return which records of a transposed key matrix are left, and which right of the bracket.

        >>> left, right = Bracket((0,), (17,), (42,)).outside(np.array([[3, 20, 99]]))
        >>> left.tolist(), right.tolist()
        ([True, False, False], [False, False, True])
        """
        lower = Boundary(self.keys[: len(self.lower)], self.lower, self.lower_goes_left)
        upper = Boundary(self.keys[: len(self.upper)], self.upper, not self.upper_goes_right)
        return goes_left(columns, lower), ~goes_left(columns, upper)


def _comparison(thresholds: Sequence[int], end: Sequence[int]) -> int:
    """Return -1, 0 or 1: whether thresholds come before an end, agree with it, or come after it."""
    shared = min(len(thresholds), len(end))
    first, second = tuple(thresholds[:shared]), tuple(end[:shared])
    return (first > second) - (first < second)


def _agrees(boundary: Boundary, end: Sequence[int], decided: bool, equal_agrees: bool) -> bool:
    """Return whether records outside of an end go its way, if the boundary agrees with it.

    ``decided`` says whether records equal to the end are outside, and ``equal_agrees`` whether
    records equal to the boundary go the end's way.
    """
    if len(boundary.thresholds) < len(end):
        # Records outside are among those equal to the boundary.
        return equal_agrees
    if len(boundary.thresholds) == len(end):
        return equal_agrees or not decided
    # The boundary divides records that are equal to the end.
    return not decided


def row_of(key: int) -> int:
    """Return the row of a transposed key matrix that holds a key of a boundary.

    Distances are in the last row, if the boundary has a vantage point. See :func:`with_distances`.
    """
    return -1 if key == DISTANCE else key


def with_distances(
    columns: Integers,
    vantage_point: tuple[float, ...] | None,
    quasi_identifiers: Sequence[QuasiIdentifier],
) -> Integers:
    """Append the distances to a vantage point to a transposed key matrix, if there is one."""
    if vantage_point is None:
        return columns
    positions = normalized_positions(columns[: len(quasi_identifiers)].T, quasi_identifiers)
    distances = distances_from(positions, np.array([vantage_point], np.float64))
    return np.concatenate([columns, distances[None]])


def goes_left(columns: Integers, boundary: Boundary) -> Flags:
    """Return which records, of a transposed key matrix, a boundary sends to the left.

    >>> goes_left(np.array([[3, 42, 42], [0, 1, 9]]), Boundary((0, 1), (42, 1))).tolist()
    [True, True, False]
    """
    left = np.zeros(columns.shape[1], bool)
    tied = np.ones(columns.shape[1], bool)
    for key, threshold in zip(boundary.keys, boundary.thresholds, strict=True):
        values = columns[row_of(key)]
        left |= tied & (values < threshold)
        tied &= values == threshold
    return left | tied if boundary.equal_goes_left else left


def agree(columns: Integers, boundary: Boundary) -> Flags:
    """Return which records are equal to a boundary in all its keys."""
    equal = np.ones(columns.shape[1], bool)
    for key, threshold in zip(boundary.keys, boundary.thresholds, strict=True):
        equal &= columns[row_of(key)] == threshold
    return equal


def bracket_around(
    boundary: Boundary,
    columns: Integers,
    slack: float,
    *,
    whole_runs: bool,
    cuts_nearest: bool,
) -> Bracket | None:
    """Return the bracket in which the cut at the true half is expected, by a sample, or None.

    ``boundary`` cuts the sample, whose transposed keys are ``columns``. The true half may miss that
    of the sample by ``slack`` ranks. With ``whole_runs``, cuts keep records of equal first key
    together, and with ``cuts_nearest`` these go to the side that makes the halves more equal. None
    is returned if the bracket would not allow the boundary of the sample itself.
    """
    (lower, lower_is_long), (upper, upper_is_long) = _ends(boundary.keys, columns, slack)
    lower_goes_left = upper_goes_right = False
    if whole_runs:
        (median,) = boundary.thresholds
        before, behind = median > lower[0], median < upper[0]
        # A long run at the lower end goes left if it is not all that the bracket holds: the half is
        # in it or behind it. So does one at the upper end go right, if no rule keeps it left.
        lower_goes_left = lower_is_long and (before or boundary.equal_goes_left)
        stays_right = cuts_nearest if behind else not boundary.equal_goes_left
        upper_goes_right = upper_is_long and stays_right
    bracket = Bracket(boundary.keys, lower, upper, lower_goes_left, upper_goes_right)
    return bracket if bracket.allows(boundary) else None


def distance_bracket(
    keys: Sequence[int], vantage_point: tuple[float, ...], columns: Integers, slack: float
) -> Bracket:
    """Return the bracket that the half nearest to a vantage point is expected to end in.

    ``columns`` are the transposed keys of the node's sample, which is not empty, with the
    distances. The true half may miss that of the sample by ``slack`` ranks.
    """
    (lower, _), (upper, _) = _ends(keys, columns, slack)
    return Bracket(tuple(keys), lower, upper, vantage_point=vantage_point)


_End = tuple[tuple[int, ...], bool]


def _ends(keys: Sequence[int], columns: Integers, slack: float) -> tuple[_End, _End]:
    """Return the records some ranks before the half and after it, see :func:`_end`."""
    n = columns.shape[1]
    first, last = max(int(n / 2 - slack), 1), min(int(n / 2 + slack) + 2, n)
    # A run this short is handed back whole without much ado.
    most = max(slack / 4, 8)
    return _end(keys, columns, first, most), _end(keys, columns, last, most)


def _end(keys: Sequence[int], columns: Integers, rank: int, most: float) -> _End:
    """Return the record of a rank, by the fewest keys that leave at most ``most`` ties.

    Also return whether more records than that equal it in all keys.
    """
    tied, thresholds, equal = columns, [], 0
    for key in keys:
        values = tied[row_of(key)]
        threshold = int(np.partition(values, rank - 1)[rank - 1])
        thresholds.append(threshold)
        rank -= int(np.count_nonzero(values < threshold))
        same = values == threshold
        equal = int(np.count_nonzero(same))
        if equal <= most:
            break
        tied = tied[:, same]
    return tuple(thresholds), equal > most
