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
    """The values of a recipient's records in one column, ``asked`` as the plan has them.

    >>> import numpy as np, pyarrow as pa
    >>> adults = Condition("age", ConditionFile(min=18))
    >>> adults.holds(pa.array([17, 18, None]), np.array([False, False, True])).tolist()
    [False, True, False]
    """

    column: str
    asked: ConditionFile

    @property
    def type_of_texts(self) -> pa.DataType | None:
        """The type that texts of the column are read as: that of the plan's values. None for texts.

        >>> str(Condition("age", ConditionFile(min=18)).type_of_texts)
        'double'
        """
        values = self._values()
        largest = max((abs(value) for value in values if isinstance(value, int)), default=0)
        # Beyond 2**53 floats skip whole numbers.
        exact = pa.decimal128(38, 0) if 2**53 < largest < 10**38 else pa.float64()
        types = (pa.bool_(), exact, INSTANT)
        fits = (kind for kind in types if all(_typed(value, kind) is not None for value in values))
        return next(fits, None) if values else None

    def _values(self) -> list[Value]:
        """List all values of the condition, bounds last."""
        options = self.asked
        bounds = [bound for bound in (options.min, options.max) if bound is not None]
        return [*(options.among or ()), *(options.not_in or ()), *bounds]

    def problems(self, data_type: pa.DataType) -> list[str]:
        """Explain why a column of a type cannot be compared with the condition.

        >>> Condition("age", ConditionFile(min=18)).problems(pa.string())[0][:47]
        'found min or max, but the column has type strin'
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
        """Return which records satisfy the condition, a bool ndarray of shape (n,).

        Values are of a type without :meth:`problems`, and null if missing. A missing value only
        satisfies ``missing`` and ``not_in``.
        """
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if is_text(values.type):
            values = pc.utf8_trim(values, _BLANKS)
        options, present = self.asked, ~missing & values.is_valid().to_numpy(zero_copy_only=False)
        holds = np.ones(len(values), bool)
        if options.missing is not None:
            holds &= missing == options.missing
        if options.among is not None:
            holds &= present & self._is_in(values, options.among)
        if options.not_in is not None:
            holds &= ~(present & self._is_in(values, options.not_in))
        for bound, compare in ((options.min, pc.greater_equal), (options.max, pc.less_equal)):
            if bound is not None:
                is_within = compare(values, pa.scalar(_typed(bound, values.type)))
                holds &= present & flags(pc.fill_null(is_within, False))
        return holds

    def _is_in(self, values: pa.Array, accepted: Sequence[Value]) -> Flags:
        """Return which values are equal to one of the plan's."""
        is_equal = np.zeros(len(values), bool)
        for value in accepted:
            equal = pc.equal(values, pa.scalar(_typed(value, values.type)))
            is_equal |= flags(pc.fill_null(equal, False))
        return is_equal


def read_column(
    column: pa.Array, read_as: pa.DataType | None, markers: tuple[str, ...]
) -> tuple[pa.Array, Flags]:
    """Read a column for :meth:`Condition.holds`: its values, and which are missing.

    Texts are read as a type, or left if it is None. Markers are the texts that mean missing.
    """
    values, missing = read_values(Reading("", "", read_as, markers), plain(column))
    return values, flags(missing)


def stated_conditions(conditions: Sequence[Condition]) -> dict[str, dict[str, Any]]:
    """Write conditions as a ledger and a manifest have them.

    >>> stated_conditions([Condition("sex", ConditionFile.model_validate({"in": ["f"]}))])
    {'sex': {'in': ['f']}}
    """
    dump = partial(ConditionFile.model_dump, by_alias=True, exclude_none=True)
    return {condition.column: dump(condition.asked) for condition in conditions}


# A manifest lacks the types of its plan: texts of an original are read as conditions compare.
_OF_TEXTS = (pa.float64(), pa.timestamp("us"), pa.bool_())


def select_records(table: Table, conditions: Mapping[str, Any], markers: Iterable[str]) -> Table:
    """Select the records of an original that satisfy the conditions of a manifest. Lazy.

    Raises DataError if the original lacks one of their columns, or it has another type.
    """
    readable = []
    for name, stated in conditions.items():
        condition = Condition(name, ConditionFile.model_validate(stated))
        column_type = table.schema.field(name).type if name in table.schema.names else pa.null()
        types = [column_type, *(_OF_TEXTS if is_text(column_type) else [pa.string()])]
        fitting = [data_type for data_type in types if not condition.problems(data_type)]
        if pa.types.is_null(column_type) or not fitting:
            raise DataError(
                f"original: column {name!r} is not there, or has another type than the values of "
                "recipient.where in the manifest. Give the source of the plan"
            )
        readable.append((condition, fitting[0]))
    select = partial(_select_records, readable, tuple(markers))
    return table.map_batches(select, table.schema) if readable else table


def _select_records(
    conditions: Sequence[tuple[Condition, pa.DataType]], markers: tuple[str, ...], batches: Batches
) -> Batches:
    """Yield the records that satisfy all conditions, each with the type its column is read as."""
    for batch in batches:
        holds = np.ones(len(batch), bool)
        for condition, read_as in conditions:
            column = batch.column(condition.column)
            holds &= condition.holds(*read_column(column, read_as, markers))
        yield batch.filter(pa.array(holds))


def _typed(value: Value, data_type: pa.DataType) -> Any:
    """Convert a value of YAML to the type of a column, or return None if it has another type.

    >>> _typed(0.1, pa.decimal128(10, 2)), _typed("old", pa.int64())
    (Decimal('0.1'), None)
    """
    if is_text(data_type):
        return value.strip(_BLANKS) if isinstance(value, str) else None
    if pa.types.is_boolean(data_type):
        return value if isinstance(value, bool) else None
    if is_number(data_type):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        # By its digits: 0.1 is one tenth, not the nearest float.
        return Decimal(repr(value)) if pa.types.is_decimal(data_type) else value
    if is_time(data_type) and isinstance(value, str):
        is_day = pa.types.is_date(data_type)
        read_as = pa.date32() if is_day else pa.timestamp("us", data_type.tz)
        return parse(pa.array([value]), read_as)[0].as_py()
    return None


def _expected(data_type: pa.DataType) -> str:
    """Say in words which values a column of a type is compared with.

    >>> _expected(pa.bool_())
    'true or false'
    """
    if is_text(data_type):
        return "a text. Put it in quotes"
    if pa.types.is_boolean(data_type):
        return "true or false"
    if is_number(data_type):
        return "a number. Correct it"
    if is_time(data_type):
        return "a date as 2026-11-23, or a time as 2026-11-23 08:00:00. Correct it"
    return "no condition on a column of this type. Remove it"
