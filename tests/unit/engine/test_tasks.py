"""What tasks of Spark add up, and what leaves those that fail: the kind of an error."""

from __future__ import annotations

import errno
import gc
import traceback
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from anonspark.engine.protocol import TASK
from anonspark.engine.spark import aggregation, tasks
from anonspark.engine.spark.aggregation import can_aggregate_in_tasks
from anonspark.engine.spark.errors import environment_problem, reading_input
from anonspark.engine.spark.shuffle_batches import PARCEL, SendParcels, Unpack
from anonspark.engine.spark.table import keys_for_partitions
from anonspark.engine.spark.tasks import _Guarded
from anonspark.engine.tasks import Batches, FailedTaskError
from anonspark.engine.values.grouping import Aggregate, aggregate, aggregates_of, schema_of
from anonspark.errors import DataError


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"name": ["Quetzalborough"]})


def quote(given: Batches) -> Batches:
    for batch in given:
        yield batch
        try:
            raise KeyError(batch.to_pylist())
        except KeyError as error:
            raise ValueError(f"cannot use {batch.to_pylist()}") from error


def test_the_text_of_an_error_stays_in_the_task() -> None:
    results = _Guarded(quote)(batches())
    assert next(results).num_rows == 1
    with pytest.raises(FailedTaskError) as caught:
        next(results)
    whole = "".join(traceback.format_exception(caught.value))
    assert "Quetzalborough" not in whole
    assert "ValueError at tasks.py:" in whole
    assert "test_tasks.py:" in whole
    assert "in quote" in whole
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_kind_of_an_error_is_told() -> None:
    def exhaust(given: Batches) -> Batches:
        yield from given
        raise MemoryError

    with pytest.raises(FailedTaskError, match=r"^MemoryError at "):
        list(_Guarded(exhaust)(batches()))


def test_a_full_disk_is_told() -> None:
    def write(given: Batches) -> Batches:
        yield from given
        raise OSError(errno.ENOSPC, "ignored", "/data/Quetzalborough")

    with pytest.raises(
        FailedTaskError, match=r"^OSError \(No space left on device\) at "
    ) as caught:
        list(_Guarded(write)(batches()))
    assert "Quetzalborough" not in str(caught.value)


def test_errors_that_a_user_can_mend_keep_their_text() -> None:
    def refuse(given: Batches) -> Batches:
        yield from given
        raise DataError("attributes.age: what to do")

    with pytest.raises(DataError, match="what to do"):
        list(_Guarded(refuse)(batches()))


def test_what_does_not_fail_is_passed_through() -> None:
    assert [batch.to_pydict() for batch in _Guarded(lambda given: given)(batches())] == [
        {"name": ["Quetzalborough"]}
    ]


def test_modules_are_left_out_of_collections_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_frozen", 0)
    gc.unfreeze()
    try:
        assert list(_Guarded(lambda given: given)(batches())) == list(batches())
        frozen = gc.get_freeze_count()
        assert frozen
        list(_Guarded(lambda given: given)(batches()))
        assert gc.get_freeze_count() <= frozen, "what a task leaves behind is collected"
    finally:
        gc.unfreeze()


TRACEBACK = "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
REMEDY = ("PYSPARK_PYTHON", "--py-files", "--archives")


@cases(__file__, "text", "told")
@pytest.mark.parametrize("kind", [PySparkException, Py4JError])
def test_workers_without_our_packages(kind: type[Exception], text: str, told: str) -> None:
    text = text.replace("{TRACEBACK}", TRACEBACK)
    problem = environment_problem(kind(f"Job aborted: failed 4 times, most recent failure: {text}"))
    assert problem is not None
    assert problem.startswith(told)
    assert all(word in problem for word in REMEDY)


def test_results_that_are_too_large_for_the_driver() -> None:
    text = "Total size of serialized results of 1 tasks (123.1 MiB) is bigger than "
    problem = environment_problem(
        PySparkException(f"Job aborted: {text}spark.driver.maxResultSize (100.0 MiB)")
    )
    assert problem is not None
    assert problem.startswith("the tasks of a job hand more to the driver than")


HADOOP = "org.apache.hadoop.security"


@pytest.mark.parametrize(
    "text",
    [
        f"{HADOOP}.AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
        f"{HADOOP}.AccessControlException: SIMPLE authentication is not enabled.  "
        "Available:[TOKEN, KERBEROS]",
        "javax.security.sasl.SaslException: GSS initiate failed [Caused by GSSException: No valid "
        "credentials provided (Mechanism level: Failed to find any Kerberos tgt)]",
        f"{HADOOP}.token.SecretManager$InvalidToken: token (HDFS_DELEGATION_TOKEN owner=publisher) "
        "is expired",
    ],
)
def test_no_ticket_of_kerberos(text: str) -> None:
    problem = environment_problem(Py4JError(text))
    assert problem is not None
    assert problem.startswith("a file system asks for Kerberos")
    assert "publisher" not in problem


@pytest.mark.parametrize(
    "error",
    [
        PySparkException("Job aborted: Task 0 failed 4 times: FailedTaskError: ValueError at x.py"),
        PySparkException("[CAST_INVALID_INPUT] The value 'abc' of the type STRING"),
        RuntimeError("No module named 'anonspark'"),
    ],
)
def test_other_errors(error: Exception) -> None:
    assert environment_problem(error) is None


FAILED = "Job aborted: Task 0 failed 4 times, most recent failure: (host executor 1): "


def test_a_changed_byte_in_a_dictionary() -> None:
    text = (
        f"{FAILED}java.lang.ArrayIndexOutOfBoundsException: Index 56 out of bounds for length 40\n"
        "\tat org.apache.parquet.column.values.dictionary.PlainValuesDictionary"
        "$PlainLongDictionary.decodeToLong(PlainValuesDictionary.java:164)\n"
    )
    with pytest.raises(DataError, match="table: files cannot be read"), reading_input(("table",)):
        raise Py4JError(text)


def test_what_a_reader_says_in_a_task() -> None:
    text = (
        f"{FAILED}Traceback (most recent call last):\n  File x\nanonspark.errors.DataError: DATA: "
    )
    with pytest.raises(DataError, match=r"\ADATA: t: a record is odd\Z"), reading_input(("t",)):
        raise Py4JError(f"{text}t: a record is odd\n\n\tat org.apache.spark.api.python")


@cases(__file__, "frame")
def test_bugs_of_ours_are_not_the_input(frame: str) -> None:
    error = Py4JError(f"{FAILED}java.lang.NullPointerException\n\tat {frame}\n")
    with pytest.raises(Py4JError), reading_input(("table",)):
        raise error


class UntoldError(Py4JError):
    """Its text comes from a Java that is not there any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_java_has_ended() -> None:
    problem = environment_problem(UntoldError())
    assert problem is not None
    assert problem.startswith("Java has ended")


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


@cases(__file__, "by", "figures", "can")
def test_what_is_left_to_spark(by: list[str], figures: dict[str, Any], can: bool) -> None:
    assert can_aggregate_in_tasks(SCHEMA, by, wanted_of(**figures)) == can


def test_texts_with_a_collation_are_left_to_spark() -> None:
    collated = pa.schema([pa.field("text", pa.string(), metadata={"spark_type": '"string"'})])
    count = Aggregate("rows", "count", "", pa.int64())
    assert not can_aggregate_in_tasks(collated, ["text"], [count])
