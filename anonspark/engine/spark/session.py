"""Open the Spark session of a run: an existing one, a cluster's, or an embedded one.

Under ``spark-submit``, and in a program that has a session already, this session is used as it is.
Started by hand, ``anonspark`` starts an embedded Spark: it finds a Java, chooses the memory,
silences the log and removes all files afterwards. pyspark is imported inside of functions alone, so
that the command line starts quickly and can still diagnose a broken pyspark.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anonspark.engine.spark.embedded import (
    embedded_settings,
    find_log_configuration,
    read_spark_defaults,
    scratch_folder,
)
from anonspark.engine.spark.java import find_java, installed_spark_version
from anonspark.engine.spark.launching import (
    CONNECT,
    NO_CONNECT,
    environment_set,
    interrupt_handler_kept,
    launch_environment,
    launch_java,
)
from anonspark.engine.spark.settings import is_of_connect, our_settings, suppress_java_errors
from anonspark.engine.spark.start_errors import plain_errors
from anonspark.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("anonspark")

_LEAST_VERSION_OF_CONNECT = 4

_PATIENCE_SECONDS = 20
"""Time for a server of Spark Connect to answer."""


@contextmanager
def open_session(
    master: str | None = None, *, application_name: str = "anonspark"
) -> Iterator[SparkSession]:
    """Open the Spark session to work with, and stop it afterwards if it was started here.

    Parameters
    ----------
    master : str, optional
        A Spark master URL as in ``spark://host:7077``, ``yarn`` or ``local[4]``. Without it, and
        without ``spark.master`` in ``spark-defaults.conf``, Spark runs embedded on all cores.
    application_name : str, default "anonspark"
        The name that the cluster shows. An existing session keeps its name.

    Yields
    ------
    SparkSession
        With `anonspark.engine.spark.settings.SQL_SETTINGS` applied.

    Raises
    ------
    EnvironmentProblem
        If Java is missing or does not fit, or Spark or the cluster does not start, or a server of
        Spark Connect does not answer.
    ConfigurationError
        If `master` is no URL that Spark knows.

    Notes
    -----
    - *Under spark-submit, or with an active session in this process*: that session, with its
      settings. It is stopped only if it was created here. Otherwise its SQL settings are restored.
    - *With a master that begins with* ``sc://``, *or SPARK_REMOTE and no master*: a session of a
      server of Spark Connect. No Java starts here.
    - *With a master other than local*: memory, cores and logging are those of the cluster's
      configuration.
    - *Embedded, or with a local master*: half of the available memory (1 to 8 GiB) unless
      SPARK_DRIVER_MEMORY is set, loopback interface only, no user interface, no log, and scratch
      files in a temporary folder that only the owner can read. A key in ``spark-defaults.conf`` (in
      SPARK_CONF_DIR, or SPARK_HOME/conf) goes first.

    The environment variables that a start needs are set for the start only. Those that ask for
    Spark Connect are removed as long as a classic session is open.
    """
    # pyspark sets the variable with a session of Spark Connect, which is active in one thread only.
    in_another_thread = master is None and "SPARK_CONNECT_MODE_ENABLED" in os.environ
    attached = process_has_session() or in_another_thread
    remote = os.environ.get("SPARK_REMOTE") if master is None else master
    if attached or "PYSPARK_GATEWAY_PORT" in os.environ:
        session = _attach(master)
    elif remote and (master is None or remote.startswith("sc://")):
        session = _connect(remote)
    else:
        session = _start(master, application_name)
    # In a thread that has not started Spark, pyspark searches for a session again.
    mode = CONNECT if is_of_connect(session) else NO_CONNECT
    try:
        with environment_set(mode), our_settings(session):
            yield session
    finally:
        if not attached:
            _stop(session)


def process_has_session() -> bool:
    """Return whether this process has a Spark session or context already."""
    if "pyspark" not in sys.modules:
        return False  # and the slow import can wait
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        # A private name: pyspark has no other way to get the context without creating one.
        has_context = getattr(SparkContext, "_active_spark_context", None) is not None
        return has_context or SparkSession.getActiveSession() is not None
    except ImportError:
        return False  # a broken pyspark is reported where Spark is started


def is_running(session: Any) -> bool:
    """Return whether a session has not been stopped."""
    if is_of_connect(session):
        return not session.is_stopped
    java = session.sparkContext._jsc
    return java is not None and not java.sc().isStopped()


def require_running(session: SparkSession) -> None:
    """Raise EnvironmentProblem if a session was stopped: its tables cannot be read any more."""
    _require_new_enough(session)
    if not is_running(session):
        raise EnvironmentProblem(
            "Spark: the session of this table was stopped, so that nothing can be read from it. "
            "Open a session, and make the table anew"
        )


def _require_new_enough(session: object) -> None:
    """Raise EnvironmentProblem if pyspark's Spark Connect is too old."""
    version = installed_spark_version()
    if is_of_connect(session) and int(version.partition(".")[0]) < _LEAST_VERSION_OF_CONNECT:
        raise EnvironmentProblem(
            f"Spark Connect: found version {version} of pyspark. Expected "
            f"{_LEAST_VERSION_OF_CONNECT}.0 or later. Install it, or use spark-submit"
        )


def _attach(master: str | None) -> SparkSession:
    """Return the session of this process or of spark-submit, with its settings."""
    with plain_errors(master):
        from pyspark.sql import SparkSession

        with interrupt_handler_kept():
            session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    _require_new_enough(session)
    if master is not None:
        logger.warning("the master %s is ignored: a Spark session is there already", master)
    return session


def _connect(address: str) -> SparkSession:
    """Open a session of a Spark Connect server, or fail soon if it does not answer."""
    if not address.startswith("sc://"):
        raise EnvironmentProblem(
            f"SPARK_REMOTE: found {address}. Expected the address of a server, as in sc://HOST:15002"
            ". What to do: set it to one, or unset it."
        )
    with environment_set(CONNECT), plain_errors(address):
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client import DefaultChannelBuilder

        grpc: Any = importlib.import_module("grpc")
        with DefaultChannelBuilder(address).toChannel() as channel:
            # A session would try for ten minutes.
            try:
                grpc.channel_ready_future(channel).result(_PATIENCE_SECONDS)
            except grpc.FutureTimeoutError as error:
                raise TimeoutError("Spark Connect does not answer") from error
        return SparkSession.builder.remote(address).getOrCreate()


def _start(master: str | None, application_name: str) -> SparkSession:
    """Start Spark, embedded or as the driver of a cluster."""
    defaults = read_spark_defaults()
    master = master or defaults.get("spark.master") or "local[*]"
    embedded = master.startswith("local")
    runtime = find_java()
    logger.debug("Java %d from %s: %s", runtime.version, runtime.source, runtime.executable)

    settings = {"spark.master": master, "spark.app.name": application_name}
    if embedded:
        settings |= embedded_settings(defaults, scratch_folder())

    with (
        environment_set(launch_environment(runtime, embedded=embedded, defaults=defaults)),
        plain_errors(master, runtime) as log,
    ):
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        configuration = SparkConf()
        for key, value in settings.items():
            configuration.set(key, value)
        gateway = None
        if getattr(SparkContext, "_gateway", None) is None:
            # With our log errors are raised as exceptions. A user's log is shown.
            quiet = embedded and find_log_configuration() is not None
            gateway = launch_java(settings, log if quiet else None)
        with interrupt_handler_kept():
            SparkContext(conf=configuration, gateway=gateway)
        session = SparkSession.builder.getOrCreate()
        if embedded:
            _configure_embedded(session, defaults)
    return session


def _configure_embedded(session: SparkSession, defaults: Mapping[str, str]) -> None:
    """Set log, checksums and default numbers of tasks of an embedded session that has started."""
    from anonspark.engine.spark.java_objects import java_class

    if find_log_configuration() is not None:
        # For a Java that an earlier session of this process left behind.
        session.sparkContext.setLogLevel("ERROR")
    # Hadoop starts a process for each local file that it writes, also for a checksum.
    file_system = java_class(session, "org.apache.hadoop.fs.FileSystem")
    local_files = file_system.getLocal(session.sparkContext._jsc.hadoopConfiguration())
    local_files.setWriteChecksum(False)
    cores = session.sparkContext.defaultParallelism
    # With one more task than cores, all but one core would wait for the last one.
    for key, tasks in (
        ("spark.sql.shuffle.partitions", cores),
        ("spark.sql.files.minPartitionNum", 3 * cores),
    ):
        if key not in defaults:
            session.conf.set(key, str(tasks))


def _stop(session: SparkSession) -> None:
    """Stop a session. A Java that has ended already must not hide the first error."""
    with suppress_java_errors("Spark could not be stopped in order"):
        session.stop()
    if scratch_folder.cache_info().currsize:
        for folder in scratch_folder().glob("*"):
            shutil.rmtree(folder, ignore_errors=True)
