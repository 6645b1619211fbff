"""Predict how nodes will be cut, from a sample of their records and by the very cut rule."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.layers.partition.brackets import Bracket, bracket_around
from anonspark.layers.partition.counting import Answer
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.node import Cut, Node
from anonspark.layers.partition.node_counts import SampleEvidence

MOST_HANDED_BACK = 2**21
"""Records that the driver gets of one pass, more or less."""

FEWEST_SAMPLED = 2**8
"""Sampled records of a node that is predicted: with fewer a bracket holds a quarter of it."""

# Half as many standard deviations, of the number of sampled records before the true half, are
# between the half of a sample and an end of the bracket: one bracket of 16,000 misses.
_DEVIATIONS = 4.0


class SampledRule(CutRule, Protocol):
    """A cut rule whose cuts of a sample predict those of all records."""

    @property
    def cuts_nearest(self) -> bool:
        """Return whether records equal to the median go where the halves become more equal."""

    def of_sample(self, weight: float) -> SampledRule:
        """Return the rule for a sample each of whose records stands for ``weight`` records."""


@dataclass(frozen=True)
class Expected:
    """A node that may be cut, as a sample shows it.

    ``node`` has as many records as are sampled, ``rule`` is that for the sample, and each record
    stands for ``weight`` records.
    """

    node: Node
    evidence: SampleEvidence
    rule: SampledRule
    weight: float

    def cut(self, cut: Cut) -> tuple[Expected, Expected]:
        """Return the children."""
        left, right = self.evidence.divide(cut.boundary)
        first = replace(self, node=cut.left, evidence=left)
        return first, replace(self, node=cut.right, evidence=right)

    def surely_fits(self, largest_leaf: int) -> bool:
        """Return whether the node has no more records than a leaf, as far as the sample shows."""
        error = _DEVIATIONS * math.sqrt(self.node.rows)
        return (self.node.rows + error) * self.weight <= largest_leaf


@dataclass(frozen=True)
class Predictor:
    """Predicts trees of at most ``most_nodes``. Nodes of ``largest_leaf`` records are not cut."""

    rule: SampledRule
    largest_leaf: int
    most_nodes: int

    def expect(self, node: Node, columns: Integers, sampled: Integers) -> Expected | None:
        """Return a leaf of the tree with its sample, or None if the sample is too small.

        ``columns`` and ``sampled`` are those of :class:`SampleEvidence`.
        """
        evidence = SampleEvidence(len(node.lowest), columns, sampled)
        if evidence.rows < FEWEST_SAMPLED:
            return None
        weight = node.rows / evidence.rows
        rule = self.rule.of_sample(weight)
        return Expected(replace(node, rows=evidence.rows), evidence, rule, weight)

    def predict(self, leaves: Sequence[Expected]) -> Forest:
        """Predict the trees under some leaves, level by level, as deep as is worth a pass.

        The forest is empty if no leaf's cut can be predicted, or the cuts would hand back more
        records than the driver takes. Histograms decide such a level in two passes.
        """
        forest = Forest()
        handed_back = 0.0
        waiting: deque[tuple[Expected, int | None]] = deque((leaf, None) for leaf in leaves)
        while waiting and len(forest) + 3 <= self.most_nodes:
            expected, parent = waiting.popleft()
            if expected.node.rows < FEWEST_SAMPLED or expected.surely_fits(self.largest_leaf):
                continue
            cut = cut_by_sample(expected)
            bracket = None if cut is None else self._bracket(expected, cut)
            if cut is None or bracket is None:
                continue
            inside = _inside(bracket, expected)
            records = inside * expected.weight
            if 2 * inside > expected.node.rows:
                continue
            if handed_back + records > MOST_HANDED_BACK:
                if parent is None:
                    return Forest()
                continue
            handed_back += records
            if parent is None:
                parent = forest.plant(expected.node.number)
            waiting.extend(zip(expected.cut(cut), forest.cut(parent, bracket), strict=True))
        return forest

    def _bracket(self, expected: Expected, cut: Cut) -> Bracket | None:
        return bracket_around(
            cut.boundary,
            expected.evidence.counted,
            slack(expected.node.rows),
            whole_runs=not self.rule.breaks_ties,
            cuts_nearest=self.rule.cuts_nearest,
        )


def slack(sampled: int) -> float:
    """Return by how many ranks the half of so many sampled records may miss that of all.

    >>> slack(10_000)
    200.0
    """
    return _DEVIATIONS * math.sqrt(sampled) / 2


def cut_by_sample(expected: Expected) -> Cut | None:
    """Return how a node would be cut if the sample were all its records, or None."""
    evidence = expected.evidence
    questions = expected.rule(expected.node)
    try:
        # Only the attribute that is cut needs to be sorted, so extremes come first.
        histograms = evidence.extremes_alone(next(questions))
        while histograms is not None:
            answers: list[Answer] = list(histograms)
            histograms = evidence.answer(questions.send(answers))
    except StopIteration as finished:
        cut: Cut | None = finished.value
        return cut
    return None


def _inside(bracket: Bracket, expected: Expected) -> int:
    return count_inside(bracket, expected.evidence.counted)


def count_inside(bracket: Bracket, columns: Integers) -> int:
    """Count the records inside of a bracket, given as transposed keys."""
    left, right = bracket.outside(columns)
    return int(np.count_nonzero(~(left | right)))
