"""Hashes of the rows of a batch, of no columns, too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from anonspark.engine.values.batches import hash_rows

BATCH = pa.record_batch({"age": [1, 2, 3]})


@pytest.mark.parametrize("options", [{}, {"key": 7}, {"like": pa.schema([])}])
def test_no_columns(options: dict) -> None:
    hashes = hash_rows(BATCH, [], **options)
    assert len(hashes) == 3
    assert len(set(hashes.tolist())) == 1
