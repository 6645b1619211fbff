"""Pseudonyms: one for each person and release, told from nothing that is published."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

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
