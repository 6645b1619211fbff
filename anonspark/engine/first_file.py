"""Read the beginning of a file."""

from __future__ import annotations

import bz2
import zlib

from anonspark.engine.files import Files, FilesError
from anonspark.errors import DataError

# A block of bzip2 may have 900,000 bytes, and is read as a whole or not at all.
_BYTES, _COMPRESSED_BYTES = 1 << 16, 1 << 20


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
        raise DataError(f"{key}: {path} cannot be read{reason}. Check its permissions") from error
    try:
        if name.endswith(".gz"):
            content = zlib.decompressobj(47).decompress(content, _BYTES)
        elif packed:
            content = bz2.BZ2Decompressor().decompress(content, _BYTES)
    except (zlib.error, OSError) as error:
        raise DataError(
            f"{key}: {path} is damaged: it cannot be unpacked. Fetch it again"
        ) from error
    return content, most == size and not (packed and len(content) == _BYTES)
