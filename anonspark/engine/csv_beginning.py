"""What a CSV file tells by its first lines: encoding, separator, whether there is a header."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from anonspark.core.recognition.names import meaning_of
from anonspark.errors import ConfigurationError

UTF_8 = "UTF-8"
"""The encoding that nobody has to say."""

POSITIONAL = re.compile(r"_c(\d+)", re.IGNORECASE)
"""What a column is called where no header names it."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Matches a first line that names the separator, as Excel writes and reads it."""

_SEPARATORS = (",", ";", "\t", "|")
_LATIN, _WINDOWS = "ISO-8859-1", "windows-1252"
_CODECS = {_LATIN: "latin-1", _WINDOWS: "cp1252"}
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Of UTF-16, one unit in so many at least has a byte that is 0.
_UNITS_WITH_ZERO = 16

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)*|\.\d+)(?:[eE][+-]?\d+)?")
_DAY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?")
_NOTHING = ("", "?", "NA", "n/a", "null", "NULL")

# Rows from which on a column without the first line's word tells that it is no value, and how
# often its values are repeated.
_ROWS_THAT_TELL, _REPETITIONS = 20, 5

# A quote that nothing ends must not take the rest of a file for its value.
_LINES_OF_A_RECORD = 100

# Up to here one column of numbers below a word is enough to tell a header.
_FEW_COLUMNS = 2


def sniff_encoding(content: bytes, file: str, key: str) -> str:
    """Return the encoding of a file that begins so, as Spark calls it.

    Raises
    ------
    ConfigurationError
        If it is one of two bytes a letter; ``key`` is what the message calls the paths.
    """
    wide = _wide_encoding(content)
    if wide is not None:
        raise ConfigurationError(
            f"{key}: {file} is written in {wide}; expected UTF-8, or a CSV file with one byte a "
            "letter and its name in the option encoding; write the file anew, for instance with "
            f"iconv -f {wide} -t UTF-8"
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        # Of the two, ISO-8859-1 has nothing but control characters there.
        return _WINDOWS if re.search(rb"[\x80-\x9f]", content) else _LATIN
    return UTF_8


def _wide_encoding(content: bytes) -> str | None:
    """Return the name of an encoding with two bytes a letter, None for others.

    Without a mark, the digits, commas and line ends of a CSV file tell it: of their two bytes one
    is 0, always the same one.
    """
    if content.startswith(_OTHER_MARKS):
        return "UTF-16"
    units = len(content) // 2
    first, second = content[0::2].count(0), content[1::2].count(0)
    most, least = max(first, second), min(first, second)
    if _UNITS_WITH_ZERO * most < units or _UNITS_WITH_ZERO * least >= most:
        return None
    return "UTF-16LE" if most == second else "UTF-16BE"


def lines_of(content: bytes, encoding: str, comment: str) -> list[str]:
    """Return the lines of a file without blank ones and comments."""
    try:
        text = content.decode(_CODECS.get(encoding, encoding), "replace")
    except LookupError:
        text = content.decode("latin-1")
    lines = re.split("[\r\n]", text.removeprefix("\ufeff"))
    return [line for line in lines if line.strip() and not (comment and line.startswith(comment))]


def records_of(lines: Sequence[str], quotes: tuple[str, str]) -> list[str]:
    """Return lines with those as one in which a quoted value goes on.

    Parameters
    ----------
    lines : sequence of str
    quotes : tuple of str
        The signs around a value and of escaping.

    Notes
    -----
    A value goes on from a line with an odd number of quotes, the last of which begins a value, to
    the line with which their number is even.
    """
    quote, escape = quotes
    if len(quote) != 1 or not any(quote in line for line in lines):
        return list(lines)
    signs = "".join(map(re.escape, _SEPARATORS))
    begins = re.compile(f"(?:^|[{signs}]){re.escape(quote)}[^{re.escape(quote)}]*$")
    counts = [
        (line.replace(escape + quote, "") if escape not in ("", quote) else line).count(quote)
        for line in lines
    ]
    records, place = [], 0
    while place < len(lines):
        end = place + 1
        if counts[place] % 2 and begins.search(lines[place]):
            odd = range(place + 1, min(place + _LINES_OF_A_RECORD, len(lines)))
            end = next((one + 1 for one in odd if counts[one] % 2), end)
        records.append("\n".join(lines[place:end]))
        place = end
    return records


def fields_of(line: str, separator: str, quotes: tuple[str, str]) -> list[str]:
    """Return the fields of a line; the quotes are the sign around a value and that of escaping."""
    quote, escape = quotes
    if len(separator) != 1 or len(quote) > 1:
        return line.split(separator or ",")
    reader = csv.reader(
        [line],
        delimiter=separator,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=escape if len(escape) == 1 and escape != quote else None,
    )
    try:
        return next(reader, [])
    except csv.Error:
        return line.split(separator)


def sniff_separator(
    lines: Sequence[str],
    quotes: tuple[str, str],
    header: bool | None,
    names: Sequence[str],
    *,
    tabs: bool,
) -> str:
    """Return what stands between fields: the comma wherever it does.

    The names of the columns decide, for they have to be there; without them the sign that cuts all
    lines into the same number of fields, the larger the better.
    """
    order = ("\t", *(one for one in _SEPARATORS if one != "\t")) if tabs else _SEPARATORS
    if not lines:
        return order[0]
    wanted = {name.lower() for name in names}
    places = [POSITIONAL.fullmatch(name) for name in names]
    needed = max((int(one[1]) + 1 for one in places if one), default=0)
    if header is not True and needed and all(places):
        # They say at least how many there are.
        for one in order:
            if len(fields_of(lines[0], one, quotes)) >= needed:
                return one
        return order[0]
    if header is not False:
        shares = {
            one: len(wanted & {field.strip().lower() for field in fields_of(lines[0], one, quotes)})
            for one in order
        }
        best = max(order, key=lambda one: shares[one])
        if shares[best] > 1 or (shares[best] == 1 and len(wanted) == 1):
            return best
    widths = {one: {len(fields_of(line, one, quotes)) for line in lines} for one in order}
    even = {one: min(own) for one, own in widths.items() if len(own) == 1 and min(own) > 1}
    return max(even, key=lambda one: even[one]) if even else order[0]


def sniff_header(rows: Sequence[Sequence[str]], names: Sequence[str]) -> bool | None:
    """Tell whether the first row names the columns, None where that is not sure."""
    if not rows:
        return None
    first = {field.strip().lower() for field in rows[0]}
    if names:
        found = sum(name.lower() in first for name in names)
        if not found and all(map(POSITIONAL.fullmatch, names)):
            return False
        if 2 * found >= len(names):
            return True
        return True if _looks_like_header(rows) else None
    return _looks_like_header(rows)


def _looks_like_header(rows: Sequence[Sequence[str]]) -> bool | None:
    first = [field.strip() for field in rows[0]]
    rest = [row for row in rows[1:] if len(row) == len(first)]
    if len(first) > 1 and not first[0] and all(row[0].strip() for row in rest):
        # R and pandas write the names of rows into a first column that has none itself.
        first, rest = first[1:], [row[1:] for row in rest]
    columns = [[row[place].strip() for row in rest] for place in range(len(first))]
    columns = [[value for value in column if value not in _NOTHING] for column in columns]
    measured = [bool(column) and all(map(_is_measured, column)) for column in columns]
    if any(own and _is_measured(name) for own, name in zip(measured, first, strict=True)):
        return False
    # Nobody calls a column as missing values are written: the first record may lack a number.
    if any(name in _NOTHING for name in first):
        return None
    if len({name.lower() for name in first}) < len(first):
        return None
    shared = [
        len(column) >= _ROWS_THAT_TELL and len(set(column)) * _REPETITIONS <= len(column)
        for column in columns
    ]
    repeated = [
        name in column for name, column, own in zip(first, columns, shared, strict=True) if own
    ]
    if any(measured):
        # A name that is a value of its column, too: one of both tells something wrong.
        if any(repeated):
            return None
        # One column alone may lack a number in the first record, where a word stands for it.
        alone = sum(measured) == 1 and len(first) > _FEW_COLUMNS
        told = any(own and not one for own, one in zip(shared, measured, strict=True))
        return None if alone and not told and not any(map(meaning_of, first)) else True
    if any(repeated):
        return False
    return True if len(repeated) > 1 else None


def _is_measured(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DAY.fullmatch(text))
