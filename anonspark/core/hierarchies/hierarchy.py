"""The tree of a hierarchy: leaves in order, and for each level the groups that they fall into.

The leaves stand in tree order, so that every group is a run of neighbours. The position of a leaf
is its code, and medians, widths and distances are computed on these codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Integers


class Level(NamedTuple):
    """One level above the leaves: its groups in the order of the leaves.

    ``starts`` are the codes of their first leaves, ascending; a group ends where the next begins.
    """

    starts: tuple[int, ...]
    labels: tuple[str, ...]


class Tree(NamedTuple):
    """The nodes bottom up: the leaves in order, then the groups of level 1, of level 2, ...

    ``parents`` (int64, shape (nodes,)) is the position of each node's parent, which is always a
    later one, and -1 for the root. ``heights`` is the level of each node, 0 for leaves.
    """

    parents: Integers
    heights: Integers


@dataclass(frozen=True)
class Hierarchy:
    """A tree over values, all of whose leaves have the same depth.

    ``levels`` hold the groups from fine to coarse: at least one level, and one group in the last.

    >>> rows = [("flu", "viral", "*"), ("burn", "wound", "*"), ("measles", "viral", "*")]
    >>> tree = Hierarchy.from_rows(rows)
    >>> tree.leaves, tree.levels[0]
    (('flu', 'measles', 'burn'), Level(starts=(0, 2), labels=('viral', 'wound')))
    """

    leaves: tuple[str, ...]
    levels: tuple[Level, ...]

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[str]], height: int | None = None) -> Self:
        """Build a hierarchy from rows: each value, then its groups from fine to coarse.

        The last label is the same in all rows, no value occurs twice, and a group lies in one group
        only. ``height``, the levels above the leaves, is needed only without rows. Children of a
        group keep the order in which they first appear.
        """
        columns = list(zip(*rows, strict=True)) if rows else [()] * ((height or 0) + 1)
        # In each column the labels are numbered as they first appear; coarse columns decide first.
        keys = [np.arange(len(rows))]
        for column in columns[1:]:
            number: dict[str, int] = {}
            keys.append(np.array([number.setdefault(label, len(number)) for label in column]))
        order = np.lexsort(keys).tolist() if rows else []
        levels = []
        for column, key in zip(columns[1:], keys[1:], strict=True):
            sorted_key = key[order]
            starts = np.flatnonzero(np.diff(sorted_key, prepend=-1)).tolist()
            levels.append(Level(tuple(starts), tuple(column[order[start]] for start in starts)))
        return cls(tuple(columns[0][index] for index in order), tuple(levels))

    def __reduce__(self) -> tuple[Any, ...]:
        # The arrays that are derived from the fields do not travel.
        return type(self), (self.leaves, self.levels)

    @property
    def height(self) -> int:
        """Level of the root. Leaves have level 0."""
        return len(self.levels)

    @cached_property
    def _nodes(self) -> Integers:
        """Position in :meth:`tree` of the node above each leaf, of shape (height + 1, leaves)."""
        nodes = np.empty((self.height + 1, len(self.leaves)), np.int64)
        nodes[0] = np.arange(len(self.leaves))
        first = len(self.leaves)
        for level, (starts, _) in enumerate(self.levels, start=1):
            nodes[level] = first - 1
            nodes[level] += np.searchsorted(np.array(starts, np.int64), nodes[0], side="right")
            first += len(starts)
        return nodes

    @cached_property
    def _first_leaves(self) -> Integers:
        """Code of the first leaf below each node."""
        starts = chain(range(len(self.leaves)), *(level.starts for level in self.levels))
        return np.fromiter(starts, np.int64)

    @cached_property
    def _leaf_counts(self) -> Integers:
        """Number of leaves below each node."""
        ends = chain(
            range(1, len(self.leaves) + 1),
            *((*level.starts[1:], len(self.leaves)) for level in self.levels if level.starts),
        )
        return np.fromiter(ends, np.int64) - self._first_leaves

    @cached_property
    def _labels(self) -> npt.NDArray[np.object_]:
        """Label of each node."""
        labels = [*self.leaves, *chain.from_iterable(level.labels for level in self.levels)]
        array = np.empty(len(labels), object)
        array[:] = labels
        return array

    def lowest_common_level(self, low_codes: Integers, high_codes: Integers) -> Integers:
        """Return the level of the lowest common ancestor of sets of leaves, 0 for a single leaf.

        ``low_codes`` and ``high_codes`` are the smallest and the largest code of each set.

        >>> rows = [("flu", "viral", "*"), ("measles", "viral", "*"), ("burn", "wound", "*")]
        >>> tree = Hierarchy.from_rows(rows)
        >>> tree.lowest_common_level(np.array([0, 0, 1]), np.array([0, 1, 2])).tolist()
        [0, 1, 2]
        """
        # Leaves that share a group share all coarser ones, so the different levels are the lower.
        different = self._nodes[:, low_codes] != self._nodes[:, high_codes]
        levels: Integers = different.sum(axis=0, dtype=np.int64)
        return levels

    def nodes(self, level: int | Integers, codes: Integers) -> Integers:
        """Return the positions in :meth:`tree` of the ancestors of leaves, at a level or one each.

        >>> tree = Hierarchy.from_rows([("flu", "viral", "*"), ("burn", "wound", "*")])
        >>> tree.nodes(1, np.array([0, 1])).tolist()
        [2, 3]
        """
        numbers: Integers = self._nodes[level, codes]
        return numbers

    def leaf_counts(self, level: int | Integers, codes: Integers) -> Integers:
        """Count the leaves below the ancestors of leaves. See :meth:`nodes`."""
        return self._leaf_counts[self.nodes(level, codes)]

    def labels(self, level: int | Integers, codes: Integers) -> npt.NDArray[np.object_]:
        """Return the labels of the ancestors of leaves, an array of str. See :meth:`nodes`.

        >>> tree = Hierarchy.from_rows([("flu", "viral", "*"), ("burn", "wound", "*")])
        >>> tree.labels(1, np.array([1, 0])).tolist()
        ['wound', 'viral']
        """
        return self._labels[self.nodes(level, codes)]

    def tree(self) -> Tree:
        """Return all nodes bottom up, for the hierarchical earth mover's distance."""
        widths = [len(self.leaves), *(len(level.starts) for level in self.levels)]
        heights = np.repeat(np.arange(self.height + 1, dtype=np.int64), widths)
        parents = np.full(len(heights), -1, np.int64)
        inner = heights < self.height
        parents[inner] = self._nodes[heights[inner] + 1, self._first_leaves[inner]]
        return Tree(parents, heights)


# Values come as text, in the form in which they are staged. They are the leaves. The top of each
# hierarchy is labelled ``*``.

TOP = "*"
"""Label of everything."""

MASK = "*"
"""The sign for a masked character."""

CalendarLevel = Literal["month", "quarter", "year", "decade"]


def interval_hierarchy(
    values: Iterable[str], widths: Sequence[float], origin: float = 0, top: float | None = None
) -> Hierarchy:
    """Build the hierarchy of half-open intervals, as in ``[20-25[`` and ``90+``, in numeric order.

    Values are different finite numbers, written in decimal, with or without an exponent. Each width
    is a multiple of the one before, taken as written: 0.1 is a tenth. ``origin`` is an end of
    intervals of all widths. Numbers from ``top`` on are one group at all levels, and no interval
    crosses it.

    >>> tree = interval_hierarchy(["23", "95", "20"], [5, 10], top=90)
    >>> tree.leaves, tree.levels[0].labels, tree.levels[1].labels
    (('20', '23', '95'), ('[20-25[', '90+'), ('[20-30[', '90+'))
    """
    decimals = [_decimal(width) for width in widths]
    start = _decimal(origin)
    last = start if top is None else _decimal(top)
    places = max(_places(number) for number in (*decimals, start, last))
    # In units of the last decimal place all ends are whole numbers.
    units = [int(width.scaleb(places)) for width in decimals]
    first = int(start.scaleb(places))
    end = None if top is None else int(last.scaleb(places))
    numbers = sorted((Fraction(value), value) for value in values)
    rows = []
    for number, value in numbers:
        beyond = number * 10**places - first
        row = [value]
        for unit in units:
            low = first + beyond // unit * unit
            high = low + unit if end is None else min(low + unit, end)
            row.append(f"[{_number_text(low, places)}-{_number_text(high, places)}[")
        if end is not None and number * 10**places >= end:
            row[1:] = [f"{_number_text(end, places)}+"] * len(units)
        rows.append([*row, TOP])
    return Hierarchy.from_rows(rows, height=len(widths) + 1)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number)).normalize()


def _places(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _number_text(units: int, places: int) -> str:
    """Write a number of units of the last decimal place, without zeros at its end.

    >>> _number_text(1250, 3), _number_text(-5, 1)
    ('1.25', '-0.5')
    """
    digits = f"{abs(units):0{places + 1}d}"
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def prefix_hierarchy(values: Iterable[str], masked: Sequence[int]) -> Hierarchy:
    """Build the hierarchy of codes whose last characters are masked, as in ``061**``.

    Codes hold no ``*``. If one has a single character, all have, because its mask would be the
    label of everything. ``masked`` is the number of characters that each level masks, ascending. A
    shorter code is masked as a whole. Leaves are ordered by length, then by code point, because
    masks keep the length.

    >>> prefix_hierarchy(["06110", "06119", "06200"], [1, 2]).levels[0].labels
    ('0611*', '0620*')
    """
    rows = [
        [value, *(_masked(value, count) for count in masked), TOP]
        for value in sorted(values, key=lambda value: (len(value), value))
    ]
    return Hierarchy.from_rows(rows, height=len(masked) + 1)


def beginning_hierarchy(values: Iterable[str], shown: Sequence[int]) -> Hierarchy:
    """Build the hierarchy of codes by their first characters, as in ``E11*``, by code point.

    Codes hold no ``*``. ``shown`` is how many characters each level shows, descending; a code with
    fewer stays as it is.

    >>> beginning_hierarchy(["E119", "E118", "J45"], [3]).levels[0].labels
    ('E11*', 'J45*')
    """
    rows = [
        [value, *(value[:count] + MASK * (len(value) >= count) for count in shown), TOP]
        for value in sorted(values)
    ]
    return Hierarchy.from_rows(rows, height=len(shown) + 1)


def _masked(value: str, count: int) -> str:
    shown = max(len(value) - count, 0)
    return value[:shown] + MASK * (len(value) - shown)


def calendar_hierarchy(values: Iterable[str], levels: Sequence[CalendarLevel]) -> Hierarchy:
    """Build the hierarchy of dates by time: ``2020-01``, ``2020-Q1``, ``2020``, ``2020s``.

    Dates are written as in ISO 8601, and years may have more than four digits or a sign. ``levels``
    go from fine to coarse.

    >>> calendar_hierarchy(["2021-05-30", "1999-12-31"], ["quarter", "decade"]).levels[0].labels
    ('1999-Q4', '2021-Q2')
    """
    dates = sorted((*_year_month_day(value), value) for value in values)
    rows = []
    for _, month, _, value in dates:
        year = value.rsplit("-", 2)[0]
        labels = {
            "month": value.rpartition("-")[0],
            "quarter": f"{year}-Q{(month + 2) // 3}",
            "year": year,
            "decade": f"{_decade(year)}s",
        }
        rows.append([value, *(labels[level] for level in levels), TOP])
    return Hierarchy.from_rows(rows, height=len(levels) + 1)


def _decade(year: str) -> str:
    """Return the first year of a year's decade, written as the year is.

    >>> _decade("2023"), _decade("-0003")
    ('2020', '-0010')
    """
    first = int(year) // 10 * 10
    sign = "-" if first < 0 else year[: year.startswith("+")]
    return f"{sign}{abs(first):04d}"


def _year_month_day(value: str) -> tuple[int, int, int]:
    year, month, day = value.rsplit("-", 2)
    return int(year), int(month), int(day)
