"""Strata that give up recipients, beside the same by lists of records."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.atom_reuse import Soundness, Stratum, join_strata, reading_order

RECIPIENTS = 4

Part = list[tuple[int, int]]
"""Original pattern and sensitive value of each record."""

tables = st.lists(
    st.tuples(st.integers(1, 2**RECIPIENTS - 1), st.integers(0, 2)), min_size=1, max_size=60
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
        _, _, s = min((len(parts[one]), reading_order(one, RECIPIENTS), one) for one in unsound)
        costs = []
        for t, rows in [(0, []), *parts.items()]:
            lost = sum(
                len(own) * bin(pattern & ~(s & t)).count("1")
                for pattern, own in ((s, parts[s]), (t, rows))
            )
            if t != s:
                costs.append((lost, -len(rows), reading_order(t, RECIPIENTS), t))
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
    becomes = join_strata(strata, Soundness(5), RECIPIENTS)
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
    becomes = join_strata(strata_of(table), Soundness(k, {"s": least}), RECIPIENTS)
    assert becomes == joined(table, k, least)


@given(tables, demands)
def test_strata_are_sound_and_nobody_gets_more(table: Part, demand: tuple[int, int]) -> None:
    k, least = demand
    becomes = join_strata(strata_of(table), Soundness(k, {"s": least}), RECIPIENTS)
    assert set(becomes) == {pattern for pattern, _ in table}
    assert all(now & ~before == 0 for before, now in becomes.items())
    sizes = Counter(becomes[pattern] for pattern, _ in table)
    for pattern in sizes:
        own = [row for row in table if becomes[row[0]] == pattern]
        assert pattern == 0 or sound(own, k, least)
