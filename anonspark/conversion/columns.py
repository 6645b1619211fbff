"""Type the columns of foreign files: what their numbers count, their value labels, their union."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from anonspark.errors import DataError

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
"""The kind of a column's values, and what converts numbers to them. It raises if one is none."""


def whole_day(moment: datetime) -> date:
    """Return the day of a moment, whose time of day must not get lost."""
    if moment.time() != time.min:
        raise ValueError
    return moment.date()


def _moment(zero: datetime, unit: str, count: float) -> datetime:
    return zero + timedelta(**{unit: count})


def _day(zero: datetime, unit: str, count: float) -> date:
    return whole_day(_moment(zero, unit, count))


def _whole(count: float) -> int:
    if count != int(count):
        raise ValueError
    return int(count)


def _month(months: int, count: float) -> date:
    """Return the first day of one of the months, quarters or half-years since 1960."""
    month = _whole(count) * months
    return date(1960 + month // 12, month % 12 + 1, 1)


def _week(count: float) -> date:
    """Return the first day of a week of Stata, of which a year has 52."""
    return date(1960 + _whole(count) // 52, 1, 1) + timedelta(days=7 * (_whole(count) % 52))


NUMBER: Meaning = ("number", float)
_SECONDS: Meaning = ("seconds", float)

# Display formats without width and decimals. What is not here is refused, never guessed at.
_FORMATS: dict[str, dict[str, Meaning]] = {
    "spss": {
        r"F|N|E|Z|COMMA|DOT|DOLLAR|PCT|CC[A-E]|IB|PIB|PIBHEX|P|PK|RB|RBHEX": NUMBER,
        r"[AESJ]?DATE|MOYR|QYR|WKYR": ("day", partial(_day, _1582, "seconds")),
        r"DATETIME|YMDHMS": ("moment", partial(_moment, _1582, "seconds")),
        r"[DM]?TIME": _SECONDS,
    },
    "sas": {
        # Whatever part of a day these show, the value is a whole one.
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
    >>> meaning_of("stata", "%tbnyse")
    """
    if program != "stata":
        display = re.sub(r"(?<=[A-Z])\d*(\.\d*)?$", "", display.upper())
    formats = _FORMATS[program].items()
    return next((meaning for form, meaning in formats if re.fullmatch(form, display)), None)


@dataclass(frozen=True)
class Column:
    """A column of a file.

    Parameters
    ----------
    name : str
    source : str
        Its type or display format in the file, for people.
    kind : str
        Of its values. ``empty`` fits to all others.
    values : list
        Codes if there are labels. None is missing.
    labels : mapping of code to str
    about : str
        The variable's label.
    note : str
    """

    name: str
    source: str
    kind: str
    values: list[Any]
    labels: Mapping[Any, str] = field(default_factory=dict)
    about: str = ""
    note: str = ""

    def array(self) -> pa.Array:
        """Return the values. Codes become labels, in the order of the codes.

        A code without a label becomes its own text, as in haven's as_factor and in pandas.
        """
        if not self.labels:
            return pa.array(self.values, _TYPES[self.kind])
        codes = sorted({*self.labels, *self.values} - {None})
        taken = set(self.labels.values())
        texts = [self.labels.get(code) or _own_text(code, taken) for code in codes]
        positions = {code: position for position, code in enumerate(codes)}
        indices = pa.array([positions.get(value) for value in self.values], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, texts, ordered=True)


def converted(
    values: Sequence[Any], meaning: Meaning, rows: Sequence[int], name: str, path: str
) -> list[Any]:
    """Convert numbers that are not None to what they count.

    Raises
    ------
    DataError
        Naming the row of a number that counts none, as a day beyond the year 9999 or a half one.
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
    """Return the labels of a column that replace its codes, or none.

    This follows from the labels and never from the values, so that no record decides how others
    are read. A single label marks an end or an answer of its own, as "89 or older" does, and labels
    that are equal would merge codes.
    """
    texts = {
        code: text.strip()
        for code, text in labels.items()
        # Stata labels letters for missing values among the numbers.
        if isinstance(code, str) == of_text and text.strip()
    }
    return texts if len(texts) >= 2 and len(set(texts.values())) == len(texts) else {}


def _own_text(code: object, taken: Collection[str]) -> str:
    """Return the text of a code without a label, which another code's label may be."""
    text = text_of(code)
    return f"code {text}" if text in taken else text


def text_of(value: object) -> str:
    """Return a value as text, whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def unite(parts: Sequence[tuple[str, Sequence[Column]]]) -> list[Column]:
    """Unite the columns of several files of one table.

    Raises
    ------
    DataError
        Naming a column that is in some files only, or has other types or labels in some.
    """
    (first_file, columns), *others = parts
    united = {column.name: column for column in columns}
    for file, columns in others:
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
    """Return a column with the values of another file, in the wider type of numbers."""
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
