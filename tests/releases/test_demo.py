"""The demo, on the engine without Java."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from helpers import command
from places import REPOSITORY

from anonspark.demo.people import PEOPLE_SCHEMA, find_class, people_of
from anonspark.engine.local.engine import LocalEngine
from anonspark.release.manifest import read_manifest
from anonspark.release.regions import PublishedAttribute, published_attributes

ROWS = 700


def test_before_and_after_are_the_same_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "demo", "--rows", str(ROWS), "--out", tmp_path, "--quiet")
    assert outcome.code == 0, outcome.err
    before, after = (
        pq.read_table(tmp_path / path) for path in (f"people-{ROWS}.parquet", "release/data")
    )
    attributes = published_attributes(read_manifest(LocalEngine().files, str(tmp_path / "release")))
    shown = find_class(before, after, attributes)
    assert shown is not None
    people, records = shown
    assert people["diagnosis"].to_pylist() == records["diagnosis"].to_pylist()
    assert len(people) == len(records) >= 10
    labels = records.select([one.name for one in attributes]).to_pylist()
    assert labels == [labels[0]] * len(records)
    for name in people["full_name"].to_pylist()[:5]:
        assert name in outcome.out
    assert max(map(len, outcome.out.partition("Release ")[0].splitlines())) <= 80


def test_its_release_can_be_verified_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        outcome = command(capsys, "demo", "--rows", str(ROWS), "--out", tmp_path, "--json")
        assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["summary"]["rows_published"] == ROWS
    outcome = command(capsys, "verify", tmp_path / "release")
    assert outcome.code == 0, outcome.err


def test_no_class_is_shown_whose_labels_cover_others() -> None:
    people = pa.table({"age": [1, 2, 3], "diagnosis": ["a", "b", "c"]})
    published = pa.table({"age": ["[1-3]", "[1-3]"], "diagnosis": ["a", "b"]})
    age = PublishedAttribute("age", "integer", "label", ("age",))
    assert find_class(people, published, [age]) is None
    more = pa.concat_tables([published, published.slice(0, 1)])
    assert find_class(people, more, [age]) is not None


def test_people_are_those_of_the_table_that_comes_with_the_project() -> None:
    table = pa.Table.from_batches([people_of(0, np.arange(2000))])
    instants = pa.field("last_visit", pa.timestamp("s"))
    types = {one.name: one.type for one in PEOPLE_SCHEMA} | {instants.name: instants.type}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    expected = pyarrow.csv.read_csv(REPOSITORY / "data/people.csv", convert_options=options)
    at = PEOPLE_SCHEMA.get_field_index("last_visit")
    visits = expected["last_visit"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    assert expected.set_column(at, PEOPLE_SCHEMA.field(at), visits).equals(table)
