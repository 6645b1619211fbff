"""Read tables of text files in parts, by :mod:`anonspark.engine.values.text_reader`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from anonspark.engine.data_files import DataFile, DataFiles, bundled
from anonspark.engine.local.columnar_files import Read
from anonspark.engine.local.running import map_in_threads
from anonspark.engine.reading_errors import reading_file
from anonspark.engine.tasks import Batches
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_lines import Lines
from anonspark.engine.values.text_reader import Reader
from anonspark.errors import DataError

_Result = TypeVar("_Result")

# Limits of the bytes that a task reads, and parts of a small table, so that threads can share it.
_LARGEST_PART, _SMALLEST_PART, _PARTS = 1 << 24, 1 << 18, 16


def first_line(reader: Reader, file: DataFile) -> str:
    """Return the first line of a file, or an empty text."""
    with reading_file(reader.where, file.address), Path(file.path).open("rb") as content:
        return reader.first_line(content, file.address)


@dataclass(frozen=True)
class Part:
    """The lines of a file that begin between two bytes, or to the end if that is None."""

    file: DataFile
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class TextFiles:
    """The text files of a table, with their reader."""

    files: DataFiles
    reader: Reader

    def parts(self) -> list[list[Part]]:
        """Return the parts that each task reads: one part of a file, or several small files."""
        files = self.files.files
        size = min(_LARGEST_PART, max(_SMALLEST_PART, sum(file.bytes for file in files) // _PARTS))
        parts = [part for file in files for part in self._parts_of(file, size)]
        if self.reader.multi_line:
            # A file that is one text cannot be joined with others.
            return [[part] for part in parts]
        return bundled((part.file, part) for part in parts)

    def _parts_of(self, file: DataFile, size: int) -> Sequence[Part]:
        """Cut a file into parts of a size, if its format and encoding allow."""
        with reading_file(self.reader.where, file.address), Path(file.path).open("rb") as content:
            if not self.reader.can_be_cut(file.path, content.read(2)):
                return [Part(file)]
        starts = range(0, file.bytes, size)
        return [Part(file, start, min(start + size, file.bytes)) for start in starts]

    def forms(self) -> Forms:
        """Return the forms of all values. Reads all files once."""

        def infer(parts: Sequence[Part]) -> Forms:
            reader = self.reader.in_folders(parts[0].file.folders)
            return self._joined(parts, reader.infer)

        return reduce(Forms.__or__, map_in_threads(infer, self.parts()), Forms())

    def _blocks(self, part: Part) -> Iterator[Lines]:
        """Yield the lines of a part."""
        file = part.file
        with reading_file(self.reader.where, file.address), Path(file.path).open("rb") as content:
            yield from self.reader.blocks(content, file.address, part.start, part.end)

    def _small_blocks(self, part: Part) -> list[Lines]:
        """Return the lines of a small part, whose file is read at once."""
        file = part.file
        with reading_file(self.reader.where, file.address):
            content = io.BytesIO(Path(file.path).read_bytes())
            return list(self.reader.blocks(content, file.address, part.start, part.end))

    def _joined(self, parts: Sequence[Part], use: Callable[[Iterable[bytes]], _Result]) -> _Result:
        """Apply a function to the lines of parts, which become one block if they are several."""
        if len(parts) > 1:
            blocks = [block for part in parts for block in self._small_blocks(part)]
            with suppress(DataError):
                return use([b"\n".join(blocks)])
            # Again block by block, so that the error names the file at fault.
            return use(blocks)
        return use(self._blocks(parts[0]))

    def reads(self, schema: pa.Schema) -> list[Read]:
        """Return a function for each task that reads columns of a schema or fields of structs."""
        return [partial(self._read, parts, schema) for parts in self.parts()]

    def _read(self, parts: Sequence[Part], schema: pa.Schema, columns: pa.Schema) -> Batches:
        """Yield the records of some parts."""
        folders = parts[0].file.folders

        def read(blocks: Iterable[bytes]) -> Batches:
            batches = self.files.read(self.reader, folders, blocks, schema, columns)
            return iter(list(batches)) if len(parts) > 1 else batches

        yield from self._joined(parts, read)
