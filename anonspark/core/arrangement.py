"""Categories arranged by a target: a learned order, and the hierarchy of joining its neighbours.

Sets of values that are neighbours in the order say much about the target. Rare values get a place
that reveals nothing: the value of one person at the end of the order would disclose what class that
person has. For several classes the order is the first axis of correspondence analysis (Benzecri
1973).
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonspark.core.arrays import Integers

_TWO = 2
_DECIMALS = 9
_LONGEST = 80
_DIGITS = 4

TOP = "*"
"""The label of all values together."""


def learned_order(
    values: Sequence[str], counts: Integers, classes: Sequence[str], least: int
) -> list[int]:
    """Return the order of values in which neighbours go with the classes of a target alike.

    Parameters
    ----------
    values : sequence of str
        Different ones.
    counts : int64 ndarray of shape (v, c)
        Records of each value and class, every class with one at least.
    classes : sequence of str
        Two at least.
    least : int
        Values with fewer records get a place that reveals nothing.

    Returns
    -------
    list of int
        Places in ``values``.
    """
    keys: Sequence[Fraction | float]
    if len(classes) == _TWO:
        keys = _rates(counts, classes, least)
    else:
        keys = _first_axis(counts, classes, least)
    return sorted(range(len(values)), key=lambda v: (keys[v], values[v]))


def _rates(counts: Integers, classes: Sequence[str], least: int) -> list[Fraction]:
    """Return the share of the rarer class with each value."""
    of_class = counts.sum(axis=0).tolist()
    rarer = max(range(_TWO), key=lambda t: (-of_class[t], classes[t]))
    whole = Fraction(of_class[rarer], sum(of_class))
    return [
        Fraction(count[rarer], sum(count)) if sum(count) >= least else whole
        for count in counts.tolist()
    ]


def _first_axis(counts: Integers, classes: Sequence[str], least: int) -> list[float]:
    """Return the place of each value on the first axis of correspondence analysis."""
    total, of_class, of_value = counts.sum(), counts.sum(axis=0), counts.sum(axis=1)
    frequent = of_value >= least
    places = np.zeros(len(counts))
    if frequent.any():
        records = of_value[frequent]
        # In whole numbers the products of many records would be beyond 64 bits.
        both = np.outer(records.astype(np.float64), of_class.astype(np.float64))
        deviations = (counts[frequent] - both / total) / np.sqrt(both)
        left, _, right = np.linalg.svd(deviations, full_matrices=False)
        most = min(range(len(classes)), key=lambda t: (-of_class[t], classes[t]))
        sign = -1.0 if right[0, most] > 0 else 1.0
        places[frequent] = sign * left[:, 0] / np.sqrt(records / total)
    # Adding 0 makes one zero of two.
    return [round(position, _DECIMALS) + 0.0 for position in places.tolist()]


@dataclass(frozen=True)
class Joined:
    """Two groups that became one.

    Parameters
    ----------
    values : list of int
        Places in the order.
    cost : float
        Bits of the target lost.
    """

    values: list[int]
    cost: float


@dataclass(frozen=True)
class LearnedHierarchy:
    """Groups of neighbours, from fine to coarse.

    Parameters
    ----------
    levels : list of list of list of int
        Of each level its groups, of each group the places of its values in the order.
    joined : list of Joined
        In the order of joining.
    """

    levels: list[list[list[int]]]
    joined: list[Joined]


class _Groups:
    """Groups of neighbours, as a chain in which two beside one another become one."""

    def __init__(self, counts: Integers) -> None:
        self.counts = [count.astype(np.int64) for count in counts]
        n = len(self.counts)
        self.first = list(range(n))
        self.last = list(range(n))
        self.before = [index - 1 for index in range(n)]
        self.after = [index + 1 if index + 1 < n else -1 for index in range(n)]
        self.alive = [True] * n
        self.number = n
        self.joined: list[Joined] = []

    def cost(self, left: int) -> float:
        """Return the bits lost if a group and the next one become one."""
        right = self.after[left]
        first, second = self.counts[left], self.counts[right]
        return round(_bits(first + second) - _bits(first) - _bits(second), _DECIMALS)

    def join(self, left: int) -> None:
        """Make a group and the next one the first of them."""
        right = self.after[left]
        cost = self.cost(left)
        self.counts[left] = self.counts[left] + self.counts[right]
        self.last[left] = self.last[right]
        self.after[left] = self.after[right]
        if self.after[left] >= 0:
            self.before[self.after[left]] = left
        self.alive[right] = False
        self.number -= 1
        self.joined.append(Joined(list(range(self.first[left], self.last[left] + 1)), cost))

    def size(self, group: int) -> int:
        return int(self.counts[group].sum())

    def groups(self) -> list[list[int]]:
        """Return the places of the values of all groups."""
        return [
            list(range(self.first[index], self.last[index] + 1))
            for index in range(len(self.counts))
            if self.alive[index]
        ]


def _bits(counts: Integers) -> float:
    """Return records times the entropy of their classes."""
    total = int(counts.sum())
    bits = math.fsum(count * math.log2(count) for count in counts.tolist() if count)
    return total * math.log2(total) - bits if total else 0.0


def learned_hierarchy(counts: Integers, least: int) -> LearnedHierarchy:
    """Join neighbours of an order as long as little of the target is lost.

    Parameters
    ----------
    counts : int64 ndarray of shape (v, c)
        Records of each value, in the order, and class.
    least : int
        Records of each group of each level.

    Returns
    -------
    LearnedHierarchy
        Without the level of all values together.

    Notes
    -----
    O(v log v) for v values.
    """
    groups = _Groups(counts)
    _join_small(groups, least)
    levels = [groups.groups()] if groups.joined and groups.number > 1 else []
    halves = set()
    half = groups.number
    while half > _TWO:
        half = -(-half // 2)
        halves.add(half)
    waiting = [
        (groups.cost(index), groups.first[index], index, groups.last[groups.after[index]])
        for index in range(len(counts))
        if groups.alive[index] and groups.after[index] >= 0
    ]
    heapq.heapify(waiting)
    while groups.number > 1:
        cost, _, left, stop = heapq.heappop(waiting)
        right = groups.after[left]
        # Whatever was joined since has other costs, and waits again under these.
        if not groups.alive[left] or right < 0 or groups.last[right] != stop:
            continue
        if cost != groups.cost(left):
            continue
        groups.join(left)
        if groups.number in halves:
            levels.append(groups.groups())
        for index in (groups.before[left], left):
            if index >= 0 and groups.after[index] >= 0:
                following = groups.last[groups.after[index]]
                heapq.heappush(waiting, (groups.cost(index), groups.first[index], index, following))
    return LearnedHierarchy(levels, groups.joined)


def _join_small(groups: _Groups, least: int) -> None:
    """Join groups of too few records with neighbours, the smallest first."""
    waiting = [(groups.size(index), index) for index in range(len(groups.counts))]
    heapq.heapify(waiting)
    while groups.number > 1:
        size, index = heapq.heappop(waiting)
        if size >= least:
            return
        if not groups.alive[index] or groups.size(index) != size:
            continue
        before, after = groups.before[index], groups.after[index]
        takes_left = before >= 0 and (after < 0 or groups.cost(before) <= groups.cost(index))
        left = before if takes_left else index
        groups.join(left)
        heapq.heappush(waiting, (groups.size(left), left))


def group_label(values: Sequence[str]) -> str:
    """Return the label of a group of values.

    Parameters
    ----------
    values : sequence of str
        In the learned order.

    Returns
    -------
    str
        A single value itself. Several in braces, or the first two where that would be long.
    """
    if len(values) == 1:
        return values[0]
    whole = "{" + ", ".join(values) + "}"
    if len(whole) <= _LONGEST:
        return whole
    digest = hashlib.sha256("\n".join(values).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{{{values[0]}, {values[1]}, .. {len(values) - 2} more #{digest[:_DIGITS]}}}"
