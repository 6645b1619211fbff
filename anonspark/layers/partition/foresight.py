"""Answers to the questions of many nodes from one pass over the records.

A sample tells about where the cuts will be. One pass counts what is certain to be on either side of
them, and hands back the records in between. Whatever a node asks that these do not answer exactly
is asked of the cluster, so the tree is the same whatever the sample: only the number of passes
depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anonspark.layers.partition.brackets import goes_left
from anonspark.layers.partition.counting import Histogram, Question
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.evidence import Evidence
from anonspark.layers.partition.growing import Waiting
from anonspark.layers.partition.one_pass import CountedForest
from anonspark.layers.partition.outlook import Outlook
from anonspark.layers.partition.predicting import Predictor

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Known:
    """What a pass told of a node."""

    counted: CountedForest
    place: int
    columns: Integers
    """Transposed keys of its records that are known one by one."""
    evidence: Evidence
    answered: set[Question] = field(default_factory=set)


@dataclass(frozen=True)
class Foresight:
    """Looks ahead for :func:`anonspark.layers.partition.growing.grow`.

    Parameters
    ----------
    predictor : Predictor
    outlook : Outlook
    """

    predictor: Predictor
    outlook: Outlook
    _known: dict[int, _Known] = field(default_factory=dict)

    def look_ahead(self, tree: CutTree, waiting: Sequence[Waiting]) -> bool:
        """Predict the trees under some leaves and count what is needed to grow them.

        Parameters
        ----------
        tree : CutTree
            As it is now.
        waiting : sequence of Waiting
            Leaves that wait for answers; those of which nothing is known yet are predicted.

        Returns
        -------
        bool
            Whether anything was counted: then the first questions of one of these are answered.
        """
        nodes = [one.node for one in waiting if one.is_new]
        sample = self.outlook
        expected = []
        for node, own in zip(nodes, sample.in_leaves(tree, nodes), strict=True):
            leaf = self.predictor.expect(node, sample.columns[:, own], sample.sampled[own])
            if leaf is not None:
                expected.append(leaf)
        forest = self.predictor.predict(expected)
        if not forest.roots:
            return False
        counted = sample.count(tree, forest)
        for number, place in forest.roots.items():
            self._learn(number, counted, place, counted.nothing())
        return True

    def _learn(self, number: int, counted: CountedForest, place: int, arrived: Integers) -> None:
        columns = counted.known(place, arrived)
        evidence = counted.evidence(place, columns)
        if evidence is not None:
            self._known[number] = _Known(counted, place, columns, evidence)

    def answer(self, node: int, questions: Sequence[Question]) -> list[Histogram] | None:
        """Answer a node's questions, or return None if the cluster has to."""
        known = self._known.get(node)
        # Whoever zooms in on a bin that has all records wants to be told more than before.
        if known is None or not known.answered.isdisjoint(questions):
            return None
        known.answered.update(questions)
        return known.evidence.answer(questions)

    def cut(self, node: int, boundary: Boundary, numbers: tuple[int, int]) -> None:
        """Take notice of a cut: what is known of the node is known of its children then.

        Parameters
        ----------
        node : int
            That was cut.
        boundary : Boundary
        numbers : (int, int)
            Of its left and right child.
        """
        known = self._known.pop(node, None)
        if known is None:
            return
        bracket = known.counted.forest.brackets[known.place]
        if bracket is None or not bracket.allows(boundary):
            return
        places = known.counted.forest.children[known.place]
        left = goes_left(known.columns, boundary)
        for number, place, side in zip(numbers, places, (left, ~left), strict=True):
            arrived = np.compress(side, known.columns, axis=1)
            self._learn(number, known.counted, place, arrived)
