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
"""How messages name the file of an attribute's hierarchy on the command line."""

ARGUMENT = "hierarchies.{}"
"""How messages name it in Python."""

# Whatever the hierarchy's root is: the label of records that no round put into a class.
_SUPPRESSED = "*"


@dataclass(frozen=True)
class HierarchyFile:
    """The hierarchy of one attribute, read from a file. Messages name the file by ``key``."""

    key: str
    path: str
    hierarchy: Hierarchy

    def leaves(self) -> Leaves:
        """Return the values that each label stands for."""
        return leaves_by_label(self.hierarchy)

    def labels(self) -> set[str]:
        """Return all labels that may be published for a value or group of any level."""
        return {
            hierarchy_label(label, with_missing=with_missing)
            for label in leaves_by_label(self.hierarchy)
            for with_missing in (False, True)
        } | {_SUPPRESSED}

    def require_labels(self, published: Collection[str], expected: Collection[str]) -> None:
        """Check that different labels of a release are among ``expected``, or are that of missing.

        Raises DataError if the file cannot have made some.
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


def read_hierarchies(files: Files, paths: Mapping[str, str], key: str) -> dict[str, HierarchyFile]:
    """Read the files of hierarchies by attribute. ``key`` is :data:`OPTION` or :data:`ARGUMENT`.

    Raises ConfigurationError if a file cannot be read.
    """
    keys = {name: key.format(name) for name in paths}
    trees = read_hierarchy_files(files, paths, keys=keys)
    return {name: HierarchyFile(keys[name], paths[name], tree) for name, tree in trees.items()}


Cut: TypeAlias = tuple[Any, int]
"""A boundary between values: a value, and whether it lies before (0) or behind it (1)."""

FIRST: Cut = (-math.inf, 0)
LAST: Cut = (math.inf, 1)
# Keys of codes begin with digits.
FIRST_CODE: Cut = ("", 0)
LAST_CODE: Cut = ("\U0010ffff", 0)


@dataclass(frozen=True)
class OrderedSet:
    """Some of the values of an ordered attribute, and whether missing is one of them.

    The values lie between the first and the second cut, the third and the fourth, and so on.
    """

    cuts: tuple[Cut, ...]
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the set has neither a value nor missing."""
        return not self.cuts and not self.missing

    def combined(self, other: OrderedSet, keep: Callable[[bool, bool], bool]) -> OrderedSet:
        """Combine two sets: ``keep`` decides by whether the first and the second have a value.

        >>> thirties, over_35 = ordered_set((30, 0), (40, 0)), ordered_set((35, 1), LAST)
        >>> thirties.combined(over_35, first_only).cuts
        ((30, 0), (35, 1))
        """
        cuts: list[Cut] = []
        in_first = in_second = is_kept = False
        first, second = set(self.cuts), set(other.cuts)
        for cut in sorted(first | second):
            in_first ^= cut in first
            in_second ^= cut in second
            if keep(in_first, in_second) != is_kept:
                is_kept = not is_kept
                cuts.append(cut)
        return OrderedSet(tuple(cuts), keep(self.missing, other.missing))

    def meets(self, low: Cut, high: Cut) -> bool:
        """Return whether the set has one of the values from a cut to a later one.

        >>> ordered_set((30, 0), (40, 0)).meets((39, 1), (50, 0))
        True
        """
        if low >= high:
            return False
        index = bisect_right(self.cuts, low)
        return index % 2 == 1 or (index < len(self.cuts) and self.cuts[index] < high)


@dataclass(frozen=True)
class CategorySet:
    """Some of the values of a category, and whether missing is one of them.

    With ``others`` these are all but ``values``.
    """

    values: frozenset[str]
    others: bool = False
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the set has neither a value nor missing."""
        return not self.values and not self.others and not self.missing

    def combined(self, other: CategorySet, keep: Callable[[bool, bool], bool]) -> CategorySet:
        """Combine two sets: ``keep`` decides by whether the first and the second have a value.

        >>> not_f = CategorySet(frozenset("f"), others=True)
        >>> CategorySet(frozenset("fm")).combined(not_f, first_only).values
        frozenset({'f'})
        """
        others = keep(self.others, other.others)
        # Values that both name, only this one names, and only the other one names.
        zones = (
            (self.values & other.values, not self.others, not other.others),
            (self.values - other.values, not self.others, other.others),
            (other.values - self.values, self.others, not other.others),
        )
        values = (zone for zone, *has_zone in zones if keep(*has_zone) != others)
        return CategorySet(frozenset().union(*values), others, keep(self.missing, other.missing))

    def has(self, value: str) -> bool:
        """Return whether a value is in the set.

        >>> CategorySet(frozenset("f"), others=True).has("m")
        True
        """
        return (value in self.values) != self.others


ValueSet: TypeAlias = OrderedSet | CategorySet


def first_only(first: bool, second: bool) -> bool:
    """Keep what the first of two sets has and the second has not, for ``combined``."""
    return first and not second


def combined(first: ValueSet, second: ValueSet, keep: Callable[[bool, bool], bool]) -> ValueSet:
    """Combine two sets of one attribute."""
    if isinstance(first, OrderedSet) and isinstance(second, OrderedSet):
        return first.combined(second, keep)
    if isinstance(first, CategorySet) and isinstance(second, CategorySet):
        return first.combined(second, keep)
    raise TypeError("sets of different kinds")


def combined_all(sets: Sequence[ValueSet], keep: Callable[[bool, bool], bool]) -> ValueSet:
    """Combine at least one set by halves: one after the other would take the square of the time.

    >>> ages = [ordered_set((age, 0), (age, 1)) for age in (30, 31, 32)]
    >>> combined_all(ages, lambda first, second: first or second).cuts
    ((30, 0), (30, 1), (31, 0), (31, 1), (32, 0), (32, 1))
    """
    if len(sets) == 1:
        return sets[0]
    half = len(sets) // 2
    return combined(combined_all(sets[:half], keep), combined_all(sets[half:], keep), keep)


def cuts_of(interval: Interval, *, whole: bool) -> tuple[Cut, Cut]:
    """Return where an interval begins and ends, for whole numbers between two of them.

    The cuts are equal or crossed if the interval has no value.

    >>> cuts_of(Interval(30, 40, high_included=False), whole=False)
    ((30, 0), (40, 0))
    >>> cuts_of(Interval(30, 39), whole=True)
    ((30, 0), (40, 0))
    """
    low = interval.low, int(not interval.low_included)
    high = interval.high, int(interval.high_included)
    return (whole_cut(low), whole_cut(high)) if whole else (low, high)


def whole_cut(cut: Cut) -> Cut:
    """Return the cut before the first whole number behind another cut.

    >>> whole_cut((30, 1)), whole_cut((30.5, 0))
    ((31, 0), (31, 0))
    """
    value, behind = cut
    if isinstance(value, float) and math.isinf(value):
        return cut
    return (math.floor(value) + 1 if behind else math.ceil(value)), 0


def ordered_set(low: Cut, high: Cut) -> OrderedSet:
    """Return the values between two cuts: none if these are equal or crossed."""
    return OrderedSet((low, high) if low < high else ())


def may_have(region: OrderedRegion | CategoryRegion, values: CategorySet) -> bool:
    """Return whether some value that a category's label stands for is in a set.

    >>> may_have(CategoryRegion(("f", "m"), missing=False), CategorySet(frozenset("m")))
    True
    """
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
    """An attribute of a release, which the published ``columns`` describe.

    ``published`` says how it is generalized, or is None if its values are published unchanged.
    ``leaves`` has the values of each label of a file's hierarchy, if that file is at hand. If not,
    the attribute is opaque. ``raw_type`` is None if the release does not show it.
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
        """Return whether the values are compared as texts, for equality alone."""
        if self.published is not None:
            return self.published.is_category
        return self.kind in ("category", "boolean")

    @property
    def is_code(self) -> bool:
        """Return whether the values are codes whose last characters a rule masks."""
        return self.published is not None and self.published.is_code

    @property
    def whole(self) -> bool:
        """Return whether all values are known to be whole numbers, days or microseconds."""
        return self.kind in ("integer", "date", "timestamp") and not self.is_code

    @property
    def hides_regions(self) -> bool:
        """Return whether means are published, which exclude no value of a record."""
        return self.published is not None and self.published.is_mean

    def missing(self) -> ValueSet:
        """Return the set that has missing alone."""
        return CategorySet(frozenset(), missing=True) if self.is_category else OrderedSet((), True)

    def present(self) -> ValueSet:
        """Return the set of all values, without missing."""
        if self.is_category:
            return CategorySet(frozenset(), others=True)
        return OrderedSet((FIRST_CODE, LAST_CODE) if self.is_code else (FIRST, LAST))

    def compared(self, operator: Operator, token: Token) -> ValueSet:
        """Return the values for which a comparison with a literal holds. ``!=`` is read as ``=``.

        Raises ConfigurationError if the attribute has no such values, or no order.

        >>> age = ReadAttribute("age", "integer", ("age",))
        >>> age.compared(">=", Token("number", "30", 1)).cuts
        ((30, 0), (inf, 1))
        """
        if operator == "=" or operator == "!=":
            # The caller takes the complement for !=.
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
        """Return the values that equal a literal."""
        if self.is_category:
            return CategorySet(frozenset(self._texts(token)))
        return ordered_set(*cuts_of(self._interval(token), whole=self.whole))

    def _texts(self, token: Token) -> tuple[str, ...]:
        """Return the texts that equal a literal: several if it is a label of a hierarchy."""
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
        """Return the values that equal a literal: one number, a whole day, or masked codes."""
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
        """Return the interval of codes that a literal, which may end in a mask, stands for."""
        if token.kind != "text" or self.published is None:
            raise UnreadableLabelError
        region = read_label(token.text, self.published)
        if not isinstance(region, OrderedRegion) or region.missing or not region.intervals:
            raise UnreadableLabelError
        return region.intervals[0]

    def _number(self, text: str) -> int | float | Decimal:
        """Return the number of a literal, as exact as the column is."""
        if self.kind == "float":
            single = self.raw_type == pa.float32()
            with np.errstate(over="ignore"):
                number = float(np.float32(text)) if single else float(text)
            # A literal that no float holds lies beyond all numbers, but not beyond infinity.
            return number if math.isfinite(number) else Decimal(text)
        return Decimal(text)


def _called(token: Token) -> str:
    """Name the kind of a literal in messages, never its value."""
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
    """Return the attributes of a release that a question can name.

    ``data`` are the published records, and ``hierarchies`` the values of labels of those files that
    the user gave, by attribute. Raises DataError if the data lack columns of a quasi-identifier.
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
        is_opaque = has_unknown_labels(published, manifest)
        leaves = hierarchies.get(published.name) if is_opaque else None
        attributes[published.name] = ReadAttribute(
            published.name,
            published.kind,
            published.columns,
            published,
            leaves,
            is_opaque and leaves is None,
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
