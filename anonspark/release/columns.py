"""Names of the columns that tell of quasi-identifiers, while names of users could break a plan."""

from __future__ import annotations

__all__ = ["published_column"]


def published_column(index: int) -> str:
    """Return the numbered name of a generalized quasi-identifier."""
    return f"published_{index}"
