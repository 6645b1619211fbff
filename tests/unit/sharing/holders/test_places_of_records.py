"""The files of a union: the same for the same records, whoever held them, and in bounded sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.engine.local.engine import LocalEngine
from anonspark.layers.publish import file_assignment
from anonspark.layers.publish.committing import begin
from anonspark.layers.publish.staging import open_staging
from anonspark.sharing.holders.writing import Extent, write_union

ROWS = 3_000


def table() -> pa.Table:
    """Most records are in one class and equal, more than a file is to have."""
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "town": draw.choice(["x", "y", "z"], ROWS, p=[0.9, 0.05, 0.05]),
            "year": draw.integers(0, 3, ROWS),
            "illness": draw.choice(["flu", "gout"], ROWS, p=[0.8, 0.2]),
        }
    )


def written(
    folder: Path, parts: Sequence[pa.Table], by: Sequence[str], key: int = 7
) -> list[pa.Table]:
    """Return the records of each file, in their order."""
    engine = LocalEngine()
    tables = [engine.table(part) for part in parts]
    with open_staging(engine.files, str(folder / "out"), "run") as staging:
        begin(engine.files, staging)
        files = write_union(tables, by, Extent(ROWS, 0, ROWS), key, staging)
        release = staging.release.removeprefix("file:")
        found = [pq.read_table(f"{release}/{file.path}") for file in files]
    assert [file.rows for file in files] == [one.num_rows for one in found]
    return found


def counted(tables: Sequence[pa.Table]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for one in tables for row in one.to_pylist())


@pytest.mark.parametrize("by", [["town"], ["town", "year"]])
@pytest.mark.parametrize("rows", [500, 10_000])
def test_files_tell_nothing_of_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: list[str], rows: int
) -> None:
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", rows)
    whole = table()
    held = written(tmp_path, [whole.slice(0, 1000), whole.slice(1000)], by)
    # The same records, held and stored in another way.
    pieces = [whole.slice(start, 75) for start in range(0, ROWS, 75)]
    others = written(tmp_path, [pa.concat_tables(pieces[::-1]), whole.slice(0, 0)], by)
    assert held == others
    assert counted(held) == counted([whole])
    assert len(held) == (6 if rows == 500 else 1)
    assert max(one.num_rows for one in held) < 1.5 * rows


def test_another_key_is_another_order(tmp_path: Path) -> None:
    one, other = (written(tmp_path, [table()], ["town"], key) for key in (7, 8))
    assert one != other
    assert counted(one) == counted(other)


def test_classes_stand_together(tmp_path: Path) -> None:
    (only,) = written(tmp_path, [table()], ["town", "year"])
    classes = [(row["town"], row["year"]) for row in only.to_pylist()]
    begins = [one for one, before in zip(classes, [None, *classes], strict=False) if one != before]
    assert len(begins) == len(set(begins)) == 9
