"""Growing the tree from histograms: every node that waits for counts gets them from one job.

A node's cut is a generator: it yields the histograms that it needs and is resumed with them. All
nodes of the tree run side by side, so the number of jobs is that of the longest way from the root
to a leaf, not that of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from anonspark.kernels.paths import child_path
from anonspark.layers.partition.bracket_pass import Outlook
from anonspark.layers.partition.counting import (
    Answer,
    Draw,
    Question,
    Request,
)
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.node import Cut, Leaf, Node, Questions


class CutRule(Protocol):
    """A rule by which a model cuts nodes."""

    @property
    def breaks_ties(self) -> bool:
        """Return whether cuts may separate, by hash, records with equal quasi-identifiers."""

    def foresight(self, outlook: Outlook) -> LooksAhead:
        """Return what answers some questions of this rule before they are asked."""

    def __call__(self, node: Node) -> Questions:
        """Start the questions of one node."""


class LooksAhead(Protocol):
    """A source of answers before they are asked for."""

    def look_ahead(self, tree: CutTree, waiting: Sequence[Waiting]) -> bool:
        """Find out about leaves that wait for answers. Return whether it did."""

    def answer(self, node: int, questions: Sequence[Question]) -> Sequence[Answer] | None:
        """Answer a node's questions, or return None if the cluster must."""

    def cut(self, node: int, boundary: Boundary, numbers: tuple[int, int]) -> None:
        """Note a cut and the numbers of the children."""


class LooksNowhere:
    """Knows nothing before it is asked for."""

    def look_ahead(self, _tree: CutTree, _waiting: Sequence[Waiting]) -> bool:
        """Find out nothing."""
        return False

    def answer(self, _node: int, _questions: Sequence[Question]) -> None:
        """Leave it to the cluster."""

    def cut(self, _node: int, _boundary: Boundary, _numbers: tuple[int, int]) -> None:
        """Note nothing."""


@dataclass
class Waiting:
    """A node that waits for answers to what its cut, ``questions``, ``asked``.

    ``is_new`` says whether nothing has been answered yet.
    """

    node: Node
    questions: Questions
    asked: list[Question]
    is_new: bool = True


def grow(
    tree: CutTree,
    root: Node,
    rule: CutRule,
    *,
    largest_leaf: int,
    count: Callable[[CutTree, Sequence[Question]], list[Answer]],
    foresight: LooksAhead | None = None,
) -> list[Leaf]:
    """Cut a tree, in place, until every leaf is small enough or cannot be cut.

    ``root`` is node 0 of the tree. Nodes of at most ``largest_leaf`` records are not cut. ``count``
    answers questions, sorted by node, and one call is one job on the cluster. ``foresight`` answers
    some without a job of their own, and does not change the boundaries. Returns the leaves from
    left to right.
    """
    growing = _Growing(tree, rule, largest_leaf, foresight or LooksNowhere())
    growing.go_on([(entry, None) for entry in growing.start(root)])
    while growing.waiting:
        current = sorted(growing.waiting, key=lambda entry: entry.node.number)
        growing.waiting.clear()
        if growing.foresight.look_ahead(tree, current):
            growing.go_on([(entry, None) for entry in current])
            continue
        answers = iter(count(tree, [question for entry in current for question in entry.asked]))
        growing.go_on([(entry, [next(answers) for _ in entry.asked]) for entry in current])
    return [
        growing.leaves[number] for number in _from_left_to_right(tree) if number in growing.leaves
    ]


@dataclass
class _Growing:
    """A tree that grows: its leaves, and the nodes that wait for answers of the cluster."""

    tree: CutTree
    rule: CutRule
    largest_leaf: int
    foresight: LooksAhead
    leaves: dict[int, Leaf] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)

    def start(self, node: Node) -> list[Waiting]:
        """Make a node a leaf if it is small, or return its first questions."""
        if node.rows <= self.largest_leaf:
            self.leaves[node.number] = node
            return []
        questions = self.rule(node)
        try:
            return [Waiting(node, questions, next(questions))]
        except StopIteration as finished:
            return self._finish(node, finished.value)

    def _finish(self, node: Node, cut: Cut | None) -> list[Waiting]:
        """Make a node a leaf, or cut it and return the first questions of its children."""
        if cut is None:
            self.leaves[node.number] = node
            return []
        numbers = self.tree.cut(node.number, cut.boundary)
        self.foresight.cut(node.number, cut.boundary, numbers)
        entries = []
        for side, (child, number) in enumerate(zip((cut.left, cut.right), numbers, strict=True)):
            path = int(child_path(node.path, side))
            entries += self.start(replace(child, number=number, path=path))
        return entries

    def go_on(self, entries: Sequence[tuple[Waiting, Sequence[Answer] | None]]) -> None:
        """Continue to cut nodes, given their answers or None, until all wait or are leaves."""
        stack = list(reversed(entries))
        while stack:
            entry, answers = stack.pop()
            # People are never known before a pass.
            of_records = all(isinstance(question, Request | Draw) for question in entry.asked)
            if answers is None and of_records:
                answers = self.foresight.answer(entry.node.number, entry.asked)
            if answers is None:
                self.waiting.append(entry)
                continue
            entry.is_new = False
            try:
                entry.asked = entry.questions.send(list(answers))
                stack.append((entry, None))
            except StopIteration as finished:
                stack += [(child, None) for child in self._finish(entry.node, finished.value)]


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
