"""A run counts records and people again in what it staged, and refuses what is not as promised.

The staged records, or what people are counted in, are broken just before: the run ends with an
error that says why, nothing is published, and nothing is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import command
from helpers import configuration_file, contents, published, write_table

from anonspark.core.columns import CLASS_ID, UNIT
from anonspark.engine import choice
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.pipeline import run as steps
from anonspark.staged.records import Records

K = 5


def break_records(data: Path, how: str) -> None:
    """Break staged records, whose files are then as if they had been written like that."""
    files = sorted(data.glob("*.parquet"))
    records = pa.concat_tables(pq.ParquetFile(file).read() for file in files)
    ages = records["age"].to_pylist()
    sizes = Counter(ages).most_common()
    (largest, _), (smallest, size) = sizes[0], sizes[-1]
    index = ages.index(largest)
    if how == "lost":
        records = records.filter(np.arange(len(ages)) != index)
    elif how == "doubled":
        records = pa.concat_tables([records, records.slice(index, 1)])
    else:
        # Of the smallest class k - 1 records stay, the others go to the largest one.
        for moved in [i for i, age in enumerate(ages) if age == smallest][: size - (K - 1)]:
            ages[moved] = largest
        column = records.schema.get_field_index("age")
        records = records.set_column(column, "age", pa.array(ages, records["age"].type))
    for file in [*files, *data.glob(".*.crc")]:
        file.unlink()
    pq.write_table(records, files[0])


@dataclass(frozen=True)
class FewerPeople:
    """Finished records, of which a class has so many people left: another has their records."""

    finished: Records
    left: int

    def rows(self, *names: str) -> Table:
        """Return them as the records would."""
        pairs = self.finished.rows(CLASS_ID, UNIT).collect().group_by([CLASS_ID, UNIT])
        people = pairs.aggregate([]).sort_by([(CLASS_ID, "ascending"), (UNIT, "ascending")])
        is_first = pc.equal(people[CLASS_ID], people[CLASS_ID][0])
        kept, *others = people[UNIT].filter(is_first).to_pylist()
        merged = others[self.left - 1 :]

        def merge(batches: Batches) -> Batches:
            for batch in batches:
                units = batch.column("unit").to_pylist()
                units = [kept if unit in merged else unit for unit in units]
                column = pa.array(units, batch.column("unit").type)
                yield batch.set_column(batch.schema.get_field_index("unit"), "unit", column)

        table = self.finished.rows(*names)
        return table.map_batches(merge, table.schema)


@pytest.mark.parametrize("engine", ["local", "spark"])
@cases(__file__, "privacy", "how", "expected")
def test_on_both_engines(
    engine: str, request: pytest.FixtureRequest, privacy: dict[str, Any], how: Any, expected: str
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    run_broken(request, privacy, how, expected, here=engine == "local")


@cases(__file__, "privacy", "how", "expected")
def test_without_java(
    request: pytest.FixtureRequest, privacy: dict[str, Any], how: Any, expected: str | None
) -> None:
    run_broken(request, privacy, how, expected, here=True)


def run_broken(
    request: pytest.FixtureRequest,
    privacy: dict[str, Any],
    how: str | int,
    expected: str | None,
    *,
    here: bool,
) -> None:
    """Run with records that are broken, or so many people in a class, and look at the outcome."""
    tmp_path, monkeypatch, capsys = map(
        request.getfixturevalue, ("tmp_path", "monkeypatch", "capsys")
    )
    if here:
        monkeypatch.setattr(choice, "process_has_session", lambda: False)
    random = np.random.default_rng(7)
    # Two visits of each person.
    people = np.arange(200) // 2
    diseases = random.choice(["asthma", "fracture", "migraine", "otitis"], 200)
    ages = random.integers(0, 100, 100)[people]
    write_table(tmp_path / "input.parquet", {"patient": people, "age": ages, "disease": diseases})
    path = configuration_file(
        tmp_path,
        attributes={"patient": "identifier", "age": "quasi_identifier", "disease": "sensitive"},
        privacy={"k": K, **privacy},
        model="su-mondrian",
    )
    before = contents(tmp_path)
    stage, verify = steps.stage_records, steps.verify_staged

    def stage_broken(context: Any, staging: Any, *others: Any) -> Any:
        written = stage(context, staging, *others)
        break_records(Path(staging.release.removeprefix("file:")) / "data", str(how))
        return written

    def verify_broken(*arguments: Any) -> Any:
        *others, basis, form = arguments
        finished = FewerPeople(basis.rounds.finished, int(how))
        return verify(
            *others, replace(basis, rounds=replace(basis.rounds, finished=finished)), form
        )

    if isinstance(how, int):
        monkeypatch.setattr(steps, "verify_staged", verify_broken)
    else:
        monkeypatch.setattr(steps, "stage_records", stage_broken)
    outcome = command(capsys, "run", path, "--no-progress")
    if expected is None:
        assert outcome.code == 0, outcome.err
        assert published(tmp_path / "release").num_rows == 200
        return
    assert outcome.code == 4, outcome.err
    assert expected in outcome.err
    assert contents(tmp_path) == before
