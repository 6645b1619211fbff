"""Raw records whose values compare as the attributes of a release do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa

from anonspark.core.hierarchies.files import BLANKS
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_number, is_readable, type_name
from anonspark.errors import DataError
from anonspark.labels.class_bounds import type_of_name
from anonspark.labels.regions import Leaves, PublishedAttribute

ComparedAs = int | Literal["integer", "float", "code", "beginning"]
"""The values as which an ordered attribute is compared, see :class:`PreparedTable`."""

DECIMAL_DIGITS = 38

_TEXT_PLACES = 18


@dataclass(frozen=True)
class PreparedTable:
    """The quasi-identifiers of raw records, in columns ``value_<i>`` and ``missing_value_<i>``.

    An unreadable value is null and not missing. Behind them stand the columns that are carried
    along. ``compared_as`` says what ``value_<i>`` is: a decimal of so many places (128 bits), an
    integer or a time (64 bits), a float, a code that may be masked, or any other text (None).
    """

    records: Table
    compared_as: tuple[ComparedAs | None, ...]


def prepare_table(
    table: Table,
    attributes: Sequence[PublishedAttribute],
    hierarchies: Mapping[str, Leaves],
    *,
    missing_markers: Iterable[str],
    subject: str,
    drops_missing: bool = False,
    carried: Sequence[str] = (),
) -> PreparedTable:
    """Convert raw records to types that can be compared with published regions. Lazy.

    ``hierarchies`` are those that the release was generalized by, see
    :func:`~anonspark.labels.regions.read_label`. ``subject`` names the table in messages, and
    ``carried`` are further columns. Raises DataError if the table lacks columns, or has types that
    cannot be compared.
    """
    types = {field.name: field.type for field in table.schema}
    lacking = [attribute.name for attribute in attributes if attribute.name not in types]
    if lacking:
        raise DataError(
            f"{subject}: lacks the columns {', '.join(map(repr, lacking))}. It needs every "
            "quasi-identifier of the release, under its name"
        )
    markers = tuple(missing_markers)
    readings, kinds, problems = [], [], []
    for index, attribute in enumerate(attributes):
        raw_type = types[attribute.name]
        by_hierarchy = attribute.rule is not None or attribute.name in hierarchies
        comparison = _comparison(attribute, raw_type)
        if not is_readable(raw_type, comparison.read_as):
            problems.append(
                f"{subject}: column {attribute.name!r} has type {type_name(raw_type)}, which "
                f"cannot be compared with values of kind {attribute.kind}. Cast it first"
            )
        readings.append(
            Reading(
                attribute.name,
                f"value_{index}",
                comparison.read_as,
                markers,
                blanks=BLANKS,
                whole=by_hierarchy,
                by_text=comparison.by_text,
            )
        )
        kinds.append(comparison.compared_as)
    if problems:
        raise DataError(*problems)
    records = table.read(readings, carried)
    if drops_missing:
        records = records.without([reading.missing for reading in readings])
    return PreparedTable(records, tuple(kinds))


def order_of_code(attribute: PublishedAttribute) -> ComparedAs | None:
    """Return the order in which a rule's masks cover neighbours, or None without such a rule.

    >>> order_of_code(PublishedAttribute("zip", "category", "interval", ("zip",), rule="prefix"))
    'code'
    """
    orders: dict[str | None, ComparedAs] = {"prefix": "code", "keep": "beginning"}
    return orders.get(attribute.rule)


class _Comparison(NamedTuple):
    """The type and order in which values are compared, and whether they are read by their texts."""

    read_as: pa.DataType
    compared_as: ComparedAs | None
    by_text: bool = False


def _comparison(attribute: PublishedAttribute, raw_type: pa.DataType) -> _Comparison:
    """Choose how raw values are compared with an attribute: the kind decides, for numbers the type.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> _comparison(age, pa.int32())
    _Comparison(read_as=DataType(int64), compared_as='integer', by_text=False)
    """
    match attribute.kind:
        case "category":
            return _Comparison(pa.string(), order_of_code(attribute))
        case "boolean":
            return _Comparison(pa.bool_(), None)
        case "date":
            return _Comparison(pa.date32(), "integer")
        case "timestamp":
            return _Comparison(pa.timestamp("us"), "integer")
        case "float":
            # Rounded to 32 bits, as the released values were.
            single = attribute.type == "float"
            return _Comparison(pa.float32() if single else pa.float64(), "float")
    if pa.types.is_integer(raw_type):
        return _Comparison(pa.int64(), "integer")
    if pa.types.is_decimal(raw_type):
        # Spark may allow negative scales: hundreds are whole numbers, too.
        scale = max(raw_type.scale, 0)
        return _Comparison(pa.decimal128(DECIMAL_DIGITS, scale), scale)
    if is_number(raw_type) and (attribute.rule is not None or attribute.kind == "integer"):
        # The labels of a rule were made from the text.
        return _Comparison(pa.float64(), "float", attribute.rule is not None)
    # Floats are read from their texts: 0.1 is one tenth.
    scale = _text_places(attribute.type)
    return _Comparison(pa.decimal128(DECIMAL_DIGITS, scale), scale, by_text=True)


def _text_places(arrow_type: str | None) -> int:
    """Return the decimal places that numbers in texts are read with.

    18, unless the released values were decimals that need more of the 38 digits on one side of the
    point.

    >>> _text_places(None), _text_places("decimal128(38, 30)"), _text_places("decimal128(30, 2)")
    (18, 30, 10)
    """
    if arrow_type is None or not arrow_type.startswith("decimal"):
        return _TEXT_PLACES
    declared = type_of_name(arrow_type)
    digits, scale = int(declared.precision), int(declared.scale)
    return max(min(max(_TEXT_PLACES, scale), DECIMAL_DIGITS - (digits - scale)), 0)


def require_all_read(
    subject: str, attributes: Sequence[PublishedAttribute], unreadable: Sequence[int]
) -> None:
    """Raise DataError if values could not be read, with their number for each attribute.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> require_all_read("--original", [age], [0])
    """
    problems = [
        f"{subject}: {count:,} values of column {attribute.name!r} cannot be read as "
        f"{attribute.kind}. Correct them, or name those that mean missing"
        for attribute, count in zip(attributes, unreadable, strict=True)
        if count
    ]
    if problems:
        raise DataError(*problems)
