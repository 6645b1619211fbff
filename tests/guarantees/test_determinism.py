"""The release depends on the input's content and the configuration, on nothing else.

Neither the files and their order, nor the size and number of tasks, nor a task that fails and is
run again may change which records share a class.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml

from anonspark.config import parse_configuration
from anonspark.demo.people import generate_people
from anonspark.pipeline.run import run as run_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Without fnlwgt most people of Adult are equal to others in every column.
ADULT_ATTRIBUTES = dict.fromkeys(
    ("age", "capital-gain", "capital-loss", "hours-per-week"), "quasi_identifier"
) | {"income": "sensitive"}

PEOPLE_ATTRIBUTES = dict.fromkeys(
    ("birth_date", "postal_code", "income", "capital_gain", "body_mass_index"), "quasi_identifier"
) | {"sex": "quasi_identifier", "diagnosis": "sensitive", "visits": "sensitive"}

# Criteria that change the classes, for the sensitive attributes of either table.
OF_INCOME = {
    "l_diversity": {"attribute": "income", "l": 2},
    "t_closeness": {"attribute": "income", "t": 0.3},
}
OF_DIAGNOSIS = {
    "l_diversity": {"attribute": "diagnosis", "kind": "entropy", "l": 4},
    "t_closeness": {"attribute": "visits", "t": 0.2, "distance": "ordered"},
    "alpha_k_anonymity": {"attribute": "diagnosis", "alpha": 0.5},
}

# Columns of the summary that tell of the run, not of the release.
OF_THE_RUN = ("run_id", "started", "seconds", "configuration_fingerprint")

# Runs the command several times, in the end with Python tasks of each kind that fail once, after
# their first output.
RUNS = """
import json, os, sys
from anonspark.cli.application import main
from anonspark.models import blockwise
from anonspark.layers.partition import distribution
from anonspark.layers.prepare import sensitive
from anonspark.layers.publish import writing
from anonspark.verification import criteria

def run(*arguments):
    code = main(["run", *arguments])
    if code:
        sys.exit(code)

def failing_once(kind, crash):
    class FailingOnce(kind):
        def __call__(self, batches):
            for batch in super().__call__(batches):
                yield batch
                try:
                    os.close(os.open(f"{markers}/{kind.__name__}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                if crash:
                    os._exit(1)
                raise RuntimeError("on purpose")

    return FailingOnce

runs = json.loads(sys.argv[1])
for arguments in runs["undisturbed"]:
    run(*arguments)
distribution._CountRecords = failing_once(distribution._CountRecords, crash=False)
distribution._SendBlocks = failing_once(distribution._SendBlocks, crash=False)
blockwise._FinishBlocks = failing_once(blockwise._FinishBlocks, crash=True)
sensitive._CountValues = failing_once(sensitive._CountValues, crash=False)
writing._InOrder = failing_once(writing._InOrder, crash=True)
criteria._MeasureClasses = failing_once(criteria._MeasureClasses, crash=False)
for markers, *arguments in runs["failing"]:
    run(*arguments)
"""


@dataclass(frozen=True)
class Released:
    """Everything that two equal releases have in common."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    privacy: list[dict[str, Any]]
    classes: pa.Table
    data: pa.Table
    files: dict[str, bytes]


def read_release(path: Path) -> Released:
    (summary,) = pq.read_table(path / "metrics" / "summary").to_pylist()
    rounds = pq.read_table(path / "metrics" / "rounds").drop_columns("run_id")
    privacy = pq.read_table(path / "metrics" / "privacy").drop_columns("run_id")
    classes = pq.read_table(path / "metrics" / "classes").drop_columns("run_id")
    return Released(
        {name: value for name, value in summary.items() if name not in OF_THE_RUN},
        rounds.sort_by("round").to_pylist(),
        privacy.to_pylist(),
        sorted_by_all_columns(classes),
        sorted_by_all_columns(pq.read_table(path / "data")),
        {file.name: file.read_bytes() for file in (path / "data").glob("*.parquet")},
    )


def sorted_by_all_columns(table: pa.Table) -> pa.Table:
    order = [(name, "ascending") for name in table.column_names]
    return table.sort_by(order).combine_chunks()


def assert_same_release(found: Released, expected: Released) -> None:
    assert found.summary == expected.summary
    assert found.rounds == expected.rounds
    assert found.privacy == expected.privacy
    assert found.classes.equals(expected.classes)
    assert found.data.equals(expected.data)
    assert found.files == expected.files


def write_files(table: pa.Table, path: Path, files: int, *, shuffled: bool = False) -> Path:
    """Write a table as so many Parquet files."""
    path.mkdir()
    rows = np.arange(table.num_rows)
    if shuffled:
        rows = np.random.default_rng(7).permutation(rows)
    for number, part in enumerate(np.array_split(rows, files)):
        pq.write_table(table.take(part), path / f"part-{number}.parquet")
    return path


def document(
    table: Path,
    output: Path,
    attributes: Mapping[str, str],
    task_rows: int,
    options: Mapping[str, object],
    privacy: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    model = {"name": "su-mondrian", **options}
    if model["name"] in ("su-mondrian", "u-canon"):
        model.setdefault("rho", 2)
    return {
        "input": {"path": str(table)},
        "attributes": dict(attributes),
        "missing": "category",
        "privacy": {"k": 5, **(privacy or {})},
        "model": model,
        "output": {"path": str(output)},
        "execution": {"task_rows": task_rows, "seed": 11},
    }


def release(spark: SparkSession, configuration: dict[str, Any]) -> Released:
    """Run the pipeline in this session and read what it wrote."""
    run_pipeline(spark, parse_configuration(configuration))
    return read_release(Path(configuration["output"]["path"]))


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> pa.Table:
    table = pc.read_csv(adult_path).select(list(ADULT_ATTRIBUTES))
    assert table.num_rows == 30_162
    equal = table.group_by(table.column_names).aggregate([([], "count_all")])
    assert equal.num_rows < table.num_rows // 2
    return table


@pytest.fixture(scope="module")
def people(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "people"
    generate_people(spark_session, 30_000, partitions=2).write.parquet(str(path))
    return path


@pytest.mark.parametrize("span", ["data", "cell"])
@pytest.mark.parametrize("split", ["strict", "relaxed"])
def test_adult_in_any_files_order_and_tasks(
    spark: SparkSession, adult: pa.Table, tmp_path: Path, split: str, span: str
) -> None:
    options = {"split": split, "span": span}
    records = adult if span == "data" else adult.slice(0, 12_000)

    def run(name: str, task_rows: int, files: int, *, shuffled: bool) -> Released:
        table = write_files(records, tmp_path / name, files, shuffled=shuffled)
        output = tmp_path / f"{name}-release"
        return release(spark, document(table, output, ADULT_ATTRIBUTES, task_rows, options))

    expected = run("one", 10**9, files=1, shuffled=False)
    assert expected.data.num_rows == records.num_rows
    assert_same_release(run("seven", 2_000, files=7, shuffled=True), expected)
    if span == "data" and split == "strict":
        assert_same_release(run("three", 20_000, files=3, shuffled=False), expected)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param(30_000, {"split": "strict"}, id="30,000-strict"),
        pytest.param(20_000, {"split": "relaxed"}, id="20,000-relaxed"),
    ],
)
def test_people_in_any_files_order_and_tasks(
    spark: SparkSession, people: Path, tmp_path: Path, rows: int, options: dict[str, object]
) -> None:
    table = pq.read_table(people, columns=list(PEOPLE_ATTRIBUTES)).slice(0, rows)
    in_order = write_files(table, tmp_path / "in-order", 3)
    shuffled = write_files(table, tmp_path / "shuffled", 7, shuffled=True)

    def run(source: Path, task_rows: int) -> Released:
        output = tmp_path / f"release-{task_rows}"
        return release(spark, document(source, output, PEOPLE_ATTRIBUTES, task_rows, options))

    expected = run(in_order, 10**9)
    assert expected.data.num_rows == rows
    assert_same_release(run(shuffled, 2_000), expected)
    if rows > 20_000:
        assert_same_release(run(shuffled, 20_000), expected)


@pytest.mark.parametrize(
    ("source", "options", "privacy"),
    [
        # Adult has equal records, which are numbered where a cut may run between them.
        pytest.param("adult", {"name": "u-canon", "reference": "density"}, {}, id="u-canon"),
        pytest.param("adult", {"split": "relaxed"}, OF_INCOME, id="su-mondrian-relaxed-l-and-t"),
        pytest.param(
            "people", {"name": "microaggregation", "block_rows": 1_000}, {}, id="microaggregation"
        ),
        pytest.param("people", {"name": "canon"}, OF_DIAGNOSIS, id="canon-l-and-t"),
    ],
)
def test_models_and_criteria_in_any_files_order_and_tasks(
    spark: SparkSession,
    adult: pa.Table,
    people: Path,
    tmp_path: Path,
    source: str,
    options: dict[str, object],
    privacy: dict[str, object],
) -> None:
    if source == "adult":
        table, attributes = adult.slice(0, 5_000), ADULT_ATTRIBUTES
    else:
        attributes = PEOPLE_ATTRIBUTES
        table = pq.read_table(people, columns=list(attributes)).slice(0, 5_000)
    in_order = write_files(table, tmp_path / "in-order", 3)
    shuffled = write_files(table, tmp_path / "shuffled", 7, shuffled=True)

    def run(table: Path, task_rows: int) -> Released:
        output = tmp_path / f"release-{task_rows}"
        configuration = document(table, output, attributes, task_rows, options, privacy)
        return release(spark, configuration)

    expected = run(in_order, 10**9)
    assert expected.data.num_rows == table.num_rows
    assert len(expected.privacy) == 1 + len(privacy)
    assert_same_release(run(shuffled, 700), expected)


def write_configuration(configuration: dict[str, Any], folder: Path) -> Path:
    """Write a configuration that publishes into a folder."""
    folder.mkdir()
    path = folder / "configuration.yaml"
    changed = configuration | {"output": {"path": str(folder / "release")}}
    path.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
    return path


def test_any_number_of_cores_and_tasks_that_fail_and_are_run_again(
    spark: SparkSession, adult: pa.Table, tmp_path: Path, quick_start: dict[str, str]
) -> None:
    """All in one process, beside this one: starting Java takes longer than such a run."""
    table = write_files(adult.slice(0, 12_000), tmp_path / "adult", 3)
    output = tmp_path / "expected"
    split = {"split": "relaxed"}
    expected = release(spark, document(table, output, ADULT_ATTRIBUTES, 10**9, split))
    relaxed = document(table, output, ADULT_ATTRIBUTES, 8_000, split)
    table = write_files(adult.slice(0, 5_000), tmp_path / "fewer", 3)
    output = tmp_path / "expected-with-criteria"
    options = {"name": "u-canon"}
    bounded = document(table, output, ADULT_ATTRIBUTES, 3_000, options, OF_INCOME)
    expected_with_criteria = release(spark, bounded)

    def arguments(configuration: dict[str, Any], name: str, master: str) -> list[str]:
        return [str(write_configuration(configuration, tmp_path / name)), "--master", master]

    markers = {name: tmp_path / f"markers-{name}" for name in ("failing", "with-criteria")}
    for folder in markers.values():
        folder.mkdir()
    runs = {
        "undisturbed": [
            arguments(relaxed, "one-core", "local[1]"),
            arguments(relaxed, "four-cores", "local[4]"),
        ],
        "failing": [
            [str(markers["failing"]), *arguments(relaxed, "failing", "local[2,4]")],
            [str(markers["with-criteria"]), *arguments(bounded, "with-criteria", "local[2,4]")],
        ],
    }
    script = tmp_path / "runs.py"
    script.write_text(RUNS, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, str(script), json.dumps(runs)],
        capture_output=True,
        text=True,
        env=quick_start,
        timeout=500,
    )
    assert finished.returncode == 0, finished.stderr

    assert_same_release(read_release(tmp_path / "one-core" / "release"), expected)
    assert_same_release(read_release(tmp_path / "four-cores" / "release"), expected)
    assert_same_release(read_release(tmp_path / "failing" / "release"), expected)
    assert_same_release(
        read_release(tmp_path / "with-criteria" / "release"), expected_with_criteria
    )
    failed = {name: {path.name for path in folder.iterdir()} for name, folder in markers.items()}
    kinds = {"_CountRecords", "_SendBlocks", "_FinishBlocks", "_InOrder"}
    assert failed == {
        "failing": kinds,
        "with-criteria": kinds | {"_CountValues", "_MeasureClasses"},
    }


def test_other_data_has_another_fingerprint(spark: SparkSession, tmp_path: Path) -> None:
    ages = [20, 20, 20, 30, 30, 30, 40, 40, 40, 50, 50, 50]
    incomes = [float(number) for number in range(12)]

    def run(name: str, ages: list[int], incomes: list[float]) -> dict[str, Any]:
        columns = {"age": pa.array(ages, pa.int32()), "income": incomes}
        table = write_files(pa.table(columns), tmp_path / name, 2)
        attributes = {"age": "quasi_identifier", "income": "sensitive"}
        configuration = document(table, tmp_path / f"{name}-release", attributes, 10**9, {})
        configuration["privacy"]["k"] = 3
        return release(spark, configuration).summary

    fingerprints = ("input_fingerprint", "output_fingerprint")
    first = run("first", ages, incomes)
    again = run("again", ages[::-1], incomes[::-1])
    assert [again[name] for name in fingerprints] == [first[name] for name in fingerprints]
    others = [
        run("one-value", ages, [*incomes[:-1], 99.0]),
        run("swapped", ages, [incomes[-1], *incomes[1:-1], incomes[0]]),
        run("one-age", [*ages[:-1], 51], incomes),
    ]
    for name in fingerprints:
        assert len({summary[name] for summary in [first, *others]}) == 4
