"""Choose the settings of an embedded Spark. Those of its users go first."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from anonspark.engine.memory import driver_memory_mebibytes
from anonspark.errors import EnvironmentProblem

# An embedded session lives from seconds to minutes. Java's optimizing compiler takes half of a
# short run, and saves half of a long one: so it compiles methods after ten times the usual calls.
_QUICK_START_OPTIONS = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# Starts faster than the default G1 and uses all cores for a batch job's short-lived objects.
_COLLECTOR_OPTION = "-XX:+UseParallelGC"


def embedded_settings(defaults: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Choose the settings of an embedded Spark, but for keys that the user's defaults have."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        # The bar would mix with our messages on standard error.
        "spark.ui.showConsoleProgress": "false",
        # pyspark would call Java eight times for each expression, to note its line: a tenth of a
        # short run. The line is always one of ours, and our messages name columns.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if "PYSPARK_PYTHON" not in os.environ and "spark.pyspark.python" not in defaults:
        settings["spark.python.daemon.module"] = "anonspark.engine.spark.worker_daemon"
    if "SPARK_DRIVER_MEMORY" not in os.environ:
        settings["spark.driver.memory"] = f"{driver_memory_mebibytes()}m"
    settings = {key: value for key, value in settings.items() if key not in defaults}

    users_options = defaults.get("spark.driver.extraJavaOptions", "")
    variables = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
    all_options = " ".join([users_options, *(os.environ.get(name, "") for name in variables)])
    options = [_QUICK_START_OPTIONS]
    if "GC" not in all_options:  # Java refuses to start with two garbage collectors
        options.append(_COLLECTOR_OPTION)
    log_configuration = find_log_configuration()
    if log_configuration is not None:
        options.append(f"-Dlog4j2.configurationFile={log_configuration.as_uri()}")
    options.append(users_options)  # the last one wins
    settings["spark.driver.extraJavaOptions"] = " ".join(options).strip()
    return settings


@cache
def scratch_folder() -> Path:
    """Create the folder for Spark's temporary files, which hold raw data, for the owner alone.

    It lives as long as the process: Spark's Java outlives sessions and uses that of the first.
    """
    scratch = Path(tempfile.mkdtemp(prefix="anonspark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def _configuration_folder() -> Path | None:
    """Return the folder where Spark will look for its configuration, or None if none is set."""
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder)
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "conf"
    return None


def read_spark_defaults() -> dict[str, str]:
    """Read the user's spark-defaults.conf, a Java properties file. Without one the result is empty.

    Raises EnvironmentProblem if it cannot be read.
    """
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


def find_log_configuration() -> Path | None:
    """Return the path of our log4j2 configuration, or None if it is not used.

    That is if the user has one, or this package is in a zip.
    """
    folder = _configuration_folder()
    if folder is not None and any(folder.glob("log4j2.*")):
        return None
    path = Path(__file__).with_name("log4j2.properties").absolute()
    return path if path.is_file() else None
