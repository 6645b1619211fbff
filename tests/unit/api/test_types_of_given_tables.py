"""Columns of tables in memory whose types no file has: what they may be, and what is said."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anonspark
from anonspark.errors import ConfigurationError, DataError

ROWS = 60
AGES = [row % 12 for row in range(ROWS)]
HALF = [row // 2 for row in range(ROWS)]
DAYS = pd.date_range("2000", periods=ROWS)
ARGUMENTS: dict[str, Any] = {"k": 5, "progress": False}

IDENTIFIERS: dict[str, Any] = {
    "uuid": pd.Series([uuid.UUID(int=half) for half in HALF]),
    "time": pd.Series([time(half % 24, half) for half in HALF]),
    "period": pd.Series(pd.period_range("2000", periods=ROWS, freq="D")[HALF]),
    "interval": pd.Series(pd.interval_range(0, ROWS)[HALF]),
    "category of dates": pd.Series(pd.Categorical(DAYS[HALF])),
    "float16": pd.Series(np.array(HALF, "float16")),
    "decimal256": pa.array([Decimal(half) for half in HALF], pa.decimal256(60, 2)),
    "run-end-encoded": pa.RunEndEncodedArray.from_arrays([2 * n + 2 for n in range(30)], range(30)),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers_of_any_type(kind: str) -> None:
    table = pa.table({"age": AGES, "who": pa.array(IDENTIFIERS[kind])})
    with anonspark.anonymize(
        table, quasi_identifiers=["age"], identifiers=["who"], **ARGUMENTS
    ) as release:
        assert release.to_arrow().column_names == ["age"]
        warned = [one["attribute"] for one in release.manifest["warnings"]][:1]
        # A day, or a fraction of another name, numbers no people.
        assert warned == ([] if kind in ("category of dates", "float16") else ["who"])


@pytest.mark.parametrize("kind", ["uuid", "time", "period"])
def test_subjects_of_any_type(kind: str) -> None:
    table = pd.DataFrame({"age": AGES[::2], "who": IDENTIFIERS[kind][::2]})
    roles = {"age": "quasi_identifier", "who": "identifier"}
    plan = {
        "base": {"attributes": roles, "privacy": {"k": 5}},
        "subject": "who",
        "recipients": {
            "office": {"approved": "yes", "columns": ["age"]},
            "press": {"approved": "yes", "columns": ["age"]},
        },
    }
    with anonspark.distribute(table, plan, progress=False) as made:
        assert list(made.coalitions["persons"]) == [30]


def test_halves_of_floats_are_numbers() -> None:
    table = pd.DataFrame({"age": AGES, "size": np.array(HALF, "float16")})
    roles: list[dict[str, list[str]]] = [
        {"quasi_identifiers": ["age", "size"]},
        {"quasi_identifiers": ["age"], "sensitive": ["size"]},
        {"quasi_identifiers": ["age"], "insensitive": ["size"]},
    ]
    for own in roles:
        with anonspark.anonymize(table, **own, **ARGUMENTS) as release:
            assert release.verify(original=table).holds
    assert [one.kind for one in anonspark.profile(table, progress=False).columns][1] == "number"


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_decimals_of_more_digits_than_files_have(role: str) -> None:
    numbers = pa.array([Decimal(half) for half in HALF], pa.decimal256(60, 2))
    table = pa.table({"age": AGES, "size": numbers})
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"], **ARGUMENTS, role: ["size"]}
    with pytest.raises(DataError, match=r"attributes\.size: .*decimal\(60,2\).* 38 digits"):
        anonspark.anonymize(table, **arguments)


@pytest.mark.parametrize("kind", ["uuid", "time", "decimal256"])
def test_what_cannot_be_compared_is_not_verified(kind: str) -> None:
    table = pa.table({"size": pa.array(IDENTIFIERS[kind])})
    with pytest.raises(DataError, match=r"column 'size' has type .* cannot be compared. Convert"):
        anonspark.verify(table, quasi_identifiers=["size"])
    assert len(anonspark.profile(table, progress=False).columns) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive", "identifiers"])
def test_durations_have_no_unit_that_anybody_knows(library: str, role: str) -> None:
    stays = [timedelta(days=half) for half in HALF]
    kind = pd if library == "pandas" else pl
    table = kind.DataFrame({"age": AGES, "stay": stays})
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"], **ARGUMENTS, role: ["stay"]}
    if role == "identifiers":
        with anonspark.anonymize(table, **arguments) as release:
            assert release.manifest["warnings"][0]["attribute"] == "stay"
        return
    with pytest.raises(DataError, match=r"attributes\.stay: .* duration\[.*days or seconds"):
        anonspark.anonymize(table, **arguments)


def test_durations_in_structs() -> None:
    visits = [{"stay": timedelta(days=half), "ward": half % 2} for half in HALF]
    table = pa.table({"age": AGES, "visit": visits})
    wards = ["age", "visit.ward"]
    with anonspark.anonymize(table, quasi_identifiers=wards, **ARGUMENTS) as release:
        assert release.verify(original=table).holds
    for roles in ({"insensitive": ["visit.stay"]}, {"insensitive": ["visit"]}):
        with pytest.raises(DataError, match=r"attributes\.visit.*duration\["):
            anonspark.anonymize(table, quasi_identifiers=["age"], **roles, **ARGUMENTS)


PERSON = "Jane Doe"


def with_column(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"age": AGES}).assign(note=values)


def of_polars(data_type: Any) -> pl.DataFrame:
    return pl.DataFrame({"age": AGES, "note": pl.Series(range(ROWS)).cast(data_type)})


TABLES: dict[str, tuple[Callable[[], Any], str]] = {
    "mixed": (lambda: with_column([5] + [PERSON] * (ROWS - 1)), "objects of the types int, str"),
    "paths": (lambda: with_column([Path(PERSON)] * ROWS), "objects of the type PosixPath"),
    "sparse": (lambda: with_column(pd.arrays.SparseArray(AGES)), "values of the type Sparse"),
    "complex": (lambda: with_column(np.arange(ROWS) * 1j), "values of the type complex128"),
    "large": (lambda: with_column([10**25] * ROWS), "whole numbers of more than 64 bits"),
    "surrogates": (lambda: with_column([PERSON + "\ud800"] * ROWS), "texts that are no Unicode"),
    "Int128 of polars": (lambda: of_polars(pl.Int128), "values of the type Int128"),
    "objects of polars": (
        lambda: pl.DataFrame({"age": AGES, "note": pl.Series([{PERSON}] * ROWS, dtype=pl.Object)}),
        "values of the type Object",
    ),
}


@pytest.mark.parametrize("case", ["mixed", "surrogates", "Int128 of polars"])
def test_a_column_without_a_role(case: str) -> None:
    table = TABLES[case][0]()
    with anonspark.anonymize(table, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.to_arrow().column_names == ["age"]
        assert release.verify(original=table, population=table).holds
        assert anonspark.evaluate(release, table, progress=False).workload.median == 0
        anonspark.report(release, original=table, progress=False)
    assert anonspark.verify(table, quasi_identifiers=["age"], k=5).holds
    found = anonspark.compare(table, quasi_identifiers=["age"], **ARGUMENTS)
    assert [row["status"] for row in found.rows] == ["done"]


@pytest.mark.parametrize("case", TABLES)
def test_a_column_that_is_used_is_refused_without_its_values(case: str) -> None:
    make, kind = TABLES[case]
    table = make()
    # A profile passes over it.
    judged = {one.name: one.type for one in anonspark.profile(table, progress=False).columns}
    assert judged.keys() == {"age", "note"}
    assert judged["note"].startswith(kind)
    plan = {
        "base": {"attributes": {"age": "quasi_identifier", "note": "identifier"}},
        "subject": "note",
        "recipients": {
            "office": {"approved": "yes", "columns": ["age"]},
            "press": {"approved": "yes", "columns": ["age"]},
        },
    }
    plan["base"]["privacy"] = {"k": 5}  # type: ignore[index]
    uses: list[Callable[[], Any]] = [
        lambda: anonspark.anonymize(table, quasi_identifiers=["note"], **ARGUMENTS),
        lambda: anonspark.verify(table, quasi_identifiers=["note"]),
        lambda: anonspark.compare(table, quasi_identifiers=["note"], **ARGUMENTS),
    ]
    if case not in ("mixed", "paths", "large", "surrogates"):
        # In a plan, a column of objects of pandas is one of texts.
        uses.append(lambda: anonspark.distribute(table, plan, progress=False))
    for role in ("sensitive", "insensitive", "identifiers"):
        one: dict[str, Any] = {"quasi_identifiers": ["age"], role: ["note"], **ARGUMENTS}
        uses.append(lambda one=one: anonspark.anonymize(table, **one))  # type: ignore[misc]
    plain = with_column(AGES)
    with anonspark.anonymize(plain, quasi_identifiers=["age", "note"], **ARGUMENTS) as release:
        uses += [
            lambda: release.verify(original=table),
            lambda: release.verify(population=table),
            lambda: anonspark.evaluate(release, table, progress=False),
        ]
        for use in uses:
            with pytest.raises(DataError) as caught:
                use()
            assert f"note: found {kind}" in str(caught.value)
            assert PERSON not in "".join(traceback.format_exception(caught.value))


def test_columns_of_one_name() -> None:
    table = pd.DataFrame(zip(AGES, AGES, AGES, strict=True), columns=["age", "z", "z"])
    with anonspark.anonymize(table, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.verify(original=table).holds
    with pytest.raises(DataError, match="2 columns that Spark cannot distinguish, 'z', 'z'"):
        anonspark.anonymize(table, quasi_identifiers=["z"], **ARGUMENTS)
    with pytest.raises(DataError, match="table: has 2 columns"):
        anonspark.profile(table, progress=False)


def test_a_lazy_table_that_fails() -> None:
    lazy = pl.LazyFrame({"age": AGES, "note": [PERSON] * ROWS}).cast({"note": pl.Int64})
    with pytest.raises(DataError, match="computing the lazy LazyFrame failed with") as caught:
        anonspark.anonymize(lazy, quasi_identifiers=["age", "note"], **ARGUMENTS)
    assert PERSON not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "given", [None, "people.csv", Path("people.csv"), pl.Series([1]), pd.Series([1])]
)
def test_what_is_no_table(given: Any) -> None:
    functions: list[Callable[[], Any]] = [
        lambda: anonspark.anonymize(given, quasi_identifiers=["age"], **ARGUMENTS),
        lambda: anonspark.compare(given, quasi_identifiers=["age"], **ARGUMENTS),
        lambda: anonspark.distribute(given, {}, progress=False),
    ]
    if not isinstance(given, str | Path):
        functions.append(lambda: anonspark.profile(given, progress=False))
        functions.append(lambda: anonspark.verify(given, quasi_identifiers=["age"]))
    for function in functions:
        with pytest.raises(ConfigurationError, match=r"table: found \w+. Expected a DataFrame of"):
            function()


def test_a_batch_is_a_table() -> None:
    batch = pa.record_batch({"age": AGES})
    with anonspark.anonymize(batch, quasi_identifiers=["age"], **ARGUMENTS) as release:
        assert release.to_arrow().num_rows == ROWS
