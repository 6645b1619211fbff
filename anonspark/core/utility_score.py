"""Score how useful a release still is, in one number and in words for data owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Smallest score of each word.
_WORDS = ((99.0, "excellent"), (95.0, "very good"), (85.0, "good"), (70.0, "fair"), (0.0, "poor"))

# Columns that a message names.
_MOST_NAMES = 8


def utility_score(loss: float) -> float:
    """Return a score from 0 (nothing is left) to 100 (every value is exact).

    Parameters
    ----------
    loss : float
        Share of its attribute's range, or of its hierarchy's values beside its own, that a
        published value covers, as a mean over all values and records, weighted as configured. 1
        for those of suppressed records.
    """
    # A mean of losses of 1 may be 1 and its last digit.
    return max(0.0, 100.0 * (1.0 - loss))


def utility_word(score: float) -> str:
    """Return the word for a score from 0 to 100."""
    return next(word for least, word in _WORDS if score >= least)


def columns_text(summary: Mapping[str, Any]) -> str:
    """Return how many columns of the input are published, empty if it is unknown."""
    published, columns = (summary.get(name) for name in ("columns_published", "columns_in"))
    if published is None:
        return ""
    of = "" if columns is None else f" of {columns:,}"
    return f"{published:,}{of} column{'s' * ((columns or published) != 1)} published"


def unpublished_text(columns: Sequence[str]) -> str:
    """Return how many columns are not published, and the first of them."""
    named = ", ".join(columns[:_MOST_NAMES])
    more = f" and {len(columns) - _MOST_NAMES:,} more" if len(columns) > _MOST_NAMES else ""
    return f"{len(columns):,} not published: {named}{more}"


def describe_utility(summary: Mapping[str, Any]) -> str:
    """Return the score in words.

    Parameters
    ----------
    summary : mapping
        Of the table ``summary``: ``utility_score``, ``rows_suppressed``, ``rows_published``,
        ``rows_left_out``, ``columns_in``, ``columns_published`` and ``k``.
    """
    if summary["utility_score"] is None:
        return "not shown, because the bounds of means would follow from it"
    score = float(summary["utility_score"])
    # What protects nobody has no praise.
    word = "not judged" if summary["k"] == 1 else utility_word(score)
    lost = ""
    if summary["rows_suppressed"] is None:
        lost = f", and fewer than {summary['k']:,} records were left out"
    elif summary["rows_suppressed"]:
        lost = f", and {_suppressed_share(summary):.2%} of the records are lost altogether"
    columns = columns_text(summary)
    return (
        f"{word} ({score:.1f} of 100 for the detail kept in the published columns"
        f"{f', {columns}' if columns else ''}): published values span "
        f"{mean_span(summary):.2%} of their column's range on average{lost}"
    )


def mean_span(summary: Mapping[str, Any]) -> float:
    """Return the share of its column's range that a value spans on average.

    Values of suppressed records, which count as the whole range in the score, do not count.
    """
    loss, suppressed = (100.0 - float(summary["utility_score"])) / 100.0, _suppressed_share(summary)
    return max(0.0, (loss - suppressed) / (1.0 - suppressed)) if suppressed < 1 else 1.0


def _suppressed_share(summary: Mapping[str, Any]) -> float:
    published, left_out, suppressed = (
        int(summary.get(f"rows_{name}") or 0) for name in ("published", "left_out", "suppressed")
    )
    return suppressed / max(published + left_out, 1)
