"""Unpack compressed files while they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import IO, Any

import pyarrow as pa

from anonspark.engine.files import ReadStream
from anonspark.errors import DataError

UNPACKING_FAILURES = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""Errors of damaged files, raised when :func:`unpacked` is called or its result is read."""


def unpacked(content: IO[bytes], path: str) -> IO[bytes]:
    """Return the content of a file, unpacked if the end of its name shows a compression.

    The stream has to be seekable. Raises DataError if an archive does not hold exactly one file, or
    is encrypted.

    >>> unpacked(io.BytesIO(gzip.compress(b"age,sex")), "people.csv.gz").read()
    b'age,sex'
    """
    unpack = _UNPACK.get(PurePosixPath(path.lower()).suffix)
    return content if unpack is None else unpack(content, path)


def _only_member(content: IO[bytes], path: str) -> IO[bytes]:
    """Return the content of the only file in a zip archive."""
    archive = zipfile.ZipFile(content)
    # macOS adds metadata of each file.
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
    names = [name for name in names if not name.endswith("/")]
    if len(names) != 1:
        raise DataError(
            f"{path}: found {len(names)} files in the archive. Expected one. Unpack it, and name "
            "the files"
        )
    try:
        return archive.open(names[0])
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(
            f"{path}: the archive is encrypted or compressed in a way that cannot be read. Unpack "
            "it, and name the file"
        ) from error


class _Zstandard(ReadStream):
    """The content of a file that is compressed with Zstandard."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        # Kept until the end: a stream of Arrow closes the file when it is freed.
        self._streams: list[Any] = []
        self.seek(0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # noqa: ARG002
        if offset < self._offset or not self._streams:
            self._content.seek(0)
            source = pa.PythonFile(self._content, mode="r")
            self._streams.append(pa.CompressedInputStream(source, "zstd"))
            self._offset = 0
        skipped = bytearray(1 << 20)
        while self._offset < offset:
            if not self.readinto(memoryview(skipped)[: offset - self._offset]):
                break
        return self._offset

    def _read(self, length: int) -> bytes:
        content: bytes = self._streams[-1].read(length)
        return content


_UNPACK: dict[str, Callable[[IO[bytes], str], Any]] = {
    ".gz": lambda content, _: gzip.GzipFile(fileobj=content),
    ".bz2": lambda content, _: bz2.BZ2File(content),
    ".xz": lambda content, _: lzma.LZMAFile(content),  # noqa: SIM115 - whose content is not closed
    **dict.fromkeys((".zst", ".zstd"), lambda content, _: io.BufferedReader(_Zstandard(content))),
    ".zip": _only_member,
}
