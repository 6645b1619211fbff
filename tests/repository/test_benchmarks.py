"""Every program of `benchmarks/` runs, here on small tables: what pages print has a command."""

from __future__ import annotations

import gzip
import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import minimality
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import data_beside
from places import REPOSITORY
from scaling import PUBLISHING

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

BENCHMARKS = REPOSITORY / "benchmarks"
LINES = 600

# Arguments by program; DATA is a folder of small public tables, OUT one for what is written.
SMALL = data_beside(__file__)["SMALL"]
# What is run before.
BEFORE = {
    "bench": ["tables people 20000 OUT/people-20000", "tables people 2000 OUT/people-2000"],
    "copies": ["tables people 1000 OUT/people"],
    "writing_files": ["tables people 1000 OUT/people"],
}
# The others need what is not in every environment.
ELSEWHERE = {
    "faults": "a cluster whose processes are killed: tests/systems/test_faults.py",
    "on_hdfs": "an HDFS: make systems fetches one",
    "on_object_store": "a server of S3: make systems fetches one",
    "reproduce": "hours: make reproduce. Its parts are the modules of benchmarks/quality",
    "serial_seconds": "a Spark of its own, and minutes to warm it up",
    "second_opinion": "OpenDP in an environment of its own: tests/systems/test_second_opinion.py",
    "side_by_side": "other tools in environments of their own: make peers",
    "submit": "what make dist packs",
}


def test_every_program_is_run_or_has_a_reason() -> None:
    programs = {
        path.relative_to(BENCHMARKS).with_suffix("").as_posix()
        for path in (*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("quality/*.py"))
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert programs == SMALL.keys() | ELSEWHERE.keys()
    assert not SMALL.keys() & ELSEWHERE.keys()


@pytest.fixture(scope="module")
def small_data(data_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public tables, of each the first lines."""
    folder = tmp_path_factory.mktemp("data")
    for path in data_directory.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
            continue
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as whole, opened(folder / path.name, "wb") as part:
            part.writelines(line for line, _ in zip(whole, range(LINES), strict=False))
    return folder


@pytest.mark.parametrize("program", SMALL)
@pytest.mark.usefixtures("spark_session")
def test_programs_run(
    program: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program == "writing_files":
        pytest.importorskip("pyspark.sql.datasource", reason="Spark 4 has Python data sources")
    for number, name in enumerate(("small", "large"), 1):
        (tmp_path / f"{name}.json").write_text(json.dumps(measured(1_000 * number)))
    monkeypatch.setenv("ANONSPARK_DATA", str(small_data))
    for command in (*BEFORE.get(program, ()), f"{program} {SMALL[program]}"):
        called = command.replace("DATA", str(small_data)).replace("OUT", str(tmp_path)).split()
        monkeypatch.setattr(sys, "argv", called)
        runpy.run_path(str(BENCHMARKS / f"{called[0]}.py"), run_name="__main__")


def measured(rows: int) -> dict[str, Any]:
    """Return a file as bench.py writes it, of one model."""
    stages = dict.fromkeys(("prepare", "round 1 of 1", *PUBLISHING), rows / 500)
    case = {"model": "smondrian", "rows": rows, "seconds_of_stages": stages}
    counting = {"counting_seconds": rows / 1000, "counting_passes": 2, "shuffled_bytes": 10 * rows}
    return {"master": "local[2]", "cases": [case | counting]}


def test_a_refused_cut_that_proves_a_value(tmp_path: Path) -> None:
    """Ages 30, 30 and six times 31, of whom three have hiv: the class of eight says who."""
    names = ["hiv", "hiv", "hiv", "flu", "gout", "asthma", "ulcer", "eczema"]
    table = pa.table({"age": [30, 30, *[31] * 6], "ill": names})
    pq.write_table(table, tmp_path / "table.parquet")
    ages = {"role": "quasi_identifier", "grid": None}
    sizes = []
    for criterion in ({}, {"l_diversity": {"attribute": "ill", "l": 2}}):
        document = {
            "input": {"path": str(tmp_path / "table.parquet")},
            "attributes": {"age": ages, "ill": "sensitive"},
            "privacy": {"k": 2, **criterion},
            "model": "smondrian",
            "output": {"path": str(tmp_path / "out"), "mode": "overwrite"},
        }
        summary = run(LocalEngine(), parse_configuration(document), purpose="comparison").summary
        sizes.append((summary["published_classes"], summary["published_min_class_size"]))
    assert sizes == [(2, 2), (1, 8)]
    counts = np.array([3, 1, 1, 1, 1, 1])
    for words in ("l = 2", "entropy l = 2", "alpha = 0.5"):
        judge = minimality.satisfied(minimality.CRITERIA[words], counts / 8)
        known = minimality.known_of(counts, 2, judge)
        assert known is not None
        assert (known.largest[0], known.is_certain) == (pytest.approx(1.0), (True, False))
    judge = minimality.satisfied(minimality.CRITERIA["t = 0.3"], counts / 8)
    known = minimality.known_of(counts, 2, judge)
    assert known is not None
    assert not any(known.is_certain)
