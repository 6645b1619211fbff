"""What other models are tried on after a run: few records, and of them what classes are made by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from cases import cases

from anonspark.core.columns import RECORD_HASH
from anonspark.models.choosing import _Draw, records_to_try
from anonspark.staged.records import RECORDS, packed_batch, unpack_table


@cases(__file__, "rows", "k", "expected")
def test_records_to_try_grow_with_the_table_and_with_k(rows: int, k: int, expected: int) -> None:
    assert records_to_try(rows, k) == expected


def test_drawing_reads_only_the_columns_that_it_hands_on() -> None:
    hashes = np.array([-(2**62), 2**62, -(2**63)])
    records = pa.table({"a": [1, 2, 3], "published": ["x", "y", "z"], RECORD_HASH: hashes})
    packed = pa.RecordBatch.from_pydict(packed_batch(0, records))
    (drawn,) = _Draw(0.5, ("a", RECORD_HASH))(iter([packed]))
    (sent,) = drawn.column(RECORDS)
    assert unpack_table(sent).to_pydict() == {"a": [1, 3], RECORD_HASH: hashes[[0, 2]].tolist()}
