"""The files that a table is made of, and how the first of them begins."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Sequence

from anonspark.engine.files import Files

# A block of bzip2 may have 900,000 bytes, and is read as a whole or not at all.
_BYTES, _COMPRESSED_BYTES = 1 << 16, 1 << 20
_UNKNOWN_COMPRESSIONS = (".deflate", ".lz4", ".snappy", ".zst", ".zstd")


class DamagedFileError(ValueError):
    """A compressed file cannot be unpacked."""


def listed_files(files: Files, paths: Sequence[str]) -> list[tuple[str, int]]:
    """Return the files that a table is made of, with their bytes, in an order of their own.

    Parameters
    ----------
    files : Files
    paths : sequence of str
        Files, directories and patterns. What is hidden in directories is passed over, as readers
        do.
    """
    found = []
    for path in paths:
        for address in sorted(files.matches(path)):
            children = files.children(address)
            if children == [address]:
                found.append((address, files.size(address)))
                continue
            found += [
                (f"{address}/{inside}", size)
                for inside, size in files.files_below(address)
                if not any(_is_hidden(part) for part in inside.split("/"))
            ]
    return found


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def read_beginning(files: Files, path: str, size: int) -> bytes | None:
    """Return whole lines from the beginning of a file, unpacked.

    Parameters
    ----------
    files : Files
    path : str
    size : int
        Its bytes.

    Returns
    -------
    bytes or None
        None of a file that is compressed in a way that cannot be unpacked here.

    Raises
    ------
    FilesError
        If it cannot be read.
    DamagedFileError
        If it cannot be unpacked.

    Notes
    -----
    Reads at most 64 KiB, of a compressed file 1 MiB.
    """
    name = path.lower()
    if name.endswith(_UNKNOWN_COMPRESSIONS):
        return None
    packed = name.endswith((".gz", ".bz2"))
    most = min(size, _COMPRESSED_BYTES if packed else _BYTES)
    content = files.read_part(path, 0, most)
    is_whole = most == size
    try:
        if name.endswith(".gz"):
            content = zlib.decompressobj(47).decompress(content, _BYTES)
        elif name.endswith(".bz2"):
            content = bz2.BZ2Decompressor().decompress(content, _BYTES)
    except (zlib.error, OSError) as error:
        raise DamagedFileError(path) from error
    if packed:
        is_whole = len(content) < _BYTES and is_whole
    if not is_whole:
        end = max(content.rfind(b"\n"), content.rfind(b"\r"))
        content = content[: end + 1] if end >= 0 else content
    return content
