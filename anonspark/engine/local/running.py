"""Running the tasks of a table in threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from anonspark.engine.tasks import Batches, enter_task

Source = Callable[[], Batches]
"""Opens the batches of one task. May be asked again."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def map_in_threads(
    function: Callable[[_Item], _Result], items: Sequence[_Item], at_once: int | None = None
) -> list[_Result]:
    """Apply a function to items. No thread is begun for a single one.

    Parameters
    ----------
    function : callable
    items : sequence
    at_once : int or None
        None for the processors that this process may use.

    Returns
    -------
    list
        What it returned, in the order of the items.
    """
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(at_once or _processors(), len(items))) as pool:
        return list(pool.map(function, items))


class StoppedError(Exception):
    """A task was stopped because another one failed or the run was cancelled."""


class Runner:
    """Runs the tasks of one table at a time, as many at once as this process has processors.

    Parameters
    ----------
    threads : int or None
        Tasks at once. None for the processors that this process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _processors()
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Have all tasks stop at their next batch. None runs afterwards."""
        self._cancelled.set()

    def run(
        self, sources: Sequence[Source], finish: Callable[[int, Batches], _Result]
    ) -> list[_Result]:
        """Run tasks, and wait for all of them.

        Parameters
        ----------
        sources : sequence of callable
            One a task.
        finish : callable
            Takes a task's number and its batches.

        Returns
        -------
        list
            What it returned, task by task.

        Raises
        ------
        Exception
            Of the first task, by its number, that failed. No task runs any more then.
        """
        # Tasks from this number on stop. Those before a failed one may fail, too, and are first.
        last = [len(sources)]

        def work(number: int) -> _Result:
            if number >= last[0]:
                raise StoppedError
            enter_task(number, is_remote=False)
            try:
                return finish(number, self._until_stopped(sources[number](), number, last))
            except BaseException:
                # The thread that waits for the tasks may be late, and the others would go on.
                last[0] = min(last[0], number)
                raise

        if self.threads == 1 or len(sources) == 1:
            # A thread would cost more than most of what small tables ask for.
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
                # Nothing is left to stop where all went well.
                for future in futures:
                    future.cancel()
        errors = [task.exception() for task in futures if task.done() and not task.cancelled()]
        for error in sorted(filter(None, errors), key=lambda err: isinstance(err, StoppedError)):
            raise error
        return [future.result() for future in futures]

    def _until_stopped(self, batches: Batches, number: int, last: Sequence[int]) -> Batches:
        for batch in batches:
            if number >= last[0] or self._cancelled.is_set():
                raise StoppedError
            yield batch
