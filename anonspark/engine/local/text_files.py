"""Tables of text files, read in parts by :mod:`anonspark.engine.values.text_reader`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa

from anonspark.engine.data_files import DataFile, DataFiles
from anonspark.engine.local.columnar_files import Read, reading_file
from anonspark.engine.local.running import map_in_threads
from anonspark.engine.tasks import Batches
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import Reader

# Bytes that a task reads; of one table, so that threads have something to share.
_LARGEST_PART, _SMALLEST_PART, _PARTS = 1 << 24, 1 << 18, 16


def first_line(reader: Reader, file: DataFile) -> str:
    """Return the first line of a file. Nothing if there is none."""
    with reading_file(reader.where), Path(file.path).open("rb") as content:
        return reader.first_line(content, file.address)


@dataclass(frozen=True)
class Part:
    """The lines of a file that begin in some of its bytes, up to the end for None."""

    file: DataFile
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class TextFiles:
    """The text files of a table.

    Parameters
    ----------
    files : DataFiles
    reader : CsvReader or JsonReader
    """

    files: DataFiles
    reader: Reader

    def parts(self) -> list[Part]:
        """Return what tasks read."""
        files = self.files.files
        size = min(_LARGEST_PART, max(_SMALLEST_PART, sum(file.bytes for file in files) // _PARTS))
        return [part for file in files for part in self._parts_of(file, size)]

    def _parts_of(self, file: DataFile, size: int) -> Sequence[Part]:
        with reading_file(self.reader.where), Path(file.path).open("rb") as content:
            if not self.reader.can_be_cut(file.path, content.read(2)):
                return [Part(file)]
        starts = range(0, file.bytes, size)
        return [Part(file, start, min(start + size, file.bytes)) for start in starts]

    def forms(self) -> Forms:
        """Return the forms of all values. Reads all files once."""

        def infer(part: Part) -> Forms:
            with reading_file(self.reader.where):
                reader = self.reader.in_folders(part.file.folders)
                return reader.infer(self._blocks(part))

        return reduce(Forms.__or__, map_in_threads(infer, self.parts()), Forms())

    def _blocks(self, part: Part) -> Iterator[bytes]:
        with Path(part.file.path).open("rb") as content:
            yield from self.reader.blocks(content, part.file.address, part.start, part.end)

    def reads(self, schema: pa.Schema) -> list[Read]:
        """Return what reads columns of a schema, or fields of its structs, a part each."""
        return [partial(self._read, part, schema) for part in self.parts()]

    def _read(self, part: Part, schema: pa.Schema, columns: pa.Schema) -> Batches:
        with reading_file(self.reader.where):
            blocks = self._blocks(part)
            yield from self.files.read(self.reader, part.file.folders, blocks, schema, columns)
