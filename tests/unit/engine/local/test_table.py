"""The verbs of the local engine give the rows that the toy engine gives, spilled to disk or not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyarrow import parquet
from toy_engine import ToyEngine, ToyTable

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.running import StoppedError
from anonspark.engine.local.spill import Memory, SpillStore
from anonspark.engine.local.table import LocalTable
from anonspark.engine.protocol import TASK
from anonspark.engine.tasks import Batches, FailedTaskError, task_number
from anonspark.errors import DataError

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("float", pa.float64()),
        ("exact", pa.decimal128(20, 2)),
        ("nested", pa.list_(pa.int64())),
    ]
)

rows_of_values = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from([None, "", "a", "b", "ä"]),
            "number": st.one_of(st.none(), st.integers(-5, 5)),
            "float": st.sampled_from([None, 0.0, 1.5, -2.25]),
            "exact": st.one_of(st.none(), st.integers(-300, 300).map(lambda n: Decimal(n) / 4)),
            "nested": st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=2)),
        }
    ),
    max_size=12,
)

Make = Callable[[Any], Any]

VERBS: dict[str, Make] = {
    "select": lambda table: table.select(["exact", "text"]),
    "renamed": lambda table: table.select({"first": "text", "second": "text"}),
    "union": lambda table: table.union(table.select(table.schema.names[::-1])),
    "different": lambda table: table.aggregate(["text", "nested"]),
    "added up": lambda table: table.aggregate(
        ["text", "float"], count="rows", sums=["number"], least=["nested"], most=["exact"]
    ),
    "all added up": lambda table: table.aggregate(
        [], count="rows", sums=["number"], least=["text"], most=["float"]
    ),
    "lists": lambda table: table.aggregate(["text"], count="rows", lists=["number"]),
    "kept": lambda table: table.persist(),
    "grouped": lambda table: table.group(["text", "number"], 3),
    "together": lambda table: table.group([], 1),
}


def local(rows: pa.Table, tasks: int = 3, waiting_bytes: int = 2**20) -> LocalTable:
    """Return a table whose rows are dealt out to tasks like cards."""
    engine = LocalEngine(threads=2, waiting_bytes=waiting_bytes)
    dealt = [rows.take(np.arange(own, len(rows), tasks)) for own in range(tasks)]
    sources: list[Any] = [lambda own=own: iter(own.to_batches()) for own in dealt]
    return LocalTable(engine, engine.resources, rows.schema, lambda: sources)


def bag(rows: pa.Table) -> Counter[str]:
    """Return rows whatever their order, and that of their lists."""
    ordered = (
        {
            name: sorted(value, key=str) if name == "number" and isinstance(value, list) else value
            for name, value in row.items()
        }
        for row in rows.to_pylist()
    )
    return Counter(map(repr, ordered))


@settings(max_examples=25)
@given(rows=rows_of_values)
def test_rows_are_those_of_the_toy_engine(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    for name, verb in VERBS.items():
        note(name)
        expected = verb(ToyEngine().spread(table, 2))
        wanted = bag(expected.collect())
        # In memory, and on disk.
        for waiting_bytes in (2**20, 0):
            found = verb(local(table, waiting_bytes=waiting_bytes))
            gathered = found.collect()
            assert bag(gathered) == wanted
            assert gathered.schema.names == expected.schema.names
            assert found.schema.equals(gathered.schema)
            assert found.count() == len(gathered)


@settings(max_examples=25)
@given(rows=rows_of_values)
def test_figures_of_one_task_are_those_of_parts_that_were_put_together(
    rows: list[dict[str, Any]],
) -> None:
    """In the same order, too, on which the bytes of files may depend."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    # The second task has no rows.
    alone, empty = local(table, 1), local(table.slice(0, 0), 1)
    divided = replace(alone, plan=lambda: [*alone.plan(), *empty.plan()])
    for (name, verb), at_once in product(VERBS.items(), (2**20, 2)):
        note(f"{name}, {at_once} rows at once")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("anonspark.engine.local.table._ROWS_AT_ONCE", at_once)
            found, expected = verb(alone).collect(), verb(divided).collect()
        assert found.schema.equals(expected.schema)
        assert found.to_pylist() == expected.to_pylist()


@settings(max_examples=40)
@given(rows=rows_of_values, other=rows_of_values)
def test_minus_takes_as_many_as_there_are(
    rows: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    left, right = (pa.Table.from_pylist(one, SCHEMA) for one in (rows, other))
    found = local(left).except_all(local(right))
    assert bag(found.collect()) == bag(left) - bag(right)


@settings(max_examples=40)
@given(rows=rows_of_values, other=rows_of_values)
def test_join_finds_the_row_that_agrees(
    rows: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    left = pa.Table.from_pylist(rows, SCHEMA)
    once = {(row["text"], row["number"]): row for row in other}.values()
    right = pa.Table.from_pylist(
        [{**row, "found": place} for place, row in enumerate(once)],
        pa.schema([("number", pa.int64()), ("text", pa.string()), ("found", pa.int64())]),
    )
    joined = local(left).join(local(right), ["text", "number"], small=True).collect()
    assert joined.schema.names[:2] == ["text", "number"]
    places = {key: place for place, key in enumerate((row["text"], row["number"]) for row in once)}
    for row in joined.to_pylist():
        key = row["text"], row["number"]
        assert row["found"] == (None if None in key else places.get(key))
    assert bag(joined.select(SCHEMA.names)) == bag(left)


def test_rows_go_to_the_task_that_is_named(tmp_path: Path) -> None:
    numbers = pa.table({"number": pa.array(range(100), pa.int64())})
    schema = pa.schema([(TASK, pa.int32()), ("number", pa.int64())])

    def name(batches: Batches) -> Batches:
        for batch in batches:
            tasks = pa.array(batch.column(0).to_numpy() % 7, pa.int32())
            yield pa.RecordBatch.from_arrays([tasks, batch.column(0)], schema=schema)

    def tell(batches: Batches) -> Batches:
        for batch in batches:
            place = pa.repeat(task_number(), len(batch))
            yield pa.RecordBatch.from_arrays([place, batch.column(1)], ["own", "number"])

    told = (
        local(numbers)
        .repartition(name, schema, 7)
        .map_batches(tell, pa.schema([("own", pa.int64()), ("number", pa.int64())]))
    )
    assert {row["number"] % 7 == row["own"] for row in told.collect().to_pylist()} == {True}
    told.stage(str(tmp_path / "staged"))
    again = told.engine.staged([str(tmp_path / "staged")], told.schema)
    assert bag(again.collect()) == bag(told.collect())


def test_parts_are_staged_apart_and_added_up(tmp_path: Path) -> None:
    rows = pa.table({"kind": ["a", "b", "a", "a"], "size": [1, 2, 3, None]})
    table = local(rows, 2)
    sums = table.stage_parts(str(tmp_path / "parts"), "kind", ["a", "b", "c"], ["size"])
    assert sums == {"a": {"size": 4}, "b": {"size": 2}, "c": {"size": None}}
    schema = pa.schema([("size", pa.int64())])
    for part, expected in {"a": {1, 3, None}, "b": {2}, "c": set()}.items():
        staged = table.engine.staged([f"{tmp_path}/parts/kind={part}"], schema).collect()
        assert set(staged["size"].to_pylist()) == expected


def test_a_failed_task_keeps_its_text_to_itself() -> None:
    def fail(_: Batches) -> Batches:
        raise ValueError("a secret")

    table = local(pa.table({"number": range(10)}))
    with pytest.raises(FailedTaskError, match=r"^ValueError at ") as caught:
        table.map_batches(fail, table.schema).count()
    assert "secret" not in str(caught.value)

    def refuse(_: Batches) -> Batches:
        raise DataError("age: found no number")

    with pytest.raises(DataError, match="age: found no number"):
        table.map_batches(refuse, table.schema).count()


def test_no_task_runs_after_one_has_failed() -> None:
    begun = []

    def fail(batches: Batches) -> Batches:
        begun.append(task_number())
        if task_number() == 0:
            raise DataError("first: failed")
        time.sleep(0.02)
        yield from batches

    table = local(pa.table({"number": range(1000)}), tasks=200)
    with pytest.raises(DataError):
        table.map_batches(fail, table.schema).count()
    assert len(begun) < 200


def test_the_first_task_that_fails_is_told_of() -> None:
    """Also where a later one has failed before."""

    def fail(batches: Batches) -> Batches:
        number = task_number()
        time.sleep(0.05 / (number + 1))
        if number > 1:
            raise DataError(f"task {number}")
        yield from batches

    table = local(pa.table({"number": range(100)}), tasks=20)
    with pytest.raises(DataError, match=r"task 2$"):
        table.map_batches(fail, table.schema).count()


def test_a_cancelled_engine_runs_nothing() -> None:
    table = local(pa.table({"number": range(10)}))
    table.engine.cancel()
    with pytest.raises(StoppedError):
        table.count()


def test_kept_rows_are_made_once_until_they_are_released() -> None:
    made = []

    def count(batches: Batches) -> Batches:
        made.append(task_number())
        yield from batches

    table = local(pa.table({"number": range(10)}))
    kept = table.map_batches(count, table.schema).persist()
    assert kept.count() == kept.count() == 10
    assert sorted(made) == [0, 1, 2]
    kept.unpersist()
    assert kept.count() == 10
    assert sorted(made) == [0, 0, 1, 1, 2, 2]


def test_some_rows_are_enough() -> None:
    table = local(pa.table({"number": range(100)}))
    assert len(table.collect(7)) == 7
    assert len(table.collect(1000)) == 100


def test_toy_tables_are_refused() -> None:
    toy: Any = ToyTable(ToyEngine(), pa.schema([]), [])
    with pytest.raises(TypeError, match="ToyTable"):
        local(pa.table({"number": [1]})).union(toy)


@dataclass(frozen=True)
class _SeeTypes:
    """Remembers the types of a column."""

    seen: list[pa.DataType]
    takes_dictionaries: bool

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            self.seen.append(batch.column("text").type)
            yield batch


@pytest.mark.parametrize("takes", [False, True])
def test_few_texts_of_a_file_are_a_dictionary_for_who_takes_one(
    tmp_path: Path, *, takes: bool
) -> None:
    rows = pa.table({"text": ["a", None, "bc"] * 100, "all": list(map(str, range(300)))})
    parquet.write_table(rows, tmp_path / "part.parquet")
    table = LocalEngine(threads=1).published(str(tmp_path), "parquet")
    see = _SeeTypes([], takes)
    found = table.select(["text", "all"]).map_batches(see, table.schema).select(["text", "all"])
    assert found.collect().equals(rows)
    counts = found.aggregate(["text"], count="rows").collect().to_pylist()
    assert {one["text"]: one["rows"] for one in counts} == {"a": 100, None: 100, "bc": 100}
    wanted = pa.dictionary(pa.int32(), pa.string()) if takes else pa.string()
    assert set(see.seen) == {wanted}


def test_what_waits_on_disk_does_not_wait_in_memory_too() -> None:
    store = SpillStore(Memory(0))
    batch = pa.record_batch({"number": np.arange(1 << 17)})
    before = pa.total_allocated_bytes()
    waiting = [store.put(batch) for _ in range(20)]
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert waiting[7]().equals(batch)
