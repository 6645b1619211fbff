"""The thesis' "optimized k-anonymity", which the package does not do: it leaves records below k.

Records of a class that are equal in all quasi-identifiers, and are at least k, keep their values;
what is left of the class is generalized alone, however few it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from quality.csv_tables import Texts


def rests(
    table: Texts, columns: Sequence[str], lists: Sequence[Sequence[int]], k: int
) -> Iterator[int]:
    """Return how many records are left of each class, where some keep their values or none."""
    values = [table.column(name) for name in columns]
    for rows in lists:
        equal = Counter(tuple(column[row] for column in values) for row in rows)
        left = sum(records for records in equal.values() if records < k)
        if left:
            yield left


def records_below(
    table: Texts, columns: Sequence[str], lists: Sequence[Sequence[int]], k: int
) -> int:
    """Return how many records are in classes smaller than k afterwards."""
    return sum(left for left in rests(table, columns, lists, k) if left < k)
