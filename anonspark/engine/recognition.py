"""Recognize the format of an input's files, and how a CSV file is written.

The keys of a configuration always win. What it leaves out is recognized in the names of the files
and in the first bytes of the first one, by the rules of docs/configuration.md. The same files give
the same answer on every engine.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anonspark.config import Configuration
from anonspark.config.input import COMPRESSED, format_of_name, format_of_names, uncompressed
from anonspark.engine.compression import UNPACKING_FAILURES, unpacked
from anonspark.engine.csv_beginning import (
    SEPARATOR_LINE,
    has_decimal_comma,
    has_header,
    rows_of,
    separator_of,
)
from anonspark.engine.data_files import UNKNOWN_COMPRESSIONS, listed_files
from anonspark.engine.encodings import (
    UTF_8,
    codec_of,
    encoding_of_mark,
    encoding_without_mark,
    likely_encodings,
)
from anonspark.engine.files import Files, FilesError, open_parts
from anonspark.engine.foreign_formats import foreign_format, refuse_foreign, remedy_for
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.reading_errors import (
    another_format,
    header_not_known,
    no_record_below_header,
    nothing_in_files,
    undecodable,
)
from anonspark.engine.values.text_reader import OPTION_ALIASES
from anonspark.errors import ConfigurationError, DataError

# A block of bzip2 may have 900,000 bytes, and is read as a whole or not at all.
_BYTES, _COMPRESSED_BYTES = 1 << 16, 1 << 20


def read_beginning(files: Files, path: str, size: int, key: str) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unpacked, and whether they are all that it has.

    Parameters
    ----------
    files : Files
    path : str
    size : int
        Its bytes.
    key : str
        What messages call the paths.

    Raises
    ------
    DataError
        If it cannot be read or unpacked.

    Notes
    -----
    Reads 64 KiB, of a compressed file parts of 1 MiB until 64 KiB are unpacked.
    """
    packed = path.lower().endswith(COMPRESSED)
    part = open_parts(files, path, size, _COMPRESSED_BYTES if packed else _BYTES)
    try:
        content = unpacked(part, path).read(_BYTES + 1)
    except FilesError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        raise DataError(f"{key}: {path} cannot be read{reason}. Check its permissions") from error
    except UNPACKING_FAILURES as error:
        raise DataError(
            f"{key}: {path} is damaged: it cannot be unpacked. Fetch it again"
        ) from error
    return content[:_BYTES], len(content) <= _BYTES


_LOGGER = logging.getLogger("anonspark")

_NAMES_OF_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_MARKS = {b"PAR1": "parquet", b"ORC": "orc"}


@dataclass(frozen=True)
class Recognized:
    """The format and options of files, found and set.

    Parameters
    ----------
    data_format : str
        Data source of Spark.
    file : str or None
        The file that was looked into. None where none was.
    header : bool or None
        Whether the first line of a CSV file names the columns. None where that is not sure, and in
        other formats.
    separator, encoding : str or None
        None in other formats, and where no file could be looked into.
    is_guess : bool
        Whether the encoding is the likeliest one of bytes that are not UTF-8.
    options : mapping of str to str
        What has to be said of a CSV file to read it besides what was said. No defaults.
    """

    data_format: str
    file: str | None = None
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    is_guess: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Describe how the CSV file is written, with an empty text if no file was read."""
        if self.separator is None:
            return ""
        guess = " (a guess: look at the letters that are read so)" if self.is_guess else ""
        separator = separator_in_words(self.separator)
        header = "a header in the first line" if self.header else "no header: _c0, _c1, ..."
        return f"encoding {self.encoding}{guess}, fields divided by {separator}, {header}"


def recognize(
    files: Files,
    paths: Sequence[str],
    data_format: str | None = None,
    options: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    key: str = "input.path",
    *,
    asks: bool = False,
    guesses: bool = False,
) -> Recognized:
    """Look at the names of files, and of a CSV file at its beginning.

    Parameters
    ----------
    files : Files
    paths : sequence of str
        Files, directories and patterns.
    data_format : str or None
        None finds it: by the names of the paths, of a directory by those of the files in it, else
        by the first bytes. ``parquet`` where there are none.
    options : mapping of str to str, or None
        They win.
    names : sequence of str
        Of columns that should be there. They show a header for sure.
    key : str
        What messages call the paths.
    asks : bool
        Whether it is an error if nothing shows whether there is a header.
    guesses : bool
        Whether the likeliest encoding is taken of bytes that are not UTF-8, which else are an
        error.

    Raises
    ------
    ConfigurationError
        If no format is set and names suggest several. Of a header see `asks`.
    DataError
        If the files are empty or damaged, are in another format or do not decode.

    Notes
    -----
    Lists the paths, and reads what :func:`anonspark.engine.recognition.read_beginning` does.
    """
    stated = _by_name(options or {})
    kind = data_format or format_of_names(paths)
    says_all = all(map(stated.get, ("header", "sep", "encoding")))
    if kind is not None and (kind.lower() != "csv" or says_all):
        return Recognized(kind)
    require_plain_files(files, paths, kind or "", key)
    listed = listed_files(files, paths)
    kind = kind or _format_of_files([file.address for file in listed], key)
    if not listed or (kind or "csv").lower() != "csv":
        return Recognized(kind or "parquet")
    filled = [(file.address, file.bytes) for file in listed if file.bytes]
    for file, size in filled:
        content, is_whole = read_beginning(files, file, size, key)
        beginning = content.decode("latin-1").strip("\xef\xbb\xbf\xff\xfe\0 \t\r\n")
        if beginning and not SEPARATOR_LINE.fullmatch(beginning):
            break
    else:
        raise nothing_in_files(f"{key}: {', '.join(paths)}")
    where = f"{key}: {file}"
    format_found = _format_of_bytes(content)
    refuse_foreign(paths, remedy_for(format_found) or "")
    if kind is None and format_found in ("parquet", "orc", "json"):
        return Recognized(format_found)
    if format_found not in ("csv", "json"):
        raise another_format(where, format_found)
    if file.lower().endswith(UNKNOWN_COMPRESSIONS):
        return Recognized("csv", file)
    encoding, is_guess = stated.get("encoding") or encoding_of_mark(content), False
    try:
        text = _text_of(content, encoding, where)
    except DataError:
        likely = likely_encodings(content) if guesses and "encoding" not in stated else []
        if not likely:
            raise
        encoding, is_guess = likely[0], True
        text = _text_of(content, encoding, where)
    named, lines = _lines_of(text, stated.get("comment", ""), is_whole=is_whole)
    quotes = stated.get("quote", '"'), stated.get("escape", '"')
    header = stated["header"].lower() == "true" if "header" in stated else None
    separator = stated.get("sep", named)
    if separator is None:
        tabs = uncompressed(file).endswith(".tsv")
        separator = separator_of(lines, quotes, header, names, tabs=tabs)
    separator = "\t" if separator == "\\t" else separator
    rows = rows_of(lines, separator, *quotes)
    if header is None:
        header = has_header(rows, [name for name in names if f"/{name}=" not in file])
    if asks and header is None:
        is_alone = is_whole and len(filled) == 1 and len(rows) == 1
        raise no_record_below_header(where) if is_alone else header_not_known(where)
    has_comma = guesses and separator != "," and has_decimal_comma(rows[1:] if header else rows)
    settings = (
        ("header", "true", header),
        ("sep", separator, separator != ","),
        ("decimal", ",", has_comma),
        ("encoding", encoding, encoding != UTF_8),
    )
    unsaid = {name: value for name, value, is_odd in settings if is_odd and name not in stated}
    return Recognized("csv", file, header, separator, encoding, is_guess, unsaid)


def separator_in_words(separator: str) -> str:
    """Return the name of a separator."""
    return _NAMES_OF_SEPARATORS.get(separator, repr(separator))


def found_in_files(files: Files, configuration: Configuration) -> dict[str, str]:
    """Return what the input is read with besides what its configuration says.

    Returns
    -------
    dict
        For :meth:`anonspark.config.Configuration.with_input`. Nothing where all is as its defaults
        say.

    Raises
    ------
    ConfigurationError, DataError
        As :func:`recognize`, which asks for a header.

    Notes
    -----
    As :func:`recognize`. What was found is logged, without a word of the data.
    """
    stated = configuration.input
    if stated.is_settled:
        return {}
    data_format = stated.format if stated.says_format else None
    names = list(configuration.attributes)
    recognized = recognize(files, stated.paths, data_format, stated.options, names, asks=True)
    settings = dict(recognized.options)
    if not stated.says_format:
        if recognized.data_format == "csv" and "inferschema" not in _by_name(stated.options):
            # Whoever says nothing of a file wants its numbers to be numbers.
            settings["inferSchema"] = "true"
        if recognized.data_format != stated.format:
            settings["format"] = recognized.data_format
    if settings and (recognized.file is not None or "format" in settings):
        words = {"sep": separator_in_words(recognized.separator or "")}
        listed = ", ".join(f"{name} {words.get(name, value)}" for name, value in settings.items())
        _LOGGER.info("the input is read with what its files show: %s", listed)
    return settings


def settled(files: Files, configuration: Configuration) -> Configuration:
    """Return a configuration that says all of its input. See :func:`found_in_files`."""
    if configuration.input.is_settled:
        return configuration
    return configuration.with_input(found_in_files(files, configuration))


def _text_of(content: bytes, encoding: str, where: str) -> str:
    """Return the text of a file's beginning, which may end within a letter.

    Raises
    ------
    DataError
        If it is not in the encoding.
    """
    decoder = codecs.getincrementaldecoder(codec_of(encoding) or "latin-1")()
    try:
        text = decoder.decode(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise undecodable(where, encoding, line, content) from None
    if encoding == UTF_8 and encoding_without_mark(content) is not None:
        raise undecodable(where, encoding, 1, content)
    return text.removeprefix("\ufeff")


def _lines_of(text: str, comment: str, *, is_whole: bool) -> tuple[str | None, list[str]]:
    """Return the separator that the first line names, if it does, and the lines of records."""
    lines = re.split("\r\n|[\r\n]", text)
    if not is_whole and len(lines) > 1:
        del lines[-1]
    named = SEPARATOR_LINE.fullmatch(lines[0])
    records = [
        line
        for line in lines[1 if named else 0 :]
        if line.strip() and not (comment and line.startswith(comment))
    ]
    return named[1] if named else None, records


def _format_of_files(files: Sequence[str], key: str) -> str | None:
    """Return the format that the names of a table's files show, or None if none shows one."""
    by_kind = {kind: file for file in reversed(files) if (kind := format_of_name(file)) is not None}
    if len(by_kind) > 1:
        listed = " and ".join(f"{file} ({kind})" for kind, file in sorted(by_kind.items()))
        raise ConfigurationError(
            f"{key}: found files of several formats: {listed}. Expected one. Name the files of one "
            f"of them only, with a pattern such as *.{min(by_kind)}"
        )
    return next(iter(by_kind), None)


def _format_of_bytes(content: bytes) -> str:
    """Return the format of a file that begins so: one of another program, or one that is read."""
    other = foreign_format(content)
    if other is not None:
        return other
    if content.lstrip().startswith(b"{"):
        return "json"
    # A column may be called as a Parquet file begins.
    is_text = b"\0" not in content
    return next(
        (kind for mark, kind in _MARKS.items() if content.startswith(mark) > is_text), "csv"
    )


def _by_name(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by their names in small letters, without aliases."""
    return {
        OPTION_ALIASES.get(name.lower(), name.lower()): value for name, value in options.items()
    }
