"""Records of JSON, whose writer gave each value its kind."""

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

# Records that are Python's objects at once.
_RECORDS = 1 << 13

_ELEMENTS, _MEMBERS = "elements", "members"
# A whole number that no float is, so that a fraction in its column would change it.
_EXACT = "exact"
_NUMBERS = {"long", "decimal", "double", _EXACT}


@dataclass(frozen=True)
class JsonReader(TextLines):
    """The reading of JSON records.

    Parameters
    ----------
    infers : bool
        Whether values decide the types of columns, else all are texts as JSON writes them.
    """

    infers: bool = True

    def _records(self, blocks: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
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
                several = record if isinstance(record, list) else [record]
                if not all(isinstance(each, dict) for each in several):
                    raise malformed_json(locate(None if self.multi_line else number))
                records += several
                if len(records) >= _RECORDS:
                    yield records
                    records = []
        if records:
            yield records

    def _is_missing(self, value: Any) -> bool:
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
        return frozenset(float(marker) for marker in self.markers if NUMBER.fullmatch(marker))

    def _means_missing(self, value: Any, *, is_number: bool) -> bool:
        """Return whether a value is missing, also as a number, which a text may be declared as."""
        if is_number and isinstance(value, str):
            number = parse(pa.array([value]), pa.float64())[0].as_py()
            value = value if number is None else number
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            return value != value or value in self._marked_numbers
        return self._is_missing(value)

    def infer(self, blocks: Iterable[bytes]) -> Forms:
        """Return the forms of the values in blocks of whole lines, of records that stay."""
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
        """Return values that were read without types, in the types of a schema."""
        table = pa.Table.from_batches(self.read([_lines(batch)], schema), schema)
        return [column.combine_chunks() for column in table.columns]

    def _add(self, members: dict[str, Any], record: Mapping[str, Any]) -> None:
        for name, value in record.items():
            self._add_value(members.setdefault(name, {}), value)

    def _add_value(self, forms: dict[str, Any], value: Any) -> None:
        if isinstance(value, dict):
            self._add(forms.setdefault(_MEMBERS, {}), value)
        elif isinstance(value, list):
            elements = forms.setdefault(_ELEMENTS, {})
            for each in value:
                self._add_value(elements, each)
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
        """Return the columns with their types, sorted by their names. See :meth:`TextLines.schema`.

        Raises
        ------
        DataError
            If an attribute has values of several kinds.
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
        if not self.infers:
            values = [_value_at(record, field.name) for record in records]
            return pa.array([None if each is None else json.dumps(each) for each in values])
        values = [record.get(field.name) for record in records]
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array(
                [self._read(*each, field.type) for each in zip(values, records, strict=True)],
                field.type,
            )

    def _read(self, value: Any, record: Mapping[str, Any], to: pa.DataType) -> Any:
        try:
            return self._value(value, to)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if self._stays(record):
                raise malformed_json(self.where) from error
            return None

    def _value(self, value: Any, to: pa.DataType) -> Any:
        """Return a value of JSON for a type of Arrow."""
        if value is None:
            return None
        if pa.types.is_string(to):
            value = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            return pa.scalar(value).as_py()
        if self._is_missing(value):
            return None
        if pa.types.is_floating(to) or pa.types.is_decimal(to):
            value = float(value) if pa.types.is_floating(to) else Decimal(value)
        elif pa.types.is_list(to):
            return [self._value(each, to.value_type) for each in value]
        elif pa.types.is_struct(to):
            return {each.name: self._value(value.get(each.name), each.type) for each in to}
        return pa.scalar(value, to).as_py()


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name that is there twice")
    return members


def _float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number that no float is")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_float, parse_constant={"NaN": nan}.__getitem__
)
_KINDS = {bool: "boolean", int: "long", float: "double", str: "string"}


def _value_at(record: Mapping[str, Any], name: str) -> Any:
    """Return a member of a record, or of an object in it whose names have points between them."""
    if name not in record:
        record = {member.lower(): value for member, value in record.items()}
        name = name.lower()
    if name in record:
        return record[name]
    outer, point, rest = name.partition(".")
    inner = record.get(outer)
    return _value_at(inner, rest) if point and isinstance(inner, dict) else None


def _paths(members: Mapping[str, Any], outer: str = "") -> Iterator[str]:
    """Yield the names of columns, and of what is in their objects."""
    for name, forms in members.items():
        yield f"{outer}{name}"
        yield from _paths(forms.get(_MEMBERS, {}), f"{outer}{name}.")


def _lines(batch: pa.RecordBatch) -> bytes:
    """Return values that were read without types as records of JSON."""
    names = [json.dumps(name) for name in batch.schema.names]
    rows = zip(*(column.fill_null("null").to_pylist() for column in batch.columns), strict=True)
    lines = (",".join(map(":".join, zip(names, row, strict=True))) for row in rows)
    return "\n".join(f"{{{line}}}" for line in lines).encode()


def _kinds(forms: Mapping[str, Any]) -> set[str]:
    kinds = set(forms)
    return (kinds - _NUMBERS) | {"number"} if kinds & _NUMBERS else kinds


def _is_mixed(forms: Mapping[str, Any]) -> bool:
    """Return whether values have no type in common but that of their JSON."""
    inner = [*forms.get(_MEMBERS, {}).values(), forms.get(_ELEMENTS, {})]
    loses_digits = {_EXACT, "double"} <= forms.keys()
    return loses_digits or len(_kinds(forms)) > 1 or any(map(_is_mixed, filter(None, inner)))


def _is_nothing(forms: Mapping[str, Any]) -> bool:
    """Return whether it is objects without members, which no file has."""
    if set(forms) == {_ELEMENTS}:
        return bool(forms[_ELEMENTS]) and _is_nothing(forms[_ELEMENTS])
    return set(forms) == {_MEMBERS} and all(map(_is_nothing, forms[_MEMBERS].values()))


def _type_of(forms: Mapping[str, Any]) -> pa.DataType:
    kinds = _kinds(forms)
    if kinds == {_ELEMENTS}:
        return pa.list_(pa.field("element", _type_of(forms[_ELEMENTS])))
    if kinds == {_MEMBERS}:
        inner = {name: each for name, each in forms[_MEMBERS].items() if not _is_nothing(each)}
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
