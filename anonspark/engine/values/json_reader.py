"""Read records of JSON, where each value has a kind already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, reduce
from math import isfinite, nan
from typing import Any

import pyarrow as pa

from anonspark.engine.reading_errors import malformed_json, mixed_kinds
from anonspark.engine.struct_fields import struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.text_forms import MOST_DIGITS, Forms
from anonspark.engine.values.text_lines import TextLines
from anonspark.engine.values.value_texts import NUMBER, parse

# Records that are objects of Python at the same time.
_RECORDS = 1 << 13

_ELEMENTS, _MEMBERS = "elements", "members"
# Marks a column with an integer beyond 2^53, which a fraction in the column would change.
_EXACT = "exact"
_NUMBERS = {"long", "decimal", "double", _EXACT}


@dataclass(frozen=True)
class JsonReader(TextLines):
    """The reading of JSON records. Unless it ``infers`` types, all values are texts of JSON."""

    infers: bool = True

    def _records(self, blocks: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
        """Decode records, and yield some thousands at a time."""
        records: list[dict[str, Any]] = []
        for block in blocks:
            locate = self.locator(block)
            text = block.decode()
            for number, line in enumerate([text] if self.multi_line else text.split("\n")):
                if not line.strip():
                    continue
                try:
                    record = _DECODER.decode(line)
                except (ValueError, LookupError, RecursionError) as error:
                    raise malformed_json(locate(None if self.multi_line else number)) from error
                objects = record if isinstance(record, list) else [record]
                if not all(isinstance(item, dict) for item in objects):
                    raise malformed_json(locate(None if self.multi_line else number))
                records += objects
                if len(records) >= _RECORDS:
                    yield records
                    records = []
        if records:
            yield records

    def _is_missing(self, value: Any) -> bool:
        """Return whether a value is null or a text that means missing."""
        return value is None or (isinstance(value, str) and value.strip(" ") in self._markers)

    @property
    def _markers(self) -> tuple[str, ...]:
        return ("", *self.markers)

    def _stays(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record has all required values."""
        return not self.leaves_out and not any(
            self._means_missing(_value_at(record, name), is_number=self.is_number(name))
            for name in self.required
        )

    @cached_property
    def _marked_numbers(self) -> frozenset[float]:
        """Return the markers that are numbers."""
        return frozenset(float(marker) for marker in self.markers if NUMBER.fullmatch(marker))

    def _means_missing(self, value: Any, *, is_number: bool) -> bool:
        """Return whether a value is missing, also as the number of a marker, or NaN.

        A text counts by its number if the column is declared as one of numbers.
        """
        if is_number and isinstance(value, str):
            number = parse(pa.array([value]), pa.float64())[0].as_py()
            value = value if number is None else number
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            return value != value or value in self._marked_numbers
        return self._is_missing(value)

    def infer(self, blocks: Iterable[bytes]) -> Forms:
        """Return the forms of the values of records that stay, in blocks of whole lines."""
        forms: dict[str, Any] = {}
        for records in self._records(blocks):
            for record in records:
                if not self.infers or self._stays(record):
                    self._add(forms, record)
        return Forms(forms)

    def plain(self, values: pa.Array) -> pa.Array:
        """Return values that were read without types as plain texts, without quotes."""
        texts = [
            json.loads(text).encode("utf-8", "replace").decode()
            if text and text[0] == '"'
            else text
            for text in values.to_pylist()
        ]
        return pa.array(texts, pa.string())

    def forms(self, batch: pa.RecordBatch) -> Forms:
        """Return the forms of values that were read without types."""
        return self.infer([_lines(batch)])

    def typed(self, batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
        """Convert values that were read without types to the types of a schema."""
        table = pa.Table.from_batches(self.read([_lines(batch)], schema), schema)
        return [column.combine_chunks() for column in table.columns]

    def _add(self, members: dict[str, Any], record: Mapping[str, Any]) -> None:
        """Add the forms of a record's, or an object's, members."""
        for name, value in record.items():
            self._add_value(members.setdefault(name, {}), value)

    def _add_value(self, forms: dict[str, Any], value: Any) -> None:
        """Add the form of a value: its kind with its digits, or the forms of its members."""
        if isinstance(value, dict):
            self._add(forms.setdefault(_MEMBERS, {}), value)
        elif isinstance(value, list):
            elements = forms.setdefault(_ELEMENTS, {})
            for element in value:
                self._add_value(elements, element)
        elif not self._is_missing(value):
            kind = _KINDS[type(value)]
            digits = 1
            if kind == "long" and not -(2**63) <= value < 2**63:
                digits = len(str(abs(value)))
                kind = "decimal" if digits <= MOST_DIGITS else "string"
            if isinstance(value, int) and abs(value) > 2**53:
                forms[_EXACT] = 1
            forms[kind] = max(forms.get(kind, 0), digits)

    def schema(self, forms: Forms) -> pa.Schema:
        """Return the columns with their types, sorted by name. See :meth:`TextLines.schema`.

        Raises DataError if an attribute has values of several kinds.
        """
        columns = {name: forms.columns[name] for name in sorted(forms.columns)}
        if not self.infers:
            return pa.schema([(name, pa.string()) for name in _paths(columns)])
        schema = pa.schema(
            [(name, _type_of(kinds)) for name, kinds in columns.items() if not _is_nothing(kinds)]
        )
        inner = struct_fields(schema)
        spellings = {name.lower(): name for name in [*columns, *inner]}
        for name in [*schema.names, *inner] if self.attributes is None else self.attributes:
            lower = name.lower()
            key = spellings.get(lower, spellings.get(lower.partition(".")[0], name))
            path = (inner[key].column, *inner[key].path) if key in inner else (key,)
            around = reduce(
                lambda members, part: members.get(part, {}).get(_MEMBERS, {}), path[:-1], columns
            )
            if _is_mixed(around.get(path[-1], {})):
                raise mixed_kinds(self.where, name)
        return schema

    def read(self, blocks: Iterable[bytes], schema: pa.Schema) -> Batches:
        """Yield the records of blocks. See :meth:`TextLines.read`."""
        for records in self._records(blocks):
            columns = [self._column(records, field) for field in schema]
            if not schema.names:
                continue
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, records: Sequence[Mapping[str, Any]], field: pa.Field) -> pa.Array:
        """Return a column of records, at first by Arrow, and value by value if it refuses one."""
        if not self.infers:
            values = [_value_at(record, field.name) for record in records]
            return pa.array([None if value is None else json.dumps(value) for value in values])
        values = [record.get(field.name) for record in records]
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array(
                [self._read(*pair, field.type) for pair in zip(values, records, strict=True)],
                field.type,
            )

    def _read(self, value: Any, record: Mapping[str, Any], target: pa.DataType) -> Any:
        """Convert a value, or raise DataError if it has another type and its record stays."""
        try:
            return self._value(value, target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if self._stays(record):
                raise malformed_json(self.where) from error
            return None

    def _value(self, value: Any, target: pa.DataType) -> Any:
        """Convert a value of JSON to a type of Arrow, also inside of lists and objects."""
        if value is None:
            return None
        if pa.types.is_string(target):
            value = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            return pa.scalar(value).as_py()
        if self._is_missing(value):
            return None
        if pa.types.is_floating(target) or pa.types.is_decimal(target):
            value = float(value) if pa.types.is_floating(target) else Decimal(value)
        elif pa.types.is_list(target):
            return [self._value(element, target.value_type) for element in value]
        elif pa.types.is_struct(target):
            return {part.name: self._value(value.get(part.name), part.type) for part in target}
        return pa.scalar(value, target).as_py()


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises ValueError if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name that occurs twice")
    return members


def _float(text: str) -> float:
    """Return a number as a finite float, or raise ValueError."""
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number that no float is")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_float, parse_constant={"NaN": nan}.__getitem__
)
_KINDS = {bool: "boolean", int: "long", float: "double", str: "string"}


def _value_at(record: Mapping[str, Any], name: str) -> Any:
    """Return a member of a record, or of an object in it if the name has a point.

    >>> _value_at({"address": {"city": "Ashford"}}, "Address.City")
    'Ashford'
    """
    if name not in record:
        record = {member.lower(): value for member, value in record.items()}
        name = name.lower()
    if name in record:
        return record[name]
    outer, point, rest = name.partition(".")
    inner = record.get(outer)
    return _value_at(inner, rest) if point and isinstance(inner, dict) else None


def _paths(members: Mapping[str, Any], outer: str = "") -> Iterator[str]:
    """Yield the names of columns, and of the members of their objects.

    >>> list(_paths({"a": {_MEMBERS: {"b": {"long": 1}}}}))
    ['a', 'a.b']
    """
    for name, forms in members.items():
        yield f"{outer}{name}"
        yield from _paths(forms.get(_MEMBERS, {}), f"{outer}{name}.")


def _lines(batch: pa.RecordBatch) -> bytes:
    """Return values that were read without types as lines of JSON."""
    names = [json.dumps(name) for name in batch.schema.names]
    rows = zip(*(column.fill_null("null").to_pylist() for column in batch.columns), strict=True)
    lines = (",".join(map(":".join, zip(names, row, strict=True))) for row in rows)
    return "\n".join(f"{{{line}}}" for line in lines).encode()


def _kinds(forms: Mapping[str, Any]) -> set[str]:
    """Return the kinds in forms, with one kind for all numbers."""
    kinds = set(forms)
    return (kinds - _NUMBERS) | {"number"} if kinds & _NUMBERS else kinds


def _is_mixed(forms: Mapping[str, Any]) -> bool:
    """Return whether values have no type in common but text."""
    inner = [*forms.get(_MEMBERS, {}).values(), forms.get(_ELEMENTS, {})]
    loses_digits = {_EXACT, "double"} <= forms.keys()
    return loses_digits or len(_kinds(forms)) > 1 or any(map(_is_mixed, filter(None, inner)))


def _is_nothing(forms: Mapping[str, Any]) -> bool:
    """Return whether all values are objects without members, for which files have no type."""
    if set(forms) == {_ELEMENTS}:
        return bool(forms[_ELEMENTS]) and _is_nothing(forms[_ELEMENTS])
    return set(forms) == {_MEMBERS} and all(map(_is_nothing, forms[_MEMBERS].values()))


def _type_of(forms: Mapping[str, Any]) -> pa.DataType:
    """Infer the type of a column from the forms of its values.

    >>> _type_of({"long": 1, "double": 1}), _type_of({_ELEMENTS: {"string": 1}}).value_type
    (DataType(double), DataType(string))
    """
    kinds = _kinds(forms)
    if kinds == {_ELEMENTS}:
        return pa.list_(pa.field("element", _type_of(forms[_ELEMENTS])))
    if kinds == {_MEMBERS}:
        inner = {name: part for name, part in forms[_MEMBERS].items() if not _is_nothing(part)}
        return pa.struct([(name, _type_of(inner[name])) for name in sorted(inner)])
    if kinds == {"boolean"}:
        return pa.bool_()
    if kinds != {"number"}:
        return pa.string()
    if "double" in forms:
        return pa.float64()
    if "decimal" not in forms:
        return pa.int64()
    return pa.decimal128(max(forms["decimal"], 20 if "long" in forms else 0), 0)
