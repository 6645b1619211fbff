"""Read the beginning of a file."""

from __future__ import annotations

from anonspark.config.input import COMPRESSED
from anonspark.engine.compression import UNPACKING_FAILURES, unpacked
from anonspark.engine.files import Files, FilesError, open_parts
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
    Reads 64 KiB, of a compressed file parts of 1 MiB until 64 KiB are unpacked.
    """
    packed = path.lower().endswith(COMPRESSED)
    part = open_parts(files, path, size, _COMPRESSED_BYTES if packed else _BYTES)
    try:
        content = unpacked(part, path).read(_BYTES + 1)
    except FilesError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        raise DataError(f"{key}: {path} cannot be read{reason}. Check its permissions") from error
    except UNPACKING_FAILURES as error:
        raise DataError(
            f"{key}: {path} is damaged: it cannot be unpacked. Fetch it again"
        ) from error
    return content[:_BYTES], len(content) <= _BYTES
