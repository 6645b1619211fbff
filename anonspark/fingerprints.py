"""Hashes of records, and fingerprints of tables that do not depend on the order of their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sf

__all__ = ["content_hash", "table_fingerprint"]


def content_hash(columns: Sequence[Column], *key: Column) -> Column:
    """Return a 64-bit hash of a record's whole content.

    Parameters
    ----------
    columns : sequence of Column
        The content. The hash function skips nulls, so which values are null is hashed, too.
    *key : Column
        Hashed first, so that only who knows it can compute the hash.
    """
    return sf.xxhash64(*key, *columns, *(column.isNull() for column in columns))


def table_fingerprint(rows: int, hash_sum: object, hash_xor: object) -> str:
    """Return what tells whether two tables hold the same records.

    Parameters
    ----------
    rows : int
        Records.
    hash_sum, hash_xor : int, Decimal or str
        Sum and exclusive or of their hashes.
    """
    return hashlib.sha256(f"{rows} {hash_sum} {hash_xor}".encode()).hexdigest()
