"""Separator and header of a CSV file by its first lines. docs/configuration.md lists the rules."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from anonspark.core.recognition.names import meaning_of

POSITIONAL = re.compile(r"_c(\d+)", re.IGNORECASE)
"""The name of a column without a header."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Matches a first line that names the separator, as Excel writes and reads it."""

_SEPARATORS = (",", ";", "\t", "|")
_MEASURED = re.compile(
    r"[+-]?(?:\d+(?:[.,]\d*)*|\.\d+)(?:[eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?"
)
_NOTHING = ("", "?", "NA", "n/a", "null", "NULL")

# Rows from which on a column shows what its values are, and how often they are repeated.
_ROWS_THAT_SHOW, _REPETITIONS = 20, 5

# A quote that nothing ends must not take the rest of a file for its value.
_LINES_OF_A_RECORD = 100

# Up to here one column of numbers below a word is enough for a header.
_FEW_COLUMNS = 2


def without_separator_line(block: bytes) -> bytes:
    """Return the beginning of a file, in UTF-8. A first line that names the separator is blank."""
    line, _, rest = block.partition(b"\n")
    return b"\n" + rest if SEPARATOR_LINE.fullmatch(line.decode()) else block


def rows_of(lines: Sequence[str], separator: str, quote: str, escape: str) -> list[list[str]]:
    """Return the fields of lines. A quoted value may have several of them."""
    if len(separator) != 1 or len(quote) > 1:
        return [line.split(separator or ",") for line in lines]
    escaping = escape if len(escape) == 1 and escape != quote else None

    def rows(some: Sequence[str]) -> list[list[str]]:
        reader = csv.reader(
            some,
            delimiter=separator,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            escapechar=escaping,
        )
        parsed, read = [], 0
        for row in reader:
            if reader.line_num - read > _LINES_OF_A_RECORD:
                raise csv.Error
            read = reader.line_num
            parsed.append(row)
        return parsed

    try:
        return rows([f"{line}\n" for line in lines])
    except csv.Error:
        return [row for line in lines for row in rows([line])]


def separator_of(
    lines: Sequence[str],
    quotes: tuple[str, str],
    header: bool | None,
    names: Sequence[str],
    *,
    tabs: bool,
) -> str:
    """Return what stands between fields.

    Parameters
    ----------
    lines : sequence of str
    quotes : tuple of str
        The signs around a value and of escaping.
    header : bool or None
        None where it is not known.
    names : sequence of str
        Of columns that have to be there.
    tabs : bool
        Whether a tab is looked for before a comma, as in files ``.tsv``.
    """
    order = sorted(_SEPARATORS, key=lambda sign: sign != "\t") if tabs else _SEPARATORS
    expected = {name.lower() for name in names}
    positions = [POSITIONAL.fullmatch(name) for name in names]
    last = (
        max((int(position[1]) for position in positions if position), default=-1)
        if all(positions)
        else -1
    )

    def fitness(sign: str) -> tuple[bool, int, int]:
        rows = rows_of(lines, sign, *quotes)
        widths = {len(row) for row in rows}
        named = len(expected & {field.strip().lower() for field in rows[0]})
        return (
            # Names such as _c3 say how many columns there are at least.
            header is not True and -1 < last < len(rows[0]),
            # A single one of several names may be a word of a text.
            named if header is not False and (named > 1 or len(expected) == 1) else 0,
            # The sign that cuts all lines into the same number of fields, the larger the better.
            widths.pop() if len(widths) == 1 else 0,
        )

    return max(order, key=fitness) if lines else order[0]


def has_decimal_comma(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column has numbers with a comma, and none has one with a point."""
    stripped = ([value.strip() for value in column] for column in zip(*rows, strict=False))
    columns = [[value for value in column if value not in _NOTHING] for column in stripped]
    return any(
        "," in "".join(column) and all(map(_WITH_COMMA.fullmatch, column)) for column in columns
    ) and not any(_WITH_POINT.fullmatch(value) for column in columns for value in column)


_WITH_COMMA = re.compile(r"[+-]?\d+(?:,\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+")


def has_header(rows: Sequence[Sequence[str]], names: Sequence[str]) -> bool | None:
    """Return whether the first row names the columns, or None if that is not sure.

    Parameters
    ----------
    rows : sequence of sequence of str
    names : sequence of str
        Of columns that have to be there.
    """
    if not rows:
        return None
    first = [field.strip() for field in rows[0]]
    lower = {name.lower() for name in first}
    named = sum(name.lower() in lower for name in names)
    if names and 2 * named >= len(names):
        return True
    if names and not named and all(map(POSITIONAL.fullmatch, names)):
        return False
    body = [row for row in rows[1:] if len(row) == len(first)]
    if len(first) > 1 and not first[0] and all(row[0].strip() for row in body):
        # R and pandas write the names of rows into a first column without a name.
        first, body = first[1:], [row[1:] for row in body]
    columns = [
        [value for row in body if (value := row[at].strip()) not in _NOTHING]
        for at in range(len(first))
    ]
    answer = _answer_of_values(first, columns)
    return answer if answer or not names else None


def _answer_of_values(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool | None:
    """Return whether words are names of columns, by the values below each of them."""
    measured = [bool(values) and all(map(_MEASURED.fullmatch, values)) for values in columns]
    repeating = [
        len(values) >= _ROWS_THAT_SHOW and len(set(values)) * _REPETITIONS <= len(values)
        for values in columns
    ]
    below = list(zip(first, columns, measured, repeating, strict=True))
    is_value = any(often and name in values for name, values, _, often in below)
    # One column alone may lack a number in the first record, where a word stands for it.
    is_alone = sum(measured) == 1 and len(first) > _FEW_COLUMNS
    is_backed = any(often > number for *_, number, often in below) or any(map(meaning_of, first))
    rules = (
        (any(number and _MEASURED.fullmatch(name) for name, _, number, _ in below), False),
        # Nobody calls a column as missing values are written: the first record may lack a number.
        (any(name in _NOTHING for name in first), None),
        (len({name.lower() for name in first}) < len(first), None),
        (is_value, None if any(measured) else False),
        (is_alone and not is_backed, None),
        (any(measured) or sum(repeating) > 1, True),
    )
    return next((answer for holds, answer in rules if holds), None)
