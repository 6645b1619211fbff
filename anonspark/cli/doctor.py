"""Check that everything a run needs is here: ``anonspark doctor``.

Each check ends with what was found and, if it failed, with a remedy. No check raises, so
that one broken part never hides another.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anonspark.engine.spark.java import (
    INSTALLATION_HINT,
    find_java,
    installed_spark_version,
    supported_java,
)
from anonspark.engine.spark.session import open_session
from anonspark.engine.spark.settings import is_of_connect
from anonspark.errors import AnonsparkError, EnvironmentProblem
from anonspark.kernels.built import built, version_of_numba

if TYPE_CHECKING:
    import pyarrow

# Shuffles and staging write copies of the input; with less than this even a small run may fail.
LEAST_FREE_BYTES = 2**30

ROUND_TRIP_ROWS = 1000

LEAST_PYTHON = (3, 11)

WITHOUT_SPARK = (
    "not installed: this process works on local files. For clusters and bigger tables: "
    'pip install "anonspark[java]"'
)

Version = tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes
    ----------
    name : str
        What was checked, as in "Java".
    passed : bool
        Whether a run can rely on it.
    found : str
        What was found, in words.
    remedy : str
        What to do. Empty if the check passed.
    """

    name: str
    passed: bool
    found: str
    remedy: str = ""


def run_checks(*, start_spark: bool = True) -> list[Check]:
    """Check Python, Java, the packages, the folders and, if wanted, Spark itself.

    Parameters
    ----------
    start_spark : bool, default True
        Also start an embedded Spark and send a table through Python and back, which takes some
        seconds. It is left out where Java or a package fails its check, or there is no pyspark.

    Returns
    -------
    list of Check
        One per check, in the order to print them. Never empty.
    """
    with_spark = _has_spark()
    checks = [
        _guarded("Python", _check_python),
        *(_spark_checks() if with_spark else [Check("Spark", passed=True, found=WITHOUT_SPARK)]),
        _guarded("pyarrow", lambda: _check_package("pyarrow", (18,))),
        _guarded("NumPy", lambda: _check_package("numpy", (1, 26))),
        _guarded("kernels", _check_kernels),
        _guarded("current folder", lambda: _check_folder(Path.cwd(), "change to another folder")),
        _guarded(
            "temporary folder",
            lambda: _check_folder(Path(tempfile.gettempdir()), "set TMPDIR to another folder"),
        ),
    ]
    if start_spark and with_spark:
        needed = ("Python", "Java", "pyspark", "pandas", "pyarrow", "temporary folder")
        missing = [check.name for check in checks if check.name in needed and not check.passed]
        checks.append(
            Check(
                "embedded Spark",
                passed=False,
                found="not tried",
                remedy=f"first mend: {', '.join(missing)}",
            )
            if missing
            else _guarded("embedded Spark", _check_spark)
        )
    return checks


def _has_spark() -> bool:
    """Return whether there is a Spark, broken or not. Without one everything else must work."""
    try:
        installed_spark_version()
    except EnvironmentProblem:
        return False
    return True


def _spark_checks() -> list[Check]:
    return [
        _guarded("Java", _check_java),
        _guarded("pyspark", lambda: _check_package("pyspark", (3, 5), (5,))),
        _guarded("pandas", lambda: _check_package("pandas", (2, 2), (3,))),
    ]


def _guarded(name: str, check: Callable[[], tuple[str, str]]) -> Check:
    """Run a check that returns what was found and a remedy. An exception counts as a failure."""
    try:
        found, remedy = check()
    except AnonsparkError as error:
        # These messages hold both halves already, in the same words everywhere.
        found, separator, remedy = str(error).partition(" What to do: ")
        return Check(name, passed=False, found=found, remedy=remedy if separator else found)
    except Exception as error:  # noqa: BLE001 (a doctor must survive whatever is broken)
        found = f"{type(error).__name__}: {error}".splitlines()[0]
        return Check(
            name,
            passed=False,
            found=found,
            remedy="install anonspark anew into a fresh virtual environment. If that does not "
            "help, report this as a bug",
        )
    return Check(name, passed=not remedy, found=found, remedy=remedy)


def _check_python() -> tuple[str, str]:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < LEAST_PYTHON:
        return found, "install Python 3.11 or newer and make the virtual environment with it"
    return found, ""


def _check_java() -> tuple[str, str]:
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "chosen by spark-submit", ""
    runtime = find_java()
    needed = supported_java(installed_spark_version())[1]
    place = runtime.home or runtime.executable
    return f"{runtime.version} from {runtime.source} ({place}). Needed: {needed}", ""


def _check_package(name: str, least: Version, below: Version | None = None) -> tuple[str, str]:
    """Check that a package can be imported and that ``least <= version < below``."""
    wanted = f"{name}>={_dotted(least)}" + (f",<{_dotted(below)}" if below else "")
    remedy = f'pip install "{wanted}"'
    try:
        version = (
            installed_spark_version() if name == "pyspark" else importlib.metadata.version(name)
        )
    except importlib.metadata.PackageNotFoundError:
        return "not installed", remedy
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < least or (below is not None and numbers >= below):
        return f"{version}; needed: {wanted}", remedy
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 (a damaged package can raise anything on import)
        return (
            f"{version}, but it cannot be imported ({type(error).__name__}: {error})",
            f'pip install --force-reinstall "{wanted}"',
        )
    return version, ""


def _dotted(version: Version) -> str:
    return ".".join(str(number) for number in version)


def _check_kernels() -> tuple[str, str]:
    """Check that the kernels have machine code, or that Numba compiles it, and can keep it."""
    if built() is not None:
        return f"built with the package, by Numba {version_of_numba()}", ""
    try:
        import numba
    except ImportError:
        return (
            "the package has none for this Python and processor, and no Numba that compiles them",
            "pip install 'anonspark[numba]'",
        )
    importlib.import_module("anonspark.kernels.numba_patches").keep_machine_code()
    by = f"compiled by Numba {numba.__version__}"
    remedy = "set NUMBA_CACHE_DIR to a folder that you may write to"
    try:
        # Cached like our kernels, next to their modules or in the cache folder of the user.
        increment = numba.njit(cache=True)(_increment)
        result = increment(41)
    except (RuntimeError, OSError) as error:
        return f"{by}, but it has nowhere to keep its cache ({error})", remedy
    if result != _increment(41):
        return f"{by}, but it computes wrongly", "pip install --upgrade numba"
    folder = Path(increment.stats.cache_path or ".")
    if not os.access(folder, os.W_OK):
        return f"{by}, but its cache {folder} cannot be written", remedy
    return f"{by} in {folder}", ""


def _increment(number: int) -> int:
    return number + 1


def _check_folder(folder: Path, alternative: str) -> tuple[str, str]:
    """Check that a folder can be written to and has some space left."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"anonspark")
    except OSError as error:
        return f"{folder} cannot be written to ({error.strerror})", alternative
    free = shutil.disk_usage(folder).free
    found = f"{folder} can be written to, {free / 2**30:.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return found, f"make room for at least 1 GiB, or {alternative}"
    return found, ""


def _check_spark() -> tuple[str, str]:
    """Start Spark and send a table from Java to Python workers and back."""
    start = time.monotonic()
    with open_session(application_name="anonspark doctor") as session:
        numbers = session.range(ROUND_TRIP_ROWS, numPartitions=2)
        count = numbers.mapInArrow(_pass_through, "id long").count()
        version = session.version
        master = "a server" if is_of_connect(session) else session.sparkContext.master
    seconds = time.monotonic() - start
    found = f"{version} on {master}: {count} rows to Python and back in {seconds:.1f} s"
    if count != ROUND_TRIP_ROWS:
        return f"{found} instead of {ROUND_TRIP_ROWS}", f"report this as a bug. {INSTALLATION_HINT}"
    return found, ""


def _pass_through(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    # A function of this module is found by name in the workers: so they have anonspark, too.
    yield from batches
