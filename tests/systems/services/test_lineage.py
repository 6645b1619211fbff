"""What follows a run from outside, OpenLineage's agent and Spark's event log, learns no value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from places import REPOSITORY
from planted_values import ATTRIBUTES, ROWS, TEXTS, Planted, document, planted_table, write_inputs
from service_jars import locked_jars
from spark_client import run_client

SENSITIVE = "1); DROP TABLE t; --"
RUN = "night-1"
SUPPORT = REPOSITORY / "tests" / "support"

INPUTS: dict[str, dict[str, Any]] = {
    # Tasks read whole files.
    "parquet": {},
    # Spark reads rows, by a plan that names the columns.
    "csv": {"format": "csv", "options": {"header": "true", "inferSchema": "true"}},
}


@dataclass(frozen=True)
class Followed:
    """A run, and what was told of it."""

    folder: Path
    events: list[dict[str, Any]]
    texts: dict[str, str]
    comments: int

    def datasets(self, side: str) -> Iterator[dict[str, Any]]:
        """Return the inputs or outputs of all events."""
        for event in self.events:
            yield from event.get(side, [])


def settings_of(folder: Path) -> dict[str, Any]:
    """Return the settings of docs/operations.md, and what a short run needs."""
    return {
        "spark.driver.extraClassPath": locked_jars("openlineage-spark_2.13")[0],
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": folder / "lineage.jsonl",
        "spark.openlineage.namespace": "hospital",
        "spark.openlineage.facets.spark.logicalPlan.disabled": "true",
        "spark.openlineage.dataset.removePath.pattern": r"(.*)(?<remove>\.anonspark-[^/]+)(.*)",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }


def follow(folder: Path, *command: object) -> Followed:
    """Run a program in a process of its own, and read what was told of it."""
    (folder / "events").mkdir()
    run_client(folder, settings_of(folder), *command)
    lineage = (folder / "lineage.jsonl").read_text()
    log = next(path for path in (folder / "events").iterdir() if not path.name.endswith(".crc"))
    comment = f',"description":"{TEXTS["metadata"]}"'
    return Followed(
        folder,
        [json.loads(line) for line in lineage.splitlines()],
        {"OpenLineage": lineage.replace(comment, ""), "event log": log.read_text()},
        lineage.count(comment),
    )


def require_no_value(followed: Followed) -> None:
    """Look for the values of the input, however they are written."""
    planted = Planted(planted_table())
    found = {name: planted.found_in(text)[:5] for name, text in followed.texts.items()}
    assert found == {"OpenLineage": [], "event log": []}


@pytest.fixture(scope="module", params=INPUTS)
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """Anonymize the table, with a hierarchy."""
    folder = tmp_path_factory.mktemp("followed")
    table = planted_table()
    write_inputs(folder, table)
    source = folder / f"planted.{request.param}"
    if request.param == "csv":
        pacsv.write_csv(table, source)
    configuration = document(
        folder,
        "release",
        input={"path": str(source), **INPUTS[request.param]},
        attributes={
            **ATTRIBUTES,
            "${town}": {"role": "quasi_identifier", "hierarchy": str(folder / "towns.csv")},
        },
        privacy={"k": 5, "l_diversity": {"attribute": SENSITIVE, "l": 2}},
    )
    return follow(folder, REPOSITORY / "jobs" / "anonymize.py", configuration, "--run-id", RUN)


@pytest.mark.timeout(600)
def test_no_value_of_input_and_release_is_told(followed: Followed) -> None:
    assert "SparkListenerSQLExecutionStart" in followed.texts["event log"]
    assert min(len(text) for text in followed.texts.values()) > 100_000
    require_no_value(followed)
    published = pq.read_table(followed.folder / "release" / "data").to_pydict()
    assert len(published[SENSITIVE]) == ROWS
    labels = {label for column in published.values() for label in column if len(str(label)) > 5}
    assert len(labels) > 100
    for name, text in followed.texts.items():
        assert [label for label in labels if str(label) in text] == [], name


def test_datasets_that_are_told(followed: Followed) -> None:
    """The input, and the staging directory under one name in all runs; never the release."""
    staging = followed.folder / ".release"
    inputs = {dataset["name"] for dataset in followed.datasets("inputs")}
    outputs = {dataset["name"] for dataset in followed.datasets("outputs")}
    sources = {str(followed.folder / f"planted.{name}") for name in INPUTS}
    assert len(sources & inputs) == 1
    assert str(staging / "written-1" / "data") in outputs
    assert all(Path(name).is_relative_to(staging) for name in outputs)
    assert RUN not in " ".join(inputs | outputs)


def test_columns_are_not_told(followed: Followed) -> None:
    """Packed records go through Python between input and output, and no plan sees into them."""
    facets = {name for dataset in followed.datasets("outputs") for name in dataset["facets"]}
    assert "schema" in facets
    assert "columnLineage" not in facets
    plans = {name for event in followed.events for name in event["run"]["facets"]}
    assert "spark.logicalPlan" not in plans


def test_comments_of_columns_are_told(followed: Followed) -> None:
    """Of Parquet files that Spark wrote they are part of the schema."""
    inputs = {Path(dataset["name"]).name for dataset in followed.datasets("inputs")}
    assert (followed.comments > 0) == ("planted.parquet" in inputs)


@pytest.mark.timeout(600)
def test_runs_that_fail(tmp_path: Path) -> None:
    """Errors of tasks are told without the data that they quote, and as if all had ended well."""
    write_inputs(tmp_path, planted_table())
    broken = {"path": str(tmp_path / "planted.csv"), **INPUTS["csv"]}
    cases = [
        {"name": "task", "arguments": ["run", document(tmp_path, "task")], "fails": True},
        {"name": "broken", "arguments": ["run", document(tmp_path, "broken", input=broken)]},
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    followed = follow(tmp_path, SUPPORT / "planted_run.py", tmp_path / "cases.json")
    codes = {case["name"]: (tmp_path / f"{case['name']}.code").read_text() for case in cases}
    assert codes == {"task": "1", "broken": "3"}
    require_no_value(followed)
    failed = [event for event in followed.events if event["eventType"] == "FAIL"]
    traces = {event["run"]["facets"]["spark.exception"]["stackTrace"] for event in failed}
    of_task = [trace for trace in traces if "FailedTaskError: ValueError at" in trace]
    assert len(of_task) == 1
    assert "its text is left out" in of_task[0]
    assert all("errors.DataError" in trace for trace in traces.difference(of_task))
    last = followed.events[-1]
    assert (last["eventType"], last["job"]["name"]) == ("COMPLETE", "planted")
