"""Columns of tables in memory whose types no file has: what they may be, and what is said."""

from __future__ import annotations

import uuid
from datetime import time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anonspark
from anonspark.errors import DataError

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
