"""Conditions: which records a recipient may have, judged batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.problems import found
from anonspark.core.arrays import Flags
from anonspark.engine.raw_columns import is_number, is_text, is_time, type_name
from anonspark.engine.values.file_types import INSTANT
from anonspark.engine.values.value_texts import parse
from anonspark.sharing.recipients.plan_file import ConditionFile

Value = str | int | float | bool

_BLANKS = " "


@dataclass(frozen=True)
class Condition:
    """The values of a recipient's records in one column.

    Parameters
    ----------
    column : str
    asked : ConditionFile
        As the plan says it.
    """

    column: str
    asked: ConditionFile

    @property
    def type_of_texts(self) -> pa.DataType | None:
        """The type that values without one are read as: that of the plan's. None for texts."""
        values = self._values()
        largest = max((abs(value) for value in values if isinstance(value, int)), default=0)
        # No float has all whole numbers beyond.
        exact = pa.decimal128(38, 0) if 2**53 < largest < 10**38 else pa.float64()
        types = (pa.bool_(), exact, INSTANT)
        fits = (own for own in types if all(_typed(value, own) is not None for value in values))
        return next(fits, None) if values else None

    def problems(self, data_type: pa.DataType) -> list[str]:
        """Return what is wrong with the condition for a column of a type.

        Parameters
        ----------
        data_type : pyarrow.DataType
            That the column's values are read as.
        """
        low, high = self.asked.min, self.asked.max
        bounded = low is not None or high is not None
        if bounded and not (is_number(data_type) or is_time(data_type)):
            return [
                f"found min or max, but the column has type {type_name(data_type)}. Expected a "
                "number, date or timestamp. Use in or not_in"
            ]
        problems = []
        for value in self._values():
            if _typed(value, data_type) is None:
                problems.append(
                    f"found {found(value)}, but the column has type {type_name(data_type)}. "
                    f"Expected {_expected(data_type)}"
                )
        if not problems and low is not None and high is not None:
            low, high = _typed(low, data_type), _typed(high, data_type)
            if low > high:
                problems.append("found a min above max. Expected at most max. Correct one of them")
        return problems

    def _values(self) -> list[Value]:
        asked = self.asked
        bounds = [one for one in (asked.min, asked.max) if one is not None]
        return [*(asked.among or ()), *(asked.not_in or ()), *bounds]

    def holds(self, values: pa.Array, missing: Flags) -> Flags:
        """Return which records satisfy the condition.

        Parameters
        ----------
        values : pyarrow.Array of shape (n,)
            Of the type that :meth:`problems` was asked about. Null where they are missing.
        missing : bool ndarray of shape (n,)

        Returns
        -------
        bool ndarray of shape (n,)
            A missing value satisfies ``missing`` and ``not_in`` only.
        """
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if is_text(values.type):
            values = pc.utf8_trim(values, _BLANKS)
        asked, there = self.asked, ~missing & values.is_valid().to_numpy(zero_copy_only=False)
        holds = np.ones(len(values), bool)
        if asked.missing is not None:
            holds &= missing == asked.missing
        if asked.among is not None:
            holds &= there & self._is_in(values, asked.among)
        if asked.not_in is not None:
            holds &= ~(there & self._is_in(values, asked.not_in))
        for bound, compare in ((asked.min, pc.greater_equal), (asked.max, pc.less_equal)):
            if bound is not None:
                of = pa.scalar(_typed(bound, values.type))
                found_flags = pc.fill_null(compare(values, of), False)
                holds &= there & found_flags.to_numpy(zero_copy_only=False)
        return holds

    def _is_in(self, values: pa.Array, wanted: Sequence[Value]) -> Flags:
        found_flags = np.zeros(len(values), bool)
        for value in wanted:
            equal = pc.fill_null(pc.equal(values, pa.scalar(_typed(value, values.type))), False)
            found_flags |= equal.to_numpy(zero_copy_only=False)
        return found_flags


def told_conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, Any]]:
    """Return conditions as ledger and manifest write them."""
    return {
        one.column: one.asked.model_dump(by_alias=True, exclude_none=True) for one in conditions
    }


def _typed(value: Value, data_type: pa.DataType) -> Any:
    """Return a value of YAML as one of a column's type, None where it is none."""
    if is_text(data_type):
        return value.strip(_BLANKS) if isinstance(value, str) else None
    if pa.types.is_boolean(data_type):
        return value if isinstance(value, bool) else None
    if is_number(data_type):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        # As it is written: a decimal of 0.1 is one tenth.
        return Decimal(repr(value)) if pa.types.is_decimal(data_type) else value
    if is_time(data_type):
        return _time(value, data_type)
    return None


def _time(value: Value, data_type: pa.DataType) -> date | datetime | None:
    if not isinstance(value, str):
        return None
    if pa.types.is_date(data_type):
        read = parse(pa.array([value]), pa.date32())
    else:
        read = parse(pa.array([value]), pa.timestamp("us", data_type.tz))
    found_time: date | datetime | None = read[0].as_py()
    return found_time


def _expected(data_type: pa.DataType) -> str:
    if is_text(data_type):
        return "a text. Put it in quotes"
    if pa.types.is_boolean(data_type):
        return "true or false"
    if is_number(data_type):
        return "a number. Correct it"
    if is_time(data_type):
        return "a date as 2026-11-23, or a time as 2026-11-23 08:00:00. Correct it"
    return "no condition on a column of this type. Remove it"
