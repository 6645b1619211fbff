"""Compute fingerprints, which are equal if two tables hold the same records, in any order."""

from __future__ import annotations

import hashlib


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
