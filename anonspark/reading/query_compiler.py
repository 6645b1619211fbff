"""Conditions as they were written become sets of values of a release's attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import or_

from anonspark.errors import ConfigurationError
from anonspark.reading.attributes import ReadAttribute, ValueSet, combined, combined_all, first_only
from anonspark.reading.conditions import NEVER, Formula, Has, every, some
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


def formula_of(condition: Condition, attributes: Mapping[str, ReadAttribute]) -> Formula:
    """Return a condition as sets of values.

    Parameters
    ----------
    condition : Condition
    attributes : mapping of str to ReadAttribute
        Of the release.

    Returns
    -------
    Formula
        As in SQL a missing value meets no comparison, and no negated one.

    Raises
    ------
    ConfigurationError
        If a column is none of these, or has no such values.
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
    """Yield each column that is compared for equality, and the literal."""
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
    """Return the attribute that a question names.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    attribute = attributes.get(column.text)
    if attribute is None:
        names = ", ".join(map(repr, attributes)) or "it has none"
        expected = f"a column of the release: {names}"
        raise asking_error(column.position, repr(column.text), expected)
    return attribute


def _columns(condition: Condition) -> list[str]:
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
    match condition:
        case Not():
            return _formula(condition.part, attributes, negated=not negated)
        case All() | AnyOf():
            parts = [_formula(part, attributes, negated=negated) for part in condition.parts]
            return every(parts) if isinstance(condition, All) != negated else some(parts)
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
    return combined(attribute.present(), values, first_only)


def _has(attribute: ReadAttribute, values: ValueSet) -> Formula:
    return NEVER if values.is_empty else Has(attribute.name, values)
