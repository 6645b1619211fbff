"""Names of columns as Spark reads them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a column name as Spark reads it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
