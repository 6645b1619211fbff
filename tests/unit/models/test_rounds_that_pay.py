"""Rounds never lose more than none, with the defaults: in drawn tables and on five public ones.

Models run over one block, without a cluster; tests/spark/models/test_auto.py has it that runs make
the same releases.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from counted_tables import Records
from drawn_numbers import among, wide
from hypothesis import given, note
from hypothesis import strategies as st
from one_block import release
from places import require_data
from public_tables import TABLES, read
from references import attribute_of, k_alone

from anonspark.config.models import CanonOptions, MondrianOptions
from anonspark.core.columns import RECORD_HASH
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.models.choosing import _Draw, records_to_try
from anonspark.staged.records import RECORDS, packed_batch, unpack_table

KDD_CUP = "kddcup99_10_percent.csv.gz"
# By day the four smaller ones.
FILES = [pytest.param(one, marks=pytest.mark.night if one == KDD_CUP else ()) for one in TABLES]


PAIRS = {
    "strict": (MondrianOptions(name="su-mondrian"), MondrianOptions(name="smondrian")),
    "relaxed": (
        MondrianOptions(name="su-mondrian", split="relaxed"),
        MondrianOptions(name="smondrian", split="relaxed"),
    ),
    "density": (
        MondrianOptions(name="su-mondrian", reference="density"),
        MondrianOptions(name="smondrian"),
    ),
    "canon": (CanonOptions(name="u-canon"), CanonOptions(name="canon")),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[Records, Criteria]:
    """Draw a table with heavy values, and sometimes a criterion beyond k."""
    rows = draw(st.integers(4, 120))
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        heavy = among(draw, rows, [0, 0, 0, 1, 2, 3])
        columns.append(np.where(among(draw, rows, [0, 0, 0, 1]), wide(draw, rows) % 1_001, heavy))
    k = draw(st.integers(2, 6))
    if k > rows:
        k = rows
    if draw(st.booleans()):
        return Records(columns), k_alone(k)
    own = among(draw, rows, range(3))
    attribute = attribute_of("disease", np.bincount(own, minlength=3).tolist())
    criterion = Criterion("disease", "distinct", 2.0)
    if len(set(own.tolist())) < 2:
        return Records(columns), k_alone(k)
    return Records(columns, values=own[:, None]), Criteria(k, (criterion,), (attribute,))


@given(table=tables())
def test_rounds_never_lose_more_than_none(table: tuple[Records, Criteria]) -> None:
    for name, pair in PAIRS.items():
        note(name)
        with_lost, without_lost = (release(*table, each).gcp_total for each in pair)
        assert with_lost <= without_lost + 1e-9


@pytest.mark.parametrize("pair", ["strict", "canon"])
@pytest.mark.parametrize(
    "file",
    [*(one for one in TABLES if one != KDD_CUP), pytest.param(KDD_CUP, marks=pytest.mark.night)],
)
def test_rounds_never_lose_more_than_none_on_public_tables(
    data_directory: Path, file: str, pair: str
) -> None:
    path = data_directory / file
    require_data(path)
    records = read(path, TABLES[file])
    lost, lost_without = (release(records, k_alone(10), each).gcp_total for each in PAIRS[pair])
    assert lost <= lost_without
    if file == KDD_CUP:
        # Half a million records, many of them equal: rounds as published lose 0.0262 and 0.0013.
        values = len(records) * len(records.quasi_identifiers)
        assert lost / values <= (0.0017 if pair == "strict" else 0.0012)


@cases(__file__, "rows", "k", "expected")
def test_records_to_try_grow_with_the_table_and_with_k(rows: int, k: int, expected: int) -> None:
    assert records_to_try(rows, k) == expected


def test_drawing_reads_only_the_columns_that_it_hands_on() -> None:
    hashes = np.array([-(2**62), 2**62, -(2**63)])
    records = pa.table({"a": [1, 2, 3], "published": ["x", "y", "z"], RECORD_HASH: hashes})
    packed = pa.RecordBatch.from_pydict(packed_batch(0, records))
    (drawn,) = _Draw(0.5, ("a", RECORD_HASH))(iter([packed]))
    (sent,) = drawn.column(RECORDS)
    assert unpack_table(sent).to_pydict() == {"a": [1, 3], RECORD_HASH: hashes[[0, 2]].tolist()}
