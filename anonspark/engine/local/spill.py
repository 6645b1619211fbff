"""Store batches for other tasks: in memory up to a limit, beyond it on disk."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from typing import IO

import pyarrow as pa

StoredBatch = Callable[[], pa.RecordBatch]
"""Returns a stored batch."""


class Memory:
    """The memory of this process that all stored batches may take together.

    >>> memory = Memory(most_bytes=10)
    >>> memory.take(8), memory.take(8)
    (True, False)
    """

    def __init__(self, most_bytes: int) -> None:
        self._free = most_bytes
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take some bytes, and return whether so many were free."""
        with self._lock:
            if size > self._free:
                return False
            self._free -= size
            return True

    def give_back(self, size: int) -> None:
        """Give bytes back that were taken."""
        with self._lock:
            self._free += size


class SpillStore:
    """Stores batches of any thread.

    On disk these are in a file without a name, in the folder for temporary files (``TMPDIR``): its
    content is gone with this process, however that ends.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taken = 0
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()

    def put(self, batch: pa.RecordBatch) -> StoredBatch:
        """Store a batch in memory, or in a file if memory is used up, and return its reader."""
        size = batch.nbytes
        if self._memory.take(size):
            with self._lock:
                self._taken += size
            return lambda: batch
        content = _packed(batch)
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="anonspark-")  # noqa: SIM115
            file, start = self._file, self._file.seek(0, os.SEEK_END)
            file.write(content)
            file.flush()
        # The function must not hold the content.
        length = len(content)
        return lambda: pa.ipc.open_stream(_read(file, start, length)).read_next_batch()

    def clear(self) -> None:
        """Forget all batches. Those that were read stay valid."""
        with self._lock:
            self._memory.give_back(self._taken)
            self._taken = 0
            if self._file is not None:
                self._file.close()
                self._file = None

    def __del__(self) -> None:
        self.clear()


def _packed(batch: pa.RecordBatch) -> pa.Buffer:
    """Return a batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _read(file: IO[bytes], start: int, length: int) -> bytes:
    """Read bytes of a file in any thread, without seeking. Raises EOFError if it is too short."""
    parts = []
    while length:
        part = os.pread(file.fileno(), length, start)
        if not part:
            raise EOFError("the file of stored batches ends before a batch does")
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return b"".join(parts)
