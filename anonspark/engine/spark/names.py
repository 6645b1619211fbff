"""Quote names of columns for Spark."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote the name of a column, so that Spark reads it whatever characters it has.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"
