"""Withhold counts of records that a release leaves out if they are of fewer than k.

A withheld count is null wherever figures are written, and so is every count that would reveal it by
a sum or a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("rows_in", "rows_dropped_missing", "rows_suppressed", "rows_left_out")
"""Columns of the table ``summary`` that count records which are not all published."""


def is_few(records: int, k: int) -> bool:
    """Return whether a number of records must be withheld: at least one, and fewer than k.

    >>> [is_few(records, k=5) for records in (0, 4, 5)]
    [False, True, False]
    """
    return 0 < records < k


def published_counts(counts: Mapping[str, int], k: int) -> dict[str, int | None]:
    """Return the counts of a summary, with None for those that the release has to withhold.

    ``counts`` has each of :data:`COUNTS`: rows of the input, those left out because a
    quasi-identifier is missing, records without a class, and those of them that are not published.

    >>> published_counts(dict(zip(COUNTS, (100, 2, 9, 9))), k=5)["rows_in"] is None
    True
    """
    dropped = is_few(counts["rows_dropped_missing"], k)
    left_out = is_few(counts["rows_left_out"], k)
    withheld = {
        # Minus the published rows, which everyone can count, it would reveal the others.
        "rows_in": dropped or left_out,
        "rows_dropped_missing": dropped,
        "rows_suppressed": left_out,
        "rows_left_out": left_out,
    }
    return {name: None if withheld[name] else counts[name] for name in COUNTS}


def published_missing(missing: Sequence[int], dropped: int | None, k: int) -> list[int | None]:
    """Return the missing values of each quasi-identifier as they are published: all, or all None.

    ``dropped`` is the number of records left out for a missing value, or None if none is left out:
    then all counts are published. Otherwise none is published if a reader could compute a number of
    fewer than k records: a count, the rest of ``dropped``, or the values missing besides the first
    of a record. If single counts were None, a 0 among the others would reveal them.

    >>> published_missing([7, 0], 7, k=5), published_missing([7, 2], 9, k=5)
    ([7, 0], [None, None])
    """
    if dropped is None:
        return list(missing)
    revealing = [*missing, *(dropped - count for count in missing), sum(missing) - dropped]
    if any(is_few(count, k) for count in revealing):
        return [None] * len(missing)
    return list(missing)


def least_count(summary: Mapping[str, Any], name: str) -> Any:
    """Return a figure of a row of the table ``summary``, or the least that a withheld count can be.

    Runs are compared by it: the least of a count of fewer than k records is 0.

    >>> least_count({"rows_published": 90, "rows_left_out": None}, "rows_left_out")
    0
    """
    figure = summary.get(name)
    if figure is not None or name not in COUNTS or summary.get("rows_published") is None:
        return figure
    if name != "rows_in":
        return 0
    others = (summary.get("rows_dropped_missing"), summary.get("rows_left_out"))
    return summary["rows_published"] + sum(count or 0 for count in others)
