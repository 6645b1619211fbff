"""Groups of equal rows and hashes of columns, beside obvious ways."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import xor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from references import xxhash64_of_bytes

from anonspark.engine.values import grouping
from anonspark.engine.values.batches import hash_rows
from anonspark.engine.values.grouping import aggregate, aggregates_of, find_groups, merge
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


TEXT = st.sampled_from([None, "", "a", "b", "ä"])
NUMBER = st.one_of(st.none(), st.integers(-2, 2))
FLOAT = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf])
HASH = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(TEXT, NUMBER, FLOAT, HASH), max_size=30)
SCHEMA = pa.schema(
    [("text", pa.string()), ("number", pa.int64()), ("float", pa.float64()), ("hash", pa.int64())]
)
BY = ["text", "number", "float"]


def table_of(rows: list[tuple[Any, ...]], cuts: int = 1) -> pa.Table:
    """Return rows in some chunks, whose texts are dictionaries with the same value twice."""
    whole = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA
    )
    size = -(-len(rows) // cuts) or 1
    batches = []
    for batch in whole.combine_chunks().to_batches(size):
        words = pa.array(["b", "", "a", "ä", "b"])
        places = {value: place for place, value in enumerate(words.to_pylist())}
        codes = [None if one is None else places[one] for one in batch["text"].to_pylist()]
        # Every second b is the first one.
        seen = 0
        for place, code in enumerate(codes):
            if code == 4:
                codes[place] = 4 * (seen % 2)
                seen += 1
        texts = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)
        batches.append(batch.set_column(0, "text", texts))
    own = pa.schema([("text", pa.dictionary(pa.int32(), pa.string())), *list(SCHEMA)[1:]])
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(one.columns, schema=own) for one in batches], own
    )


def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    text, number, value, _ = row
    if value is not None:
        value = "NaN" if math.isnan(value) else value + 0.0
    return text, number, value


@pytest.mark.parametrize("collide", [False, True])
@given(rows=ROWS, cuts=st.integers(1, 3))
def test_groups(collide: bool, rows: list[tuple[Any, ...]], cuts: int) -> None:
    table = table_of(rows, cuts)
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(
                grouping, "content_hash", lambda columns: np.zeros(len(columns[0]), np.int64)
            )
        groups = find_groups([table.column(name) for name in BY])
    numbers: dict[tuple[Any, ...], int] = {}
    expected = [numbers.setdefault(key_of(row), len(numbers)) for row in rows]
    assert groups.numbers.tolist() == expected
    assert groups.first.tolist() == [expected.index(one) for one in range(len(numbers))]


@given(texts=st.lists(TEXT, max_size=30))
def test_groups_of_codes(texts: list[str | None]) -> None:
    column = pa.chunked_array([pa.array(texts, pa.string()).dictionary_encode()])
    groups = find_groups([column])
    first = list(dict.fromkeys(texts))
    assert groups.numbers.tolist() == [first.index(one) for one in texts]
    assert groups.first.tolist() == [texts.index(one) for one in first]


@given(rows=ROWS, cuts=st.integers(1, 3))
def test_figures(rows: list[tuple[Any, ...]], cuts: int) -> None:
    table = table_of(rows, cuts)
    wanted = aggregates_of(
        SCHEMA, count="rows", sums=["number"], least=["text"], most=["number"], hashes="hash",
        lists=["hash"],
    )  # fmt: skip
    # A name for each: two figures are of one column.
    names = ["rows", "sum", "least", "most", "hash_sum", "hash_xor", "list"]
    wanted = [
        grouping.Aggregate(name, one.kind, one.column, one.type)
        for name, one in zip(names, wanted, strict=True)
    ]
    plain = table.set_column(0, "text", table["text"].cast(pa.string()))
    found = aggregate(plain, BY, wanted).to_pylist()
    groups = defaultdict(list)
    for row in rows:
        groups[key_of(row)].append(row)
    assert len(found) == len(groups)
    for row, own in zip(found, groups.values(), strict=True):
        numbers = [one[1] for one in own if one[1] is not None]
        texts = [one[0] for one in own if one[0] is not None]
        assert key_of((row["text"], row["number"], row["float"], 0)) == key_of(own[0])
        assert row["rows"] == len(own)
        assert row["sum"] == (sum(numbers) if numbers else None)
        assert row["least"] == min(texts, default=None)
        assert row["most"] == max(numbers, default=None)
        assert row["hash_sum"] == sum(one[3] for one in own)
        assert row["hash_xor"] == reduce(xor, (one[3] for one in own))
        assert sorted(row["list"]) == sorted(one[3] for one in own)


@given(first=ROWS, second=ROWS)
def test_parts_put_together(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    wanted = aggregates_of(
        SCHEMA, count="rows", sums=[], least=[], most=["hash"], hashes="hash", lists=[]
    )
    parts = pa.concat_tables([aggregate(table_of(one), BY, wanted) for one in (first, second)])
    whole = aggregate(table_of(first + second), BY, wanted)
    assert repr(merge(parts, BY, wanted).to_pylist()) == repr(whole.to_pylist())


@pytest.mark.parametrize(
    ("numbers", "fits"),
    [([2**62, 2**62], False), ([2**62, -(2**62)], True), ([2**62, 2**62 - 1], True)],
)
def test_sums_that_need_more_than_64_bits(numbers: list[int], fits: bool) -> None:
    table = pa.table({"key": [1, 1], "number": numbers})
    wanted = aggregates_of(
        table.schema, count=None, sums=["number"], least=[], most=[], hashes=None, lists=[]
    )
    if fits:
        assert aggregate(table, ["key"], wanted)["number"].to_pylist() == [sum(numbers)]
    else:
        with pytest.raises(pa.ArrowInvalid):
            aggregate(table, ["key"], wanted)
