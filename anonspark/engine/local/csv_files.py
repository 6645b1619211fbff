"""Reading CSV files by Spark's rules: a line is a record, and blank lines are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from anonspark.engine.local.columnar_files import Read, reading_file
from anonspark.engine.local.day_patterns import DayPattern
from anonspark.engine.local.input_files import DataFile, DataFiles
from anonspark.engine.local.running import map_in_threads
from anonspark.engine.local.text_files import (
    BYTE_ORDER_MARK,
    Part,
    blocks_of,
    open_text,
    parts_of,
    read_line,
)
from anonspark.engine.local.text_types import Found, convert, look_at
from anonspark.engine.reading_errors import (
    irregular_quotes,
    line_break_in_value,
    malformed_csv,
)
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError

_BLANKS = bytes(range(33))
# Begins with few letters, for which it is looked fast.
_BLANK_LINE = re.compile(rb"([\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n]|\Z)")
_FIRST_BLANK_LINE = re.compile(rb"\A[\x00-\x09\x0b\x0c\x0e-\x20]+(?=[\r\n]|\Z)")


@dataclass(frozen=True)
class CsvDialect:
    """How records are written.

    Parameters
    ----------
    header : bool
        Whether the first line of each file names the columns.
    separator, quote, escape : str
        One letter each; an empty quote for none.
    encoding : str
    null : str
        What stands for a missing value, besides nothing.
    comment : str
        Begins lines that are passed over; empty for none.
    trim_left, trim_right : bool
        Whether blanks at the ends of values without quotes are taken off.
    days : DayPattern or None
        How days are written, for types that are inferred; None for as 2026-01-31.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    encoding: str = "utf-8"
    null: str = ""
    comment: str = ""
    trim_left: bool = False
    trim_right: bool = False
    days: DayPattern | None = None

    @cached_property
    def _field(self) -> str:
        """A regular expression for a value: quoted in the way the options say, or plain."""
        separator, quote = re.escape(self.separator), re.escape(self.quote)
        inside = f"{quote}((?:{self._inside})*+){quote}(?={separator}|\\Z)"
        return f"(?:{inside}|([^{quote}{separator}]*+))"

    @property
    def _inside(self) -> str:
        """A regular expression for a letter of a quoted value."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self.escape == self.quote:
            return f"[^{quote}]|{quote}{quote}"
        return f"[^{quote}{escape}]|{escape}(?s:.)"

    @cached_property
    def regular(self) -> re.Pattern[str]:
        """Matches a line whose quotes stand where they should."""
        return re.compile(f"{self._field}(?:{re.escape(self.separator)}{self._field})*+")

    @cached_property
    def unended(self) -> re.Pattern[str]:
        """Matches a line whose last value is quoted, and goes on in the next line."""
        separator, quote = re.escape(self.separator), re.escape(self.quote)
        return re.compile(f"(?:{self._field}{separator})*+{quote}(?:{self._inside})*+")

    @cached_property
    def one_field(self) -> re.Pattern[str]:
        """Matches a value and what separates it from the next one."""
        return re.compile(f"{self._field}({re.escape(self.separator)}|\\Z)")

    def is_regular(self, line: str) -> bool:
        """Return whether the quotes of a line, if there are some, stand where they should."""
        return self.quote not in line or self.regular.fullmatch(line) is not None

    def values(self, line: str) -> list[str | None]:
        """Return the values of a record.

        Raises
        ------
        IrregularQuotesError
            If its quotes are written in another way.
        """
        if not self.quote or self.quote not in line:
            return [self._plain(text) for text in line.split(self.separator)]
        if not self.is_regular(line):
            raise IrregularQuotesError
        values, place = [], 0
        while True:
            match = self.one_field.match(line, place)
            if match is None:
                raise IrregularQuotesError
            values.append(self._plain(match[2]) if match[1] is None else self._quoted(match[1]))
            if not match[3]:
                return values
            place = match.end()

    def _plain(self, text: str) -> str | None:
        blanks = _BLANKS.decode()
        text = text.lstrip(blanks) if self.trim_left else text
        text = text.rstrip(blanks) if self.trim_right else text
        return None if text in ("", self.null) else text

    def _quoted(self, text: str) -> str | None:
        escape, quote = re.escape(self.escape), re.escape(self.quote)
        text = re.sub(f"{escape}([{escape}{quote}])", lambda match: match[1], text)
        return None if text == self.null else text


class IrregularQuotesError(Exception):
    """A line has quotes that are neither around a value nor written as the options say."""


@dataclass(frozen=True)
class CsvFiles:
    """The CSV files of a table.

    Parameters
    ----------
    files : DataFiles
    dialect : CsvDialect
    where : str
        What named the paths, and the paths, for messages.
    skips_malformed : bool
        Whether lines that are no record are passed over, each by itself; else they are errors.
    """

    files: DataFiles
    dialect: CsvDialect
    where: str
    skips_malformed: bool = False
    _headers: dict[str, list[str | None] | None] = field(default_factory=dict)

    def header(self, file: DataFile) -> list[str | None] | None:
        """Return the values of a file's first line; None if it has none."""
        if file.path not in self._headers:
            with reading_file(self.where):
                line = next(self._first_lines(file), None)
            self._headers[file.path] = None if line is None else self._values(line)
        return self._headers[file.path]

    def _first_lines(self, file: DataFile) -> Iterator[str]:
        with open_text(file) as source:
            while line := read_line(source, file, self.where):
                cleaned = self._cleaned(line.removeprefix(BYTE_ORDER_MARK))
                # Of old Macs' files a line of ours has many of theirs.
                yield from filter(None, re.split("[\r\n]", cleaned.decode()))

    @property
    def first_line(self) -> list[str | None]:
        """The values of the first line there is."""
        return next(filter(None, map(self.header, self.files.files)), [])

    def columns(self) -> list[str]:
        """Return the names of the columns, as Spark makes them of the first line there is."""
        first = self.first_line
        if not self.dialect.header:
            return [f"_c{place}" for place in range(len(first))]
        lower = [name.lower() for name in first if name]
        return [
            f"_c{place}"
            if not name
            else name
            if lower.count(name.lower()) == 1
            else name + str(place)
            for place, name in enumerate(first)
        ]

    def _values(self, line: str) -> list[str | None]:
        try:
            return self.dialect.values(line)
        except IrregularQuotesError:
            raise self._irregular([line]) from None

    def _irregular(self, lines: Sequence[str]) -> DataError:
        if any(map(self.dialect.unended.fullmatch, lines)):
            return line_break_in_value(self.where)
        return irregular_quotes(self.where, self.dialect.escape, self.dialect.quote)

    def types(self, columns: Sequence[str]) -> dict[str, Found]:
        """Look at all values; return what is known of each column. Reads all files once."""

        def look(part: Part) -> dict[str, Found]:
            known = dict.fromkeys(columns, Found())
            with reading_file(self.where):
                for block in self.blocks(part, with_header=True):
                    batch = self._parsed(self._without_headers(block), columns, columns)
                    for name in columns:
                        known[name] = look_at(batch.column(name), known[name], self.dialect.days)
            return known

        found = dict.fromkeys(columns, Found())
        for known in map_in_threads(look, parts_of(self.files.files)):
            found = {name: found[name] | known[name] for name in columns}
        return found

    def _without_headers(self, block: bytes) -> bytes:
        """Leave out lines that are the first header: Spark infers nothing from them."""
        line = self._first_header
        if not line or line not in block:
            return block
        return re.sub(rb"(?:(?<=[\r\n])|\A)" + re.escape(line) + rb"(?=[\r\n]|\Z)", b"", block)

    @cached_property
    def _first_header(self) -> bytes:
        if not self.dialect.header:
            return b""
        lines = (line for file in self.files.files for line in self._first_lines(file))
        return next(lines, "").encode()

    def reads(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> list[Read]:
        """Return what reads the table, some megabytes each."""
        return [
            partial(self._read, part, tuple(columns), types) for part in parts_of(self.files.files)
        ]

    def _read(
        self,
        part: Part,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        wanted: pa.Schema,
    ) -> Batches:
        constants = self.files.constants(part.file)
        own = [name for name in wanted.names if name in types and name not in constants]
        with reading_file(self.where):
            for block in self.blocks(part):
                batch = self._parsed(block, columns, own or columns[:1])
                try:
                    values = {
                        name: convert(batch.column(name), types[name], self.dialect.days)
                        for name in own
                    }
                except ValueError as error:
                    raise malformed_csv(self.where) from error
                for name, value in constants.items():
                    values[name] = pa.repeat(value, len(batch))
                yield pa.RecordBatch.from_arrays(
                    [values[name] for name in wanted.names], schema=wanted
                )

    def blocks(self, part: Part, *, with_header: bool = False) -> Iterator[bytes]:
        """Yield lines of a file, without the header, blank ones and comments, as UTF-8."""
        header = self.dialect.header and part.start == 0 and not with_header
        for block in blocks_of(part, self.where):
            lines = self._cleaned(block)
            if header and lines.strip(b"\r\n"):
                lines = re.sub(rb"\A[\r\n]*[^\r\n]+", b"", lines)
                header = False
            if lines.strip(b"\r\n"):
                yield lines

    def _cleaned(self, block: bytes) -> bytes:
        """Return lines as UTF-8, without blank ones and comments."""
        encoding = self.dialect.encoding
        if encoding != "utf-8":
            block = block.decode(encoding, "replace").encode()
        elif not block.isascii():
            # What is no UTF-8 becomes the replacement character, as in Java.
            block = block.decode("utf-8", "replace").encode()
        block = _BLANK_LINE.sub(rb"\1", _FIRST_BLANK_LINE.sub(b"", block))
        comment = self.dialect.comment.encode()
        if comment and comment in block:
            block = re.sub(rb"(?:(?<=[\r\n])|\A)" + re.escape(comment) + rb"[^\r\n]*", b"", block)
        return block

    def _parsed(
        self, block: bytes, columns: Sequence[str], wanted: Sequence[str]
    ) -> pa.RecordBatch:
        """Return some columns of lines as texts."""
        dialect = self.dialect
        quoted = bool(dialect.quote) and dialect.quote.encode() in block
        if quoted:
            lines = re.split("[\r\n]", block.decode())
            if self.skips_malformed:
                lines = [line for line in lines if dialect.is_regular(line)]
                block = "\n".join(lines).encode()
            lines = [line for line in lines if dialect.quote in line]
            if not all(map(dialect.regular.fullmatch, lines)):
                raise self._irregular(lines)
            other = dialect.escape != dialect.quote and any(dialect.escape in one for one in lines)
            # Nothing in quotes is nothing to Spark, but for a word of its own for it.
            if other or dialect.null or dialect.trim_left or dialect.trim_right:
                return self._parsed_by_lines(block, columns, wanted)
        texts: Mapping[str, Any] = dict.fromkeys(columns, pa.string())
        if not block.strip(b"\r\n"):
            schema = pa.schema([(name, pa.string()) for name in wanted])
            return pa.RecordBatch.from_pylist([], schema=schema)
        trims = dialect.trim_left or dialect.trim_right
        try:
            table = csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=list(columns)
                ),
                csv.ParseOptions(
                    delimiter=dialect.separator,
                    quote_char=dialect.quote if quoted else False,
                    double_quote=quoted and dialect.escape == dialect.quote,
                    invalid_row_handler=(lambda _: "skip") if self.skips_malformed else None,
                ),
                csv.ConvertOptions(
                    column_types=texts,
                    null_values=[] if trims else list({"", dialect.null}),
                    strings_can_be_null=True,
                    include_columns=list(wanted),
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid as error:
            # The lines' quotes are known to be sound, and all values are texts.
            raise malformed_csv(self.where) from error
        arrays = [column.combine_chunks() for column in table.columns]
        if trims:
            arrays = [self._trimmed(array) for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, list(wanted))

    def _trimmed(self, values: pa.Array) -> pa.Array:
        blanks = _BLANKS.decode()
        values = pc.utf8_ltrim(values, blanks) if self.dialect.trim_left else values
        values = pc.utf8_rtrim(values, blanks) if self.dialect.trim_right else values
        nothing = pc.is_in(values, pa.array(["", self.dialect.null]))
        return pc.if_else(nothing, pa.scalar(None, pa.string()), values)

    def _parsed_by_lines(
        self, block: bytes, columns: Sequence[str], wanted: Sequence[str]
    ) -> pa.RecordBatch:
        lines = re.findall("[^\r\n]+", block.decode())
        records = [self._values(line) for line in lines]
        if self.skips_malformed:
            records = [record for record in records if len(record) == len(columns)]
        if any(len(record) != len(columns) for record in records):
            raise malformed_csv(self.where)
        places = [columns.index(name) for name in wanted]
        arrays = [pa.array([record[place] for record in records], pa.string()) for place in places]
        return pa.RecordBatch.from_arrays(arrays, list(wanted))
