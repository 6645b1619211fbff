"""One row for all rows that are equal in some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["count", "sum", "min", "max", "xor", "list"]

_HASH_SUM = pa.decimal128(38, 0)


@dataclass(frozen=True)
class Aggregate:
    """A figure of each group.

    Parameters
    ----------
    name : str
        Of its column.
    kind : str
    column : str
        That it is of; of counts any.
    type : pyarrow.DataType
    """

    name: str
    kind: Kind
    column: str
    type: pa.DataType

    @property
    def merged(self) -> Aggregate:
        """The same of rows that are figures of parts of the groups already."""
        return Aggregate(
            self.name, "sum" if self.kind == "count" else self.kind, self.name, self.type
        )


def aggregates_of(
    schema: pa.Schema,
    *,
    count: str | None,
    sums: Sequence[str],
    least: Sequence[str],
    most: Sequence[str],
    hashes: str | None,
    lists: Sequence[str],
) -> list[Aggregate]:
    """Return the figures that :meth:`anonspark.engine.protocol.Table.add_up` promises, in order."""
    types = {field.name: field.type for field in schema}
    wanted = [] if count is None else [Aggregate(count, "count", "", pa.int64())]
    wanted += [Aggregate(name, "sum", name, _sum_type(types[name])) for name in sums]
    wanted += [Aggregate(name, "min", name, types[name]) for name in least]
    wanted += [Aggregate(name, "max", name, types[name]) for name in most]
    if hashes is not None:
        wanted.append(Aggregate(f"{hashes}_sum", "sum", hashes, _HASH_SUM))
        wanted.append(Aggregate(f"{hashes}_xor", "xor", hashes, pa.int64()))
    return wanted + [Aggregate(name, "list", name, pa.list_(types[name])) for name in lists]


def _sum_type(own: pa.DataType) -> pa.DataType:
    """Return the type of a sum, as SQL has it."""
    if pa.types.is_integer(own) or pa.types.is_boolean(own):
        return pa.int64()
    if pa.types.is_decimal(own):
        return pa.decimal128(min(own.precision + 10, 38), own.scale)
    return pa.float64()


def aggregate(rows: pa.Table, by: Sequence[str], wanted: Sequence[Aggregate]) -> pa.Table:
    """Return the figures of each group, in the order in which the groups come first.

    Parameters
    ----------
    rows : pyarrow.Table
    by : sequence of str
        None for one row of all, also where there are no rows.
    wanted : sequence of Aggregate
    """
    if not by:
        return pa.table({one.name: pa.array([_of_all(rows, one)], one.type) for one in wanted})
    keys = {f"key_{place}": comparable(rows.column(name)) for place, name in enumerate(by)}
    values = {f"value_{place}": _value(rows, one) for place, one in enumerate(wanted)}
    numbers = pa.array(np.arange(len(rows)))
    table = pa.table({**keys, **values, "row": numbers})
    asked = [("row", "min")]
    apart = []
    for place, one in enumerate(wanted):
        if one.kind == "count":
            asked.append((f"value_{place}", "count"))
        elif one.kind in ("sum", "min", "max") and not pa.types.is_nested(one.type):
            asked.append((f"value_{place}", one.kind))
        else:
            apart.append(one)
    if apart:
        asked.append(("row", "list"))
    found = table.group_by(list(keys), use_threads=False).aggregate(asked)
    first = found["row_min"]
    columns = {
        name: (
            keys[key] if pa.types.is_floating(rows.column(name).type) else rows.column(name)
        ).take(first)
        for key, name in zip(keys, by, strict=True)
    }
    members = found["row_list"].combine_chunks() if apart else None
    for place, one in enumerate(wanted):
        columns[one.name] = (
            _of_members(rows.column(one.column), members, one)
            if members is not None and one in apart
            else found[f"value_{place}_{one.kind}"].cast(one.type)
        )
    return pa.table(columns)


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that are equal in their bytes where those of a column are equal.

    Zeros are one, whatever their sign; of nested values it is their number.
    """
    own = column.type
    if pa.types.is_dictionary(own):
        return comparable(column.cast(own.value_type))
    if pa.types.is_floating(own):
        positive = pc.add(column, pa.scalar(0, own))
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), own), positive)
    if pa.types.is_nested(own):
        seen: dict[str, int] = {}
        codes = [seen.setdefault(repr(value), len(seen)) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(codes, pa.int64())])
    if pa.types.is_null(own):
        return pa.chunked_array([pa.nulls(len(column), pa.int8())])
    return column


def _value(rows: pa.Table, one: Aggregate) -> pa.ChunkedArray:
    """Return what Arrow adds up for a figure; anything but nulls where it only counts."""
    if one.kind == "sum":
        # Wide enough before it is added up.
        wide = pa.decimal128(38, one.type.scale) if pa.types.is_decimal(one.type) else one.type
        return rows.column(one.column).cast(wide)
    if one.kind in ("min", "max") and not pa.types.is_nested(one.type):
        return rows.column(one.column)
    return pa.chunked_array([pa.repeat(pa.scalar(1, pa.int8()), len(rows))])


def _of_all(rows: pa.Table, one: Aggregate) -> Any:
    if one.kind == "count":
        return len(rows)
    column = rows.column(one.column)
    if one.kind == "sum":
        return pc.sum(_value(rows, one)).cast(one.type).as_py()
    if one.kind == "xor":
        return int(np.bitwise_xor.reduce(column.drop_null().to_numpy().astype(np.int64)))
    values = column.to_pylist()
    if one.kind == "list":
        return values
    if pa.types.is_nested(one.type):
        present = [value for value in values if value is not None]
        best = min if one.kind == "min" else max
        return best(present, default=None)
    return (pc.min if one.kind == "min" else pc.max)(column).as_py()


def _of_members(column: pa.ChunkedArray, members: pa.ListArray, one: Aggregate) -> pa.Array:
    """Return a figure of the rows of each group."""
    starts = members.offsets.to_numpy()
    own = column.take(members.values)
    if one.kind == "list":
        return pa.ListArray.from_arrays(members.offsets, own.combine_chunks())
    if one.kind == "xor":
        hashes = pc.fill_null(own, 0).to_numpy().astype(np.int64)
        return pa.array(np.bitwise_xor.reduceat(hashes, starts[:-1]) if len(hashes) else hashes)
    best = min if one.kind == "min" else max
    values = own.to_pylist()
    return pa.array(
        [
            best((value for value in values[start:end] if value is not None), default=None)
            for start, end in pairwise(starts.tolist())
        ],
        one.type,
    )


def merge(parts: pa.Table, by: Sequence[str], wanted: Sequence[Aggregate]) -> pa.Table:
    """Return the figures of whole groups from those of their parts."""
    return aggregate(parts, by, [one.merged for one in wanted])


def schema_of(schema: pa.Schema, by: Sequence[str], wanted: Sequence[Aggregate]) -> pa.Schema:
    """Return the schema of the figures."""
    types: Mapping[str, pa.DataType] = {field.name: field.type for field in schema}
    return pa.schema([*((name, types[name]) for name in by), *((a.name, a.type) for a in wanted)])
