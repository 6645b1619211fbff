"""The table of classes: their names, and the order of its rows."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.protocol import TASK
from anonspark.layers.publish.class_table import _in_digits, _InOrder, _published_names

NAMES = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@given(staged=NAMES)
def test_names_are_the_first_digits_of_hashes(staged: list[int]) -> None:
    names = _in_digits(_published_names(np.array(staged, np.uint64)))
    names.validate(full=True)
    expected = [hashlib.sha256(f"{one:016x}".encode()).hexdigest()[:16] for one in staged]
    assert names.to_pylist() == expected


@given(names=NAMES.filter(bool), cut=st.integers(0, 20))
def test_rows_are_in_the_order_of_the_texts(names: list[int], cut: int) -> None:
    sent = pa.RecordBatch.from_pydict(
        {
            "class_id": pa.array(np.array(names, np.uint64).view(np.int64)),
            "size": range(len(names)),
            TASK: pa.repeat(pa.scalar(0, pa.int32()), len(names)),
        }
    )
    schema = pa.schema([("run_id", pa.string()), ("class_id", pa.string()), ("n", pa.int64())])
    cut = min(cut, len(names))
    (found,) = _InOrder("a-run", schema)(iter([sent.slice(0, cut), sent.slice(cut)]))
    expected = sorted((f"{name:016x}", place) for place, name in enumerate(names))
    assert found.to_pydict() == {
        "run_id": ["a-run"] * len(names),
        "class_id": [name for name, _ in expected],
        "n": [place for _, place in expected],
    }


def test_no_class_makes_no_row_group() -> None:
    assert list(_InOrder("a-run", pa.schema([]))(iter([]))) == []
