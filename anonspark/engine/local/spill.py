"""Batches that wait for the tasks that want them: in memory up to a limit, beyond on disk."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from typing import IO

import pyarrow as pa

StoredBatch = Callable[[], pa.RecordBatch]
"""Returns a batch that was put somewhere."""


class Memory:
    """The memory of this process that all waiting batches may take together.

    Parameters
    ----------
    most_bytes : int
    """

    def __init__(self, most_bytes: int) -> None:
        self._free = most_bytes
        self._turn = threading.Lock()

    def take(self, size: int) -> bool:
        """Take some bytes, if there are as many."""
        with self._turn:
            if size > self._free:
                return False
            self._free -= size
            return True

    def give_back(self, size: int) -> None:
        """Give bytes back that were taken."""
        with self._turn:
            self._free += size


class SpillStore:
    """A place for batches, of any thread.

    On disk they are in a file without a name, in the folder for temporary files (``TMPDIR``): its
    content is gone with this process, however that ends.

    Parameters
    ----------
    memory : Memory
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taken = 0
        self._file: IO[bytes] | None = None
        self._turn = threading.Lock()

    def put(self, batch: pa.RecordBatch) -> StoredBatch:
        """Put a batch here, and return who brings it back."""
        size = batch.nbytes
        if self._memory.take(size):
            with self._turn:
                self._taken += size
            return lambda: batch
        content = _packed(batch)
        with self._turn:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="anonspark-")  # noqa: SIM115
            file, start = self._file, self._file.seek(0, os.SEEK_END)
            file.write(content)
            file.flush()
        # The content itself must not wait with it.
        length = len(content)
        return lambda: _unpacked(_read(file, start, length))

    def clear(self) -> None:
        """Forget all batches. Those that were brought back stay whole."""
        with self._turn:
            self._memory.give_back(self._taken)
            self._taken = 0
            if self._file is not None:
                self._file.close()
                self._file = None

    def __del__(self) -> None:
        self.clear()


def _packed(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _unpacked(content: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(content).read_next_batch()


def _read(file: IO[bytes], start: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.pread(file.fileno(), length, start)
        if not part:
            raise EOFError("a file of waiting batches ends early")
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return b"".join(parts)
