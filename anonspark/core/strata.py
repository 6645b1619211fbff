"""Strata: records that the same recipients may have, and which of them give up recipients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Values = Mapping[str, frozenset[int]]
"""The different values of sensitive attributes, as numbers that tell them apart."""


PEOPLE = "people"
"""What whom records are about is called among values, where somebody has several records."""


@dataclass(frozen=True)
class Stratum:
    """Records of one pattern.

    Parameters
    ----------
    persons : int
        Whom the records are about; where somebody has several, the number of the records.
    values : mapping of str to frozenset of int
        Of the attributes of which several values are demanded, and :data:`PEOPLE`.
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
    """What records have to be so that no coalition tells too few of them apart.

    Parameters
    ----------
    k : int
        Persons at least.
    diversity : mapping of str to int
        Different values of sensitive attributes at least, and different :data:`PEOPLE`.
    """

    k: int
    diversity: Mapping[str, int] = field(default_factory=dict)

    def holds(self, stratum: Stratum) -> bool:
        """Return whether a stratum is sound."""
        return stratum.persons >= self.k and all(
            len(stratum.values.get(name, ())) >= number for name, number in self.diversity.items()
        )


def reading_order(pattern: int, recipients: int) -> str:
    """Return the bits of a pattern in the order of the recipients' names, to compare patterns."""
    return "".join("1" if pattern >> bit & 1 else "0" for bit in range(recipients))


def join_strata(
    strata: Mapping[int, Stratum], soundness: Soundness, recipients: int
) -> dict[int, int]:
    """Return the pattern that each pattern becomes, so that all strata are sound.

    Unsound strata give up recipients: nobody gets a record that it did not ask for, and some get
    fewer.

    Parameters
    ----------
    strata : mapping of int to Stratum
        By pattern, none of them 0 and none empty; bit i is that of the i-th recipient.
    soundness : Soundness
    recipients : int
        Their number.

    Returns
    -------
    dict of int to int
        0 where records are withheld from all.

    Notes
    -----
    As long as a stratum is unsound, the one with the fewest records, on a tie with the smallest
    pattern, joins the one, or none, with which the fewest records are withheld, summed over
    recipients; on a tie the largest, then the smallest pattern. O(p^2) for p patterns.
    """
    parts = dict(strata)
    becomes = {pattern: pattern for pattern in parts}
    order = {pattern: reading_order(pattern, recipients) for pattern in [0, *parts]}
    while True:
        unsound = [one for one, part in parts.items() if not soundness.holds(part)]
        if not unsound:
            return becomes
        s = min(unsound, key=lambda one: (parts[one].persons, order[one]))
        own = parts.pop(s)
        others: dict[int, Stratum] = {**parts, 0: Stratum(0)}

        t = min(
            others,
            key=lambda one: (
                _withheld(s, own, one, others[one]),
                -others[one].persons,
                order[one],
            ),
        )
        meet = s & t
        order.setdefault(meet, reading_order(meet, recipients))
        together = own + parts.pop(t) if t else own
        for before, now in becomes.items():
            if now in (s, t) and now:
                becomes[before] = meet
        if meet:
            parts[meet] = parts[meet] + together if meet in parts else together


def _withheld(s: int, own: Stratum, t: int, other: Stratum) -> int:
    """Return the records that are withheld if two strata become one, summed over recipients."""
    common = (s & t).bit_count()
    lost = own.persons * (s.bit_count() - common)
    return lost + other.persons * (t.bit_count() - common)
