"""Layer 3: in each group, the records that stay together and those that get another round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonspark.kernels.separation import separate_outliers
from anonspark.privacy.criteria import Criteria

__all__ = ["OutlierSeparation"]


@dataclass(frozen=True)
class OutlierSeparation:
    """Keeps the records nearest to each group's densest point (DESIGN 4.4).

    Parameters
    ----------
    criteria : Criteria
        What the records that stay satisfy.
    neighbors : int
        Neighbours that a record is judged by.
    by_density : bool
        Whether the densest point is the one with the smallest sum of distances to its neighbours,
        not the one with the smallest local outlier factor.
    """

    criteria: Criteria
    neighbors: int
    by_density: bool

    def normal_records(
        self,
        codes: npt.NDArray[np.int64],
        normalized: npt.NDArray[np.float64],
        values: npt.NDArray[np.int64],
        order: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return whether each of ``order`` stays; see :mod:`anonspark.kernels.separation`."""
        normal: npt.NDArray[np.bool_] = separate_outliers(
            codes,
            normalized,
            values,
            order,
            starts,
            self.criteria.requirements,
            self.neighbors,
            self.by_density,
        )
        return normal
