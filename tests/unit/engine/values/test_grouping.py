"""Groups of equal rows and their figures, beside the obvious way with dictionaries of Python."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import reduce
from operator import xor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.values import grouping
from anonspark.engine.values.grouping import aggregate, aggregates_of, find_groups, merge

TEXT = st.sampled_from([None, "", "a", "b", "ä"])
NUMBER = st.one_of(st.none(), st.integers(-2, 2))
FLOAT = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf])
HASH = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(TEXT, NUMBER, FLOAT, HASH), max_size=30)
SCHEMA = pa.schema(
    [("text", pa.string()), ("number", pa.int64()), ("float", pa.float64()), ("hash", pa.int64())]
)
BY = ["text", "number", "float"]


def table_of(rows: list[tuple[Any, ...]], cuts: int = 1) -> pa.Table:
    """Return rows in some chunks, whose texts are dictionaries with the same value twice."""
    whole = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA
    )
    size = -(-len(rows) // cuts) or 1
    batches = []
    for batch in whole.combine_chunks().to_batches(size):
        words = pa.array(["b", "", "a", "ä", "b"])
        places = {value: place for place, value in enumerate(words.to_pylist())}
        codes = [None if one is None else places[one] for one in batch["text"].to_pylist()]
        # Every second b is the first one.
        seen = 0
        for place, code in enumerate(codes):
            if code == 4:
                codes[place] = 4 * (seen % 2)
                seen += 1
        texts = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)
        batches.append(batch.set_column(0, "text", texts))
    own = pa.schema([("text", pa.dictionary(pa.int32(), pa.string())), *list(SCHEMA)[1:]])
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(one.columns, schema=own) for one in batches], own
    )


def key_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    text, number, value, _ = row
    if value is not None:
        value = "NaN" if math.isnan(value) else value + 0.0
    return text, number, value


@pytest.mark.parametrize("collide", [False, True])
@given(rows=ROWS, cuts=st.integers(1, 3))
def test_groups(collide: bool, rows: list[tuple[Any, ...]], cuts: int) -> None:
    table = table_of(rows, cuts)
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(
                grouping, "content_hash", lambda columns: np.zeros(len(columns[0]), np.int64)
            )
        groups = find_groups([table.column(name) for name in BY])
    numbers: dict[tuple[Any, ...], int] = {}
    expected = [numbers.setdefault(key_of(row), len(numbers)) for row in rows]
    assert groups.numbers.tolist() == expected
    assert groups.first.tolist() == [expected.index(one) for one in range(len(numbers))]


@given(texts=st.lists(TEXT, max_size=30))
def test_groups_of_codes(texts: list[str | None]) -> None:
    column = pa.chunked_array([pa.array(texts, pa.string()).dictionary_encode()])
    groups = find_groups([column])
    first = list(dict.fromkeys(texts))
    assert groups.numbers.tolist() == [first.index(one) for one in texts]
    assert groups.first.tolist() == [texts.index(one) for one in first]


@given(rows=ROWS, cuts=st.integers(1, 3))
def test_figures(rows: list[tuple[Any, ...]], cuts: int) -> None:
    table = table_of(rows, cuts)
    wanted = aggregates_of(
        SCHEMA, count="rows", sums=["number"], least=["text"], most=["number"], hashes="hash",
        lists=["hash"],
    )  # fmt: skip
    # A name for each: two figures are of one column.
    names = ["rows", "sum", "least", "most", "hash_sum", "hash_xor", "list"]
    wanted = [
        grouping.Aggregate(name, one.kind, one.column, one.type)
        for name, one in zip(names, wanted, strict=True)
    ]
    plain = table.set_column(0, "text", table["text"].cast(pa.string()))
    found = aggregate(plain, BY, wanted).to_pylist()
    groups = defaultdict(list)
    for row in rows:
        groups[key_of(row)].append(row)
    assert len(found) == len(groups)
    for row, own in zip(found, groups.values(), strict=True):
        numbers = [one[1] for one in own if one[1] is not None]
        texts = [one[0] for one in own if one[0] is not None]
        assert key_of((row["text"], row["number"], row["float"], 0)) == key_of(own[0])
        assert row["rows"] == len(own)
        assert row["sum"] == (sum(numbers) if numbers else None)
        assert row["least"] == min(texts, default=None)
        assert row["most"] == max(numbers, default=None)
        assert row["hash_sum"] == sum(one[3] for one in own)
        assert row["hash_xor"] == reduce(xor, (one[3] for one in own))
        assert sorted(row["list"]) == sorted(one[3] for one in own)


@given(first=ROWS, second=ROWS)
def test_parts_put_together(first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]) -> None:
    wanted = aggregates_of(
        SCHEMA, count="rows", sums=[], least=[], most=["hash"], hashes="hash", lists=[]
    )
    parts = pa.concat_tables([aggregate(table_of(one), BY, wanted) for one in (first, second)])
    whole = aggregate(table_of(first + second), BY, wanted)
    assert repr(merge(parts, BY, wanted).to_pylist()) == repr(whole.to_pylist())


@pytest.mark.parametrize(
    ("numbers", "fits"),
    [([2**62, 2**62], False), ([2**62, -(2**62)], True), ([2**62, 2**62 - 1], True)],
)
def test_sums_that_need_more_than_64_bits(numbers: list[int], fits: bool) -> None:
    table = pa.table({"key": [1, 1], "number": numbers})
    wanted = aggregates_of(
        table.schema, count=None, sums=["number"], least=[], most=[], hashes=None, lists=[]
    )
    if fits:
        assert aggregate(table, ["key"], wanted)["number"].to_pylist() == [sum(numbers)]
    else:
        with pytest.raises(pa.ArrowInvalid):
            aggregate(table, ["key"], wanted)
