"""The command ``anonspark doctor``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

from anonspark._version import __version__
from anonspark.cli.command import Call, command
from anonspark.errors import EnvironmentProblem


@command("as_json")
def doctor(call: Call) -> None:
    """List versions, Java, processors and memory.

    The exit code is 6 if kernels or a Java that fits Spark are missing.
    """
    from anonspark.engine.memory import available_memory
    from anonspark.kernels.built import built, version_of_numba

    by = "built with the package by" if built() else "compiled by"
    numba = version_of_numba()
    java, spark, problems = _java()
    if not numba:
        problems.append("Kernels were not built, and there is no Numba: install anonspark[numba]")
    table = {
        "anonspark": __version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
        "pyarrow": importlib.metadata.version("pyarrow"),
        "NumPy": importlib.metadata.version("numpy"),
        "kernels": f"{by} Numba {numba}" if numba else "none",
        "pyspark": spark,
        "Java": java,
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": f"{available_memory() / 2**30:.1f} GiB",
    }
    call.say(dict(table), *(f"{name:<11} {value}" for name, value in table.items()))
    if problems:
        raise EnvironmentProblem(". ".join(problems))


def _java() -> tuple[str, str, list[str]]:
    """Return the Java and the Spark that would run, and their problems."""
    from anonspark.engine.spark.java import find_java, installed_spark_version

    try:
        spark = installed_spark_version()
    except EnvironmentProblem:
        return "not needed", "none: local files alone", []
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "chosen by spark-submit", spark, []
    try:
        runtime = find_java()
    except EnvironmentProblem as error:
        return "none", spark, [str(error)]
    return f"{runtime.version} from {runtime.source} ({runtime.executable})", spark, []
