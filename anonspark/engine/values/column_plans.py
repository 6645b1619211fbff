"""Find the column of each attribute, and decide how its values are read."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.config import Attribute, Configuration, HierarchyRule
from anonspark.config.problems import did_you_mean
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import Kind
from anonspark.engine.protocol import InputColumn
from anonspark.engine.raw_columns import (
    INDEX_NAMES,
    Reading,
    is_plain,
    is_publishable,
    is_text,
    order_of,
    type_name,
)
from anonspark.engine.struct_fields import DOT, fields_of, written_fields
from anonspark.engine.values.file_types import LISTS
from anonspark.errors import DataError

_TOP_ALONE = HierarchyRule(keep=[])

_TYPES_OF_KIND: dict[Kind, tuple[str, ...]] = {
    "integer": ("number",),
    "float": ("number",),
    "decimal": ("number",),
    "date": ("date",),
    # pandas has no days: it stores midnights.
    "timestamp": ("timestamp", "date"),
    "boolean": ("boolean",),
    "category": ("text",),
}

_READ_AS: Mapping[str, tuple[pa.DataType, Kind]] = {
    "number": (pa.float64(), "float"),
    "date": (pa.date32(), "date"),
    "timestamp": (pa.timestamp("us", "UTC"), "timestamp"),
    "boolean": (pa.bool_(), "boolean"),
}

_KINDS: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
    (pa.types.is_integer, "integer"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_floating, "float"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_boolean, "boolean"),
    (is_text, "category"),
)


@dataclass(frozen=True)
class PlannedColumn:
    """The reading of one quasi-identifier.

    ``column`` is what layers know of it, and ``read_as`` the type to which its values are
    converted, or None if they stay unchanged. ``in_text`` says how they become the texts that a
    hierarchy, or the declared type, needs, or is None if they do not.
    """

    column: InputColumn
    read_as: pa.DataType | None
    in_text: Reading | None


def kind_of(data_type: pa.DataType) -> Kind | None:
    """Return the kind of the values of a type, or None if no quasi-identifier can have it.

    >>> kind_of(pa.int32()), kind_of(pa.list_(pa.int32()))
    ('integer', None)
    """
    if not is_plain(data_type):
        return None
    return next((kind for is_kind, kind in _KINDS if is_kind(data_type)), None)


def plan_column(
    name: str,
    attribute: Attribute,
    stored: pa.DataType,
    hierarchy: Hierarchy | None,
    brought_order: tuple[str, ...] = (),
) -> PlannedColumn | str:
    """Decide how to read a quasi-identifier, by its stored type and its declaration.

    If these conflict, a text explains why. ``hierarchy`` is that of a file, and ``brought_order``
    that of :class:`InputColumn`.
    """
    kind = kind_of(stored)
    if kind is None:
        return unfit(name, stored)
    declared: str | None = attribute.declared_type
    if attribute.order or (brought_order and declared is None):
        declared = "text"
    conflict = _conflict(name, attribute, stored, kind, declared)
    if conflict is not None:
        return conflict
    has_hierarchy, has_texts = attribute.hierarchy is not None, is_text(stored)
    if has_hierarchy and declared not in _READ_AS:
        declared = "text"
    read_as = None
    becomes_day = (kind, declared) == ("timestamp", "date")
    if declared is not None and declared in _READ_AS and (has_texts or becomes_day):
        read_as, kind = _READ_AS[declared]
    in_text = None
    if has_hierarchy:
        blanks = BLANKS if kind == "category" else ""
        in_text = Reading(name, name, pa.string(), blanks=blanks, whole=kind == "float")
        kind = "category"
    elif not has_texts and declared == "text":
        in_text, kind = Reading(name, name, pa.string()), "category"
    undeclared = has_texts and declared is None
    column = InputColumn(name, attribute, kind, undeclared, declared, hierarchy, brought_order)
    return PlannedColumn(column, read_as, in_text)


def _conflict(
    name: str, attribute: Attribute, stored: pa.DataType, kind: Kind, declared: str | None
) -> str | None:
    """Explain why a column's type and the declared type conflict, or return None."""
    type_text = type_name(stored)
    if attribute.hierarchy == _TOP_ALONE and not declared and kind not in ("category", "boolean"):
        return (
            f"found no hierarchy for the type {type_text}. Expected one, as {{intervals: [5, 10]}} "
            "or {calendar: [month]}. Add it, or set the type to text, with only * above its values"
        )
    if is_text(stored) or declared in (None, "text", *_TYPES_OF_KIND[kind]):
        return None
    if attribute.hierarchy is not None:
        return (
            f"its hierarchy needs a {declared}, but the column has type {type_text}. Correct "
            f"attributes.{name}.hierarchy, or the column"
        )
    return (
        f"declared as {declared}, but the column has type {type_text}. Correct "
        f"attributes.{name}.type, or the column"
    )


def plan_columns(
    schema: pa.Schema, configuration: Configuration, hierarchies: Mapping[str, Hierarchy]
) -> list[PlannedColumn]:
    """Decide how to read each quasi-identifier, with the hierarchies that files define.

    Raises DataError if a column's type and its declaration conflict.
    """
    plans, problems = [], []
    for name in configuration.quasi_identifiers:
        attribute, stored = configuration.attributes[name], schema.field(name).type
        order = order_of(schema.field(name))
        plan = plan_column(name, attribute, stored, hierarchies.get(name), order)
        if isinstance(plan, str):
            problems.append(f"attributes.{name}: {plan}")
            continue
        plans.append(plan)
        is_set = plan.column.kind in ("category", "boolean")
        if is_set and configuration.output.style == "bounds" and configuration.output.copies:
            problems.append(
                f"attributes.{name}: output.style bounds publishes a list of its values, which "
                "output.copies: [csv] cannot express. Set output.style to interval, or leave it out"
            )
    if problems:
        raise DataError(*problems)
    return plans


def require_columns(schema: pa.Schema, configuration: Configuration) -> None:
    """Raise DataError if an attribute has no column in the input. Fields of structs are columns."""
    available = schema.names
    index = (schema.metadata or {}).get(INDEX_NAMES, b"").decode().split("\0")
    if not available and index == [""]:
        raise DataError("input.path: the table is empty. It has no columns")
    lowered = {name.lower() for name in available}
    if configuration.input.format == "csv" and lowered.isdisjoint(
        name.lower() for name in configuration.attributes
    ):
        # If the file has no header, the names are values of the first record: show none.
        raise DataError(
            f"attributes: the input has {len(available):,} columns, and none of them has the name "
            "of an attribute. Check input.options (header, sep, encoding), and that the first line "
            "of the files holds the names of their columns"
        )
    missing = [name for name in configuration.attributes if name not in available]
    if missing:
        raise DataError(
            *(f"attributes.{name}: {_no_column(name, schema, index)}" for name in missing)
        )


def _no_column(name: str, schema: pa.Schema, index: Sequence[str]) -> str:
    """Explain that no column has a name, and name similar ones."""
    for field in schema:
        for is_kind, kind in _MULTIPLE:
            if name.startswith(f"{field.name}{DOT}") and is_kind(field.type):
                return f"the input has no such column: {field.name!r} is {kind}{_ONE_VALUE}"
    if name in index:
        return "it is the index of the DataFrame and no column. Make it one with reset_index()"
    composed = {unicodedata.normalize("NFC", other) for other in schema.names}
    if unicodedata.normalize("NFC", name) in composed:
        return (
            "the input has a column of this name in another Unicode form (letter and accent are "
            "one character in the one, two in the other). Copy the name from the first line of the "
            "file, or rename the column"
        )
    columns = ", ".join(map(repr, schema.names)) or "no columns"
    hint = did_you_mean(name, schema.names)
    return f"the input has no such column. {hint}{' ' * bool(hint)}It has {columns}"


def require_types(schema: pa.Schema, configuration: Configuration) -> None:
    """Raise DataError if the type of a column is unsuitable for the role of its attribute."""
    types = {field.name: field.type for field in schema}
    criteria = dict.fromkeys(criterion.attribute for criterion in configuration.privacy.criteria)
    problems = [
        f"attributes.{name}: {words(name, types[name])}"
        for names, fits, words in (
            (configuration.published_as_is, is_publishable, unpublishable),
            (criteria, is_plain, uncountable),
            (configuration.privacy.unit, is_plain, no_unit),
        )
        for name in names
        if not fits(types[name])
    ]
    problems += published_inside(schema, configuration)
    problems += [
        f"attributes.{name}: the column has type {type_name(types[name])}, which CSV cannot "
        "express, and output.copies asks for CSV. Leave one of them out"
        for name in configuration.published_as_is
        if "csv" in configuration.output.copies and not is_plain(types[name])
    ]
    if problems:
        raise DataError(*problems)


def published_inside(schema: pa.Schema, configuration: Configuration) -> list[str]:
    """Return an error for each field that must not be published within its unchanged struct."""
    hidden = {*configuration.identifiers, *configuration.quasi_identifiers}
    return [
        f"attributes.{name}: the struct would be published as it is, and with it {inner.name}, "
        f"which is listed as {configuration.attributes[inner.name].role}. List the other fields in "
        "its place, or leave it out"
        for name in configuration.published_as_is
        for inner in fields_of(name, schema.field(name).type)
        if inner.name in hidden
    ]


def unfit(name: str, dtype: pa.DataType) -> str:
    """Return the error that a quasi-identifier cannot have a type."""
    return f"a quasi-identifier cannot have type {type_name(dtype)}{_instead(name, dtype)}"


def unpublishable(name: str, dtype: pa.DataType) -> str:
    """Return the error that a column of a type cannot be published unchanged."""
    instead = ". Convert it to an array or a text first, or leave it out"
    if any(of(dtype) for of in (pa.types.is_struct, pa.types.is_decimal256, pa.types.is_duration)):
        instead = _instead(name, dtype)
    return f"columns of type {type_name(dtype)} cannot be published{instead}"


def no_unit(name: str, dtype: pa.DataType) -> str:
    """Return the error that a column of a type cannot distinguish people."""
    return (
        f"people cannot be identified by a column of type {type_name(dtype)}, as privacy.unit "
        f"says{_instead(name, dtype)}"
    )


def uncountable(name: str, dtype: pa.DataType) -> str:
    """Return the error that a criterion cannot be about a column of a type."""
    return f"a criterion cannot be about a column of type {type_name(dtype)}{_instead(name, dtype)}"


def _instead(name: str, dtype: pa.DataType) -> str:
    """Return a remedy for a column that does not have one plain value per record."""
    if pa.types.is_struct(dtype):
        fields = written_fields(name, dtype)
        if fields:
            return f": it is a struct. List its fields in its place: {', '.join(fields)}"
    for is_kind, kind in _MULTIPLE:
        if is_kind(dtype):
            return f": it is {kind}{_ONE_VALUE}"
    if pa.types.is_decimal256(dtype):
        return ". Cast it to a decimal of at most 38 digits, or to double"
    if pa.types.is_duration(dtype):
        return ". Convert it to a number first, such as that of days or seconds"
    return ". Use a number, date, timestamp, boolean or text column"


_ONE_VALUE = (
    ", which has any number of values a record. Make a column of one value of it first, such as "
    "its size, or leave it out"
)
_MULTIPLE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_map, "a map"),
    *((is_list, "an array") for is_list in LISTS),
)
