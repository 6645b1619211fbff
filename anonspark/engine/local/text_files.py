"""Files of lines, read by some megabytes of whole lines."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from anonspark.engine.local.input_files import DataFile

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Bytes that a task reads, and that are in memory at once.
_LARGEST_PART, _SMALLEST_PART = 1 << 24, 1 << 18

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


def blocks_of(part: Part) -> Iterator[bytes]:
    """Yield the lines of a part, some megabytes at once, without a byte order mark."""
    with open_text(part.file) as source:
        if part.start:
            # The line that begins before belongs to whoever reads there.
            source.seek(part.start - 1)
            source.readline()
        while part.end is None or source.tell() < part.end:
            place = source.tell()
            length = _LARGEST_PART if part.end is None else part.end - place
            block = source.read(min(length, _LARGEST_PART))
            if not block:
                return
            if not block.endswith(b"\n"):
                block += source.readline()
            yield block if place else block.removeprefix(BYTE_ORDER_MARK)


def open_text(file: DataFile) -> IO[bytes]:
    """Open a file for reading, decompressed."""
    source: Any = open  # the system's own, as the others are of theirs
    for ending, of_ending in _COMPRESSED.items():
        source = of_ending if file.path.endswith(ending) else source
    opened: IO[bytes] = source(file.path, "rb")
    return opened
