"""Explain in plain words why Spark did not start."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from anonspark.engine.spark.java import (
    INSTALLATION_HINT,
    JavaRuntime,
    installed_spark_version,
    supported_java,
)
from anonspark.errors import AnonsparkError, ConfigurationError, EnvironmentProblem

# Patterns in the output of Java and pyspark, and explanations. The first match counts.
_KNOWN = (
    (
        "getSubject is not supported",
        "{java} is too new. {needed}. What to do: {hint}.",
    ),
    (
        "UnsupportedClassVersionError",
        "{java} is too old. {needed}. What to do: {hint}.",
    ),
    (
        r"FindException|jdk\.incubator\.vector not found",
        "{java} is a stripped runtime without a module that Spark asks for. What to do: {hint}.",
    ),
    (
        r"JAVA_HOME is not set|java: (command )?not found|bin/java: No such file",
        "Spark found no Java. {needed}. What to do: {hint}.",
    ),
    (
        r"Could not reserve enough space|insufficient memory|Not enough space"
        r"|Cannot allocate memory|Invalid (maximum|initial) heap size"
        r"|System memory \d+ must be at least",
        "Java did not get the memory that it was set to take. What to do: set SPARK_DRIVER_MEMORY "
        "to a size that this machine has and Spark can live with, as in 2g, or spark.driver.memory "
        "in spark-defaults.conf.",
    ),
    (
        "Spark Connect does not answer",
        "The server {master} of Spark Connect does not answer. What to do: check that it runs, "
        "that host, port and token are right, and that this machine can reach it.",
    ),
    (
        r"HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
        "YARN cannot be found. What to do: set HADOOP_CONF_DIR to the folder with the "
        "cluster's configuration.",
    ),
    (
        r"All masters are unresponsive|Failed to connect to master|Connection refused"
        r"|UnknownHostException|failed to register|Invalid Spark URL",
        "The master {master} does not answer. What to do: check that it runs, that host and "
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


@contextmanager
def plain_errors(master: str | None, runtime: JavaRuntime | None = None) -> Iterator[IO[bytes]]:
    """Raise an error with a remedy if Spark does not start. Yields a file for the output of Java.

    The file has no name, and is gone when this process and Java have ended.
    """
    with tempfile.TemporaryFile(prefix="anonspark-") as file:
        try:
            yield file
        except ImportError as error:
            of_connect = re.search("grpc|googleapis|zstandard", str(error)) is not None
            package = "'pyspark[connect]'" if of_connect else "--force-reinstall pyspark"
            raise EnvironmentProblem(
                f"pyspark cannot be imported: {error}. What to do: pip install {package}"
            ) from error
        except Exception as error:
            file.seek(0)
            log = file.read().decode(errors="replace")
            problem = _explain(f"{log}\n{error}", master, runtime)
            if log:
                problem.add_note(f"Java said:\n{log}")
            raise problem from error


def _explain(text: str, master: str | None, runtime: JavaRuntime | None) -> AnonsparkError:
    """Explain why Spark did not start from the output of Java and pyspark, with a remedy.

    ``runtime`` is None if the Java was not chosen here.
    """
    spark_version = installed_spark_version()
    java = "Java" if runtime is None else f"Java {runtime.version} ({runtime.executable})"
    needed = f"Spark {spark_version} needs Java {supported_java(spark_version)[1]}"
    if re.search(
        r"Could not parse Master URL|Master must either be|[Cc]luster manager for url", text
    ):
        return ConfigurationError(
            f"--master: {master!r} is no master URL that Spark knows. "
            "Expected spark://HOST:PORT, yarn, k8s://HOST:PORT, local[N] or local[*]."
        )
    details = {"java": java, "needed": needed, "hint": INSTALLATION_HINT, "master": master}
    for pattern, explanation in _KNOWN:
        if re.search(pattern, text):
            return EnvironmentProblem(f"Spark did not start: {explanation.format(**details)}")
    return EnvironmentProblem(
        f"Spark did not start: {_likely_cause(text)}. What to do: compare the versions "
        "that `anonspark doctor` lists. With --debug the whole text is shown."
    )


def _likely_cause(text: str) -> str:
    r"""Return the line of the output that most likely names the cause.

    >>> _likely_cause("Starting\njava.io.IOException: Broken pipe.\nJava gateway process exited")
    'java.io.IOException: Broken pipe'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [
        line
        for line in lines
        if re.search(r"Error|Exception|Unrecognized|[Ii]nvalid", line)
        and not line.startswith("at ")
    ]
    # Java's error comes first. That of pyspark, at the end, only says that Java has ended.
    return (errors or lines or ["without a word"])[0].rstrip(".")
