"""Treat fields of structs as columns: ``address.city`` is the city of ``address``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.values.file_types import LISTS

DOT = "."
"""Separates the name of a struct from that of a field."""


@dataclass(frozen=True)
class StructField:
    """A field of a struct, at any depth, as a column.

    ``name`` is that of the new column, and ``column`` that of the column with the struct. ``path``
    has the names of the fields from there, the field's last.
    """

    name: str
    column: str
    path: tuple[str, ...]
    type: pa.DataType

    @property
    def field(self) -> pa.Field:
        """Return the column that the field becomes."""
        return pa.field(self.name, self.type)

    def values(self, column: pa.Array) -> pa.Array:
        """Return the field's values in an array of structs: null if a struct around one is null.

        The structs may have any other fields.

        >>> (city,) = fields_of("address", pa.struct([("city", pa.string())]))
        >>> city.name, city.values(pa.array([{"city": "Ashford"}, None])).to_pylist()
        ('address.city', ['Ashford', None])
        """
        for name in self.path:
            column = pc.struct_field(column, [column.type.get_field_index(name)])
        return column


def fields_of(name: str, data_type: pa.DataType) -> list[StructField]:
    """Return the fields of a column, to any depth, each struct before its fields.

    Leaves out fields of structs in arrays and maps, of which a record has any number.
    """
    return [
        StructField(DOT.join((name, *path)), name, path, inner) for path, inner in _paths(data_type)
    ]


def _paths(data_type: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and type of each field of a struct, to any depth."""
    if not pa.types.is_struct(data_type):
        return
    for field in data_type:
        yield (field.name,), field.type
        yield from (((field.name, *path), inner) for path, inner in _paths(field.type))


def struct_fields(schema: pa.Schema) -> dict[str, StructField]:
    """Return the fields of a table's structs by the names of the columns that they become.

    Leaves out a field with the name of another field or of a column, whatever the case of its
    letters: nobody could tell them apart.
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
    """Return the columns of a table, each struct followed by its fields.

    >>> with_struct_fields(pa.schema([("a", pa.struct([("b", pa.int64())]))])).names
    ['a', 'a.b']
    """
    fields = struct_fields(schema)
    by_column: dict[str, list[pa.Field]] = {}
    for field in fields.values():
        by_column.setdefault(field.column, []).append(field.field)
    return pa.schema([item for field in schema for item in (field, *by_column.get(field.name, ()))])


def whole_structs(schema: pa.Schema) -> list[str]:
    """Return the structs that are followed by their fields in :func:`with_struct_fields`."""
    return [
        field.name
        for field in schema
        if any(inner.name in schema.names for inner in fields_of(field.name, field.type))
    ]


def whole_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of :func:`with_struct_fields` that are not fields of structs.

    >>> whole_columns(pa.schema([("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())]))
    ['a']
    """
    fields = {inner.name for field in schema for inner in fields_of(field.name, field.type)}
    return [name for name in schema.names if name not in fields]


def with_field(column: pa.Field, field: StructField) -> pa.Field:
    """Add a field to a column of structs that may lack it."""
    return column.with_type(_with_path(column.type, field.path, field.type))


def _with_path(struct: pa.DataType, path: tuple[str, ...], data_type: pa.DataType) -> pa.DataType:
    """Add a field at a path to a struct, with the structs on the way that it lacks."""
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
    """Return the names of the fields of a struct whose values are no structs, maps or lists."""
    return [
        field.name
        for field in fields_of(name, data_type)
        if not any(of(field.type) for of in (pa.types.is_struct, pa.types.is_map, *LISTS))
    ]


def outer_columns(fields: Iterable[StructField]) -> list[str]:
    """Return the paths of fields in a file, without those inside of others."""
    paths = [(field.column, *field.path) for field in fields]
    whole = set(paths)
    tops = (path for path in paths if not any(path[:size] in whole for size in range(1, len(path))))
    return list(dict.fromkeys(DOT.join(path) for path in tops))
