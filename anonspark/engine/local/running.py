"""Run the tasks of a table in threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from anonspark.engine.tasks import Batches, enter_task

Source = Callable[[], Batches]
"""Yields the batches of one task. May be called again."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def map_in_threads(
    function: Callable[[_Item], _Result], items: Sequence[_Item], at_once: int | None = None
) -> list[_Result]:
    """Apply a function to items in parallel, and return the results in their order.

    Uses up to ``at_once`` threads, or None for the processors of this process. A single item starts
    no thread.

    >>> map_in_threads(len, ["a", "bc"])
    [1, 2]
    """
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(at_once or _processors(), len(items))) as pool:
        return list(pool.map(function, items))


class StoppedError(Exception):
    """A task was stopped because another one failed or the run was cancelled."""


class Runner:
    """Runs the tasks of one table in threads, or None for the processors of this process."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _processors()
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop all tasks at their next batch. None runs afterwards."""
        self._cancelled.set()

    def run(
        self, sources: Sequence[Source], finish: Callable[[int, Batches], _Result]
    ) -> list[_Result]:
        """Run tasks, wait for all of them, and return the results of ``finish`` in their order.

        ``finish`` takes a task's number and its batches. If tasks fail, the others stop, and the
        error of the failed task with the lowest number is raised.

        >>> Runner(1).run([lambda: iter("ab"), lambda: iter("c")], lambda _, batches: list(batches))
        [['a', 'b'], ['c']]
        """
        # Tasks from this number on stop. Earlier ones go on, for their error would come first.
        last = [len(sources)]

        def work(number: int) -> _Result:
            if number >= last[0]:
                raise StoppedError
            enter_task(number, is_remote=False)
            try:
                return finish(number, self._until_stopped(sources[number](), number, last))
            except BaseException:
                # Set here: the waiting thread may be late, and other tasks would go on meanwhile.
                last[0] = min(last[0], number)
                raise

        if self.threads == 1 or len(sources) == 1:
            # Starting a thread takes longer than most work on small tables.
            try:
                return [work(number) for number in range(len(sources))]
            finally:
                enter_task(0)
        with ThreadPoolExecutor(self.threads, thread_name_prefix="anonspark-task") as pool:
            futures = [pool.submit(work, number) for number in range(len(sources))]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            except BaseException:
                last[0] = 0
                raise
            finally:
                # Does nothing if all tasks ended.
                for future in futures:
                    future.cancel()
        errors = [task.exception() for task in futures if task.done() and not task.cancelled()]
        for error in sorted(filter(None, errors), key=lambda err: isinstance(err, StoppedError)):
            raise error
        return [future.result() for future in futures]

    def _until_stopped(self, batches: Batches, number: int, last: Sequence[int]) -> Batches:
        """Yield the batches of a task, and raise StoppedError when it has to stop."""
        for batch in batches:
            if number >= last[0] or self._cancelled.is_set():
                raise StoppedError
            yield batch
