"""Create the errors of tables that cannot be read, for all engines.

``where`` is what named the paths (``DATA`` of the command line, or a key), a colon, and the paths,
with file and line if they are known. ``section`` is that of a configuration with format and
options, or None. No message has a value of the data.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from anonspark.engine.compression import UNPACKING_FAILURES
from anonspark.engine.encodings import likely_encodings
from anonspark.engine.foreign_formats import remedy_for
from anonspark.engine.values.file_types import ORC_INSTANT
from anonspark.errors import ConfigurationError, DataError, limit_reached
from anonspark.redaction import redact

_LOGGER = logging.getLogger("anonspark")

_OF_A_COMMAND = "DATA: "
_SEMICOLON = "';'"
_OF_A_SECTION = re.compile(r"([a-z_.]+)\.[a-z_]+: ")


@lru_cache
def log_once(level: int, message: str, subject: str = "") -> None:  # noqa: ARG001 - of the cache
    """Log a message without data, once in a process for each subject that it is about."""
    _LOGGER.log(level, "%s", message)


def option_of(where: str, name: str, value: str) -> str:
    """Return how to set an option of a format where the paths were named.

    >>> option_of("input.path: a.csv", "sep", ";"), option_of("DATA: a.csv", "sep", ";")
    ('input.options.sep: ;', '--option sep=;')
    """
    if where.startswith(_OF_A_COMMAND):
        return f"--option {name}={value}"
    return f"{_section_of(where)}.options.{name}: {value}"


def _section_of(where: str) -> str:
    """Return the section of the key that named paths."""
    section = _OF_A_SECTION.match(where)
    return "input" if section is None else section[1]


def format_of(where: str, name: str) -> str:
    """Return how to set a format where the paths were named.

    >>> format_of("DATA: people", "orc")
    '--format orc'
    """
    if where.startswith(_OF_A_COMMAND):
        return f"--format {name}"
    return f"{_section_of(where)}.format: {name}"


def on_spark(where: str) -> str:
    """Return how to have Spark read paths, where they were named."""
    return "--engine spark" if where.startswith(_OF_A_COMMAND) else "execution.engine: spark"


def lines_as_one(where: str) -> str:
    """Return the option to read records that take several lines."""
    return option_of(where, "multiLine", "true")


def nothing_there(path: str, key: str) -> str:
    """Return the error of a path that does not exist."""
    return f"{key}: {path} is not there. Check the path, and that the cluster can reach it"


def remedy(section: str | None) -> str:
    """Return what may be wrong apart from the files."""
    return "its format" if section is None else f"{section}.format and {section}.options"


def not_of_the_format(
    paths: Sequence[str], data_format: str, key: str, section: str | None, reason: str
) -> DataError:
    """Return the error of files that cannot be opened in a format.

    ``key`` named the paths, and ``reason`` is one of Spark's conditions.
    """
    return DataError(
        f"{key}: cannot read {', '.join(paths)} as {data_format} ({reason}). Check "
        f"{remedy(section)}"
    )


@dataclass(frozen=True)
class TableAddress:
    """The table that is opened, with the format in small letters and the key that named it."""

    paths: tuple[str, ...]
    data_format: str
    key: str
    section: str | None = None

    @property
    def where(self) -> str:
        """Return the key and the paths, for messages."""
        return f"{self.key}: {', '.join(self.paths)}"

    def not_of_the_format(self, reason: str) -> DataError:
        """Return the error of files that are not of the format."""
        return not_of_the_format(self.paths, self.data_format, self.key, self.section, reason)


def note_nanoseconds(key: str, columns: Iterable[str]) -> None:
    """Log that columns of nanoseconds are read as microseconds, even if all values stay equal."""
    for name in columns:
        log_once(
            logging.INFO,
            f"{key}: the column {name!r} has nanoseconds. It is read in microseconds, and digits "
            "beyond them are cut off",
        )


def type_not_read(where: str, type_text: str, *, column: str | None = None) -> DataError:
    """Return the error of a column whose type, as its file names it, cannot be read.

    ``column`` is None if unknown. Then the file's other columns cannot be read either.
    """
    what = f"a column has the type {type_text}"
    remedy = "Drop it, or convert it"
    if "[ns]" in type_text or "NANOS" in type_text:
        remedy = (
            "Drop it, or write the file anew with microseconds, in pandas and pyarrow by "
            'coerce_timestamps="us"'
        )
    if type_text == ORC_INSTANT:
        remedy = "Drop it, or write the file anew as Parquet"
    if column is not None:
        what = f"the column {column!r} has the type {type_text}"
    elif not where.startswith(_OF_A_COMMAND):
        remedy += (
            ", or set execution.engine to local, which passes over columns that are not listed"
        )
    return DataError(
        f"{where}: {what}, which cannot be read. Expected numbers, texts, truth values, days or "
        f"points in time. {remedy}"
    )


def options_not_taken(
    data_format: str, key: str, section: str | None, kind: str
) -> ConfigurationError:
    """Return the error of options that a format refuses, with an error of some kind."""
    where = key if section is None else f"{section}.format, {section}.options"
    return ConfigurationError(
        f"{where}: the data source {data_format!r} does not take these options ({kind}). Expected "
        "those that its documentation lists, all it requires. Correct them (the details, with "
        "--debug, may show credentials)"
    )


def vanished(where: str) -> DataError:
    """Return the error of files that existed when the table was opened."""
    return DataError(
        f"{where}: files vanished while they were read. Keep the input unchanged during a run, "
        "and run again"
    )


def old_calendar(where: str, column: str, file: str) -> DataError:
    """Return the error of days and moments that a file may count by the Julian calendar."""
    return DataError(
        f"{where}: the column {column!r} has days before 1582-10-15 or times before 1900 in "
        f"{redact(file)}, which may count them by an old calendar. Write the file anew as Parquet "
        "by the program that wrote it, which knows its calendar"
    )


def different_headers(where: str) -> DataError:
    """Return the error of CSV files of one table that have different headers."""
    return DataError(
        f"{where}: CSV files with different headers. Expected the same columns in the same order "
        "in all files. Write those that differ anew"
    )


def mixed_kinds(where: str, column: str) -> DataError:
    """Return the error of a JSON column whose values have no type in common."""
    return DataError(
        f"{where}: the column {column!r} has values of kinds that have no type in common. Expected "
        "one kind (numbers, texts, truth values, lists or objects). Write texts only"
    )


def line_break_in_value(where: str) -> DataError:
    """Return the error of a quoted CSV value that goes on in the next line."""
    return DataError(
        f"{where}: a value has a line break in it, or a quote that does not end. Expected a record "
        f"in each line. Say {lines_as_one(where)}, or take the line breaks out of the values"
    )


def header_with_line_break(where: str) -> DataError:
    """Return the error of a CSV file whose header goes on in the second line."""
    return DataError(
        f"{where}: the name of a column has a line break in it, or quotes that are not as options "
        "say. Expected all names in the first line. Rename the column"
    )


def irregular_quotes(where: str, escape: str, quote: str) -> DataError:
    """Return the error of a CSV line whose quotes contradict the options."""
    other = "'\\'" if escape == quote else repr(quote)
    written = "a backslash stands before quotes in" if escape == quote else "quotes are doubled in"
    return DataError(
        f"{where}: a line has quotes that are neither around a value nor escaped by {escape!r}, "
        f"or one that does not end. Say {option_of(where, 'escape', other)} where {written} "
        "values, else correct the line"
    )


def nothing_in_files(where: str) -> DataError:
    """Return the error of CSV files that are all empty."""
    return DataError(f"{where}: the file is empty. Expected records. Write it anew")


def no_record_below_header(where: str) -> DataError:
    """Return the error of a CSV file of one line, which may name the columns."""
    return DataError(
        f"{where}: the file has no records, unless its only line is one. Write it anew, or say "
        f"{option_of(where, 'header', 'false')}"
    )


def another_format(where: str, kind: str) -> DataError:
    """Return the error of a file that is not CSV but of another kind by its first bytes."""
    remedy = remedy_for(kind)
    if remedy is not None:
        return DataError(
            f"{where}: the file is {kind} by its first bytes, which is not read. {remedy}"
        )
    name = "Parquet" if kind == "parquet" else kind.upper()
    return DataError(
        f"{where}: the file is {name} by its first bytes, not CSV. Say {format_of(where, kind)}, "
        "or give the file a name with that ending"
    )


def header_not_known(where: str) -> ConfigurationError:
    """Return the error of a CSV file whose first line may be a header or a record."""
    return ConfigurationError(
        f"{where}: nothing shows whether the first line names the columns, each once. Say "
        f"{option_of(where, 'header', 'true')}, and call the columns as that line does, or "
        f"{option_of(where, 'header', 'false')}, which calls them _c0, _c1 and so on"
    )


def undecodable(where: str, encoding: str, line: int | None, content: bytes) -> DataError:
    """Return the error of bytes that are no text in their file's encoding.

    ``line`` counts from 1, or is None if it is not known. ``content`` are lines around the fault,
    or the beginning of the file: they show likely encodings, and are not shown.
    """
    likely = [name for name in likely_encodings(content) if name.lower() != encoding.lower()]
    guess = f" (likely {' or '.join(likely)})" if likely else ""
    option = option_of(where, "encoding", likely[0] if likely else "NAME")
    lines = "its lines are" if line is None else f"line {line:,} is"
    return DataError(
        f"{where}: {lines} not written in {encoding}{guess}. Name the encoding ({option}) and look "
        "at the letters that are read so, or write the file anew in UTF-8"
    )


def malformed_csv(where: str) -> DataError:
    """Return the error of a CSV record with too many or too few values, or of the wrong type."""
    return DataError(
        f"{where}: a record has too few or too many values, or one that is not of its column's "
        "type (as in a header that is repeated). Expected in each line what the others have. "
        "Correct the file, or say what stands between values "
        f"({option_of(where, 'sep', _SEMICOLON)}, for instance). Where a value has a line break in "
        f"it, say {lines_as_one(where)}"
    )


def malformed_json(where: str) -> DataError:
    """Return the error of a line that is no JSON record."""
    return DataError(
        f"{where}: a record is not valid JSON, has a name twice or a number beyond 1.8e308, or is "
        "not of the columns' types. Expected one whole object in each line. Correct the file. "
        f"Where an object takes several lines, say {lines_as_one(where)}"
    )


def longer_than_a_line(where: str, file: str, most: int) -> DataError:
    """Return the error of a line of a text file that is longer than any record."""
    return DataError(
        f"{where}: {file} has a line of more than {most >> 20:,} MiB. Expected a record in each "
        "line, and lines that end as on Unix or Windows. Correct the file"
    )


def larger_than_a_table(where: str, file: str, times: int) -> DataError:
    """Return the error of a compressed file that unpacks to more than any table."""
    return DataError(
        f"{where}: {file} has more than {times:,} times its bytes when it is unpacked, as files "
        "have that are to fill a memory. If it is a table, unpack it, and name the unpacked file"
    )


def unreadable(where: str, file: str | None = None) -> DataError:
    """Return the error of files that are damaged or of another format."""
    settings = "input.format, input.options"
    if where.startswith(_OF_A_COMMAND):
        settings = "--format, --option"
    what = "files" if file is None else redact(file)
    return DataError(
        f"{where}: {what} cannot be read in this format. Check {settings}, permissions and the "
        "files themselves (the details, with --debug, may show data)"
    )


@contextmanager
def reading_file(where: str, file: str) -> Iterator[None]:
    """Translate errors of Arrow and the system while a file is read.

    Raises DataError if the file vanished, is damaged, or may not be read.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise vanished(where) from error
    except (pa.ArrowException, *UNPACKING_FAILURES, UnicodeDecodeError) as error:
        # Arrow raises an OSError without a number for most faults of a file.
        if isinstance(error, OSError) and error.errno and not isinstance(error, PermissionError):
            raise
        raise limit_reached(error) or unreadable(where, file) from error
