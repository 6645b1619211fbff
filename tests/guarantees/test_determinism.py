"""The release depends on the input's content and the configuration, on nothing else.

Neither the files and their order, nor the size and number of tasks, nor a task that fails and is
run again may change which records share a class.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from cases import by_name
from failing_runs import run_all
from helpers import document_file, of_any_run, write_files

from anonspark.config import parse_configuration
from anonspark.demo.people import people_of
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run as run_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def read_release(path: Path) -> dict[str, Any]:
    """Read everything that two equal releases have in common, their files too."""
    files = {file.name: file.read_bytes() for file in (path / "data").glob("*.parquet")}
    return of_any_run(path) | {"files": files}


def assert_same_release(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        # pytest would look for the difference in megabytes.
        same = found[name] == expected[name]
        assert same, name


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
    if model["name"] == "su-mondrian":
        # Cells of 16,384 records are not cut on the cluster where they are refined.
        model.setdefault("refine", 0)
    return {
        "input": {"path": str(table)},
        "attributes": dict(attributes),
        "missing": "category",
        "privacy": {"k": 5, **(privacy or {})},
        "model": model,
        "output": {"path": str(output)},
        "execution": {"task_rows": task_rows, "seed": 11},
    }


def release(engine: Engine, configuration: dict[str, Any]) -> dict[str, Any]:
    """Run the pipeline and read what it wrote."""
    run_pipeline(engine, parse_configuration(configuration))
    return read_release(Path(configuration["output"]["path"]))


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> pa.Table:
    table = pc.read_csv(adult_path).select(list(ADULT_ATTRIBUTES))
    assert table.num_rows == 30_162
    equal = table.group_by(table.column_names).aggregate([([], "count_all")])
    assert equal.num_rows < table.num_rows // 2
    return table


@pytest.fixture(scope="module")
def people() -> pa.Table:
    table = pa.Table.from_batches([people_of(0, np.arange(ROWS))])
    return table.select(list(PEOPLE_ATTRIBUTES))


ROWS = 3_000
STRICT, RELAXED = {"split": "strict"}, {"split": "relaxed"}
CELL = {"span": "cell"}

# Of each: the source, the model's options, criteria. Adult has equal records, which are numbered
# where a cut may run between them. People have dates, missing values, two sensitive attributes.
# The four rules of su-mondrian have it in memory, too: ``unit/layers/test_partition.py``.
Case = tuple[str, "Mapping[str, object]", "Mapping[str, object]"]
# Those at night differ from others in criteria alone.
CASES: dict[str, Case] = {
    "adult-strict-data": ("adult", STRICT, {}),
    "adult-refined": ("adult", {"refine": 1}, {}),
    "adult-relaxed-cell, at night": ("adult", RELAXED | CELL, {}),
    "people-strict-data": ("people", {"name": "smondrian"} | STRICT, {}),
    "people-strict-cell": ("people", STRICT | CELL, {}),
    "people-relaxed, at night": ("people", RELAXED, {}),
    "people-relaxed-l-t-and-alpha": ("people", RELAXED, OF_DIAGNOSIS),
    "adult-relaxed-cell-l-and-t": ("adult", RELAXED | CELL, OF_INCOME),
    "adult-u-canon, at night": ("adult", {"name": "u-canon", "reference": "density"}, {}),
    "adult-u-canon-l-and-t": ("adult", {"name": "u-canon"}, OF_INCOME),
    "people-canon-l-t-and-alpha": ("people", {"name": "canon"}, OF_DIAGNOSIS),
    "people-microaggregation": ("people", {"name": "microaggregation", "block_rows": 1_000}, {}),
    "adult-microaggregation-l-and-t": (
        "adult",
        {"name": "microaggregation", "block_rows": 1_000},
        OF_INCOME,
    ),
}
# Of these, with equal records, Spark makes the release, too; of every kind of model and criterion,
# from other files than the local engine, in ``spark/engine/test_engines_agree.py``.
ON_SPARK = ("adult-relaxed-cell-l-and-t", "adult-u-canon, at night")


class Tables:
    """The table of each case, in files in order and in others out of order, and its release."""

    def __init__(self, folder: Path, adult: pa.Table, people: pa.Table) -> None:
        self._folder = folder
        self._of = {"adult": (adult, ADULT_ATTRIBUTES), "people": (people, PEOPLE_ATTRIBUTES)}
        self._expected: dict[str, dict[str, Any]] = {}
        for name, (table, _) in self._of.items():
            write_files(table.slice(0, ROWS), folder / f"{name}-in-order", 3)
            write_files(table.slice(0, ROWS), folder / f"{name}-shuffled", 7, shuffled=True)

    def released(self, engine: Engine, case: str, files: str, task_rows: int) -> dict[str, Any]:
        """Make the release of a case."""
        source, options, privacy = CASES[case]
        table = self._folder / f"{source}-{files}"
        output = self._folder / f"{case}-{type(engine).__name__}-{task_rows}"
        attributes = self._of[source][1]
        return release(engine, document(table, output, attributes, task_rows, options, privacy))

    def expected(self, case: str) -> dict[str, Any]:
        """Return the release of the files in order, in one task."""
        if case not in self._expected:
            made = self.released(LocalEngine(), case, "in-order", 10**9)
            assert len(made["data"]) == ROWS
            assert len(made["privacy"]) == 1 + len(CASES[case][2])
            self._expected[case] = made
        return self._expected[case]


@pytest.fixture(scope="module")
def tables(adult: pa.Table, people: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("tables"), adult, people)


@pytest.mark.parametrize("case", by_name(CASES))
def test_any_files_order_and_tasks(tables: Tables, case: str) -> None:
    made = tables.released(LocalEngine(), case, "shuffled", 900)
    assert_same_release(made, tables.expected(case))


@pytest.mark.system
@pytest.mark.parametrize("case", ON_SPARK)
def test_any_files_order_and_tasks_of_spark(engine: SparkEngine, tables: Tables, case: str) -> None:
    made = tables.released(engine, case, "shuffled", 900)
    assert_same_release(made, tables.expected(case))


def test_a_whole_table_in_any_files_order_and_tasks(adult: pa.Table, tmp_path: Path) -> None:
    """All of Adult, in tasks of sizes that runs have."""

    def run(name: str, task_rows: int, files: int, *, shuffled: bool) -> dict[str, Any]:
        table = write_files(adult, tmp_path / name, files, shuffled=shuffled)
        output = tmp_path / f"{name}-release"
        return release(LocalEngine(), document(table, output, ADULT_ATTRIBUTES, task_rows, STRICT))

    expected = run("three", 20_000, files=3, shuffled=False)
    assert len(expected["data"]) == adult.num_rows
    assert_same_release(run("seven", 2_000, files=7, shuffled=True), expected)


def write_configuration(configuration: dict[str, Any], folder: Path) -> Path:
    """Write a configuration that publishes into a folder."""
    folder.mkdir()
    return document_file(folder, configuration | {"output": {"path": str(folder / "release")}})


@pytest.mark.system
def test_any_number_of_cores_and_tasks_that_fail_and_are_run_again(
    adult: pa.Table, tmp_path: Path, quick_start: dict[str, str]
) -> None:
    """All in one process, beside this one: starting Java takes longer than such a run."""
    engine = LocalEngine()
    table = write_files(adult.slice(0, 12_000), tmp_path / "adult", 3)
    output = tmp_path / "expected"
    split = {"split": "relaxed", "suppression_limit": 0.05}
    expected = release(engine, document(table, output, ADULT_ATTRIBUTES, 10**9, split))
    relaxed = document(table, output, ADULT_ATTRIBUTES, 8_000, split)
    table = write_files(adult.slice(0, 5_000), tmp_path / "fewer", 3)
    output = tmp_path / "expected-with-criteria"
    options = {"name": "u-canon"}
    bounded = document(table, output, ADULT_ATTRIBUTES, 3_000, options, OF_INCOME)
    expected_with_criteria = release(engine, bounded)

    def arguments(configuration: dict[str, Any], name: str, master: str) -> list[str]:
        return [str(write_configuration(configuration, tmp_path / name)), "--master", master]

    kinds = {
        "layers.partition.distribution._CountRecords": False,
        "layers.partition.distribution.CountForest": False,
        "layers.partition.distribution._SendRecords": False,
        "models.blockwise.FinishBlocks": True,
        "pipeline.rounds._Divide": True,
        "layers.prepare.sensitive._CountValues": False,
        "layers.publish.writing._WriteInOrder": True,
        "verification.proof.classes._DescribeClasses": False,
        "verification.proof.criteria.MeasureClasses": False,
    }
    failing, with_criteria = run_all(
        quick_start,
        kinds,
        {
            tmp_path / "markers": arguments(relaxed, "failing", "local[4,4]"),
            tmp_path / "markers-2": arguments(bounded, "with-criteria", "local[2,4]"),
        },
        [arguments(relaxed, "one-core", "local[1]")],
    )

    assert_same_release(read_release(tmp_path / "one-core" / "release"), expected)
    assert_same_release(read_release(tmp_path / "failing" / "release"), expected)
    assert_same_release(
        read_release(tmp_path / "with-criteria" / "release"), expected_with_criteria
    )
    # Classes with one value, which a warning counts, come with the classes without a criterion.
    of_both = {"CountForest", "_SendRecords", "FinishBlocks", "_WriteInOrder", "_DescribeClasses"}
    assert failing == of_both | {"_Divide"}
    assert with_criteria == of_both | {"_CountRecords", "_CountValues", "MeasureClasses"}


def test_other_data_has_another_fingerprint(tmp_path: Path) -> None:
    ages = [20, 20, 20, 30, 30, 30, 40, 40, 40, 50, 50, 50]
    incomes = [float(number) for number in range(12)]

    def run(name: str, ages: list[int], incomes: list[float]) -> dict[str, Any]:
        columns = {"age": pa.array(ages, pa.int32()), "income": incomes}
        table = write_files(pa.table(columns), tmp_path / name, 2)
        attributes = {"age": "quasi_identifier", "income": "sensitive"}
        configuration = document(table, tmp_path / f"{name}-release", attributes, 10**9, {})
        configuration["privacy"]["k"] = 3
        return release(LocalEngine(), configuration)["summary"]

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
