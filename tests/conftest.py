"""What all tests share: one Spark session, the place of the data sets, and the time zone.

The Spark session comes from :func:`anonspark.engine.spark.session.open_session`, the way every run
gets its own, so that the suite finds its Java as a user would and each test that calls
`open_session` attaches to it. Only its size and its start-up flags are chosen here, in a
spark-defaults.conf.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import Cli
from hypothesis import settings
from places import REPOSITORY, require_data
from pure_kernels import use_pure_kernels
from scheduling import SparkInSomeProcesses, give_way_to_spark
from standalone import QUICK_QUERIES, QUICK_START, write_spark_defaults

import anonspark.sharing  # noqa: F401 - lets its sections be read, as each command does
from anonspark.engine import choice
from anonspark.engine.spark.java import installed_spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

    from anonspark.engine.spark.engine import SparkEngine

# Before anything reads the clock: dates must not depend on where the tests run.
os.environ["TZ"] = "UTC"
time.tzset()
# Nor on the width of a terminal, which workers get from the process that starts them.
os.environ.pop("COLUMNS", None)
use_pure_kernels()


# Continuous integration judges a change, so it draws the same examples every time; developers'
# machines look for new ones. How long one takes is no matter of a test: the machine may be busy.
# A property that says nothing itself is tried on few at a time, and on many of them at night.
settings.register_profile("new-examples", deadline=None, max_examples=30)
settings.register_profile("same-examples", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("many-examples", deadline=None, max_examples=200)
# For `make quick`; a test that says itself how many it draws goes on doing so.
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("same-examples" if os.environ.get("CI") == "true" else "new-examples")

# The light compiler alone and one thread for garbage halve the time that starting and warming up
# takes, for processes that live for seconds; and of the suite's own session a quarter is saved.
QUICK_SETTINGS = {"spark.driver.extraJavaOptions": QUICK_START}
# The suite runs many small queries in one session. Without adaptive execution there are fewer jobs,
# and nothing is compiled. Most tests with a Spark of their own have adaptive execution as everybody
# has, and the cluster's have both.
SESSION_SETTINGS = QUICK_SETTINGS | {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    **QUICK_QUERIES,
}


def pytest_configure(config: pytest.Config) -> None:
    """Let processes with Spark go first, and allow the oldest Spark what we cannot mend."""
    # Services have time limits of their own, and so none of them is kept waiting.
    if config.getoption("markexpr").startswith("not system"):
        give_way_to_spark()
    # It asks distutils for versions.
    if installed_spark_version().startswith("3."):
        for message in ("The distutils package is", "distutils Version classes are"):
            config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many points of disturbed commands were tried."""
    for report in terminalreporter.getreports("passed"):
        for name, told in report.user_properties:
            if name == "points":
                terminalreporter.write_line(f"{report.nodeid.rpartition('/')[2]}: {told}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End with what was not checked: a suite that skips looks like one that passes."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    number = sum("ANONSPARK_DATA" in str(report.longrepr) for report in skipped)
    if number:
        reporter.write_line(
            f"{number:,} tests were skipped because ANONSPARK_DATA lacks public tables: the "
            "printed figures were NOT checked",
            red=True,
            bold=True,
        )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Hand out whole files, and those that need the Spark session to some processes."""
    return SparkInSomeProcesses(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the one Spark session of the suite when the first test asks for it."""
    from anonspark.engine.spark.session import open_session

    folder = tmp_path_factory.mktemp("spark-configuration")
    write_spark_defaults(folder, SESSION_SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        opening = open_session("local[2]", application_name="anonspark tests")
        session = opening.__enter__()
    try:
        yield session
    finally:
        opening.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def signals_stay() -> Iterator[None]:
    """Find a test after which a signal is ignored: so it would be by all that later ones start."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.fixture(scope="session")
def quick_start(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of processes that start a Java of their own, quickly and small.

    Only how Java compiles and collects garbage is chosen: the settings of Spark stay the defaults.
    """
    folder = tmp_path_factory.mktemp("quick-start")
    write_spark_defaults(folder, QUICK_SETTINGS)
    return os.environ | {"SPARK_CONF_DIR": str(folder), "SPARK_DRIVER_MEMORY": "1g"}


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Lend the Spark session to one test; cached tables and temporary views go afterwards."""
    yield spark_session
    spark_session.catalog.clearCache()
    for view in spark_session.sql("SHOW VIEWS").collect():
        spark_session.catalog.dropTempView(view.viewName)


@pytest.fixture
def settings_come_back(spark: SparkSession) -> Iterator[None]:
    """Let a test change settings of the session, which others have after it."""
    from helpers import put_back, settings_of

    before = settings_of(spark)
    yield
    put_back(spark, before)


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    """Lend the Spark session to one test as the engine of runs."""
    from anonspark.engine.spark.engine import SparkEngine

    return SparkEngine(spark)


@pytest.fixture(scope="module")
def without_spark() -> Iterator[None]:
    """Let commands do their work here, though other tests have a Spark session in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "process_has_session", lambda: False)
        yield


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Give the commands of the package."""
    return Cli(capsys)


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return where public tables are: ANONSPARK_DATA, ../shared/data, or what make test fetched.

    Where they are missing the tests that need them are skipped, except in continuous integration,
    where a suite that skips would look like one that passes.
    """
    folder = Path(os.environ.get("ANONSPARK_DATA") or REPOSITORY.parent / "shared" / "data")
    fetched = REPOSITORY / "build" / "data"
    if "ANONSPARK_DATA" not in os.environ and fetched.exists() and not folder.exists():
        folder = fetched
    require_data(folder)
    return folder


@pytest.fixture(scope="session")
def adult_path(data_directory: Path) -> Path:
    """Tell where the Adult data set is."""
    path = data_directory / "adult.csv"
    require_data(path)
    return path
