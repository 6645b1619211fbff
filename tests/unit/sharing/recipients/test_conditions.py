"""Conditions: which records a recipient may have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from arrow_types import arrow_type
from cases import cases

from anonspark.sharing.recipients.conditions import Condition, told_conditions
from anonspark.sharing.recipients.plan_file import ConditionFile


def condition_of(keys: dict[str, Any]) -> Condition:
    return Condition("a", ConditionFile.model_validate(keys))


@cases(__file__, "keys", "values", "name", "expected")
def test_conditions(
    keys: dict[str, Any], values: list[Any], name: str, expected: list[int]
) -> None:
    condition, array = condition_of(keys), pa.array(values).cast(arrow_type(name))
    assert condition.problems(array.type) == []
    missing = np.array([one is None for one in values])
    assert condition.holds(array, missing).tolist() == expected


def test_texts_that_are_coded() -> None:
    coded = pa.array(["f", "m", None, "f"]).dictionary_encode()
    condition = condition_of({"in": ["f"]})
    missing = np.array([False, False, True, False])
    assert condition.holds(coded, missing).tolist() == [True, False, False, True]


@cases(__file__, "keys", "name", "told")
def test_conditions_that_do_not_fit(keys: dict[str, Any], name: str, told: str) -> None:
    (problem,) = condition_of(keys).problems(arrow_type(name))
    assert told in problem


def test_what_is_told_of_conditions() -> None:
    other = ConditionFile.model_validate({"in": ["x"], "missing": False})
    told = told_conditions([condition_of({"min": 3}), Condition("b", other)])
    assert told == {"a": {"min": 3}, "b": {"in": ["x"], "missing": False}}
