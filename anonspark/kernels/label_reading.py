"""Read labels of plain values and intervals from the bytes of a column of texts."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, uint8, void

# So many digits are a whole number that float64 has exactly, and so is the power of ten.
_MOST_DIGITS = 15

# Memory of Arrow, which may not be written to.
_TEXT = types.Array(uint8, 1, "C", readonly=True)
_OFFSETS = types.Array(int32, 1, "C", readonly=True)

_ZERO, _NINE, _MINUS, _POINT, _SLASH = 48, 57, 45, 46, 47
_OPEN, _CLOSE = 91, 93


@kernel(types.Tuple((int64, float64))(_TEXT, int64, int64))
def read_number(text, at, stop):
    """Read a number, and return where it ends, -1 if there is none that is read here."""
    negative = at < stop and text[at] == _MINUS
    if negative:
        at += 1
    whole, digits, behind = 0, 0, 0
    while at < stop and _ZERO <= text[at] <= _NINE:
        whole = whole * 10 + text[at] - _ZERO
        digits += 1
        if digits > _MOST_DIGITS:
            return -1, np.nan
        at += 1
    if digits == 0:
        return -1, np.nan
    if at < stop and text[at] == _POINT:
        at += 1
        while at < stop and _ZERO <= text[at] <= _NINE:
            whole = whole * 10 + text[at] - _ZERO
            digits += 1
            behind += 1
            if digits > _MOST_DIGITS:
                return -1, np.nan
            at += 1
        if behind == 0:
            return -1, np.nan
    power = 1
    for _ in range(behind):
        power *= 10
    number = float(whole) / float(power)
    return at, -number if negative else number


@kernel(int64(_TEXT, int64, int64))
def read_digits(text, at, number):
    """Read a whole number of so many digits. -1 if some are none."""
    value = 0
    for i in range(at, at + number):
        if text[i] < _ZERO or text[i] > _NINE:
            return -1
        value = value * 10 + text[i] - _ZERO
    return value


@kernel(types.Tuple((int64, float64))(_TEXT, int64, int64))
def read_day(text, at, stop):
    """Read a day as days since 1970, and return where it ends, -1 if there is none."""
    if at + 10 > stop or text[at + 4] != _MINUS or text[at + 7] != _MINUS:
        return -1, np.nan
    year = read_digits(text, at, 4)
    month = read_digits(text, at + 5, 2)
    day = read_digits(text, at + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return -1, np.nan
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 31
    if month == 2:
        last = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        last = 30
    if day > last:
        return -1, np.nan
    # Years begin in March here, so that the odd day is the last of one.
    years = year - 1 if month <= 2 else year
    months = (month + 9) % 12
    days = 365 * years + years // 4 - years // 100 + years // 400
    return at + 10, float(days + (153 * months + 2) // 5 + day - 1 - 719468)


@kernel(void(_TEXT, _OFFSETS, boolean, float64[::1], float64[::1]))
def read_plain_labels(text, offsets, days, low, high):
    """Read labels such as ``17``, ``[17-20.5]``, ``1970-01-02`` and ``[1970-01-01/1970-01-02]``.

    Parameters
    ----------
    text : uint8 ndarray
    offsets : int32 ndarray of shape (n + 1,)
        Where each label begins, and the last ends.
    days : bool
        Whether they are days, not numbers.
    low, high : float64 ndarray of shape (n,)
        Filled with the ends, and NaN for other labels: numbers of more than 15 digits and crossed
        intervals, too.

    Notes
    -----
    O(bytes) time. Numbers are those that are nearest to the texts: both parts of the fraction that
    is divided are exact.

    Examples
    --------
    >>> text = np.frombuffer(b"17[17-20.5]", np.uint8)
    >>> low, high = np.zeros(2), np.zeros(2)
    >>> read_plain_labels(text, np.array([0, 2, 11], np.int32), False, low, high)
    >>> low.tolist(), high.tolist()
    ([17.0, 17.0], [17.0, 20.5])
    """
    divider = _SLASH if days else _MINUS
    for i in range(len(offsets) - 1):
        low[i] = high[i] = np.nan
        at, stop = int64(offsets[i]), int64(offsets[i + 1])
        bracket = at < stop and text[at] == _OPEN
        if bracket:
            at += 1
        at, first = read_day(text, at, stop) if days else read_number(text, at, stop)
        if at < 0:
            continue
        if not bracket:
            if at == stop:
                low[i] = high[i] = first
            continue
        if at >= stop or text[at] != divider:
            continue
        at, last = read_day(text, at + 1, stop) if days else read_number(text, at + 1, stop)
        if at == stop - 1 and text[at] == _CLOSE and first <= last:
            low[i], high[i] = first, last
