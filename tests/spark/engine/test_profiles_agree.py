"""Both engines profile a table alike, sample and all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from places import REPOSITORY

from anonspark.engine.local.engine import LocalEngine
from anonspark.profiling.profile import Profile, profile_table
from anonspark.profiling.source import Source, find_source
from anonspark.progress import Progress

if TYPE_CHECKING:
    from anonspark.engine.spark.engine import SparkEngine


def without_types(profile: Profile) -> dict[str, object]:
    # Spark and Arrow name a type alike, but for what the file itself does not tell.
    told = profile.as_dict()
    return told | {"columns": [{**one, "type": ""} for one in told["columns"]]}


def test_profiles_are_equal(engine: SparkEngine, tmp_path: Path) -> None:
    people = find_source(str(REPOSITORY / "data" / "people.csv"))
    # The same with types, in which the sample is a part of the table.
    typed = tmp_path / "typed.parquet"
    inferred = replace(people, options={**people.options, "inferSchema": "true"})
    rows = pa.table(inferred.open(LocalEngine()).collect())
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 500)]), typed)
    cases: list[tuple[Source, int]] = [(people, 200_000), (find_source(str(typed)), 1000)]
    for source, sample in cases:
        found = [
            profile_table(one, source, Progress(), sample=sample, show_values=True)
            for one in (LocalEngine(), engine)
        ]
        assert without_types(found[0]) == without_types(found[1])
        assert found[0].sample_rows == min(sample, found[0].rows)
