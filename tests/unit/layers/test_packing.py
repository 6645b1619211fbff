"""Packed keys: what comes out is what went in, in a fraction of the bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import k_alone

from anonspark.core.columns import RECORD_HASH, quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.layers.partition.packing import PackedKeys
from anonspark.staged.keys import key_matrix
from anonspark.staged.records import Packer

WHOLE_NUMBERS = st.integers(-(2**63), 2**63 - 1)
RANGES = st.sampled_from([(-100, 100), (-(2**15), 2**15 - 1), (0, 2**31), (-(2**63), 2**63 - 1)])


def table_of(columns: list[list[int]], hashes: list[int]) -> pa.Table:
    named = {quasi_identifier_column(place): column for place, column in enumerate(columns)}
    named[RECORD_HASH] = hashes
    return pa.table({name: pa.array(column, pa.int64()) for name, column in named.items()})


def quasi_identifiers(d: int) -> tuple[QuasiIdentifier, ...]:
    return tuple(
        QuasiIdentifier(f"x{place}", "integer", pa.int64(), -(2**63), 2**63 - 1)
        for place in range(d)
    )


@given(st.data(), st.integers(1, 4), st.booleans())
def test_packed_keys_come_out_as_they_were(data: st.DataObject, d: int, with_hashes: bool) -> None:
    tables = []
    for rows in data.draw(st.lists(st.integers(1, 6), max_size=3)):
        columns = [
            data.draw(st.lists(st.integers(*data.draw(RANGES)), min_size=rows, max_size=rows))
            for _ in range(d)
        ]
        hashes = data.draw(st.lists(WHOLE_NUMBERS, min_size=rows, max_size=rows))
        tables.append(table_of(columns, hashes))
    attributes, criteria = quasi_identifiers(d), k_alone(2)
    packer = Packer()
    packed = [pa.RecordBatch.from_pydict(packer.pack(table)) for table in tables]
    own = PackedKeys(attributes, criteria, with_hashes)
    packed = list(own.pack(iter(packed)))
    # Spark may put the rows of several batches into one, or none.
    together = pa.Table.from_batches(packed).combine_chunks().to_batches() if packed else []
    first = np.cumsum([0, *(table.num_rows for table in tables)]).tolist()
    expected = [
        key_matrix(table, attributes, criteria, number)
        for table, number in zip(tables, first, strict=False)
    ]
    if not with_hashes:
        for keys in expected:
            keys[:, d] = 0
    for given_batches in (packed, together):
        found = list(own.unpack(iter(given_batches)))
        assert [keys.tolist() for keys in found] == [keys.tolist() for keys in expected]


@pytest.mark.parametrize(("largest", "size"), [(127, 1), (128, 2), (2**15, 4), (2**31, 8)])
def test_a_key_takes_no_more_bytes_than_it_needs(largest: int, size: int) -> None:
    batch = pa.RecordBatch.from_pydict(
        Packer().pack(table_of([[largest] * 1_000], [2**62] * 1_000))
    )
    for with_hashes in (False, True):
        own = PackedKeys(quasi_identifiers(1), k_alone(2), with_hashes)
        (packed,) = own.pack(iter([batch]))
        assert len(packed.column("keys")[0].as_py()) == 1_000 * (size + 8 * with_hashes)
