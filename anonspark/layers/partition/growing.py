"""Growing the tree from histograms: every node that waits for counts gets them from one job.

A node's cut is a generator: it yields the histograms that it needs and is resumed with them. All
nodes of the tree run side by side, so the number of jobs is that of the longest way from the root
to a leaf, not that of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from anonspark.kernels.paths import child_path
from anonspark.layers.partition.counting import Answer, Histogram, Question, Request
from anonspark.layers.partition.cut_tree import Boundary, CutTree

_T = TypeVar("_T")

Asking = Generator[list[Question], list[Answer], _T]
"""A computation that yields questions, is resumed with their answers, and returns something."""

Questions = Asking["Cut | None"]


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


class CutRule(Protocol):
    """How a model cuts nodes."""

    @property
    def breaks_ties(self) -> bool:
        """Whether cuts run between records that are equal in every quasi-identifier, by hash."""

    def __call__(self, node: Node) -> Questions:
        """Start the questions of one node."""


@dataclass
class _Waiting:
    node: Node
    questions: Questions
    asked: list[Question] = field(default_factory=list)


def grow(
    tree: CutTree,
    root: Node,
    rule: CutRule,
    *,
    largest_leaf: int,
    count: Callable[[CutTree, Sequence[Question]], list[Answer]],
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
        Answers questions, sorted by node; one call is one job on the cluster.

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

    def advance(entry: _Waiting, answers: list[Answer] | None) -> None:
        try:
            if answers is None:
                entry.asked = next(entry.questions)
            else:
                entry.asked = entry.questions.send(answers)
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
                settle(replace(child, number=number, path=path))

    settle(root)
    while waiting:
        current = sorted(waiting, key=lambda entry: entry.node.number)
        waiting.clear()
        answers = iter(count(tree, [question for entry in current for question in entry.asked]))
        for entry in current:
            advance(entry, [next(answers) for _ in entry.asked])
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


def ask(requests: Sequence[Request]) -> Asking[list[Histogram]]:
    """Ask for histograms."""
    answers = yield list(requests)
    return [answer for answer in answers if isinstance(answer, Histogram)]


def find_rank(request: Request, histogram: Histogram, rank: int) -> Asking[tuple[int, int, int]]:
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
    (run,) = yield from find_ranks(request, histogram, [rank])
    return run


def find_ranks(
    request: Request, histogram: Histogram, ranks: Sequence[int]
) -> Asking[list[tuple[int, int, int]]]:
    """Find the values of several ranks side by side, in about as many passes as one rank needs.

    Parameters
    ----------
    request, histogram
        See :func:`find_rank`.
    ranks : sequence of int
        From 1, ascending.

    Returns
    -------
    list of (int, int, int)
        As of :func:`find_rank`, by ascending value, each value once.
    """
    runs: set[tuple[int, int, int]] = set()
    waiting = [(histogram, 0, list(ranks))]
    while waiting:
        # Ranks that fall into the same bin are looked for in one histogram of it.
        zoomed: dict[Request, tuple[int, list[int]]] = {}
        for counted, below, own in waiting:
            for rank in own:
                place, smaller = counted.find(rank - below)
                lowest, highest = int(counted.minima[place]), int(counted.maxima[place])
                rows = int(counted.counts[place])
                if lowest == highest:
                    runs.add((lowest, below + smaller, rows))
                    continue
                bin_of_rank = replace(request, lowest=lowest, highest=highest, rows=rows)
                zoomed.setdefault(bin_of_rank, (below + smaller, []))[1].append(rank)
        if not zoomed:
            break
        histograms = yield from ask(list(zoomed))
        waiting = [
            (answer, below, own)
            for answer, (below, own) in zip(histograms, zoomed.values(), strict=True)
        ]
    return sorted(runs)
