"""Files of lines, read by some megabytes of whole lines."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from anonspark.engine.local.input_files import DataFile
from anonspark.engine.reading_errors import larger_than_a_table, longer_than_a_line

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Bytes that a task reads, and that are in memory at once.
_LARGEST_PART, _SMALLEST_PART = 1 << 24, 1 << 18

# A record has a few kilobytes, a table of repeated values a hundredth of its bytes when compressed.
_LONGEST_LINE = 1 << 26
_MAY_GROW_TO, _TIMES = 1 << 28, 250

# Of one table, so that threads have something to share.
_PARTS = 16

_COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open}
# What Spark reads by libraries that need not be here.
UNKNOWN_COMPRESSIONS = (".deflate", ".lz4", ".snappy", ".zst", ".zstd")


@dataclass(frozen=True)
class Part:
    """The lines of a file that begin in some of its bytes.

    Parameters
    ----------
    file : DataFile
    start : int
    end : int or None
        None for the end of the file.
    """

    file: DataFile
    start: int
    end: int | None


def parts_of(files: Sequence[DataFile]) -> list[Part]:
    """Return what tasks read of files; a compressed file is one part."""
    size = min(_LARGEST_PART, max(_SMALLEST_PART, sum(file.bytes for file in files) // _PARTS))
    parts = []
    for file in files:
        if file.path.endswith(tuple(_COMPRESSED)):
            parts.append(Part(file, 0, None))
        else:
            starts = range(0, file.bytes, size)
            parts += [Part(file, start, min(start + size, file.bytes)) for start in starts]
    return parts


def blocks_of(part: Part, where: str) -> Iterator[bytes]:
    """Yield the lines of a part, some megabytes at once, without a byte order mark.

    Parameters
    ----------
    part : Part
    where : str
        What named the paths, and the paths, for messages.

    Raises
    ------
    DataError
        If a line is too long to be a record, or a compressed file grows too much.
    """
    with open_text(part.file) as source:
        if part.start:
            # The line that begins before belongs to whoever reads there.
            source.seek(part.start - 1)
            read_line(source, part.file, where)
        while part.end is None or source.tell() < part.end:
            place = source.tell()
            length = _LARGEST_PART if part.end is None else part.end - place
            block = source.read(min(length, _LARGEST_PART))
            if not block:
                return
            if not block.endswith(b"\n"):
                block += read_line(source, part.file, where)
            if part.end is None and source.tell() > max(_MAY_GROW_TO, _TIMES * part.file.bytes):
                raise larger_than_a_table(where, part.file.address, _TIMES)
            yield block if place else block.removeprefix(BYTE_ORDER_MARK)


def read_line(source: IO[bytes], file: DataFile, where: str) -> bytes:
    """Return the rest of the line at hand; parameters and errors as of :func:`blocks_of`."""
    line = source.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise longer_than_a_line(where, file.address, _LONGEST_LINE)
    return line


def open_text(file: DataFile) -> IO[bytes]:
    """Open a file for reading, decompressed."""
    source: Any = open  # the system's own, as the others are of theirs
    for ending, of_ending in _COMPRESSED.items():
        source = of_ending if file.path.endswith(ending) else source
    opened: IO[bytes] = source(file.path, "rb")
    return opened
