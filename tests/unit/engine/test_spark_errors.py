"""What Spark says of workers without our packages, as it says it, and what we make of it."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from anonspark.engine.spark.errors import environment_problem, reading_input
from anonspark.errors import DataError

TRACEBACK = "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
REMEDY = ("PYSPARK_PYTHON", "--py-files", "--archives")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            f"{TRACEBACK}ModuleNotFoundError: No module named 'anonspark'\n",
            "the workers' Python lacks the module 'anonspark'",
            id="ours",
        ),
        pytest.param(
            f"{TRACEBACK}ModuleNotFoundError: No module named 'numpy._core'",
            "the workers' Python lacks the module 'numpy._core'",
            id="pickled-by-another-numpy",
        ),
        pytest.param(
            f"{TRACEBACK}AttributeError: Can't get attribute '_New' on <module "
            "'anonspark.models.blockwise' from '/srv/blockwise.py'>",
            "the workers have another version of the module 'anonspark.models.blockwise'",
            id="another-version-of-ours",
        ),
        pytest.param(
            f"{TRACEBACK}pyspark.errors.exceptions.base.PySparkImportError: "
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed. However, it was not "
            "found.",
            "the workers' Python lacks a package",
            id="pyarrow",
        ),
        pytest.param(
            f"{TRACEBACK}ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not found",
            "the workers' Python lacks a package",
            id="built-for-another-system",
        ),
        pytest.param(
            "anonspark.engine.spark.tasks.FailedTaskError: ModuleNotFoundError at tasks.py:71 "
            "in __call__ (its text is left out: it may hold data)",
            "the workers' Python lacks a package",
            id="imported-in-a-task",
        ),
        pytest.param(
            f"{TRACEBACK}pyspark.errors.exceptions.base.PySparkRuntimeError: "
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            "the workers' Python has another version than the driver's",
            id="version",
        ),
        pytest.param(
            f"{TRACEBACK}RuntimeError: Python in worker has different version 3.9 than that in "
            "driver 3.11",
            "the workers' Python has another version than the driver's",
            id="version-before-spark-4",
        ),
        pytest.param(
            'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such '
            "file or directory",
            "a worker's Python does not start",
            id="no-python",
        ),
        pytest.param(
            "org.apache.spark.SparkException: Error from python worker:\n  /usr/bin/python3: Error "
            "while finding module specification for 'pyspark.daemon' (ModuleNotFoundError: No "
            "module named 'pyspark')\nPython worker exited unexpectedly (crashed)",
            "the workers' Python lacks the module 'pyspark'",
            id="not-even-pyspark",
        ),
    ],
)
@pytest.mark.parametrize("kind", [PySparkException, Py4JError])
def test_workers_without_our_packages(kind: type[Exception], text: str, told: str) -> None:
    problem = environment_problem(kind(f"Job aborted: failed 4 times, most recent failure: {text}"))
    assert problem is not None
    assert problem.startswith(told)
    assert all(word in problem for word in REMEDY)


def test_results_that_are_too_large_for_the_driver() -> None:
    text = "Total size of serialized results of 1 tasks (123.1 MiB) is bigger than "
    problem = environment_problem(
        PySparkException(f"Job aborted: {text}spark.driver.maxResultSize (100.0 MiB)")
    )
    assert problem is not None
    assert problem.startswith("the tasks of a job hand more to the driver than")


HADOOP = "org.apache.hadoop.security"


@pytest.mark.parametrize(
    "text",
    [
        f"{HADOOP}.AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
        f"{HADOOP}.AccessControlException: SIMPLE authentication is not enabled.  "
        "Available:[TOKEN, KERBEROS]",
        "javax.security.sasl.SaslException: GSS initiate failed [Caused by GSSException: No valid "
        "credentials provided (Mechanism level: Failed to find any Kerberos tgt)]",
        f"{HADOOP}.token.SecretManager$InvalidToken: token (HDFS_DELEGATION_TOKEN owner=publisher) "
        "is expired",
    ],
)
def test_no_ticket_of_kerberos(text: str) -> None:
    problem = environment_problem(Py4JError(text))
    assert problem is not None
    assert problem.startswith("a file system asks for Kerberos")
    assert "publisher" not in problem


@pytest.mark.parametrize(
    "error",
    [
        PySparkException("Job aborted: Task 0 failed 4 times: FailedTaskError: ValueError at x.py"),
        PySparkException("[CAST_INVALID_INPUT] The value 'abc' of the type STRING"),
        RuntimeError("No module named 'anonspark'"),
    ],
)
def test_other_errors(error: Exception) -> None:
    assert environment_problem(error) is None


FAILED = "Job aborted: Task 0 failed 4 times, most recent failure: (host executor 1): "


def test_a_changed_byte_in_a_dictionary() -> None:
    text = (
        f"{FAILED}java.lang.ArrayIndexOutOfBoundsException: Index 56 out of bounds for length 40\n"
        "\tat org.apache.parquet.column.values.dictionary.PlainValuesDictionary"
        "$PlainLongDictionary.decodeToLong(PlainValuesDictionary.java:164)\n"
    )
    with pytest.raises(DataError, match="table: files cannot be read"), reading_input(("table",)):
        raise Py4JError(text)


def test_what_a_reader_says_in_a_task() -> None:
    text = (
        f"{FAILED}Traceback (most recent call last):\n  File x\nanonspark.errors.DataError: DATA: "
    )
    with pytest.raises(DataError, match=r"\ADATA: t: a record is odd\Z"), reading_input(("t",)):
        raise Py4JError(f"{text}t: a record is odd\n\n\tat org.apache.spark.api.python")


@pytest.mark.parametrize(
    "frame",
    [
        "org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport.write(X.scala:1)",
        "org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)",
    ],
)
def test_bugs_of_ours_are_not_the_input(frame: str) -> None:
    error = Py4JError(f"{FAILED}java.lang.NullPointerException\n\tat {frame}\n")
    with pytest.raises(Py4JError), reading_input(("table",)):
        raise error


class UntoldError(Py4JError):
    """Its text comes from a Java that is not there any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_java_has_ended() -> None:
    problem = environment_problem(UntoldError())
    assert problem is not None
    assert problem.startswith("Java has ended")
