"""Conditions: which records a recipient may have."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonspark.recipients.conditions import Condition, told_conditions


def holds(condition: Condition, values: list[Any], data_type: pa.DataType) -> list[bool]:
    assert condition.problems(data_type) == []
    array = pa.array(values, data_type)
    missing = np.array([one is None for one in values])
    return condition.holds(array, missing).tolist()


@pytest.mark.parametrize(
    ("condition", "values", "data_type", "expected"),
    [
        (Condition("a", among=("f",)), ["f", " f ", "F", None], pa.string(), [1, 1, 0, 0]),
        (Condition("a", not_among=("f",)), ["f", "m", None], pa.string(), [0, 1, 1]),
        (Condition("a", low=3), [2, 3, 4, None], pa.int32(), [0, 1, 1, 0]),
        (Condition("a", high=3), [2, 3, 4, None], pa.int64(), [1, 1, 0, 0]),
        (Condition("a", low=2.5, high=3), [2, 3, 4], pa.int64(), [0, 1, 0]),
        (Condition("a", missing=True), [2, None], pa.int64(), [0, 1]),
        (Condition("a", missing=False), [2, None], pa.int64(), [1, 0]),
        (Condition("a", missing=False, high=2), [2, 3, None], pa.int64(), [1, 0, 0]),
        (Condition("a", among=(True,)), [True, False, None], pa.bool_(), [1, 0, 0]),
        (
            Condition("a", among=(0.1,)),
            [Decimal("0.1"), Decimal("0.2")],
            pa.decimal128(5, 2),
            [1, 0],
        ),
        (
            Condition("a", low="2025-03-01"),
            [date(2025, 2, 28), date(2025, 3, 1)],
            pa.date32(),
            [0, 1],
        ),
        (
            Condition("a", high="2025-03-01 08:00:00"),
            [datetime(2025, 3, 1, 8), datetime(2025, 3, 1, 8, 0, 1)],
            pa.timestamp("us"),
            [1, 0],
        ),
    ],
)
def test_conditions(
    condition: Condition, values: list[Any], data_type: pa.DataType, expected: list[int]
) -> None:
    assert holds(condition, values, data_type) == [bool(one) for one in expected]


def test_texts_that_are_coded() -> None:
    coded = pa.array(["f", "m", None, "f"]).dictionary_encode()
    condition = Condition("a", among=("f",))
    missing = np.array([False, False, True, False])
    assert condition.holds(coded, missing).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("condition", "data_type", "told"),
    [
        (Condition("a", low=3), pa.string(), "found min or max, but the column has type string"),
        (Condition("a", among=(2025,)), pa.string(), "expected a text; put it in quotes"),
        (Condition("a", among=("x",)), pa.int64(), "expected a number"),
        (Condition("a", among=(True,)), pa.int64(), "expected a number"),
        (Condition("a", among=(1,)), pa.bool_(), "expected true or false"),
        (Condition("a", low="soon"), pa.date32(), "expected a date as 2026-11-23"),
        (Condition("a", low=4, high=3), pa.int64(), "found a min above max"),
        (Condition("a", among=("x",)), pa.list_(pa.string()), "no condition on a column"),
    ],
)
def test_conditions_that_do_not_fit(
    condition: Condition, data_type: pa.DataType, told: str
) -> None:
    (problem,) = condition.problems(data_type)
    assert told in problem


def test_what_is_told_of_conditions() -> None:
    told = told_conditions([Condition("a", low=3), Condition("b", among=("x",), missing=False)])
    assert told == {"a": {"min": 3}, "b": {"in": ["x"], "missing": False}}
