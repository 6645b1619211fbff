"""Working with an engine, which is chosen first, in a thread that a signal can stop."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from anonspark.cli.logs import LOG

if TYPE_CHECKING:
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.engine.spark.engine import SparkEngine

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

Result = TypeVar("Result")
Working = TypeVar("Working", bound="Engine")

_LOOKS_SECONDS = 0.2

"""Is called when work ended: with the engine, or with None if it did not start."""

_LOGGER = logging.getLogger("anonspark")


class EndedError(BaseException):
    """A signal arrived: clean up and end."""

    def __init__(self, number: int, what: str = "No release was published") -> None:
        self.number = number
        self.exit_code = 128 + number
        super().__init__(f"{SIGNALS[signal.Signals(number)]}. {what}")


def end(number: int, _frame: FrameType | None) -> None:
    """End the command on a signal."""
    # Staging holds raw records: an impatient second signal must not stop its removal.
    ignore_signals()
    raise EndedError(number)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the work of the block on signals, and restore their handlers afterwards."""
    previous = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore signals from now on, so that cleaning up is not interrupted."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class WithoutPandas:
    """Hides pandas, which pyarrow imports by itself if it is installed, for nothing.

    That would be half of the time that a small table takes. What pyarrow has not found it may not
    look for again, so this is for a process in which no code but ours has tables. When a model or a
    criterion of another package is asked for, pandas is no longer hidden.
    """

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        from anonspark.core.extensions import any_asked_for

        if name == "pandas" and not any_asked_for():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def work_with_engine(
    name: EngineName,
    work: Work | None,
    master: str | None,
    function: Callable[[Engine], Result],
) -> Result:
    """Choose an engine, see :func:`anonspark.engine.choice.choose_engine`, and work with it."""
    from anonspark.engine.choice import choose_engine, fits_into_process

    choice = choose_engine(name, work, master)
    _LOGGER.debug("the engine is %s: %s", choice.name, choice.reason)
    if choice.name == "spark":
        if work is not None and fits_into_process(work):
            _LOGGER.info(
                "these files fit into one process, which is mostly faster without Spark. Try "
                "--engine local, or execution.engine: local in a configuration"
            )
        return work_with_spark(master, function)
    with _beginning("start"):
        if LOG.get().ends_process:
            sys.meta_path.insert(0, WithoutPandas())
        from anonspark.engine.local.engine import LocalEngine

        engine = LocalEngine()
        return work_in_thread(function, engine, engine.cancel)


def work_with_spark(master: str | None, function: Callable[[SparkEngine], Result]) -> Result:
    """Open a session and work with it as the engine.

    A signal interrupts what the main thread is doing. During a call to Java, its answer would be
    taken for that of the next call. So the work has a thread of its own.
    """
    from anonspark.engine.spark.java import installed_spark_version

    installed_spark_version()
    with _beginning("start Spark"):
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from anonspark.engine.spark.session import open_session

        with open_session(master) as session:
            # Late: the session may bring packages that these modules import.
            from anonspark.engine.spark.engine import SparkEngine
            from anonspark.engine.spark.jobs import stop_all_jobs

            def cancel() -> None:
                # A signal to the whole process group has ended Java, too.
                with suppress(Py4JError, PySparkException, OSError):
                    stop_all_jobs(session)

            return work_in_thread(function, SparkEngine(session), cancel)


@contextmanager
def _beginning(name: str) -> Iterator[None]:
    """Show a title until the first stage begins, or the work ends without any."""
    progress = LOG.get().progress
    progress.begin(name)
    try:
        yield
    except BaseException:
        progress.begun(failed=True)
        raise
    progress.begun()


def work_in_thread(
    function: Callable[[Working], Result],
    engine: Working,
    cancel: Callable[[], None],
) -> Result:
    """Work in a thread, and on a signal cancel it until it has failed or finished after all.

    A handler only notes the signal: an exception from it could arrive before the wait begins. The
    wait ends now and then, because a signal that the system gives to another thread does not wake
    this one, which alone runs handlers.
    """
    ended: list[EndedError] = []

    def note(number: int, _frame: FrameType | None) -> None:
        # As in `end`; Spark's handler, which is replaced here, too, would go on.
        ignore_signals()
        ended.append(EndedError(number))

    for number in SIGNALS:
        signal.signal(number, note)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(function, engine)
        while not working.done():
            if ended:
                cancel()
            wait([working], timeout=_LOOKS_SECONDS)
    ignore_signals()
    if working.exception() is not None and ended:
        raise ended[0]
    return working.result()
