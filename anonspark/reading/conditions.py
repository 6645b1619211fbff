"""Conditions on attributes, with what is the same said in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import and_, is_, or_
from typing import TypeAlias

from anonspark.reading.attributes import ValueSet, combined_all


@dataclass(frozen=True)
class Has:
    """The value of an attribute is in a set.

    Parameters
    ----------
    attribute : str
    values : ValueSet
    """

    attribute: str
    values: ValueSet


@dataclass(frozen=True)
class Every:
    """All of some conditions hold. Of none, always."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Some:
    """One of some conditions holds. Of none, never."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Has | Every | Some
"""A condition without ``not``: that is in the sets."""

ALWAYS, NEVER = Every(()), Some(())


def every(parts: Iterable[Formula]) -> Formula:
    """Return what holds if all parts do."""
    return _joined(parts, Every, ALWAYS, NEVER, and_)


def some(parts: Iterable[Formula]) -> Formula:
    """Return what holds if one of the parts does."""
    return _joined(parts, Some, NEVER, ALWAYS, or_)


def _joined(
    parts: Iterable[Formula],
    kind: type[Every] | type[Some],
    neutral: Formula,
    final: Formula,
    keep: Callable[[bool, bool], bool],
) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    if final in flat:
        return final
    sets: dict[str, list[ValueSet]] = {}
    others: dict[Formula, None] = {}
    for part in flat:
        if isinstance(part, Has):
            sets.setdefault(part.attribute, []).append(part.values)
        else:
            others[part] = None
    tests: list[Formula] = []
    for name, values in sets.items():
        joined = combined_all(values, keep)
        tests.append(NEVER if joined.is_empty else Has(name, joined))
    if final in tests:
        return final
    tests = [part for part in tests if part != neutral] + list(others)
    return tests[0] if len(tests) == 1 else kind(tuple(tests)) if tests else neutral


def tests_of(formula: Formula) -> Iterator[Has]:
    """Yield all tests of a condition."""
    if isinstance(formula, Has):
        yield formula
    else:
        for part in formula.parts:
            yield from tests_of(part)


def decided(formula: Formula, attribute: str, holds: Callable[[ValueSet], bool]) -> Formula:
    """Return what is left of a condition where all tests of one attribute are decided."""
    match formula:
        case Has():
            if formula.attribute != attribute:
                return formula
            return ALWAYS if holds(formula.values) else NEVER
        case Every() | Some():
            parts = [decided(part, attribute, holds) for part in formula.parts]
            if all(map(is_, parts, formula.parts)):
                return formula
            return every(parts) if isinstance(formula, Every) else some(parts)
