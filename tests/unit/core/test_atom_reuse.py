"""Atoms over several plans and strata that give up recipients, beside lists of records."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.atom_reuse import (
    OUTSIDE,
    PEOPLE,
    AtomDemand,
    Soundness,
    Stratum,
    divide_atom,
    join_strata,
    reading_order,
)

RECIPIENTS = 3


def key(person: int) -> bytes:
    return person.to_bytes(16, "big")


def whose(records: list[int], owners: int) -> list[bytes]:
    """Return whom records are about."""
    return [key(one % owners) for one in records]


def divided(patterns: list[int], k: int = 5, recipients: int = 2) -> list[int]:
    keys = [key(person) for person in range(len(patterns))]
    demand = AtomDemand(k, recipients)
    return [int(one) for one in divide_atom(np.array(patterns, np.int64), keys, {}, demand)]


def test_an_atom_of_which_nobody_left_stays() -> None:
    assert divided([1] * 6) == [1] * 6


def test_an_atom_that_nobody_asks_for_stays() -> None:
    assert divided([OUTSIDE] * 6) == [OUTSIDE] * 6


def test_those_of_smallest_keys_leave_with_the_one_who_left() -> None:
    assert divided([1] * 9 + [OUTSIDE]) == [OUTSIDE] * 4 + [1] * 5 + [OUTSIDE]


def test_an_atom_that_is_too_small_leaves_as_a_whole() -> None:
    assert divided([1] * 8 + [OUTSIDE]) == [OUTSIDE] * 9


def test_parts_of_the_same_size_leave_in_the_order_of_names() -> None:
    # 01, the second recipient's alone, is read as the smaller pattern.
    assert divided([1] * 5 + [2] * 5 + [OUTSIDE]) == [1] * 5 + [OUTSIDE] * 6


def test_so_many_records_leave_that_k_people_do() -> None:
    patterns = np.array([1] * 14 + [OUTSIDE], np.int64)
    keys = [key(record) for record in range(15)]
    # The first three records are of the person who has left with one.
    people = [key(max(record, 2)) for record in range(14)] + [key(2)]
    new = divide_atom(patterns, keys, {}, AtomDemand(5, 1), people)
    assert new.tolist() == [OUTSIDE] * 7 + [1] * 7 + [OUTSIDE]


def test_records_of_too_few_people_leave_as_a_whole() -> None:
    patterns = np.array([1] * 9 + [OUTSIDE], np.int64)
    keys = [key(record) for record in range(10)]
    new = divide_atom(patterns, keys, {}, AtomDemand(5, 1), whose(list(range(10)), 9))
    # Four people would be left.
    assert new.tolist() == [OUTSIDE] * 10


@dataclass
class Release:
    """Class and sensitive value of each person in it."""

    recipient: int
    classes: dict[int, int]
    values: dict[int, int]


@dataclass
class History:
    """Plans of one ledger, about people who come, change, leave and come back.

    Where there are owners, persons are records, of which each owner has several.
    """

    draw: np.random.Generator
    k: int
    least: int
    persons: int
    owners: int | None = None
    atoms: dict[int, int] = field(default_factory=dict)
    counted: list[Release] = field(default_factory=list)
    names: int = 0

    def plan(self) -> None:
        """Carry out one plan of random requests."""
        here = np.flatnonzero(self.draw.random(self.persons) < self.draw.choice([0.7, 0.95, 1]))
        values = self.draw.integers(0, self.draw.integers(2, 5), self.persons)
        asked = np.zeros(self.persons, np.int64)
        for recipient in range(RECIPIENTS):
            share = self.draw.choice([0, 0.5, 0.9, 1])
            asked[here] |= (self.draw.random(len(here)) < share).astype(np.int64) << recipient
        self.forget()
        given = self.divide(asked, values) | self.begin(asked, values)
        for recipient in range(RECIPIENTS):
            own = [one for one, pattern in given.items() if pattern >> recipient & 1]
            if own:
                # A class is made of one atom or of several.
                many = int(self.draw.integers(1, 4))
                classes = {one: self.atoms[one] // many for one in own}
                told = {one: int(values[one]) for one in own}
                self.counted.append(Release(recipient, classes, told))

    def forget(self) -> None:
        """Forget atoms of which nobody is in a release that counts."""
        known = {self.atoms[one] for release in self.counted for one in release.classes}
        self.atoms = {one: atom for one, atom in self.atoms.items() if atom in known}

    def divide(self, asked: np.ndarray, values: np.ndarray) -> dict[int, int]:
        """Divide the atoms of earlier plans; return who may have whom."""
        given = {}
        for persons in self.grouped(self.atoms).values():
            told: dict[str, list[int | None]] = {
                str(number): [release.values.get(one) for one in persons]
                for number, release in enumerate(self.counted)
            }
            told["now"] = [int(values[one]) if asked[one] else None for one in persons]
            then = {name: self.least for name in told if name != "now"}
            demand = AtomDemand(self.k, RECIPIENTS, then, {"now": self.least})
            keys = [key(one) for one in persons]
            people = None if self.owners is None else whose(persons, self.owners)
            new = divide_atom(asked[persons], keys, told, demand, people)
            for pattern in np.unique(new):
                self.names += 1
                for one in np.array(persons)[new == pattern].tolist():
                    self.atoms[one] = self.names
                    given[one] = int(pattern)
        return given

    def begin(self, asked: np.ndarray, values: np.ndarray) -> dict[int, int]:
        """Make atoms of those who have none; return who may have whom."""
        fresh = [one for one in np.flatnonzero(asked).tolist() if one not in self.atoms]
        patterns = {one: int(asked[one]) for one in fresh}
        people = {} if self.owners is None else {PEOPLE: self.k}
        soundness = Soundness(self.k, {"s": self.least, **people})
        strata = {
            pattern: self.stratum(own, values) for pattern, own in self.grouped(patterns).items()
        }
        becomes = join_strata(strata, soundness, RECIPIENTS)
        given = {one: becomes[pattern] for one, pattern in patterns.items()}
        for pattern, persons in self.grouped(given).items():
            if pattern == OUTSIDE:
                continue
            atoms: list[list[int]] = [[]]
            for one in self.draw.permutation(persons).tolist():
                if soundness.holds(self.stratum(atoms[-1], values)):
                    atoms.append([])
                atoms[-1].append(one)
            if len(atoms) > 1 and not soundness.holds(self.stratum(atoms[-1], values)):
                rest = atoms.pop()
                atoms[-1] += rest
            for atom in atoms:
                self.names += 1
                self.atoms |= dict.fromkeys(atom, self.names)
        return {one: pattern for one, pattern in given.items() if pattern != OUTSIDE}

    def withdraw(self) -> None:
        """Withdraw one of the releases."""
        if self.counted:
            del self.counted[self.draw.integers(len(self.counted))]

    def stratum(self, persons: list[int], values: np.ndarray) -> Stratum:
        told = {"s": frozenset(int(values[one]) for one in persons)}
        if self.owners is not None:
            told[PEOPLE] = frozenset(one % self.owners for one in persons)
        return Stratum(len(persons), told)

    @staticmethod
    def grouped(of: dict[int, int]) -> dict[int, list[int]]:
        found = defaultdict(list)
        for one in sorted(of):
            found[of[one]].append(one)
        return dict(found)

    def violations(self) -> list[str]:
        """Return what coalitions tell apart, by trying all of them."""
        found = []
        for size in range(1, RECIPIENTS + 1):
            for coalition in combinations(range(RECIPIENTS), size):
                known = [one for one in self.counted if one.recipient in coalition]
                joint = defaultdict(list)
                for person in range(self.persons):
                    signature = tuple(release.classes.get(person) for release in known)
                    if any(place is not None for place in signature):
                        joint[signature].append(person)
                for signature, persons in joint.items():
                    owners = {one % (self.owners or self.persons) for one in persons}
                    if len(owners) < self.k:
                        found.append(f"{coalition}: {len(owners)} persons")
                    for place, release in zip(signature, known, strict=True):
                        if place is None:
                            continue
                        told = {release.values[one] for one in persons}
                        if len(told) < self.least:
                            found.append(f"{coalition}: {len(told)} values")
        return found


@given(
    st.integers(0, 2**32),
    st.integers(2, 6),
    st.integers(1, 2),
    st.integers(10, 90),
    st.sampled_from([None, 2, 3]),
)
def test_every_coalition_holds_over_all_plans(
    seed: int, k: int, least: int, persons: int, each: int | None
) -> None:
    owners = None if each is None else -(-persons // each)
    history = History(np.random.default_rng(seed), k, least, persons, owners)
    for _ in range(4):
        history.plan()
        assert history.violations() == []
        if history.draw.random() < 0.3:
            history.withdraw()
            assert history.violations() == []


STRATA_RECIPIENTS = 4
Part = list[tuple[int, int]]
"""Original pattern and sensitive value of each record."""
tables = st.lists(
    st.tuples(st.integers(1, 2**STRATA_RECIPIENTS - 1), st.integers(0, 2)), min_size=1, max_size=60
)
demands = st.tuples(st.integers(1, 8), st.integers(1, 3))


def pattern_of(text: str) -> int:
    """Return a pattern that is written with the first recipient first."""
    return sum(1 << place for place, bit in enumerate(text) if bit == "1")


def parts_of(table: Part) -> dict[int, Part]:
    return {one: [row for row in table if row[0] == one] for one, _ in sorted(table)}


def strata_of(table: Part) -> dict[int, Stratum]:
    return {
        pattern: Stratum(len(rows), {"s": frozenset(value for _, value in rows)})
        for pattern, rows in parts_of(table).items()
    }


def sound(rows: Part, k: int, least: int) -> bool:
    return len(rows) >= k and len({value for _, value in rows}) >= least


def joined(table: Part, k: int, least: int) -> dict[int, int]:
    """Return what patterns become, with the records of each part in a list."""
    parts = parts_of(table)
    withheld: Part = []
    while unsound := [one for one in parts if not sound(parts[one], k, least)]:
        _, _, s = min(
            (len(parts[one]), reading_order(one, STRATA_RECIPIENTS), one) for one in unsound
        )
        costs = []
        for t, rows in [(0, []), *parts.items()]:
            lost = sum(
                len(own) * bin(pattern & ~(s & t)).count("1")
                for pattern, own in ((s, parts[s]), (t, rows))
            )
            if t != s:
                costs.append((lost, -len(rows), reading_order(t, STRATA_RECIPIENTS), t))
        t = min(costs)[-1]
        both = parts.pop(s) + parts.pop(t, [])
        if s & t:
            parts[s & t] = parts.get(s & t, []) + both
        else:
            withheld += both
    now = {before: 0 for before, _ in withheld}
    return now | {before: one for one, rows in parts.items() for before, _ in rows}


def test_patterns_are_read_in_the_order_of_names() -> None:
    assert [reading_order(one, 3) for one in (1, 2, 4, 6)] == ["100", "010", "001", "011"]


def test_the_strata_of_adult() -> None:
    sizes = {
        "1000": 5_266,
        "1001": 5,
        "1010": 15_105,
        "1011": 4,
        "1100": 3_513,
        "1110": 6_264,
        "1111": 5,
    }
    strata = {pattern_of(text): Stratum(number) for text, number in sizes.items()}
    becomes = join_strata(strata, Soundness(5), STRATA_RECIPIENTS)
    changed = {one: now for one, now in becomes.items() if one != now}
    assert changed == {pattern_of("1011"): pattern_of("1010")}


def test_what_nobody_can_have_is_withheld() -> None:
    assert join_strata({1: Stratum(2), 2: Stratum(2)}, Soundness(5), 2) == {1: 0, 2: 0}
    assert join_strata({}, Soundness(5), 2) == {}


def test_strata_are_withheld_where_that_costs_least() -> None:
    strata = {1: Stratum(3), 2: Stratum(3), 4: Stratum(3), 7: Stratum(3)}
    becomes = join_strata(strata, Soundness(6), 3)
    # One joins that of all three at the cost of 6 records, or is withheld at the cost of 3.
    assert becomes == {1: 0, 2: 0, 4: 0, 7: 0}


@given(tables, demands)
def test_strata_are_those_of_lists(table: Part, demand: tuple[int, int]) -> None:
    k, least = demand
    becomes = join_strata(strata_of(table), Soundness(k, {"s": least}), STRATA_RECIPIENTS)
    assert becomes == joined(table, k, least)


@given(tables, demands)
def test_strata_are_sound_and_nobody_gets_more(table: Part, demand: tuple[int, int]) -> None:
    k, least = demand
    becomes = join_strata(strata_of(table), Soundness(k, {"s": least}), STRATA_RECIPIENTS)
    assert set(becomes) == {pattern for pattern, _ in table}
    assert all(now & ~before == 0 for before, now in becomes.items())
    sizes = Counter(becomes[pattern] for pattern, _ in table)
    for pattern in sizes:
        own = [row for row in table if becomes[row[0]] == pattern]
        assert pattern == 0 or sound(own, k, least)
