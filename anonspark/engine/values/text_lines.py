"""Text files as blocks of whole lines in UTF-8, and what a reader of records has to be."""

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

# Bytes that are in memory at once, and of a file that cannot be cut into lines of bytes.
_BLOCK, _WHOLE_FILE = 1 << 24, 1 << 30
# A record has a few kilobytes, a table of repeated values a hundredth of its bytes when compressed.
_LONGEST_LINE = 1 << 26
_MAY_GROW_TO, _TIMES = 1 << 28, 250
# Bytes before and behind one that does not decode, which tell the likely encodings.
_AROUND = 1 << 15

_MARK = b"\xef\xbb\xbf"

# Begins with few letters, for which it is looked fast.
_BLANK_LINE = re.compile(rb"(\n)[\x00-\x09\x0b-\x20]+(?=\n|\Z)")
_FIRST_BLANK_LINE = re.compile(rb"\A[\x00-\x09\x0b-\x20]+(?=\n|\Z)")


class Lines(bytes):
    """Whole lines of a file, in UTF-8 with line feeds, which know where they stand.

    Parameters
    ----------
    content : bytes
    locate : callable
        Takes the number of a line, from 0 on, or None, and returns what names paths, file and line
        in messages.
    """

    locate: Callable[[int | None], str]

    def __new__(cls, content: bytes, locate: Callable[[int | None], str]) -> Self:
        """Return lines that are located so."""
        lines = super().__new__(cls, content)
        lines.locate = locate
        return lines


@dataclass(frozen=True)
class TextLines(ABC):
    """The rules by which texts in files become values.

    Parameters
    ----------
    where : str
        What named the paths, and the paths, for messages.
    encoding : str
        Any codec of Python. Empty for UTF-8, or UTF-16 where a mark says so.
    markers : tuple of str
        Texts that mean missing, besides nothing.
    attributes : tuple of str or None
        Columns that are published. None for all.
    required : tuple of str
        Columns without a value in which a record is left out. It decides no type.
    numbers : tuple of str
        Columns that are declared as numbers.
    skips_malformed : bool
        Whether lines that are no record are passed over, each by itself, else they are errors.
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
    skips_malformed: bool = False
    multi_line: bool = False
    leaves_out: bool = False

    def in_folders(self, folders: Mapping[str, str | None]) -> Self:
        """Return the reader of a file whose folders name values, which may be missing."""
        if not folders:
            return self
        named = {name.lower(): text for name, text in folders.items()}
        texts = [named[name.lower()] for name in self.required if name.lower() in named]
        return replace(
            self,
            required=tuple(name for name in self.required if name.lower() not in named),
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
        """Return the columns with the types by the forms of all values, which is logged."""

    @abstractmethod
    def read(self, blocks: Iterable[bytes], schema: pa.Schema) -> Batches:
        """Yield the records of blocks of whole lines, with some columns of :meth:`schema`.

        Raises
        ------
        DataError
            If a line is no record, or a record that is not left out has a value of another type.
        """

    def can_be_cut(self, path: str, beginning: bytes) -> bool:
        """Return whether :meth:`blocks` takes parts of a file that begins so."""
        packed = path.lower().endswith(COMPRESSED)
        return not (packed or self.multi_line or self._is_wide(beginning))

    def _is_wide(self, beginning: bytes) -> bool:
        if not self.encoding:
            return encoding_of_mark(beginning) != UTF_8
        return "\n".encode(self.encoding) != b"\n"

    def blocks(
        self, content: IO[bytes], path: str, start: int = 0, end: int | None = None
    ) -> Iterator[Lines]:
        """Yield the lines of a file that begin in some of its bytes, some megabytes at once.

        Parameters
        ----------
        content : binary stream
            Of the whole file, which can be sought.
        path : str
            Its end shows whether it is compressed.
        start, end : int
            Bytes. See :meth:`can_be_cut`.

        Yields
        ------
        Lines

        Raises
        ------
        DataError
            If bytes do not decode, a line is too long, or a compressed file grows too much.
        """
        return self._lines(content, path, start, end, _BLOCK)

    def first_line(self, content: IO[bytes], path: str) -> str:
        """Return the first line of a file that is not blank, or an empty text."""
        lines = self._lines(content, path, 0, None, 1)
        # Of old Macs' files a line of ours has many of theirs.
        texts = (text for block in lines for text in self._cleaned(block).decode().split("\n"))
        return next(filter(None, texts), "")

    def _cleaned(self, block: bytes) -> bytes:
        return _BLANK_LINE.sub(rb"\1", _FIRST_BLANK_LINE.sub(b"", block))

    def _lines(
        self, content: IO[bytes], path: str, start: int, end: int | None, size: int
    ) -> Iterator[Lines]:
        most = max(_MAY_GROW_TO, _TIMES * content.seek(0, io.SEEK_END))
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
                # Python would take the bytes in the order of this machine.
                where = f"{self.where}: {path}"
                raise undecodable(where, "UTF-16 with a mark", None, whole[:_BLOCK])
            if is_wide:
                whole = self._utf8(whole, self.encoding or "utf-16", path, io.BytesIO())
            source = io.BytesIO(whole)
        codec = "utf-8" if is_wide else self.encoding or "utf-8"
        if start:
            # The line that begins before belongs to whoever reads there.
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
            if source is not content and source.tell() > most:
                raise larger_than_a_table(self.where, path, _TIMES)
            lines = self._utf8(block, codec, path, source, at)
            yield Lines(lines, partial(self._location, path, source, at))

    def _rest(self, source: IO[bytes], path: str) -> bytes:
        line = source.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise longer_than_a_line(self.where, path, _LONGEST_LINE)
        return line

    def _location(self, path: str, source: IO[bytes], at: int, line: int | None) -> str:
        where = f"{self.where}: {path}"
        return where if line is None else f"{where}: line {_lines_before(source, at) + line + 1:,}"

    def locator(self, block: bytes) -> Callable[[int | None], str]:
        """Return what names a line of a block in messages. See :class:`Lines`."""
        return block.locate if isinstance(block, Lines) else lambda _: self.where

    def _utf8(self, block: bytes, codec: str, path: str, source: IO[bytes], at: int = 0) -> bytes:
        """Return bytes of a file as UTF-8, with line feeds, without a byte order mark."""
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
    """Return how many lines end before some byte of a file."""
    source.seek(0)
    lines = 0
    while chunk := source.read(min(_BLOCK, at - source.tell())):
        lines += chunk.count(b"\n") or chunk.count(b"\r")
    return lines
