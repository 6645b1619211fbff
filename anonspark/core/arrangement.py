"""Arrange categories by a target: a learned order, and a hierarchy that joins neighbours.

Sets of values that are neighbours in the order say much about the target. Rare values get a
position that reveals nothing: the value of one person at the end of the order would disclose the
class of that person. For several classes the order is the first axis of correspondence analysis
(Benzecri 1973).
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
    """Order values so that neighbors occur with similar classes of a target. Returns their indices.

    ``counts`` (int64, shape (v, c)) holds the records of each value and class. Each of the classes,
    at least two, has a record. Values with fewer than ``least`` records get a position that reveals
    nothing.

    >>> counts = np.array([[90, 10], [50, 50], [80, 20]])
    >>> learned_order(["flu", "cancer", "cold"], counts, ["alive", "dead"], least=5)
    [0, 2, 1]
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
    """Return the position of each value on the first axis of correspondence analysis."""
    total, of_class, of_value = counts.sum(), counts.sum(axis=0), counts.sum(axis=1)
    frequent = of_value >= least
    positions = np.zeros(len(counts))
    if frequent.any():
        records = of_value[frequent]
        # In whole numbers the products of many records would be beyond 64 bits.
        both = np.outer(records.astype(np.float64), of_class.astype(np.float64))
        deviations = (counts[frequent] - both / total) / np.sqrt(both)
        left, _, right = np.linalg.svd(deviations, full_matrices=False)
        most_frequent = min(range(len(classes)), key=lambda t: (-of_class[t], classes[t]))
        sign = -1.0 if right[0, most_frequent] > 0 else 1.0
        positions[frequent] = sign * left[:, 0] / np.sqrt(records / total)
    # Adding 0 makes one zero of two.
    return [round(position, _DECIMALS) + 0.0 for position in positions.tolist()]


@dataclass(frozen=True)
class Joined:
    """Two groups that became one: the positions of its values, and the bits of the target lost."""

    values: list[int]
    cost: float


@dataclass(frozen=True)
class LearnedHierarchy:
    """Groups of neighbours, from fine to coarse, and the groups that were joined, in order.

    ``levels`` holds the groups of each level, and of each group the positions of its values.
    """

    levels: list[list[list[int]]]
    joined: list[Joined]


class _Groups:
    """Groups of neighbours, as a chain in which two neighbours become one."""

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
        """Return the bits that are lost if a group joins the next one."""
        right = self.after[left]
        first, second = self.counts[left], self.counts[right]
        return round(_bits(first + second) - _bits(first) - _bits(second), _DECIMALS)

    def join(self, left: int) -> None:
        """Join a group and the next one. The result has the number of the first."""
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
        """Return the records of a group."""
        return int(self.counts[group].sum())

    def groups(self) -> list[list[int]]:
        """Return the positions of the values of all groups."""
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
    """Join neighbors of an order into groups, the cheapest first. O(v log v) for v values.

    ``counts`` (int64, shape (v, c)) holds the records of each value, in the order, and class. Each
    group of each level has at least ``least`` records. The level of all values is left out.

    >>> learned_hierarchy(np.array([[9, 1], [8, 2], [1, 9], [2, 8]]), least=1).levels
    [[[0, 1], [2, 3]]]
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
        # A group that was joined since has new costs, and waits again with these.
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
    """Return the label of a group of values in the learned order: braces, or the value itself.

    A long label shows the first two values.

    >>> group_label(["flu"]), group_label(["flu", "cold"])
    ('flu', '{flu, cold}')
    """
    if len(values) == 1:
        return values[0]
    whole = "{" + ", ".join(values) + "}"
    if len(whole) <= _LONGEST:
        return whole
    digest = hashlib.sha256("\n".join(values).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{{{values[0]}, {values[1]}, .. {len(values) - 2} more #{digest[:_DIGITS]}}}"
