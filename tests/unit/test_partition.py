"""The distributed tree, without Spark: several partitions in memory, counted one by one.

What matters is one sentence: cutting by histograms until a node is small and finishing each leaf
with the kernel gives the very groups, and the very names, of the kernel on the whole table.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.kernels.mondrian import cut_into_groups
from anonspark.kernels.paths import child_path, root_path
from anonspark.partition import counting
from anonspark.partition.counting import Counter, Histogram, Request
from anonspark.partition.cut_tree import Boundary, CutTree
from anonspark.partition.distribution import _murmur3, _pack, keys_for_partitions
from anonspark.partition.growing import Node, find_rank, grow
from anonspark.partition.median_cut import MedianCut
from anonspark.prepare.encoding import Kind, QuasiIdentifier

INT64 = np.iinfo(np.int64)
ROOT = int(root_path(1, 1))


@dataclass(frozen=True)
class Rule:
    relaxed: bool = False
    balanced: bool = False
    cell: bool = False


RULES = {
    "strict published cell": Rule(cell=True),
    "strict published data": Rule(),
    "strict balanced cell": Rule(balanced=True, cell=True),
    "strict balanced data": Rule(balanced=True),
    "relaxed cell": Rule(relaxed=True, cell=True),
    "relaxed data": Rule(relaxed=True),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def describe(column: pa.Array, kind: Kind, scale: int = 0) -> QuasiIdentifier:
    """Return a quasi-identifier with the range of a column without missing values."""
    categories = tuple(sorted(set(column.to_pylist()))) if kind == "category" else ()
    draft = QuasiIdentifier("x", kind, column.type, 0, 0, scale=scale, categories=categories)
    codes = draft.encode(column)
    return QuasiIdentifier(
        "x",
        kind,
        column.type,
        int(codes.min()),
        int(codes.max()),
        scale=scale,
        categories=categories,
    )


class Records:
    """Records as the tasks see them: keys, in several partitions."""

    def __init__(
        self, columns: Sequence[np.ndarray], hashes: np.ndarray, partitions: int = 3
    ) -> None:
        arrays = [pa.array(column) for column in columns]
        self.quasi_identifiers = tuple(
            describe(array, "float" if pa.types.is_floating(array.type) else "integer")
            for array in arrays
        )
        pairs = list(zip(self.quasi_identifiers, arrays, strict=True))
        codes = [quasi_identifier.encode(array) for quasi_identifier, array in pairs]
        self.codes = np.ascontiguousarray(np.stack(codes, axis=1))
        positions = [q.positions(q.encode(array)) for q, array in pairs]
        self.positions = np.ascontiguousarray(np.stack(positions, axis=1))
        self.ranges = np.array([q.range for q in self.quasi_identifiers])
        self.hashes = hashes.astype(np.int64)
        content = np.concatenate([self.codes, self.hashes[:, None]], axis=1)
        self.keys = np.concatenate([content, occurrences(content)[:, None]], axis=1)
        self.partitions = np.array_split(self.keys, partitions)
        self.passes = 0

    def __len__(self) -> int:
        return len(self.keys)

    def root(self) -> Node:
        nothing = (None,) * len(self.quasi_identifiers)
        return Node(
            number=0,
            path=ROOT,
            rows=len(self),
            lowest=tuple(q.lowest for q in self.quasi_identifiers),
            highest=tuple(q.highest for q in self.quasi_identifiers),
            cell_low=nothing,
            cell_high=nothing,
        )

    def count(self, tree: CutTree, requests: Sequence[Request]) -> list[Histogram]:
        """Do what one job does: count each partition, sum up by request and bin."""
        self.passes += 1
        counter = Counter(tree, requests)
        parts = [counter.count(np.array_split(part, 2)) for part in self.partitions]
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        pairs = np.stack([whole["request"], whole["bin"]], axis=1)
        keys, place = np.unique(pairs, axis=0, return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        minima = np.full(len(keys), INT64.max)
        maxima = np.full(len(keys), INT64.min)
        np.add.at(counts, place.ravel(), whole["count"])
        np.minimum.at(minima, place.ravel(), whole["minimum"])
        np.maximum.at(maxima, place.ravel(), whole["maximum"])
        return counter.histograms(
            {
                "request": keys[:, 0],
                "bin": keys[:, 1],
                "count": counts,
                "minimum": minima,
                "maximum": maxima,
            }
        )

    def groups(
        self,
        rows: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        path: int,
        k: int,
        rule: Rule,
    ) -> dict[int, list[tuple[int, ...]]]:
        """Run the kernel on some records; return each group's content by its name."""
        order, starts, paths = cut_into_groups(
            self.codes[rows],
            self.positions[rows],
            self.ranges,
            self.hashes[rows],
            low,
            high,
            np.uint64(path),
            k,
            rule.relaxed,
            rule.balanced,
            rule.cell,
        )
        bounds = zip(paths, starts[:-1], starts[1:], strict=True)
        return {
            int(name): sorted(map(tuple, self.keys[rows[order[start:stop]], :-1].tolist()))
            for name, start, stop in bounds
        }

    def groups_at_once(self, k: int, rule: Rule) -> dict[int, list[tuple[int, ...]]]:
        low, high = self.positions.min(axis=0), self.positions.max(axis=0)
        return self.groups(np.arange(len(self)), low, high, ROOT, k, rule)

    def grow(self, k: int, rule: Rule, largest_leaf: int) -> tuple[CutTree, list[Node]]:
        tree = CutTree(self.keys.shape[1])
        cut_rule = MedianCut(self.quasi_identifiers, k, rule.relaxed, rule.balanced, rule.cell)
        leaves = grow(tree, self.root(), cut_rule, largest_leaf=largest_leaf, count=self.count)
        return tree, leaves

    def groups_by_leaves(
        self, k: int, rule: Rule, largest_leaf: int
    ) -> dict[int, list[tuple[int, ...]]]:
        tree, leaves = self.grow(k, rule, largest_leaf)
        leaf_of_record = tree.find_leaves(self.keys)
        assert sorted({leaf.number for leaf in leaves}) == sorted(set(leaf_of_record.tolist()))
        everything: dict[int, list[tuple[int, ...]]] = {}
        for leaf in leaves:
            rows = np.flatnonzero(leaf_of_record == leaf.number)
            assert len(rows) == leaf.rows
            assert (self.codes[rows] >= leaf.lowest).all()
            assert (self.codes[rows] <= leaf.highest).all()
            low, high = self.positions[rows].min(axis=0), self.positions[rows].max(axis=0)
            for j, quasi_identifier in enumerate(self.quasi_identifiers):
                for bounds, bound in ((low, leaf.cell_low[j]), (high, leaf.cell_high[j])):
                    if bound is not None:
                        bounds[j] = quasi_identifier.positions(np.array([bound]))[0]
            groups = self.groups(rows, low, high, leaf.path, k, rule)
            assert not everything.keys() & groups.keys()
            everything.update(groups)
        return everything


def occurrences(content: np.ndarray) -> np.ndarray:
    """Number records that are equal in everything, 0, 1, ..."""
    seen: dict[tuple[int, ...], int] = {}
    numbers = []
    for row in map(tuple, content.tolist()):
        numbers.append(seen.get(row, 0))
        seen[row] = numbers[-1] + 1
    return np.array(numbers, np.int64)


def require_same_groups(records: Records, k: int, rule: Rule, largest_leaf: int) -> None:
    expected = records.groups_at_once(k, rule)
    assert records.groups_by_leaves(k, rule, largest_leaf) == expected


# The same groups ----------------------------------------------------------------------------------


def generator() -> np.random.Generator:
    return np.random.default_rng(4)


def hashes_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(INT64.min, INT64.max, n)


def zero_inflated(n: int, share: float) -> np.ndarray:
    random = generator()
    return np.where(random.random(n) < share, 0, random.integers(1, 100_000, n))


N = 3001

RANDOM = generator()

TABLES: dict[str, list[np.ndarray]] = {
    "small integers, floats, zero-inflated": [
        RANDOM.integers(0, 10, N),
        RANDOM.normal(size=N),
        zero_inflated(N, 0.7),
    ],
    "few values": [RANDOM.integers(0, 3, N), RANDOM.integers(0, 2, N)],
    "one column, all equal": [np.zeros(N, np.int64)],
    "all columns equal": [np.full(N, -7), np.full(N, 0.5), np.full(N, INT64.max)],
    "one value but for one record": [np.where(np.arange(N) == 17, 1, 0)],
    "mostly ties, median at the maximum": [-zero_inflated(N, 0.95), zero_inflated(N, 0.99)],
    "all 64 bits": [RANDOM.integers(INT64.min, INT64.max, N), RANDOM.integers(0, 50, N)],
    "the two ends of 64 bits": [
        RANDOM.choice(np.array([INT64.min, INT64.max]), N),
        RANDOM.choice(np.array([INT64.min, INT64.min + 1, -1, 0, INT64.max]), N),
    ],
    "floats of all magnitudes": [RANDOM.normal(size=N) * 10.0 ** RANDOM.integers(-300, 300, N)],
    "extreme floats": [
        RANDOM.choice(np.array([1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1.5]), N)
    ],
    "tiny floats": [RANDOM.integers(0, 1000, N) * 5e-324],
    "five columns": [RANDOM.integers(0, 2**p, N) for p in (1, 4, 9, 20, 60)],
}


@every_rule
@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES.keys())
def test_same_groups_and_names_as_at_once(columns: list[np.ndarray], k: int, rule: Rule) -> None:
    require_same_groups(Records(columns, hashes_of(N)), k, rule, largest_leaf=150)


@every_rule
def test_few_bins_zoom_more_often(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    monkeypatch.setattr(counting, "_RESULT_ROWS", 16)
    monkeypatch.setattr(counting, "_MOST_BINS", 16)
    columns = [
        generator().integers(INT64.min, INT64.max, N),
        generator().normal(size=N),
        zero_inflated(N, 0.9),
    ]
    require_same_groups(Records(columns, hashes_of(N)), 3, rule, largest_leaf=400)


@every_rule
@pytest.mark.parametrize("partitions", [1, 7])
def test_any_number_of_partitions(partitions: int, rule: Rule) -> None:
    columns = TABLES["small integers, floats, zero-inflated"]
    require_same_groups(Records(columns, hashes_of(N), partitions), 3, rule, largest_leaf=150)


@every_rule
@pytest.mark.parametrize(
    "hashes",
    [
        pytest.param(np.zeros(N, np.int64), id="one hash"),
        pytest.param(np.arange(N) % 3 - 1, id="three hashes"),
        pytest.param(np.where(np.arange(N) % 2, INT64.min, INT64.max), id="extreme hashes"),
    ],
)
def test_records_equal_in_every_column(hashes: np.ndarray, rule: Rule) -> None:
    columns = [generator().integers(0, 2, N), np.zeros(N, np.int64)]
    require_same_groups(Records(columns, hashes), 3, rule, largest_leaf=50)


@every_rule
@pytest.mark.parametrize("k", [200, 1500, 1501, 5000])
def test_k_larger_than_a_task(k: int, rule: Rule) -> None:
    columns = TABLES["small integers, floats, zero-inflated"]
    records = Records(columns, hashes_of(N))
    require_same_groups(records, k, rule, largest_leaf=20)
    _, leaves = records.grow(k, rule, largest_leaf=20)
    assert all(leaf.rows >= min(k, N) for leaf in leaves)


integers = st.one_of(
    st.integers(0, 2), st.integers(-20, 20), st.integers(INT64.min, INT64.max), st.just(INT64.max)
)
floats = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, -5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def drawn_records(draw: st.DrawFn) -> Records:
    n = draw(st.integers(1, 80))
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            values = draw(
                st.lists(draw(st.sampled_from([floats, st.floats(0, 1)])), min_size=n, max_size=n)
            )
            columns.append(np.array(values, np.float64))
        else:
            pool = draw(st.sampled_from([integers, st.integers(0, 3), st.just(4)]))
            columns.append(np.array(draw(st.lists(pool, min_size=n, max_size=n)), np.int64))
    some_hashes = st.one_of(st.integers(-1, 1), st.integers(INT64.min, INT64.max))
    hashes = np.array(draw(st.lists(some_hashes, min_size=n, max_size=n)), np.int64)
    return Records(columns, hashes, draw(st.integers(1, 4)))


@every_rule
@settings(deadline=None, max_examples=60)
@given(records=drawn_records(), k=st.integers(1, 6), largest_leaf=st.integers(1, 30))
def test_same_groups_of_drawn_records(
    rule: Rule, records: Records, k: int, largest_leaf: int
) -> None:
    require_same_groups(records, k, rule, largest_leaf)


# Exact order statistics ---------------------------------------------------------------------------


def ranked(records: Records, key: int, rank: int) -> tuple[int, int, int]:
    """Find an order statistic of the whole table by histograms."""
    tree = CutTree(records.keys.shape[1])
    root = records.root()
    request = Request(0, key, root.lowest[key], root.highest[key], root.rows)
    (histogram,) = records.count(tree, [request])
    questions = find_rank(request, histogram, rank)
    answers = None
    while True:
        try:
            requests = next(questions) if answers is None else questions.send(answers)
        except StopIteration as finished:
            found: tuple[int, int, int] = finished.value
            return found
        answers = records.count(tree, requests)


@settings(deadline=None)
@given(records=drawn_records(), data=st.data())
def test_every_rank_is_exact(records: Records, data: st.DataObject) -> None:
    key = data.draw(st.integers(0, len(records.quasi_identifiers) - 1), label="key")
    rank = data.draw(st.integers(1, len(records)), label="rank")
    ordered = sorted(records.keys[:, key].tolist())
    value = ordered[rank - 1]
    assert ranked(records, key, rank) == (value, ordered.index(value), ordered.count(value))


def day(number: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)


def moment(number: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=number)


SOME = generator().integers(-(10**9), 10**9, 501).tolist()

TYPED_COLUMNS: dict[str, tuple[Kind, pa.Array, int]] = {
    "int8": ("integer", pa.array([v % 200 - 100 for v in SOME], pa.int8()), 0),
    "int16": ("integer", pa.array([v % 2**15 for v in SOME], pa.int16()), 0),
    "int32": ("integer", pa.array(SOME, pa.int32()), 0),
    "int64": ("integer", pa.array([v * 2**33 for v in SOME], pa.int64()), 0),
    "float32": ("float", pa.array([v / 7 for v in SOME], pa.float32()), 0),
    "float64": ("float", pa.array([v / 7 for v in SOME], pa.float64()), 0),
    "decimal": (
        "decimal",
        pa.array([Decimal(v).scaleb(-3) for v in SOME], pa.decimal128(20, 5)),
        3,
    ),
    "date": ("date", pa.array([day(v % 40_000) for v in SOME], pa.date32()), 0),
    "timestamp": ("timestamp", pa.array([moment(v * 1000) for v in SOME], pa.timestamp("us")), 0),
    "boolean": ("boolean", pa.array([v % 3 == 0 for v in SOME]), 0),
    "category": ("category", pa.array([f"{v % 37}" for v in SOME]), 0),
}


@pytest.mark.parametrize(
    ("kind", "column", "scale"), TYPED_COLUMNS.values(), ids=TYPED_COLUMNS.keys()
)
def test_the_median_is_exact_for_every_type(kind: Kind, column: pa.Array, scale: int) -> None:
    quasi_identifier = describe(column, kind, scale)
    records = Records([quasi_identifier.encode(column)], hashes_of(len(column)))
    median, _, _ = ranked(records, 0, (len(column) + 1) // 2)
    expected = sorted(column.to_pylist())[(len(column) - 1) // 2]
    assert quasi_identifier.decode(np.array([median])).to_pylist() == [expected]
    assert pc.sum(pc.less_equal(column, pa.scalar(expected, column.type))).as_py() * 2 >= len(
        column
    )


# The work -----------------------------------------------------------------------------------------


def depth_of(tree: CutTree) -> int:
    depths = [0] * len(tree)
    for node, (left, right) in enumerate(tree.children):
        if left >= 0:
            depths[left] = depths[right] = depths[node] + 1
    return max(depths)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([generator().random(40_000) for _ in range(3)], id="uniform floats"),
        pytest.param([generator().integers(0, 2**62, 40_000)], id="uniform integers"),
        pytest.param([generator().integers(0, 100, 40_000)] * 2, id="few values"),
    ],
)
@pytest.mark.parametrize("rule", [RULES["strict balanced data"], RULES["strict published cell"]])
def test_counting_passes_per_level(columns: list[np.ndarray], rule: Rule) -> None:
    records = Records(columns, hashes_of(40_000))
    tree, leaves = records.grow(5, rule, largest_leaf=1500)
    assert len(leaves) > 20
    assert records.passes <= 3 * depth_of(tree)


def test_no_pass_where_everything_fits_one_task() -> None:
    records = Records([np.arange(100)], hashes_of(100))
    tree, leaves = records.grow(5, Rule(), largest_leaf=100)
    assert (records.passes, len(tree), leaves) == (0, 1, [records.root()])


def test_leaves_come_from_left_to_right() -> None:
    records = Records([np.arange(1000)], hashes_of(1000))
    tree, leaves = records.grow(5, Rule(), largest_leaf=100)
    leaf_of_record = tree.find_leaves(records.keys)
    firsts = [int(np.flatnonzero(leaf_of_record == leaf.number)[0]) for leaf in leaves]
    assert firsts == sorted(firsts)
    assert all(leaf.rows <= 100 for leaf in leaves)


def test_a_result_stays_small_however_many_nodes_wait() -> None:
    requests = [Request(0, 0, 0, 2**62, 2**40) for _ in range(5000)]
    counter = Counter(CutTree(3), requests)
    values = generator().integers(0, 2**62, 3000)
    keys = np.ascontiguousarray(np.stack([values, values, values], axis=1))
    assert len(counter.count([keys])["bin"]) <= 5000 * 32


def test_counts_of_a_partition_without_records() -> None:
    counter = Counter(CutTree(3), [Request(0, 0, 0, 10, 5), Request(0, 1, 0, 2**40, 5)])
    for batches in ([], [np.empty((0, 3), np.int64)]):
        assert {
            name: len(values) for name, values in counter.count(batches).items()
        } == dict.fromkeys(("request", "bin", "count", "minimum", "maximum"), 0)


def test_only_records_on_the_boundary_are_counted() -> None:
    keys = np.array([[1, 5, 100], [1, 5, 200], [1, 6, 300], [2, 5, 400]])
    counter = Counter(CutTree(3), [Request(0, 2, 0, 1000, 4, Boundary((0, 1), (1, 5)))])
    (histogram,) = counter.histograms(counter.count([keys]))
    assert histogram.minima.tolist() == [100, 200]
    assert histogram.counts.tolist() == [1, 1]


# Names and tasks ----------------------------------------------------------------------------------


def test_names_of_nodes_differ() -> None:
    names = [int(root_path(seed, number)) for seed in range(5) for number in range(1, 6)]
    for _ in range(8):
        names = [int(child_path(name, side)) for name in names for side in (0, 1)]
    assert len(set(names)) == len(names)


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=60))
def test_neighbouring_leaves_share_a_task_while_they_fit(sizes: list[int]) -> None:
    leaves = [Node(number, 0, rows, (), (), (), ()) for number, rows in enumerate(sizes)]
    tasks = _pack(leaves, 100)
    assert [number for task in tasks for number in task] == list(range(len(sizes)))
    assert all(len(task) == 1 or sum(sizes[i] for i in task) <= 100 for task in tasks)


def murmur3(data: bytes, seed: int) -> int:
    """Return Murmur3 x86 32 bit of whole words, as Appleby wrote it down."""
    state = seed
    for (word,) in struct.iter_unpack("<I", data):
        mixed = word * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) & 0xFFFFFFFF
        state ^= mixed * 0x1B873593 & 0xFFFFFFFF
        state = (state << 13 | state >> 19) & 0xFFFFFFFF
        state = (state * 5 + 0xE6546B64) & 0xFFFFFFFF
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    state = (state ^ state >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return state ^ state >> 16


def test_the_hash_is_murmur3() -> None:
    assert murmur3(b"test", 0) == 0xBA6BD213  # a published test vector
    values = np.array([0, 1, -1, 42, 2**31 - 1, -(2**31)], np.int32)
    expected = [murmur3(struct.pack("<i", value), 42) for value in values.tolist()]
    assert _murmur3(values).view(np.uint32).tolist() == expected


@pytest.mark.parametrize("partitions", [1, 2, 7, 64, 1000])
def test_every_partition_gets_a_key(partitions: int) -> None:
    keys = keys_for_partitions(partitions)
    hashed = [
        struct.unpack("<i", struct.pack("<I", murmur3(struct.pack("<i", key), 42)))[0]
        for key in keys.tolist()
    ]
    assert [value % partitions for value in hashed] == list(range(partitions))
