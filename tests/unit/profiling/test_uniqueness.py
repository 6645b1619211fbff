"""Sets of columns and dependencies, beside what their definitions say, record by record."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.dependencies import NEARLY, find_dependencies, most_frequent
from anonspark.profiling.uniqueness import measure_sets, weigh_columns

K = 3

tables = st.integers(1, 5).flatmap(
    lambda columns: st.lists(
        st.tuples(*[st.integers(0, 3)] * columns).map(tuple), min_size=1, max_size=25
    )
)


def codes_of(records: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [
        np.unique(np.array(column, np.int64), return_inverse=True)[1].astype(np.int64)
        for column in zip(*records, strict=True)
    ]


def unique_rows(records: list[tuple[int, ...]], places: tuple[int, ...]) -> set[int]:
    keys = [tuple(record[place] for place in places) for record in records]
    counts = Counter(keys)
    return {row for row, key in enumerate(keys) if counts[key] == 1}


@given(tables)
def test_sets_are_measured_as_defined(records: list[tuple[int, ...]]) -> None:
    n, columns = len(records), len(records[0])
    names = [f"c{place}" for place in range(columns)]
    found = measure_sets(names, codes_of(records), K)
    wanted = [places for size in (1, 2, 3) for places in combinations(range(columns), size)]
    assert [one.columns for one in found.sets] == [
        tuple(names[place] for place in places) for places in wanted
    ]
    for one, places in zip(found.sets, wanted, strict=True):
        keys = [tuple(record[place] for place in places) for record in records]
        counts = Counter(keys)
        told_apart = [first != second for first, second in combinations(keys, 2)]
        assert one.distinct == len(counts)
        assert one.distinction == len(counts) / n
        assert abs(one.separation - (sum(told_apart) / len(told_apart) if n > 1 else 0)) < 1e-12
        assert one.unique == sum(counts[key] == 1 for key in keys)
        assert one.few == sum(counts[key] < K for key in keys)
        # Unique by the set, and by no smaller one, of whatever size.
        subsets = [own for size in range(len(places)) for own in combinations(places, size) if own]
        smaller = set().union(*(unique_rows(records, own) for own in subsets))
        assert one.minimal_unique == len(unique_rows(records, places) - smaller)
    for size, number in enumerate(found.unique_by_size, start=1):
        sets = [own for own in wanted if len(own) <= size]
        assert number == len(set().union(*(unique_rows(records, own) for own in sets)))


@given(tables)
def test_nothing_depends_on_the_order_of_records(records: list[tuple[int, ...]]) -> None:
    names = [f"c{place}" for place in range(len(records[0]))]
    assert measure_sets(names, codes_of(records), K) == measure_sets(
        names, codes_of(records[::-1]), K
    )


@given(tables)
def test_weights_are_those_of_the_formula(records: list[tuple[int, ...]]) -> None:
    n, columns = len(records), len(records[0])
    names = [f"c{place}" for place in range(columns)]
    # The first column is a key: it is unique in each record, and not measured.
    measured = measure_sets(names[1:], codes_of(records)[1:], K)
    keyed = [(row, *record[1:]) for row, record in enumerate(records)]
    shares = []
    for place in range(columns):
        gains: dict[int, list[int]] = {}
        for size in range(min(3, columns)):
            for others in combinations([one for one in range(columns) if one != place], size):
                before = unique_rows(keyed, others) if others else set()
                after = unique_rows(keyed, tuple(sorted((*others, place))))
                gains.setdefault(size, []).append(len(after) - len(before))
        shares.append(np.mean([np.mean(gain) for gain in gains.values()]))
    inverse = 1 / np.sqrt(np.array(shares) / (np.mean(shares) or 1) + 0.1)
    weights = weigh_columns(measured, names, n)
    assert list(weights) == names
    for weight, slow in zip(weights.values(), inverse / inverse.mean(), strict=True):
        assert abs(weight / slow - 1) <= 0.05 + 1e-9
        assert weight == float(f"{weight:.2g}")
    assert abs(np.mean(list(weights.values())) - 1) <= 0.05


def test_weights_of_columns_that_identify_no_record() -> None:
    records = [(row % 2, row % 3) for row in range(60)]
    measured = measure_sets(["a", "b"], codes_of(records), K)
    assert weigh_columns(measured, ["a", "b"], 60) == {"a": 1.0, "b": 1.0}


def test_the_best_sets_come_first() -> None:
    records = [(row % 2, row % 3, row % 5) for row in range(30)]
    found = measure_sets(["a", "b", "c"], codes_of(records), K)
    assert [one.columns for one in found.of_size(2)] == [("b", "c"), ("a", "c"), ("a", "b")]
    assert [one.columns for one in found.causing(9)] == [("a", "b", "c")]
    assert found.causing(9)[0].minimal_unique == 30


@given(tables)
def test_dependencies_hold_as_defined(records: list[tuple[int, ...]]) -> None:
    names = [f"c{place}" for place in range(len(records[0]))]
    found = {
        (one.column, one.determines): one
        for one in find_dependencies(names, codes_of(records), names)
    }
    for first, second in ((a, b) for a in range(len(names)) for b in range(len(names)) if a != b):
        counts = Counter(record[first] for record in records)
        repeated = [record for record in records if counts[record[first]] > 1]
        one = found.get((names[first], names[second]))
        values = Counter(record[second] for record in repeated)
        if 2 * len(repeated) < len(records) or not repeated or len(values) == 1:
            assert one is None
            continue
        right = 0
        for value in counts:
            of_value = Counter(record[second] for record in repeated if record[first] == value)
            right += max(of_value.values(), default=0)
        base = max(values.values())
        told = right >= NEARLY * len(repeated) and right - base >= 0.8 * (len(repeated) - base)
        assert (one is not None) == told
        if one is not None:
            assert (one.holds, one.records) == (right / len(repeated), len(repeated))
            assert one.exact == (right == len(repeated))


def test_an_approximate_dependency() -> None:
    city = np.repeat(np.arange(10), 20)
    code = city.copy()
    code[:5] = 9
    found = find_dependencies(["code", "city"], [code, city], ["code"])
    assert [(one.determines, one.holds, one.exact) for one in found] == [("city", 0.975, False)]
    assert most_frequent(code, city) == 195
    names, codes = ["code", "city", "same"], [code, city, code]
    asked = find_dependencies(names, codes, ["code"], ["same"])
    assert [(one.column, one.determines) for one in asked] == [("code", "same")]
