"""Read records of CSV: their lines, their values as texts, and the types of columns."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from anonspark.engine.csv_beginning import without_separator_line
from anonspark.engine.raw_columns import Reading, is_text
from anonspark.engine.reading_errors import (
    different_headers,
    header_with_line_break,
    irregular_quotes,
    line_break_in_value,
    log_once,
    malformed_csv,
)
from anonspark.engine.tasks import Batches
from anonspark.engine.values.text_forms import (
    DayForm,
    Forms,
    convert,
    forms_of,
    mean_missing,
    merged,
    type_of,
)
from anonspark.engine.values.text_lines import Lines, TextLines
from anonspark.engine.values.value_texts import read_values
from anonspark.errors import DataError

_BLANKS = "".join(map(chr, range(33)))


@dataclass(frozen=True)
class CsvReader(TextLines):
    """A form of CSV, and the reading of its values.

    Parameters
    ----------
    header : bool
        Whether the first line of each file names the columns.
    separator, quote, escape : str
        One letter each. The quote is empty if there is none. The letter behind an escape has no
        meaning. If the escape is empty or the quote, quotes in values are doubled.
    null : str
        A text that means missing, like an empty one.
    comment : str
        Beginning of lines that are passed over, or empty.
    trim_left, trim_right : bool
        Whether to strip blanks at the ends of values.
    days : DayForm or None
        Another form of days than 2026-01-31.
    decimal : str
        Sign in numbers for the decimal point, or empty for a point.
    infers : bool
        Whether values decide the types of columns. If not, all are texts.
    texts : tuple of str
        Columns that are texts whatever their values are.
    names, header_line : tuple of str, and str
        Names of the columns, and the header's line. See :meth:`with_header`.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = ""
    null: str = ""
    comment: str = ""
    trim_left: bool = False
    trim_right: bool = False
    days: DayForm | None = None
    decimal: str = ""
    infers: bool = False
    texts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    header_line: str = ""

    def with_header(self, line: str) -> CsvReader:
        """Return the reader of a table whose first file begins with a line.

        Names of columns are those of the line, or ``_c0``, ``_c1`` and so on without a header. A
        name that occurs twice, whatever its case, gets the column's index behind it. Raises
        DataError if a quoted name goes on in the next line, or quotes contradict the options.

        >>> CsvReader(header=True).with_header("age,Age,,city").names
        ('age0', 'Age1', '_c2', 'city')
        """
        try:
            values = self.values(line)
        except DataError as error:
            raise header_with_line_break(self.where) if self.multi_line else error from None
        times = Counter(name.lower() for name in values)
        names = [
            f"_c{position}"
            if not (self.header and name)
            else name
            if times[name.lower()] == 1
            else f"{name}{position}"
            for position, name in enumerate(values)
        ]
        return replace(self, names=tuple(names), header_line=line if self.header else "")

    def values(self, line: str) -> list[str]:
        """Return the values of a line, with empty texts for missing ones.

        Raises DataError if its quotes contradict the options.

        >>> CsvReader(separator=";").values('39;"Ash;ford";')
        ['39', 'Ash;ford', '']
        """
        if not line:
            return []
        locate = self.locator(b"")
        block = self._with_regular_quotes(line.encode(), locate) + b"\n"
        numbered = [f"f{position}" for position in range(line.count(self.separator) + 1)]
        record = self._parsed(block, numbered, [], locate).to_pylist()
        return [value or "" for fields in record for value in fields.values()]

    def blocks(
        self, content: IO[bytes], path: str, start: int = 0, end: int | None = None
    ) -> Iterator[Lines]:
        """Yield the lines of a file, its header blank. See :meth:`TextLines.blocks`.

        Raises DataError if the header names other columns than that of the table's first file.
        """
        has_header = self.header and not start
        for block in super().blocks(content, path, start, end):
            if not has_header:
                yield block
                continue
            lines = self._cleaned(block)
            blank = len(lines) - len(lines.lstrip(b"\n"))
            line, _, rest = lines[blank:].partition(b"\n")
            if line:
                # Equal headers are not parsed: that takes longer than reading a small file.
                headers = {line.decode(), self.header_line}
                names = ([name.lower() for name in self.values(header)] for header in headers)
                if len(headers) > 1 and next(names) != next(names):
                    raise different_headers(block.locate(None))
                has_header = False
            if rest:
                yield Lines(b"\n" * (blank + 1) + rest, block.locate)

    def _lines(
        self, content: IO[bytes], path: str, start: int, end: int | None, size: int
    ) -> Iterator[Lines]:
        """Yield lines as :meth:`TextLines._lines` does, without one that names the separator."""
        is_first = not start
        for block in super()._lines(content, path, start, end, size):
            yield Lines(without_separator_line(block), block.locate) if is_first else block
            is_first = False

    def _cleaned(self, block: bytes) -> bytes:
        """Empty lines that are blank or comments. Their number stays, for messages."""
        if self.multi_line:
            block = self._without_lines(block, b"", rb"[\x00-\x09\x0b-\x20]+")
        else:
            block = super()._cleaned(block)
        comment = self.comment.encode()
        return self._without_lines(block, comment, rb"[^\n]*") if comment else block

    def _without_lines(self, block: bytes, beginning: bytes, rest: bytes = b"") -> bytes:
        """Empty the lines of a block that begin with some bytes, outside of quotes."""
        if beginning not in block:
            return block
        lines = rb"(?:(?<=\n)|\A)" + re.escape(beginning) + rest + rb"(?=\n|\Z)"
        if not (self.multi_line and self.quote and re.search(lines, block)):
            return re.sub(lines, b"", block)
        quote = f"[{re.escape(self.quote)}]"
        value = f"((?:(?<=[{re.escape(self.separator)}\n])|\\A){quote}(?:{self._inside})*+{quote})"
        return re.sub(lines + b"|" + value.encode(), rb"\1", block)

    @property
    def _doubles(self) -> bool:
        """Return whether quotes in values are doubled, not escaped."""
        return self.escape in ("", self.quote)

    @property
    def _inside(self) -> str:
        """Return the pattern of a letter within quotes."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self._doubles:
            return f"[^{quote}]|{quote}{quote}"
        return f"[^{quote}{escape}]|{escape}(?s:.)"

    def _with_regular_quotes(self, block: bytes, locate: Callable[[int | None], str]) -> bytes:
        """Return the lines whose quotes and escapes follow the options.

        Raises DataError if one does not, unless malformed lines are passed over.
        """
        signs = {self.quote, "" if self._doubles else self.escape} - {""}
        if not any(sign.encode() in block for sign in signs):
            return block
        escape = "" if self._doubles else re.escape(self.escape)
        lines = pa.array([block], pa.large_string())
        lines = lines if self.multi_line else pc.split_pattern(lines, "\n").flatten()
        quote, sign = re.escape(self.quote), f"{re.escape(self.separator)}\n"
        escaped = f"|{escape}(?s:.)" if escape else ""
        value = f"(?:(?:[^{quote}{escape}{sign}]{escaped})(?:[^{escape}{sign}]{escaped})*|)"
        if quote:
            value = f"(?:{quote}(?:{self._inside})*{quote}|{value})"
        regular = pc.match_substring_regex(lines, f"^{value}(?:[{sign}]{value})*$")
        if pc.all(regular).as_py():
            return block
        if self.skips_malformed:
            return "\n".join(lines.filter(regular).to_pylist()).encode()
        unended = f"^(?:{value}[{sign}])*{quote}(?:{self._inside})*$"
        odd = lines.filter(pc.invert(regular))
        where = locate(None if self.multi_line else pc.index(regular, False).as_py())
        if quote and not self.multi_line and pc.any(pc.match_substring_regex(odd, unended)).as_py():
            raise line_break_in_value(where)
        raise irregular_quotes(where, self.escape or self.quote, self.quote)

    def _texts(self, block: bytes, columns: Sequence[str]) -> pa.RecordBatch:
        """Parse some columns of lines as texts."""
        locate, block = self.locator(block), self._cleaned(block)
        if self.header_line:
            block = self._without_lines(block, self.header_line.encode())
        block = self._with_regular_quotes(block, locate)
        if not block.strip(b"\n"):
            return pa.RecordBatch.from_pylist(
                [], pa.schema([(name, pa.string()) for name in columns])
            )
        batch = self._parsed(block, self.names, columns, locate)
        if not (self.trim_left or self.trim_right):
            return batch
        return pa.RecordBatch.from_arrays(
            [self._trimmed(values) for values in batch.columns], list(columns)
        )

    def _parsed(
        self,
        block: bytes,
        names: Sequence[str],
        columns: Sequence[str],
        locate: Callable[[int | None], str],
    ) -> pa.RecordBatch:
        """Parse lines by Arrow, with their quotes checked, to texts or nulls.

        All columns if none is named.
        """
        malformed: list[str] = []

        def handle(row: csv.InvalidRow) -> str:
            malformed.append(row.text)
            return "skip" if self.skips_malformed else "error"

        quoted = bool(self.quote) and self.quote.encode() in block
        escaped = not self._doubles and self.escape.encode() in block
        try:
            # Threads cost more time than they save in a small block.
            table = csv.open_csv(
                pa.BufferReader(block),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block) + 1,
                    column_names=list(names) if columns else None,
                    autogenerate_column_names=not columns,
                ),
                csv.ParseOptions(
                    delimiter=self.separator,
                    quote_char=self.quote if quoted else False,
                    double_quote=self._doubles,
                    escape_char=self.escape if escaped else False,
                    newlines_in_values=self.multi_line,
                    invalid_row_handler=handle,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=list({"", self.null}),
                    strings_can_be_null=True,
                    include_columns=list(columns),
                    check_utf8=False,
                ),
            ).read_all()
        except pa.ArrowInvalid as error:
            # All values are texts, so the only fault can be their number.
            lines = b"\n" + block + b"\n"
            at = lines.find(f"\n{malformed[-1]}\n".encode()) if malformed else -1
            raise malformed_csv(locate(None if at < 0 else lines.count(b"\n", 0, at))) from error
        return table.combine_chunks().to_batches()[0]

    def _trimmed(self, values: pa.Array) -> pa.Array:
        """Strip blanks, which may leave values that mean missing."""
        values = pc.utf8_ltrim(values, _BLANKS) if self.trim_left else values
        values = pc.utf8_rtrim(values, _BLANKS) if self.trim_right else values
        nothing = pc.is_in(values, pa.array(["", self.null]))
        return pc.if_else(nothing, pa.scalar(None, pa.string()), values)

    def _without_markers(self, values: pa.Array) -> pa.Array:
        """Replace texts that mean missing by nulls, and the decimal sign by a point."""
        missing = mean_missing(values, self.markers)
        return self._with_points(pc.if_else(missing, pa.scalar(None, pa.string()), values))

    def _with_points(self, values: pa.Array) -> pa.Array:
        """Write numbers with a point for the decimal sign, and those with a point with that sign.

        The latter are not read as numbers: in such a file a point is no decimal sign.
        """
        if not self.decimal:
            return values
        pattern = "^([+-]?[0-9]*)[{}]([0-9]*)$"
        with_point = pc.match_substring_regex(values, pattern.format("."))
        read = pc.replace_substring_regex(values, pattern.format(self.decimal), r"\1.\2")
        return pc.if_else(with_point, pc.replace_substring(values, ".", self.decimal), read)

    def _stays(self, batch: pa.RecordBatch, texts: Collection[str] = ()) -> pa.Array | None:
        """Return which records have all required values, or None if all have.

        Columns of ``texts`` are known to have no numbers.
        """
        stays = pa.repeat(pa.scalar(False), len(batch)) if self.leaves_out else None
        for name in self._required:
            values = batch.column(name)
            missing = mean_missing(values, self.markers, numbers=name not in texts)
            if self.is_number(name):
                declared = Reading(name, name, pa.float64(), self.markers)
                missing = pc.or_(missing, read_values(declared, values)[1])
            has_value = pc.invert(missing)
            stays = has_value if stays is None else pc.and_(stays, has_value)
        return stays

    @property
    def _required(self) -> list[str]:
        """Return the names of required columns as the header spells them."""
        lower = {name.lower() for name in self.required}
        return [name for name in self.names if name.lower() in lower]

    def infer(self, blocks: Iterable[bytes]) -> Forms:
        """Return the forms of the values of records that stay, in blocks of whole lines."""
        forms: dict[str, dict[str, int]] = {name: {} for name in self.names}
        for block in blocks:
            open_names = [
                name for name in self.names if "text" not in forms[name] and name not in self.texts
            ]
            if not open_names:
                break
            batch = self._texts(block, list(dict.fromkeys([*open_names, *self._required])))
            stays = self._stays(batch)
            for name in open_names:
                values = batch.column(name) if stays is None else batch.column(name).filter(stays)
                more = forms_of(self._without_markers(values), self.days)
                forms[name] = merged(forms[name], more)
        return Forms(forms)

    def plain(self, values: pa.Array) -> pa.Array:
        """Return values that were read without types as plain texts, with days in ISO 8601."""
        return values if self.days is None else self.days.iso(values)

    def forms(self, batch: pa.RecordBatch) -> Forms:
        """Return the forms of values that were read without types."""
        columns = zip(batch.schema.names, map(self._without_markers, batch.columns), strict=True)
        return Forms({name: forms_of(values, self.days) for name, values in columns})

    def typed(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
        """Convert values that were read without types to the types of a schema."""
        return [
            convert(
                values if is_text(field.type) else self._without_markers(values),
                field.type,
                self.days,
            )
            for values, field in zip(batch.columns, schema, strict=True)
        ]

    def schema(self, forms: Forms) -> pa.Schema:
        """Return the columns with their types. Logs why undeclared ones stay texts."""
        types = {name: type_of(forms.columns.get(name, {})) for name in self.names or forms.columns}
        for name, (_, reason) in types.items():
            published = self.attributes is None or name in self.attributes
            if reason and published and name not in self.declared:
                key = self.where.partition(":")[0]
                message = (
                    f"{key}: the column {name!r} stays text because of {reason}. If that means "
                    f"nothing, declare attributes.{name}.type"
                )
                log_once(logging.INFO, message, self.where)
        return pa.schema([(name, kind) for name, (kind, _) in types.items()])

    def read(self, blocks: Iterable[bytes], schema: pa.Schema) -> Batches:
        """Yield the records of blocks. See :meth:`TextLines.read`."""
        names = schema.names or list(self.names[:1])
        for block in blocks:
            batch = self._texts(block, names)
            texts = {field.name for field in schema if pa.types.is_string(field.type)}
            columns, misfits = [], []
            for field in schema:
                values = batch.column(field.name)
                if field.name not in texts:
                    values = self._without_markers(values)
                elif self.is_number(field.name):
                    values = self._with_points(values)
                read = convert(values, field.type, self.days)
                if read.null_count > values.null_count:
                    misfits.append(pc.and_(pc.is_null(read), pc.is_valid(values)))
                columns.append(read)
            if misfits:
                stays = self._stays(self._texts(block, self._required or names), texts)
                for misfit in misfits:
                    if pc.any(misfit if stays is None else pc.and_(misfit, stays)).as_py():
                        raise malformed_csv(self.locator(block)(None))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
