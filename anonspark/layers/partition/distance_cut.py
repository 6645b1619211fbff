"""Canon's cut of one node from draws and histograms: the twin of :mod:`anonspark.kernels.canon`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from anonspark.core.arrays import Figures
from anonspark.core.criteria import Counts, Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.canon import CANDIDATE_SIDE, CANDIDATES, SAMPLE_SIDE, SAMPLES, TRIES
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.paths import child_path
from anonspark.kernels.vantage_points import order_by_spread
from anonspark.layers.partition.counting import Draw, Drawn
from anonspark.layers.partition.cutting import (
    ask_values,
    half,
    interval_of_distances,
    sides_satisfy,
)
from anonspark.layers.partition.distance_foresight import DistanceForesight
from anonspark.layers.partition.node import Asking, Cut, Node, Questions
from anonspark.layers.partition.outlook import Outlook
from anonspark.staged.keys import normalized_positions

_ALL = 2**64 - 1


@dataclass(frozen=True)
class DistanceCut:
    """The cut rule of Canon: halves by the distance to a vantage point (docs/algorithms.md, Canon).

    Parameters
    ----------
    quasi_identifiers : sequence of QuasiIdentifier
        In configuration order.
    criteria : Criteria
        What either side has to satisfy.
    spread : bool
        As in :func:`anonspark.kernels.canon.cut_by_distance`, which gives the same cuts.
    """

    quasi_identifiers: Sequence[QuasiIdentifier]
    criteria: Criteria
    spread: bool

    @property
    def breaks_ties(self) -> bool:
        """True: cuts share records at equal distances out, and hashes draw vantage points."""
        return True

    def foresight(self, outlook: Outlook) -> DistanceForesight:
        """Return what predicts the distances that halves end at, and draws for the next cuts."""
        return DistanceForesight(self, outlook)

    def __call__(self, node: Node) -> Questions:
        """Ask for one node's draws and histograms and return its cut, None where there is none.

        Notes
        -----
        One counting pass a node as a rule, see :mod:`.distance_foresight`. Where that does not
        answer three: one that draws candidates and samples, two that find the median distance; more
        where distances are tied, and one for each vantage point that is tried where both sides have
        to satisfy more than k.
        """
        if node.rows < max(2 * self.criteria.k, 2):
            return None
        points = yield from self._vantage_points(node)
        values: list[Counts] | None = None
        d = len(self.quasi_identifiers)
        left_rows = node.rows // 2
        for point in points[:TRIES]:
            boundary = yield from half(
                node,
                (DISTANCE, *range(d)),
                vantage_point=tuple(point),
                distances=self.distances,
            )
            if values is None:
                values = yield from ask_values(node, self.criteria)
            if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
                return Cut(
                    boundary,
                    replace(node, rows=left_rows),
                    replace(node, rows=node.rows - left_rows),
                )
        return None

    @cached_property
    def distances(self) -> tuple[int, int]:
        """Interval of all distance keys."""
        return interval_of_distances(self.quasi_identifiers)

    def draws(self, node: int, path: int, rows: int, times: float = 1.0) -> list[Draw]:
        """Return the draws of candidates, and of samples to compare them by.

        Parameters
        ----------
        node : int
            Leaf of the tree to draw in.
        path, rows : int
            Name and records of the node that is to be cut: this leaf, or a child of it.
        times : float
            How many times as many records to draw as should be enough.
        """
        wanted = {CANDIDATE_SIDE: CANDIDATES} | ({SAMPLE_SIDE: SAMPLES} if self.spread else {})
        return [
            Draw(
                node,
                int(child_path(np.uint64(path), np.uint64(side))),
                min(int((2 * most + 64) / rows * times * 2**64), _ALL),
            )
            for side, most in wanted.items()
        ]

    def _vantage_points(self, node: Node) -> Asking[Figures]:
        """Draw candidates and put the best one first."""
        wanted = (CANDIDATES, SAMPLES) if self.spread else (CANDIDATES,)
        # If that is too few, for records of equal content count once, the limit is raised.
        times = 1.0
        while True:
            draws = self.draws(node.number, node.path, node.rows, times)
            answers = yield list(draws)
            drawn = [
                answer.codes[:most]
                for answer, most in zip(answers, wanted, strict=True)
                if isinstance(answer, Drawn)
            ]
            enough = all(len(own) == most for own, most in zip(drawn, wanted, strict=True))
            if enough or all(draw.limit == _ALL for draw in draws):
                break
            times *= 64
        positions = [normalized_positions(codes, self.quasi_identifiers) for codes in drawn]
        if not self.spread:
            return positions[0]
        candidates, samples = positions
        ordered: Figures = candidates[order_by_spread(candidates, samples)]
        return ordered
