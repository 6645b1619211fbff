"""Texts as dictionaries while records travel: the same values, bytes and codes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.encoding import QuasiIdentifier
from anonspark.staged.dictionaries import (
    put_together,
    with_dictionaries,
    without_dictionaries,
    worth_dividing,
)
from anonspark.staged.records import bytes_of, pack_tables, together, unpack_table

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
