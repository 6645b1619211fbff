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
"""Key of a schema's metadata: the names of a DataFrame's index, which are no columns, with NUL
between them."""


_ORDER = b"anonspark.order"


def in_order(field: pa.Field, values: Sequence[str]) -> pa.Field:
    """Return a column of texts whose metadata have the order of its values.

    >>> order_of(in_order(pa.field("size", pa.string()), ["S", "M", "L"]))
    ('S', 'M', 'L')
    """
    return field.with_metadata({_ORDER: json.dumps(list(values))})


def order_of(field: pa.Field) -> tuple[str, ...]:
    """Return the values of a column in the order that its metadata have, or none without one."""
    return tuple(json.loads((field.metadata or {}).get(_ORDER, b"[]")))


@dataclass(frozen=True)
class WantedColumns:
    """The columns of a table that each of its files should have.

    ``names`` says of each column whether its values are read, and ``missing`` what to do if a file
    lacks one, by the configuration's ``key``. ``markers`` are texts that mean missing. Lines of CSV
    that are no record are errors, unless ``skips_malformed``. A record without a value of a
    ``required`` column is left out, and so decides no type. ``numbers`` are declared as numbers, so
    that texts which mean missing among numbers do so in them. ``declared`` have any type
    declared. ``where`` is ``input.where``, or None if all records are read.
    """

    names: Mapping[str, bool]
    missing: MissingColumns = "error"
    key: str | None = None
    skips_malformed: bool = False
    markers: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    where: str | None = None

    @classmethod
    def of(cls, configuration: Configuration, *, skips_malformed: bool = False) -> WantedColumns:
        """Return the columns of a configuration's attributes."""
        attributes = configuration.attributes.items()
        return cls(
            {name: attribute.role != "identifier" for name, attribute in attributes},
            configuration.input.missing_columns,
            "input.missing_columns",
            skips_malformed,
            tuple(configuration.input.missing_markers),
            tuple(configuration.required),
            tuple(name for name, attribute in attributes if attribute.type == "number"),
            tuple(name for name, attribute in attributes if attribute.type),
            configuration.input.where,
        )

    def asks(self, name: str) -> bool:
        """Return whether a column, or a field of it, is wanted.

        >>> WantedColumns({"address.city": True}).asks("Address")
        True
        """
        column, names = name.lower(), list(map(str.lower, self.names))
        return column in names or any(inner.startswith(f"{column}.") for inner in names)


@dataclass(frozen=True)
class Reading:
    """The reading of a column's values.

    Missing are nulls, NaN (also in texts that are read as numbers) and values whose text is a
    marker. A value that is missing, or that cannot be read, becomes null.

    Parameters
    ----------
    column : str
        Name of the column in the table.
    name : str
        Name of the column with the values that were read.
    type : pyarrow.DataType or None
        Their type: text, boolean, ``date32``, ``timestamp[us]`` (with the zone of the column, if it
        has one), ``int64``, ``float32``, ``float64`` or ``decimal128(38, ...)``. None leaves them
        unchanged. Texts are read without blanks at their ends.
    markers : tuple of str
        Texts that mean missing.
    blanks : str
        Characters to strip from values that become texts.
    whole : bool
        Whether floats that are whole numbers become texts without a point: 17, not 17.0.
    by_text : bool
        Whether floats are read by way of their texts, so that 0.1 is one tenth.
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
        """Return the name of the column that says which values are missing."""
        return f"missing_{self.name}"


def flags(booleans: pa.Array) -> npt.NDArray[np.bool_]:
    """Convert booleans without nulls to NumPy, bool (n,).

    >>> flags(pa.array([True, False])).tolist()
    [True, False]
    """
    return np.asarray(booleans.to_numpy(zero_copy_only=False), np.bool_)


def batch_with_one_zero(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Normalize the floats of all columns of a batch. See :func:`with_one_zero`."""
    return pa.RecordBatch.from_arrays(list(map(with_one_zero, batch.columns)), batch.schema.names)


def with_one_zero(values: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0 and every NaN by the same NaN, at any depth.

    The replaced values are equal to the others, but their bytes would change hashes and orders.

    >>> with_one_zero(pa.array([-0.0, 1.5])).to_pylist()
    [0.0, 1.5]
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
    """Return whether a type is one of texts.

    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_bytes(data_type: pa.DataType) -> bool:
    """Return whether a type is one of texts or bytes.

    >>> is_bytes(pa.string()), is_bytes(pa.binary()), is_bytes(pa.binary(4))
    (True, True, False)
    """
    return (
        is_text(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type)
    )


def is_number(data_type: pa.DataType) -> bool:
    """Return whether a type is one of numbers that files have: no float16 and no decimal256."""
    kinds = pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_decimal128
    return any(is_kind(data_type) for is_kind in kinds)


def is_time(data_type: pa.DataType) -> bool:
    """Return whether a type is one of days or moments."""
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def time_numbers(values: pa.Array | pa.ChunkedArray | pa.Scalar) -> Any:
    """Convert dates to days and timestamps to whole numbers of their unit, since 1970.

    >>> time_numbers(pa.scalar(31, pa.date32())).as_py()
    31
    """
    return values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())


def is_plain(data_type: pa.DataType) -> bool:
    """Return whether a type is one of numbers, days, moments, booleans or texts."""
    kinds = is_text, is_number, is_time, pa.types.is_boolean
    return any(is_kind(data_type) for is_kind in kinds)


def is_hashable(data_type: pa.DataType) -> bool:
    """Return whether hashes can distinguish the values of a type: those of maps they cannot.

    >>> is_hashable(pa.list_(pa.string())), is_hashable(pa.map_(pa.string(), pa.int64()))
    (True, False)
    """
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
    """Return whether values of a stored type can be read as another one. See :class:`Reading`.

    >>> is_readable(pa.string(), pa.int64()), is_readable(pa.bool_(), pa.int64())
    (True, False)
    """
    if is_text(target):
        return is_plain(stored) or bool(pa.types.is_null(stored))
    if is_text(stored):
        return is_plain(target)
    return any(of(stored) and of(target) for of in (is_number, is_time, pa.types.is_boolean))


def type_name(data_type: pa.DataType) -> str:
    """Return the name of a type in SQL.

    >>> type_name(pa.list_(pa.int32())), type_name(pa.struct({"city": pa.string()}))
    ('array<int>', 'struct<city:string>')
    """
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
    """Raise DataError if a table has several columns with one of some names, in any case.

    Files cannot have such columns, but DataFrames can, for instance after a join. ``subject`` names
    the table in messages.
    """
    by_lower: dict[str, list[str]] = {}
    for column in columns:
        by_lower.setdefault(column.lower(), []).append(column)
    forms_by_name = {name: by_lower.get(name.lower(), []) for name in names}
    problems = [
        f"{subject}: has {len(forms)} columns of one name, {', '.join(map(repr, forms))}. "
        f"Expected one of the name {name!r}, whatever the case of its letters. Drop or rename the "
        "others"
        for name, forms in forms_by_name.items()
        if len(forms) > 1
    ]
    if problems:
        raise DataError(*problems)


def require_distinct_header(
    header: Sequence[str | None], selection: WantedColumns | None, subject: str
) -> None:
    """Raise DataError if wanted names in a CSV header only differ in the case of letters.

    Readers would add numbers to such names. All columns are wanted if ``selection`` is None.
    ``subject`` names the table in messages.
    """
    used = None if selection is None else {name.lower() for name in selection.names}
    by_lower: dict[str, dict[str, int]] = {}
    for index, name in enumerate(header):
        if name:
            by_lower.setdefault(name.lower(), {}).setdefault(name, index)
    names = [
        next(iter(forms))
        for lower, forms in by_lower.items()
        # Readers put the index of a column behind a name that is there already.
        if used is None
        or lower in used
        or (len(forms) > 1 and any(f"{lower}{index}" in used for index in forms.values()))
    ]
    require_distinct([name for name in header if name], names, subject)


class UnreadType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column whose values cannot be read, as long as it is not used.

    ``kind`` says in words what they are, without a value.
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
    """Raise DataError for each of some columns whose values cannot be read, if a schema has it.

    ``subject`` stands before the name of a column in messages.
    """
    used = set(names)
    problems = [
        f"{subject}{unread(field.name, field.type)}"
        for field in schema
        if field.name in used and isinstance(field.type, UnreadType)
    ]
    if problems:
        raise DataError(*problems)
