"""Packed keys: what comes out is what went in, in a fraction of the bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import k_alone

from anonspark.columns import OCCURRENCE, RECORD_HASH, quasi_identifier_column
from anonspark.partition.packing import PackKeys, unpacked
from anonspark.prepare.encoding import QuasiIdentifier
from anonspark.record_keys import key_matrix

WHOLE_NUMBERS = st.integers(-(2**63), 2**63 - 1)
RANGES = st.sampled_from([(-100, 100), (-(2**15), 2**15 - 1), (0, 2**31), (-(2**63), 2**63 - 1)])


def batch_of(columns: list[list[int]], hashes: list[int], *, numbered: bool) -> pa.RecordBatch:
    named = {quasi_identifier_column(place): column for place, column in enumerate(columns)}
    named[RECORD_HASH] = hashes
    if numbered:
        named[OCCURRENCE] = list(range(1, len(hashes) + 1))
    arrays = [pa.array(column, pa.int64()) for column in named.values()]
    return pa.RecordBatch.from_arrays(arrays, list(named))


def quasi_identifiers(d: int) -> tuple[QuasiIdentifier, ...]:
    return tuple(
        QuasiIdentifier(f"x{place}", "integer", pa.int64(), -(2**63), 2**63 - 1)
        for place in range(d)
    )


@given(st.data(), st.integers(1, 4), st.booleans())
def test_packed_keys_come_out_as_they_were(data: st.DataObject, d: int, numbered: bool) -> None:
    batches = []
    for rows in data.draw(st.lists(st.integers(0, 6), max_size=3)):
        columns = [
            data.draw(st.lists(st.integers(*data.draw(RANGES)), min_size=rows, max_size=rows))
            for _ in range(d)
        ]
        hashes = data.draw(st.lists(WHOLE_NUMBERS, min_size=rows, max_size=rows))
        batches.append(batch_of(columns, hashes, numbered=numbered))
    attributes, criteria = quasi_identifiers(d), k_alone(2)
    packed = list(PackKeys(attributes, criteria)(iter(batches)))
    # Spark may put the rows of several batches into one, or none.
    together = pa.Table.from_batches(packed).combine_chunks().to_batches() if packed else []
    expected = [key_matrix(batch, attributes, criteria) for batch in batches if batch.num_rows]
    for given_batches in (packed, together):
        found = list(unpacked(iter(given_batches), d, criteria))
        assert [keys.tolist() for keys in found] == [keys.tolist() for keys in expected]


@pytest.mark.parametrize(("largest", "size"), [(127, 1), (128, 2), (2**15, 4), (2**31, 8)])
def test_a_key_takes_no_more_bytes_than_it_needs(largest: int, size: int) -> None:
    batch = batch_of([[largest] * 1_000], [2**62] * 1_000, numbered=False)
    (packed,) = PackKeys(quasi_identifiers(1), k_alone(2))(iter([batch]))
    # One column, the hash of eight bytes and an occurrence number that is 0.
    assert packed.column("keys").get_total_buffer_size() < 1_000 * (size + 8 + 1) + 100
