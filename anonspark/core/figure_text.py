"""Write figures for people: on a terminal, in a notebook and in a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real

_DIGITS = 3


def rounded_share(some: int, records: int, k: int) -> float | None:
    """Return a share of multiples of k records, or None if it stands for fewer than k.

    >>> rounded_share(3, 100, k=5), rounded_share(12, 100, k=5)
    (None, 0.1)
    """
    if 0 < some < k:
        return None
    return round(min(k * int(some / k + 0.5) / records, 1.0), _DIGITS)


# Larger numbers are written without decimals.
_LARGE = 10_000
# Smaller numbers are written with an exponent.
_SMALL = 1e-6


def figure_text(value: object, digits: int = 4) -> str:
    """Write a figure without zeros at its end: a number, yes or no, a text, or nothing for None.

    ``digits`` is how many digits of a fraction count, at least 1. Whole numbers keep all of theirs.

    >>> [figure_text(value) for value in (0.5, 1234567, 2 / 3, 123456.789, True, None)]
    ['0.5', '1,234,567', '0.6667', '123,457', 'yes', '']
    """
    value = _plain(value)
    if not isinstance(value, float):
        return _whole_text(value)
    if 0 < abs(value) < _SMALL:
        return f"{value:.{digits}g}"
    text = f"{value:,.{_decimals(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def figure_texts(values: Sequence[object], digits: int = 4) -> list[str]:
    """Write the figures of a column, each fraction with equally many decimals.

    ``digits`` is how many digits of the largest fraction count. See :func:`figure_text`.

    >>> figure_texts([12.3456, 0.5, 7])
    ['12.35', '0.50', '7']
    """
    plain = [_plain(value) for value in values]
    fractions = [value for value in plain if isinstance(value, float) and math.isfinite(value)]
    largest = max(map(abs, fractions), default=0.0)
    decimals = _decimals(largest, digits) if largest >= _SMALL else 0
    while decimals and all(f"{fraction:.{decimals}f}".endswith("0") for fraction in fractions):
        decimals -= 1
    return [f"{x:,.{decimals}f}" if isinstance(x, float) else _whole_text(x) for x in plain]


def figure_rows(rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[list[str]]:
    """Write some columns of a table, empty texts for what a row lacks. See :func:`figure_texts`.

    >>> figure_rows([{"k": 5, "gcp": 0.25}, {"k": 10}], ["k", "gcp"])
    [['5', '0.25'], ['10', '']]
    """
    columns = [figure_texts([row.get(name) for row in rows]) for name in names]
    return [[column[index] for column in columns] for index in range(len(rows))]


def percent(part: float, whole: float = 1, *, short: bool = False) -> str:
    """Write the share of a part in a whole, neither below 0. Only none and all are 0% and 100%.

    With ``short``, for tables, a small share is <0.1% and a large one >99.9%. Otherwise about three
    digits are written.

    >>> percent(1, 8123), percent(1, 8123, short=True), percent(0)
    ('0.012%', '<0.1%', '0%')
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
    # For a larger k, a float does not distinguish 1 / k from 1 / (k + 1).
    if probability < 1e-7:
        return 0
    k = max(1, round(1 / probability))
    return k + (1 / k > probability)


def share_of_records(some: int, records: int, k: int) -> str:
    """Write a share of at least one record in words that reveal no count below k.

    >>> [share_of_records(some, 200, k=5) for some in (3, 50, 198, 200)]
    ['fewer than 5 records', '25% of the records', 'all but fewer than 5 records', 'all records']
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
    """Convert a number of any library to one of Python. Anything else stays as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _whole_text(value: object) -> str:
    """Write a value that is not a fraction."""
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
