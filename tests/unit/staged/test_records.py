"""Batches of records: what comes out is what went in, texts that travel as dictionaries, too."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import enter_task
from anonspark.staged.dictionaries import (
    put_together,
    with_dictionaries,
    without_dictionaries,
    worth_dividing,
)
from anonspark.staged.records import (
    Packer,
    PackRecords,
    bytes_of,
    bytes_of_each,
    pack_tables,
    together,
    unpack_batches,
    unpack_table,
)

NAMES = ("number", "text", "real")
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(max_size=5),
        st.none() | st.floats(allow_nan=False),
    ),
    max_size=8,
)
TYPES = (pa.int64(), pa.string(), pa.float64())


def batch_of(rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in NAMES]
    arrays = [pa.array(column, own) for column, own in zip(columns, TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, NAMES)


@given(
    st.lists(ROWS, max_size=4),
    st.permutations(NAMES).flatmap(lambda names: st.integers(1, 3).map(lambda n: names[:n])),
)
def test_records_come_out_as_they_were(tables: list[list[tuple]], names: list[str]) -> None:
    batches = [batch_of(rows) for rows in tables]
    packed = list(PackRecords()(iter(batches)))
    expected = [dict(zip(NAMES, row, strict=True)) for rows in tables for row in rows]
    assert sum(sum(batch.column("rows").to_pylist()) for batch in packed) == len(expected)
    whole = [table for _, table in unpack_batches(iter(packed))]
    assert [row for table in whole for row in table.to_pylist()] == expected
    some = [table for _, table in unpack_batches(iter(packed), names)]
    assert all(table.column_names == names for table in some)
    assert [row for table in some for row in table.to_pylist()] == [
        {name: row[name] for name in names} for row in expected
    ]


def test_numbers_go_on_from_batch_to_batch() -> None:
    packer = Packer()
    sizes = (3, 1, 5)
    batches = [batch_of([(row, None, None) for row in range(size)]) for size in sizes]
    packed = [
        pa.RecordBatch.from_pydict(packer.pack(pa.Table.from_batches([batch]))) for batch in batches
    ]
    assert [first for first, _ in unpack_batches(iter(packed))] == [0, 3, 4]


def test_batches_are_put_together_up_to_a_number_of_bytes() -> None:
    batches = [batch_of([(row, None, None)] * size) for row, size in enumerate((10, 0, 10, 10, 1))]
    most = batches[0].nbytes + 1
    assert [table.num_rows for table in together(iter(batches), most)] == [20, 11]
    assert list(together(iter([batch_of([])]))) == []


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "", "\N{GREEK SMALL LETTER ALPHA}"]),
        pa.array([["a", "bc"], None, [], [None, "d"]], pa.list_(pa.string())),
        pa.array([True, None, False, True]),
        pa.array([1.0, None, 2.0, 3.0]),
        pa.array([Decimal("1.50"), None, Decimal(2), Decimal(3)], pa.decimal128(9, 2)),
        pa.array([None, 1, 2, 3], pa.timestamp("us", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_bytes_of_each_value_add_up(values: pa.Array) -> None:
    assert sum(bytes_of_each(values)) == bytes_of(pa.table({"a": values}))
    each = [bytes_of(pa.table({"a": values.slice(place, 1)})) for place in range(len(values))]
    assert bytes_of_each(values).tolist() == each
    assert bytes_of_each(values.slice(1, 2)).tolist() == each[1:3]


@pytest.mark.parametrize("is_remote", [False, True])
def test_what_stays_here_is_not_compressed(*, is_remote: bool) -> None:
    tables = [pa.table({"a": [7] * 10_000}), pa.table({"a": [8, 9]})]
    try:
        enter_task(0, is_remote=is_remote)
        packed = pack_tables(tables)
    finally:
        enter_task(0)
    assert [unpack_table(one) for one in packed] == tables
    assert (len(packed[0].as_buffer()) < 10_000) == is_remote


COLUMNS = st.lists(st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.text(max_size=3)))
SCHEMA = pa.schema([("few", pa.string()), ("any", pa.string()), ("number", pa.int64())])


def table_of(rows: list[tuple[str | None, str | None]]) -> pa.Table:
    columns = [[row[0] for row in rows], [row[1] for row in rows], list(range(len(rows)))]
    return pa.table(columns, schema=SCHEMA)


def is_dictionary(table: pa.Table, name: str) -> bool:
    return pa.types.is_dictionary(table.schema.field(name).type)


@given(COLUMNS)
def test_values_and_bytes_are_the_same(rows: list[tuple[str | None, str | None]]) -> None:
    table = table_of(rows * 10)
    encoded = with_dictionaries(table)
    assert is_dictionary(encoded, "few")
    assert without_dictionaries(encoded).equals(table.combine_chunks())
    assert bytes_of(encoded) == bytes_of(table)
    (packed,) = pack_tables([encoded])
    assert unpack_table(packed).equals(encoded)


@given(st.lists(st.tuples(COLUMNS, st.booleans()), min_size=1, max_size=4))
def test_tables_are_put_together_whatever_they_hold(
    parts: list[tuple[list[tuple[str | None, str | None]], bool]],
) -> None:
    tables = [table_of(rows * 10) for rows, _ in parts]
    given_ = [
        with_dictionaries(table) if encoded else table
        for table, (_, encoded) in zip(tables, parts, strict=True)
    ]
    found = put_together(given_)
    assert all(column.num_chunks <= 1 for column in found.columns)
    assert without_dictionaries(found).to_pylist() == pa.concat_tables(tables).to_pylist()


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_dictionaries_that_are_there_already(
    parts: list[list[tuple[str | None, str | None]]],
) -> None:
    tables = [table_of(rows * 10) for rows in parts]
    # As a file has them: one of its own for each batch, and of all columns of texts.
    coded = [
        pa.table(
            [
                one.column("few").dictionary_encode(),
                one.column("any").dictionary_encode(),
                one.column("number"),
            ],
            SCHEMA.names,
        )
        for one in tables
    ]
    found = with_dictionaries(pa.concat_tables(coded))
    assert without_dictionaries(found).equals(pa.concat_tables(tables).combine_chunks())
    for name in ("few", "any"):
        column = found.column(name)
        if is_dictionary(found, name) and column.num_chunks:
            assert len(column.chunk(0).dictionary) * 8 <= len(column)


@given(st.lists(st.tuples(COLUMNS, st.booleans()), max_size=5), st.integers(1, 2000))
def test_batches_are_put_together_by_what_texts_take(
    parts: list[tuple[list[tuple[str | None, str | None]], bool]], most: int
) -> None:
    plain = [table_of(rows).combine_chunks() for rows, _ in parts]
    coded = [
        one.set_column(0, "few", one.column("few").dictionary_encode()) if encoded else one
        for one, (_, encoded) in zip(plain, parts, strict=True)
    ]
    batches = (batch for one in coded for batch in one.combine_chunks().to_batches())
    found = list(together(batches, most))
    assert [row for one in found for row in one.to_pylist()] == [
        row for one in plain for row in one.to_pylist()
    ]
    # Without its last batch none had enough, give or take what marks nulls and where texts end.
    for one in found:
        last = one.column("number").chunk(one.column("number").num_chunks - 1)
        assert bytes_of(one.slice(0, len(one) - len(last))) < most + 8 * len(one)


def test_a_column_of_many_texts_stays_as_it_is() -> None:
    table = pa.table({"many": [f"text {row}" for row in range(20_000)], "few": ["a", "b"] * 10_000})
    encoded = with_dictionaries(table)
    assert not is_dictionary(encoded, "many")
    assert is_dictionary(encoded, "few")
    # Few at first, many later.
    late = pa.table({"a": ["a"] * 5_000 + [f"text {row}" for row in range(5_000)]})
    assert with_dictionaries(late).schema == late.schema


def test_small_parts_get_no_dictionary() -> None:
    encoded = with_dictionaries(pa.table({"few": ["a", "b"] * 800}))
    assert is_dictionary(worth_dividing(encoded, 100), "few")
    divided = worth_dividing(encoded, 101)
    assert divided.schema == pa.schema([("few", pa.string())])
    assert divided.to_pylist() == without_dictionaries(encoded).to_pylist()


def quasi_identifier(*, has_missing: bool) -> QuasiIdentifier:
    return QuasiIdentifier(
        name="city",
        kind="category",
        arrow_type=pa.string(),
        lowest=0,
        highest=1,
        categories=("a", "b"),
        has_missing=has_missing,
    )


def test_codes_of_a_dictionary_are_those_of_its_texts() -> None:
    own = quasi_identifier(has_missing=True)
    column = pa.array(["b", None, "a", "b"])
    assert own.encode(column.dictionary_encode()).tolist() == own.encode(column).tolist()
    # A text that no record has, of those that were left out.
    more = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array(["a", "b", "c"]))
    assert own.encode(more).tolist() == [1, 0]


def test_unknown_texts_of_a_dictionary_are_refused() -> None:
    column = pa.array(["b", "c"]).dictionary_encode()
    with pytest.raises(ValueError, match="a category is unknown"):
        quasi_identifier(has_missing=False).encode(column)
