"""Which file a record goes to: the same for any batches, in the order of names, about equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.columns import CLASS_ID, PAYLOAD_HASH
from anonspark.layers.publish.file_assignment import Division, _by_batch, _CountEqual, files_for
from anonspark.staged.records import FIRST_NUMBER, RECORDS, ROWS, Packer

NUMBERS = st.integers(-(2**63), 2**63 - 1)
MOST = 4


def divided(tables: Sequence[np.ndarray], files: int) -> Counter[tuple[int, int, int]]:
    """Return how many records of each name and hash go to each file."""
    records = np.concatenate(tables)
    sizes = Counter(records[:, 0].tolist())
    large = tuple(sorted(name for name, size in sizes.items() if size > MOST))
    packer = Packer()
    packed = [
        packer.pack(pa.table({CLASS_ID: own[:, 0], PAYLOAD_HASH: own[:, 1]})) for own in tables
    ]
    batches = [
        pa.RecordBatch.from_pydict({name: one[name] for name in (FIRST_NUMBER, ROWS, RECORDS)})
        for one in packed
    ]
    pairs = Counter(map(tuple, records.tolist()))
    totals = {pair: n for pair, n in pairs.items() if n > MOST and pair[0] in large}
    counted = _CountEqual(large, frozenset(totals))(iter(batches))
    rows = [tuple(row.values()) for batch in counted for row in batch.to_pylist()]
    division = Division(files, MOST, large, _by_batch(totals, rows))
    found: Counter[tuple[int, int, int]] = Counter()
    first = 0
    for own in tables:
        names, hashes = (np.ascontiguousarray(own[:, place]) for place in (0, 1))
        numbers = division.files_of(names, hashes, first).tolist()
        assert all(0 <= number < files for number in numbers)
        classes = np.unique(names)
        places, expected = division.files_with(classes)
        sent = set(zip(classes[places].tolist(), expected.tolist(), strict=True))
        assert len(sent) == len(places)
        assert sent.issuperset(zip(names.tolist(), numbers, strict=True))
        assert {name for name, _ in sent} == set(classes.tolist())
        found.update(zip(names.tolist(), hashes.tolist(), numbers, strict=True))
        first += len(own)
    return found


@given(
    st.lists(st.tuples(NUMBERS | st.just(7), NUMBERS | st.integers(1, 2)), min_size=1, max_size=60),
    st.integers(1, 9),
    st.lists(st.integers(1, 59), max_size=5),
)
def test_batches_change_nothing(rows: list[tuple[int, int]], files: int, cuts: list[int]) -> None:
    records = np.array(rows, np.int64)
    expected = divided([records], files)
    shuffled = np.random.default_rng(len(cuts)).permutation(records)
    inside = sorted({cut for cut in cuts if cut < len(records)})
    assert divided(np.split(shuffled, inside), files) == expected


def test_files_follow_the_order_of_names_and_are_about_equal() -> None:
    names = np.sort(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 10_000))
    numbers = Division(8, 10_000, (), {}).files_of(names, np.zeros_like(names), 0)
    assert (np.diff(numbers) >= 0).all()
    assert np.bincount(numbers).min() > 1_100


def test_one_class_of_equal_records_goes_to_all_files() -> None:
    rows = np.tile(np.array([[5, 3]]), (41, 1))
    found = divided([rows[:1], rows[:17], rows[:23]], 8)
    assert sorted(found.values()) == [5] * 7 + [6]
    # Of few equal records all stay together.
    assert len(divided([np.concatenate([rows[:3], np.array([[5, 9]] * 4)])], 8)) == 2


@pytest.mark.parametrize(
    ("rows", "size", "file_rows", "files"),
    [
        (0, 0, None, 1),
        (250_000, 1, None, 1),
        (250_001, 1, None, 2),
        (1_000, 65 * 2**20, None, 2),
        # 1,000 files, and then larger ones, until each has four times as much.
        (250_000_000, 1, None, 1_000),
        (250_000_001, 1, None, 1_000),
        (1_000_000_000, 1, None, 1_000),
        (1_000_000_001, 1, None, 1_001),
        (10**10, 10**12, None, 10_000),
        (1_000_000, 10**12, 500_000, 2),
        (1_000_001, 1, 500_000, 3),
        (0, 0, 10_000, 1),
    ],
)
def test_files_of_a_release(rows: int, size: int, file_rows: int | None, files: int) -> None:
    number, most = files_for(rows, size, file_rows)
    assert number == files
    assert most == max(rows // files // 8, 1)
