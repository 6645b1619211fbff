"""Sets of values of one attribute, by labels and hierarchies, and conditions on it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import MISSING, Kind, hierarchy_label
from anonspark.engine.files import Files
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Table
from anonspark.engine.values.column_plans import kind_of
from anonspark.errors import ConfigurationError, DataError
from anonspark.labels.regions import (
    CategoryRegion,
    Interval,
    Leaves,
    NoSuchMomentError,
    OrderedRegion,
    PublishedAttribute,
    UnreadableLabelError,
    leaves_by_label,
    published_attributes,
    read_day,
    read_label,
    read_moment,
)
from anonspark.labels.typed_names import has_unknown_labels, raw_type_of
from anonspark.reading.questions import Operator, Token, asking_error
from anonspark.release.manifest import Manifest

OPTION = "--hierarchy {}"
"""The option for the file of an attribute on the command line."""

ARGUMENT = "hierarchies.{}"
"""The argument for it in Python."""

# A record that no round found a class for has this label, whatever the hierarchy's root is.
_SUPPRESSED = "*"


@dataclass(frozen=True)
class GivenHierarchy:
    """The hierarchy of one attribute from a file.

    Parameters
    ----------
    key : str
        What named the file, for messages.
    path : str
    hierarchy : Hierarchy
    """

    key: str
    path: str
    hierarchy: Hierarchy

    def leaves(self) -> Leaves:
        """Return what each label stands for."""
        return leaves_by_label(self.hierarchy)

    def labels(self) -> set[str]:
        """Return everything that may be published for a value or group of any level."""
        return {
            hierarchy_label(label, with_missing=with_missing)
            for label in leaves_by_label(self.hierarchy)
            for with_missing in (False, True)
        } | {_SUPPRESSED}

    def require_labels(self, published: Collection[str], expected: Collection[str]) -> None:
        """Check that labels of a release are among those that the file can have made.

        Parameters
        ----------
        published : collection of str
            Different labels of the attribute.
        expected : collection of str
            Those of the file. What is missing need not be one of them.

        Raises
        ------
        DataError
            If some are not.
        """
        lacking = set(published) - {*expected, MISSING}
        if lacking:
            raise self.refused(
                f"{len(lacking):,} of the release's {len(published):,} labels are not in it"
            )

    def refused(self, what: str) -> DataError:
        """Return the error that the release was made with another file."""
        return DataError(
            f"{self.key}: {self.path} is not the file that the release was made with: {what}. "
            "Name the one that was used"
        )


def read_given(files: Files, paths: Mapping[str, str], key: str) -> dict[str, GivenHierarchy]:
    """Read the files of hierarchies.

    Parameters
    ----------
    files : Files
    paths : mapping of str to str
        By attribute.
    key : str
        :data:`OPTION` or :data:`ARGUMENT`.

    Raises
    ------
    ConfigurationError
        If some cannot be read.
    """
    keys = {name: key.format(name) for name in paths}
    trees = read_hierarchy_files(files, paths, keys=keys)
    return {name: GivenHierarchy(keys[name], paths[name], tree) for name, tree in trees.items()}


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
        mine = theirs = inside = False
        first, second = set(self.cuts), set(other.cuts)
        for cut in sorted(first | second):
            mine ^= cut in first
            theirs ^= cut in second
            if keep(mine, theirs) != inside:
                inside = not inside
                cuts.append(cut)
        return OrderedSet(tuple(cuts), keep(self.missing, other.missing))

    def meets(self, low: Cut, high: Cut) -> bool:
        """Return whether it has one of the values from a cut to another, later one."""
        if low >= high:
            return False
        index = bisect_right(self.cuts, low)
        return index % 2 == 1 or (index < len(self.cuts) and self.cuts[index] < high)


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


def first_only(first: bool, second: bool) -> bool:
    """Keep what the first of two sets has and the second has not."""
    return first and not second


def combined(first: ValueSet, second: ValueSet, keep: Callable[[bool, bool], bool]) -> ValueSet:
    """Combine two sets of one attribute."""
    if isinstance(first, OrderedSet) and isinstance(second, OrderedSet):
        return first.combined(second, keep)
    if isinstance(first, CategorySet) and isinstance(second, CategorySet):
        return first.combined(second, keep)
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


def may_have(region: OrderedRegion | CategoryRegion, values: CategorySet) -> bool:
    """Return whether a value of a category's region may be in a set."""
    if not isinstance(region, CategoryRegion):
        raise TypeError("a region of another kind than the set")
    if region.missing and values.missing:
        return True
    if region.values is None:
        return values.others or bool(values.values)
    if values.others:
        return not values.values.issuperset(region.values)
    return not values.values.isdisjoint(region.values)


@dataclass(frozen=True)
class ReadAttribute:
    """An attribute of a release.

    Parameters
    ----------
    name : str
    kind : Kind
        What its values are.
    columns : tuple of str
        Published columns that describe it.
    published : PublishedAttribute or None
        How it is generalized. None where it is published as it is.
    leaves : mapping of str to collection of str, or None
        What the labels of the hierarchy of a file stand for, where that file is at hand.
    is_opaque : bool
        Whether its labels are those of a hierarchy that is not at hand.
    raw_type : pyarrow.DataType or None
        Type of the raw column. None where the release does not show it.
    """

    name: str
    kind: Kind
    columns: tuple[str, ...]
    published: PublishedAttribute | None = None
    leaves: Leaves | None = None
    is_opaque: bool = False
    raw_type: pa.DataType | None = None

    @property
    def is_category(self) -> bool:
        """Return whether its values are compared as texts, by ``=`` alone."""
        if self.published is not None:
            return self.published.is_category
        return self.kind in ("category", "boolean")

    @property
    def is_code(self) -> bool:
        """Return whether its values are codes whose last characters a rule masks."""
        return self.published is not None and self.published.is_code

    @property
    def whole(self) -> bool:
        """Return whether all values are known to be whole numbers, days or microseconds."""
        return self.kind in ("integer", "date", "timestamp") and not self.is_code

    @property
    def hides_regions(self) -> bool:
        """Return whether means are published, which say nothing of a single value."""
        return self.published is not None and self.published.is_mean

    def missing(self) -> ValueSet:
        """Return the set of what is missing."""
        return CategorySet(frozenset(), missing=True) if self.is_category else OrderedSet((), True)

    def present(self) -> ValueSet:
        """Return the set of all values but missing."""
        if self.is_category:
            return CategorySet(frozenset(), others=True)
        return OrderedSet((FIRST_CODE, LAST_CODE) if self.is_code else (FIRST, LAST))

    def compared(self, operator: Operator, token: Token) -> ValueSet:
        """Return the values that compare with a literal in some way.

        Raises
        ------
        ConfigurationError
            If the attribute has no such values, or no order.
        """
        if operator == "=" or operator == "!=":
            # The other one is its complement, which the caller takes.
            return self._equal(token)
        if self.is_category or self.is_code:
            what = "codes" if self.is_code else "a category"
            # A "between" is asked as two comparisons, this one first.
            shown = ">= or between" if operator == ">=" else operator
            raise asking_error(
                token.position, f"{shown} after {self.name!r}, which is {what}", "=, != or in"
            )
        interval = self._interval(token)
        match operator:
            case ">=":
                cuts = (interval.low, 0), LAST
            case ">":
                cuts = (interval.high, 1), LAST
            case "<=":
                cuts = FIRST, (interval.high, 1)
            case "<":
                cuts = FIRST, (interval.low, 0)
        return ordered_set(*(whole_cut(cut) if self.whole else cut for cut in cuts))

    def _equal(self, token: Token) -> ValueSet:
        if self.is_category:
            return CategorySet(frozenset(self._texts(token)))
        return ordered_set(*cuts_of(self._interval(token), whole=self.whole))

    def _texts(self, token: Token) -> tuple[str, ...]:
        if self.kind == "boolean":
            if token.kind in ("true", "false"):
                return (token.kind,)
            if token.kind == "text" and token.text in ("true", "false"):
                return (token.text,)
            raise asking_error(token.position, _called(token), "true or false")
        if token.kind != "text":
            raise asking_error(
                token.position,
                _called(token),
                f"a text in single quotes, for {self.name!r} is a category",
            )
        if self.leaves is not None and token.text in self.leaves:
            return tuple(self.leaves[token.text])
        return (token.text,)

    def _interval(self, token: Token) -> Interval:
        """Return what a literal stands for: one value, all times of a day, the codes of a mask."""
        try:
            if self.is_code:
                return self._code(token)
            if self.kind in ("date", "timestamp"):
                if token.kind not in ("text", "date"):
                    raise UnreadableLabelError
                value = (read_day if self.kind == "date" else read_moment)(token.text)
                return Interval(value, value)
            if token.kind != "number":
                raise UnreadableLabelError
            number = self._number(token.text)
            return Interval(number, number)
        except NoSuchMomentError:
            raise asking_error(
                token.position,
                f"{_called(token)}, but there is no such day or time",
                _EXPECTED[self.kind],
            ) from None
        except UnreadableLabelError:
            raise asking_error(
                token.position,
                _called(token),
                f"{_EXPECTED[self.kind]}, because the values have that type in {self.name!r}",
            ) from None

    def _code(self, token: Token) -> Interval:
        if token.kind != "text" or self.published is None:
            raise UnreadableLabelError
        region = read_label(token.text, self.published)
        if not isinstance(region, OrderedRegion) or region.missing or not region.intervals:
            raise UnreadableLabelError
        return region.intervals[0]

    def _number(self, text: str) -> int | float | Decimal:
        if self.kind == "float":
            single = self.raw_type == pa.float32()
            with np.errstate(over="ignore"):
                number = float(np.float32(text)) if single else float(text)
            # Beyond all numbers of the column, and before its infinite ones.
            return number if math.isfinite(number) else Decimal(text)
        return Decimal(text)


def _called(token: Token) -> str:
    if token.kind in ("true", "false"):
        return token.kind
    is_time = token.kind == "date" and len(token.text) > len("2026-01-31")
    return "a time" if is_time else f"a {token.kind}"


_EXPECTED: dict[Kind, str] = {
    "integer": "a number",
    "float": "a number",
    "decimal": "a number",
    "date": "a date as 2026-01-31",
    "timestamp": "a time as '2026-01-31 12:30:00', in UTC",
    "boolean": "true or false",
    "category": "a code in single quotes, which may end in a mask, as '061**'",
}


def read_attributes(
    manifest: Manifest, data: Table, hierarchies: Mapping[str, Leaves]
) -> dict[str, ReadAttribute]:
    """Return the attributes of a release that can be asked for, by name.

    Parameters
    ----------
    manifest : Manifest
    data : Table
        The published records.
    hierarchies : mapping of str to mapping
        What the labels of hierarchies from files stand for, of those that are at hand.

    Raises
    ------
    DataError
        If the data lack columns of a quasi-identifier.
    """
    types = {field.name: field.type for field in data.schema}
    attributes: dict[str, ReadAttribute] = {}
    used: set[str] = set()
    for published in published_attributes(manifest):
        lacking = [column for column in published.columns if column not in types]
        if lacking:
            raise DataError(
                f"release: lacks the columns {', '.join(map(repr, lacking))} of its manifest. "
                "Restore it, or publish it again"
            )
        used.update(published.columns)
        opaque = has_unknown_labels(published, manifest)
        leaves = hierarchies.get(published.name) if opaque else None
        attributes[published.name] = ReadAttribute(
            published.name,
            published.kind,
            published.columns,
            published,
            leaves,
            opaque and leaves is None,
            raw_type_of(published, data.schema),
        )
    for name, arrow_type in types.items():
        kind = kind_of(arrow_type)
        if name not in used and name not in attributes and kind is not None:
            attributes[name] = ReadAttribute(name, kind, (name,), raw_type=arrow_type)
    readable = {name for name in attributes if attributes[name].leaves is not None}
    unknown = sorted(set(hierarchies) - readable)
    if unknown:
        raise ConfigurationError(
            f"hierarchies: found {', '.join(map(repr, unknown))}. Expected quasi-identifiers of "
            "the release with a hierarchy of a file. Leave them out"
        )
    return attributes
