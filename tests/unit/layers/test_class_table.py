"""Classes: their names, the order of their rows, and exact sums of their figures."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from counted_tables import RULES, AnyRule, Records
from hypothesis import given
from hypothesis import strategies as st
from places import require_data
from public_tables import TABLES, read
from references import attribute_of, k_alone

from anonspark.core.columns import CLASS_ID, PAYLOAD_HASH
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import TASK
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.publish.class_table import _in_digits, _published_names, _SortClasses
from anonspark.layers.publish.file_assignment import Division, _by_batch, _CountEqual, files_for
from anonspark.release.derived_figures import Totals
from anonspark.staged.records import FIRST_NUMBER, RECORDS, ROWS, Packer

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
    (found,) = _SortClasses("a-run", schema)(iter([sent.slice(0, cut), sent.slice(cut)]))
    expected = sorted((f"{name:016x}", place) for place, name in enumerate(names))
    assert found.to_pydict() == {
        "run_id": ["a-run"] * len(names),
        "class_id": [name for name, _ in expected],
        "n": [place for _, place in expected],
    }


def test_no_class_makes_no_row_group() -> None:
    assert list(_SortClasses("a-run", pa.schema([]))(iter([]))) == []


SIZES = st.lists(st.integers(1, 40) | st.integers(1, 10**12), min_size=1, max_size=30)


def totals_of(sizes: list[int]) -> Totals:
    return Totals(Counter(sizes))


@given(SIZES)
def test_the_median_is_that_of_the_classes(sizes: list[int]) -> None:
    assert totals_of(sizes).median_class_size == median(sizes)


@given(SIZES, SIZES)
def test_rounds_are_added_up(one: list[int], other: list[int]) -> None:
    both = totals_of(one) + totals_of(other)
    assert both.median_class_size == median(one + other)
    assert both.squares == sum(size**2 for size in one + other)


PENALTIES = st.floats(0, 1)
VALUES = st.lists(PENALTIES | st.floats(0, 2**40) | st.integers(0, 2**50).map(float), max_size=20)
PLACES = Decimal("1e-15")


def rounded(value: float) -> Decimal:
    with localcontext(prec=60):
        return Decimal(value).quantize(PLACES, ROUND_HALF_EVEN)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values: list[float], random: object) -> None:
    (whole,) = exact_sums(np.array(values))
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    parts = [exact_sums(np.array(shuffled[start : start + 3]))[0] for start in range(0, 20, 3)]
    with localcontext(prec=60):
        assert sum(parts, Decimal(0)) == whole
        # A unit in the last place for each number: the product of a fraction is rounded, too.
        expected = sum(map(rounded, values), Decimal(0))
        assert abs(whole - expected) <= PLACES * len(values)


def test_sums_of_many_do_not_overflow() -> None:
    values = np.full(200_000, 0.999_999_999_999_999)
    assert exact_sums(values) == [Decimal("199999.999999999800000")]
    assert exact_sums(np.full(500, 2.0**53)) == [Decimal(500 * 2**53)]


def test_groups_are_summed_apart() -> None:
    values = np.array([0.25, 0.5, 1.75, 3.0])
    assert exact_sums(values, [0, 1, 3]) == [Decimal("0.25"), Decimal("2.25"), Decimal(3)]
    assert exact_sums(np.zeros(0)) == [Decimal(0)]


K = 10
TASK_ROWS = 2_000

STRICT_BALANCED = "strict balanced data"
MONDRIAN = (STRICT_BALANCED, "strict published cell", "relaxed data")

KDD_CUP = "kddcup99_10_percent.csv.gz"
# Of a hundred thousand records, or half a million, 25,000 are enough.
EVERY = {KDD_CUP: 20, "fars.csv": 4, "diabetic_data.csv.gz": 4}
# Each table is read once for all of its rules. Canon takes long where most records are equal. By
# day each table has one rule of Mondrian, and the first one Canon, too.
CASES = [
    pytest.param(
        file,
        rule,
        marks=[]
        if rule == MONDRIAN[place % 3] or (place, rule) == (0, "canon spread")
        else [pytest.mark.night],
    )
    for place, file in enumerate(TABLES)
    for rule in (*MONDRIAN, "canon spread")
    if (file, rule) != (KDD_CUP, "canon spread")
]


def require_same_names(records: Records, criteria: Criteria, rule: AnyRule) -> np.ndarray:
    """Require that every record is in a group of the same name however large the tasks are."""
    at_once = records.names_at_once(criteria, rule)
    by_leaves = records.names_by_leaves(criteria, rule, TASK_ROWS)
    assert (by_leaves == at_once).all()
    assert np.unique(at_once, return_counts=True)[1].min() >= criteria.k
    return at_once


@pytest.mark.parametrize(("file", "rule"), CASES)
def test_the_same_groups_for_any_size_of_tasks(data_directory: Path, file: str, rule: str) -> None:
    path = data_directory / file
    require_data(path)
    records = read(path, TABLES[file], every=EVERY.get(file, 1))
    assert len(records) > 10 * TASK_ROWS
    require_same_names(records, k_alone(K), RULES[rule])


@cases(__file__, "file", "sensitive")
def test_the_same_groups_under_a_criterion(data_directory: Path, file: str, sensitive: str) -> None:
    path = data_directory / file
    require_data(path)
    records = read(path, TABLES[file], sensitive)
    attribute = attribute_of(sensitive, np.bincount(records.values[:, 0]).tolist())
    criteria = Criteria(K, (Criterion(sensitive, "equal distance", 0.2),), (attribute,))
    names = require_same_names(records, criteria, RULES[STRICT_BALANCED])
    # The boundaries further out cut groups that the published rule leaves whole.
    published = records.names_at_once(criteria, RULES["strict published data"])
    assert len(np.unique(names)) > len(np.unique(published))


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
