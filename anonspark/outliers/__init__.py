"""Layer 3: in each group, the records that stay together and those that get another round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonspark.kernels.separation import separate_outliers

__all__ = ["OutlierSeparation"]


@dataclass(frozen=True)
class OutlierSeparation:
    """Keeps the k records nearest to each group's densest point (DESIGN 4.4).

    Parameters
    ----------
    k : int
        Smallest class size.
    neighbors : int
        MinPts of the local outlier factor.
    """

    k: int
    neighbors: int

    def normal_records(
        self,
        codes: npt.NDArray[np.int64],
        normalized: npt.NDArray[np.float64],
        order: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Return whether each of ``order`` stays; see :mod:`anonspark.kernels.separation`."""
        normal: npt.NDArray[np.bool_] = separate_outliers(
            codes, normalized, order, starts, self.k, self.neighbors
        )
        return normal
