"""Fields of structs as columns of their own: ``address.city`` is the city of ``address``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.values.file_types import LISTS

DOT = "."
"""Between the name of a struct and that of a field."""


@dataclass(frozen=True)
class StructField:
    """A field of a struct.

    Parameters
    ----------
    name : str
        Of the column that it becomes.
    column : str
        With the struct.
    path : tuple of str
        Names of the fields on the way to it, its own the last.
    type : pyarrow.DataType
    """

    name: str
    column: str
    path: tuple[str, ...]
    type: pa.DataType

    @property
    def field(self) -> pa.Field:
        """The column that it becomes."""
        return pa.field(self.name, self.type)

    def values(self, column: pa.Array) -> pa.Array:
        """Return its values. They are missing where a struct around it is.

        Parameters
        ----------
        column : pyarrow.Array
            Of structs that have it, whatever others they have.
        """
        for name in self.path:
            column = pc.struct_field(column, [column.type.get_field_index(name)])
        return column


def fields_of(name: str, data_type: pa.DataType) -> list[StructField]:
    """Return the fields of a column, to any depth. A struct comes before its own fields.

    Fields of structs in arrays and maps are none: a record has any number of them.
    """
    return [
        StructField(DOT.join((name, *path)), name, path, inner) for path, inner in _paths(data_type)
    ]


def _paths(data_type: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    if not pa.types.is_struct(data_type):
        return
    for field in data_type:
        yield (field.name,), field.type
        yield from (((field.name, *path), inner) for path, inner in _paths(field.type))


def struct_fields(schema: pa.Schema) -> dict[str, StructField]:
    """Return the fields of a table's structs by the names of the columns that they become.

    A column of the table goes before a field of the same name. Fields that have one name, whatever
    the case of its letters, become no column: no one could distinguish them.
    """
    columns = Counter(map(str.lower, schema.names))
    fields = [
        inner
        for field in schema
        if columns[field.name.lower()] == 1
        for inner in fields_of(field.name, field.type)
    ]
    names = columns + Counter(field.name.lower() for field in fields)
    return {field.name: field for field in fields if names[field.name.lower()] == 1}


def with_struct_fields(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table, each struct followed by its fields."""
    fields = struct_fields(schema)
    by_column: dict[str, list[pa.Field]] = {}
    for field in fields.values():
        by_column.setdefault(field.column, []).append(field.field)
    return pa.schema([each for field in schema for each in (field, *by_column.get(field.name, ()))])


def whole_structs(schema: pa.Schema) -> list[str]:
    """Return the structs in the columns of :func:`with_struct_fields` whose fields follow them."""
    return [
        field.name
        for field in schema
        if any(inner.name in schema.names for inner in fields_of(field.name, field.type))
    ]


def whole_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of :func:`with_struct_fields` that are no fields of structs."""
    fields = {inner.name for field in schema for inner in fields_of(field.name, field.type)}
    return [name for name in schema.names if name not in fields]


def with_field(column: pa.Field, field: StructField) -> pa.Field:
    """Return a column of structs with a field that it lacks, or that is there already."""
    return column.with_type(_with_path(column.type, field.path, field.type))


def _with_path(struct: pa.DataType, path: tuple[str, ...], data_type: pa.DataType) -> pa.DataType:
    fields = list(struct)
    first, rest = path[0], path[1:]
    at = next((i for i, field in enumerate(fields) if field.name.lower() == first.lower()), None)
    if at is None:
        inner = _with_path(pa.struct([]), rest, data_type) if rest else data_type
        return pa.struct([*fields, pa.field(first, inner)])
    if rest:
        fields[at] = fields[at].with_type(_with_path(fields[at].type, rest, data_type))
    return pa.struct(fields)


def written_fields(name: str, data_type: pa.DataType) -> list[str]:
    """Return the fields of a struct that hold values of a record, as attributes are named."""
    return [
        field.name
        for field in fields_of(name, data_type)
        if not any(of(field.type) for of in (pa.types.is_struct, pa.types.is_map, *LISTS))
    ]


def outer_columns(fields: Iterable[StructField]) -> list[str]:
    """Return the paths of fields in a file, without those inside of another."""
    paths = [(field.column, *field.path) for field in fields]
    whole = set(paths)
    tops = (path for path in paths if not any(path[:size] in whole for size in range(1, len(path))))
    return list(dict.fromkeys(DOT.join(path) for path in tops))
