"""What leaves a failed task: the kind and the place of an error, not its text."""

from __future__ import annotations

import errno
import gc
import traceback
from collections.abc import Iterator

import pyarrow as pa
import pytest

from anonspark.engine.spark import tasks
from anonspark.engine.spark.tasks import _Guarded
from anonspark.engine.tasks import Batches, FailedTaskError
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
