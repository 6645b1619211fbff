"""Types of arrays that many modules name."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def table_fingerprint(rows: int, hash_sum: int, hash_xor: int) -> str:
    """Return the fingerprint of a table, equal for tables that hold the same records.

    Parameters
    ----------
    rows : int
        Records.
    hash_sum, hash_xor : int
        Sum and exclusive or of their hashes.
    """
    return hashlib.sha256(f"{rows} {hash_sum} {hash_xor}".encode()).hexdigest()


Integers = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
