"""Batches of records: what comes out is what went in, and every record has its own number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.tasks import enter_task
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
