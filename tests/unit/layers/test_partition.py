"""The distributed tree, without Spark: several partitions in memory, counted one by one.

What matters is one sentence: cutting by histograms until a node is small and finishing each leaf
with the kernel gives the very groups, and the very names, of the kernel on the whole table.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases import cases
from counted_tables import (
    INT64,
    RULES,
    AnyRule,
    DistanceRule,
    Records,
    Rule,
    describe,
    distance_rules,
    every_rule,
    median_rules,
    require_same_groups,
)
from drawn_tables import drawn_records, drawn_records_and_criteria
from hypothesis import given, note
from hypothesis import strategies as st
from references import attribute_of, k_alone

from anonspark.core.columns import RECORD_HASH, quasi_identifier_column
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.labels import Kind
from anonspark.engine.spark.table import _murmur3, keys_for_partitions
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.paths import child_path, priority, root_path
from anonspark.kernels.vantage_points import distance_key
from anonspark.layers.partition import counting
from anonspark.layers.partition.counting import (
    Answer,
    Counter,
    Draw,
    Drawn,
    Histogram,
    Question,
    Request,
    UnitCount,
)
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.cutting import find_rank, find_ranks
from anonspark.layers.partition.distribution import _pack
from anonspark.layers.partition.node import Asking, Node
from anonspark.layers.partition.packing import PackedKeys
from anonspark.staged.keys import key_matrix, normalized_positions
from anonspark.staged.records import Packer

T = TypeVar("T")

# The same groups ----------------------------------------------------------------------------------


def generator() -> np.random.Generator:
    return np.random.default_rng(4)


def hashes_of(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(INT64.min, INT64.max, n)


def zero_inflated(n: int, share: float) -> np.ndarray:
    random = generator()
    return np.where(random.random(n) < share, 0, random.integers(1, 100_000, n))


N = 1501

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
@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES.keys())
def test_same_groups_and_names_as_at_once(columns: list[np.ndarray], rule: AnyRule) -> None:
    # Each k occurs with each table and with each rule.
    tables = [id(own) for own in TABLES.values()]
    k = (1, 3, 40)[(tables.index(id(columns)) + list(RULES.values()).index(rule)) % 3]
    require_same_groups(Records(columns, hashes_of(N)), k_alone(k), rule, largest_leaf=150)


@every_rule
def test_few_bins_zoom_more_often(monkeypatch: pytest.MonkeyPatch, rule: AnyRule) -> None:
    monkeypatch.setattr(counting, "_RESULT_ROWS", 16)
    monkeypatch.setattr(counting, "_MOST_BINS", 16)
    columns = [
        generator().integers(INT64.min, INT64.max, N),
        generator().normal(size=N),
        zero_inflated(N, 0.9),
    ]
    require_same_groups(Records(columns, hashes_of(N)), k_alone(3), rule, largest_leaf=400)


@every_rule
@pytest.mark.parametrize("partitions", [1, 7])
def test_any_number_of_partitions(partitions: int, rule: AnyRule) -> None:
    columns = TABLES["small integers, floats, zero-inflated"]
    records = Records(columns, hashes_of(N), partitions)
    require_same_groups(records, k_alone(3), rule, largest_leaf=150)


@median_rules
@pytest.mark.parametrize(
    "hashes",
    [
        pytest.param(np.zeros(N, np.int64), id="one hash"),
        pytest.param(np.arange(N) % 3 - 1, id="three hashes"),
        pytest.param(np.where(np.arange(N) % 2, INT64.min, INT64.max), id="extreme hashes"),
    ],
)
def test_records_equal_in_every_column(hashes: np.ndarray, rule: AnyRule) -> None:
    columns = [generator().integers(0, 2, N), np.zeros(N, np.int64)]
    require_same_groups(Records(columns, hashes), k_alone(3), rule, largest_leaf=50)


@every_rule
@pytest.mark.parametrize("contents", [1, 2, 7, 40, 250])
def test_few_contents_many_times(contents: int, rule: AnyRule) -> None:
    random = np.random.default_rng(contents)
    points = random.integers(0, 30, (contents, 2))
    drawn = points[random.integers(0, contents, 1001)]
    records = Records([drawn[:, 0], drawn[:, 1]])
    require_same_groups(records, k_alone(3), rule, largest_leaf=50)
    limits = [question.limit for question in records.questions if isinstance(question, Draw)]
    if isinstance(rule, DistanceRule) and len(np.unique(points, axis=0)) < 100:
        # Not even all contents are enough; the first limit asks for too few.
        assert min(limits) < max(limits) == 2**64 - 1


@every_rule
@pytest.mark.parametrize("k", [100, 750, 751, 5000])
def test_k_larger_than_a_task(k: int, rule: AnyRule) -> None:
    columns = TABLES["small integers, floats, zero-inflated"]
    records = Records(columns, hashes_of(N))
    require_same_groups(records, k_alone(k), rule, largest_leaf=20)
    _, leaves = records.grow(k_alone(k), rule, largest_leaf=20)
    assert all(leaf.rows >= min(k, N) for leaf in leaves)


# The same groups under criteria beyond k ----------------------------------------------------------


@given(drawn=drawn_records_and_criteria(), largest_leaf=st.integers(1, 30), alone=st.booleans())
def test_same_groups_of_drawn_records_under_criteria(
    drawn: tuple[Records, Criteria], largest_leaf: int, alone: bool
) -> None:
    records, criteria = drawn
    wanted = replace(criteria, criteria=(), sensitive=()) if alone else criteria
    for name, rule in RULES.items():
        note(name)
        require_same_groups(records, wanted, rule, largest_leaf)


def test_ties_after_an_attribute_that_violates() -> None:
    # In a node of four the first attribute is tried, and looked at, before the second one is cut.
    columns = [
        np.array([3, 4, 8, 5, 1, 1, 3, 1]),
        np.array([0, 0, 2, 6, 1, 0, 1, 0]),
        np.array([0, 6, 1, 9, 3, 7, 1, 1]),
    ]
    values = np.array([0, 2, 0, 2, 1, 1, 1, 2])[:, None]
    criteria = Criteria(2, (Criterion("s", "distinct", 2),), (attribute_of("s", [2, 3, 3]),))
    require_same_groups(Records(columns, values=values), criteria, RULES["relaxed cell"], 1)


@every_rule
def test_missing_numbers_and_weights(rule: AnyRule) -> None:
    random = generator()
    missing = random.random((2, N)) < 0.1
    first = np.where(missing[0], np.nan, random.integers(0, 1000, N))
    second = np.where(missing[1], np.nan, random.normal(size=N))
    for weights in ([1.0, 1.0], [1000.0, 0.5], [1000.0, 1000.0]):
        records = Records([first, second], hashes_of(N), weights=weights)
        assert all(q.has_missing for q in records.quasi_identifiers)
        require_same_groups(records, k_alone(3), rule, largest_leaf=150)


@every_rule
def test_the_smallest_range_of_all_and_a_weight(rule: AnyRule) -> None:
    records = Records([np.array([0.0, 5e-324] * 20)], hashes_of(40), weights=[7.0])
    require_same_groups(records, k_alone(3), rule, largest_leaf=20)


def correlated(n: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return quasi-identifiers, and two sensitive attributes that go with them."""
    random = generator()
    age = random.integers(17, 91, n)
    columns = [age, zero_inflated(n, 0.6), random.integers(0, 4, n), random.normal(size=n)]
    disease = np.minimum(age // 15 - 1 + random.integers(0, 3, n), 5)
    income = np.where(random.random(n) < 0.85, 0, 1 + (columns[2] + random.integers(0, 2, n)) % 4)
    return columns, np.ascontiguousarray(np.stack([disease, 6 + income], axis=1))


HIERARCHY = ([6, 6, 7, 7, 7, 8, 9, 9, 9, -1], [0, 0, 0, 0, 0, 0, 1, 1, 1, 2])

SEVERAL_CRITERIA: dict[str, tuple[Criterion, ...]] = {
    "distinct": (Criterion("disease", "distinct", 4),),
    "entropy": (Criterion("disease", "entropy", 3.0),),
    "recursive": (Criterion("disease", "recursive", 3, 1.0),),
    "alpha": (Criterion("disease", "alpha", 0.4),),
    "equal distance": (Criterion("disease", "equal distance", 0.25),),
    "ordered distance": (Criterion("disease", "ordered distance", 0.12),),
    "hierarchical distance": (Criterion("disease", "hierarchical distance", 0.15),),
    "beta": (Criterion("disease", "beta", 1.0),),
    "one attribute of two": (Criterion("income", "distinct", 2),),
    "two attributes": (
        Criterion("disease", "ordered distance", 0.25),
        Criterion("income", "distinct", 2),
        Criterion("income", "equal distance", 0.3),
    ),
    "cannot be met": (Criterion("income", "alpha", 0.1),),
}


@every_rule
@pytest.mark.parametrize("wanted", SEVERAL_CRITERIA.values(), ids=SEVERAL_CRITERIA.keys())
def test_same_groups_and_names_under_criteria(wanted: tuple[Criterion, ...], rule: AnyRule) -> None:
    n = 1201
    columns, values = correlated(n)
    sensitive = (
        attribute_of("disease", np.bincount(values[:, 0], minlength=6).tolist(), *HIERARCHY),
        attribute_of("income", np.bincount(values[:, 1] - 6, minlength=5).tolist()),
    )
    records = Records(columns, values=values, weights=[1.0, 1.0, 3.0, 0.5])
    groups = require_same_groups(records, Criteria(3, wanted, sensitive), rule, largest_leaf=60)
    if wanted == SEVERAL_CRITERIA["cannot be met"]:
        assert groups == 1
    else:
        assert 1 < groups < len(np.unique(records.names_at_once(k_alone(3), rule)))


@every_rule
def test_only_the_attributes_of_criteria_are_counted(rule: AnyRule) -> None:
    # Numbers of the second attribute, whose values begin at 0 then.
    columns, values = correlated(1201)
    income = np.ascontiguousarray(values[:, 1:] - 6)
    attribute = attribute_of("income", np.bincount(income[:, 0], minlength=5).tolist())
    criteria = Criteria(3, (Criterion("income", "entropy", 1.4),), (attribute,))
    groups = require_same_groups(Records(columns, values=income), criteria, rule, largest_leaf=60)
    assert groups > 1


ZERO_INFLATED = Criteria(
    5,
    (Criterion("s", "entropy", 1.6), Criterion("s", "equal distance", 0.3)),
    (attribute_of("s", [2001, 1000]),),
)


def of_rare_values_on_one_side(n: int) -> Records:
    """Return records whose rarer sensitive value goes with small values of a column of zeros."""
    random = generator()
    column = np.where(random.random(n) < 0.7, 0, random.integers(-(10**6), 10**6, n))
    by_column = np.argsort(column + random.normal(0, 10**6, n), kind="stable")
    values = np.zeros((n, 1), np.int64)
    values[by_column[: n // 3], 0] = 1
    return Records([column, random.integers(0, 3, n)], values=values)


@pytest.mark.parametrize("bins", [16, 2**12])
def test_boundaries_further_out(monkeypatch: pytest.MonkeyPatch, bins: int) -> None:
    monkeypatch.setattr(counting, "_MOST_BINS", bins)
    records = of_rare_values_on_one_side(3003)
    groups = {
        (rule.balanced, rule.cell): require_same_groups(records, ZERO_INFLATED, rule, 60)
        for rule in (Rule(), Rule(balanced=True), Rule(balanced=True, cell=True))
    }
    assert groups[True, False] > groups[False, False]
    # Each of many boundaries was counted: the stretches between them, in one pass.
    assert sum(isinstance(one, Request) and one.where is not None for one in records.questions) > 99


def test_passes_for_boundaries_further_out() -> None:
    # Nothing can be cut: one record alone has the second value.
    columns = [generator().integers(0, 2**40, 20_000) for _ in range(3)]
    values = (np.arange(20_000) == 9_000).astype(np.int64)[:, None]
    attribute = attribute_of("s", [19_999, 1])
    criteria = Criteria(5, (Criterion("s", "distinct", 2),), (attribute,))
    records = Records(columns, values=values)
    _, leaves = records.grow(criteria, Rule(balanced=True), largest_leaf=1000)
    assert len(leaves) == 1
    # One over everything. For each attribute up to two that zoom in on the median and one for
    # either boundary; then two that zoom in on all ranks and one that counts values.
    assert records.passes <= 1 + 3 * (2 + 2 + 2 + 1)


# Exact order statistics ---------------------------------------------------------------------------


def answered(records: Records, questions: Asking[T]) -> T:
    """Answer questions about the root of a tree until they come to their result."""
    tree = CutTree(records.quasi_identifiers)
    answers = None
    while True:
        try:
            requests = next(questions) if answers is None else questions.send(answers)
        except StopIteration as finished:
            found: T = finished.value
            return found
        answers = records.count(tree, requests)


def histogram_of(records: Records, key: int) -> tuple[Request, Histogram]:
    """Return the first request for a key of the whole table, and its answer."""
    root = records.root()
    request = Request(0, key, root.lowest[key], root.highest[key], root.rows)
    (histogram,) = records.count(CutTree(records.quasi_identifiers), [request])
    assert isinstance(histogram, Histogram)
    return request, histogram


def ranked(records: Records, key: int, rank: int) -> tuple[int, int, int]:
    """Find an order statistic of the whole table by histograms."""
    return answered(records, find_rank(*histogram_of(records, key), rank))


@given(records=drawn_records(), data=st.data())
def test_every_rank_is_exact(records: Records, data: st.DataObject) -> None:
    key = data.draw(st.integers(0, len(records.quasi_identifiers) - 1), label="key")
    rank = data.draw(st.integers(1, len(records)), label="rank")
    ordered = sorted(records.keys[:, key].tolist())
    value = ordered[rank - 1]
    assert ranked(records, key, rank) == (value, ordered.index(value), ordered.count(value))
    ranks = data.draw(st.sets(st.integers(1, len(records))), label="ranks")
    found = answered(records, find_ranks(*histogram_of(records, key), sorted(ranks)))
    values = sorted({ordered[rank - 1] for rank in ranks})
    assert found == [(one, ordered.index(one), ordered.count(one)) for one in values]


def test_many_ranks_take_as_many_passes_as_one() -> None:
    records = Records([generator().integers(0, 2**50, 40_000)], hashes_of(40_000))
    passes = []
    for ranks in ([20_000], list(range(300, 40_000, 300))):
        first = histogram_of(records, 0)
        records.passes = 0
        answered(records, find_ranks(*first, ranks))
        passes.append(records.passes)
    assert passes[0] <= passes[1] <= passes[0] + 1


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
def test_counting_passes_per_level(columns: list[np.ndarray], rule: AnyRule) -> None:
    records = Records(columns, hashes_of(40_000))
    tree, leaves = records.grow(k_alone(5), rule, largest_leaf=1500)
    assert len(leaves) > 20
    assert records.passes <= 3 * depth_of(tree)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([generator().random(40_000) for _ in range(3)], id="uniform floats"),
        pytest.param([generator().integers(0, 100, 40_000)] * 2, id="few values"),
    ],
)
@distance_rules
def test_counting_passes_per_level_of_canon(columns: list[np.ndarray], rule: AnyRule) -> None:
    records = Records(columns, hashes_of(40_000))
    tree, leaves = records.grow(k_alone(5), rule, largest_leaf=1500)
    assert len(leaves) == 32
    # One that draws, two or three for the distance; where distances are tied, more.
    assert records.passes <= (4 if len(columns) == 3 else 9) * depth_of(tree)


def test_no_pass_where_everything_fits_one_task() -> None:
    records = Records([np.arange(100)], hashes_of(100))
    tree, leaves = records.grow(k_alone(5), Rule(), largest_leaf=100)
    assert (records.passes, len(tree), leaves) == (0, 1, [records.root()])


def test_leaves_come_from_left_to_right() -> None:
    records = Records([np.arange(1000)], hashes_of(1000))
    tree, leaves = records.grow(k_alone(5), Rule(), largest_leaf=100)
    leaf_of_record = tree.descent().find_leaves(records.keys)
    firsts = [int(np.flatnonzero(leaf_of_record == leaf.number)[0]) for leaf in leaves]
    assert firsts == sorted(firsts)
    assert all(leaf.rows <= 100 for leaf in leaves)


def test_a_result_stays_small_however_many_nodes_wait() -> None:
    requests = [Request(0, 0, 0, 2**62, 2**40) for _ in range(5000)]
    counter = Counter(tree_over(3), requests)
    values = generator().integers(0, 2**62, 3000)
    keys = np.ascontiguousarray(np.stack([values, values, values], axis=1))
    assert len(counter.count([keys])["bin"]) <= 5000 * 32


def test_counts_of_a_partition_without_records() -> None:
    questions: list[Question] = [
        Request(0, 0, 0, 10, 5),
        Request(0, 1, 0, 2**40, 5),
        Draw(0, 7, 2**64 - 1),
    ]
    counter = Counter(tree_over(2), questions)
    for batches in ([], [np.empty((0, 4), np.int64)]):
        assert {
            name: len(values) for name, values in counter.count(batches).items()
        } == dict.fromkeys(("request", "bin", "count", "minimum", "maximum", "codes"), 0)


def tree_over(d: int) -> CutTree:
    """Return a tree of one leaf over integers from 0 to 1000."""
    quasi_identifier = describe(pa.array([0, 1000]), "integer")
    return CutTree((quasi_identifier,) * d)


def answers_to(
    questions: Sequence[Question], keys: np.ndarray, tree: CutTree | None = None
) -> list[Answer]:
    counter = Counter(tree or tree_over(2), questions)
    result = counter.count([keys])
    codes = np.empty(len(result["codes"]), object)
    codes[:] = result["codes"]
    return counter.answers({**result, "codes": codes})


KEYS = np.array([[1, 5, 100, 0], [1, 5, 200, 0], [1, 6, 300, 0], [2, 5, 400, 0]])


def counted(request: Request, keys: np.ndarray = KEYS) -> dict[int, int]:
    """Return the counts of values that have a bin of their own."""
    (histogram,) = answers_to([request], keys)
    assert isinstance(histogram, Histogram)
    assert histogram.minima.tolist() == histogram.maxima.tolist()
    return dict(zip(histogram.minima.tolist(), histogram.counts.tolist(), strict=True))


def test_only_records_on_the_boundary_are_counted() -> None:
    for equal_goes_left in (True, False):
        boundary = Boundary((0, 1), (1, 5), equal_goes_left)
        assert counted(Request(0, 2, 0, 1000, 4, boundary)) == {100: 1, 200: 1}


@cases(__file__, "keys", "thresholds", "equal_goes_left", "expected")
def test_only_records_that_go_left_are_counted(
    keys: list[int], thresholds: list[int], equal_goes_left: bool, expected: dict[int, int]
) -> None:
    boundary = Boundary(tuple(keys), tuple(thresholds), equal_goes_left)
    assert counted(Request(0, 2, 0, 1000, 4, boundary, goes_left=True)) == expected
    # And the tree sends the very same ones to the left.
    tree = tree_over(2)
    left, _ = tree.cut(0, boundary)
    assert KEYS[tree.descent().find_leaves(KEYS) == left, 2].tolist() == list(expected)


@pytest.mark.parametrize("rows", [1, 10**12])
def test_only_records_of_an_interval_are_counted(rows: int) -> None:
    request = Request(0, 2, 0, 1000, rows)
    assert counted(replace(request, where=(1, 5, 5))) == {100: 1, 200: 1, 400: 1}
    assert counted(replace(request, where=(1, 6, 9))) == {300: 1}
    assert counted(replace(request, where=(0, -3, 0))) == {}
    # Beside a boundary both hold, as do the bounds of what is counted itself.
    boundary = Boundary((0,), (1,))
    assert counted(replace(request, where=(1, 5, 5), boundary=boundary)) == {100: 1, 200: 1}
    assert counted(Request(0, 2, 150, 1000, rows, where=(1, 5, 5))) == {200: 1, 400: 1}


@pytest.mark.parametrize("rows", [1, 10**12])
def test_every_value_has_a_bin_of_its_own(rows: int) -> None:
    # More values than a histogram has bins, and counted whatever the number of records.
    random = generator()
    values = random.integers(100, 30_100, 5000)
    keys = np.zeros((5000, 5), np.int64)
    keys[:, 4] = values
    unique, counts = np.unique(values, return_counts=True)
    expected = dict(zip(unique.tolist(), counts.tolist(), strict=True))
    assert counted(Request(0, 4, 100, 30_099, rows, every_value=True), keys) == expected


def test_distances_are_counted_like_keys() -> None:
    keys = np.array([[0, 0, 1, 0], [300, 400, 2, 0], [300, 400, 3, 0], [1000, 0, 4, 0]])
    tree = tree_over(2)
    point = (0.0, 0.0)
    normalized = normalized_positions(keys, tree.quasi_identifiers)
    distances = [distance_key(normalized, record, np.array([point]), 0) for record in range(4)]
    whole = Boundary((), (), vantage_point=point)
    assert counted(Request(0, DISTANCE, 0, 2**62, 4, whole), keys) == {
        distances[0]: 1,
        distances[1]: 2,
        distances[3]: 1,
    }
    near = Boundary((DISTANCE,), (distances[1],), vantage_point=point)
    assert counted(Request(0, 2, 0, 9, 4, near), keys) == {2: 1, 3: 1}
    assert counted(Request(0, 2, 0, 9, 4, near, goes_left=True), keys) == {1: 1, 2: 1, 3: 1}
    left, right = tree.cut(0, near)
    assert tree.descent().find_leaves(keys).tolist() == [left, left, left, right]


@given(
    hashes=st.lists(st.one_of(st.integers(-2, 2), st.integers(INT64.min, INT64.max)), max_size=30),
    salt=st.integers(0, 2**64 - 1),
    share=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)
def test_draws_are_the_smallest_priorities(hashes: list[int], salt: int, share: float) -> None:
    # Two leaves; the first key tells them, and the contents, apart.
    keys = np.array([[own % 7, own % 5, own, 0] for own in hashes], np.int64).reshape(-1, 4)
    tree = tree_over(2)
    left, right = tree.cut(0, Boundary((0,), (3,)))
    limit = min(int(share * 2**64), 2**64 - 1)
    questions: list[Question] = [
        Draw(left, salt, limit),
        Request(left, 0, 0, 10, 30),
        Draw(right, salt, limit),
        Draw(right, salt ^ 1, 2**64 - 1),
    ]
    answers = answers_to(questions, keys, tree)
    for question, answer in zip(questions, answers, strict=True):
        own = [h for h in set(hashes) if (h % 7 <= 3) == (question.node == left)]
        if isinstance(question, Request):
            assert isinstance(answer, Histogram)
            assert answer.counts.sum() == sum(h % 7 <= 3 for h in hashes)
            continue
        assert isinstance(answer, Drawn)
        priorities = {int(priority(h, np.uint64(question.salt))): h for h in own}
        expected = [priorities[p] for p in sorted(priorities) if p <= question.limit]
        assert answer.codes.tolist() == [[h % 7, h % 5] for h in expected]


# Names and tasks ----------------------------------------------------------------------------------


@given(
    records=st.lists(st.tuples(st.integers(0, 9), st.integers(-4, 4)), min_size=1, max_size=60),
    most=st.integers(1, 8),
    tasks=st.integers(1, 4),
    goes_left=st.booleans(),
)
def test_people_on_a_side(
    records: list[tuple[int, int]], most: int, tasks: int, goes_left: bool
) -> None:
    """However records are divided, there are so many people on a side as anybody can count."""
    own = np.array(records, np.int64)
    keys = np.zeros((len(own), 5), np.int64)
    keys[:, 0], keys[:, 4] = own[:, 0], own[:, 1]
    boundary = Boundary((0,), (4,), equal_goes_left=False)
    questions: list[Question] = [
        Request(0, 0, 0, 9, len(own)),
        Draw(0, 1, 0),
        UnitCount(0, boundary, goes_left, most),
        UnitCount(0, boundary, not goes_left, most),
    ]
    counter = Counter(tree_over(2), questions)
    parts = [counter.count([keys[task::tasks].copy()]) for task in range(tasks)]
    # As the engine adds them up: one row for each question and bin.
    rows = sorted(
        {
            (question, place)
            for part in parts
            for question, place in zip(part["request"], part["bin"], strict=True)
            if question >= 2
        }
    )
    none = np.zeros(len(rows), np.int64)
    codes = np.empty(len(rows), object)
    columns = dict(zip(("request", "bin"), np.array(rows, np.int64).reshape(-1, 2).T, strict=True))
    figures = dict.fromkeys(("count", "minimum", "maximum"), none)
    found = counter.answers({**columns, **figures, "codes": codes})[2:]
    sides = (own[:, 0] < 4) == goes_left
    assert found == [min(len(set(own[side, 1].tolist())), most) for side in (sides, ~sides)]


def test_names_of_nodes_differ() -> None:
    names = [int(root_path(seed, number)) for seed in range(5) for number in range(1, 6)]
    for _ in range(8):
        names = [int(child_path(name, side)) for name in names for side in (0, 1)]
    assert len(set(names)) == len(names)


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


WHOLE_NUMBERS = st.integers(-(2**63), 2**63 - 1)
RANGES = st.sampled_from([(-100, 100), (-(2**15), 2**15 - 1), (0, 2**31), (-(2**63), 2**63 - 1)])


def table_of(columns: list[list[int]], hashes: list[int]) -> pa.Table:
    named = {quasi_identifier_column(place): column for place, column in enumerate(columns)}
    named[RECORD_HASH] = hashes
    return pa.table({name: pa.array(column, pa.int64()) for name, column in named.items()})


def quasi_identifiers(d: int) -> tuple[QuasiIdentifier, ...]:
    return tuple(
        QuasiIdentifier(f"x{place}", "integer", pa.int64(), -(2**63), 2**63 - 1)
        for place in range(d)
    )


@given(st.data(), st.integers(1, 4), st.booleans())
def test_packed_keys_come_out_as_they_were(data: st.DataObject, d: int, with_hashes: bool) -> None:
    tables = []
    for rows in data.draw(st.lists(st.integers(1, 6), max_size=3)):
        columns = [
            data.draw(st.lists(st.integers(*data.draw(RANGES)), min_size=rows, max_size=rows))
            for _ in range(d)
        ]
        hashes = data.draw(st.lists(WHOLE_NUMBERS, min_size=rows, max_size=rows))
        tables.append(table_of(columns, hashes))
    attributes, criteria = quasi_identifiers(d), k_alone(2)
    packer = Packer()
    packed = [pa.RecordBatch.from_pydict(packer.pack(table)) for table in tables]
    own = PackedKeys(attributes, criteria, with_hashes)
    packed = list(own.pack(iter(packed)))
    # Spark may put the rows of several batches into one, or none.
    together = pa.Table.from_batches(packed).combine_chunks().to_batches() if packed else []
    first = np.cumsum([0, *(table.num_rows for table in tables)]).tolist()
    expected = [
        key_matrix(table, attributes, criteria, number)
        for table, number in zip(tables, first, strict=False)
    ]
    if not with_hashes:
        for keys in expected:
            keys[:, d] = 0
    for given_batches in (packed, together):
        found = list(own.unpack(iter(given_batches)))
        assert [keys.tolist() for keys in found] == [keys.tolist() for keys in expected]


@pytest.mark.parametrize(("largest", "size"), [(127, 1), (128, 2), (2**15, 4), (2**31, 8)])
def test_a_key_takes_no_more_bytes_than_it_needs(largest: int, size: int) -> None:
    batch = pa.RecordBatch.from_pydict(
        Packer().pack(table_of([[largest] * 1_000], [2**62] * 1_000))
    )
    for with_hashes in (False, True):
        own = PackedKeys(quasi_identifiers(1), k_alone(2), with_hashes)
        (packed,) = own.pack(iter([batch]))
        assert len(packed.column("keys")[0].as_py()) == 1_000 * (size + 8 * with_hashes)
