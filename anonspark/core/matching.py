"""Match values with different people, with as few pairs as needed to count them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.kernels.people import match_values


def matched_values(values: Integers, people: Integers, most: int) -> int:
    """Return how many values can have a person of their own each who has it, at most ``most``.

    Parameters
    ----------
    values, people : int64 ndarray of shape (n,)
        Pairs of a value and a person who has it, in any order.
    most : int
    """
    return len(match_values(*_different(values, people), most))


def enough_pairs(values: Integers, people: Integers, most: int) -> tuple[Integers, Integers]:
    """Return few of some pairs, for which :func:`matched_values` is the same.

    Parameters
    ----------
    values, people, most
        See :func:`matched_values`.

    Returns
    -------
    values, people : int64 ndarray of shape (fewer,)
        ``most`` pairs, or those of the first ``most`` people of each value and the first ``most``
        values of each person: at most 2 ``most``^2. Why that is enough: docs/algorithms.md.
    """
    values, people = _different(values, people)
    chosen = match_values(values, people, most)
    if len(chosen) < most:
        chosen = np.flatnonzero(_places_in_runs(values) < most)
        by_person = chosen[np.lexsort((values[chosen], people[chosen]))]
        chosen = by_person[_places_in_runs(people[by_person]) < most]
    return values[chosen], people[chosen]


def matched_of_attributes(
    first_value: Integers, most_matched: Sequence[int], items: Integers, people: Integers
) -> list[int]:
    """Return :func:`matched_values` of each sensitive attribute.

    Parameters
    ----------
    first_value : int64 ndarray of shape (s + 1,)
        Where the values of each attribute begin.
    most_matched : sequence of int
        Of each attribute how many values are asked for.
    items, people : int64 ndarray of shape (n,)
        Pairs of a value, numbered through all attributes, and a person.
    """
    matched = []
    first = first_value.tolist()
    for index, most in enumerate(most_matched):
        chosen = (first[index] <= items) & (items < first[index + 1])
        matched.append(matched_values(items[chosen], people[chosen], most) if most else 0)
    return matched


def _different(values: Integers, people: Integers) -> tuple[Integers, Integers]:
    """Return each pair once, by value and person."""
    order = np.lexsort((people, values))
    values, people = values[order], people[order]
    new = np.ones(len(order), bool)
    new[1:] = (values[1:] != values[:-1]) | (people[1:] != people[:-1])
    return values[new], people[new]


def _places_in_runs(ordered: Integers) -> Integers:
    """Return the place of each element among those that are equal to it and follow each other."""
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    places: Integers = np.arange(len(ordered)) - starts[np.cumsum(new) - 1]
    return places
