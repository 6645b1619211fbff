"""Recognize the format of an input's files, and how a CSV file is written.

The keys of a configuration go first. The names of the files and the first bytes of the first file
show the rest, by the rules of docs/configuration.md. The same files give the same answer on every
engine.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
from anonspark.engine.data_files import UNKNOWN_COMPRESSIONS, DataFile, listed_files
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

# A block of bzip2 may have 900,000 bytes, and can only be unpacked as a whole.
_BYTES, _COMPRESSED_BYTES = 1 << 16, 1 << 20


def read_beginning(files: Files, path: str, size: int, key: str) -> tuple[bytes, bool]:
    """Read and unpack the first 64 KiB of a file. Also return whether that is the whole file.

    Reads parts of 1 MiB of a compressed file. Raises DataError if it cannot be read or unpacked.
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
    """The format of files, a data source of Spark, and how CSV files are written.

    ``file`` is the file that was read, or None. ``header`` is None if it is not certain whether the
    first line names the columns, ``is_guess`` says whether the encoding is the likeliest one of
    bytes that are not UTF-8, and ``options`` are those that have to be set to read the files, in
    addition to those that are set, without defaults. None of them is known of other formats.
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
        """Describe how the CSV file is written, or return an empty text if no file was read.

        >>> Recognized("csv", "a.csv", header=True, separator=";", encoding="UTF-8").words
        'encoding UTF-8, fields divided by semicolon, a header in the first line'
        """
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
    """Recognize the format of files, and for CSV also encoding, separator, header and decimal sign.

    Lists the paths, and reads the beginning of a file unless format and options are set.
    ``data_format`` is None to recognize it by the names of the paths or of the files in a
    directory, or else by the first bytes: ``parquet`` if there are no files. ``options`` that are
    set take precedence. ``names`` are expected columns, which identify a header, and ``key`` names
    the paths in messages. With ``asks`` an uncertain header is an error. With ``guesses`` bytes
    that are not UTF-8 have the likeliest encoding, and numbers with a decimal comma are numbers.
    Raises ConfigurationError if no format is set and names suggest several, or because of ``asks``,
    and DataError if the files are empty or damaged, are in another format or do not decode.
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
    beginning = _first_beginning(files, listed, paths, key)
    shown_format = _format_of_bytes(beginning.content)
    refuse_foreign(paths, remedy_for(shown_format) or "")
    if kind is None and shown_format in ("parquet", "orc", "json"):
        return Recognized(shown_format)
    if shown_format not in ("csv", "json"):
        raise another_format(beginning.where, shown_format)
    if beginning.file.lower().endswith(UNKNOWN_COMPRESSIONS):
        return Recognized("csv", beginning.file)
    return _recognize_csv(beginning, stated, names, asks=asks, guesses=guesses)


class _Beginning(NamedTuple):
    """The first bytes of a file, unpacked, and whether a table has no others.

    ``where`` names the file in messages.
    """

    file: str
    where: str
    content: bytes
    is_whole: bool
    is_only_file: bool


def _first_beginning(
    files: Files, listed: Sequence[DataFile], paths: Sequence[str], key: str
) -> _Beginning:
    """Read the beginning of the first file with a record, or raise DataError if none has any."""
    filled = [file for file in listed if file.bytes]
    for file in filled:
        content, is_whole = read_beginning(files, file.address, file.bytes, key)
        text = content.decode("latin-1").strip("\xef\xbb\xbf\xff\xfe\0 \t\r\n")
        if text and not SEPARATOR_LINE.fullmatch(text):
            where = f"{key}: {file.address}"
            return _Beginning(file.address, where, content, is_whole, len(filled) == 1)
    raise nothing_in_files(f"{key}: {', '.join(paths)}")


def _recognize_csv(
    beginning: _Beginning,
    stated: Mapping[str, str],
    names: Sequence[str],
    *,
    asks: bool,
    guesses: bool,
) -> Recognized:
    """Recognize encoding, separator, header and decimal comma of a CSV file, in this order.

    Each step reads with what the step before recognized. Options that are ``stated`` are not
    recognized. ``names``, ``asks`` and ``guesses`` are those of :func:`recognize`. Only what
    differs from a plain CSV file becomes an option of the result.
    """
    file, where, content, is_whole, is_only_file = beginning
    encoding, is_guess = stated.get("encoding") or encoding_of_mark(content), False
    try:
        text = _text_of(content, encoding, where)
    except DataError:
        likely = likely_encodings(content) if guesses and "encoding" not in stated else []
        if not likely:
            raise
        encoding, is_guess = likely[0], True
        text = _text_of(content, encoding, where)
    named_separator, lines = _lines_of(text, stated.get("comment", ""), is_whole=is_whole)
    quotes = stated.get("quote", '"'), stated.get("escape", '"')
    header = stated["header"].lower() == "true" if "header" in stated else None
    separator = stated.get("sep", named_separator)
    if separator is None:
        tabs = uncompressed(file).endswith(".tsv")
        separator = separator_of(lines, quotes, header, names, tabs=tabs)
    separator = "\t" if separator == "\\t" else separator
    rows = rows_of(lines, separator, *quotes)
    if header is None:
        # A column in the name of a directory is not among those of the file.
        header = has_header(rows, [name for name in names if f"/{name}=" not in file])
    if asks and header is None:
        is_alone = is_whole and is_only_file and len(rows) == 1
        raise no_record_below_header(where) if is_alone else header_not_known(where)
    has_comma = guesses and separator != "," and has_decimal_comma(rows[1:] if header else rows)
    settings = (
        ("header", "true", header),
        ("sep", separator, separator != ","),
        ("decimal", ",", has_comma),
        ("encoding", encoding, encoding != UTF_8),
    )
    unset = {name: value for name, value, applies in settings if applies and name not in stated}
    return Recognized("csv", file, header, separator, encoding, is_guess, unset)


def separator_in_words(separator: str) -> str:
    """Return the name of a separator.

    >>> separator_in_words(";"), separator_in_words("#")
    ('semicolon', "'#'")
    """
    return _NAMES_OF_SEPARATORS.get(separator, repr(separator))


def found_in_files(files: Files, configuration: Configuration) -> dict[str, str]:
    """Detect the input options that the configuration leaves out, for its ``with_input``.

    Logs them, but no value of the data. Raises the errors of :func:`recognize`, and also if it is
    uncertain whether the first line is a header.
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
            # If the configuration does not describe the file, its numbers are read as numbers.
            settings["inferSchema"] = "true"
        if recognized.data_format != stated.format:
            settings["format"] = recognized.data_format
    if settings and (recognized.file is not None or "format" in settings):
        shown = settings | {"sep": separator_in_words(recognized.separator or "")}
        listed = ", ".join(f"{name} {shown[name]}" for name in settings)
        _LOGGER.info("the input is read with what its files show: %s", listed)
    return settings


def settled(files: Files, configuration: Configuration) -> Configuration:
    """Return a configuration with all options of its input. See :func:`found_in_files`."""
    if configuration.input.is_settled:
        return configuration
    return configuration.with_input(found_in_files(files, configuration))


def _text_of(content: bytes, encoding: str, where: str) -> str:
    """Decode the beginning of a file, which may end within a letter, or raise DataError."""
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
    """Return the separator that the first line names, or None, and the lines of records."""
    lines = re.split("\r\n|[\r\n]", text)
    if not is_whole and len(lines) > 1:
        del lines[-1]
    match = SEPARATOR_LINE.fullmatch(lines[0])
    records = [
        line
        for line in lines[1 if match else 0 :]
        if line.strip() and not (comment and line.startswith(comment))
    ]
    return match[1] if match else None, records


def _format_of_files(files: Sequence[str], key: str) -> str | None:
    """Return the format that the names of a table's files show, or None if none shows one.

    Raises ConfigurationError if they show several.
    """
    by_kind = {kind: file for file in reversed(files) if (kind := format_of_name(file)) is not None}
    if len(by_kind) > 1:
        listed = " and ".join(f"{file} ({kind})" for kind, file in sorted(by_kind.items()))
        raise ConfigurationError(
            f"{key}: found files of several formats: {listed}. Expected one. Name the files of one "
            f"of them only, with a pattern such as *.{min(by_kind)}"
        )
    return next(iter(by_kind), None)


def _format_of_bytes(content: bytes) -> str:
    """Return the format of a file by its first bytes: of another program, or one that is read.

    >>> _format_of_bytes(b'{"age": 39}'), _format_of_bytes(b"age,sex")
    ('json', 'csv')
    """
    other = foreign_format(content)
    if other is not None:
        return other
    if content.lstrip().startswith(b"{"):
        return "json"
    # A text file may begin with a column named PAR1.
    is_text = b"\0" not in content
    marked = (kind for mark, kind in _MARKS.items() if content.startswith(mark))
    return "csv" if is_text else next(marked, "csv")


def _by_name(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by their names in small letters, without aliases.

    >>> _by_name({"delimiter": ";", "Header": "true"})
    {'sep': ';', 'header': 'true'}
    """
    return {
        OPTION_ALIASES.get(name.lower(), name.lower()): value for name, value in options.items()
    }
