"""Divide atoms of earlier plans so that no coalition gains by who came, changed or left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonspark.core.arrays import Integers

Values = Mapping[str, frozenset[int]]
"""The different values of sensitive attributes, as numbers that distinguish them."""


PEOPLE = "people"
"""Name of the person among the values, if a person has several records."""


@dataclass(frozen=True)
class Stratum:
    """Records of one pattern of recipients.

    ``persons`` counts the people, or the records if a person may have several. ``values`` holds the
    different values of the attributes of which several are demanded, and of :data:`PEOPLE`.

    >>> both = Stratum(2, {"disease": frozenset({1})}) + Stratum(3, {"disease": frozenset({1, 2})})
    >>> both.persons, sorted(both.values["disease"])
    (5, [1, 2])
    """

    persons: int
    values: Values = field(default_factory=dict)

    def __add__(self, other: Stratum) -> Stratum:
        names = {*self.values, *other.values}
        together = {
            name: self.values.get(name, frozenset()) | other.values.get(name, frozenset())
            for name in names
        }
        return Stratum(self.persons + other.persons, together)


@dataclass(frozen=True)
class Soundness:
    """What a set of records needs so that no coalition can distinguish too few of them.

    It needs ``k`` persons, and the numbers of ``diversity`` of different values of sensitive
    attributes, and of :data:`PEOPLE`.

    >>> Soundness(2, {"disease": 2}).holds(Stratum(9, {"disease": frozenset({1})}))
    False
    """

    k: int
    diversity: Mapping[str, int] = field(default_factory=dict)

    def holds(self, stratum: Stratum) -> bool:
        """Return whether a stratum is sound."""
        return stratum.persons >= self.k and all(
            len(stratum.values.get(name, ())) >= number for name, number in self.diversity.items()
        )


def reading_order(pattern: int, recipients: int) -> str:
    """Return the bits of a pattern in the order of the recipients' names, to compare patterns.

    >>> reading_order(0b110, 3)
    '011'
    """
    return "".join("1" if pattern >> bit & 1 else "0" for bit in range(recipients))


def join_strata(
    strata: Mapping[int, Stratum], soundness: Soundness, recipients: int
) -> dict[int, int]:
    """Return the pattern that each pattern becomes, so that all strata are sound. 0 withholds.

    Unsound strata give up recipients, so no recipient gets a record that it did not ask for. Bit i
    of a pattern is the i-th recipient. No pattern is 0, and no stratum is empty.

    While a stratum is unsound, the one with the fewest records (on a tie the smallest pattern)
    joins another stratum, or nothing: the choice that withholds the fewest records, summed over
    recipients (on a tie the largest stratum, then the smallest pattern). O(p^2) for p patterns.

    >>> strata = {0b11: Stratum(9), 0b01: Stratum(4), 0b10: Stratum(1)}
    >>> join_strata(strata, Soundness(3), recipients=2)
    {3: 3, 1: 1, 2: 0}
    """
    parts = dict(strata)
    becomes = {pattern: pattern for pattern in parts}
    order = {pattern: reading_order(pattern, recipients) for pattern in [0, *parts]}
    while True:
        unsound = [pattern for pattern, part in parts.items() if not soundness.holds(part)]
        if not unsound:
            return becomes
        joining = min(unsound, key=lambda pattern: (parts[pattern].persons, order[pattern]))
        stratum = parts.pop(joining)
        candidates: dict[int, Stratum] = {**parts, 0: Stratum(0)}

        partner = min(
            candidates,
            key=lambda pattern: (
                _withheld(joining, stratum, pattern, candidates[pattern]),
                -candidates[pattern].persons,
                order[pattern],
            ),
        )
        meet = joining & partner
        order.setdefault(meet, reading_order(meet, recipients))
        together = stratum + parts.pop(partner) if partner else stratum
        for pattern_before, pattern_now in becomes.items():
            if pattern_now in (joining, partner) and pattern_now:
                becomes[pattern_before] = meet
        if meet:
            parts[meet] = parts[meet] + together if meet in parts else together


def _withheld(s: int, first: Stratum, t: int, second: Stratum) -> int:
    """Count the records that are withheld if two strata become one, summed over recipients."""
    common = (s & t).bit_count()
    lost = first.persons * (s.bit_count() - common)
    return lost + second.persons * (t.bit_count() - common)


OUTSIDE = 0
"""Pattern of persons who are in no release of a plan."""


@dataclass(frozen=True)
class AtomDemand:
    """What the parts of an atom need in a new plan: ``k`` persons, and enough different values.

    ``then`` holds the numbers of different values of sensitive attributes of earlier releases, by
    the names of their columns, ``now`` those of the new release.
    """

    k: int
    recipients: int
    then: Mapping[str, int] = field(default_factory=dict)
    now: Mapping[str, int] = field(default_factory=dict)


def _enough_of(gone: Integers, rows: Integers, people: Sequence[bytes] | None, k: int) -> int:
    """Return how many persons make k with those who are gone. It is at least one."""
    if people is None:
        return max(1, k - len(gone))
    counted = {people[row] for row in gone.tolist()}
    for number, row in enumerate(rows.tolist(), start=1):
        counted.add(people[row])
        if len(counted) >= k:
            return number
    return len(rows)


def divide_atom(
    patterns: Integers,
    keys: Sequence[bytes],
    values: Mapping[str, Sequence[int | None]],
    demand: AtomDemand,
    people: Sequence[bytes] | None = None,
) -> Integers:
    """Return the recipients' pattern of each person of an atom in a new plan, int64.

    ``patterns`` holds who asks for each person, or :data:`OUTSIDE` for people who are gone or for
    whom no recipient asks. ``keys`` names the persons. ``values`` holds numbers of the sensitive
    values, by the names of ``demand``, and None for a person who is not in that release. If a
    person may have several records, ``people`` is the person of each, ``keys`` name the records,
    and records must satisfy the demand as well. Otherwise it is None.

    Persons of one pattern form a new atom, and so do those outside. If no recipient asks for any of
    them, the atom stays as it is. The difference of two releases shows who has left. So some who
    are present leave with them, until those outside are sound by themselves. O(n) for each part.
    """
    new = patterns.copy()
    if not (patterns != OUTSIDE).any():
        return new
    # An atom is in an earlier release as a whole or not at all.
    earlier = {name: bound for name, bound in demand.then.items() if values[name][0] is not None}
    numbers: dict[bytes, int] = {}
    if people is not None:
        earlier = {**earlier, PEOPLE: demand.k}
        values = {**values, PEOPLE: [numbers.setdefault(person, len(numbers)) for person in people]}
    inside = Soundness(demand.k, {**earlier, **demand.now})
    outside = Soundness(demand.k, earlier)

    def stratum(persons: Integers, names: Mapping[str, int]) -> Stratum:
        rows = persons.tolist()
        numbers_by_name = {
            name: frozenset(number for row in rows if (number := values[name][row]) is not None)
            for name in names
        }
        return Stratum(len(rows), numbers_by_name)

    parts = {
        int(pattern): stratum(np.flatnonzero(patterns == pattern), inside.diversity)
        for pattern in np.unique(patterns)
        if pattern != OUTSIDE
    }
    for before, now in join_strata(parts, inside, demand.recipients).items():
        new[patterns == before] = now
    while True:
        gone = np.flatnonzero(new == OUTSIDE)
        left = [int(pattern) for pattern in np.unique(new) if pattern != OUTSIDE]
        if not len(gone) or not left or outside.holds(stratum(gone, earlier)):
            return new
        sizes = {pattern: int((new == pattern).sum()) for pattern in left}
        largest = min(left, key=lambda bits: (-sizes[bits], reading_order(bits, demand.recipients)))
        rows = np.flatnonzero(new == largest)
        rows = np.array(sorted(rows.tolist(), key=lambda row: keys[row]), np.int64)
        needed = _enough_of(gone, rows, people, demand.k)
        leaving, staying = rows[:needed], rows[needed:]
        enough = outside.holds(stratum(np.concatenate([gone, leaving]), earlier))
        if enough and inside.holds(stratum(staying, inside.diversity)):
            new[leaving] = OUTSIDE
        else:
            new[rows] = OUTSIDE
