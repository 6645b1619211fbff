"""Conditions: which records a recipient may have, judged batch by batch.

A plan's source is divided by them, and so is the original that a recipient's release is matched
with, by what the manifest says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from anonspark.config.problems import Finding, in_words
from anonspark.config.section import Section
from anonspark.core.arrays import Flags
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, flags, is_number, is_text, is_time, type_name
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import INSTANT
from anonspark.engine.values.value_texts import parse, plain, read_values
from anonspark.errors import DataError

Value = str | int | float | bool

_Scalar = Annotated[Value, Field(union_mode="left_to_right")]

_BLANKS = " "


class ConditionFile(Section):
    """What the records of a recipient have in one column."""

    among: Annotated[list[_Scalar], Field(min_length=1)] | None = Field(default=None, alias="in")
    """Values, one of which the column has."""

    not_in: Annotated[list[_Scalar], Field(min_length=1)] | None = None
    """Values, none of which the column has. It may be missing."""

    min: _Scalar | None = None
    """Smallest value, included."""

    max: _Scalar | None = None
    """Largest value, included."""

    missing: bool | None = None
    """Whether the value is missing."""

    def _problems(self) -> Iterator[Finding]:
        if not self.model_fields_set:
            yield Finding(
                (), "found an empty mapping. Expected in, not_in, min, max or missing. Add one"
            )


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

    def _values(self) -> list[Value]:
        asked = self.asked
        bounds = [bound for bound in (asked.min, asked.max) if bound is not None]
        return [*(asked.among or ()), *(asked.not_in or ()), *bounds]

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
                    f"found {in_words(value)}, but the column has type {type_name(data_type)}. "
                    f"Expected {_expected(data_type)}"
                )
        if not problems and low is not None and high is not None:
            low, high = _typed(low, data_type), _typed(high, data_type)
            if low > high:
                problems.append("found a min above max. Expected at most max. Correct one of them")
        return problems

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
                is_within = compare(values, pa.scalar(_typed(bound, values.type)))
                holds &= there & flags(pc.fill_null(is_within, False))
        return holds

    def _is_in(self, values: pa.Array, wanted: Sequence[Value]) -> Flags:
        found_flags = np.zeros(len(values), bool)
        for value in wanted:
            equal = pc.equal(values, pa.scalar(_typed(value, values.type)))
            found_flags |= flags(pc.fill_null(equal, False))
        return found_flags


def read_column(
    column: pa.Array, read_as: pa.DataType | None, markers: tuple[str, ...]
) -> tuple[pa.Array, Flags]:
    """Return the values of a column, and which are missing, as :meth:`Condition.holds` takes them.

    Parameters
    ----------
    column : pyarrow.Array
    read_as : pyarrow.DataType or None
        What texts are read as. None where they are left.
    markers : tuple of str
        Texts that mean missing.
    """
    values, missing = read_values(Reading("", "", read_as, markers), plain(column))
    return values, flags(missing)


def told_conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, Any]]:
    """Return conditions as ledger and manifest write them."""
    return {
        one.column: one.asked.model_dump(by_alias=True, exclude_none=True) for one in conditions
    }


# In an original without the configuration of its plan, texts are read as what conditions compare.
_OF_TEXTS = (pa.float64(), pa.timestamp("us"), pa.bool_())


def select_records(table: Table, conditions: Mapping[str, Any], markers: Iterable[str]) -> Table:
    """Return the records of an original that satisfy conditions as a manifest writes them.

    Raises
    ------
    DataError
        If the original lacks a column of theirs, or it has another type.
    """
    asked = []
    for name, stated in conditions.items():
        condition = Condition(name, ConditionFile.model_validate(stated))
        found_type = table.schema.field(name).type if name in table.schema.names else pa.null()
        types = [found_type, *(_OF_TEXTS if is_text(found_type) else [pa.string()])]
        fitting = [each for each in types if not condition.problems(each)]
        if pa.types.is_null(found_type) or not fitting:
            raise DataError(
                f"original: column {name!r} is not there, or has another type than the values of "
                "recipient.where in the manifest. Give the source of the plan"
            )
        asked.append((condition, fitting[0]))
    select = partial(_select_records, asked, tuple(markers))
    return table.map_batches(select, table.schema) if asked else table


def _select_records(
    asked: Sequence[tuple[Condition, pa.DataType]], markers: tuple[str, ...], batches: Batches
) -> Batches:
    """Yield the records that satisfy conditions, of columns that are read as some type."""
    for batch in batches:
        holds = np.ones(len(batch), bool)
        for condition, read_as in asked:
            column = batch.column(condition.column)
            holds &= condition.holds(*read_column(column, read_as, markers))
        yield batch.filter(pa.array(holds))


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
    if is_time(data_type) and isinstance(value, str):
        is_day = pa.types.is_date(data_type)
        read_as = pa.date32() if is_day else pa.timestamp("us", data_type.tz)
        return parse(pa.array([value]), read_as)[0].as_py()
    return None


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
