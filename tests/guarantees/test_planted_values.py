"""No value of the data stands in messages, logs, plans or event logs: all of them are searched.

One process runs all cases on the table of :mod:`planted_values`; with Spark its log is at level
INFO and its event log switched on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from places import REPOSITORY
from planted_values import ATTRIBUTES, SEED, TEXTS, Planted, document, planted_table, write_inputs
from standalone import QUICK_QUERIES, QUICK_START, write_spark_defaults

from anonspark.layers.publish.class_table import _in_digits, _published_names

# One process runs everything: on a busy machine the first test waits long for it.
pytestmark = pytest.mark.timeout(1200)

LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def write_cases(folder: Path) -> None:
    """Write what :mod:`planted_run` is to run."""
    towns = {"role": "quasi_identifier", "hierarchy": str(folder / "towns.csv")}
    some_towns = {"role": "quasi_identifier", "hierarchy": str(folder / "some-towns.csv")}
    incomes = {"role": "quasi_identifier", "hierarchy": {"intervals": [500, 5000, 50000]}}
    sensitive = "1); DROP TABLE t; --"
    full_domain = {"${town}": towns, "in.come": incomes, sensitive: "sensitive"}
    unknown = {**ATTRIBUTES, "${town}": some_towns}
    number = {**ATTRIBUTES, "salary": {"role": "quasi_identifier", "type": "number"}}
    l_diversity = {"attribute": sensitive, "l": 2}
    t_closeness = {"attribute": sensitive, "t": 0.6}
    mondrian = document(
        folder,
        "mondrian",
        model={"name": "su-mondrian", "rho": 2},
        privacy={"k": 5, "l_diversity": l_diversity},
    )
    release, original = str(folder / "mondrian"), str(folder / "planted.parquet")
    cases: dict[str, list[str]] = {
        "check": ["check", mondrian],
        "plan": ["check", mondrian, "--plan"],
        "mondrian": ["run", mondrian],
        "microaggregation": [
            "run",
            document(
                folder,
                "microaggregation",
                model={"name": "microaggregation"},
                privacy={"k": 5, "t_closeness": t_closeness},
            ),
        ],
        "full-domain": [
            "run",
            document(
                folder,
                "full-domain",
                attributes=full_domain,
                model={"name": "full-domain"},
                privacy={"k": 5, "l_diversity": l_diversity, "t_closeness": t_closeness},
            ),
            "--json",
        ],
        "verify": ["verify", release, "--original", original],
        "report": ["report", release, "--original", original],
        "evaluate": ["evaluate", release, "--original", original, "--target", "*"],
        "bad-number": ["run", document(folder, "bad-number", attributes=number)],
        "unknown-value": ["run", document(folder, "unknown-value", attributes=unknown)],
        "broken-csv": [
            "run",
            document(
                folder,
                "broken-csv",
                input={
                    "path": str(folder / "planted.csv"),
                    "format": "csv",
                    "options": {"header": "true", "inferSchema": "true"},
                },
            ),
        ],
        "failing-task": ["run", document(folder, "failing-task")],
    }
    # Changed plans tell nothing but what the first ones told: those of two cases stand for all.
    listed = [
        {
            "name": name,
            "arguments": arguments,
            "fails": name == "failing-task",
            "adaptive": name in ("mondrian", "verify"),
        }
        for name, arguments in cases.items()
    ]
    (folder / "cases.json").write_text(json.dumps(listed))


@dataclass(frozen=True)
class Ran:
    """What a process with all cases left."""

    engine: str
    folder: Path
    planted: Planted
    codes: dict[str, int]
    texts: dict[str, str]


@pytest.fixture(scope="module", params=["local", pytest.param("spark", marks=pytest.mark.system)])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_planted(tmp_path_factory.mktemp("planted"), request.param)


def run_planted(folder: Path, engine: str) -> Ran:
    """Run all cases in a process of their own, and read what it said and logged."""
    table = planted_table()
    write_inputs(folder, table)
    write_cases(folder)
    for name in ("conf", "events", "local"):
        (folder / name).mkdir()
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.sql.shuffle.partitions": "2",
        # Of code that Spark generates a line at this level tells only how long that took.
        **QUICK_QUERIES,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.local.dir": folder / "local",
        "spark.sql.maxMetadataStringLength": "100000",
        "spark.sql.debug.maxToStringFields": "1000",
    }
    write_spark_defaults(folder / "conf", settings)
    log = folder / "spark.log"
    (folder / "conf" / "log4j2.properties").write_text(LOG4J.format(path=log))
    script = REPOSITORY / "tests" / "support" / "planted_run.py"
    finished = subprocess.run(
        [sys.executable, str(script), str(folder / "cases.json"), engine],
        capture_output=True,
        text=True,
        env=os.environ | {"SPARK_CONF_DIR": str(folder / "conf")},
        timeout=1100,
    )
    assert finished.returncode == 0, finished.stderr
    codes = {path.stem: int(path.read_text()) for path in folder.glob("*.code")}
    texts = {path.name: path.read_text() for path in [*folder.glob("*.out"), *folder.glob("*.err")]}
    texts |= {"stdout": finished.stdout, "stderr": finished.stderr}
    if engine == "spark":
        events = [path for path in (folder / "events").rglob("*") if path.is_file()]
        texts["spark.log"] = log.read_text()
        texts["event log"] = "\n".join(
            path.read_text() for path in events if not path.name.endswith(".crc")
        )
    return Ran(engine, folder, Planted(table), codes, texts)


def test_the_search_finds_values_however_they_are_written() -> None:
    planted = Planted(planted_table())
    bits = struct.unpack("<q", struct.pack("<d", 48_613.257))[0]
    for text in (
        "(income >= 48613.257)",
        "4.8613257E4",
        f"Request({bits}, 3)",
        f"[0,{bits:x}]",
        "rows 730019003 and others",
        "DATE '1931-01-07'",
        "1961-03-04T05:06:07Z",
        "[QUETZALBOROUGH-003]",
        f"xxhash64({SEED}, age)",
    ):
        assert planted.found_in(text), text
    assert not planted.found_in("2026-11-21 rows 240, 48613 ms, job 730019, 0x3f")


def test_every_command_ends_as_it_should(ran: Ran) -> None:
    sound = ("check", "plan", "mondrian", "microaggregation", "full-domain")
    assert ran.codes == {
        **dict.fromkeys((*sound, "verify", "report", "evaluate"), 0),
        **dict.fromkeys(("bad-number", "unknown-value", "broken-csv"), 3),
        "failing-task": 1,
    }
    assert "a record has too few or too many values" in ran.texts["broken-csv.err"]
    if ran.engine == "local":
        assert "a task failed with ValueError" in ran.texts["failing-task.err"]
        return
    log, events = ran.texts["spark.log"], ran.texts["event log"]
    # They say what they say at these levels, and tell of what failed.
    assert "INFO FileSourceStrategy: Pushed Filters" in log
    assert "SparkListenerSQLExecutionStart" in events
    assert "SparkListenerSQLAdaptiveExecutionUpdate" in events
    for text in (log, events):
        assert "FailedTaskError: ValueError at" in text
        assert "planted_run.py" in text


def test_no_value_is_in_messages_logs_plans_and_event_logs(ran: Ran) -> None:
    if ran.engine == "spark":
        assert min(len(ran.texts["spark.log"]), len(ran.texts["event log"])) > 500_000
    found = {name: ran.planted.found_in(text)[:5] for name, text in ran.texts.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nothing_is_left_in_local_directories_or_beside_the_releases(ran: Ran) -> None:
    assert [path for path in (ran.folder / "local").rglob("*") if path.is_file()] == []
    assert [path.name for path in ran.folder.iterdir() if path.name.startswith(".")] == []
    failed = ("bad-number", "unknown-value", "broken-csv", "failing-task")
    assert [name for name in failed if (ran.folder / name).exists()] == []


def test_releases_hold_nothing_but_what_is_published(ran: Ran) -> None:
    kinds = ("identifier", "unlisted", "metadata")
    unpublished = re.compile("|".join(TEXTS[kind] for kind in kinds))
    for name in ("mondrian", "microaggregation", "full-domain"):
        files = [path for path in (ran.folder / name).rglob("*") if path.is_file()]
        assert any(path.suffix == ".parquet" for path in files)
        for path in files:
            text = path.read_bytes().decode("latin-1")
            assert not unpublished.search(text), path
            assert str(SEED) not in text, path
            if path.suffix == ".parquet":
                assert not unpublished.search(str(pq.read_table(path).to_pydict())), path
        manifest = (ran.folder / name / "manifest.json").read_text()
        assert ran.planted.found_in(manifest) == []


def test_hostile_names_stay_names_in_the_report(ran: Ran) -> None:
    page = (ran.folder / "mondrian" / "report.html").read_text()
    assert "&lt;b&gt;amount&lt;/b&gt;" in page
    assert "<b>amount</b>" not in page
    assert not re.search("|".join(TEXTS[kind] for kind in ("identifier", "unlisted")), page)


def test_names_of_classes_are_one_way() -> None:
    """The staged names are made of the seed by steps that can be taken back."""
    expected = hashlib.sha256(b"0123456789abcdef").hexdigest()[:16]
    names = _published_names(np.array([81985529216486895], np.uint64))
    assert _in_digits(names).to_pylist() == [expected]
