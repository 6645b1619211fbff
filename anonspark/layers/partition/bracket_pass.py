"""One pass that counts the records of predicted trees, and hands back those inside of brackets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.engine.tasks import Batches
from anonspark.kernels.brackets import follow_brackets
from anonspark.layers.partition.brackets import with_distances
from anonspark.layers.partition.counting import Draw, draw_among
from anonspark.layers.partition.cut_tree import CutTree, Descent, positions_for
from anonspark.layers.partition.cutting import interval_of_distances
from anonspark.layers.partition.forest import Forest, ForestArrays
from anonspark.layers.partition.node import Node
from anonspark.layers.partition.node_counts import (
    Counted,
    EqualRecords,
    Evidence,
    Outside,
    PassEvidence,
)
from anonspark.layers.partition.packing import PackedKeys

_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

# Stands for a node in rows that hold records.
_RECORDS = -1
# Records of one such row.
_RECORDS_AT_ONCE = 2**18

FOREST_COUNTS = pa.schema(
    [
        ("node", pa.int32()),
        *((name, pa.int64()) for name in ("item", "count", "minimum", "maximum")),
        ("records", pa.binary()),
    ]
)
"""Counts of predicted nodes, numbered through as ``item``: of the records that pass a node on its
left, by key, and on its right, of those of a leaf, with the extremes of each quasi-identifier, and
of a leaf's records with each sensitive value. And records, with the number of one of them as
``item``: they are no one else's. As a mark each has the predicted node that it is in the bracket
of, or the draw that it is of, numbered on from the predicted nodes."""


@dataclass(frozen=True)
class CountForest:
    """Counts one partition's packed records in a Python worker.

    ``forest`` is what is predicted under the leaves of the tree, ``values`` the number of sensitive
    values of all attributes together, and ``draws``, sorted by node, are drawn on the way.
    """

    descent: Descent
    forest: ForestArrays
    keys: PackedKeys
    values: int
    draws: Sequence[Draw] = ()

    def __call__(self, batches: Batches) -> Batches:
        """Count the records of a task by node and bracket, as rows of :data:`FOREST_COUNTS`.

        Records inside of a bracket, and drawn ones, are handed back with their keys.
        """
        d = len(self.descent.quasi_identifiers)
        nodes, width = self.forest.attributes.shape
        sides = np.zeros((nodes, 2, width + 1), np.int64)
        rows = np.zeros(nodes, np.int64)
        extremes = np.empty((nodes, d, 2), np.int64)
        extremes[:] = _LARGEST, _SMALLEST
        values = np.zeros((nodes, self.values), np.int64)
        inside: list[tuple[Integers, Integers]] = []
        measured = self.forest.measured or self.descent.boundaries.measured
        for keys in map(self.keys.of_records, self.keys.unpack(batches)):
            normalized = positions_for(keys, self.descent.quasi_identifiers, measured=measured)
            leaves = self.descent.find_leaves(keys, normalized)
            owners, records = follow_brackets(
                keys,
                normalized,
                leaves,
                self.forest.roots,
                self.forest.attributes,
                self.forest.points,
                self.forest.ends,
                self.forest.levels,
                self.forest.decided,
                self.forest.children,
                sides,
                rows,
                extremes,
                values,
            )
            inside.append((owners, keys[records]))
            if self.draws:
                draws, drawn = self._draw(keys, leaves)
                inside.append((nodes + draws, keys[drawn]))
            if sum(len(owners) for owners, _ in inside) >= _RECORDS_AT_ONCE:
                yield self._handed_back(inside)
                inside.clear()
        if inside:
            yield self._handed_back(inside)
        yield _counts(sides, rows, extremes, values)

    def _draw(self, keys: Integers, leaves: npt.NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Return draws and the records that are drawn, one of equal ones."""
        d = len(self.descent.quasi_identifiers)
        draws, records, _ = draw_among(keys[:, d], leaves, self.draws, len(self.descent))
        contents = np.column_stack([draws, keys[records, : d + 1]])
        _, first = np.unique(contents, axis=0, return_index=True)
        return draws[first], records[first]

    def _handed_back(self, inside: list[tuple[Integers, Integers]]) -> pa.RecordBatch:
        owners = np.concatenate([part for part, _ in inside])
        keys = np.concatenate([part for _, part in inside])
        rows = min(len(keys), 1)
        number = keys[:rows, len(self.descent.quasi_identifiers) + 1]
        columns = {
            "node": np.full(rows, _RECORDS, np.int32),
            "item": number,
            **dict.fromkeys(("count", "minimum", "maximum"), np.zeros(rows, np.int64)),
            "records": pa.array([self.keys.pack_records(keys, owners)] * rows, pa.binary()),
        }
        return pa.RecordBatch.from_pydict(columns, schema=FOREST_COUNTS)


def _counts(
    sides: Integers, rows: Integers, extremes: Integers, values: Integers
) -> pa.RecordBatch:
    """Return counts that are not zero as rows of :data:`FOREST_COUNTS`."""
    nodes, d = extremes.shape[:2]
    counts = np.concatenate(
        [sides.reshape(nodes, -1), np.repeat(rows[:, None], d, axis=1), values], axis=1
    )
    bounds = np.zeros((*counts.shape, 2), np.int64)
    first = counts.shape[1] - values.shape[1] - d
    bounds[:, first : first + d] = extremes
    node, item = np.nonzero(counts)
    columns = {
        "node": node.astype(np.int32),
        "item": item,
        "count": counts[node, item],
        "minimum": bounds[node, item, 0],
        "maximum": bounds[node, item, 1],
        "records": pa.nulls(len(node), pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns, schema=FOREST_COUNTS)


class CountedForest:
    """The knowledge of the driver after a pass.

    ``result`` holds rows of :data:`FOREST_COUNTS`, one for each node and item, with records packed
    by ``keys``. ``values`` is the number of sensitive values of all attributes together.
    """

    def __init__(
        self, forest: Forest, keys: PackedKeys, values: int, result: pa.Table, draws: int = 0
    ) -> None:
        """Arrange the rows of a pass by node, and add up which records certainly reach each."""
        self.forest = forest
        self._quasi_identifiers = keys.quasi_identifiers
        self._d = len(keys.quasi_identifiers)
        self._values = values
        width = forest.width
        node, item = result["node"].to_numpy(), result["item"].to_numpy()
        counted = node != _RECORDS
        shape = (len(forest), 2 * (width + 1) + self._d + values)
        # By node and item. No row came for items of no record.
        counts, minima, maxima = (
            np.full(shape, empty, np.int64) for empty in (0, _LARGEST, _SMALLEST)
        )
        for name, table in (("count", counts), ("minimum", minima), ("maximum", maxima)):
            table[node[counted], item[counted]] = result[name].to_numpy()[counted]
        self._sides = counts[:, : 2 * (width + 1)].reshape(len(forest), 2, width + 1)
        packed = result["records"].filter(pa.array(~counted)).to_pylist()
        columns, owners = keys.unpack_records(packed)
        order = np.argsort(owners, kind="stable")
        for column in columns:
            # Column by column, so that the driver never holds all of them twice.
            column[:] = column[order]
        self._columns = columns
        self._starts = np.searchsorted(owners[order], np.arange(len(forest) + draws + 1))
        self._certain = self._add_up(counts, minima, maxima)

    def _add_up(self, counts: Integers, minima: Integers, maxima: Integers) -> list[Counted]:
        """Sum the counts of the records that certainly reach each node, from the leaves upwards."""
        first = counts.shape[1] - self._values - self._d
        of_keys = slice(first, first + self._d)
        certain: list[Counted] = []
        for index in reversed(range(len(self.forest))):
            left, right = self.forest.children[index]
            if left < 0:
                counted = Counted(
                    int(counts[index, first]),
                    minima[index, of_keys],
                    maxima[index, of_keys],
                    counts[index, first + self._d :],
                )
            else:
                inside = Counted.of(self._inside(index), self._d, self._values)
                counted = inside + certain[len(self.forest) - 1 - left]
                counted += certain[len(self.forest) - 1 - right]
            certain.append(counted)
        return certain[::-1]

    def _inside(self, index: int) -> Integers:
        """Return the transposed keys of the records that were handed back of a node's bracket."""
        return self._columns[:, self._starts[index] : self._starts[index + 1]]

    def evidence(self, index: int, columns: Integers) -> Evidence | None:
        """Return what is known of a predicted node, or None for leaves whose records differ.

        ``columns`` are those of its records that are known one by one, see :meth:`known_keys`.
        """
        bracket = self.forest.brackets[index]
        if bracket is None:
            counted = self._certain[index] + Counted.of(columns, self._d, self._values)
            return EqualRecords(counted) if (counted.lowest == counted.highest).all() else None
        left, right = (self._certain[child] for child in self.forest.children[index])
        outside = Outside(bracket, left, right, *self._sides[index])
        columns = with_distances(columns, bracket.vantage_point, self._quasi_identifiers)
        distances = interval_of_distances(self._quasi_identifiers)
        return PassEvidence(self._d, columns, outside, distances)

    def known_keys(self, index: int, arrived: Integers) -> Integers:
        """Return the transposed keys of the records of a node that are known one by one.

        ``arrived`` come from the brackets of the nodes above.
        """
        return np.concatenate([self._inside(index), arrived], axis=1)

    def nothing(self) -> Integers:
        """Return the transposed keys of no record."""
        return self._columns[:, :0]

    def drawn(self, draw: int) -> Integers:
        """Return the transposed keys of the records of a draw, at least one of equal ones."""
        return self._inside(len(self.forest) + draw)


class CountsForest(Protocol):
    """Counts the records of a forest and draws on the way. One call is one job on the cluster."""

    def __call__(self, tree: CutTree, forest: Forest, draws: Sequence[Draw] = ()) -> CountedForest:
        """Count and draw."""


@dataclass(frozen=True)
class Outlook:
    """A sample of the table, and the pass that counts around its cuts.

    ``columns`` are the transposed keys of the sample, and ``sampled`` is 1 for its records, 0 for
    those with outermost values. Nodes of at most ``largest_leaf`` records are not cut, and a forest
    has at most ``most_nodes``.
    """

    columns: Integers
    sampled: Integers
    largest_leaf: int
    most_nodes: int
    count: CountsForest

    def in_leaves(self, tree: CutTree, nodes: Sequence[Node]) -> list[Integers]:
        """Return which records of the sample are in each of some leaves of a tree."""
        leaves = tree.descent().find_leaves(np.ascontiguousarray(self.columns.T))
        order = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[order], np.arange(len(tree) + 1))
        return [order[starts[node.number] : starts[node.number + 1]] for node in nodes]
