"""Canon's cut of one node from draws and histograms: the twin of :mod:`anonspark.kernels.canon`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.canon import CANDIDATE_SIDE, CANDIDATES, SAMPLE_SIDE, SAMPLES, TRIES
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.paths import child_path
from anonspark.kernels.vantage_points import UNITS, order_by_spread
from anonspark.layers.partition.counting import Draw, Drawn
from anonspark.layers.partition.cutting import ask_values, half, sides_satisfy
from anonspark.layers.partition.growing import Asking, Cut, Node, Questions
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

    @property
    def cuts_nearest(self) -> bool:
        """False: nothing depends on runs of equal values."""
        return False

    def of_sample(self, _weight: float) -> None:
        """None: a vantage point is a single record, drawn among all of the node."""

    def __call__(self, node: Node) -> Questions:
        """Ask for one node's draws and histograms and return its cut, None where there is none.

        Notes
        -----
        Three counting passes a node as a rule: one that draws candidates and samples, two that find
        the median distance; more where distances are tied, and one for each vantage point that is
        tried where both sides have to satisfy more than k.
        """
        if node.rows < max(2 * self.criteria.k, 2):
            return None
        points = yield from self._vantage_points(node)
        values = (yield from ask_values(node, self.criteria)) if self.criteria.sensitive else []
        d = len(self.quasi_identifiers)
        left_rows = node.rows // 2
        for point in points[:TRIES]:
            boundary = yield from half(
                node,
                (DISTANCE, *range(d)),
                vantage_point=tuple(point),
                largest_distance=self._largest_distance(),
            )
            if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
                return Cut(
                    boundary,
                    replace(node, rows=left_rows),
                    replace(node, rows=node.rows - left_rows),
                )
        return None

    def _largest_distance(self) -> int:
        """Return a distance key that no two records exceed: one beyond all rounding."""
        total = 0.0
        for quasi_identifier in self.quasi_identifiers:
            span = quasi_identifier.range / quasi_identifier.unit
            # Missing numbers lie one range beyond the largest.
            total += (span * (2 if quasi_identifier.has_missing else 1)) ** 2
        return int(1.001 * math.sqrt(total) * UNITS)

    def _vantage_points(self, node: Node) -> Asking[npt.NDArray[np.float64]]:
        """Draw candidates and put the best one first."""
        wanted = [(CANDIDATE_SIDE, CANDIDATES)]
        if self.spread:
            wanted.append((SAMPLE_SIDE, SAMPLES))
        # As many records as have been drawn below the limit, more or less; if that is too few,
        # for records of equal content count once, the limit is raised.
        share = (2 * SAMPLES + 64) / node.rows
        while True:
            limit = min(int(share * 2**64), _ALL)
            answers = yield [
                Draw(node.number, int(child_path(np.uint64(node.path), np.uint64(side))), limit)
                for side, _ in wanted
            ]
            drawn = [
                answer.codes[:most]
                for answer, (_, most) in zip(answers, wanted, strict=True)
                if isinstance(answer, Drawn)
            ]
            enough = all(len(own) == most for own, (_, most) in zip(drawn, wanted, strict=True))
            if enough or limit == _ALL:
                break
            share *= 64
        positions = [normalized_positions(codes, self.quasi_identifiers) for codes in drawn]
        if not self.spread:
            return positions[0]
        candidates, samples = positions
        ordered: npt.NDArray[np.float64] = candidates[order_by_spread(candidates, samples)]
        return ordered
