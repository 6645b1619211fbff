"""Read text files: only this code decodes bytes, splits them into records, and types values.

Engines pass whole files, parts of them or lines, and get batches. They call, in this order,

- :func:`text_reader`, with the options of a table, whose result can be pickled,
- for CSV ``with_header``, with the first line (``first_line``) of the first file that has one,
- ``blocks`` of each file or part of it (lines without a file, in UTF-8 and joined by line feeds,
  are a block already),
- ``infer`` for all blocks, and merge the results by ``|``,
- ``schema`` for the merged result, and ``read`` for the blocks, with some columns of it.

A line is a record, unless it equals the header's line, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anonspark.config import Configuration
from anonspark.engine.encodings import codec_of
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import TableAddress
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.json_reader import JsonReader
from anonspark.engine.values.text_forms import ISO_DAY, DayForm
from anonspark.errors import ConfigurationError

Reader = CsvReader | JsonReader

TEXT_FORMATS = ("csv", "json")

OPTION_ALIASES = {"delimiter": "sep", "charset": "encoding"}
"""Other names of options, in small letters."""


def text_reader(
    address: TableAddress,
    options: Mapping[str, str],
    texts: Sequence[str] = (),
    selection: WantedColumns | None = None,
) -> Reader:
    """Create the reader of text files in one of :data:`TEXT_FORMATS`.

    Names of options may have any case. ``texts`` are columns that stay texts whatever their values
    are, and ``selection`` the wanted columns, or None for all. Raises ConfigurationError if an
    option is unknown or has a wrong value.

    >>> text_reader(TableAddress(("a.csv",), "csv", "input.path"), {"SEP": ";"}).separator
    ';'
    """
    prefix = "--option " if address.key == "DATA" else f"{address.section or address.key}.options."
    settings = _read_options(address.data_format, options, prefix)
    if selection is not None:
        shared = ("markers", "required", "numbers", "declared", "skips_malformed")
        settings |= {name: getattr(selection, name) for name in shared}
        settings["attributes"] = tuple(selection.names)
    if address.data_format == "json":
        return JsonReader(where=address.where, **settings)
    separator = settings.get("separator", CsvReader.separator)
    for name in ("quote", "escape", "comment", "decimal"):
        if separator == settings.get(name, getattr(CsvReader, name)):
            raise ConfigurationError(
                f"{prefix}sep: found {separator!r}, which is {name}, too. Expected another letter "
                "for one of them"
            )
    return CsvReader(where=address.where, texts=tuple(texts), **settings)


def _read_options(data_format: str, options: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Translate the options of a format into fields of its reader. Messages use the prefix."""
    parsers = {name.lower(): (name, parser) for name, parser in _OPTIONS[data_format].items()}
    settings: dict[str, Any] = {}
    options_by_name: dict[str, str] = {}
    for option, text in options.items():
        lower = OPTION_ALIASES.get(option.lower(), option.lower()).lower()
        if lower not in parsers:
            raise ConfigurationError(
                f"{prefix}{option}: {data_format} has no such option. Expected "
                f"{', '.join(_OPTIONS[data_format])}. Leave it out"
            )
        name, parser = parsers[lower]
        try:
            value = parser.read(text)
        except (ValueError, LookupError):
            raise ConfigurationError(
                f"{prefix}{name}: found {text!r}. Expected {parser.expected}"
            ) from None
        first = options_by_name.setdefault(lower, option)
        if settings.setdefault(parser.field, value) != value:
            raise ConfigurationError(
                f"{prefix}{option}: found {text!r}, and {options[first]!r} as {first}, which is "
                "another name of it. Leave one of them out"
            )
    return settings


def reader_of_texts(configuration: Configuration) -> tuple[Configuration, Reader | None]:
    """Return a configuration that reads texts without types, and a reader that adds the types.

    The configuration has to be settled. The reader is None if files have types or only texts.
    """
    source = configuration.input
    address = TableAddress(source.paths, source.format.lower(), "input.path", "input")
    if address.data_format not in TEXT_FORMATS:
        return configuration, None
    reader = text_reader(address, source.options, selection=WantedColumns.of(configuration))
    if not reader.infers:
        return configuration, None
    option = next((name for name in source.options if name.lower() == "inferschema"), "inferSchema")
    return configuration.with_input({option: "false"}), replace(
        reader, required=(), multi_line=False
    )


@dataclass(frozen=True)
class _Option:
    """An option: the reader's field, the function that reads its text, and words for its values."""

    field: str
    read: Callable[[str], object]
    expected: str


def _flag(text: str) -> bool:
    """Read true or false. Raises KeyError for other texts."""
    return {"true": True, "false": False}[text.lower()]


def _letter(text: str) -> str:
    r"""Read one ASCII letter, or a tab. Raises ValueError for other texts.

    >>> _letter(r"\t")
    '\t'
    """
    text = {"\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise ValueError(text)
    return text


def _letter_or_nothing(text: str) -> str:
    """Read one ASCII letter or an empty text."""
    return _letter(text) if text else text


def _encoding(text: str) -> str:
    """Read the name of an encoding, which is empty for UTF-8. Raises ValueError if it is not known.

    >>> _encoding("windows-1252"), _encoding("utf8")
    ('cp1252', '')
    """
    codec = codec_of(text)
    if codec is None:
        raise ValueError(text)
    return "" if codec == "utf-8" else codec


def _days(text: str) -> DayForm | None:
    """Read a form of days, which is None for that of ISO 8601.

    Raises ValueError if it is not known.
    """
    form = DayForm(text)
    if not form.is_known:
        raise ValueError(text)
    return None if text == ISO_DAY else form


_FLAG, _LETTER = "true or false", "one ASCII letter"
_LINES = {
    "encoding": _Option("encoding", _encoding, "the name of an encoding that Python knows"),
    "multiLine": _Option("multi_line", _flag, _FLAG),
    "inferSchema": _Option("infers", _flag, _FLAG),
}
_OPTIONS: dict[str, dict[str, _Option]] = {
    "json": _LINES,
    "csv": {
        "header": _Option("header", _flag, _FLAG),
        "sep": _Option("separator", _letter, f"{_LETTER}, or \\t for a tab"),
        "quote": _Option("quote", _letter_or_nothing, f"{_LETTER}, or nothing"),
        "escape": _Option("escape", _letter_or_nothing, f"{_LETTER}, or nothing"),
        "nullValue": _Option("null", str, "a text"),
        "comment": _Option("comment", _letter_or_nothing, f"{_LETTER}, or nothing"),
        "ignoreLeadingWhiteSpace": _Option("trim_left", _flag, _FLAG),
        "ignoreTrailingWhiteSpace": _Option("trim_right", _flag, _FLAG),
        "decimal": _Option("decimal", {".": "", ",": ","}.__getitem__, "a point or a comma"),
        "dateFormat": _Option(
            "days", _days, "dd or d, MM or M, and yyyy, with one of . / - or a blank between them"
        ),
        **_LINES,
    },
}
