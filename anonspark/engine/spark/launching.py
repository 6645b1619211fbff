"""Start Spark's Java, with its environment variables, and hold signals meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import IO

from anonspark.engine.spark.java import JavaRuntime

NO_CONNECT: Mapping[str, str | None] = dict.fromkeys(
    ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED")
)
"""Environment in which pyspark does not look for a server of Spark Connect."""

CONNECT: Mapping[str, str | None] = {"SPARK_CONNECT_MODE_ENABLED": "1"}
"""Environment in which pyspark's functions are those of Spark Connect."""

_STANDARD_ERROR = 2


def launch_java(settings: Mapping[str, str], output: IO[bytes] | None) -> object:
    """Start Spark's Java, and return pyspark's gateway to it.

    ``output`` receives the output of Java as long as it lives, or None leaves it to standard error.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    # Only settings that the start of Java depends on: Java keeps these for all sessions of this
    # process, and a later session may differ.
    configuration = SparkConf()
    for key in (
        "spark.master",
        "spark.app.name",
        "spark.driver.memory",
        "spark.driver.extraJavaOptions",
        "spark.ui.showConsoleProgress",
    ):
        if key in settings:
            configuration.set(key, settings[key])
    # Standard output goes there, too: that of this process is for results alone.
    streams = dict.fromkeys(("stdout", "stderr"), _STANDARD_ERROR if output is None else output)
    with _signals_deferred():
        gateway: object = launch_gateway(  # type: ignore[no-untyped-call]
            configuration, popen_kwargs=streams
        )
    return gateway


def launch_environment(
    runtime: JavaRuntime, *, embedded: bool, defaults: Mapping[str, str]
) -> dict[str, str | None]:
    """Choose the environment variables for the start of Spark. None removes a variable."""
    environment: dict[str, str | None] = {
        "JAVA_HOME": None if runtime.home is None else str(runtime.home),
        **NO_CONNECT,
    }
    # Without it workers would start the first python3 on PATH, outside of this environment.
    python = defaults.get("spark.pyspark.python", sys.executable)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if name not in os.environ:
            environment[name] = python
            python = sys.executable
    if embedded and "SPARK_LOCAL_IP" not in os.environ:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return environment


@contextmanager
def environment_set(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set and remove environment variables, and restore them afterwards."""
    previous = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(previous)


def _set_environment(values: Mapping[str, str | None]) -> None:
    """Set environment variables, or remove them if None."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def interrupt_handler_kept() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which a new SparkContext replaces.

    Spark's handler asks Java to cancel all jobs by the connection that the interrupted call is
    using: the call fails as if Java had ended, or goes on as if nothing had happened.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # Python sets handlers in the main thread alone, and so does Spark.
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer a first Ctrl-C or SIGTERM to the end of the block.

    If pyspark is interrupted while it waits for the Java that it started, that Java stays running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive in the main thread alone
        return
    arrived: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        handler = previous[signal.Signals(number)]
        if arrived and callable(handler):
            handler(number, frame)
        arrived.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, keep)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, previous[number] or signal.SIG_DFL)
    if arrived:
        signal.raise_signal(arrived[0])
