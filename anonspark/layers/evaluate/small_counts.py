"""Withhold counts of records that a release leaves out if they are of fewer than k.

A count that is withheld is null wherever figures are written, and so is every count that would
reveal it by a sum or a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("rows_in", "rows_dropped_missing", "rows_suppressed", "rows_left_out")
"""Columns of the table ``summary`` that count records which are not all published."""


def is_few(records: int, k: int) -> bool:
    """Return whether a number of records must be withheld: at least one, and fewer than k."""
    return 0 < records < k


def published_counts(counts: Mapping[str, int], k: int) -> dict[str, int | None]:
    """Return the counts of a summary as they are published, None where one is withheld.

    Parameters
    ----------
    counts : mapping of str to int
        Each of :data:`COUNTS`: rows of the input, those of them left out for a missing
        quasi-identifier, records without a class, and those of them that are not published.
    k : int
    """
    dropped = is_few(counts["rows_dropped_missing"], k)
    left_out = is_few(counts["rows_left_out"], k)
    withheld = {
        # Less the published rows, which everybody counts, it would tell the others.
        "rows_in": dropped or left_out,
        "rows_dropped_missing": dropped,
        "rows_suppressed": left_out,
        "rows_left_out": left_out,
    }
    return {name: None if withheld[name] else counts[name] for name in COUNTS}


def published_missing(missing: Sequence[int], dropped: int | None, k: int) -> list[int | None]:
    """Return the missing values of each quasi-identifier as they are published.

    Parameters
    ----------
    missing : sequence of int
        Of the input.
    dropped : int or None
        Records left out because one is missing. None where none is left out for that: then all of
        them are published.
    k : int

    Returns
    -------
    list of int or None
        All are None where one of them, what it leaves of the records that were left out, or the
        number of values that are missing twice in a record, would be of fewer than k: a 0 among
        them would reveal what the others lack.
    """
    if dropped is None:
        return list(missing)
    revealing = [*missing, *(dropped - count for count in missing), sum(missing) - dropped]
    if any(is_few(count, k) for count in revealing):
        return [None] * len(missing)
    return list(missing)


def least_count(summary: Mapping[str, Any], name: str) -> Any:
    """Return a figure of a summary. Of a count that is withheld, the least that it can be.

    Runs are compared by it: the least of a count of fewer than k records is 0.

    Parameters
    ----------
    summary : mapping
        A row of the table.
    name : str
        Of the figure.
    """
    figure = summary.get(name)
    if figure is not None or name not in COUNTS or summary.get("rows_published") is None:
        return figure
    if name != "rows_in":
        return 0
    others = (summary.get("rows_dropped_missing"), summary.get("rows_left_out"))
    return summary["rows_published"] + sum(count or 0 for count in others)
