"""Batches in the form of a schema, whose texts may stay dictionaries."""

from __future__ import annotations

import pyarrow as pa
import pytest

from anonspark.engine.values.batches import conform

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


@pytest.mark.parametrize("dictionaries", [False, True])
def test_values_are_the_same(dictionaries: bool) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array(["a", None, "a"]).dictionary_encode(),
            "other": pa.array([1, 2, 3]),
            "number": pa.array([4, 5, 6], pa.int32()),
        }
    )
    found = conform(batch, SCHEMA, dictionaries=dictionaries)
    assert found.schema.names == ["number", "text"]
    assert found.column(0).equals(pa.array([4, 5, 6]))
    assert pa.types.is_dictionary(found.column(1).type) == dictionaries
    assert found.column(1).to_pylist() == ["a", None, "a"]
