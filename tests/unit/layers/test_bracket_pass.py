"""One pass over the records: the same tree from any sample, and the work that it saves.

What is counted and handed back of a predicted tree answers the questions of its nodes exactly, or
not at all; then today's passes do. So a sample that leads astray costs passes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from counted_tables import (
    DISTANCE_RULES,
    INT64,
    RULES,
    AnyRule,
    Records,
    Rule,
    distance_rules,
    every_rule,
    median_rules,
)
from drawn_numbers import order
from drawn_tables import drawn_records_and_criteria
from hypothesis import given, note, settings
from hypothesis import strategies as st
from references import attribute_of, k_alone

from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.kernels.brackets import find_outermost, follow_brackets
from anonspark.layers.partition import distance_cut, predicting
from anonspark.layers.partition.brackets import Bracket, bracket_around, goes_left
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.node import Node
from anonspark.layers.partition.packing import PackedKeys, Sampling

N = 1501


@pytest.fixture(autouse=True)
def _samples_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (predicting, distance_cut):
        monkeypatch.setattr(module, "FEWEST_SAMPLED", 1)


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


# The same tree ------------------------------------------------------------------------------------

Shape = tuple[dict[str, Boundary | None], list[Node]]


def shape_of(tree: CutTree, leaves: list[Node]) -> Shape:
    """Return the boundaries by their way from the root, and the leaves, but for their numbers."""
    boundaries, stack = {}, [(0, "")]
    while stack:
        node, way = stack.pop()
        boundaries[way] = tree.boundaries[node]
        if tree.children[node][0] >= 0:
            stack += zip(tree.children[node], (f"{way}0", f"{way}1"), strict=True)
    return boundaries, [replace(leaf, number=0) for leaf in leaves]


def require_same_tree(
    records: Records, criteria: Criteria, rule: AnyRule, largest_leaf: int, *samples: np.ndarray
) -> None:
    """Require the tree of today's passes, and leave counted what the last sample's tree needed."""
    expected = shape_of(*records.grow(criteria, rule, largest_leaf))
    for sample in samples:
        records.passes = 0
        tree, leaves = records.grow(criteria, rule, largest_leaf, sample)
        assert shape_of(tree, leaves) == expected
        leaf_of_record = tree.descent().find_leaves(records.keys)
        counts = np.bincount(leaf_of_record, minlength=len(tree))
        assert [counts[leaf.number] for leaf in leaves] == [leaf.rows for leaf in leaves]


TABLES: dict[str, list[np.ndarray]] = {
    "small integers, floats, zero-inflated": [
        generator().integers(0, 10, N),
        generator().normal(size=N),
        np.where(generator().random(N) < 0.7, 0, generator().integers(1, 10**5, N)),
    ],
    "mostly ties at both ends": [
        np.where(generator().random(N) < 0.48, 0, generator().integers(1, 100, N)),
        -np.where(generator().random(N) < 0.55, 0, generator().integers(1, 100, N)),
    ],
    "equal blocks": [np.repeat([3, 3, 5, 8], [750, 250, 250, 251]), np.arange(N) // 500],
    "all equal": [np.full(N, 7), np.full(N, -1.5)],
    "the two ends of 64 bits": [
        generator().choice(np.array([INT64.min, INT64.min + 1, 0, INT64.max]), N),
        generator().integers(INT64.min, INT64.max, N),
    ],
    "heavy tails": [np.exp(4 * generator().normal(size=N)), generator().normal(size=N)],
}

SAMPLES: list[Callable[[Records], np.ndarray]] = [
    # No record, one, ten, a tenth, all.
    lambda _: np.arange(0),
    lambda _: np.array([N // 3]),
    lambda _: np.arange(0, N, 151),
    lambda _: np.arange(0, N, 10),
    lambda _: np.arange(N),
    # And those of one corner.
    lambda records: np.lexsort(records.codes.T)[:200],
]


@every_rule
@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES.keys())
def test_any_sample_gives_the_same_tree(columns: list[np.ndarray], rule: AnyRule) -> None:
    # Each sample occurs with each table and with each rule.
    tables = [id(own) for own in TABLES.values()]
    half = (tables.index(id(columns)) + list(RULES.values()).index(rule)) % 2
    records = Records(columns, generator().integers(INT64.min, INT64.max, N))
    samples = [draw(records) for draw in SAMPLES[half::2]]
    require_same_tree(records, k_alone(3), rule, 200, *samples)


@settings(max_examples=25)
@given(
    drawn=drawn_records_and_criteria(),
    alone=st.booleans(),
    largest_leaf=st.integers(1, 30),
    data=st.data(),
)
def test_drawn_records_and_samples(
    drawn: tuple[Records, Criteria], alone: bool, largest_leaf: int, data: st.DataObject
) -> None:
    records, criteria = drawn
    criteria = replace(criteria, criteria=(), sensitive=()) if alone else criteria
    sample = order(data.draw, len(records))[: data.draw(st.integers(0, 40))]
    for name, rule in RULES.items():
        note(name)
        require_same_tree(records, criteria, rule, largest_leaf, sample)


@every_rule
def test_missing_numbers_weights_and_hashes_that_tie(rule: AnyRule) -> None:
    random = generator()
    columns = [np.where(random.random(N) < 0.1, np.nan, random.integers(0, 9, N)) for _ in range(2)]
    records = Records(columns, np.arange(N) % 3 - 1, weights=[5.0, 0.5])
    require_same_tree(records, k_alone(3), rule, 60, np.arange(0, N, 3))


# The work -----------------------------------------------------------------------------------------

ROWS = 40_000


def uniform(d: int = 3, rows: int = ROWS) -> Records:
    random = generator()
    return Records([random.random(rows) for _ in range(d)], random.integers(0, 2**62, rows))


def a_fifth(rows: int = ROWS) -> np.ndarray:
    return np.sort(generator().permutation(rows)[: rows // 5])


@median_rules
def test_one_pass_where_the_sample_is_right(rule: AnyRule) -> None:
    random = generator()
    records = Records([random.permutation(ROWS) for _ in range(3)], weights=[1.0, 1.4, 2.1])
    require_same_tree(records, k_alone(5), rule, 3000, a_fifth())
    assert (records.passes, len(records.forests)) == (0, 1)
    assert 0 < records.handed_back < ROWS / 3


@distance_rules
def test_one_pass_a_level_where_the_sample_is_right(rule: AnyRule) -> None:
    random = generator()
    records = Records([random.random(ROWS) for _ in range(3)], weights=[1.0, 1.4, 2.1])
    require_same_tree(records, k_alone(5), rule, 3000, a_fifth())
    # The first draw is one of the cluster's. Four levels of nodes are cut.
    assert (records.passes, len(records.forests)) == (1, 4)
    assert 0 < records.handed_back < ROWS


@distance_rules
def test_draws_of_few_contents_are_known_of_either_side(rule: AnyRule) -> None:
    # Cuts run between equal records: of most contents there are some in several nodes.
    random = generator()
    rows = 10_000
    records = Records([random.integers(0, 20, rows), random.integers(0, 20, rows)])
    require_same_tree(records, k_alone(5), rule, 750, a_fifth(rows))
    require_same_tree(records, k_alone(5), rule, 50, a_fifth(rows))


@distance_rules
def test_sensitive_values_are_counted_along_with_distances(rule: AnyRule) -> None:
    random = generator()
    values = random.integers(0, 4, (ROWS, 1))
    attribute = attribute_of("s", np.bincount(values[:, 0]).tolist())
    criteria = Criteria(5, (Criterion("s", "entropy", 3.0),), (attribute,))
    records = Records([random.random(ROWS), random.random(ROWS)], values=values)
    require_same_tree(records, criteria, rule, 6000, a_fifth())
    assert (records.passes, len(records.forests)) == (1, 3)


def test_a_long_run_is_not_handed_back() -> None:
    column = np.where(generator().random(ROWS) < 0.7, 0, generator().integers(1, 10**6, ROWS))
    published, balanced = RULES["strict published cell"], RULES["strict balanced data"]
    for own, rule in ((column, published), (column, balanced), (-column, balanced)):
        records = Records([own, np.zeros(ROWS, np.int64)])
        require_same_tree(records, k_alone(5), rule, 15_000, a_fifth())
        # The run itself is known to be equal in everything, so it is a leaf.
        assert (records.passes, len(records.forests), records.handed_back) == (0, 1, 0)


def test_a_median_outside_of_its_bracket_is_looked_for() -> None:
    records = uniform(d=1)
    lowest = np.argsort(records.codes[:, 0])[:2000]
    require_same_tree(records, k_alone(5), Rule(), 3000, lowest)
    assert records.passes > 0
    assert records.forests


def test_another_attribute_than_predicted_is_looked_for() -> None:
    # One record, which is not in the sample, makes the second attribute the widest.
    random = generator()
    columns = [random.random(ROWS), random.random(ROWS) / 2]
    columns[1][17] = 3.0
    records = Records(columns, weights=[2.0, 3.0])
    sample = np.setdiff1d(a_fifth(), [17])
    require_same_tree(records, k_alone(5), Rule(), 12_000, sample)
    assert records.passes > 0


def test_what_criteria_forbid_is_asked_of_the_cluster() -> None:
    # The sample lacks the rare value, without which a side may not be.
    random = generator()
    columns = [random.random(ROWS) for _ in range(2)]
    by_first = np.argsort(columns[0])
    values = np.zeros((ROWS, 1), np.int64)
    values[by_first[: ROWS // 2 - 100], 0] = np.arange(ROWS // 2 - 100) % 2
    criteria = Criteria(
        5,
        (Criterion("s", "distinct", 2),),
        (attribute_of("s", np.bincount(values[:, 0]).tolist()),),
    )
    for name in ("strict balanced data", "relaxed cell", *DISTANCE_RULES):
        records = Records(columns, values=values, weights=[5.0, 1.0])
        require_same_tree(records, criteria, RULES[name], 3000, a_fifth())
        assert records.passes > 0
        assert records.forests


def test_sensitive_values_are_counted_along() -> None:
    random = generator()
    values = random.integers(0, 4, (ROWS, 1))
    attribute = attribute_of("s", np.bincount(values[:, 0]).tolist())
    criteria = Criteria(5, (Criterion("s", "entropy", 3.0),), (attribute,))
    for rule in (RULES["strict balanced cell"], RULES["relaxed cell"]):
        columns = [random.random(ROWS), random.random(ROWS)]
        records = Records(columns, values=values, weights=[1.0, 3.0])
        require_same_tree(records, criteria, rule, 6000, a_fifth())
        assert (records.passes, len(records.forests)) == (0, 1)


def test_a_bound_on_what_is_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # Fewer levels are counted at a time, and histograms where not even one fits.
    monkeypatch.setattr(predicting, "MOST_HANDED_BACK", 3000)
    records = uniform(d=1)
    require_same_tree(records, k_alone(5), Rule(), 3000, a_fifth())
    assert len(records.forests) > 1
    assert records.handed_back <= 1.2 * 3000 * len(records.forests)
    assert records.passes > 0
    monkeypatch.setattr(predicting, "MOST_HANDED_BACK", 10)
    records = uniform(d=1)
    require_same_tree(records, k_alone(5), Rule(), 3000, a_fifth())
    assert not records.forests
    assert records.passes > 0


def test_a_sample_that_is_too_small_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "FEWEST_SAMPLED", 1000)
    records = uniform(d=1)
    require_same_tree(records, k_alone(5), Rule(), 3000, a_fifth()[:999])
    assert not records.forests


def test_no_pass_where_everything_fits_one_task() -> None:
    records = uniform(d=1, rows=100)
    records.grow(k_alone(5), Rule(), 100, np.arange(50))
    assert (records.passes, records.forests) == (0, [])


# Brackets -----------------------------------------------------------------------------------------

few = st.integers(0, 3)


@st.composite
def brackets(draw: st.DrawFn) -> Bracket:
    ends = sorted(tuple(draw(st.lists(few, min_size=1, max_size=3))) for _ in range(2))
    keys = tuple(draw(st.permutations(range(3))))[: max(map(len, ends))]
    decided = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    return Bracket(keys, ends[0], ends[1], *decided)


@given(brackets(), st.lists(few, min_size=1, max_size=3), st.permutations(range(3)), st.booleans())
def test_an_allowed_boundary_sends_what_is_outside_where_the_bracket_does(
    bracket: Bracket, thresholds: list[int], keys: list[int], equal_goes_left: bool
) -> None:
    every = np.indices((4, 4, 4)).reshape(3, -1)
    boundary = Boundary(tuple(keys)[: len(thresholds)], tuple(thresholds), equal_goes_left)
    if bracket.allows(boundary):
        left, right = bracket.outside(every)
        goes = goes_left(every, boundary)
        assert goes[left].all()
        assert not goes[right & ~left].any()


def test_brackets_that_allow_a_boundary_and_such_that_do_not() -> None:
    bracket = Bracket((0,), (2,), (5,), lower_goes_left=True)
    assert bracket.allows(Boundary((0,), (2,), equal_goes_left=True))
    assert not bracket.allows(Boundary((0,), (2,), equal_goes_left=False))
    assert bracket.allows(Boundary((0,), (5,), equal_goes_left=True))
    assert not bracket.allows(Boundary((0,), (6,), equal_goes_left=True))
    assert not bracket.allows(Boundary((1,), (3,), equal_goes_left=True))
    assert not bracket.allows(Boundary((0,), (3,), vantage_point=(0.0,)))


@given(st.lists(few, min_size=1, max_size=30), st.booleans(), st.floats(0, 10))
def test_a_bracket_holds_the_boundary_that_it_is_around(
    values: list[int], cuts_nearest: bool, slack: float
) -> None:
    columns = np.array([values], np.int64)
    median = sorted(values)[(len(values) - 1) // 2]
    for equal_goes_left in (True, False):
        boundary = Boundary((0,), (median,), equal_goes_left)
        bracket = bracket_around(
            boundary, columns, slack, whole_runs=True, cuts_nearest=cuts_nearest
        )
        assert bracket is not None
        assert bracket.allows(boundary)


@given(
    first=brackets(),
    second=brackets(),
    records=st.lists(st.tuples(few, few, few, st.integers(0, 4)), max_size=30),
)
def test_walking_down_a_predicted_tree(
    first: Bracket, second: Bracket, records: list[tuple[int, int, int, int]]
) -> None:
    forest = Forest()
    root = forest.plant(1)
    left, right = forest.cut(root, first)
    forest.cut(left, second)
    keys = np.array([[*own[:3], 0, 0, own[3]] for own in records], np.int64).reshape(-1, 6)
    # Records of the other leaf are passed over.
    leaves = (np.arange(len(keys)) % 3 > 0).astype(np.int32)
    arrays = forest.arrays(2, 3)
    sides = np.zeros((len(forest), 2, forest.width + 1), np.int64)
    rows = np.zeros(len(forest), np.int64)
    extremes = np.empty((len(forest), 3, 2), np.int64)
    extremes[:] = INT64.max, INT64.min
    values = np.zeros((len(forest), 5), np.int64)
    owners, inside = follow_brackets(
        keys,
        np.empty((0, 3)),
        leaves,
        arrays.roots,
        arrays.attributes,
        arrays.points,
        arrays.ends,
        arrays.levels,
        arrays.decided,
        arrays.children,
        sides,
        rows,
        extremes,
        values,
    )
    place = np.where(leaves == 1, root, -1)
    for node, bracket in ((root, first), (left, second)):
        goes, stays = bracket.outside(keys[:, :3].T)
        own = place == node
        place[own & goes] = forest.children[node][0]
        place[own & stays & ~goes] = forest.children[node][1]
        assert sides[node].sum(axis=1).tolist() == [
            np.count_nonzero(own & goes),
            np.count_nonzero(own & stays & ~goes),
        ]
    assert inside.tolist() == [row for row in range(len(keys)) if place[row] in (root, left)]
    assert owners.tolist() == place[inside].tolist()
    for leaf in {right, *forest.children[left]}:
        own = keys[place == leaf]
        assert rows[leaf] == len(own)
        assert values[leaf].tolist() == np.bincount(own[:, 5], minlength=5).tolist()
        if len(own):
            assert extremes[leaf, :, 0].tolist() == own[:, :3].min(axis=0).tolist()
            assert extremes[leaf, :, 1].tolist() == own[:, :3].max(axis=0).tolist()


# The sample ---------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(few, st.integers(INT64.min, INT64.max)), min_size=1, max_size=30), st.data()
)
def test_the_outermost_records(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    keys = np.array(rows, np.int64)
    most = data.draw(st.integers(0, len(rows)))
    found = np.zeros((2, 2, most), np.int64)
    find_outermost(keys, found)
    for column in range(2):
        ordered = sorted(keys[:, column].tolist())
        assert keys[found[column, 0], column].tolist() == ordered[:most]
        assert keys[found[column, 1], column].tolist() == ordered[::-1][:most]
        assert len(np.unique(found[column, 0])) == most


def test_a_sample_is_as_large_as_expected_even_of_equal_records() -> None:
    rows = 200_000
    keys = np.zeros((rows, 4), np.int64)
    keys[:, 0] = np.arange(rows) % 1000
    keys[:, 3] = 2**40 + np.arange(rows)
    sampling = Sampling(rows, 2**63 + 5)
    records, weights = sampling.draw(keys, 2)
    drawn = records[weights == 1]
    assert abs(len(drawn) - rows / 16) < 5 * (rows / 16) ** 0.5
    assert len(np.unique(drawn)) == len(drawn)
    # From every part of the table, and those with the outermost values beside them.
    assert np.bincount(drawn // 20_000, minlength=10).min() > 1000
    assert np.count_nonzero(weights == 0) <= rows / 16 / 8
    assert {0, 999} <= set(keys[records[weights == 0], 0].tolist())
    # What is drawn depends on the records, not on the batch.
    parts = [sampling.draw(keys[start : start + 50_000], 2) for start in range(0, rows, 50_000)]
    together = [
        start + own[marks == 1]
        for start, (own, marks) in zip(range(0, rows, 50_000), parts, strict=True)
    ]
    assert np.concatenate(together).tolist() == drawn.tolist()
    other, marks = replace(sampling, salt=7).draw(keys, 2)
    assert set(other[marks == 1].tolist()) != set(drawn.tolist())


def test_a_sample_is_bounded() -> None:
    assert Sampling(10**12, 1).expected == 2**18
    keys = np.zeros((100_000, 4), np.int64)
    keys[:, 2] = generator().integers(INT64.min, INT64.max, 100_000)
    records, _ = Sampling(10**9, 1).draw(keys, 2)
    assert len(records) < 100


@given(
    st.lists(
        st.tuples(few, st.integers(INT64.min, INT64.max), st.integers(-200, 200), few), max_size=9
    ),
    st.booleans(),
)
def test_single_records_come_out_as_they_were(
    rows: list[tuple[int, int, int, int]], with_hashes: bool
) -> None:
    keys = np.array([own[:3] for own in rows], np.int64).reshape(-1, 3)
    marks = np.array([own[3] for own in rows], np.int64)
    packing = PackedKeys(Records([np.arange(3)]).quasi_identifiers, k_alone(2), with_hashes)
    packed = [packing.pack_records(keys[half], marks[half]) for half in (slice(4), slice(4, None))]
    columns, found = packing.unpack_records(packed)
    if not with_hashes:
        keys[:, 1:] = 0
    assert columns.T.tolist() == keys.tolist()
    assert found.tolist() == marks.tolist()
