"""What tells people apart: hashes, numbers, and pseudonyms told from nothing that is published."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from anonspark.core.criteria import Units, numbered, with_units
from anonspark.core.pseudonyms import pseudonyms_of, release_key


def test_everybody_has_one() -> None:
    units = np.array([5, -3, 5, 2**62], np.int64)
    found = pseudonyms_of(units, release_key(1, "a")).to_pylist()
    assert found[0] == found[2]
    assert len(set(found)) == 3
    assert all(len(one) == 32 for one in found)


def test_it_is_a_keyed_hash_of_the_little_endian_number() -> None:
    key = release_key(7, "records", "settings")
    expected = blake2b((-3).to_bytes(8, "little", signed=True), key=key, digest_size=16)
    assert pseudonyms_of(np.array([-3]), key).to_pylist() == [expected.hexdigest()]


def test_keys_are_of_seed_and_facts_apart() -> None:
    keys = [
        release_key(*one) for one in ((1, "ab", "c"), (1, "a", "bc"), (2, "ab", "c"), (1, "ab"))
    ]
    assert len(set(keys)) == 4
    assert release_key(1, "ab", "c") == keys[0]


def test_nobody_has_none() -> None:
    assert pseudonyms_of(np.zeros(0, np.int64), release_key(1)).to_pylist() == []


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
