"""Recognize separator and header of a CSV file by its first lines.

docs/configuration.md lists the rules.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence

from anonspark.core.recognition.names import meaning_of

POSITIONAL = re.compile(r"_c(\d+)", re.IGNORECASE)
"""Matches the name that a column gets if there is no header."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Matches a first line that names the separator, as Excel writes and reads it."""

_SEPARATORS = (",", ";", "\t", "|")
_MEASURED = re.compile(
    r"[+-]?(?:\d+(?:[.,]\d*)*|\.\d+)(?:[eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?"
)
_NOTHING = ("", "?", "NA", "n/a", "null", "NULL")

# A column of so many values, each so often on average, is one of categories.
_ROWS_THAT_SHOW, _REPETITIONS = 20, 5

# A quote that does not end must not take the rest of a file for one value.
_LINES_OF_A_RECORD = 100

# In so few columns one with numbers below a word is enough for a header.
_FEW_COLUMNS = 2


def without_separator_line(block: bytes) -> bytes:
    r"""Blank a first line that names the separator, in the beginning of a file in UTF-8.

    >>> without_separator_line(b"sep=;\nage;sex")
    b'\nage;sex'
    """
    line, _, rest = block.partition(b"\n")
    return b"\n" + rest if SEPARATOR_LINE.fullmatch(line.decode()) else block


def rows_of(lines: Sequence[str], separator: str, quote: str, escape: str) -> list[list[str]]:
    """Split lines into fields. A quoted value may span several lines.

    >>> rows_of(["age;city", '39;"Ash; ford"'], ";", '"', '"')
    [['age', 'city'], ['39', 'Ash; ford']]
    """
    if len(separator) != 1 or len(quote) > 1:
        return [line.split(separator or ",") for line in lines]
    escaping = escape if len(escape) == 1 and escape != quote else None

    def rows(quoted_lines: Sequence[str]) -> list[list[str]]:
        reader = csv.reader(
            quoted_lines,
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
    """Detect the sign between fields: comma, semicolon, tab or vertical bar, the first on a tie.

    ``quotes`` are the signs around a value and of escaping, ``header`` is None if unknown, and
    ``names`` are expected columns. With ``tabs``, as in files ``.tsv``, a tab is preferred.

    >>> separator_of(["age;city", "39;Ashford"], ('"', '"'), None, [], tabs=False)
    ';'
    >>> separator_of(["age,city", "39,Ash, ford", "41,Oakport"], ('"', '"'), None, [], tabs=False)
    ','
    """
    order = sorted(_SEPARATORS, key=lambda sign: sign != "\t") if tabs else _SEPARATORS
    expected = {name.lower() for name in names}
    indices = [int(match[1]) for match in map(POSITIONAL.fullmatch, names) if match]
    highest_index = max(indices, default=-1) if len(indices) == len(names) else -1

    def fitness(sign: str) -> tuple[bool, int, int, int]:
        rows = rows_of(lines, sign, *quotes)
        width, alike = Counter(map(len, rows)).most_common(1)[0]
        names_in_row = len(expected & {field.strip().lower() for field in rows[0]})
        return (
            # Names such as _c3 show how many columns there are at least.
            header is not True and -1 < highest_index < len(rows[0]),
            # If one of several names is in the line, it may be a word of a text.
            names_in_row if header is not False and (names_in_row > 1 or len(expected) == 1) else 0,
            # The sign that cuts all lines into the same number of fields, the larger the better.
            width if width > 1 and alike == len(rows) else 0,
            # A sign that is in no line cuts all alike, too. Readers name a line that differs.
            alike if width > 1 else 0,
        )

    return max(order, key=fitness) if lines else order[0]


def has_decimal_comma(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column has numbers with a comma, and no column has any with a point.

    >>> has_decimal_comma([["39", "1,5"], ["41", "2"]])
    True
    """
    stripped = ([value.strip() for value in column] for column in zip(*rows, strict=False))
    columns = [[value for value in column if value not in _NOTHING] for column in stripped]
    return any(
        "," in "".join(column) and all(map(_WITH_COMMA.fullmatch, column)) for column in columns
    ) and not any(_WITH_POINT.fullmatch(value) for column in columns for value in column)


_WITH_COMMA = re.compile(r"[+-]?\d+(?:,\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+")


def has_header(rows: Sequence[Sequence[str]], names: Sequence[str]) -> bool | None:
    """Return whether the first row names the columns, or None if that is uncertain.

    ``names`` are expected columns. They decide if at least half of them are in the row.

    >>> has_header([["age", "city"], ["39", "Ashford"]], [])
    True
    >>> has_header([["39", "Oakport"], ["41", "Ashford"]], [])
    False
    """
    if not rows:
        return None
    first = [field.strip() for field in rows[0]]
    lower = {name.lower() for name in first}
    names_in_row = sum(name.lower() in lower for name in names)
    if names and 2 * names_in_row >= len(names):
        return True
    if names and not names_in_row and all(map(POSITIONAL.fullmatch, names)):
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
    """Return whether words name columns, by comparison with the values below, or None if unsure."""
    measured = [bool(values) and all(map(_MEASURED.fullmatch, values)) for values in columns]
    repeating = [
        len(values) >= _ROWS_THAT_SHOW and len(set(values)) * _REPETITIONS <= len(values)
        for values in columns
    ]
    below = list(zip(first, columns, measured, repeating, strict=True))
    is_value = any(often and name in values for name, values, _, often in below)
    # In a single column of numbers the first record may have a word for a missing number.
    is_alone = sum(measured) == 1 and len(first) > _FEW_COLUMNS
    is_backed = any(often > number for *_, number, often in below) or any(map(meaning_of, first))
    rules = (
        (any(number and _MEASURED.fullmatch(name) for name, _, number, _ in below), False),
        # No column has the name of a missing value: the first record may lack a number.
        (any(name in _NOTHING for name in first), None),
        (len({name.lower() for name in first}) < len(first) and sum(measured) < 2, None),
        (is_value, None if any(measured) else False),
        (is_alone and not is_backed, None),
        (any(measured) or sum(repeating) > 1, True),
    )
    return next((answer for holds, answer in rules if holds), None)
