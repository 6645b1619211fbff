"""Tables whose records are counted in memory, partition by partition, as jobs count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from references import content_hashes, no_values

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.labels import Kind
from anonspark.kernels.canon import cut_by_distance
from anonspark.kernels.mondrian import cut_into_groups
from anonspark.kernels.paths import root_path
from anonspark.layers.partition.bracket_pass import CountedForest, CountForest, Outlook
from anonspark.layers.partition.counting import Answer, Counter, Draw, Question
from anonspark.layers.partition.cut_tree import CutTree
from anonspark.layers.partition.distance_cut import DistanceCut
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.growing import CutRule, LooksAhead, grow
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.layers.partition.node import Node
from anonspark.layers.partition.packing import PackedKeys
from anonspark.staged.keys import normalized_positions

INT64 = np.iinfo(np.int64)
ROOT = int(root_path(1, 1))

Groups = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Rule:
    """Mondrian: on the cluster by histograms, in a task by the kernel."""

    relaxed: bool = False
    balanced: bool = False
    cell: bool = False

    def on_the_cluster(self, records: Records, criteria: Criteria) -> CutRule:
        return MedianCut(
            records.quasi_identifiers, criteria, self.relaxed, self.balanced, self.cell
        )

    def in_a_task(
        self,
        records: Records,
        rows: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        path: int,
        criteria: Criteria,
    ) -> Groups:
        found: Groups = cut_into_groups(
            records.codes[rows],
            records.positions[rows],
            records.units,
            records.hashes[rows],
            records.values[rows],
            low,
            high,
            np.uint64(path),
            criteria.requirements,
            self.relaxed,
            self.balanced,
            self.cell,
        )
        return found


@dataclass(frozen=True)
class DistanceRule:
    """Canon, in the same two ways."""

    spread: bool

    def on_the_cluster(self, records: Records, criteria: Criteria) -> CutRule:
        return DistanceCut(records.quasi_identifiers, criteria, self.spread)

    def in_a_task(
        self,
        records: Records,
        rows: np.ndarray,
        low: np.ndarray,  # noqa: ARG002
        high: np.ndarray,  # noqa: ARG002
        path: int,
        criteria: Criteria,
    ) -> Groups:
        found: Groups = cut_by_distance(
            records.codes[rows],
            records.normalized[rows],
            records.hashes[rows],
            records.values[rows],
            np.uint64(path),
            criteria.requirements,
            self.spread,
        )
        return found


AnyRule = Rule | DistanceRule

MEDIAN_RULES: dict[str, AnyRule] = {
    "strict published cell": Rule(cell=True),
    "strict published data": Rule(),
    "strict balanced cell": Rule(balanced=True, cell=True),
    "strict balanced data": Rule(balanced=True),
    "relaxed cell": Rule(relaxed=True, cell=True),
    "relaxed data": Rule(relaxed=True),
}
DISTANCE_RULES: dict[str, AnyRule] = {
    "canon spread": DistanceRule(spread=True),
    "canon random": DistanceRule(spread=False),
}
RULES = MEDIAN_RULES | DISTANCE_RULES
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
median_rules = pytest.mark.parametrize("rule", MEDIAN_RULES.values(), ids=MEDIAN_RULES.keys())
distance_rules = pytest.mark.parametrize("rule", DISTANCE_RULES.values(), ids=DISTANCE_RULES.keys())


def describe(column: pa.Array, kind: Kind, scale: int = 0, weight: float = 1.0) -> QuasiIdentifier:
    """Return a quasi-identifier with the range of a column; nulls are a category of their own."""
    present = column.drop_null()
    categories = tuple(sorted(set(present.to_pylist()))) if kind == "category" else ()
    draft = QuasiIdentifier("x", kind, column.type, 0, 0, scale=scale, categories=categories)
    codes = draft.encode(present)
    return replace(
        draft,
        lowest=int(codes.min()),
        highest=int(codes.max()),
        has_missing=column.null_count > 0,
        weight=weight,
    )


@dataclass(frozen=True)
class UnpackedKeys(PackedKeys):
    """Key matrices in place of batches that would be unpacked to them."""

    def unpack(self, batches: Any) -> Any:
        return batches


class Records:
    """Records as the tasks see them: keys, in several partitions."""

    def __init__(
        self,
        columns: Sequence[np.ndarray],
        hashes: np.ndarray | None = None,
        partitions: int = 3,
        *,
        values: np.ndarray | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        # Not a number stands for a missing one.
        arrays = [pa.array(column, from_pandas=True) for column in columns]
        self.quasi_identifiers = tuple(
            describe(
                array, "float" if pa.types.is_floating(array.type) else "integer", weight=weight
            )
            for array, weight in zip(arrays, weights or [1.0] * len(arrays), strict=True)
        )
        pairs = list(zip(self.quasi_identifiers, arrays, strict=True))
        codes = [quasi_identifier.encode(array) for quasi_identifier, array in pairs]
        self.codes = np.ascontiguousarray(np.stack(codes, axis=1))
        positions = [q.positions(q.encode(array)) for q, array in pairs]
        self.positions = np.ascontiguousarray(np.stack(positions, axis=1))
        self.normalized = normalized_positions(self.codes, self.quasi_identifiers)
        self.units = np.array([q.unit for q in self.quasi_identifiers])
        self.values = no_values(len(self.codes)) if values is None else values
        # Without any given: those of the whole contents.
        self.hashes = content_hashes(self.codes, self.values) if hashes is None else hashes
        self.hashes = self.hashes.astype(np.int64)
        self.content = np.column_stack([self.codes, self.hashes, self.values])
        # As tasks give them: each its own range.
        tasks = np.array_split(np.arange(len(self.codes)), partitions)
        numbers = np.concatenate([2**40 * task + own for task, own in enumerate(tasks)])
        self.keys = np.column_stack([self.codes, self.hashes, numbers, self.values])
        self.partitions = np.array_split(np.ascontiguousarray(self.keys), partitions)
        self.passes = 0
        self.forests: list[Forest] = []
        self.handed_back = 0
        self.questions: list[Question] = []

    def __len__(self) -> int:
        return len(self.keys)

    def root(self) -> Node:
        nothing = (None,) * len(self.quasi_identifiers)
        return Node(
            number=0,
            path=ROOT,
            rows=len(self),
            lowest=tuple(q.lowest for q in self.quasi_identifiers),
            highest=tuple(
                q.missing_code if q.has_missing else q.highest for q in self.quasi_identifiers
            ),
            cell_low=nothing,
            cell_high=nothing,
        )

    def count(self, tree: CutTree, questions: Sequence[Question]) -> list[Answer]:
        """Do what one job does: count each partition, sum up by request and bin."""
        self.passes += 1
        self.questions += questions
        counter = Counter(tree, questions)
        parts = [counter.count(np.array_split(part, 2)) for part in self.partitions]
        names = ("request", "bin", "count", "minimum", "maximum")
        whole = {name: np.concatenate([part[name] for part in parts]) for name in names}
        order = np.lexsort((whole["bin"], whole["request"]))
        whole = {name: column[order] for name, column in whole.items()}
        is_first = np.ones(len(order), bool)
        is_first[1:] = (np.diff(whole["request"]) != 0) | (np.diff(whole["bin"]) != 0)
        starts = np.flatnonzero(is_first)
        added = {name: whole[name][starts] for name in ("request", "bin")}
        added["count"] = np.add.reduceat(whole["count"], starts)
        added["minimum"] = np.minimum.reduceat(whole["minimum"], starts)
        added["maximum"] = np.maximum.reduceat(whole["maximum"], starts)
        added["codes"] = np.full(len(starts), None, object)
        if any(isinstance(question, Draw) for question in questions):
            codes = [own for part in parts for own in part["codes"]]
            for group, row in zip(np.cumsum(is_first) - 1, order, strict=True):
                if codes[row] is not None:
                    added["codes"][group] = min(codes[row], added["codes"][group] or codes[row])
        # As a shuffle would: in no particular order.
        shuffled = np.random.default_rng(self.passes).permutation(len(starts))
        return counter.answers({name: column[shuffled] for name, column in added.items()})

    def names(
        self,
        rows: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        path: int,
        criteria: Criteria,
        rule: AnyRule,
    ) -> np.ndarray:
        """Run the kernel on some records; return the name of each record's group."""
        order, starts, paths = rule.in_a_task(self, rows, low, high, path, criteria)
        names = np.empty(len(rows), np.uint64)
        names[order] = np.repeat(paths, np.diff(starts))
        return names

    def contents(self, names: np.ndarray) -> np.ndarray:
        """Return the name of each record's group and its content, in the order of both."""
        named = np.column_stack([names.view(np.int64), self.content])
        contents: np.ndarray = named[np.lexsort(named.T[::-1])]
        return contents

    def names_at_once(self, criteria: Criteria, rule: AnyRule) -> np.ndarray:
        low, high = self.positions.min(axis=0), self.positions.max(axis=0)
        return self.names(np.arange(len(self)), low, high, ROOT, criteria, rule)

    def count_forest(
        self, tree: CutTree, forest: Forest, keys: PackedKeys, draws: Sequence[Draw]
    ) -> CountedForest:
        """Do what the one job for a forest does."""
        self.forests.append(forest)
        values = int(keys.criteria.first_value[-1])
        arrays = forest.arrays(len(tree), len(self.quasi_identifiers))
        task = CountForest(tree.descent(), arrays, keys, values, draws)
        tasks = [task(iter(np.array_split(part, 2))) for part in self.partitions]
        rows = pa.Table.from_batches([batch for own in tasks for batch in own])
        self.handed_back += sum(
            keys.unpack_records(rows["records"].drop_null().to_pylist())[0].shape[1:]
        )
        added = rows.group_by(["node", "item"], use_threads=False).aggregate(
            [("count", "sum"), ("minimum", "min"), ("maximum", "max"), ("records", "min")]
        )
        shuffled = np.random.default_rng(len(self.forests)).permutation(len(added))
        names = ["node", "item", "count", "minimum", "maximum", "records"]
        added = added.rename_columns(names).take(shuffled)
        return CountedForest(forest, keys, values, added, len(draws))

    def foresight(
        self, criteria: Criteria, rule: CutRule, largest_leaf: int, sample: np.ndarray
    ) -> LooksAhead:
        """Return the foresight that a sample of these records gives."""
        keys = UnpackedKeys(self.quasi_identifiers, criteria, rule.breaks_ties)
        outlook = Outlook(
            np.ascontiguousarray(self.keys[sample].T),
            np.ones(len(sample), np.int64),
            largest_leaf,
            1000,
            lambda tree, forest, draws=(): self.count_forest(tree, forest, keys, draws),
        )
        return rule.foresight(outlook)

    def grow(
        self, criteria: Criteria, rule: AnyRule, largest_leaf: int, sample: np.ndarray | None = None
    ) -> tuple[CutTree, list[Node]]:
        """Grow the tree; with a sample, given as numbers of records, by foresight."""
        tree = CutTree(self.quasi_identifiers)
        cut_rule = rule.on_the_cluster(self, criteria)
        foresight = (
            None if sample is None else self.foresight(criteria, cut_rule, largest_leaf, sample)
        )
        leaves = grow(
            tree,
            self.root(),
            cut_rule,
            largest_leaf=largest_leaf,
            count=self.count,
            foresight=foresight,
        )
        return tree, leaves

    def names_by_leaves(self, criteria: Criteria, rule: AnyRule, largest_leaf: int) -> np.ndarray:
        tree, leaves = self.grow(criteria, rule, largest_leaf)
        leaf_of_record = tree.descent().find_leaves(self.keys)
        assert sorted({leaf.number for leaf in leaves}) == sorted(set(leaf_of_record.tolist()))
        names = np.zeros(len(self), np.uint64)
        groups = 0
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
            names[rows] = self.names(rows, low, high, leaf.path, criteria, rule)
            groups += len(np.unique(names[rows]))
        # No two leaves have groups of one name.
        assert len(np.unique(names)) == groups
        return names


def require_same_groups(
    records: Records, criteria: Criteria, rule: AnyRule, largest_leaf: int
) -> int:
    """Require the same names for the same contents, and return how many names there are.

    Equal records are interchangeable.
    """
    expected = records.names_at_once(criteria, rule)
    found = records.names_by_leaves(criteria, rule, largest_leaf)
    assert (records.contents(found) == records.contents(expected)).all()
    return len(np.unique(expected))


def contents_by_name(
    table: Any, groups: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> dict[int, object]:
    """Return the content of each group that a kernel cut, by its name."""
    order, starts, paths = groups
    assert len(set(paths.tolist())) == len(paths)
    return {
        int(path): table.records(order[start:stop])
        for path, start, stop in zip(paths, starts[:-1], starts[1:], strict=True)
    }
