"""xxHash64 of columns: published values, and what must not change a hash."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anonspark.engine.columns.hashing import content_hash, xxhash64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_values(text: str, expected: int) -> None:
    (found,) = xxhash64([pa.array([text])], seed=0).view(np.uint64)
    assert int(found) == expected


def test_pieces_and_dictionaries_change_nothing() -> None:
    draw = random.Random(0)  # noqa: S311
    texts = [draw.choice([None, "", "ä" * draw.randint(0, 40), "b"]) for _ in range(300)]
    numbers = [draw.choice([None, draw.randint(-(2**63), 2**63 - 1)]) for _ in range(300)]
    columns = [pa.array(texts, pa.string()), pa.array(numbers, pa.int64())]
    expected = content_hash(columns, 3)
    for own in (
        [columns[0].dictionary_encode(), columns[1]],
        [columns[0].cast(pa.large_string()), columns[1]],
        [pa.chunked_array([one.slice(0, 7), one.slice(7)]) for one in columns],
    ):
        assert (content_hash(own, 3) == expected).all()
    assert (content_hash([one.slice(11) for one in columns], 3) == expected[11:]).all()


def test_equal_numbers_have_one_hash() -> None:
    floats = pa.array([0.0, -0.0, float("nan"), np.array([0xFFF8000000000001]).view(float)[0]])
    first, second, third, fourth = xxhash64([floats])
    assert first == second
    assert third == fourth


def test_nulls_are_passed_over_but_for_the_content() -> None:
    left, right = pa.array([1, None]), pa.array([None, 1])
    assert (xxhash64([left]) == xxhash64([right])[::-1]).all()
    first, second = xxhash64([left, right])
    assert first == second
    first, second = content_hash([left, right])
    assert first != second


def test_a_key_changes_every_hash() -> None:
    values = pa.array(range(100))
    hashes = [content_hash([values], key) for key in (None, 0, 1, 2**40)]
    assert len({one for own in hashes for one in own.tolist()}) == 400


def test_decimals_in_their_fewest_bytes() -> None:
    small = pa.array([Decimal(5)], pa.decimal128(19, 0))
    (expected,) = xxhash64([pa.array([b"\x05"])])
    assert xxhash64([small]) == expected
    (expected,) = xxhash64([pa.array([b"\x00\x80"])])
    assert xxhash64([pa.array([Decimal(128)], pa.decimal128(19, 0))]) == expected


def test_types_that_have_no_hash() -> None:
    with pytest.raises(TypeError, match="duration"):
        xxhash64([pa.array([1], pa.duration("s"))])
