"""Sets of values of one attribute, as conditions ask for them, and how regions lie to them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from anonspark.release.regions import CategoryRegion, Interval, OrderedRegion

Cut: TypeAlias = tuple[Any, int]
"""A place between values: before one (0) or behind it (1)."""

FIRST: Cut = (-math.inf, 0)
LAST: Cut = (math.inf, 1)
# Keys of codes begin with digits.
FIRST_CODE: Cut = ("", 0)
LAST_CODE: Cut = ("\U0010ffff", 0)


@dataclass(frozen=True)
class OrderedSet:
    """Some of the values of an ordered attribute.

    Parameters
    ----------
    cuts : tuple of Cut
        Ascending. The values are those from the first to the second, from the third to the
        fourth, and so on.
    missing : bool
        Whether missing is one of them.
    """

    cuts: tuple[Cut, ...]
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is in it."""
        return not self.cuts and not self.missing

    def combined(self, other: OrderedSet, keep: Callable[[bool, bool], bool]) -> OrderedSet:
        """Return the values that ``keep`` keeps, given whether each set has them."""
        cuts: list[Cut] = []
        mine = theirs = kept = False
        own, others = set(self.cuts), set(other.cuts)
        for cut in sorted(own | others):
            mine ^= cut in own
            theirs ^= cut in others
            if keep(mine, theirs) != kept:
                kept = not kept
                cuts.append(cut)
        return OrderedSet(tuple(cuts), keep(self.missing, other.missing))

    def meets(self, low: Cut, high: Cut) -> bool:
        """Return whether it has one of the values from a cut to another, later one."""
        if low >= high:
            return False
        place = bisect_right(self.cuts, low)
        return place % 2 == 1 or (place < len(self.cuts) and self.cuts[place] < high)


@dataclass(frozen=True)
class CategorySet:
    """Some of the values of a category.

    Parameters
    ----------
    values : frozenset of str
    others : bool
        Whether it is all values but these.
    missing : bool
        Whether missing is one of them.
    """

    values: frozenset[str]
    others: bool = False
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is in it."""
        return not self.values and not self.others and not self.missing

    def combined(self, other: CategorySet, keep: Callable[[bool, bool], bool]) -> CategorySet:
        """Return the values that ``keep`` keeps, given whether each set has them."""
        others = keep(self.others, other.others)
        # What both name, and what only one of them names.
        zones = (
            (self.values & other.values, not self.others, not other.others),
            (self.values - other.values, not self.others, other.others),
            (other.values - self.values, self.others, not other.others),
        )
        named = (zone for zone, mine, theirs in zones if keep(mine, theirs) != others)
        return CategorySet(frozenset().union(*named), others, keep(self.missing, other.missing))

    def has(self, value: str) -> bool:
        """Return whether it has a value."""
        return (value in self.values) != self.others


ValueSet: TypeAlias = OrderedSet | CategorySet


def first_only(one: bool, other: bool) -> bool:
    """Keep what the first of two sets has and the second has not."""
    return one and not other


def combined(one: ValueSet, other: ValueSet, keep: Callable[[bool, bool], bool]) -> ValueSet:
    """Combine two sets of one attribute."""
    if isinstance(one, OrderedSet) and isinstance(other, OrderedSet):
        return one.combined(other, keep)
    if isinstance(one, CategorySet) and isinstance(other, CategorySet):
        return one.combined(other, keep)
    raise TypeError("sets of different kinds")


def combined_all(sets: Sequence[ValueSet], keep: Callable[[bool, bool], bool]) -> ValueSet:
    """Combine one set or more by halves: one after the other would take the square of the time."""
    if len(sets) == 1:
        return sets[0]
    half = len(sets) // 2
    return combined(combined_all(sets[:half], keep), combined_all(sets[half:], keep), keep)


def cuts_of(interval: Interval, *, whole: bool) -> tuple[Cut, Cut]:
    """Return where an interval begins and ends. Of whole numbers between two of them.

    The cuts are equal or crossed where it has no value.
    """
    low, high = (interval.low, int(not interval.low_included)), (
        interval.high,
        int(interval.high_included),
    )  # fmt: skip
    return (whole_cut(low), whole_cut(high)) if whole else (low, high)


def whole_cut(cut: Cut) -> Cut:
    """Return the cut before the first whole number behind another cut."""
    value, behind = cut
    if isinstance(value, float) and math.isinf(value):
        return cut
    return (math.floor(value) + 1 if behind else math.ceil(value)), 0


def ordered_set(low: Cut, high: Cut) -> OrderedSet:
    """Return the values between two cuts."""
    return OrderedSet((low, high) if low < high else ())


def may_have(region: OrderedRegion | CategoryRegion, wanted: CategorySet) -> bool:
    """Return whether a value of a category's region may be in a set."""
    if not isinstance(region, CategoryRegion):
        raise TypeError("a region of another kind than the set")
    if region.missing and wanted.missing:
        return True
    if region.values is None:
        return wanted.others or bool(wanted.values)
    if wanted.others:
        return not wanted.values.issuperset(region.values)
    return not wanted.values.isdisjoint(region.values)
