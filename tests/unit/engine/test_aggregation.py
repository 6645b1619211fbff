"""Adding up in tasks of Spark, and the parcels between them: the same as of all rows at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.protocol import TASK
from anonspark.engine.spark import aggregation
from anonspark.engine.spark.aggregation import can_aggregate_in_tasks
from anonspark.engine.spark.shuffle_batches import PARCEL, SendParcels, Unpack
from anonspark.engine.spark.table import keys_for_partitions
from anonspark.engine.values.grouping import Aggregate, aggregate, aggregates_of, schema_of

SCHEMA = pa.schema([("text", pa.string()), ("number", pa.int64()), ("float", pa.float64())])
KEYS = keys_for_partitions(3)


def wanted_of(**figures: Any) -> list[Aggregate]:
    nothing: dict[str, Any] = {
        "count": None, "sums": [], "least": [], "most": [], "hashes": None, "lists": []
    }  # fmt: skip
    return aggregates_of(SCHEMA, **{**nothing, **figures})


def sent(parcels: list[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
    """Hand parcels to tasks by their keys, as Spark does."""
    tasks = defaultdict(list)
    for parcel in parcels:
        tasks[parcel[TASK].to_pylist()[0]].append(parcel)
    return [tasks[key] for key in KEYS.tolist()]


@pytest.mark.parametrize("waiting", [4, 1 << 20])
@pytest.mark.parametrize("figures", [
    {"count": "rows", "sums": ["number"], "hashes": "number"},
    {"count": "rows", "lists": ["number"]},
], ids=["sums", "lists"])  # fmt: skip
@given(rows=st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(-9, 9)),
                     max_size=40), tasks=st.integers(1, 3))  # fmt: skip
def test_in_tasks(figures: Any, waiting: int, rows: list[tuple[Any, int]], tasks: int) -> None:
    wanted = wanted_of(**figures)
    schema = schema_of(SCHEMA, ["text"], wanted)
    batches = [
        pa.RecordBatch.from_pylist(
            [{"text": text, "number": number} for text, number in rows[place::5]], SCHEMA
        )
        for place in range(5)
    ]
    first, last = aggregation.in_two_steps(["text"], wanted, KEYS, schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "_WAITING_GROUPS", waiting)
        patch.setattr(aggregation, "_ROWS_AT_ONCE", 3)
        parcels = [parcel for task in range(tasks) for parcel in first(iter(batches[task::tasks]))]
        found = [row for task in sent(parcels) for batch in last(iter(task))
                 for row in batch.to_pylist()]  # fmt: skip
    expected = aggregate(pa.Table.from_batches(batches), ["text"], wanted).to_pylist()
    assert bag(found) == bag(expected)
    assert len(found) == len({row["text"] for row in found})


def bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(
        repr({name: sorted(one) if isinstance(one, list) else one for name, one in row.items()})
        for row in rows
    )


def test_parcels_bring_rows_to_the_tasks_they_name() -> None:
    tasks = np.array([2, 0, 2, 1, 0], np.int32)
    rows = pa.RecordBatch.from_pydict({"name": list("abcde"), TASK: pa.array(tasks)})
    parcels = list(SendParcels(KEYS)(iter([rows.slice(0, 2), rows.slice(2, 0), rows.slice(2)])))
    assert all(parcel.schema.names == [TASK, PARCEL] and len(parcel) == 1 for parcel in parcels)
    received = [[row["name"] for batch in Unpack()(iter(own)) for row in batch.to_pylist()]
                for own in sent(parcels)]  # fmt: skip
    assert received == [["b", "e"], ["d"], ["a", "c"]]


@pytest.mark.parametrize(("by", "figures", "can"), [
    (["text"], {"count": "rows"}, True),
    (["float"], {"count": "rows", "hashes": "number"}, True),
    (["text"], {"least": ["text"], "most": ["number"]}, True),
    # The order of floats would show, and what NaN is worth.
    (["text"], {"sums": ["float"]}, False),
    (["text"], {"most": ["float"]}, False),
    ([], {"count": "rows"}, True),
])  # fmt: skip
def test_what_is_left_to_spark(by: list[str], figures: dict[str, Any], can: bool) -> None:
    assert can_aggregate_in_tasks(SCHEMA, by, wanted_of(**figures)) == can


def test_texts_with_a_collation_are_left_to_spark() -> None:
    collated = pa.schema([pa.field("text", pa.string(), metadata={"spark_type": '"string"'})])
    count = Aggregate("rows", "count", "", pa.int64())
    assert not can_aggregate_in_tasks(collated, ["text"], [count])
