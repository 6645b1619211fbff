"""What the files of an input tell of themselves: their format, and how a CSV file is written.

What a configuration says always wins; what it does not say is looked up in the names of the files
and in the first bytes of the first one. The same files give the same answer on every engine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anonspark.config import Configuration
from anonspark.config.input import format_of_name, format_of_names
from anonspark.engine.csv_beginning import (
    POSITIONAL,
    SEPARATOR_LINE,
    UTF_8,
    fields_of,
    lines_of,
    records_of,
    sniff_encoding,
    sniff_header,
    sniff_separator,
)
from anonspark.engine.files import Files, FilesError
from anonspark.engine.first_file import DamagedFileError, listed_files, read_beginning
from anonspark.engine.foreign_formats import foreign_format
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.reading_errors import (
    another_format,
    no_record_below_header,
    nothing_in_files,
    separator_in_first_line,
)
from anonspark.errors import ConfigurationError

_LOGGER = logging.getLogger("anonspark")

_NAMES_OF_SEPARATORS = {"\t": "tab"}
_FIRST_BYTES = 64
_MARKS = {b"PAR1": "parquet", b"ORC": "orc"}
_ALIASES = {"delimiter": "sep", "charset": "encoding"}


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
    is_empty : bool
        Whether none of several CSV files has a byte.
    has_no_record : bool
        Whether the only CSV file has one line, which may be a header.
    other_format : str or None
        What a file is by its first bytes that is read as CSV.
    """

    data_format: str
    file: str | None = None
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    columns: tuple[str, ...] = ()
    is_empty: bool = False
    has_no_record: bool = False
    other_format: str | None = None

    @property
    def options(self) -> dict[str, str]:
        """What has to be said of a CSV file to read it, as options of Spark; defaults are not."""
        told = {"header": "true"} if self.header else {}
        if self.separator not in (None, ","):
            told["sep"] = str(self.separator)
        if self.encoding not in (None, UTF_8):
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
    DataError
        If the first line of a CSV file names its separator.

    Notes
    -----
    Lists the paths, and reads what :func:`anonspark.engine.first_file.read_beginning` does.
    """
    given = {name.lower(): value for name, value in (options or {}).items()}
    kind = data_format or format_of_names(paths)
    says_all = given.get("header") and _separator_of(given) and _encoding_of(given)
    if kind is not None and (kind.lower() != "csv" or says_all):
        return Recognized(kind)
    require_plain_files(files, paths, kind or "", key)
    listed = listed_files(files, paths)
    filled = [(file, size) for file, size in listed if size]
    if kind is None:
        kind = format_of_files([file for file, _ in listed], key)
        other = None if kind or not filled else foreign_format(_first_bytes(files, *filled[0]))
        if other is not None:
            return Recognized("parquet", filled[0][0], other_format=other)
    if kind is None or kind.lower() != "csv":
        return Recognized(kind or "parquet")
    if not filled:
        return Recognized(kind, is_empty=bool(listed))
    file, size = filled[0]
    content = _beginning(files, file, size)
    # What cannot be unpacked here Spark may be able to read, if nothing is to be found out.
    told = _has_header(given)
    beginning = content or (_first_bytes(files, file, size) if told is None else b"")
    other = _binary_format(beginning)
    if content is None or other is not None:
        return Recognized(kind, file, other_format=other)
    encoding = _encoding_of(given) or sniff_encoding(content, file, key)
    quotes = given.get("quote", '"'), given.get("escape", '"')
    lines = records_of(lines_of(content, encoding, given.get("comment", "")), quotes)
    if lines and SEPARATOR_LINE.fullmatch(lines[0]):
        raise separator_in_first_line(f"{key}: {file}")
    separator = _separator_of(given)
    if separator is None:
        tabs = _plain_name(file).endswith(".tsv")
        separator = sniff_separator(lines, quotes, told, names, tabs=tabs)
    rows = [fields_of(line, separator, quotes) for line in lines]
    in_files = [name for name in names if f"/{name}=" not in file]
    header = told if told is not None else sniff_header(rows, in_files)
    columns = tuple(rows[0]) if rows else ()
    alone = len(rows) == 1 and len(filled) == 1 and len(content) >= size
    return Recognized(kind, file, header, separator, encoding, columns, has_no_record=alone)


def require_csv(found: Recognized, key: str, paths: Sequence[str], *, asks: bool) -> None:
    """Check that there is something to be read in files that are read as CSV.

    Parameters
    ----------
    found : Recognized
    key : str
        What named the paths.
    paths : sequence of str
    asks : bool
        Whether nobody says, nor the values, that the first line names the columns.

    Raises
    ------
    DataError
        If the files are empty, are of another format, or have one line that may be a header.
    """
    where = f"{key}: {', '.join(paths) if found.file is None else found.file}"
    if found.is_empty:
        raise nothing_in_files(where)
    if found.other_format is not None:
        raise another_format(where, found.other_format)
    if asks and found.has_no_record:
        raise no_record_below_header(where)


def told_besides(found: Recognized, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a file tells, but for those that somebody has given."""
    given = {_ALIASES.get(name.lower(), name.lower()) for name in options}
    return {name: value for name, value in found.options.items() if name not in given}


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
    DataError
        If it is empty, or no CSV; see :func:`require_csv`.

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
    told = told_besides(found, own.options)
    asks = "header" not in given and found.header is None
    asks = asks and not all(map(POSITIONAL.fullmatch, names))
    require_csv(found, "input.path", own.paths, asks=asks)
    if asks and found.file is not None:
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


def _binary_format(content: bytes) -> str | None:
    """Return the format of a file that begins so, if it is one whose files are no texts."""
    other = foreign_format(content)
    if other is not None or b"\0" not in content:
        return other
    return next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)


def _first_bytes(files: Files, path: str, size: int) -> bytes:
    try:
        return files.read_part(path, 0, min(size, _FIRST_BYTES))
    except FilesError:
        # Whoever opens it says what is wrong.
        return b""


def _plain_name(path: str) -> str:
    return path.lower().removesuffix(".gz").removesuffix(".bz2")


def _beginning(files: Files, path: str, size: int) -> bytes | None:
    """Return whole lines from the beginning of a file, None where it cannot be read or unpacked."""
    try:
        return read_beginning(files, path, size)
    except (FilesError, DamagedFileError):
        # Whoever opens it says what is wrong.
        return None


def _has_header(given: Mapping[str, str]) -> bool | None:
    return given["header"].lower() == "true" if "header" in given else None


def _separator_of(given: Mapping[str, str]) -> str | None:
    told = given.get("delimiter", given.get("sep"))
    return "\t" if told == "\\t" else told


def _encoding_of(given: Mapping[str, str]) -> str | None:
    return given.get("encoding", given.get("charset"))
