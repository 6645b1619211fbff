"""Read text files as blocks of whole lines in UTF-8, for readers of records."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Self

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.input import COMPRESSED
from anonspark.engine.compression import unpacked
from anonspark.engine.encodings import UTF_8, encoding_of_mark
from anonspark.engine.reading_errors import larger_than_a_table, longer_than_a_line, undecodable
from anonspark.engine.tasks import Batches
from anonspark.engine.values.text_forms import Forms, mean_missing
from anonspark.errors import DataError

# Bytes in memory at the same time, and limit of a file that cannot be cut into lines of bytes.
_BLOCK, _WHOLE_FILE = 1 << 24, 1 << 30
# A record has a few kilobytes, and compression shrinks a table of repeated values to a hundredth.
_LONGEST_LINE = 1 << 26
_MAY_GROW_TO, _TIMES = 1 << 28, 250
# Bytes around one that does not decode, by which encodings are guessed.
_AROUND = 1 << 15

_MARK = b"\xef\xbb\xbf"

# A fixed first letter makes the search fast.
_BLANK_LINE = re.compile(rb"(\n)[\x00-\x09\x0b-\x20]+(?=\n|\Z)")
_FIRST_BLANK_LINE = re.compile(rb"\A[\x00-\x09\x0b-\x20]+(?=\n|\Z)")


class Lines(bytes):
    """Whole lines of a file, in UTF-8 with line feeds, that can be located in messages.

    ``locate`` takes the index of a line, or None, and returns words for paths, file and line.
    """

    locate: Callable[[int | None], str]

    def __new__(cls, content: bytes, locate: Callable[[int | None], str]) -> Self:
        """Return lines with their location."""
        lines = super().__new__(cls, content)
        lines.locate = locate
        return lines


@dataclass(frozen=True)
class TextLines(ABC):
    """The rules by which texts in files become values.

    Parameters
    ----------
    where : str
        The key that named the paths, and the paths, for messages.
    encoding : str
        A codec of Python. Empty for UTF-8, or UTF-16 if there is a byte order mark.
    markers : tuple of str
        Texts that mean missing, like an empty one.
    attributes : tuple of str or None
        Columns that are published, or None for all.
    required : tuple of str
        A record without a value in one of these is left out, and so decides no type.
    numbers, declared : tuple of str
        Columns that are declared as numbers, and those of any declared type.
    skips_malformed : bool
        Whether lines that are no record are passed over. If not, they are errors.
    multi_line : bool
        Whether a record may have several lines. Then a file is read as a whole.
    leaves_out : bool
        Whether all records are left out. See :meth:`in_folders`.
    """

    where: str = ""
    encoding: str = ""
    markers: tuple[str, ...] = ()
    attributes: tuple[str, ...] | None = None
    required: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    skips_malformed: bool = False
    multi_line: bool = False
    leaves_out: bool = False

    def in_folders(self, folders: Mapping[str, str | None]) -> Self:
        """Return the reader of a file whose folders name values: a required one may miss."""
        if not folders:
            return self
        values = {name.lower(): text for name, text in folders.items()}
        texts = [values[name.lower()] for name in self.required if name.lower() in values]
        return replace(
            self,
            required=tuple(name for name in self.required if name.lower() not in values),
            leaves_out=pc.any(mean_missing(pa.array(texts, pa.string()), self.markers)).as_py()
            or False,
        )

    def is_number(self, name: str) -> bool:
        """Return whether a column is declared as numbers."""
        return name.lower() in map(str.lower, self.numbers)

    @abstractmethod
    def infer(self, blocks: Iterable[bytes]) -> Forms:
        """Return the forms of the values in blocks of whole lines."""

    @abstractmethod
    def schema(self, forms: Forms) -> pa.Schema:
        """Return the columns with the types that the forms of all values allow."""

    @abstractmethod
    def read(self, blocks: Iterable[bytes], schema: pa.Schema) -> Batches:
        """Yield the records of blocks of whole lines, with some columns of :meth:`schema`.

        Raises DataError if a line is no record, or a record that is not left out has a value of
        another type.
        """

    def can_be_cut(self, path: str, beginning: bytes) -> bool:
        """Return whether :meth:`blocks` takes parts of a file that begins with some bytes."""
        packed = path.lower().endswith(COMPRESSED)
        return not (packed or self.multi_line or self._is_wide(beginning))

    def _is_wide(self, beginning: bytes) -> bool:
        """Return whether a line feed has several bytes in the file's encoding, as in UTF-16."""
        if not self.encoding:
            return encoding_of_mark(beginning) != UTF_8
        return "\n".encode(self.encoding) != b"\n"

    def blocks(
        self, content: IO[bytes], path: str, start: int = 0, end: int | None = None
    ) -> Iterator[Lines]:
        """Yield the lines that begin between two bytes of a file, some megabytes at once.

        The stream has to be seekable, and the end of the path shows a compression. Only some files
        can be read in parts, see :meth:`can_be_cut`. Raises DataError if bytes do not decode, a
        line is too long, or a compressed file grows too much.
        """
        return self._lines(content, path, start, end, _BLOCK)

    def first_line(self, content: IO[bytes], path: str) -> str:
        """Return the first line of a file that is not blank, or an empty text."""
        lines = self._lines(content, path, 0, None, 1)
        # A file of old Macs has lines that end with a carriage return, all in one line of ours.
        texts = (text for block in lines for text in self._cleaned(block).decode().split("\n"))
        return next(filter(None, texts), "")

    def _cleaned(self, block: bytes) -> bytes:
        """Empty blank lines. Their number stays, for messages."""
        return _BLANK_LINE.sub(rb"\1", _FIRST_BLANK_LINE.sub(b"", block))

    def _lines(
        self, content: IO[bytes], path: str, start: int, end: int | None, size: int
    ) -> Iterator[Lines]:
        """Yield the lines that begin between two bytes of a file, about ``size`` bytes at once."""
        limit = max(_MAY_GROW_TO, _TIMES * content.seek(0, io.SEEK_END))
        content.seek(0)
        source = unpacked(content, path)
        beginning = source.read(2)
        source.seek(0)
        is_wide = self._is_wide(beginning)
        if is_wide and self.skips_malformed:
            raise DataError(
                f"{self.where}: {path} is in UTF-16, where a damaged line changes how others are "
                "read. Expected UTF-8. Write it anew"
            )
        if is_wide or self.multi_line:
            whole = source.read(_WHOLE_FILE + 1)
            if len(whole) > _WHOLE_FILE:
                raise longer_than_a_line(self.where, path, _WHOLE_FILE)
            if self.encoding == "utf-16" and whole and encoding_of_mark(beginning) == UTF_8:
                # Without a mark Python would assume the byte order of this machine.
                where = f"{self.where}: {path}"
                raise undecodable(where, "UTF-16 with a mark", None, whole[:_BLOCK])
            if is_wide:
                whole = self._utf8(whole, self.encoding or "utf-16", path, io.BytesIO())
            source = io.BytesIO(whole)
        codec = "utf-8" if is_wide else self.encoding or "utf-8"
        if start:
            # A line that begins before belongs to the part before.
            source.seek(start - 1)
            self._rest(source, path)
        while end is None or source.tell() < end:
            at = source.tell()
            length = size if end is None else min(size, end - at)
            block = source.read(-1 if self.multi_line else length)
            if not block:
                return
            if not block.endswith(b"\n"):
                block += self._rest(source, path)
            if source is not content and source.tell() > limit:
                raise larger_than_a_table(self.where, path, _TIMES)
            lines = self._utf8(block, codec, path, source, at)
            yield Lines(lines, partial(self._location, path, source, at))

    def _rest(self, source: IO[bytes], path: str) -> bytes:
        """Read to the end of a line. Raises DataError if it is too long."""
        line = source.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise longer_than_a_line(self.where, path, _LONGEST_LINE)
        return line

    def _location(self, path: str, source: IO[bytes], at: int, line: int | None) -> str:
        """Return words for paths, file and line, given the index of the line in a block."""
        where = f"{self.where}: {path}"
        return where if line is None else f"{where}: line {_lines_before(source, at) + line + 1:,}"

    def locator(self, block: bytes) -> Callable[[int | None], str]:
        """Return the function that locates lines of a block. See :class:`Lines`."""
        return block.locate if isinstance(block, Lines) else lambda _: self.where

    def _utf8(self, block: bytes, codec: str, path: str, source: IO[bytes], at: int = 0) -> bytes:
        """Convert bytes of a file to UTF-8 with line feeds, without a byte order mark."""
        try:
            if codec != "utf-8" or not block.isascii():
                policy = "replace" if self.skips_malformed else "strict"
                block = block.decode(codec, policy).encode()
        except UnicodeError as error:
            within = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = _lines_before(source, at) + block[:within].decode(codec, "ignore").count("\n")
            lines = block[max(within - _AROUND, 0) : within + _AROUND]
            name = (self.encoding or codec).upper()
            raise undecodable(f"{self.where}: {path}", name, line + 1, lines) from None
        block = block if at else block.removeprefix(_MARK)
        return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block


def _lines_before(source: IO[bytes], at: int) -> int:
    """Return how many lines end before a byte of a file."""
    source.seek(0)
    lines = 0
    while chunk := source.read(min(_BLOCK, at - source.tell())):
        lines += chunk.count(b"\n") or chunk.count(b"\r")
    return lines
