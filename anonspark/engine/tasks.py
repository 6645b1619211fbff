"""What a function that runs in a task may know of where it is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]
"""The Arrow batches of one task."""

# A process runs one task at a time.
_number = 0


def task_number() -> int:
    """Return the number of the task that runs in this process, 0 or above; 0 outside of tasks.

    No two tasks of one table have the same; an attempt has that of the task that it repeats.
    """
    return _number


def enter_task(number: int) -> None:
    """Say which task begins in this process; for engines."""
    global _number  # noqa: PLW0603 - it belongs to the process, as the task does
    _number = number
