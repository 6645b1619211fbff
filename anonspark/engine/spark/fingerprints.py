"""Hashes of records, and fingerprints of tables that do not depend on the order of their rows."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

# A hash as parts whose sums do not overflow.
_PARTS, _BITS = 4, 16


def hash_sums(hashes: Column) -> dict[str, Column]:
    """Return aggregates that :func:`table_fingerprint` needs of hashes.

    Parameters
    ----------
    hashes : Column
        64-bit integers; nulls do not count.

    Returns
    -------
    dict of str to Column
        ``hash_xor``, and ``hash_sum_0`` to ``hash_sum_3``: the sums of 16 bits each, which hold
        2^47 rows. Sums of decimals, which would hold them whole, take Spark many times longer.
    """
    sums = {"hash_xor": sf.bit_xor(hashes)}
    for place in range(_PARTS):
        last = place == _PARTS - 1
        # The last part has the sign.
        part = sf.shiftright(hashes, _BITS * place)
        part = part if last else part.bitwiseAND(sf.lit(2**_BITS - 1))
        sums[f"hash_sum_{place}"] = sf.sum(part)
    return sums


def exact_sum() -> Column:
    """Return the sum of hashes whose :func:`hash_sums` are columns, as ``decimal(38,0)``."""
    total = sf.lit(0).cast("decimal(38,0)")
    for place in range(_PARTS):
        # A whole number that is written as one stays one: 2^48 as a float would be rounded.
        weight = sf.lit(str(1 << (_BITS * place))).cast("decimal(15,0)")
        part = sf.coalesce(sf.col(f"hash_sum_{place}"), sf.lit(0)).cast("decimal(19,0)")
        total = (total + part * weight).cast("decimal(38,0)")
    return total
