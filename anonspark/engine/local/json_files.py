"""Reading JSON files by Spark's rules: a line is a record, columns are sorted by their names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from anonspark.engine.local.columnar_files import Read, reading_file
from anonspark.engine.local.input_files import DataFiles
from anonspark.engine.local.text_files import Part, blocks_of, parts_of
from anonspark.engine.reading_errors import malformed_json
from anonspark.engine.struct_fields import StructField
from anonspark.engine.tasks import Batches

# Lines that are Python's objects at once.
_RECORDS = 1 << 13


@dataclass(frozen=True)
class JsonKind:
    """What values were found at a place of the records.

    Parameters
    ----------
    scalars : frozenset of str
        ``long``, ``decimal``, ``double``, ``boolean`` and ``string``.
    digits : int
        Of the longest number of more than 64 bits.
    elements : JsonKind or None
        Of lists.
    members : mapping of str to JsonKind, or None
        Of objects.
    """

    scalars: frozenset[str] = frozenset()
    digits: int = 0
    elements: JsonKind | None = None
    members: Mapping[str, JsonKind] | None = None

    def __or__(self, other: JsonKind) -> JsonKind:
        members = self.members
        if other.members is not None:
            members = dict(members or {})
            for name, kind in other.members.items():
                members[name] = members[name] | kind if name in members else kind
        elements = self.elements
        if other.elements is not None:
            elements = other.elements if elements is None else elements | other.elements
        return JsonKind(
            self.scalars | other.scalars, max(self.digits, other.digits), elements, members
        )

    @property
    def _kinds(self) -> int:
        numbers = bool(self.scalars & {"long", "decimal", "double"})
        nested = (self.elements is not None) + (self.members is not None)
        return numbers + len(self.scalars & {"boolean", "string"}) + nested

    @property
    def is_mixed(self) -> bool:
        """Whether values have no type in common but that of their JSON."""
        inner = [*(self.members or {}).values(), *([self.elements] if self.elements else [])]
        return self._kinds > 1 or any(one.is_mixed for one in inner)

    @property
    def is_nothing(self) -> bool:
        """Whether it is objects without members, which Spark leaves out."""
        if self.elements is not None:
            return self._kinds == 1 and self.elements.is_nothing
        if self.members is None or self._kinds > 1:
            return False
        return all(one.is_nothing for one in self.members.values())

    def at(self, path: Sequence[str]) -> JsonKind:
        """Return what is known of a member of objects, given the names on the way to it."""
        return reduce(lambda kind, name: (kind.members or {})[name], path, self)

    def type(self) -> pa.DataType:
        """Return the type that Spark infers."""
        if self._kinds != 1 or "string" in self.scalars:
            return pa.string()
        if self.elements is not None:
            return pa.list_(pa.field("element", self.elements.type()))
        if self.members is not None:
            inner = {name: one for name, one in self.members.items() if not one.is_nothing}
            return pa.struct([(name, inner[name].type()) for name in sorted(inner)])
        if "boolean" in self.scalars:
            return pa.bool_()
        if "double" in self.scalars:
            return pa.float64()
        if "decimal" in self.scalars:
            return pa.decimal128(max(self.digits, 20 if "long" in self.scalars else 0), 0)
        return pa.int64()


def _kind(value: Any) -> JsonKind:
    match value:
        case None | "":
            return JsonKind()
        case bool():
            return JsonKind(frozenset({"boolean"}))
        case str():
            return JsonKind(frozenset({"string"}))
        case float():
            return JsonKind(frozenset({"double"}))
        case int() if -(2**63) <= value < 2**63:
            return JsonKind(frozenset({"long"}))
        case int():
            digits = len(str(abs(value)))
            big = "decimal" if digits <= 38 else "double"
            return JsonKind(frozenset({big}), digits if digits <= 38 else 0)
        case list():
            return JsonKind(elements=reduce(JsonKind.__or__, map(_kind, value), JsonKind()))
    return JsonKind(members={name: _kind(one) for name, one in value.items()})


@dataclass
class JsonFiles:
    """The JSON files of a table.

    Parameters
    ----------
    files : DataFiles
    where : str
        What named the paths, and the paths, for messages.
    """

    files: DataFiles
    where: str
    has_records: bool = field(default=False, init=False)

    def fields(self) -> dict[str, JsonKind]:
        """Look at all values; return what is known of each column. Reads all files once.

        Raises
        ------
        DataError
            If a record is malformed.
        """
        known = JsonKind(members={})
        with reading_file(self.where):
            for part in parts_of(self.files.files):
                for records in self._records(part):
                    self.has_records = True
                    known = reduce(JsonKind.__or__, map(_kind, records), known)
        members = known.members or {}
        return {name: members[name] for name in sorted(members) if not members[name].is_nothing}

    def reads(
        self, types: Mapping[str, pa.DataType], inner: Mapping[str, StructField]
    ) -> list[Read]:
        """Return what reads the table, some megabytes each.

        Parameters
        ----------
        types : mapping of str to pyarrow.DataType
            Of the columns.
        inner : mapping of str to StructField
            Members of objects that are columns, too.
        """
        return [partial(self._read, part, types, inner) for part in parts_of(self.files.files)]

    def _records(self, part: Part) -> Iterator[list[dict[str, Any]]]:
        records: list[dict[str, Any]] = []
        for block in blocks_of(part, self.where):
            for line in block.decode("utf-8", "replace").replace("\r", "\n").split("\n"):
                if not line.strip():
                    continue
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise malformed_json(self.where) from error
                several = found if isinstance(found, list) else [found]
                if not all(isinstance(one, dict) for one in several):
                    raise malformed_json(self.where)
                records += several
                if len(records) >= _RECORDS:
                    yield records
                    records = []
        if records:
            yield records

    def _read(
        self,
        part: Part,
        types: Mapping[str, pa.DataType],
        inner: Mapping[str, StructField],
        wanted: pa.Schema,
    ) -> Batches:
        constants = self.files.constants(part.file)
        with reading_file(self.where):
            for records in self._records(part):
                columns = []
                for one in wanted:
                    if one.name in constants:
                        columns.append(pa.repeat(constants[one.name], len(records)))
                        continue
                    if one.name in types:
                        found = [own.get(one.name) for own in records]
                    else:
                        found = self._members(records, inner[one.name])
                    columns.append(self._array(found, one.type))
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)

    def _members(self, records: Sequence[Mapping[str, Any]], field: StructField) -> list[Any]:
        try:
            return [_member(one, field) for one in records]
        except pa.ArrowInvalid as error:
            raise malformed_json(self.where) from error

    def _array(self, values: Sequence[Any], to: pa.DataType) -> pa.Array:
        try:
            return pa.array([_value(one, to) for one in values], to)
        except pa.ArrowInvalid as error:
            raise malformed_json(self.where) from error


def _member(record: Mapping[str, Any], field: StructField) -> Any:
    """Return a member of an object; None where an object around it is missing."""
    value = record.get(field.column)
    for name in field.path:
        value = None if value is None else _object(value).get(name)
    return value


def _object(value: Any) -> Mapping[str, Any]:
    # An empty text tells no kind, and is no object.
    if not isinstance(value, dict):
        raise pa.ArrowInvalid("no object")
    return value


def _value(value: Any, to: pa.DataType) -> Any:
    """Return a value of JSON for a type of Arrow."""
    if value is None:
        return None
    if pa.types.is_string(to):
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if pa.types.is_floating(to):
        return float(value)
    if pa.types.is_decimal(to):
        return Decimal(value)
    if pa.types.is_list(to):
        return [_value(one, to.value_type) for one in value]
    if pa.types.is_struct(to):
        fields = (to.field(place) for place in range(to.num_fields))
        own = _object(value)
        return {one.name: _value(own.get(one.name), one.type) for one in fields}
    return value
