"""Shares of records that reveal nothing of fewer than k of them."""

from __future__ import annotations

_DIGITS = 3


def rounded_share(some: int, records: int, k: int) -> float | None:
    """Return a share of multiples of k records, or None if it stands for fewer than k."""
    if 0 < some < k:
        return None
    return round(min(k * int(some / k + 0.5) / records, 1.0), _DIGITS)
