"""Growing the tree from histograms: every node that waits for counts gets them from one job.

A node's cut is a generator: it yields the histograms that it needs and is resumed with them. All
nodes of the tree run side by side, so the number of jobs is that of the longest way from the root
to a leaf, not that of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from anonspark.kernels.paths import child_path
from anonspark.partition.counting import Histogram, Request
from anonspark.partition.cut_tree import Boundary, CutTree

__all__ = ["Cut", "CutRule", "Leaf", "Node", "find_rank", "grow"]

Questions = Generator[list[Request], list[Histogram], "Cut | None"]


@dataclass(frozen=True)
class Node:
    """A node of the tree while it is being cut.

    Parameters
    ----------
    number : int
        Its number in the tree.
    path : int
        Its 64-bit name, see :mod:`anonspark.kernels.paths`.
    rows : int
        Its records.
    lowest, highest : tuple of int
        Codes that enclose the records, for each quasi-identifier; not necessarily tight.
    cell_low, cell_high : tuple of (int or None)
        Bounds of the cell; None stands for the extreme of the node's own records.
    """

    number: int
    path: int
    rows: int
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    cell_low: tuple[int | None, ...]
    cell_high: tuple[int | None, ...]


@dataclass(frozen=True)
class Cut:
    """How a node is cut.

    Parameters
    ----------
    boundary : Boundary
        Which records go left.
    left, right : Node
        The children; their ``number`` and ``path`` are filled in by :func:`grow`.
    """

    boundary: Boundary
    left: Node
    right: Node


Leaf = Node
CutRule = Callable[[Node], Questions]


@dataclass
class _Waiting:
    node: Node
    questions: Questions
    requests: list[Request] = field(default_factory=list)


def grow(
    tree: CutTree,
    root: Node,
    rule: CutRule,
    *,
    largest_leaf: int,
    count: Callable[[CutTree, Sequence[Request]], list[Histogram]],
) -> list[Leaf]:
    """Cut a tree until every leaf is small enough or cannot be cut.

    Parameters
    ----------
    tree : CutTree
        Grown in place.
    root : Node
        Node 0 of the tree.
    rule : callable
        Starts the questions of one node.
    largest_leaf : int
        Nodes of at most this many records are not cut.
    count : callable
        Answers requests, sorted by node; one call is one job on the cluster.

    Returns
    -------
    list of Node
        The leaves from left to right.
    """
    leaves: dict[int, Leaf] = {}
    waiting: list[_Waiting] = []

    def settle(node: Node) -> None:
        """Decide whether a node is a leaf; if not, start its questions."""
        if node.rows <= largest_leaf:
            leaves[node.number] = node
        else:
            advance(_Waiting(node, rule(node)), None)

    def advance(entry: _Waiting, answers: list[Histogram] | None) -> None:
        try:
            if answers is None:
                entry.requests = next(entry.questions)
            else:
                entry.requests = entry.questions.send(answers)
            waiting.append(entry)
        except StopIteration as finished:
            cut: Cut | None = finished.value
            if cut is None:
                leaves[entry.node.number] = entry.node
                return
            numbers = tree.cut(entry.node.number, cut.boundary)
            for side, (child, number) in enumerate(
                zip((cut.left, cut.right), numbers, strict=True)
            ):
                path = int(child_path(entry.node.path, side))
                settle(
                    Node(
                        number=number,
                        path=path,
                        rows=child.rows,
                        lowest=child.lowest,
                        highest=child.highest,
                        cell_low=child.cell_low,
                        cell_high=child.cell_high,
                    )
                )

    settle(root)
    while waiting:
        current = sorted(waiting, key=lambda entry: entry.node.number)
        waiting.clear()
        answers = iter(count(tree, [request for entry in current for request in entry.requests]))
        for entry in current:
            advance(entry, [next(answers) for _ in entry.requests])
    return [leaves[number] for number in _from_left_to_right(tree) if number in leaves]


def _from_left_to_right(tree: CutTree) -> list[int]:
    ordered, stack = [], [0]
    while stack:
        node = stack.pop()
        left, right = tree.children[node]
        if left < 0:
            ordered.append(node)
        else:
            stack += [right, left]
    return ordered


def find_rank(
    request: Request, histogram: Histogram, rank: int
) -> Generator[list[Request], list[Histogram], tuple[int, int, int]]:
    """Find the ``rank``-th smallest value exactly, zooming in on the bin that holds it.

    Parameters
    ----------
    request : Request
        What was asked first.
    histogram : Histogram
        Its answer.
    rank : int
        From 1.

    Returns
    -------
    (int, int, int)
        The value, the records below it and the records equal to it.
    """
    below = 0
    while True:
        place, smaller = histogram.find(rank - below)
        below += smaller
        lowest, highest = int(histogram.minima[place]), int(histogram.maxima[place])
        rows = int(histogram.counts[place])
        if lowest == highest:
            return lowest, below, rows
        zoomed = Request(request.node, request.key, lowest, highest, rows, request.tied)
        (histogram,) = yield [zoomed]
