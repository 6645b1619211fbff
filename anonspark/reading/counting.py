"""Counts of records that meet a condition: its form, certain bounds, and an estimate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import and_, is_, or_
from typing import Any, TypeAlias

import numpy as np

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.engine.protocol import Table
from anonspark.errors import ConfigurationError
from anonspark.labels.regions import CategoryRegion
from anonspark.reading.attributes import (
    CategorySet,
    ReadAttribute,
    ValueSet,
    combined,
    combined_all,
    first_only,
)
from anonspark.reading.questions import (
    All,
    Among,
    Comparison,
    Condition,
    IsMissing,
    Not,
    Token,
    asking_error,
)
from anonspark.reading.questions import Any as AnyOf
from anonspark.reading.shares import Regions, regions_of


@dataclass(frozen=True)
class Membership:
    """The condition that the value of an attribute is in a set."""

    attribute: str
    values: ValueSet


@dataclass(frozen=True)
class And:
    """The condition that all parts hold: without parts it always holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or:
    """The condition that at least one part holds: without parts it never holds."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Membership | And | Or
"""A condition without ``not``, for which the sets have complements."""

ALWAYS, NEVER = And(()), Or(())


def all_of(parts: Iterable[Formula]) -> Formula:
    """Return the conjunction of some parts, with at most one test for each attribute.

    >>> all_of([Membership("sex", CategorySet(frozenset(sex))) for sex in "fm"]) == NEVER
    True
    """
    return _joined(parts, And, ALWAYS, NEVER, and_)


def any_of(parts: Iterable[Formula]) -> Formula:
    """Return the disjunction of some parts, with at most one test for each attribute.

    >>> any_of([Membership("sex", CategorySet(frozenset(sex))) for sex in "fm"]) == Membership(
    ...     "sex", CategorySet(frozenset("fm"))
    ... )
    True
    """
    return _joined(parts, Or, NEVER, ALWAYS, or_)


def _joined(
    parts: Iterable[Formula],
    kind: type[And] | type[Or],
    neutral: Formula,
    final: Formula,
    keep: Callable[[bool, bool], bool],
) -> Formula:
    """Join parts by one operation: flatten them, combine the sets of an attribute, and simplify.

    ``neutral`` is a part without effect, and ``final`` a part that decides the whole.
    """
    flat: list[Formula] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    if final in flat:
        return final
    sets: dict[str, list[ValueSet]] = {}
    nested: dict[Formula, None] = {}
    for part in flat:
        if isinstance(part, Membership):
            sets.setdefault(part.attribute, []).append(part.values)
        else:
            nested[part] = None
    tests: list[Formula] = []
    for name, values in sets.items():
        joined = combined_all(values, keep)
        tests.append(NEVER if joined.is_empty else Membership(name, joined))
    if final in tests:
        return final
    tests = [part for part in tests if part != neutral] + list(nested)
    return tests[0] if len(tests) == 1 else kind(tuple(tests)) if tests else neutral


def tests_of(formula: Formula) -> Iterator[Membership]:
    """Yield all tests of a condition, from left to right."""
    if isinstance(formula, Membership):
        yield formula
    else:
        for part in formula.parts:
            yield from tests_of(part)


def decided(formula: Formula, attribute: str, holds: Callable[[ValueSet], bool]) -> Formula:
    """Return what is left of a condition if ``holds`` decides all tests of one attribute."""
    match formula:
        case Membership():
            if formula.attribute != attribute:
                return formula
            return ALWAYS if holds(formula.values) else NEVER
        case And() | Or():
            parts = [decided(part, attribute, holds) for part in formula.parts]
            if all(map(is_, parts, formula.parts)):
                return formula
            return all_of(parts) if isinstance(formula, And) else any_of(parts)


def formula_of(condition: Condition, attributes: Mapping[str, ReadAttribute]) -> Formula:
    """Return a parsed condition as sets of values of the attributes of a release.

    As in SQL a missing value meets no comparison, and no negated one. Raises ConfigurationError if
    a column is none of these attributes, or has no such values.
    """
    formula = _formula(condition, attributes, negated=False)
    for name, times in Counter(_columns(condition)).items():
        if times > 1 and name in attributes and attributes[name].is_opaque:
            raise ConfigurationError(
                f"query: found {name!r} in {times} conditions, but its labels are those of a "
                "hierarchy that the release does not hold, so that they cannot be combined. Give "
                "the file of the hierarchy, or ask with one in (...)"
            )
    return formula


def equated(condition: Condition) -> Iterator[tuple[Token, Token]]:
    """Yield each column that is compared for equality, with the literal."""
    match condition:
        case Not():
            yield from equated(condition.part)
        case All() | AnyOf():
            for part in condition.parts:
                yield from equated(part)
        case Comparison() if condition.operator in ("=", "!="):
            yield condition.column, condition.value
        case Among():
            yield from ((condition.column, literal) for literal in condition.values)


def attribute_of(column: Token, attributes: Mapping[str, ReadAttribute]) -> ReadAttribute:
    """Return the attribute that a question names. Raises ConfigurationError if it is none."""
    attribute = attributes.get(column.text)
    if attribute is None:
        names = ", ".join(map(repr, attributes)) or "it has none"
        expected = f"a column of the release: {names}"
        raise asking_error(column.position, repr(column.text), expected)
    return attribute


def _columns(condition: Condition) -> list[str]:
    """List the columns of a condition, once for each test."""
    match condition:
        case Not():
            return _columns(condition.part)
        case All() | AnyOf():
            return [name for part in condition.parts for name in _columns(part)]
        case _:
            return [condition.column.text]


def _formula(
    condition: Condition, attributes: Mapping[str, ReadAttribute], *, negated: bool
) -> Formula:
    """Translate a condition, or its negation, into sets of values."""
    match condition:
        case Not():
            return _formula(condition.part, attributes, negated=not negated)
        case All() | AnyOf():
            parts = [_formula(part, attributes, negated=negated) for part in condition.parts]
            return all_of(parts) if isinstance(condition, All) != negated else any_of(parts)
        case IsMissing():
            attribute = attribute_of(condition.column, attributes)
            return _has(attribute, attribute.present() if negated else attribute.missing())
        case Comparison():
            attribute = attribute_of(condition.column, attributes)
            values = attribute.compared(condition.operator, condition.value)
            if (condition.operator == "!=") != negated:
                values = _other_values(attribute, values)
            return _has(attribute, values)
        case Among():
            attribute = attribute_of(condition.column, attributes)
            equal = [attribute.compared("=", literal) for literal in condition.values]
            values = combined_all(equal, or_)
            return _has(attribute, _other_values(attribute, values) if negated else values)


def _other_values(attribute: ReadAttribute, values: ValueSet) -> ValueSet:
    """Return the present values that are not in a set."""
    return combined(attribute.present(), values, first_only)


def _has(attribute: ReadAttribute, values: ValueSet) -> Formula:
    """Return the condition that a value is in a set."""
    return NEVER if values.is_empty else Membership(attribute.name, values)


_MOST_CASES = 2_000
"""Cases that a condition may have: attributes combined by ``or`` multiply."""

_MOST_LOOKS = 300_000
"""Tests that may be decided in all cases together: about a second."""

_MOST_GROUPS = 10_000

_RECORDS = "records"

_TRUTH_VALUES: Mapping[str | None, bool] = {"false": False, "true": True}
"""Booleans by their labels."""


@dataclass(frozen=True, repr=False)
class Count:
    """The number of records of a release that meet a condition.

    Parameters
    ----------
    estimate : float
        Records that meet it if each class is spread evenly over its region, each attribute by
        itself.
    lower, upper : int
        Records that meet it for certain, and those that may.
    records : int
        Records of the release, or those that may belong to the group.

    Examples
    --------
    >>> Count(12.5, lower=10, upper=15, records=400)
    12.5 (certain: 10 to 15)
    """

    estimate: float
    lower: int
    upper: int
    records: int

    def __repr__(self) -> str:
        if self.lower == self.upper:
            return f"{self.lower:,}"
        return f"{self.estimate:,.1f} (certain: {self.lower:,} to {self.upper:,})"

    def as_dict(self) -> dict[str, float | int]:
        """Return the numbers by name, for JSON."""
        return dict(vars(self))


class Counts(dict[Any, Count]):
    """Counts by the values of a column, None for missing. Printed with a line for each.

    >>> Counts({"f": Count(3.0, 3, 3, 9), None: Count(1.5, 0, 2, 9)})
    f        3
    missing  1.5 (certain: 0 to 2)
    """

    def __repr__(self) -> str:
        names = ["missing" if value is None else str(value) for value in self]
        width = max(map(len, names), default=0)
        lines = zip(names, self.values(), strict=True)
        return "\n".join(f"{name:<{width}}  {count}" for name, count in lines)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A condition evaluated on rows, each with a region of possible values.

    ``share`` is the part of the region that meets it, float64 (rows,). ``possible`` and ``certain``
    say whether some value of the region meets it, and whether all do.
    """

    share: Figures
    possible: Flags
    certain: Flags

    def count(self, records: Integers, rows: Flags | None = None) -> Count:
        """Count the records of all rows, or of those that a mask chooses.

        >>> yes = np.array([True, True])
        >>> Evaluated(np.array([0.5, 1.0]), yes, np.array([False, True])).count(np.array([4, 3]))
        5.0 (certain: 3 to 7)
        """
        chosen = np.ones(len(records), bool) if rows is None else rows
        # The exact sum does not depend on the order of rows.
        estimate = math.fsum((self.share[chosen] * records[chosen]).tolist())
        return Count(
            estimate,
            int(records[chosen & self.certain].sum()),
            int(records[chosen & self.possible].sum()),
            int(records[chosen].sum()),
        )


@dataclass(frozen=True, eq=False)
class CountedRegions:
    """The different rows of some attributes, and how many records have each, int64 (rows,)."""

    regions: Mapping[str, Regions]
    records: Integers

    def evaluate(self, formula: Formula) -> Evaluated:
        """Evaluate a condition on the rows. See :func:`evaluate`."""
        return evaluate(formula, self.regions, len(self.records))

    def groups(self, formula: Formula, evaluated: Evaluated, by: ReadAttribute) -> Counts:
        """Count the records of each value of a column, in the order of the values, missing last.

        ``evaluated`` is ``formula`` evaluated on all rows. The column is a category, or published
        unchanged. Raises ConfigurationError for more than 10,000 values.
        """
        regions = self.regions[by.name]
        if by.published is None:
            values = _values(regions)
            _require_few(by, len(values))
            return Counts(
                (value, evaluated.count(self.records, regions.numbers == index))
                for index, value in values
            )
        members = _members(regions)
        _require_few(by, len(members))
        counts = Counts()
        for member in members:
            value_set = by.missing() if member is None else CategorySet(frozenset([member]))
            evaluated = self.evaluate(all_of([formula, Membership(by.name, value_set)]))
            value = _TRUTH_VALUES.get(member, member) if by.kind == "boolean" else member
            counts[value] = evaluated.count(self.records, regions.may_have(value_set))
        return counts


def count_regions(data: Table, attributes: Sequence[ReadAttribute]) -> CountedRegions:
    """Count the records of each different row of some published attributes.

    One job with one shuffle of the different rows, which are collected.
    """
    # By numbers no published name clashes with the column of counts.
    numbered = {
        f"column_{index}_{part}": name
        for index, attribute in enumerate(attributes)
        for part, name in enumerate(attribute.columns)
    }
    first = {"column": data.schema.names[0]}
    table = data.select(numbered or first).aggregate(list(numbered), count=_RECORDS).collect()
    regions = {
        attribute.name: regions_of(
            attribute,
            [table.column(f"column_{index}_{part}") for part in range(len(attribute.columns))],
        )
        for index, attribute in enumerate(attributes)
    }
    return CountedRegions(regions, table.column(_RECORDS).to_numpy().astype(np.int64))


def _values(regions: Regions) -> list[tuple[int, Any]]:
    """List the different values of an unchanged column with their indices, in order."""
    return sorted(enumerate(regions.values), key=lambda pair: (pair[1] is None, pair[1]))


def _members(regions: Regions) -> list[str | None]:
    """List all values that the labels of a category name, in order, None for missing last."""
    names: set[str] = set()
    missing = False
    for region in regions.regions:
        if isinstance(region, CategoryRegion):
            names.update(region.values or ())
            missing |= region.missing
    return [*sorted(names), *([None] if missing else [])]


def _require_few(by: ReadAttribute, values: int) -> None:
    """Refuse to group by a column of too many values."""
    if values > _MOST_GROUPS:
        raise ConfigurationError(
            f"by: {by.name!r} has {values:,} different values. Expected at most {_MOST_GROUPS:,}. "
            "Choose a column with fewer"
        )


def _require_few_cases(number: int, most: int) -> None:
    """Refuse a condition before it takes too long."""
    if number > most:
        raise ConfigurationError(
            f"query: the condition has more than {most:,} cases to be looked at. Combine fewer "
            "columns by or, or ask with fewer conditions"
        )


def evaluate(formula: Formula, regions: Mapping[str, Regions], rows: int) -> Evaluated:
    """Evaluate a condition on rows of regions.

    Cuts one attribute after the other into parts within which no test tells two values apart, and
    evaluates what is left of the condition in each part. A conjunction has one part for each
    attribute. ``possible`` and ``certain`` are exact if any values of different attributes may
    occur together. Raises ConfigurationError if the condition has too many cases.
    """
    truth = _Evaluator(regions, rows).visit(formula)
    certain = truth.possible & ~truth.refutable
    share = np.clip(truth.share, 0.0, 1.0)
    share = np.where(certain, 1.0, np.where(truth.possible, share, 0.0))
    return Evaluated(share, truth.possible, certain)


@dataclass(frozen=True, eq=False)
class _Truth:
    """For each row the share that meets a condition, and whether some value may meet or fail it."""

    share: Figures
    possible: Flags
    refutable: Flags


class _Evaluator:
    """Evaluates conditions on rows, each different condition once."""

    def __init__(self, regions: Mapping[str, Regions], rows: int) -> None:
        self.regions = regions
        yes, no = np.ones(rows, bool), np.zeros(rows, bool)
        self.truths: dict[Formula, _Truth] = {
            ALWAYS: _Truth(np.ones(rows), yes, no),
            NEVER: _Truth(np.zeros(rows), no, yes),
        }
        self.rows = rows
        self.cases = self.looks = 0

    def visit(self, formula: Formula) -> _Truth:
        """Evaluate a condition by cases: the values of an attribute, each with the rest of it."""
        if formula in self.truths:
            return self.truths[formula]
        share, possible = np.zeros(self.rows), np.zeros(self.rows, bool)
        refutable = np.zeros(self.rows, bool)
        name = next(tests_of(formula)).attribute
        for values, rest in self._cases(formula, name):
            self.cases += 1
            _require_few_cases(self.cases, _MOST_CASES)
            regions, remainder = self.regions[name], self.visit(rest)
            may = regions.may_have(values)
            possible |= may & remainder.possible
            refutable |= may & remainder.refutable
            if rest != NEVER:
                share += regions.shares(values) * remainder.share
        truth = self.truths[formula] = _Truth(share, possible, refutable)
        return truth

    def _cases(self, formula: Formula, name: str) -> Sequence[tuple[ValueSet, Formula]]:
        """Divide an attribute's values by all tests of it, and simplify the condition for each.

        Parts with the same remaining condition are joined.
        """
        attribute = self.regions[name].attribute
        every_test = list(tests_of(formula))
        tests = dict.fromkeys(test.values for test in every_test if test.attribute == name)
        everything = combined(attribute.present(), attribute.missing(), or_)
        parts: list[tuple[ValueSet, frozenset[ValueSet]]] = [(everything, frozenset())]
        for values in tests:
            divided = []
            for part, met in parts:
                inside = combined(part, values, and_)
                outside = combined(part, values, first_only)
                if not inside.is_empty:
                    divided.append((inside, met | {values}))
                if not outside.is_empty:
                    divided.append((outside, met))
            parts = divided
        # Each part decides all tests of the condition once more.
        self.looks += len(parts) * len(every_test)
        _require_few_cases(self.looks, _MOST_LOOKS)
        cases: dict[Formula, ValueSet] = {}
        for part, met in parts:
            rest = decided(formula, name, met.__contains__)
            cases[rest] = combined(cases[rest], part, or_) if rest in cases else part
        return [(values, rest) for rest, values in cases.items()]
