"""Types of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
