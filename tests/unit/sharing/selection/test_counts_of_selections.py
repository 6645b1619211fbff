"""Counts of a selection are those of a slow count, record by record; persons count so often."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.values.batches import hash_rows
from anonspark.sharing.selection.counting import Person, count_tables
from anonspark.sharing.selection.domains import Domain

MARKERS = ["?", "n/a"]
TYPES: dict[str, pa.DataType] = {
    "job": pa.string(),
    "age": pa.float64(),
    "visits": pa.int32(),
    "written": pa.string(),
    "vaccinated": pa.bool_(),
    "day": pa.date32(),
    "price": pa.decimal128(6, 2),
    "ill": pa.string(),
    "person": pa.string(),
}
EDGES = [18.0, 40.5, 65.0]
DOMAINS = [
    Domain.of_values("job", ["a", "b", "c c"]),
    Domain.of_edges("age", EDGES),
    Domain.of_values("visits", ["0", "1", "2"]),
    Domain.of_edges("written", EDGES),
    Domain.of_values("vaccinated", ["false", "true"]),
    Domain.of_values("day", ["2024-02-29", "1999-12-31"]),
    Domain.of_values("price", ["1.50", "-2.00"]),
    Domain.of_groups("job", {"a": "first", "b": "first", "c c": "last"}),
]
TARGET = Domain.of_values("ill", ["no", "yes"])

texts = st.sampled_from(["a", " b ", "c c", "d", "", "  ", "?", " n/a", "A", None])
numbers = st.sampled_from([17.9, 18.0, 40.5, 64.99, 65.0, math.nan, math.inf, -math.inf, None])
written = st.sampled_from([" 18 ", "64.99", "1e9", "NaN", "old", "", None, "-1e9", "?"])
records = st.fixed_dictionaries(
    {
        "job": texts,
        "age": numbers,
        "visits": st.sampled_from([0, 1, 2, 7, -1, None]),
        "written": written,
        "vaccinated": st.sampled_from([True, False, None]),
        "day": st.sampled_from([date(2024, 2, 29), date(1999, 12, 31), date(2000, 1, 1), None]),
        "price": st.sampled_from([Decimal("1.50"), Decimal("-2.00"), Decimal("1.51"), None]),
        "ill": st.sampled_from(["no", "yes", " yes", "perhaps", "", "?", None]),
        "person": st.sampled_from(["p", "q", " q ", "r", "", "?", None]),
    }
)
tables = st.lists(records, max_size=16)


def row_of(domain: Domain, value: Any) -> int:
    """Return the row of one value, by the words of the specification."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return domain.missing
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.strip() in ("", *MARKERS):
        return domain.missing
    if not domain.edges:
        return dict(domain.values).get(text.strip(), domain.other)
    try:
        number = float(text)
    except ValueError:
        return domain.other
    if math.isnan(number):
        return domain.missing
    return sum(number >= edge for edge in domain.edges)


def slow(rows: list[dict[str, Any]], *, drop: bool) -> list[Counter[tuple[int, int]]]:
    found: list[Counter[tuple[int, int]]] = [Counter() for _ in DOMAINS]
    for row in rows:
        own = row_of(TARGET, row["ill"])
        places = [row_of(one, row[one.name]) for one in DOMAINS]
        if own >= 2 or (
            drop and any(p == one.missing for p, one in zip(places, DOMAINS, strict=True))
        ):
            continue
        for counts, place in zip(found, places, strict=True):
            counts[place, own] += 1
    return found


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([r[name] for r in rows], TYPES[name]) for name in TYPES})


def counted(rows: list[dict[str, Any]], *, drop: bool, person: Person | None = None) -> list[Any]:
    table = LocalEngine().wrap(table_of(rows))
    return count_tables(table, DOMAINS, TARGET, MARKERS, drop_missing=drop, person=person)


def as_counters(counts: list[Any]) -> list[Counter[tuple[int, int]]]:
    return [
        Counter({(int(r), int(t)): int(own[r, t]) for r, t in zip(*own.nonzero(), strict=True)})
        for own in counts
    ]


@given(tables, st.booleans())
def test_counts_are_those_of_a_slow_count(rows: list[dict[str, Any]], drop: bool) -> None:
    assert as_counters(counted(rows, drop=drop)) == slow(rows, drop=drop)


def kept_records(rows: list[dict[str, Any]], most: int, *, drop: bool) -> list[dict[str, Any]]:
    """Return the records of persons with the smallest keys, of those that count at all."""
    names = list(dict.fromkeys([*(one.name for one in DOMAINS), TARGET.name, "person"]))
    (batch,) = table_of(rows).select(names).to_batches() or [None]
    keys = [] if batch is None else hash_rows(batch, names, 7).tolist()
    of_person: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, row in enumerate(rows):
        person = (row["person"] or "").strip()
        if person not in ("", *MARKERS) and any(slow([row], drop=drop)):
            of_person[person].append((keys[place], place))
    return [rows[place] for own in of_person.values() for _, place in sorted(own)[:most]]


@given(tables, st.booleans(), st.integers(1, 3))
def test_of_a_person_so_many_records_count(
    rows: list[dict[str, Any]], drop: bool, most: int
) -> None:
    found = counted(rows, drop=drop, person=Person("person", most, 7))
    assert as_counters(found) == slow(kept_records(rows, most, drop=drop), drop=drop)


@given(tables, st.lists(records, min_size=1, max_size=8), st.integers(1, 3))
def test_all_records_of_a_person_change_a_table_by_so_many_at_most(
    rows: list[dict[str, Any]], own: list[dict[str, Any]], most: int
) -> None:
    before = [row for row in rows if (row["person"] or "").strip() != "p"]
    after = before + [row | {"person": "p"} for row in own]
    person = Person("person", most, 7)
    for old, new in zip(
        counted(before, drop=False, person=person),
        counted(after, drop=False, person=person),
        strict=True,
    ):
        assert np.abs(new - old).sum() <= most
        assert (new >= old).all()


def test_many_records_of_few_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonspark.sharing.selection.counting._WAITING", 50)
    draw = np.random.default_rng(5)
    n = 2_000
    table = pa.table(
        {
            "person": draw.integers(0, 40, n),
            "job": draw.choice(["a", "b", "x"], n),
            "ill": draw.choice(["no", "yes"], n),
        }
    )
    expected = None
    for part in (table, table.take(pa.array(draw.permutation(n)))):
        batched = pa.concat_tables([part.slice(start, 100) for start in range(0, n, 100)])
        (found,) = count_tables(
            LocalEngine().wrap(batched),
            [Domain.of_values("job", ["a", "b"])],
            TARGET,
            MARKERS,
            drop_missing=False,
            person=Person("person", 3, 1),
        )
        assert found.sum() == 40 * 3
        assert expected is None or (found == expected).all()
        expected = found


def test_numbers_are_declared_as_they_are_written() -> None:
    domain = Domain.of_values("x", ["1", "2.0", "2.5"])
    assert domain.rows_of(pa.array([1.0, 2.0, 2.5, 3.0]), []).tolist() == [0, 1, 2, 3]
    assert domain.rows_of(pa.array([1, 2, None]), []).tolist() == [0, 3, 4]


@given(st.permutations(range(5)), st.permutations(range(2)))
def test_scores_depend_on_counts_only(rows: list[int], classes: list[int]) -> None:
    from anonspark.core.association import gini_score, information_score

    counts = np.array([[3, 9], [0, 0], [7, 1], [1, 0], [20, 4]])
    other = counts[rows][:, classes]
    assert gini_score(other) == gini_score(counts)
    assert information_score(other) == information_score(counts)


def test_bytes_that_are_no_texts_are_values_like_others() -> None:
    content, ends = b"\xff7aa", np.array([0, 2, 3, 4], np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(content)]
    column = pa.Array.from_buffers(pa.string(), 3, buffers)
    for domain in (Domain.of_edges("job", EDGES), Domain.of_values("job", ["b"])):
        assert domain.rows_of(column, MARKERS).tolist() == [domain.other] * 3
