"""What Spark Connect keeps out of reach, and what a cluster should give a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException

import anonspark
from anonspark.engine.memory import cluster_sizes
from anonspark.engine.spark import session as session_module
from anonspark.engine.spark import settings
from anonspark.engine.spark.connect import MountedFiles, folder_names, read_footers, words_of_footer
from anonspark.engine.spark.file_schemas import (
    NANOSECONDS,
    NESTED_NANOSECONDS,
    NO_VALUES,
    _stored_types,
)
from anonspark.engine.spark.filesystem import files_of, path_for
from anonspark.engine.spark.jobs import tagged_jobs
from anonspark.engine.spark.settings import parquet_settings, sizes_of_tasks, warn_of_little_memory
from anonspark.errors import ConfigurationError, DataError, EnvironmentProblem


class Settings(dict[str, str]):
    """The settings of a session."""

    @property
    def getAll(self) -> Mapping[str, str]:  # noqa: N802 - as pyspark has it
        """All of them."""
        return self


class Reader:
    """Reads a text file as Spark does, or something else."""

    def __init__(self, found: list[str] | None) -> None:
        self._found = found

    def text(self, path: str) -> Reader:
        """Open a file."""
        if self._found is None:
            plain = path.removeprefix("file:").replace("\\", "")
            self._found = Path(plain).read_text().splitlines()
        if self._found == ["error"]:
            raise PySparkException("PATH_NOT_FOUND")
        return self

    def collect(self) -> list[Any]:
        """Return its lines."""
        return [SimpleNamespace(value=value) for value in self._found or ()]


def session(found: list[str] | None = None, **settings: str) -> Any:
    """Return what looks like a session of Spark Connect."""
    members = {"__module__": "pyspark.sql.connect.session", "read": Reader(found)}
    conf = Settings({name.replace("_", "."): value for name, value in settings.items()})
    counted = SimpleNamespace(distinct=lambda: SimpleNamespace(count=lambda: 7))
    members["range"] = lambda *_: SimpleNamespace(select=lambda _: counted)
    return type("SparkSession", (), members | {"conf": conf})()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("134217728b", 2**27), ("128MB", 2**27), ("128m", 2**27), ("2 GiB", 2**31), ("4096", 4096)],
)
def test_sizes_of_tasks(monkeypatch: pytest.MonkeyPatch, text: str, expected: int) -> None:
    monkeypatch.setattr("pyspark.sql.functions.spark_partition_id", lambda: None)
    found = session(
        spark_sql_files_openCostInBytes="4194304", spark_sql_files_maxPartitionBytes=text
    )
    assert sizes_of_tasks(found) == (2**22, expected, 7)


def test_size_that_is_none() -> None:
    found = session(spark_sql_files_openCostInBytes="many")
    with pytest.raises(ConfigurationError, match="openCostInBytes: found no size"):
        sizes_of_tasks(found)


def test_settings_of_parquet_files() -> None:
    given = {"spark.hadoop.parquet.page.size": "1", "parquet.block.size": "2", "spark.a": "3"}
    found = session()
    found.conf.update(given)
    assert parquet_settings(found) == ["parquet.block.size", "parquet.page.size"]


def test_a_directory_that_the_server_reads(tmp_path: Path) -> None:
    files = files_of(session())
    assert isinstance(files, MountedFiles)
    files.make_private_directory(str(tmp_path / "staging[1]"))
    assert list((tmp_path / "staging[1]").iterdir()) == []
    assert path_for(session(), "/a/b") == "file:/a/b"


@pytest.mark.parametrize("found", [[], ["another disk"], ["error"]])
def test_a_directory_that_the_server_does_not_read(tmp_path: Path, found: list[str]) -> None:
    files = files_of(session(found))
    with pytest.raises(EnvironmentProblem, match="does not read there what this process writes"):
        files.make_private_directory(str(tmp_path / "staging"))
    assert list(tmp_path.iterdir()) == []


def test_columns_that_spark_takes_for_numbers(tmp_path: Path) -> None:
    """In the words of pyarrow, as in those of Spark's reader."""
    times = pa.array([1_000], pa.timestamp("ns"))
    zoned = pa.array([1_000], pa.timestamp("ns", "UTC"))
    columns = {
        "nothing": pa.nulls(1),
        "a time": times,
        "with a zone": zoned,
        "micro": times.cast(pa.timestamp("us")),
        "inside (of) others": pa.StructArray.from_arrays([times, zoned], ["t", "z"]),
        "a list": pa.array([[1_000]], pa.list_(pa.timestamp("ns"))),
        "name": pa.array(["a"]),
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns), path, store_schema=False)
    (footer,) = read_footers([f"file:{path}"], 2)
    assert _stored_types(words_of_footer(footer)) == {
        "nothing": (NO_VALUES, ""),
        "a time": (NANOSECONDS, "false"),
        "with a zone": (NANOSECONDS, "true"),
        "inside (of) others": (NESTED_NANOSECONDS, ""),
        "a list": (NESTED_NANOSECONDS, ""),
    }


def test_folders_that_are_columns(tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / f"region={name}" / "year=2026").mkdir(parents=True)
        (tmp_path / f"region={name}" / "year=2026" / "a.parquet").write_bytes(b"a")
    table: Any = SimpleNamespace(sparkSession=session())
    found = folder_names(table, [str(tmp_path)], {"pathGlobFilter": "*.parquet"})
    assert found == ["region", "year"]
    assert folder_names(table, [str(tmp_path / "region=north" / "year=2026")], {}) == []
    with pytest.raises(
        ConfigurationError, match=r"input\.options\.basePath: found it with folders"
    ):
        folder_names(table, [str(tmp_path)], {"basePath": "/"})


def test_a_session_of_an_old_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "installed_spark_version", lambda: "3.5.9")
    table = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    table.sparkSession = session()
    with pytest.raises(
        EnvironmentProblem, match=r"found version 3\.5\.9 of pyspark. Expected 4\.0"
    ):
        anonspark.anonymize(table, {})


@pytest.mark.parametrize("answers", [True, False])
def test_jobs_end_before_what_they_write_is_removed(
    monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    events: list[str] = []

    def interrupt(tag: str) -> list[str]:
        events.append(f"interrupt {tag}")
        if not answers:
            raise PySparkException("UNAVAILABLE")
        return []

    monkeypatch.setattr("time.sleep", lambda seconds: events.append(f"wait {seconds}"))
    found: Any = SimpleNamespace(
        addTag=lambda tag: events.append(f"add {tag}"),
        removeTag=lambda tag: events.append(f"remove {tag}"),
        interruptTag=interrupt,
    )
    with tagged_jobs(found, "a run"):
        events.append("done")
    assert events == ["add a run", "done", "remove a run"]
    events.clear()
    with pytest.raises(KeyboardInterrupt), tagged_jobs(found, "a run"):
        raise KeyboardInterrupt
    assert events == ["add a run", "interrupt a run", "wait 2.0", "remove a run"]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="cannot be read in this format"):
        read_footers([f"file:{path}"], 2)


@pytest.mark.parametrize(
    ("rows", "tasks", "executors", "overhead"),
    [
        (0, 0, 1, 1024),
        (10_000_000, 40, 3, 1024),
        (10_000_001, 41, 3, 2048),
        (100_000_000, 400, 25, 2048),
        (100_000_001, 401, 26, 4096),
    ],
)
def test_sizes(rows: int, tasks: int, executors: int, overhead: int) -> None:
    sizes = cluster_sizes(rows, tasks)
    assert (sizes.executors, sizes.driver_overhead) == (executors, overhead)


def session_of_size(mode: str, **given: str) -> Any:
    """Return a session with a mode of deployment and sizes of the driver."""
    named = {f"spark.driver.{name}": value for name, value in given.items()}
    named["spark.submit.deployMode"] = mode
    return SimpleNamespace(conf=SimpleNamespace(get=named.get))


@pytest.mark.parametrize(
    ("mode", "given", "rows", "expected"),
    [
        ("client", {}, 10**8, ""),
        ("cluster", {}, 1_000_000, ""),
        ("cluster", {}, 1_000_001, "can have 384 MiB, and may need 512 MiB for 1,000,001 rows"),
        ("cluster", {"memory": "6g"}, 10**7, ""),
        ("cluster", {"memoryOverhead": "511m"}, 10**7, "spark.driver.memoryOverhead=1024m"),
        ("cluster", {"memoryOverhead": "512m"}, 10**7, ""),
        # A number is one of MiB here.
        ("cluster", {"memoryOverhead": "511"}, 10**7, "can have 511 MiB"),
        ("cluster", {"memory": "6144"}, 10**7, ""),
        ("cluster", {"memoryOverhead": "1g"}, 10**9, "spark.driver.memoryOverhead=4096m"),
    ],
)
def test_warning(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: str,
    given: dict[str, str],
    rows: int,
    expected: str,
) -> None:
    monkeypatch.setattr(settings, "available_memory", lambda: 8 * 2**30)
    with caplog.at_level(logging.WARNING, logger="anonspark"):
        warn_of_little_memory(session_of_size(mode, **given), rows)
    assert (expected in caplog.text) if expected else not caplog.text
