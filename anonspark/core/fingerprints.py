"""Compute fingerprints, which are equal if two tables hold the same records, in any order."""

from __future__ import annotations

import hashlib


def table_fingerprint(rows: int, hash_sum: int, hash_xor: int) -> str:
    """Return the fingerprint of a table from its records, and the sum and the XOR of their hashes.

    >>> table_fingerprint(2, hash_sum=12, hash_xor=6)[:8]
    'd652e3e4'
    """
    return hashlib.sha256(f"{rows} {hash_sum} {hash_xor}".encode()).hexdigest()
