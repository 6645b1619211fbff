"""Open the Spark session of a run: the one that is there, a cluster's, or an embedded one.

Under ``spark-submit`` and inside a program that has a session already, nothing is decided here.
Started by hand, ``anonspark`` brings its own Spark: it finds a Java, chooses a sensible amount of
memory, keeps quiet and leaves nothing behind. pyspark is imported inside the functions alone, so
that the command line starts quickly and can still diagnose a broken pyspark.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from anonspark.engine.spark.java import (
    INSTALLATION_HINT,
    JavaRuntime,
    describe_versions,
    find_java,
    installed_spark_version,
    supported_java_versions,
)
from anonspark.errors import AnonsparkError, ConfigurationError, EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SQL_SETTINGS",
    "batches_of_rows",
    "open_session",
    "our_settings",
    "reads_as_we_do",
    "require_classic",
    "writing_settings",
]

logger = logging.getLogger(__name__)

_MEANING: Mapping[str, str] = {
    # A timestamp must mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # An overflow or an impossible cast is an error, never a silent null. Default since Spark 4.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    # Days are those of the calendar of today in all years, as other programs write them; files of
    # Spark 2 say that theirs are not.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    # A column that only some files have is not to be found by chance; see
    # anonspark.engine.spark.file_schemas.
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.orc.mergeSchema": "false",
    # A damaged or vanished file is an error, never a table with fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Whose files we can ask for their columns.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # The number of a round, read back from a folder's name, is a number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
}
"""Settings that decide what is read from a file, and what an expression means."""

_NAMES_OF_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")

_WRITING: Mapping[str, str] = {
    # Spark's default is still INT96, which hardly any other program can compare or index.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings that decide how files are written, and nothing that is read."""

SQL_SETTINGS: Mapping[str, str] = {
    **_MEANING,
    **_WRITING,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Our functions work on whole batches: larger ones than the default of 10,000 rows pay.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # A round writes finished records, outliers and classes side by side: three open files, no sort.
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # The traceback of a failed task (Spark 4.3) must not print local variables, which hold records.
    "spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled": "false",
}
"""SQL settings that every session gets while we use it."""

_BATCHES_OF_ROWS: Mapping[str, str] = {
    # Rows of 100 kB, such as those with a clinical note, still make batches of 200 MB only.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
    # The one value that means no limit.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}

# An embedded session lives from seconds to minutes. Compiling each method at once with the heavy
# compiler costs half of a short run, doing without it half of a long one: so it compiles only
# what has run ten times as often as the default asks for.
_QUICK_START_OPTIONS = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# Starts faster than the default G1 and uses all cores for a batch job's short-lived objects.
_COLLECTOR_OPTION = "-XX:+UseParallelGC"

_GIBIBYTE = 2**30
_MEBIBYTE = 2**20

# What was last said on standard error is enough to tell why a start failed.
_KEPT_LINES = 400


@contextmanager
def open_session(
    master: str | None = None, *, application_name: str = "anonspark"
) -> Iterator[SparkSession]:
    """Give the Spark session to work with, and stop it afterwards if it was started here.

    Parameters
    ----------
    master : str, optional
        A Spark master URL as in ``spark://host:7077``, ``yarn`` or ``local[4]``. Without it, and
        without ``spark.master`` in ``spark-defaults.conf``, Spark runs embedded on all cores.
    application_name : str, default "anonspark"
        What the cluster shows. A session that was there before keeps its name.

    Yields
    ------
    SparkSession
        With `SQL_SETTINGS` applied.

    Raises
    ------
    EnvironmentProblem
        If Java is missing or does not fit, or Spark or the cluster does not start; or if the
        session to attach to is one of Spark Connect, or the environment asks for such a one
        and `master` is not given.
    ConfigurationError
        If `master` is no URL that Spark knows.

    Notes
    -----
    - *Under spark-submit, or with an active session in this process*: that session, nothing
      forced. It is stopped only if it came into being here; otherwise the SQL settings are put
      back to what they were.
    - *With a master other than local*: memory, cores and logging stay as the cluster's
      configuration says.
    - *Embedded, or with a local master*: half of the memory that is available (1 to 8 GiB) unless
      SPARK_DRIVER_MEMORY says otherwise, loopback interface only, no user interface, errors
      logged alone, scratch files in a temporary folder that only the owner can read. A key in
      ``spark-defaults.conf`` (in SPARK_CONF_DIR, or SPARK_HOME/conf) always wins.

    The environment variables that a start needs are set for the start only.
    """
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if master is None and os.environ.get(name):
            raise _connect_problem(f"{name} is set")
    attached = _process_has_session()
    if attached or "PYSPARK_GATEWAY_PORT" in os.environ:
        session = _attach(master)
    else:
        session = _start(master, application_name)
    try:
        with our_settings(session):
            yield session
    finally:
        if not attached:
            _stop(session)


@contextmanager
def batches_of_rows(session: SparkSession) -> Iterator[None]:
    """Limit Arrow batches by their rows alone while single records are handed to Python.

    Since Spark 4.1 batches are limited by their size, too, which is summed up over all columns
    before each row: a quarter of all that Java does to hand records over. Packed batches (see
    :mod:`anonspark.staged.records`), which are few and large, need that limit.

    Parameters
    ----------
    session : SparkSession
        Its settings are others inside of the ``with`` block.
    """
    with _settings(session, _BATCHES_OF_ROWS):
        yield


@contextmanager
def our_settings(session: SparkSession) -> Iterator[None]:
    """Work with `SQL_SETTINGS` in a session, and leave it as it was found.

    Parameters
    ----------
    session : SparkSession
        Anybody's. Its settings are others inside of the ``with`` block, and pyspark logs no errors
        of queries there, whose text may hold values of the data.
    """
    with _settings(session, SQL_SETTINGS), _query_errors_unlogged():
        yield


@contextmanager
def writing_settings(session: SparkSession) -> Iterator[None]:
    """Write files as we do, of what is computed with the session's own settings."""
    with _settings(session, _WRITING), _query_errors_unlogged():
        yield


def reads_as_we_do(session: SparkSession) -> bool:
    """Tell whether files and expressions mean in a session what they mean with `SQL_SETTINGS`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    def means(key: str, value: str) -> bool:
        try:
            found = session.conf.get(key)
        except (PySparkException, Py4JError):
            return True  # neither set, nor known to this Spark
        if key == "spark.sql.session.timeZone" and found in _NAMES_OF_UTC:
            return True
        return found is None or found.upper() == value.upper()

    return all(means(key, value) for key, value in _MEANING.items())


def _process_has_session() -> bool:
    """Tell whether this process has a Spark session or context already."""
    if "pyspark" not in sys.modules:
        return False  # and the slow import can wait
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        return False  # a broken pyspark is reported where Spark is started
    # The context in private: pyspark has no other way to ask for one without making one.
    has_context = getattr(SparkContext, "_active_spark_context", None) is not None
    return has_context or SparkSession.getActiveSession() is not None


def require_classic(session: object) -> None:
    """Refuse a session of Spark Connect.

    Parameters
    ----------
    session : SparkSession
        Of whichever kind.

    Raises
    ------
    EnvironmentProblem
        If it is one of Spark Connect.
    """
    if type(session).__module__.startswith("pyspark.sql.connect."):
        raise _connect_problem("this is a session of Spark Connect")


def _connect_problem(found: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"Spark Connect cannot be used: {found}, and files are staged and published through the "
        "Java of Spark's driver, which Spark Connect keeps out of reach. What to do: run with "
        "spark-submit, with --master, or in a program with a classic session; unset SPARK_REMOTE "
        "and spark.remote."
    )


def _attach(master: str | None) -> SparkSession:
    """Take the session of this process or of spark-submit as it is."""
    with _plain_errors(master):
        from pyspark.sql import SparkSession

        with _interrupt_handler_kept():
            session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    require_classic(session)
    if master is not None:
        logger.warning("the master %s is ignored: a Spark session is there already", master)
    return session


def _start(master: str | None, application_name: str) -> SparkSession:
    """Start Spark, embedded or as the driver of a cluster."""
    defaults = _read_spark_defaults()
    master = master or defaults.get("spark.master") or "local[*]"
    embedded = master.startswith("local")
    runtime = find_java()
    logger.debug("Java %d from %s: %s", runtime.version, runtime.source, runtime.executable)

    settings = {"spark.master": master, "spark.app.name": application_name}
    if embedded:
        settings |= _embedded_settings(defaults, _scratch_folder())

    with (
        _environment(_launch_environment(runtime, embedded=embedded, defaults=defaults)),
        _plain_errors(master, runtime) as messages,
    ):
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        configuration = SparkConf()
        for key, value in settings.items():
            configuration.set(key, value)
        gateway = None
        if getattr(SparkContext, "_gateway", None) is None:
            gateway = _launch_java(settings, messages, quiet=embedded)
        with _interrupt_handler_kept():
            SparkContext(conf=configuration, gateway=gateway)
        session = SparkSession.builder.getOrCreate()
        if embedded:
            if _own_log_configuration() is not None:
                # For a JVM that an earlier session of this process left behind.
                session.sparkContext.setLogLevel("ERROR")
            if "spark.sql.shuffle.partitions" not in defaults:
                cores = session.sparkContext.defaultParallelism
                session.conf.set("spark.sql.shuffle.partitions", str(cores))
    return session


def _embedded_settings(defaults: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Choose the settings of a Spark inside this machine; keys in `defaults` are left alone."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        # The bar would be drawn into our own messages on standard error.
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if "SPARK_DRIVER_MEMORY" not in os.environ:
        settings["spark.driver.memory"] = f"{_driver_memory_mebibytes()}m"
    settings = {key: value for key, value in settings.items() if key not in defaults}

    users_options = defaults.get("spark.driver.extraJavaOptions", "")
    variables = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
    told = " ".join([users_options, *(os.environ.get(name, "") for name in variables)])
    options = [_QUICK_START_OPTIONS]
    if "GC" not in told:  # Java refuses to start with two garbage collectors
        options.append(_COLLECTOR_OPTION)
    log_configuration = _own_log_configuration()
    if log_configuration is not None:
        options.append(f"-Dlog4j2.configurationFile={log_configuration.as_uri()}")
    options.append(users_options)  # the last one wins
    settings["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    return settings


@cache
def _scratch_folder() -> Path:
    """Make the folder for Spark's temporary files, which hold raw data: for the owner alone.

    There is one for the life of the process: Spark's Java outlives the sessions in it and comes
    back to the folder of the first.
    """
    scratch = Path(tempfile.mkdtemp(prefix="anonspark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _driver_memory_mebibytes() -> int:
    """Choose the heap: half of what this machine or container can give, from 1 to 8 GiB."""
    half = _available_memory() // 2
    return min(max(half, _GIBIBYTE), 8 * _GIBIBYTE) // _MEBIBYTE


def _available_memory() -> int:
    """Count the bytes of memory that can still be had, the limit of a container included."""
    limits = []
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
    if not limits:
        with suppress(OSError, ValueError):  # not a Linux: all there is
            limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limits.extend(_control_group_limits())
    return min(limits, default=0)


def _control_group_limits() -> list[int]:
    """List the memory limits in bytes of the control groups that this process is in."""
    try:
        memberships = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    limits = []
    for membership in memberships:
        _, controllers, group = membership.split(":", 2)
        if controllers == "":
            root, name = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            root, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        # A limit of any group above holds, too. Inside a container the group's own path is
        # often not to be seen, while the root of the mount is that group.
        relative = Path(group.lstrip("/"))
        for folder in (relative, *relative.parents):
            with suppress(OSError, ValueError):  # not there, or "max" for no limit
                limits.append(int((root / folder / name).read_text(encoding="ascii")))
    return limits


def _configuration_folder() -> Path | None:
    """Tell where Spark will look for spark-defaults.conf and log4j2.properties."""
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder)
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "conf"
    return None


def _read_spark_defaults() -> dict[str, str]:
    """Read the user's spark-defaults.conf, a Java properties file; empty if there is none."""
    folder = _configuration_folder()
    if folder is None:
        return {}
    try:
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(
            f"{folder / 'spark-defaults.conf'} cannot be read ({type(error).__name__}). "
            "What to do: make it a readable text file, or unset SPARK_CONF_DIR."
        ) from error
    matches = (re.match(r"\s*([^#!\s=:][^\s=:]*)\s*[=:]?\s*(.*?)\s*$", line) for line in lines)
    return {match[1]: match[2] for match in matches if match}


def _own_log_configuration() -> Path | None:
    """Tell where our log4j2 configuration is; None if the user has one, or we are in a zip."""
    folder = _configuration_folder()
    if folder is not None and any(folder.glob("log4j2.*")):
        return None
    path = Path(__file__).with_name("log4j2.properties").absolute()
    return path if path.is_file() else None


def _launch_environment(
    runtime: JavaRuntime, *, embedded: bool, defaults: Mapping[str, str]
) -> dict[str, str | None]:
    """Choose the environment variables of a start; None stands for a variable to remove."""
    environment: dict[str, str | None] = {
        "JAVA_HOME": None if runtime.home is None else str(runtime.home),
        # These would make pyspark look for a Spark Connect server instead of starting Spark.
        "SPARK_REMOTE": None,
        "SPARK_API_MODE": None,
        "SPARK_CONNECT_MODE_ENABLED": None,
    }
    # Without it the workers start the first python3 on PATH, which knows nothing of this virtual
    # environment.
    python = defaults.get("spark.pyspark.python", sys.executable)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if name not in os.environ:
            environment[name] = python
            python = sys.executable
    if embedded and "SPARK_LOCAL_IP" not in os.environ:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return environment


@contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Put back the handler of Ctrl-C, which a new SparkContext replaces by its own.

    That one asks Java to cancel all jobs, over the connection that the call it interrupts is
    using: the call fails as if Java had ended, or goes on as if nothing had happened.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # Python allows it in the main thread alone, and so does Spark.
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Keep a first Ctrl-C or SIGTERM until the end of the block.

    pyspark, interrupted while it waits for the Java that it started, would leave that running.
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


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set and remove environment variables for a while."""
    previous = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(previous)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class _MessageRelay(threading.Thread):
    """Pass on what Spark's Java says to standard error, and keep the last of it.

    Parameters
    ----------
    descriptor : int
        The end of a pipe to read from; closed at its end.
    kept : deque of str
        Receives the lines.
    quiet : bool
        Keep the lines to ourselves until `start_passing_on`: what Java and Spark say during a
        start that succeeds is of no use to anybody.
    """

    def __init__(self, descriptor: int, kept: deque[str], *, quiet: bool) -> None:
        super().__init__(name="anonspark-java-messages", daemon=True)
        self._descriptor = descriptor
        self._kept = kept
        self._passing_on = not quiet

    def start_passing_on(self) -> None:
        """Pass on the lines from now on."""
        self._passing_on = True

    def run(self) -> None:
        """Read until Java has ended."""
        with open(self._descriptor, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                self._kept.append(line)
                if self._passing_on and sys.stderr is not None:
                    # Reading must go on with a closed standard error, or Java would be held up.
                    with suppress(OSError, ValueError):
                        sys.stderr.write(line)
                        sys.stderr.flush()


class _Messages:
    """What Spark's Java has said during a start."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self.relay: _MessageRelay | None = None


def _launch_java(settings: Mapping[str, str], messages: _Messages, *, quiet: bool) -> object:
    """Start Spark's Java with what it says in our hands; return the way to talk to it."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    # Only what the start of Java itself depends on: Java keeps these settings for all sessions of
    # this process, and a later one may be another.
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
    reading, writing = os.pipe()
    messages.relay = _MessageRelay(reading, messages.lines, quiet=quiet)
    messages.relay.start()
    try:
        # Its standard output, too: ours is for results alone.
        with _signals_deferred():
            gateway: object = launch_gateway(  # type: ignore[no-untyped-call]
                configuration, popen_kwargs={"stdout": writing, "stderr": writing}
            )
    finally:
        os.close(writing)
    return gateway


@contextmanager
def _plain_errors(master: str | None, runtime: JavaRuntime | None = None) -> Iterator[_Messages]:
    """Translate the failure of a start into plain words with a remedy."""
    messages = _Messages()
    try:
        yield messages
    except ImportError as error:
        raise EnvironmentProblem(
            f"pyspark cannot be imported: {error}. "
            "What to do: pip install --force-reinstall pyspark"
        ) from error
    except Exception as error:
        relay = messages.relay
        if relay is not None:
            # Where Java has ended its last words are on their way; where it lives there is no end.
            relay.join(timeout=2.0)
        said = "".join(messages.lines)
        problem = _explain(f"{said}\n{error}", master, runtime)
        if said:
            problem.add_note(f"Java said:\n{said}")
        raise problem from error
    finally:
        if messages.relay is not None:
            messages.relay.start_passing_on()


def _explain(text: str, master: str | None, runtime: JavaRuntime | None) -> AnonsparkError:
    """Say in plain words why Spark did not start, and what to do.

    Parameters
    ----------
    text : str
        What Java and pyspark said.
    master : str or None
        The master URL that was tried.
    runtime : JavaRuntime or None
        The Java that was tried, if it was chosen here.

    Returns
    -------
    AnonsparkError
        To be raised.
    """
    spark_version = installed_spark_version()
    java = "Java" if runtime is None else f"Java {runtime.version} ({runtime.executable})"
    needed = (
        f"Spark {spark_version} needs Java "
        f"{describe_versions(supported_java_versions(spark_version))}"
    )
    if re.search(
        r"Could not parse Master URL|Master must either be|[Cc]luster manager for url", text
    ):
        return ConfigurationError(
            f"--master: {master!r} is no master URL that Spark knows. "
            "Expected spark://HOST:PORT, yarn, k8s://HOST:PORT, local[N] or local[*]."
        )
    known = (
        (
            "getSubject is not supported",
            f"{java} is too new. {needed}. What to do: {INSTALLATION_HINT}.",
        ),
        (
            "UnsupportedClassVersionError",
            f"{java} is too old. {needed}. What to do: {INSTALLATION_HINT}.",
        ),
        (
            r"FindException|jdk\.incubator\.vector not found",
            f"{java} is a stripped runtime without a module that Spark asks for. "
            f"What to do: {INSTALLATION_HINT}.",
        ),
        (
            r"JAVA_HOME is not set|java: (command )?not found|bin/java: No such file",
            f"Spark found no Java. {needed}. What to do: {INSTALLATION_HINT}.",
        ),
        (
            r"Could not reserve enough space|insufficient memory|Not enough space"
            r"|Cannot allocate memory|Invalid (maximum|initial) heap size"
            r"|System memory \d+ must be at least",
            "Java did not get the memory that it was told to take. What to do: set "
            "SPARK_DRIVER_MEMORY to a size that this machine has and Spark can live with, as in "
            "2g, or spark.driver.memory in spark-defaults.conf.",
        ),
        (
            r"HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
            "YARN cannot be found. What to do: set HADOOP_CONF_DIR to the folder with the "
            "cluster's configuration.",
        ),
        (
            r"All masters are unresponsive|Failed to connect to master|Connection refused"
            r"|UnknownHostException|failed to register|Invalid Spark URL",
            f"The master {master} does not answer. What to do: check that it runs, that host and "
            "port are right, and that this machine can reach it.",
        ),
        (
            r"No space left on device",
            "A disk is full. What to do: make room, or set SPARK_LOCAL_DIRS and TMPDIR to folders "
            "on a larger disk.",
        ),
        (
            r"BindException|Cannot assign requested address",
            "Spark could not listen on its network address. What to do: set SPARK_LOCAL_IP to an "
            "address of this machine, as in 127.0.0.1.",
        ),
    )
    for pattern, explanation in known:
        if re.search(pattern, text):
            return EnvironmentProblem(f"Spark did not start: {explanation}")
    return EnvironmentProblem(
        f"Spark did not start: {_most_telling_line(text)}. What to do: run `anonspark doctor`, "
        "which checks Java, Python and Spark one by one; with --debug the whole text is shown."
    )


def _most_telling_line(text: str) -> str:
    """Pick the line of a failed start that most likely names the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"Error|Exception|Unrecognized|[Ii]nvalid", line)
        and not line.startswith("at ")
    ]
    # Java's own complaint comes first; pyspark's, at the end, only says that Java has ended.
    return (telling or lines or ["without a word"])[0].rstrip(".")


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings for a while; what was set before is set afterwards, and nothing else."""
    previous = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        _restore_settings(session, previous)


def _restore_settings(session: SparkSession, previous: Mapping[str, str | None]) -> None:
    """Put back what was set; quietly if the session has ended meanwhile."""
    with _suppress_java_errors("the settings of the session could not be put back"):
        for key, value in previous.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


def _stop(session: SparkSession) -> None:
    """Stop a session; a Java that has ended already must not hide the error that came first."""
    with _suppress_java_errors("Spark could not be stopped in order"):
        session.stop()
    if _scratch_folder.cache_info().currsize:
        for folder in _scratch_folder().glob("*"):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _query_errors_unlogged() -> Iterator[None]:
    """Keep pyspark from printing errors of queries, whose text may hold values of the data.

    From version 4 on pyspark logs them on standard error from Python, besides raising them.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # pyspark 3.5 raises them only
        yield
        return
    loggers = [
        PySparkLogger.getLogger(name)
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    ]
    previous = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        yield
    finally:
        for each, disabled in zip(loggers, previous, strict=True):
            each.disabled = disabled


@contextmanager
def _suppress_java_errors(message: str) -> Iterator[None]:
    from py4j.protocol import Py4JError

    try:
        yield
    except (Py4JError, OSError) as error:
        logger.debug("%s", message, exc_info=error)
