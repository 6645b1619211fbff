"""Compute rows once, for shuffled tables and those that persist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import RLock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.local.running import Runner, Source
from anonspark.engine.local.spill import Memory, SpillStore, StoredBatch
from anonspark.engine.tasks import Batches

Owners = Callable[[pa.RecordBatch], npt.NDArray[np.integer]]
"""Returns the number of each row's task, for a batch."""


class Stage:
    """Rows that are computed when they are first read, and stored for every reader.

    ``upstream`` returns the tasks that compute them. ``owners`` sends each row to one of ``tasks``
    tasks. If both are None, rows stay in the tasks that computed them. Up to ``together`` rows of a
    single task are stored as one batch, in the order of the tasks that they would go to.
    """

    def __init__(
        self,
        runner: Runner,
        memory: Memory,
        upstream: Callable[[], Sequence[Source]],
        owners: Owners | None = None,
        tasks: int | None = None,
        together: int = 0,
    ) -> None:
        self._runner = runner
        self._upstream = upstream
        self._owners = owners
        self._tasks = tasks
        self._together = together
        self._store = SpillStore(memory)
        self._waiting: list[list[StoredBatch]] | None = None
        self._rows: list[int] = []
        self._is_one = False
        self._lock = RLock()

    def make(self) -> None:
        """Run the tasks and store their rows, unless they are stored already."""
        with self._lock:
            if self._waiting is not None:
                return
            sources = self._upstream()
            tasks = len(sources) if self._tasks is None else self._tasks
            waiting: list[list[StoredBatch]] = [[] for _ in range(tasks)]
            rows = [0] * tasks
            # Outputs come in the order of the tasks, whichever ended first.
            put = self._put if len(sources) > 1 or not self._together else self._put_together
            outputs = self._runner.run(sources, put)
            for stored in outputs:
                for owner, size, batch in stored:
                    waiting[owner].append(batch)
                    rows[owner] += size
            self._waiting, self._rows = waiting, rows
            self._is_one = list(map(len, outputs)) == [1]

    def _put(self, number: int, batches: Batches) -> list[tuple[int, int, StoredBatch]]:
        """Store the batches of a task: who reads each, its rows, and the function that reads it."""
        if self._owners is None:
            return [(number, len(batch), self._store.put(batch)) for batch in batches if len(batch)]
        return [
            (owner, len(rows), self._store.put(rows))
            for batch in batches
            for owner, rows in divided(batch, self._owners(batch))
        ]

    def _put_together(self, number: int, batches: Batches) -> list[tuple[int, int, StoredBatch]]:
        """Store a small batch of a single task as one. Otherwise as :meth:`_put` does."""
        received = list(batches)
        if self._owners is None or len(received) != 1 or not 0 < len(received[0]) <= self._together:
            return self._put(number, iter(received))
        ordered = received[0].take(pa.array(np.argsort(self._owners(received[0]), kind="stable")))
        return [(0, len(ordered), self._store.put(ordered))]

    @property
    def rows(self) -> list[int]:
        """Return the number of rows of each task, after :meth:`make`."""
        return self._rows

    @property
    def is_one(self) -> bool:
        """Return whether all rows are one batch of one task, after :meth:`make`."""
        return self._is_one

    def sources(self, tasks: Iterable[Sequence[int]] | None = None) -> list[Source]:
        """Return tasks that read the rows, after :meth:`make`, each of some tasks or of one."""
        if tasks is None:
            tasks = [(number,) for number in range(len(self._rows))]
        return [partial(self._read, tuple(numbers)) for numbers in tasks]

    def _read(self, numbers: tuple[int, ...]) -> Batches:
        """Yield the stored batches of some tasks."""
        self.make()
        for number in numbers:
            for waiting in (self._waiting or [])[number]:
                yield waiting()

    def clear(self) -> None:
        """Free the rows. The next reader computes them again."""
        with self._lock:
            self._waiting = None
            self._store.clear()


def divided(
    batch: pa.RecordBatch, owners: npt.NDArray[np.integer]
) -> Iterable[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each owner, in their order. ``owners`` are integers (rows,).

    >>> batch = pa.record_batch({"age": [39, 41, 43]})
    >>> [(owner, rows["age"].to_pylist()) for owner, rows in divided(batch, np.array([1, 0, 1]))]
    [(0, [41]), (1, [39, 43])]
    """
    if not len(owners):
        return
    if (owners == owners[0]).all():
        yield int(owners[0]), batch
        return
    rows = batch
    if (owners[1:] < owners[:-1]).any():
        order = np.argsort(owners, kind="stable")
        rows, owners = batch.take(pa.array(order)), owners[order]
    different, starts = np.unique(owners, return_index=True)
    ends = [*starts[1:].tolist(), len(owners)]
    for owner, start, end in zip(different.tolist(), starts.tolist(), ends, strict=True):
        yield owner, rows.slice(start, end - start)
