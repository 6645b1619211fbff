"""The files that a table is made of, and how the first of them begins."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Sequence

from anonspark.engine.files import Files, FilesError
from anonspark.errors import DataError

# A block of bzip2 may have 900,000 bytes, and is read as a whole or not at all.
_BYTES, _COMPRESSED_BYTES = 1 << 16, 1 << 20


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


def read_beginning(files: Files, path: str, size: int, key: str) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unpacked, and whether they are all that it has.

    Parameters
    ----------
    files : Files
    path : str
    size : int
        Its bytes.
    key : str
        What messages call the paths.

    Raises
    ------
    DataError
        If it cannot be read or unpacked.

    Notes
    -----
    Reads at most 64 KiB, of a compressed file 1 MiB.
    """
    name = path.lower()
    packed = name.endswith((".gz", ".bz2"))
    most = min(size, _COMPRESSED_BYTES if packed else _BYTES)
    try:
        content = files.read_part(path, 0, most)
    except FilesError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        raise DataError(f"{key}: {path} cannot be read{reason}; check its permissions") from error
    try:
        if name.endswith(".gz"):
            content = zlib.decompressobj(47).decompress(content, _BYTES)
        elif packed:
            content = bz2.BZ2Decompressor().decompress(content, _BYTES)
    except (zlib.error, OSError) as error:
        raise DataError(
            f"{key}: {path} is damaged: it cannot be unpacked; fetch it again"
        ) from error
    return content, most == size and not (packed and len(content) == _BYTES)
