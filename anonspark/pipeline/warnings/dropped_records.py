"""Warnings of rows that are left out: many records that are dropped, and blank rows."""

from __future__ import annotations

from anonspark.core.figure_text import share_of_records
from anonspark.pipeline.warnings.release_warning import ReleaseWarning

# A fifth is more than who reads that a release is useful would expect.
_MANY = 0.2


def blank_row_warnings(blank: int, k: int) -> list[ReleaseWarning]:
    """Warn of rows without any value, of which fewer than k are not told."""
    if blank < k:
        return []
    return [
        ReleaseWarning(
            "blank_rows",
            f"{blank:,} rows have no value in any column of an attribute: they are no records, and "
            "are left out. If they are people, list a column in which they have values",
            figures={"rows": blank},
        )
    ]


def dropped_record_warnings(dropped: int, others: int, k: int) -> list[ReleaseWarning]:
    """Warn of many records that are dropped, for a quasi-identifier of theirs is missing.

    Parameters
    ----------
    dropped : int
    others : int
        The records beside them whose number is told: of a release those that are published.
    k : int
        Nothing is told of fewer records.
    """
    total = dropped + others
    if dropped < max(k, _MANY * total):
        return []
    return [
        ReleaseWarning(
            "many_dropped",
            f"{share_of_records(dropped, total, k)} are dropped, for a quasi-identifier is "
            "missing, and no figure of loss or usefulness counts them. To keep them set missing "
            "to category, or leave out the quasi-identifier that is missing most; if values were "
            "taken for missing that are none, correct input.missing_markers",
            figures={"share": round(dropped / total, 2)},
        )
    ]
