"""Define the columns of an input: their names and types, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.config.input import MissingColumns
from anonspark.errors import DataError

INDEX_NAMES = b"anonspark.index"
"""In the metadata of a schema: names of a DataFrame's index, which are no columns, by NUL."""


_ORDER = b"anonspark.order"


def in_order(field: pa.Field, values: Sequence[str]) -> pa.Field:
    """Return a column of texts that brings the order of its values."""
    return field.with_metadata({_ORDER: json.dumps(list(values))})


def order_of(field: pa.Field) -> tuple[str, ...]:
    """Return the values of a column in the order that it brings, or None if it brings none."""
    return tuple(json.loads((field.metadata or {}).get(_ORDER, b"[]")))


@dataclass(frozen=True)
class WantedColumns:
    """The columns of a table that are looked for in each of its files.

    Parameters
    ----------
    names : mapping of str to bool
        Each column, and whether its values are read.
    missing : str
        What becomes of one that some files lack.
    key : str or None
        The configuration's key that says so, for messages.
    skips_malformed : bool
        Whether lines of CSV that are no record are passed over, else they are errors.
    markers : tuple of str
        Texts that mean missing.
    required : tuple of str
        Columns without a value in which a record is left out, so that it decides no type.
    numbers : tuple of str
        Columns that are declared as numbers: texts in them mean missing that do so in numbers.
    where : str or None
        ``input.where``. None reads all records.
    """

    names: Mapping[str, bool]
    missing: MissingColumns = "error"
    key: str | None = None
    skips_malformed: bool = False
    markers: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    where: str | None = None

    @classmethod
    def of(cls, configuration: Configuration, *, skips_malformed: bool = False) -> WantedColumns:
        """Return the columns of the attributes, as a configuration wants them of its input."""
        return cls(
            {
                name: attribute.role != "identifier"
                for name, attribute in configuration.attributes.items()
            },
            configuration.input.missing_columns,
            "input.missing_columns",
            skips_malformed,
            tuple(configuration.input.missing_markers),
            tuple(configuration.required),
            tuple(
                n for n, attribute in configuration.attributes.items() if attribute.type == "number"
            ),
            configuration.input.where,
        )

    def asks(self, name: str) -> bool:
        """Return whether a column, or a field of it, is looked for."""
        column = name.lower()
        names = [known.lower() for known in self.names]
        return column in names or any(known.startswith(f"{column}.") for known in names)


@dataclass(frozen=True)
class Reading:
    """The reading of a column's values.

    Missing are nulls, NaN (in a text that is read as a number, too) and values that a marker means.
    A value that is missing, or that cannot be read, is null.

    Parameters
    ----------
    column : str
        Of the table.
    name : str
        Of the column with the values as they are read.
    type : pyarrow.DataType or None
        That they get: text, boolean, ``date32``, ``timestamp[us]`` (with the zone of the column, if
        it has one), ``int64``, ``float32``, ``float64`` or ``decimal128(38, ...)``. None leaves
        them as they are. Texts are read without blanks at their ends.
    markers : tuple of str
        Texts of values that mean missing.
    blanks : str
        Characters that are taken off the ends of values that become texts.
    whole : bool
        Whether floats that are whole numbers become texts without a point: 17, not 17.0.
    by_text : bool
        Whether numbers are read by way of their texts: 0.1 is one tenth.
    """

    column: str
    name: str
    type: pa.DataType | None
    markers: tuple[str, ...] = ()
    blanks: str = ""
    whole: bool = False
    by_text: bool = False

    @property
    def missing(self) -> str:
        """Name of the column that says which values are missing."""
        return f"missing_{self.name}"


def flags(booleans: pa.Array) -> npt.NDArray[np.bool_]:
    """Return booleans without nulls, of shape (n,)."""
    return np.asarray(booleans.to_numpy(zero_copy_only=False), np.bool_)


def batch_with_one_zero(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose columns have one zero and one NaN. See :func:`with_one_zero`."""
    return pa.RecordBatch.from_arrays(list(map(with_one_zero, batch.columns)), batch.schema.names)


def with_one_zero(values: pa.Array) -> pa.Array:
    """Return values whose floats are 0.0 for zeros of both signs, and one NaN, at any depth.

    They are equal, so that nothing else decides their order.
    """
    kind = values.type
    if pa.types.is_floating(kind):
        zero, nan = pa.scalar(0.0, kind), pa.scalar(float("nan"), kind)
        return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))
    if pa.types.is_list(kind):
        inner = [with_one_zero(values.values)]
        buffers = values.buffers()[:2]
        return pa.Array.from_buffers(kind, len(values), buffers, -1, values.offset, inner)
    if pa.types.is_struct(kind):
        inner = [with_one_zero(values.field(number)) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=values.is_null())
    return values


def is_text(data_type: pa.DataType) -> bool:
    """Return whether values are texts."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_number(data_type: pa.DataType) -> bool:
    """Return whether values are numbers. More than 38 digits and halves of floats no file has."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
        or pa.types.is_decimal128(data_type)
    )


def is_time(data_type: pa.DataType) -> bool:
    """Return whether values are days or points in time."""
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def time_numbers(values: pa.Array | pa.ChunkedArray | pa.Scalar) -> Any:
    """Return dates as days and timestamps as whole numbers of their unit, since 1970."""
    return values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())


def is_plain(data_type: pa.DataType) -> bool:
    """Return whether values are numbers, days, times, booleans or texts."""
    return (
        is_text(data_type)
        or is_number(data_type)
        or is_time(data_type)
        or bool(pa.types.is_boolean(data_type))
    )


def is_hashable(data_type: pa.DataType) -> bool:
    """Return whether values can be distinguished by hashes, which those of maps cannot."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return is_hashable(data_type.value_type)
    if pa.types.is_struct(data_type):
        return all(is_hashable(field.type) for field in data_type)
    return not (pa.types.is_map(data_type) or pa.types.is_null(data_type))


def is_publishable(data_type: pa.DataType) -> bool:
    """Return whether values of a type can be hashed, compared and written."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return is_publishable(data_type.value_type)
    if pa.types.is_struct(data_type):
        return all(is_publishable(field.type) for field in data_type)
    return is_plain(data_type) or bool(pa.types.is_binary(data_type))


def is_readable(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of one type can be read as another. See :class:`Reading`."""
    if is_text(target):
        return is_plain(stored) or bool(pa.types.is_null(stored))
    if is_text(stored):
        return is_plain(target)
    return any(of(stored) and of(target) for of in (is_number, is_time, pa.types.is_boolean))


def type_name(data_type: pa.DataType) -> str:
    """Return the name of a type as users know it, from SQL."""
    for of, name in _NAMES:
        if of(data_type):
            return name
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "timestamp" if data_type.tz else "timestamp_ntz"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"array<{type_name(data_type.value_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)},{type_name(data_type.item_type)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in data_type)}>"
    return str(data_type)


_NAMES = (
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (is_text, "string"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_null, "void"),
)


def require_distinct(columns: Sequence[str], names: Iterable[str], subject: str) -> None:
    """Check that each column can be named: that no other has its name, but for case.

    Files cannot have two such columns. Tables that are given, as those of a join, can.

    Parameters
    ----------
    columns : sequence of str
        Of the table.
    names : iterable of str
        Those to be used.
    subject : str
        What messages call the table.

    Raises
    ------
    DataError
        Naming each column that is there more than once.
    """
    alike: dict[str, list[str]] = {}
    for column in columns:
        alike.setdefault(column.lower(), []).append(column)
    problems = []
    for name in dict.fromkeys(names):
        forms = alike.get(name.lower(), [])
        if len(forms) > 1:
            problems.append(
                f"{subject}: has {len(forms)} columns that Spark cannot distinguish, "
                f"{', '.join(map(repr, forms))}. Expected one of the name {name!r}, whatever the "
                "case of its letters. Drop or rename the others"
            )
    if problems:
        raise DataError(*problems)


def require_distinct_header(
    header: Sequence[str | None], selection: WantedColumns | None, subject: str
) -> None:
    """Check that no names of a CSV file's first line differ in the case of letters alone.

    Readers would add numbers to the names of such columns.

    Parameters
    ----------
    header : sequence of str or None
    selection : WantedColumns or None
        Columns that are looked for. None for all of them.
    subject : str
        What messages call the table.

    Raises
    ------
    DataError
        Naming the columns.
    """
    used = None if selection is None else {name.lower() for name in selection.names}
    alike: dict[str, dict[str, int]] = {}
    for index, name in enumerate(header):
        if name:
            alike.setdefault(name.lower(), {}).setdefault(name, index)
    names = [
        next(iter(forms))
        for lower, forms in alike.items()
        # Columns of the very same name have their places behind it.
        if (used is not None and lower in used)
        or (
            len(forms) > 1
            and (used is None or any(f"{lower}{index}" in used for index in forms.values()))
        )
    ]
    require_distinct([name for name in header if name], names, subject)


class UnreadType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column whose values cannot be read. A column that is not used may have it.

    Parameters
    ----------
    kind : str
        What its values are, as messages say it. No value is in it.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(pa.null(), "anonspark.unread")

    def __str__(self) -> str:
        """Return the kind."""
        return self.kind

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the kind."""
        return self.kind.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> UnreadType:
        """Return the type of a kind."""
        return cls(serialized.decode())


def unread_column(kind: str, rows: int) -> pa.Array:
    """Return a column whose values cannot be read."""
    return pa.ExtensionArray.from_storage(UnreadType(kind), pa.nulls(rows))


def unread(name: str, data_type: pa.DataType) -> str:
    """Return the error that a column cannot be read."""
    return (
        f"{name}: found {data_type}, which cannot be read. Expected a column of numbers, dates, "
        "timestamps, booleans or texts, all of one type. Convert it, or leave it out"
    )


def require_read(schema: pa.Schema, names: Iterable[str], subject: str = "") -> None:
    """Check that the values of columns can be read. Those that are not there are passed over.

    Parameters
    ----------
    schema : pyarrow.Schema
    names : iterable of str
        Those to be used.
    subject : str
        What messages say before the name of a column.

    Raises
    ------
    DataError
        Naming each column, and what its values are.
    """
    used = set(names)
    problems = [
        f"{subject}{unread(field.name, field.type)}"
        for field in schema
        if field.name in used and isinstance(field.type, UnreadType)
    ]
    if problems:
        raise DataError(*problems)
