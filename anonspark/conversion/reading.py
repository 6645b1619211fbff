"""Read foreign files in a child process, so that no file harms a process that holds keys.

The process gets a :class:`Request` as JSON on its standard input. It prints the number of each file
before it reads the file, and in the last line what the columns became, or why nothing was written.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import resource
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.compression import unpacked
from anonspark.engine.csv_beginning import has_header
from anonspark.errors import ConfigurationError, DataError

# Days and moments are counted from these: by Stata and SAS, and by SPSS (the Gregorian calendar).
_1960, _1582 = datetime(1960, 1, 1), datetime(1582, 10, 14)
_NUMBERS = {"integer", "float", "number"}
_TYPES = {
    "boolean": pa.bool_(),
    "day": pa.date32(),
    "empty": pa.string(),
    "float": pa.float32(),
    "integer": pa.int64(),
    "moment": pa.timestamp("us"),
    "number": pa.float64(),
    "seconds": pa.float64(),
    "text": pa.string(),
}

Meaning = tuple[str, Callable[[Any], Any]]
"""The kind of a column's values, and a function that converts a number to such a value. It raises
ValueError, OverflowError or TypeError if there is no such value."""


class Options(NamedTuple):
    """Options of reading files, as :func:`anonspark.convert` describes them."""

    sheet: str | None = None
    header_row: int | None = None
    hidden: str | None = None
    encoding: str | None = None
    catalog: str | None = None
    types: Mapping[str, str] = MappingProxyType({})


class Request(NamedTuple):
    """The files to read, the file to write, the MiB of memory, and how to read."""

    files: Sequence[str]
    target: str
    memory: int
    options: Options


def whole_day(moment: datetime) -> date:
    """Return the day of a moment. Raises ValueError if a time of day would get lost.

    >>> whole_day(datetime(2026, 1, 31))
    datetime.date(2026, 1, 31)
    """
    if moment.time() != time.min:
        raise ValueError
    return moment.date()


def _moment(zero: datetime, unit: str, count: float) -> datetime:
    """Return the moment that is a number of units after another one.

    >>> _moment(_1960, "seconds", 90)
    datetime.datetime(1960, 1, 1, 0, 1, 30)
    """
    return zero + timedelta(**{unit: count})


def _day(zero: datetime, unit: str, count: float) -> date:
    """Return the day that is a number of units after a moment."""
    return whole_day(_moment(zero, unit, count))


def _whole(count: float) -> int:
    """Return a float that is a whole number. Raises ValueError if it is not."""
    if count != int(count):
        raise ValueError
    return int(count)


def _month(months: int, count: float) -> date:
    """Return the first day of a month, quarter or half-year, counted from 1960.

    >>> _month(3, 5)
    datetime.date(1961, 4, 1)
    """
    month = _whole(count) * months
    return date(1960 + month // 12, month % 12 + 1, 1)


def _week(count: float) -> date:
    """Return the first day of a week of Stata, of which each year has 52, counted from 1960.

    >>> _week(53)
    datetime.date(1961, 1, 8)
    """
    return date(1960 + _whole(count) // 52, 1, 1) + timedelta(days=7 * (_whole(count) % 52))


NUMBER: Meaning = ("number", float)
_SECONDS: Meaning = ("seconds", float)

# Display formats without width and decimals. Others are refused, never guessed at.
_FORMATS: dict[str, dict[str, Meaning]] = {
    "spss": {
        r"F|N|E|Z|COMMA|DOT|DOLLAR|PCT|CC[A-E]|IB|PIB|PIBHEX|P|PK|RB|RBHEX": NUMBER,
        r"[AESJ]?DATE|MOYR|QYR|WKYR": ("day", partial(_day, _1582, "seconds")),
        r"DATETIME|YMDHMS": ("moment", partial(_moment, _1582, "seconds")),
        r"[DM]?TIME": _SECONDS,
    },
    "sas": {
        # Whatever part of a date these show, the value is a day.
        r"([EB]8601|IS8601)DA|DATE|DAY|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|(YYMM|MMYY|YYQR?)[CDNPS]?"
        r"|YYMON|YYQZ|MONYY|QTRR?|YEAR|MONTH|MONNAME|DOWNAME|WEEKDAY|(WEEK|WORD)DAT[EX]|WEEK[UVW]"
        r"|JULIAN|JULDAY|NLDATE[A-Z]*": ("day", partial(_day, _1960, "days")),
        r"DATETIME|DATEAMPM|MDYAMPM|DT(DATE|MONYY|WKDATX|YEAR|YYQC)|([EB]8601|IS8601)D[TN]"
        r"|NLDATM[A-Z]*": ("moment", partial(_moment, _1960, "seconds")),
        r"TIME|HHMM|HOUR|MMSS|([EB]8601|IS8601)TM|NLTIME": _SECONDS,
        # Users name formats of numbers as they like.
        r"(?!.*(DAT|DAY|TIM|MON|YY|YEAR|QTR|WEEK|JUL|8601|HOUR)"
        r"|TOD|DT|NENGO|MINGUO|HEB|HDATE|EURDF).*": NUMBER,
    },
    "stata": {
        r"%[-~0]*\d*([.,]\d+)?[gfe]c?|%21x|%(8|16)[HL]|": NUMBER,
        r"%-?t?d.*": ("day", partial(_day, _1960, "days")),
        r"%-?tc.*": ("moment", partial(_moment, _1960, "milliseconds")),
        r"%-?tm.*": ("day", partial(_month, 1)),
        r"%-?tq.*": ("day", partial(_month, 3)),
        r"%-?th.*": ("day", partial(_month, 6)),
        r"%-?tw.*": ("day", _week),
        r"%-?ty.*": ("integer", _whole),
    },
}


def meaning_of(program: str, display: str) -> Meaning | None:
    """Return what a column counts by its display format, or None if the format is not known.

    >>> meaning_of("stata", "%tcHH:MM")[0], meaning_of("sas", "MONYY7.")[0]
    ('moment', 'day')
    >>> meaning_of("stata", "%tbnyse") is None
    True
    """
    if program != "stata":
        display = re.sub(r"(?<=[A-Z])\d*(\.\d*)?$", "", display.upper())
    formats = _FORMATS[program].items()
    return next((meaning for form, meaning in formats if re.fullmatch(form, display)), None)


@dataclass(frozen=True)
class Column:
    """A column of a file: its values, or their codes if they have labels, with None for missing.

    ``source`` is its type or display format in the file, in words, and ``about`` the label of the
    variable. The kind ``empty`` fits all others.
    """

    name: str
    source: str
    kind: str
    values: list[Any]
    labels: Mapping[Any, str] = field(default_factory=dict)
    about: str = ""
    note: str = ""

    def array(self) -> pa.Array:
        """Return the values as an array. Codes become labels, in the order of the codes.

        A code without a label becomes its own text, as in haven's as_factor and in pandas.

        >>> column = Column("sex", "F1", "integer", [2, 1, 9], {1: "male", 2: "female"})
        >>> column.array().to_pylist()
        ['female', 'male', '9']
        """
        if not self.labels:
            return pa.array(self.values, _TYPES[self.kind])
        codes = sorted({*self.labels, *self.values} - {None})
        label_texts = set(self.labels.values())
        texts = [self.labels.get(code) or _own_text(code, label_texts) for code in codes]
        positions = {code: position for position, code in enumerate(codes)}
        indices = pa.array([positions.get(value) for value in self.values], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, texts, ordered=True)


def converted(
    values: Sequence[Any], meaning: Meaning, rows: Sequence[int], name: str, path: str
) -> list[Any]:
    """Convert the numbers of a column to values of its kind. None stays.

    Raises DataError with the row of a number that is no such value, such as a day after the year
    9999 or half a day.

    >>> converted([0, None], ("day", partial(_day, _1960, "days")), [1, 2], "birth", "a.dta")
    [datetime.date(1960, 1, 1), None]
    """
    kind, convert = meaning
    result = []
    for row, value in zip(rows, values, strict=True):
        try:
            result.append(None if value is None else convert(value))
        except (ValueError, OverflowError, TypeError):
            raise DataError(
                f"{path}: the column {name!r}, row {row:,}: expected {kind} (days have no time "
                "of day, years are 1 to 9999, workbooks keep numbers below 2^53, and a time of day "
                f"is below 24 hours). Correct it, or read the bare number with --type {name}=number"
            ) from None
    return result


def labels_that_apply(labels: Mapping[Any, str], *, of_text: bool) -> dict[Any, str]:
    """Return the labels that replace the codes of a column, or {} if codes stay.

    No value decides this, so no record changes how others are read. Codes stay if they have a
    single label, which marks an end such as "89 or older", or equal labels, which would merge them.

    >>> labels_that_apply({1: "male", 2: "female"}, of_text=False)
    {1: 'male', 2: 'female'}
    >>> labels_that_apply({89: "89 or older"}, of_text=False)
    {}
    """
    texts = {
        code: text.strip()
        for code, text in labels.items()
        # Stata has letters for missing values, which may have labels, too.
        if isinstance(code, str) == of_text and text.strip()
    }
    return texts if len(texts) >= 2 and len(set(texts.values())) == len(texts) else {}


def _own_text(code: object, taken: Collection[str]) -> str:
    """Return the text of a code without a label, different from the labels of other codes.

    >>> _own_text(9.0, {"male", "9"})
    'code 9'
    """
    text = text_of(code)
    return f"code {text}" if text in taken else text


def text_of(value: object) -> str:
    """Return a value as text, a whole number without a point.

    >>> text_of(9.0), text_of(9.5)
    ('9', '9.5')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def unite(parts: Sequence[tuple[str, Sequence[Column]]]) -> list[Column]:
    """Unite the columns of the files of one table.

    Raises DataError with a column that some files lack, or have with other types or labels.
    """
    (first_file, columns), *rest = parts
    united = {column.name: column for column in columns}
    for file, columns in rest:
        files = f"{first_file}, {file}"
        lacking = united.keys() ^ {column.name for column in columns}
        if lacking:
            raise DataError(
                f"{files}: only one of them has the column {min(lacking)!r}. Expected the same "
                "columns in all files. Convert the files apart, or write them anew"
            )
        for column in columns:
            united[column.name] = _united(united[column.name], column, files)
    return list(united.values())


def _united(first: Column, other: Column, files: str) -> Column:
    """Append another file's values to a column. Integers become floats if they meet them."""
    kinds = {first.kind, other.kind} - {"empty"}
    is_same = len(kinds) < 2 or kinds <= _NUMBERS
    if not is_same or (
        first.labels != other.labels and len(kinds) == len({first.kind, other.kind})
    ):
        raise DataError(
            f"{files}: the column {first.name!r} has other types or value labels in one file than "
            "in the other. Expected the same in all files. Write it anew, or say --type "
            f"{first.name}=number if bare numbers will do"
        )
    filled = other if first.kind == "empty" else first
    kind = "number" if len(kinds) > 1 else filled.kind
    return replace(filled, kind=kind, values=first.values + other.values)


Rows = dict[int, dict[int, tuple[str, Any]]]
"""Cells that have a value, by row and column: the kind of each and its value."""

_ROWS_LOOKED_AT = 1000
# A sheet with more than 20 times its cells, and a million, between them has some by mistake.
_SPREAD, _SMALL = 20, 1_000_000
_LONGEST = 2**53
_NO_RESULT = "formula without a result"
_READ = {"number", "text", "boolean", "day", "moment", "time", "seconds"}
_KINDS = {"s": "text", "b": "boolean", "e": "error", "d": "text of a date"}


def read_sheet(content: IO[bytes], options: Options, notes: list[str], path: str) -> list[Column]:
    """Read the columns of a workbook's sheet.

    Raises ConfigurationError if it is uncertain which sheet, which row of names or which records
    are meant, and DataError if a column has cells of several kinds, or cells cannot be read as they
    are displayed.
    """
    book = _open(content)
    sheet = _chosen(book, options.sheet, notes, path)
    rows, parser = _cells(book, sheet)
    if not rows:
        raise DataError(f"{path}: no cell of the sheet has a value")
    last_row, last_column = max(rows), max(map(max, rows.values()))
    if last_row * last_column > _SPREAD * sum(map(len, rows.values())) + _SMALL:
        raise DataError(
            f"{path}: the sheet has cells far from the others, in row {last_row:,} or column "
            f"{last_column:,}. Delete them, or copy the table to a new workbook"
        )
    header = _header_row(rows, path) if options.header_row is None else options.header_row
    if header and header not in rows:
        raise ConfigurationError(f"{path}: --header-row: row {header:,} has no cell with a value")
    names = {column: text_of(cell[1]).strip() for column, cell in rows.get(header, {}).items()}
    records = {row: cells for row, cells in rows.items() if row > header}
    hidden = {int(row) for row, about in parser.row_dimensions.items() if _is_hidden(about)}
    if hidden := hidden & records.keys():
        if options.hidden not in ("keep", "drop"):
            raise ConfigurationError(
                f"{path}: {len(hidden):,} of {len(records):,} records are in rows that are hidden, "
                "by a filter or by hand. They may be people who withdrew. Say --hidden drop to "
                "leave them out, or --hidden keep to convert them"
            )
        notes.append(f"{path}: {len(hidden):,} hidden rows (--hidden {options.hidden})")
        if options.hidden == "drop":
            records = {row: cells for row, cells in records.items() if row not in hidden}
    for column in {column for cells in records.values() for column in cells} - names.keys():
        names[column] = f"_c{column - 1}"
    merged = () if parser.merged_cells is None else parser.merged_cells.mergeCell
    for left, top, right, bottom in (cells.bounds for cells in merged):
        if bottom >= header and any(column in names for column in range(left, right + 1)):
            raise DataError(
                f"{path}: the column {names.get(left, left)!r} has merged cells (row {top:,}), "
                "which have one value together. Unmerge them, and fill each cell"
            )
    epoch, types = book.epoch, options.types
    return [
        _column(name, records, column, types.get(name), epoch, path)
        for column, name in sorted(names.items())
    ]


def _open(content: IO[bytes]) -> Any:
    """Open a workbook without its charts, links and properties, which no table needs."""
    from openpyxl.packaging.manifest import Override
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.styles.stylesheet import apply_stylesheet
    from openpyxl.xml.constants import SHARED_STRINGS, XLSX

    reader = ExcelReader(content, read_only=True, data_only=True, keep_links=False)
    reader.read_manifest()
    # Some programs do not list these parts in the manifest.
    for part, kind in (("xl/workbook.xml", XLSX), ("xl/sharedStrings.xml", SHARED_STRINGS)):
        if part in reader.valid_files:
            reader.package.Override.append(Override(f"/{part}", kind))
    reader.read_strings()
    reader.read_workbook()
    apply_stylesheet(reader.archive, reader.wb)
    reader.read_worksheets()
    return reader.wb


def _chosen(book: Any, title: str | None, notes: list[str], path: str) -> Any:
    """Choose the sheet that is named, or the only visible one that has a cell with a value."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if title in sheets:
        return sheets[title]
    filled = [name for name, sheet in sheets.items() if _cells(book, sheet, limit=1)[0]]
    visible = [name for name in filled if sheets[name].sheet_state == "visible"]
    listed = ", ".join(repr(name) if name in visible else f"{name!r} (hidden)" for name in filled)
    if title or len(visible) != 1:
        raise ConfigurationError(
            f"{path}: found the sheets {listed or 'without a value only'}. Expected one visible "
            "sheet with cells that have a value. Name the one that has the table: --sheet NAME"
        )
    if len(filled) > 1:
        notes.append(f"{path}: of the sheets {listed}, only the visible one is converted")
    return sheets[visible[0]]


def _cells(book: Any, sheet: Any, limit: int | None = None) -> tuple[Rows, Any]:
    """Read the cells of a sheet, or of its first rows, and return the parser with the rest."""
    # Of openpyxl's public readers one hides hidden rows, and the other takes too much memory.
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    rows: Rows = {}
    number_kind = cache(partial(_number_kind, book))

    def read(element: Any) -> Any:
        cell = parse(element)
        value, kind = cell["value"], cell["data_type"]
        kind = number_kind(cell["style_id"]) if kind == "n" else _KINDS.get(kind, kind)
        if value is None and element.find(FORMULA_TAG) is not None and element.get("t") != "str":
            kind, value = _NO_RESULT, _NO_RESULT
        if value is not None and str(value).strip():
            rows.setdefault(cell["row"], {})[cell["column"]] = (kind, value)
        return cell

    with sheet._get_source() as source:
        parser = WorkSheetParser(source, sheet._shared_strings, data_only=True)
        parse, parser.parse_cell = parser.parse_cell, read
        for _ in parser.parse():
            if limit and len(rows) >= limit:
                break
    return dict(sorted(rows.items())), parser


def _is_hidden(row: Mapping[str, str]) -> bool:
    """Return whether a row is hidden, by a filter or by its height."""
    return row.get("hidden", "0") in ("1", "true") or float(row.get("ht", 1)) == 0


def _number_kind(book: Any, style: int) -> str:
    """Return the kind of a number by the display format of its cell."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, STRIP_RE, is_datetime, is_timedelta_format

    number = book._cell_styles[style].numFmtId
    display = BUILTIN_FORMATS.get(number) if number < 164 else book._number_formats[number - 164]
    if display is None:
        return "date or time of a language"
    if is_timedelta_format(display):
        return "seconds"
    kind = is_datetime(STRIP_RE.sub("", display.split(";")[0]).lower())
    return {"date": "day", "datetime": "moment", "time": "time", None: "number"}[kind]


def _header_row(rows: Rows, path: str) -> int:
    """Return the number of the row with the names: the first with over half of the columns.

    Raises ConfigurationError unless its texts are above values of another kind, or form a header.
    """
    width = max(map(len, rows.values()))
    first = next(row for row, cells in rows.items() if 2 * len(cells) > width)
    first_rows = [cells for row, cells in rows.items() if row >= first][:_ROWS_LOOKED_AT]
    columns = sorted({column for cells in first_rows for column in cells})
    texts = [[text_of(cells.get(at, ("", ""))[1]) for at in columns] for cells in first_rows]
    below = [[cells[at][0] for cells in first_rows[1:] if at in cells] for at in columns]
    is_typed = any(2 * kinds.count("text") < len(kinds) for kinds in below)
    is_named = is_typed and all(kind == "text" for kind, _ in rows[first].values())
    if not is_named and not has_header(texts, []):
        raise ConfigurationError(
            f"{path}: nothing shows which row of the sheet names the columns. Say --header-row "
            f"{first} if that one does, or --header-row 0 if none does, which calls them _c0, _c1 "
            "and so on"
        )
    return first


def _column(
    name: str, records: Rows, column: int, declared: str | None, epoch: Any, path: str
) -> Column:
    """Return a column whose cells are of one kind, or raise DataError."""
    cells = [cells.get(column, ("", None)) for cells in records.values()]
    first_rows: dict[str, int] = {}
    for row, (kind, _) in zip(records, cells, strict=True):
        first_rows.setdefault(kind, row)
    errors = sum(kind == "error" for kind, _ in cells)
    note = f"missing are {errors:,} cells with an error, such as #N/A" if errors else ""
    values = [value if kind != "error" else None for kind, value in cells]
    kinds = sorted(first_rows.keys() - {"", "error"})
    numbers = {"text", "number", "boolean"}
    meaning: Meaning
    if declared == "number":
        meaning = NUMBER
    elif declared == "text" and numbers.issuperset(kinds):
        meaning = ("text", text_of)
    elif not kinds:
        return Column(name, "no value", "empty", values, note=note)
    elif len(kinds) > 1 or not _READ.issuperset(kinds):
        listed = ", ".join(f"{kind} (row {first_rows[kind]:,})" for kind in kinds)
        raise DataError(
            f"{path}: the column {name!r} has cells of these kinds: {listed}. Expected one of "
            "numbers, texts, days, moments or durations. Correct the cells (a spreadsheet program "
            f"computes formulas), or read numbers and texts as texts with --type {name}=text"
        )
    else:
        meaning = _meaning(kinds[0], epoch)
    values = converted(values, meaning, list(records), name, path)
    note = "; ".join(filter(None, ["time of day" * (kinds == ["time"]), note]))
    return Column(name, " or ".join(kinds), meaning[0], values, note=note)


def _within(low: float, count: float, high: float) -> float:
    """Return a number from ``low`` to below ``high``, or raise ValueError."""
    if not low <= count < high:
        raise ValueError
    return count


def _meaning(kind: str, epoch: Any) -> Meaning:
    """Return the kind of values that a kind of cell holds, and how to convert its numbers."""
    from openpyxl.utils.datetime import WINDOWS_EPOCH, from_excel

    def moment(count: float) -> Any:
        # Excel counts February 29, 1900, which never was, and shows 0 as January 0.
        is_leap_day = epoch == WINDOWS_EPOCH and 60 <= count < 61
        return from_excel(_within(61 if is_leap_day else 1, count, math.inf), epoch)

    meanings: dict[str, Meaning] = {
        "day": ("day", lambda count: whole_day(moment(count))),
        "moment": ("moment", moment),
        "number": ("number", lambda count: float(_within(-_LONGEST, count, _LONGEST))),
        "seconds": ("seconds", lambda count: round(count * 86_400, 3)),
        "time": ("seconds", lambda count: round(_within(0, count, 1) * 86_400, 3)),
        "text": ("text", str),
        "boolean": ("boolean", bool),
    }
    return meanings[kind]


# Beyond its limit Parquet drops a dictionary, and with it the order of labels.
_LARGEST_DICTIONARY = 1 << 28
_STORED: dict[str | None, Meaning] = {
    "string": ("text", str),
    "float": ("float", float),
    "double": NUMBER,
}


def _columns_of(path: str, options: Options, notes: list[str]) -> list[Column]:
    """Read the columns of a file, in the format that its first bytes identify."""
    with Path(path).open("rb") as file:
        content = io.BytesIO(unpacked(file, path).read())
    beginning = bytes(content.getbuffer()[:256])
    if beginning.startswith(b"PK\x03\x04"):
        columns = read_sheet(content, options, notes, path)
    else:
        columns = list(_statistics(content, beginning, options, path))
    names = {column.name.lower() for column in columns}
    if len(names) < len(columns) or "" in names:
        raise DataError(
            f"{path}: a column has no name, or one that differs from another one only in the case "
            "of letters. Rename it"
        )
    unknown = options.types.keys() - {column.name for column in columns}
    if unknown:
        raise ConfigurationError(f"--type: {path} has no column {min(unknown)!r}. Correct the name")
    return columns


def _reader_of(beginning: bytes) -> tuple[str, str]:
    """Return the program that wrote a file, and the function of pyreadstat that reads it.

    >>> _reader_of(b"$FL2@(#) SPSS DATA FILE")
    ('spss', 'read_sav')
    """
    if beginning.startswith(b"$FL"):
        return "spss", "read_sav"
    if b"SPSS PORT FILE" in beginning:
        return "spss", "read_por"
    if beginning.startswith(b"HEADER RECORD"):
        return "sas", "read_xport"
    return (
        ("sas", "read_sas7bdat")
        if beginning[12:16] == b"\xc2\xea\x81\x60"
        else ("stata", "read_dta")
    )


def _statistics(
    content: io.BytesIO, beginning: bytes, options: Options, path: str
) -> Iterator[Column]:
    """Yield the columns of a file of Stata, SPSS or SAS."""
    import pyreadstat

    program, read = _reader_of(beginning)
    settings: dict[str, object] = {"output_format": "dict", "disable_datetime_conversion": True}
    if options.encoding and read != "read_por":
        settings["encoding"] = options.encoding
    if read == "read_sav":
        # Else labels of codes that are declared as missing would be taken for those of values.
        settings["user_missing"] = True
    columns, about = getattr(pyreadstat, read)(content, **settings)
    labels = _value_labels(about, options.catalog)
    for name in list(columns):
        spans = about.missing_ranges.get(name, [])
        values = [None if _is_missing(value, spans) else value for value in columns.pop(name)]
        labeled = labels.get(name, {}).items()
        codes = {code: label for code, label in labeled if not _is_missing(code, spans)}
        stored = _STORED.get(about.readstat_variable_types.get(name), ("integer", int))
        display = (about.original_variable_types.get(name) or "").strip()
        declared = options.types.get(name)
        if declared == "text":
            meaning: Meaning = ("text", text_of)
        elif declared or stored[0] == "text":
            meaning = stored
        else:
            meaning = _displayed(stored, program, display, name, path)
        values = converted(values, meaning, range(1, len(values) + 1), name, path)
        has_labels = not declared and meaning[0] in ("integer", "float", "number", "text")
        yield Column(
            name,
            display or meaning[0],
            meaning[0],
            values,
            labels_that_apply(codes, of_text=meaning[0] == "text") if has_labels else {},
            about.column_names_to_labels.get(name) or "",
        )


def _value_labels(about: Any, catalog: str | None) -> dict[str, dict[Any, str]]:
    """Return the labels of each column by their codes. SAS keeps them apart, in a catalog."""
    if not catalog:
        return dict(about.variable_value_labels)
    import pyreadstat

    _, content = pyreadstat.read_sas7bcat(catalog)
    formats = about.variable_to_label.items()
    return {name: content.value_labels.get(form, {}) for name, form in formats}


def _displayed(stored: Meaning, program: str, display: str, name: str, path: str) -> Meaning:
    """Return what stored numbers count by their display format, or raise DataError."""
    meaning = meaning_of(program, display)
    if meaning is None:
        raise DataError(
            f"{path}: the column {name!r} has the display format {display}, and it is not certain "
            "what its numbers count. Give it a format of days, moments, durations or numbers, or "
            f"read the bare numbers with --type {name}=number"
        )
    return stored if meaning is NUMBER else meaning


def _is_missing(value: Any, spans: list[dict[str, object]]) -> bool:
    """Return whether a value is None, an empty text, or in a span that its file declares missing.

    >>> _is_missing(99, [{"lo": 98, "hi": 99}]), _is_missing(9, [{"lo": 98, "hi": 99}])
    (True, False)
    """
    return value in (None, "") or any(
        isinstance(value, str) == isinstance(span["lo"], str) and span["lo"] <= value <= span["hi"]
        for span in spans
    )


def _convert(request: Request) -> dict[str, object]:
    """Write the columns of all files as one table, and return a description of them."""
    notes: list[str] = []
    parts = []
    for number, path in enumerate(request.files):
        print(number, flush=True)  # noqa: T201 - the parent names the file that ended the process
        parts.append((path, _columns_of(path, request.options, notes)))
    fields, arrays, rows = [], [], []
    for column in unite(parts):
        array = column.array()
        unit = "seconds" if column.kind == "seconds" else ""
        about = {"label": column.about, "format": column.source, "unit": unit}
        about = {key: text for key, text in about.items() if text}
        fields.append(pa.field(column.name, array.type, metadata=about))
        arrays.append(array)
        shown = f"{len(array.dictionary):,} ordered labels" if column.labels else str(array.type)
        rows.append(
            [column.name, column.source, shown, "; ".join(filter(None, [unit, column.note]))]
        )
    table = pa.table(arrays, schema=pa.schema(fields))
    with Path(request.target).open("wb") as file:
        parquet.write_table(table, file, dictionary_pagesize_limit=_LARGEST_DICTIONARY)
        os.fsync(file.fileno())
    return {"columns": rows, "rows": len(table), "notes": notes}


def _answer(request: Request) -> dict[str, object]:
    """Convert files and return a description, or the kind and the texts of the error.

    Limits the memory first, and turns off core dumps, which would hold data.
    """
    limits = {resource.RLIMIT_AS: request.memory << 20, resource.RLIMIT_CORE: 0}
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (limit, limit) if hard < 0 else (min(limit, hard), hard))
    warnings.simplefilter("ignore")
    try:
        return _convert(request)
    except (ConfigurationError, DataError) as error:
        return {"error": type(error).__name__, "problems": error.problems}
    except ModuleNotFoundError as error:
        problem = f"{error.name} is not installed. Run: pip install 'anonspark[files]'"
        return {"error": "ConfigurationError", "problems": [problem]}
    except Exception as error:  # noqa: BLE001 - a damaged file leads readers anywhere
        return {"error": type(error).__name__, "details": repr(error)}


if __name__ == "__main__":
    files, target, memory, options = json.load(sys.stdin)
    answer = _answer(Request(files, target, memory, Options(*options)))
    print(json.dumps(answer))  # noqa: T201 - the parent reads it
