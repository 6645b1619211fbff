"""Labels of one attribute as regions: which may have values of a set, and what share of each does.

What is possible is decided exactly, by the values of labels. Shares spread a region evenly over its
values, as :mod:`anonspark.utility.workload` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.core.uniform_mass import Runs, Spread, spread_out
from anonspark.labels.axes import Axis
from anonspark.labels.regions import (
    CategoryRegion,
    Interval,
    OrderedRegion,
    PublishedAttribute,
    Region,
    distinct_rows,
    read_regions,
)
from anonspark.reading.attributes import (
    FIRST,
    FIRST_CODE,
    LAST,
    LAST_CODE,
    CategorySet,
    Cut,
    ReadAttribute,
    ValueSet,
    cuts_of,
    may_have,
    whole_cut,
)

_CODE_DIGITS = 10
"""Values that a masked character of a code may have, if all that are published are digits."""
_CODE_SIGNS = 36
"""The same if some are letters."""

_SHARE_OF_UNKNOWN = 0.5
"""Share of any set in a region of an attribute of which nothing but ``*`` is published."""


@dataclass(frozen=True, eq=False)
class Regions:
    """The possible values of an attribute in some rows.

    ``regions`` are the different ones, and ``numbers`` has the index of each row's, int64 (rows,).
    If means are published, all values are possible, and shares are those of ``mean_regions``. If
    values are published unchanged, ``values`` has that of each region.
    """

    attribute: ReadAttribute
    regions: Sequence[Region]
    numbers: Integers
    mean_regions: Sequence[OrderedRegion] | None = None
    values: Sequence[Any] = ()

    def may_have(self, values: ValueSet) -> Flags:
        """Return for each row whether its value may be in a set, bool (rows,)."""
        if self.attribute.is_opaque:
            possible = self._opaque(values)
        elif isinstance(values, CategorySet):
            possible = [may_have(region, values) for region in self.regions]
        else:
            possible = [
                (missing and values.missing) or any(values.meets(*cuts) for cuts in covered)
                for covered, missing in self._covered
            ]
        return np.array(possible, bool)[self.numbers]

    @cached_property
    def _covered(self) -> list[tuple[list[tuple[Cut, Cut]], bool]]:
        """Return for each ordered region the cuts around its values, and if it has missing ones."""
        everything = [(FIRST_CODE, LAST_CODE) if self.attribute.is_code else (FIRST, LAST)]
        covered = []
        for region in self.regions:
            if not isinstance(region, OrderedRegion):
                raise TypeError("a region of another kind than the set")
            cuts = everything
            if region.intervals is not None:
                cuts = [
                    cuts_of(interval, whole=self.attribute.whole) for interval in region.intervals
                ]
            covered.append((cuts, region.missing))
        return covered

    def _opaque(self, values: ValueSet) -> list[bool]:
        """Return which labels of unknown groups may have values of a set.

        Any group may have a value that the set names. All values but some are those of labels that
        it does not name.
        """
        if not isinstance(values, CategorySet):
            raise TypeError("a hierarchy of an ordered attribute")
        has_names = bool(values.values) and not values.others
        return [
            may_have(region, values) or (has_names and bool(_category(region).values))
            for region in self.regions
        ]

    def shares(self, values: ValueSet) -> Figures:
        """Return what share of each row's region lies in a set, float64 (rows,) from 0 to 1.

        A value that is published unchanged lies in it or not. A label of unknown groups counts if
        the set has all values that it names. Of an attribute without any known value, half of each
        region is in a set, but all of it in the set of all present values.
        """
        if self.attribute.published is None:
            return self.may_have(values).astype(np.float64)
        if self.attribute.is_opaque and isinstance(values, CategorySet):
            labelled = np.array([_labelled(region, values) for region in self.regions])
            return labelled[self.numbers]
        spread = self._spread
        shares = self._present_shares(values)
        if values.missing:
            shares = shares + spread.missing
        if self._is_unknown.any():
            present = replace(values, missing=False)
            share = 0.0 if present.is_empty else _SHARE_OF_UNKNOWN
            has_all = present == self.attribute.present()
            shares[self._is_unknown] = 1.0 if has_all else share
        return np.clip(shares, 0.0, 1.0)[self.numbers]

    def _present_shares(self, values: ValueSet) -> Figures:
        """Return for each region what share of it is among the present values of a set."""
        if isinstance(values, CategorySet):
            indices = [index for index, text in enumerate(self._axis.texts) if values.has(text)]
            return self._spread.share_of(np.array(indices, np.float64))
        pairs = zip(values.cuts[::2], values.cuts[1::2], strict=True)
        if self.attribute.is_code:
            ends = [self._codes.ends(low, high) for low, high in pairs]
        else:
            ends = [_closed(low, high, whole=self._axis.whole) for low, high in pairs]
        low, high = np.array([end for end in ends if end[0] <= end[1]], float).reshape(-1, 2).T
        shares: Figures = self._spread.shares(low, high).sum(axis=1)
        return shares

    @cached_property
    def _spread(self) -> Spread:
        """Return the mass of each region, spread evenly."""
        regions = self.regions if self.mean_regions is None else self.mean_regions
        if self.attribute.is_code:
            return spread_out([self._codes.runs(region) for region in regions], whole=True)
        return spread_out([self._axis.runs(region) for region in regions], whole=self._axis.whole)

    @cached_property
    def _is_unknown(self) -> Flags:
        """Return which regions are all values of an attribute of which no value is known."""
        attribute = self.attribute
        is_known = attribute.is_code or len(self._axis.domain.values) > 0
        is_known |= attribute.published is not None and attribute.published.ends is not None
        return np.array([region.is_everything and not is_known for region in self.regions], bool)

    @cached_property
    def _codes(self) -> _Codes:
        """Return how codes are numbered."""
        published = self.attribute.published
        return _Codes.of(
            [region for region in self.regions if isinstance(region, OrderedRegion)],
            by_length=published is not None and published.rule == "prefix",
        )

    @cached_property
    def _axis(self) -> Axis:
        """Return the axis on which numbers, dates and categories lie."""
        attribute, published = self.attribute, self.attribute.published
        if published is None:
            raise TypeError(f"{attribute.name}: published as it is")
        regions = [*self.regions, *(self.mean_regions or ())]
        # A mean of whole numbers need not be whole.
        whole = attribute.whole and not attribute.hides_regions
        return Axis.of_regions(published, regions, attribute.leaves, whole=whole)


def _category(region: Region) -> CategoryRegion:
    """Return a region as that of a category, for the type checker."""
    if not isinstance(region, CategoryRegion):
        raise TypeError("a hierarchy of an ordered attribute")
    return region


def _labelled(region: Region, values: CategorySet) -> float:
    """Return 1.0 if a set has all names of a label, else 0.0."""
    names = _category(region).values
    return float(all(map(values.has, names)) if names else values.missing)


def _closed(low: Cut, high: Cut, *, whole: bool) -> tuple[float, float]:
    """Return the first and last position between two cuts, crossed if none lies there.

    >>> _closed((30, 1), (40, 0), whole=True)
    (31.0, 39.0)
    """
    if whole:
        return _position(whole_cut(low)[0]), _position(whole_cut(high)[0] - 1)
    start, stop = _position(low[0]), _position(high[0])
    if low[1]:
        start = math.nextafter(start, math.inf)
    if not high[1] and math.isfinite(stop):
        stop = math.nextafter(stop, -math.inf)
    return start, stop


def _position(value: float | Decimal) -> float:
    """Return a number as a float, an infinite one if it is beyond all floats.

    >>> _position(Decimal("1e400"))
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True)
class _Codes:
    """Codes as numbers of a ``base``, so that those covered by a mask can be counted.

    ``base`` is how many signs a masked character may be, and ``lengths`` are those of the published
    codes. ``by_length`` says whether masks show how long codes are: else a code may end anywhere
    before the end of the longest.
    """

    base: int
    lengths: tuple[int, ...]
    by_length: bool

    @classmethod
    def of(cls, regions: Sequence[OrderedRegion], *, by_length: bool) -> _Codes:
        """Take base and lengths from the keys of codes: six digits of length, then the signs."""
        keys = {str(interval.low) for region in regions for interval in region.intervals or ()}
        digits = all(key[6:].isdecimal() or not key[6:] for key in keys)
        lengths = {int(key[:6]) if by_length else len(key) - 6 for key in keys} or {1}
        base = _CODE_DIGITS if digits else _CODE_SIGNS
        return cls(base + (not by_length), tuple(sorted(lengths)), by_length)

    def ends(self, low: Cut, high: Cut) -> tuple[float, float]:
        """Return the first and last number of the codes between two cuts."""
        start = self._number(str(low[0]), last=False) + low[1] if low[0] else -math.inf
        if str(high[0]).startswith("\U0010ffff"):
            return start, math.inf
        return start, self._number(str(high[0]), last=bool(high[1])) - 1 + high[1]

    def runs(self, region: Region) -> Runs:
        """Return the first and last number of each interval of a region."""
        if not isinstance(region, OrderedRegion):
            raise TypeError("codes are ordered")
        if region.intervals is None:
            first = self._number(f"{self.lengths[0]:06d}", last=False)
            last = self._number(
                f"{self.lengths[-1]:06d}" + "\U0010ffff" * self.lengths[-1], last=True
            )
            return Runs(((first, last),), region.missing)
        ends = tuple(
            (
                self._number(str(interval.low), last=False),
                self._number(str(interval.high), last=True),
            )
            for interval in region.intervals
        )
        return Runs(ends, region.missing)

    def _number(self, key: str, *, last: bool) -> float:
        """Return the number of a code, or of the first or last code that begins with its signs."""
        length, signs = int(key[:6]), key[6:]
        if not self.by_length:
            length, last = self.lengths[-1], signs.endswith("\U0010ffff")
        number = 0
        for index in range(length):
            number *= self.base
            if index < len(signs):
                number += self._value(signs[index])
            elif last:
                number += self.base - 1
        # All shorter codes have lower numbers.
        return float(number + sum(self.base**shorter for shorter in range(length)))

    def _value(self, sign: str) -> int:
        """Return a sign as a digit of the base. 0 is the end of a code if masks hide the length."""
        if sign == "\U0010ffff":
            return self.base - 1
        digit = int(sign, 36) if sign.isascii() and sign.isalnum() else 0
        return min(digit + (not self.by_length), self.base - 1)


def regions_of(attribute: ReadAttribute, columns: Sequence[pa.Array]) -> Regions:
    """Read the columns of an attribute, with a row for each class or record.

    Raises DataError if labels cannot be read.

    >>> age = ReadAttribute("age", "integer", ("age",))
    >>> regions_of(age, [pa.array([39, 41, 39])]).numbers.tolist()
    [0, 1, 0]
    """
    published = attribute.published
    if published is None:
        return _values(attribute, columns[0])
    if attribute.hides_regions:
        return _means(attribute, published, columns)
    # With an empty hierarchy each label is the name of a group or value.
    leaves = {} if attribute.is_opaque else attribute.leaves
    regions, numbers = read_regions(columns, published, leaves)
    return Regions(attribute, regions, numbers)


def _values(attribute: ReadAttribute, column: pa.Array) -> Regions:
    """Read a column that is published unchanged: the region of a row is its value."""
    (values,), numbers = distinct_rows([column])
    plain = values.to_pylist()
    if attribute.is_category:
        texts = values.cast(pa.string()).to_pylist()
        regions: list[Region] = [
            CategoryRegion((), True) if text is None else CategoryRegion((text,), False)
            for text in texts
        ]
        return Regions(attribute, regions, numbers, values=plain)
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    points = [_point(value) for value in values.to_pylist()]
    return Regions(attribute, points, numbers, values=plain)


def _point(value: Any) -> OrderedRegion:
    """Return the region of one value. NaN is infinite: databases order it behind all numbers."""
    if value is None:
        return OrderedRegion((), True)
    number = math.inf if isinstance(value, float) and math.isnan(value) else value
    return OrderedRegion((Interval(number, number),), False)


def _means(
    attribute: ReadAttribute, published: PublishedAttribute, columns: Sequence[pa.Array]
) -> Regions:
    """Read means: every value is possible, but for shares all values are the mean."""
    means, numbers_of_means = read_regions(columns[:1], published, means=True)
    with_missing = np.zeros(len(numbers_of_means), bool)
    if len(columns) > 1:
        with_missing = columns[1].fill_null(True).to_numpy(zero_copy_only=False).astype(bool)
    pairs, numbers = np.unique(numbers_of_means * 2 + with_missing, return_inverse=True)
    mean_regions, regions = [], []
    for pair in pairs.tolist():
        mean = means[pair // 2]
        if not isinstance(mean, OrderedRegion):
            raise TypeError("means are ordered")
        mean_regions.append(OrderedRegion(mean.intervals, mean.missing))
        possible = None if mean.intervals else ()
        regions.append(OrderedRegion(possible, bool(pair % 2) or mean.missing))
    return Regions(attribute, regions, numbers.reshape(-1).astype(np.int64), mean_regions)
