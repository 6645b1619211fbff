"""Atoms of earlier plans, divided so that no coalition gains by who came, changed or left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.core.strata import PEOPLE, Soundness, Stratum, join_strata, reading_order

OUTSIDE = 0
"""Pattern of persons who are in no release of a plan."""


@dataclass(frozen=True)
class AtomDemand:
    """What the parts of an atom have to be.

    Parameters
    ----------
    k : int
        Persons at least.
    recipients : int
        Of the new plan.
    then : mapping of str to int
        Different values at least of sensitive attributes in releases that count, by the names of
        their columns.
    now : mapping of str to int
        The same of what is to be released.
    """

    k: int
    recipients: int
    then: Mapping[str, int] = field(default_factory=dict)
    now: Mapping[str, int] = field(default_factory=dict)


def divide_atom(
    patterns: Integers,
    keys: Sequence[bytes],
    values: Mapping[str, Sequence[int | None]],
    demand: AtomDemand,
    people: Sequence[bytes] | None = None,
) -> Integers:
    """Return who may have each person of an atom in a new plan.

    Parameters
    ----------
    patterns : int64 ndarray of shape (n,)
        Who asks for each person, :data:`OUTSIDE` for those who are gone or whom nobody asks for.
    keys : sequence of bytes
        Names of the persons.
    values : mapping of str to sequence of int or None
        Numbers of the sensitive values, by the names of ``demand``; None where a person is not in
        that release.
    demand : AtomDemand
    people : sequence of bytes or None
        Whom each record is about, where somebody may have several; ``keys`` are of records then,
        and what is demanded of persons is demanded of both. None where each person has one record.

    Returns
    -------
    int64 ndarray of shape (n,)
        Persons of one pattern are one atom from now on, those outside, too. Where nobody is asked
        for, all are outside: the atom stays as it is.

    Notes
    -----
    Two releases show by their difference who has left. So some who are still there leave with them,
    until those outside are sound by themselves. O(n) for each of the parts.
    """
    new = patterns.copy()
    if not (patterns != OUTSIDE).any():
        return new
    # An atom is in an earlier release as a whole or not at all.
    then = {name: own for name, own in demand.then.items() if values[name][0] is not None}
    numbers: dict[bytes, int] = {}
    if people is not None:
        then = {**then, PEOPLE: demand.k}
        values = {**values, PEOPLE: [numbers.setdefault(one, len(numbers)) for one in people]}
    inside = Soundness(demand.k, {**then, **demand.now})
    outside = Soundness(demand.k, then)

    def stratum(persons: Integers, names: Mapping[str, int]) -> Stratum:
        own = persons.tolist()
        found = {
            name: frozenset(number for one in own if (number := values[name][one]) is not None)
            for name in names
        }
        return Stratum(len(own), found)

    def enough_of(gone: Integers, own: Integers) -> int:
        """Return how many of some persons make k with those who are gone, one at least."""
        if people is None:
            return max(1, demand.k - len(gone))
        known = {people[one] for one in gone.tolist()}
        for number, one in enumerate(own.tolist(), start=1):
            known.add(people[one])
            if len(known) >= demand.k:
                return number
        return len(own)

    parts = {
        int(pattern): stratum(np.flatnonzero(patterns == pattern), inside.diversity)
        for pattern in np.unique(patterns)
        if pattern != OUTSIDE
    }
    for before, now in join_strata(parts, inside, demand.recipients).items():
        new[patterns == before] = now
    while True:
        gone = np.flatnonzero(new == OUTSIDE)
        left = [int(one) for one in np.unique(new) if one != OUTSIDE]
        if not len(gone) or not left or outside.holds(stratum(gone, then)):
            return new
        sizes = {one: int((new == one).sum()) for one in left}
        largest = min(left, key=lambda one: (-sizes[one], reading_order(one, demand.recipients)))
        own = np.flatnonzero(new == largest)
        own = np.array(sorted(own.tolist(), key=lambda one: keys[one]), np.int64)
        need = enough_of(gone, own)
        taken, others = own[:need], own[need:]
        enough = outside.holds(stratum(np.concatenate([gone, taken]), then))
        if enough and inside.holds(stratum(others, inside.diversity)):
            new[taken] = OUTSIDE
        else:
            new[own] = OUTSIDE
