"""Hashes of columns: nulls, slices, dictionaries and nested values against single values."""

from __future__ import annotations

import random
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as some
from references import xxhash64_of_bytes

from anonspark.engine.values.batches import hash_rows
from anonspark.engine.values.hashing import content_hash, xxhash64

_WHOLE = 2**64


def signed(value: int) -> int:
    return value - _WHOLE if value >= _WHOLE // 2 else value


def hash_of(value: Any, seed: int) -> int:
    """Return the hash of one value, unsigned: texts, 64-bit numbers, lists and dictionaries."""
    if value is None:
        return seed
    if isinstance(value, list):
        for one in value:
            seed = hash_of(one, seed)
        return seed
    if isinstance(value, dict):
        return hash_of([value[name] for name in sorted(value)], seed)
    data = value.encode() if isinstance(value, str) else struct.pack("<q", value)
    return xxhash64_of_bytes(data, seed)


_LARGE = Decimal("12345678901234567890123456789012345678")
_PAIR = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.decimal128(38, 2)))])

# What `SELECT xxhash64(a)` of Spark 4.1 gives for the values of a Parquet file.
SPARK: list[tuple[pa.DataType, list[Any], list[int]]] = [
    (pa.bool_(), [True, False], [-6698625589789238999, 3614696996920510707]),
    (pa.int8(), [-128, 127], [4160238337661960656, 8632298611707923906]),
    (pa.int64(), [-(2**63), 2**63 - 1], [-8619748838626508300, -3246596055638297850]),
    (pa.float32(), [-0.0, float("nan")], [3614696996920510707, 2692338816207849720]),
    (pa.float64(), [-float("inf"), 5e-324], [5326262080505358431, -7001672635703045582]),
    (pa.decimal128(18, 3), [Decimal("-0.001"), None], [3858142552250413010, 42]),
    (pa.decimal128(38, 0), [_LARGE, Decimal(0)], [-4207986725797954644, -8959994473701255385]),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], [6773727150484150602, 7061898801283288394]),
    (pa.timestamp("us"), [datetime(1582, 10, 4, 0, 0, 0, 7)], [1303392910377465726]),
    (pa.string(), ["", "z" * 77], [-7444071767201028348, -8020890518677196636]),
    (pa.string(), ["abcd", "\U0001f600 b"], [-6810745876291105281, 5668693806002875095]),
    (pa.binary(), [b"\xff" * 33], [-1855291848129454215]),
    (pa.list_(pa.list_(pa.float64())), [[[1.0, -0.0], None, []]], [-1014815342309565385]),
    (
        pa.list_(_PAIR),
        [[{"a": None, "b": []}, None, {"a": 3, "b": [Decimal("1.00")]}]],
        [-8180641406790759693],
    ),
]


@pytest.mark.parametrize(("data_type", "values", "expected"), SPARK, ids=lambda one: str(one)[:20])
def test_what_spark_gives(data_type: pa.DataType, values: list[Any], expected: list[int]) -> None:
    assert xxhash64([pa.array(values, data_type)]).tolist() == expected


def test_what_the_documentation_of_spark_says() -> None:
    columns = [
        pa.array(["Spark"]),
        pa.array([[123]], pa.list_(pa.int32())),
        pa.array([2], pa.int32()),
    ]
    assert xxhash64(columns).tolist() == [5602566077635097486]


@pytest.mark.parametrize(
    ("column", "data"),
    [
        (pa.array([True]), struct.pack("<i", 1)),
        (pa.array([-3], pa.int8()), struct.pack("<i", -3)),
        (pa.array([-3], pa.int16()), struct.pack("<i", -3)),
        (pa.array([date(1970, 1, 5)]), struct.pack("<i", 4)),
        (pa.array([-0.0], pa.float32()), struct.pack("<f", 0.0)),
        (pa.array([-0.0]), struct.pack("<d", 0.0)),
        (pa.array([2.5], pa.float32()), struct.pack("<f", 2.5)),
        (pa.array([7], pa.timestamp("us", "UTC")), struct.pack("<q", 7)),
        (pa.array([7], pa.timestamp("ms")), struct.pack("<q", 7000)),
        (pa.array([Decimal("-1.5")], pa.decimal128(18, 2)), struct.pack("<q", -150)),
        (pa.array([Decimal("1.28")], pa.decimal128(19, 2)), b"\x00\x80"),
        (pa.array([Decimal("-1.28")], pa.decimal128(38, 2)), b"\x80"),
        (pa.array([Decimal("-1.29")], pa.decimal128(38, 2)), b"\xff\x7f"),
        (pa.array([Decimal("0")], pa.decimal128(38, 2)), b"\x00"),
        (pa.array([b"\x00\xff"]), b"\x00\xff"),
        (pa.array(["ä"], pa.large_string()), "ä".encode()),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_each_type_by_its_bytes(column: pa.Array, data: bytes) -> None:
    padded = pa.concat_arrays([pa.nulls(1, column.type), column, column])
    expected = signed(xxhash64_of_bytes(data, 42))
    assert xxhash64([padded]).tolist() == [42, expected, expected]
    assert xxhash64([padded[1:]]).tolist() == [expected, expected]


def test_all_nan_are_one() -> None:
    other = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    assert len(set(xxhash64([pa.array([float("nan"), other])]).tolist())) == 1


_NESTED = pa.struct(
    [("own", pa.struct([("a", pa.int64()), ("b", pa.string())])), ("texts", pa.list_(pa.string()))]
)
_VALUES = some.none() | some.fixed_dictionaries(
    {
        "texts": some.none() | some.lists(some.none() | some.text(max_size=40), max_size=4),
        "own": some.none()
        | some.fixed_dictionaries(
            {"a": some.none() | some.integers(0, 9), "b": some.none() | some.text(max_size=3)}
        ),
    }
)


@given(some.lists(_VALUES, min_size=1, max_size=6), some.integers(0, 5))
def test_nested_values(values: list[Any], start: int) -> None:
    column = pa.array(values, _NESTED)
    lists = pa.array([[value] for value in values], pa.list_(_NESTED))
    expected = [signed(hash_of(value, 42)) for value in values]
    assert xxhash64([column]).tolist() == expected
    assert xxhash64([lists[start:]]).tolist() == expected[start:]


def test_what_stands_behind_a_null_list_does_not_count() -> None:
    values = pa.array(["a", "b"])
    offsets = pa.array([0, 1, 2], pa.int32())
    buffers = [pa.py_buffer(b"\x02"), offsets.buffers()[1]]
    hidden = pa.ListArray.from_buffers(pa.list_(pa.string()), 2, buffers, children=[values])
    assert xxhash64([hidden]).tolist() == [42, signed(xxhash64_of_bytes(b"b", 42))]


def test_maps_by_keys_and_values() -> None:
    column = pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64()))
    assert xxhash64([column]).tolist() == [signed(hash_of(["a", 1, "b", None], 42)), 42, 42]


@given(some.lists(some.none() | some.sampled_from(["", "a", "b" * 40]), min_size=1, max_size=9))
def test_dictionaries_hash_as_their_texts(values: list[str | None]) -> None:
    plain = pa.array(values, pa.string())
    chunks = pa.chunked_array([plain.dictionary_encode(), plain[1:].dictionary_encode()])
    assert xxhash64([plain.dictionary_encode()]).tolist() == xxhash64([plain]).tolist()
    assert xxhash64([chunks]).tolist() == xxhash64([pa.concat_arrays([plain, plain[1:]])]).tolist()


def test_a_content_tells_which_values_are_null() -> None:
    one, other = pa.array(["a", None]), pa.array([None, "a"], pa.string())
    first, second = content_hash([one, other]).tolist()
    assert first != second
    flags = [column.is_null() for column in (one, other)]
    assert content_hash([one, other]).tolist() == xxhash64([one, other, *flags]).tolist()


@pytest.mark.parametrize(
    ("key", "type_of_key"), [(5, pa.int32()), (-(2**31), pa.int32()), (2**31, pa.int64())]
)
def test_a_key_is_hashed_first_in_as_few_bits_as_it_needs(
    key: int, type_of_key: pa.DataType
) -> None:
    column = pa.array([1, None, 3])
    plain = pa.array([1, 2, 3])
    keys = pa.array([key] * 3, type_of_key)
    expected = xxhash64([keys, plain, column, plain.is_null(), column.is_null()])
    assert content_hash([plain, column], key).tolist() == expected.tolist()


def test_records_without_content_hash_alike() -> None:
    assert content_hash([], 5, rows=2).tolist() == xxhash64([pa.array([5, 5], pa.int32())]).tolist()
    with pytest.raises(ValueError, match="number of rows"):
        content_hash([])


def test_what_spark_has_no_type_for_is_refused() -> None:
    with pytest.raises(TypeError, match="time64"):
        xxhash64([pa.array([1], pa.time64("us"))])


@cases(__file__, "text", "expected")
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


BATCH = pa.record_batch({"age": [1, 2, 3]})


@pytest.mark.parametrize("options", [{}, {"key": 7}, {"like": pa.schema([])}])
def test_no_columns(options: dict) -> None:
    hashes = hash_rows(BATCH, [], **options)
    assert len(hashes) == 3
    assert len(set(hashes.tolist())) == 1
