"""What the files of an input tell of themselves: their format, and how a CSV file is written.

What a configuration says always wins; what it does not say is looked up in the names of the files
and in the first bytes of the first one. The same files give the same answer on every engine.
"""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anonspark.config import Configuration
from anonspark.config.input import format_of_name, format_of_names
from anonspark.core.recognition.names import meaning_of
from anonspark.engine.files import Files, FilesError
from anonspark.engine.first_file import DamagedFileError, listed_files, read_beginning
from anonspark.errors import ConfigurationError

_LOGGER = logging.getLogger("anonspark")

_SEPARATORS = (",", ";", "\t", "|")
_NAMES_OF_SEPARATORS = {"\t": "tab"}
_UTF_8, _LATIN, _WINDOWS = "UTF-8", "ISO-8859-1", "windows-1252"
_CODECS = {_LATIN: "latin-1", _WINDOWS: "cp1252"}
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Of UTF-16, one unit in so many at least has a byte that is 0.
_UNITS_WITH_ZERO = 16

_ALIASES = {"delimiter": "sep", "charset": "encoding"}

_POSITIONAL = re.compile(r"_c(\d+)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)*|\.\d+)(?:[eE][+-]?\d+)?")
_DAY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?")
_NOTHING = ("", "?", "NA", "n/a", "null", "NULL")

# Rows from which on a column without the first line's word tells that it is no value, and how
# often its values are repeated.
_ROWS_THAT_TELL, _REPETITIONS = 20, 5

# Up to here one column of numbers below a word is enough to tell a header.
_FEW_COLUMNS = 2


@dataclass(frozen=True)
class Recognized:
    """What was found out about files, and what was said of them.

    Parameters
    ----------
    data_format : str
        Data source of Spark.
    file : str or None
        The file that was looked into; None where none was.
    header : bool or None
        Whether the first line of a CSV file names the columns; None where that cannot be told, and
        in other formats.
    separator, encoding : str or None
        None in other formats, and where no file could be looked into.
    columns : tuple of str
        Fields of the first line of a CSV file.
    """

    data_format: str
    file: str | None = None
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    columns: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, str]:
        """What has to be said of a CSV file to read it, as options of Spark; defaults are not."""
        told = {"header": "true"} if self.header else {}
        if self.separator not in (None, ","):
            told["sep"] = str(self.separator)
        if self.encoding not in (None, _UTF_8):
            told["encoding"] = str(self.encoding)
        return told


def recognize(
    files: Files,
    paths: Sequence[str],
    data_format: str | None = None,
    options: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    key: str = "input.path",
) -> Recognized:
    """Look at the names of files, and of a CSV file at its beginning.

    Parameters
    ----------
    files : Files
    paths : sequence of str
        Files, directories and patterns.
    data_format : str or None
        As it was given; None finds it: by the names of the paths, and of a directory by those of
        the files in it; ``parquet`` where names tell nothing.
    options : mapping of str to str, or None
        As they were given; they win.
    names : sequence of str
        Of columns that should be there. They tell a header for sure.
    key : str
        What messages call the paths.

    Returns
    -------
    Recognized

    Raises
    ------
    ConfigurationError
        If the file is written in UTF-16, or nobody says the format and names tell several.

    Notes
    -----
    Lists the paths, and reads what :func:`anonspark.engine.first_file.read_beginning` does.
    """
    given = {name.lower(): value for name, value in (options or {}).items()}
    kind = data_format or format_of_names(paths)
    says_all = given.get("header") and _separator_of(given) and _encoding_of(given)
    if kind is not None and (kind.lower() != "csv" or says_all):
        return Recognized(kind)
    listed = listed_files(files, paths)
    if kind is None:
        kind = format_of_files([file for file, _ in listed], key) or "parquet"
    if kind.lower() != "csv":
        return Recognized(kind)
    file, size = next(((file, size) for file, size in listed if size), (None, 0))
    if file is None:
        return Recognized(kind)
    content = _beginning(files, file, size)
    if content is None:
        return Recognized(kind, file)
    encoding = _encoding_of(given) or _sniff_encoding(content, file, key)
    lines = _lines(content, encoding, given.get("comment", ""))
    quotes = given.get("quote", '"'), given.get("escape", '"')
    told = _has_header(given)
    separator = _separator_of(given)
    if separator is None:
        tabs = _plain_name(file).endswith(".tsv")
        separator = _sniff_separator(lines, quotes, told, names, tabs=tabs)
    rows = [_fields(line, separator, quotes) for line in lines]
    in_files = [name for name in names if f"/{name}=" not in file]
    header = told if told is not None else _sniff_header(rows, in_files)
    columns = tuple(rows[0]) if rows else ()
    return Recognized(kind, file, header, separator, encoding, columns)


def format_of_files(files: Sequence[str], key: str) -> str | None:
    """Return the format that the names of a table's files tell; None where none tells one.

    Parameters
    ----------
    files : sequence of str
    key : str
        What messages call them.

    Raises
    ------
    ConfigurationError
        If they tell several.
    """
    told: dict[str, str] = {}
    for file in files:
        kind = format_of_name(file)
        if kind is not None:
            told.setdefault(kind, file)
    if len(told) > 1:
        listed = " and ".join(f"{file} ({kind})" for kind, file in told.items())
        raise ConfigurationError(
            f"{key}: found files of several formats: {listed}; expected one; name the files of one "
            f"of them only, with a pattern such as *.{next(iter(told))}"
        )
    return next(iter(told), None)


def found_in_files(files: Files, configuration: Configuration) -> dict[str, str]:
    """Return what the input is read with besides what its configuration says.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Returns
    -------
    dict
        For :meth:`anonspark.config.Configuration.with_input`; nothing where all is as its defaults
        say.

    Raises
    ------
    ConfigurationError
        If a CSV file may have a header, and may have none.

    Notes
    -----
    As :func:`recognize`. What was found is logged, without a word of the data.
    """
    own = configuration.input
    if own.is_settled:
        return {}
    given = {_ALIASES.get(name.lower(), name.lower()) for name in own.options}
    names = list(configuration.attributes)
    data_format = own.format if own.says_format else None
    found = recognize(files, own.paths, data_format, own.options, names)
    told = {name: value for name, value in found.options.items() if name not in given}
    asks = found.file is not None and "header" not in given and found.header is None
    if asks and not all(map(_POSITIONAL.fullmatch, names)):
        raise ConfigurationError(_ask_for_header(str(found.file)))
    if not own.says_format:
        if found.data_format == "csv" and "inferschema" not in given:
            # Whoever says nothing of a file wants its numbers to be numbers.
            told["inferSchema"] = "true"
        if found.data_format != own.format:
            told["format"] = found.data_format
    if told and (found.file is not None or "format" in told):
        shown = {"sep": _NAMES_OF_SEPARATORS.get(found.separator or "", repr(found.separator))}
        listed = ", ".join(f"{name} {shown.get(name, value)}" for name, value in told.items())
        _LOGGER.info("the input is read with what its files tell: %s", listed)
    return told


def settled(files: Files, configuration: Configuration) -> Configuration:
    """Return a configuration that says all of its input; see :func:`found_in_files`."""
    if configuration.input.is_settled:
        return configuration
    return configuration.with_input(found_in_files(files, configuration))


def _ask_for_header(file: str) -> str:
    return (
        f"input.options.header: missing, and it cannot be told whether the first line of {file} "
        "names the columns, for it names too few of the attributes, or cannot be looked at; set it "
        "to true, and write the attributes as that line does, or to false, which calls the columns "
        "_c0, _c1 and so on"
    )


def _plain_name(path: str) -> str:
    return path.lower().removesuffix(".gz").removesuffix(".bz2")


def _beginning(files: Files, path: str, size: int) -> bytes | None:
    """Return whole lines from the beginning of a file, None where it cannot be read or unpacked."""
    try:
        return read_beginning(files, path, size)
    except (FilesError, DamagedFileError):
        # Whoever opens it says what is wrong.
        return None


def _sniff_encoding(content: bytes, file: str, key: str) -> str:
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
    return _UTF_8


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


def _lines(content: bytes, encoding: str, comment: str) -> list[str]:
    try:
        text = content.decode(_CODECS.get(encoding, encoding), "replace")
    except LookupError:
        text = content.decode("latin-1")
    lines = re.split("[\r\n]", text.removeprefix("\ufeff"))
    return [line for line in lines if line.strip() and not (comment and line.startswith(comment))]


def _fields(line: str, separator: str, quotes: tuple[str, str]) -> list[str]:
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


def _has_header(given: Mapping[str, str]) -> bool | None:
    return given["header"].lower() == "true" if "header" in given else None


def _separator_of(given: Mapping[str, str]) -> str | None:
    told = given.get("delimiter", given.get("sep"))
    return "\t" if told == "\\t" else told


def _encoding_of(given: Mapping[str, str]) -> str | None:
    return given.get("encoding", given.get("charset"))


def _sniff_separator(
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
    places = [_POSITIONAL.fullmatch(name) for name in names]
    needed = max((int(one[1]) + 1 for one in places if one), default=0)
    if header is not True and needed and all(places):
        # They say at least how many there are.
        for one in order:
            if len(_fields(lines[0], one, quotes)) >= needed:
                return one
        return order[0]
    if header is not False:
        shares = {
            one: len(wanted & {field.strip().lower() for field in _fields(lines[0], one, quotes)})
            for one in order
        }
        best = max(order, key=lambda one: shares[one])
        if shares[best] > 1 or (shares[best] == 1 and len(wanted) == 1):
            return best
    widths = {one: {len(_fields(line, one, quotes)) for line in lines} for one in order}
    even = {one: min(own) for one, own in widths.items() if len(own) == 1 and min(own) > 1}
    return max(even, key=lambda one: even[one]) if even else order[0]


def _sniff_header(rows: Sequence[Sequence[str]], names: Sequence[str]) -> bool | None:
    """Tell whether the first row names the columns, None where that is not sure."""
    if not rows:
        return None
    first = {field.strip().lower() for field in rows[0]}
    if names:
        found = sum(name.lower() in first for name in names)
        if not found and all(map(_POSITIONAL.fullmatch, names)):
            return False
        if 2 * found >= len(names):
            return True
        return True if _looks_like_header(rows) else None
    return _looks_like_header(rows)


def _looks_like_header(rows: Sequence[Sequence[str]]) -> bool | None:
    first = [field.strip() for field in rows[0]]
    rest = [row for row in rows[1:] if len(row) == len(first)]
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
