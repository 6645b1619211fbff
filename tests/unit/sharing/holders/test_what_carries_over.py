"""What classes of holders satisfy, their union does: against slow references, on random tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config.privacy import PrivacyOptions
from anonspark.engine.local.engine import LocalEngine
from anonspark.layers.publish import file_assignment
from anonspark.layers.publish.committing import begin
from anonspark.layers.publish.staging import open_staging
from anonspark.sharing.holders.writing import Extent, write_union
from anonspark.verification.audit import audit_table
from anonspark.verification.claims.claim import Claim

Record: TypeAlias = tuple[str, str]
Classes: TypeAlias = dict[str, Counter[str]]

ABOUT = {"attribute": "illness"}
PRIVACY = {
    "k": 1,
    "allow_k_1": True,
    "l_diversity": [
        ABOUT | {"l": 2},
        ABOUT | {"l": 2, "kind": "entropy"},
        ABOUT | {"l": 2, "kind": "recursive", "c": 3.0},
    ],
    "alpha_k_anonymity": ABOUT | {"alpha": 1.0},
    "t_closeness": ABOUT | {"t": 1.0, "distance": "equal"},
}


def classes_of(records: Iterable[Record]) -> Classes:
    found: Classes = {}
    for town, illness in records:
        found.setdefault(town, Counter())[illness] += 1
    return found


def distance(one: Counter[str], other: Counter[str]) -> Fraction:
    """Half of the differences of shares."""
    return (
        sum(
            (
                abs(Fraction(one[value], one.total()) - Fraction(other[value], other.total()))
                for value in one | other
            ),
            Fraction(0),
        )
        / 2
    )


def exponential_of_entropy(values: Counter[str]) -> float:
    shares = [count / values.total() for count in values.values()]
    return math.exp(-sum(share * math.log(share) for share in shares))


def ratio(values: Counter[str]) -> float:
    """What c of recursive (c, 2)-diversity has to exceed."""
    first, *others = sorted(values.values(), reverse=True)
    return first / sum(others) if others else math.inf


def largest_share(values: Counter[str]) -> Fraction:
    return Fraction(max(values.values()), values.total())


parts = st.lists(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.sampled_from(["flu", "gout", "ulcer"])),
        min_size=1,
        max_size=12,
    ),
    min_size=2,
    max_size=5,
)


@given(parts)
def test_criteria_of_a_union(held: Sequence[Sequence[Record]]) -> None:
    records = [record for own in held for record in own]
    towns, illnesses = zip(*records, strict=True)
    table = pa.table({"town": list(towns), "illness": list(illnesses)})
    claim = Claim(PrivacyOptions.model_validate(PRIVACY), ["town"], ("town",))
    proof = audit_table(LocalEngine().table(table), claim)
    figures = {one.criterion.kind: one.measured for one in proof.criteria}
    each = [values for own in held for values in classes_of(own).values()]
    # Whatever bound all parts keep, the union keeps.
    assert proof.published.rows == len(records)
    assert proof.published.smallest >= min(values.total() for values in each)
    assert figures["distinct"] >= min(len(values) for values in each)
    assert figures["entropy"] >= min(map(exponential_of_entropy, each)) - 1e-9
    assert figures["recursive"] <= max(map(ratio, each)) + 1e-9
    assert figures["alpha"] <= max(map(largest_share, each)) + 1e-9
    # But for closeness, which is beside another distribution, and then as far as both differ.
    whole = Counter(illnesses)
    needed = max(distance(values, whole) for values in classes_of(records).values())
    assert figures["equal distance"] == pytest.approx(float(needed))
    own = [Counter(illness for _, illness in one) for one in held]
    within = max(
        distance(values, of_part)
        for one, of_part in zip(held, own, strict=True)
        for values in classes_of(one).values()
    )
    apart = max(distance(one, other) for one, other in combinations(own, 2))
    assert needed <= within + apart


def test_the_example_of_two_holders() -> None:
    north, south = Counter(flu=9, gout=1), Counter(flu=1, gout=9)
    assert distance(north, north) == distance(south, south) == 0
    assert distance(north, north + south) == Fraction(2, 5)


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
