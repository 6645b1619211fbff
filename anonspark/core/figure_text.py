"""Figures as people read them: on a terminal, in a notebook and in a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real

_DIGITS = 3


def rounded_share(some: int, records: int, k: int) -> float | None:
    """Return a share of multiples of k records, or None if it stands for fewer than k."""
    if 0 < some < k:
        return None
    return round(min(k * int(some / k + 0.5) / records, 1.0), _DIGITS)


# From here on, decimals say nothing.
_LARGE = 10_000
# Below, zeros could not be counted.
_SMALL = 1e-6


def figure_text(value: object, digits: int = 4) -> str:
    """Return a figure as text, without zeros at its end.

    Parameters
    ----------
    value : object
        A number, yes or no, a text, or None for nothing.
    digits : int
        How many of a fraction's digits count, at least 1. Whole numbers have all of theirs.
    """
    value = _plain(value)
    if not isinstance(value, float):
        return _whole_text(value)
    if 0 < abs(value) < _SMALL:
        return f"{value:.{digits}g}"
    text = f"{value:,.{_decimals(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure_texts(values: Sequence[object], digits: int = 4) -> list[str]:
    """Return the figures of a column as texts, each fraction with as many decimals.

    Parameters
    ----------
    values : sequence of object
        As those of :func:`figure_text`.
    digits : int
        How many digits of the largest fraction count.
    """
    plain = [_plain(value) for value in values]
    fractions = [value for value in plain if isinstance(value, float) and math.isfinite(value)]
    largest = max(map(abs, fractions), default=0.0)
    decimals = _decimals(largest, digits) if largest >= _SMALL else 0
    while decimals and all(f"{fraction:.{decimals}f}".endswith("0") for fraction in fractions):
        decimals -= 1
    return [f"{x:,.{decimals}f}" if isinstance(x, float) else _whole_text(x) for x in plain]


def figure_rows(rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[list[str]]:
    """Return some figures of each row as texts. See :func:`figure_texts`.

    Parameters
    ----------
    rows : sequence of mapping
        One that lacks a figure has an empty text.
    names : sequence of str
        Of the columns.
    """
    columns = [figure_texts([row.get(name) for row in rows]) for name in names]
    return [[column[index] for column in columns] for index in range(len(rows))]


def percent(part: float, whole: float = 1, *, short: bool = False) -> str:
    """Return a share as text: 0% and 100% are none and all.

    Parameters
    ----------
    part : float
        At least 0.
    whole : float
        At least as much.
    short : bool
        Whether a small share is <0.1% and a large one >99.9%, for tables. If not, three digits or
        so are written, such as 0.0123%, and more than 99.9%.
    """
    if part in (0, whole):
        return "100%" if part else "0%"
    value = 100 * part / whole
    if 99.95 <= value < 100:
        return ">99.9%" if short else "more than 99.9%"
    if short and value < 0.1:
        return "<0.1%"
    return f"{value:.1f}%" if short or value >= 1 else f"{value:.2g}%"


def k_of(probability: float) -> int:
    """Return the smallest k with 1 / k of at most a probability, or 0 if no k is.

    >>> [k_of(probability) for probability in (0.09, 1 / 11, 0)]
    [12, 11, 0]
    """
    # Beyond, a float does not distinguish 1 / k from 1 / (k + 1).
    if probability < 1e-7:
        return 0
    k = max(1, round(1 / probability))
    return k + (1 / k > probability)


def share_of_records(some: int, records: int, k: int) -> str:
    """Return a share of records in words that reveal no count below k.

    Parameters
    ----------
    some : int
    records : int
        All of them, at least 1.
    k : int
    """
    if some == records:
        return "all records"
    if 0 < some < k:
        return f"fewer than {k:,} records"
    if records - some < k:
        return f"all but fewer than {k:,} records"
    share = 100 * some / records
    return f"{share:.0f}% of the records" if share >= 1 else f"{share:.2g}% of the records"


def _plain(value: object) -> object:
    """Return a number, of whatever library, as one of Python. Anything else as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _whole_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _decimals(value: float, digits: int) -> int:
    """Return after how many decimals a fraction has so many digits."""
    if value == 0 or not math.isfinite(value) or abs(value) >= _LARGE:
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))
