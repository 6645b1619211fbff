"""Hashes that tell people apart, and numbers for them."""

from __future__ import annotations

import numpy as np

from anonspark.core.units import Units, numbered, with_units


def test_equal_records_of_different_people_have_an_order() -> None:
    hashes = np.array([7, 7, 7, -7, 2**63 - 1], np.int64)
    units = np.array([1, 1, 2, 1, -(2**63)], np.int64)
    mixed = with_units(hashes, units)
    assert mixed.dtype == np.int64
    assert mixed[0] == mixed[1]
    assert len(set(mixed.tolist())) == 4


def test_different_records_stay_different() -> None:
    """The mixture of a hash and a unit is one to one for each unit."""
    random = np.random.default_rng(1)
    hashes = random.integers(-(2**63), 2**63 - 1, 10_000)
    assert len(set(with_units(hashes, np.full(10_000, 5)).tolist())) == 10_000
    assert len(set(with_units(np.full(10_000, 5), hashes).tolist())) == 10_000


def test_numbers_follow_the_hashes() -> None:
    numbers, people = numbered(np.array([30, -10, 30, 20], np.int64))
    assert numbers.tolist() == [2, 0, 2, 1]
    assert people == 3
    assert numbered(np.zeros(0, np.int64))[1] == 0


def test_nobody_repeats() -> None:
    assert not Units(5, 1, 4).repeat
    assert Units(5, 2, 6).repeat
