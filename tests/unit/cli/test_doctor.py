"""The doctor says what it found and what to do, and never raises."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import cases

from anonspark.cli import doctor
from anonspark.cli.doctor import Check, run_checks
from anonspark.engine.spark.java import JavaRuntime
from anonspark.errors import EnvironmentProblem


@pytest.fixture(autouse=True)
def some_java(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = JavaRuntime(Path("/opt/java"), 17, "JAVA_HOME", Path("/opt/java/bin/java"))
    monkeypatch.setattr(doctor, "find_java", lambda: runtime)


def check_named(name: str, **options: bool) -> Check:
    options = {"start_spark": False, **options}
    return next(check for check in run_checks(**options) if check.name == name)


def pretend_version(monkeypatch: pytest.MonkeyPatch, package: str, version: str | None) -> None:
    real = importlib.metadata.version

    def version_of(name: str) -> str:
        if name != package:
            return real(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", version_of)


def test_everything_is_checked_and_fine_here() -> None:
    checks = run_checks(start_spark=False)
    assert [check.name for check in checks] == [
        "Python",
        "Java",
        "pyspark",
        "pandas",
        "pyarrow",
        "NumPy",
        "kernels",
        "current folder",
        "temporary folder",
    ]
    assert [check for check in checks if not check.passed or check.remedy or not check.found] == []


def test_java_is_named() -> None:
    found = check_named("Java").found
    assert found == "17 from JAVA_HOME (/opt/java). Needed: 17 to 21"


def test_missing_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise EnvironmentProblem("No Java was found. What to do: install one.")

    monkeypatch.setattr(doctor, "find_java", fail)
    assert check_named("Java") == Check("Java", False, "No Java was found.", "install one.")
    spark = check_named("embedded Spark", start_spark=True)
    assert (spark.passed, spark.found, spark.remedy) == (False, "not tried", "first mend: Java")


@cases(__file__, "name", "package", "version")
def test_wrong_package(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, version: str | None
) -> None:
    pretend_version(monkeypatch, package, version)
    check = check_named(name)
    assert not check.passed
    assert check.found.startswith(version or "not installed")
    assert check.remedy.startswith(f'pip install "{package}>=')


def test_broken_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    check = check_named("pyspark")
    assert not check.passed
    assert "cannot be imported" in check.found
    assert "--force-reinstall" in check.remedy


def test_without_spark_all_else_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_version(monkeypatch, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    checks = run_checks(start_spark=True)
    assert all(check.passed for check in checks)
    (spark,) = [check for check in checks if "park" in check.name]
    assert spark.found.startswith("not installed")
    assert 'pip install "anonspark[java]"' in spark.found


def test_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LEAST_PYTHON", (9, 0))
    assert "install Python" in check_named("Python").remedy


def test_numba_cannot_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(doctor, "built", lambda: None)
    monkeypatch.setattr("numba.njit", fail)
    check = check_named("kernels")
    assert (check.passed, "NUMBA_CACHE_DIR" in check.remedy) == (False, True)


def test_kernels_that_were_built_need_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(doctor, "built", SimpleNamespace)
    monkeypatch.setattr(doctor, "version_of_numba", lambda: "0.68.1")
    assert check_named("kernels").found == "built with the package, by Numba 0.68.1"
    monkeypatch.setattr(doctor, "built", lambda: None)
    check = check_named("kernels")
    assert (check.passed, check.remedy) == (False, "pip install 'anonspark[numba]'")


def test_kernels_that_numba_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "built", lambda: None)
    assert check_named("kernels").found.startswith("compiled by Numba ")


def test_full_and_missing_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    assert "make room" in check_named("current folder").remedy
    monkeypatch.setattr(doctor.tempfile, "tempdir", str(tmp_path / "gone"))
    check = check_named("temporary folder")
    assert (check.passed, check.remedy) == (False, "set TMPDIR to another folder")


def test_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def fail(**_: object) -> object:
        raise EnvironmentProblem("Spark did not start: Java is too new. What to do: another.")
        yield

    monkeypatch.setattr(doctor, "open_session", fail)
    check = check_named("embedded Spark", start_spark=True)
    assert check == Check(
        "embedded Spark", False, "Spark did not start: Java is too new.", "another."
    )


def test_a_bug_in_a_check_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(doctor, "find_java", fail)
    check = check_named("Java")
    assert (check.passed, check.found) == (False, "ZeroDivisionError: oops")
    assert check.remedy
