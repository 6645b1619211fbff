"""Opening the input and finding each attribute's column."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.config import Attribute, Configuration
from anonspark.core.columns import identifier_column, payload_column, quasi_identifier_column
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.kinds import Kind
from anonspark.engine.protocol import InputColumn
from anonspark.engine.raw_columns import WantedColumns, require_distinct
from anonspark.engine.spark.tables import open_table
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.errors import DataError

_COUNTABLE_TYPES = (
    st.NumericType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
    st.BooleanType,
    *TEXT_TYPES,
)
_PUBLISHABLE_TYPES = (*_COUNTABLE_TYPES, st.BinaryType)

_CAST_TYPES = {
    "number": ("double", "float"),
    "date": ("date", "date"),
    # By its own name: what "timestamp" means is a setting of the session.
    "timestamp": ("timestamp_ltz", "timestamp"),
    "boolean": ("boolean", "boolean"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """How one quasi-identifier is read.

    Parameters
    ----------
    column : InputColumn
        What layers know of it.
    value : Column
        The value, null where it is missing or not of its declared type.
    missing : Column
        Whether it is missing: null, NaN or one of the markers.
    invalid : Column
        Whether it is there but not of its declared type.
    infinite : Column
        Whether it is an infinite number.
    numeric_text : Column
        Whether it is text of which nothing was declared, and reads as a number.
    data_type : DataType
        Of the values, where they are points in time.
    """

    column: InputColumn
    value: Column
    missing: Column
    invalid: Column
    infinite: Column
    numeric_text: Column
    data_type: st.DataType


def open_input(spark: SparkSession, configuration: Configuration) -> DataFrame:
    """Open the input, each of whose files has to have every attribute.

    See :func:`anonspark.engine.spark.tables.open_table`.
    """
    options = configuration.input
    wanted = WantedColumns(
        {name: one.role != "identifier" for name, one in configuration.attributes.items()},
        options.missing_columns,
        "input.missing_columns",
    )
    return open_table(
        spark,
        options.paths,
        options.format,
        options.options,
        path_key="input.path",
        section="input",
        wanted=wanted,
    )


def select_attributes(
    table: DataFrame, configuration: Configuration, *, identifiers: bool = False
) -> DataFrame:
    """Return what may be published, under staged names; identifiers and unlisted columns are left.

    Parameters
    ----------
    table : DataFrame
    configuration : Configuration
    identifiers : bool
        Whether the identifiers are there, too: to be counted, not to be staged.

    Raises
    ------
    DataError
        If columns are missing or there twice, or hold a type that cannot be published.
    """
    require_distinct(table.columns, configuration.attributes, "input")
    _require_columns(table.columns, configuration)
    _require_types(table.schema, configuration)
    payload = configuration.published_as_is
    # By their places: how names are found is a setting of the session.
    numbered = [f"column_{place}" for place in range(len(table.columns))]
    places = dict(zip(table.columns, numbered, strict=True))
    columns = [
        sf.col(places[name]).alias(quasi_identifier_column(index))
        for index, name in enumerate(configuration.quasi_identifiers)
    ]
    columns += [sf.col(places[name]).alias(payload_column(i)) for i, name in enumerate(payload)]
    if identifiers:
        columns += [
            sf.col(places[name]).alias(identifier_column(index))
            for index, name in enumerate(configuration.identifiers)
        ]
    return table.toDF(*numbered).select(*columns)


def _require_columns(available: Sequence[str], configuration: Configuration) -> None:
    """Check that there is a column for each attribute."""
    lowered = {name.lower() for name in available}
    if configuration.input.format == "csv" and lowered.isdisjoint(
        name.lower() for name in configuration.attributes
    ):
        # Of a file without a header, its names are the values of the first record.
        raise DataError(
            f"attributes: the input has {len(available):,} columns, and none of them has the name "
            "of an attribute; check input.options (header, sep, encoding), and that the first line "
            "of the files holds the names of their columns"
        )
    problems = []
    for name in configuration.attributes:
        if name not in available:
            near = difflib.get_close_matches(name, available, n=1, cutoff=0.5)
            near = near or [other for other in available if other.lower() == name.lower()]
            hint = f"did you mean {near[0]!r}? " if near else ""
            problems.append(
                f"attributes.{name}: the input has no such column; {hint}"
                f"it has {', '.join(repr(other) for other in available) or 'no columns'}"
            )
    if problems:
        raise DataError(*problems)


def _require_types(available: st.StructType, configuration: Configuration) -> None:
    """Check that the columns hold what attributes of their roles can be."""
    problems = []
    for name in configuration.quasi_identifiers:
        if _has_negative_scale(available[name].dataType):
            # No file holds them, not even a staged one.
            problems.append(f"attributes.{name}: {_unfit(available[name].dataType)}")
    for name in configuration.published_as_is:
        if not _publishable(available[name].dataType):
            problems.append(
                f"attributes.{name}: columns of type {available[name].dataType.simpleString()} "
                "cannot be published; convert it to an array or a text first, or leave it out"
            )
    for name in dict.fromkeys(one.attribute for one in configuration.privacy.criteria):
        if not isinstance(available[name].dataType, _COUNTABLE_TYPES):
            problems.append(
                f"attributes.{name}: a criterion cannot be about a column of type "
                f"{available[name].dataType.simpleString()}; use a number, date, timestamp, "
                "boolean or text column"
            )
    if problems:
        raise DataError(*problems)


def _has_negative_scale(data_type: st.DataType) -> bool:
    """Return whether values are decimals that Spark has where it is told to, and no file has."""
    return isinstance(data_type, st.DecimalType) and data_type.scale < 0


def _unfit(data_type: st.DataType) -> str:
    return (
        f"a quasi-identifier cannot have type {data_type.simpleString()}; "
        "use a number, date, timestamp, boolean or text column"
    )


def _publishable(data_type: st.DataType) -> bool:
    """Return whether values of a type can be hashed, compared and written."""
    if _has_negative_scale(data_type):
        return False
    if isinstance(data_type, st.ArrayType):
        return _publishable(data_type.elementType)
    if isinstance(data_type, st.StructType):
        return all(_publishable(field.dataType) for field in data_type)
    return isinstance(data_type, _PUBLISHABLE_TYPES)


def plan_columns(
    selected: DataFrame, configuration: Configuration, hierarchies: Mapping[str, Hierarchy]
) -> list[ColumnPlan]:
    """Decide how each quasi-identifier is read from its column's type and its declaration.

    Parameters
    ----------
    selected : DataFrame
        See :func:`select_attributes`.
    configuration : Configuration
    hierarchies : mapping
        Attribute name to what its hierarchy's file says.

    Raises
    ------
    DataError
        If a column's type and the declared one do not go together.
    """
    plans, problems = [], []
    for index, name in enumerate(configuration.quasi_identifiers):
        column = quasi_identifier_column(index)
        attribute = configuration.attributes[name]
        found = selected.schema[column].dataType
        plan = _plan(column, name, attribute, found, configuration.input.missing_markers)
        if isinstance(plan, str):
            problems.append(f"attributes.{name}: {plan}")
        else:
            own = replace(plan.column, hierarchy=hierarchies.get(name))
            plans.append(replace(plan, column=own))
    if problems:
        raise DataError(*problems)
    return plans


def _plan(
    column: str, name: str, attribute: Attribute, found: st.DataType, markers: list[str]
) -> ColumnPlan | str:
    value = sf.col(column)
    no = sf.lit(False)
    is_text = isinstance(found, TEXT_TYPES)
    missing = value.isNull()
    invalid = infinite = numeric_text = no
    kind = _kind_of(found)
    if kind is None:
        return _unfit(found)
    declared = attribute.type or _IMPLIED_TYPES.get(attribute.hierarchy_kind)
    if attribute.order:
        declared = "text"
    if attribute.hierarchy is not None and declared in _CAST_TYPES:
        if not is_text and declared not in _DECLARED_OF_KIND[kind]:
            return (
                f"its hierarchy needs a {declared}, but the column has type "
                f"{found.simpleString()}; correct attributes.{name}.hierarchy, or the column"
            )
    elif attribute.hierarchy is not None:
        declared = "text"
    if is_text:
        value = value.cast("string")
        missing = missing | sf.trim(value).isin([marker.strip() for marker in markers])
        if declared is None:
            numeric_text = ~missing & sf.expr(f"try_cast(trim({column}) AS double)").isNotNull()
        if declared in _CAST_TYPES:
            target, kind = _CAST_TYPES[declared]  # type: ignore[assignment]
            cast = sf.expr(f"try_cast(trim({column}) AS {target})")
            invalid = ~missing & cast.isNull()
            value = cast
    elif declared == "text":
        if attribute.hierarchy is None:
            value, kind = value.cast("string"), "category"
    elif declared is not None and declared not in _DECLARED_OF_KIND[kind]:
        return (
            f"declared as {declared}, but the column has type {found.simpleString()}; "
            "correct attributes." + name + ".type, or the column"
        )
    if kind == "float":
        missing = missing | sf.isnan(value)
        infinite = ~missing & sf.abs(value).eqNullSafe(sf.lit(float("inf")))
    if attribute.hierarchy is not None:
        value, kind = _text_of(value, kind), "category"
    return ColumnPlan(
        column=InputColumn(name, attribute, kind, is_text and declared is None, declared),
        value=sf.when(~missing, value),
        missing=missing,
        invalid=invalid,
        infinite=infinite,
        numeric_text=numeric_text,
        data_type=st.TimestampType() if is_text else found,
    )


def _text_of(value: Column, kind: Kind) -> Column:
    """Return the text by which a hierarchy knows a value: one for each value."""
    match kind:
        case "category":
            return sf.btrim(value.cast("string"), sf.lit(BLANKS))
        case "float":
            # 17, not 17.0; and -0.0 and 0.0 are one value.
            whole = sf.when((sf.rint(value) == value) & (sf.abs(value) < sf.lit(1e15)), value)
            return sf.coalesce(whole.cast("long").cast("string"), value.cast("string"))
        case _:
            return value.cast("string")


_IMPLIED_TYPES: dict[str | None, str] = {"intervals": "number", "calendar": "date"}

_DECLARED_OF_KIND: dict[Kind, tuple[str, ...]] = {
    "integer": ("number",),
    "float": ("number",),
    "decimal": ("number",),
    "date": ("date",),
    "timestamp": ("timestamp",),
    "boolean": ("boolean",),
    "category": ("text",),
}


def _kind_of(data_type: st.DataType) -> Kind | None:
    if _has_negative_scale(data_type):
        return None
    kinds: list[tuple[type[st.DataType] | tuple[type[st.DataType], ...], Kind]] = [
        (st.IntegralType, "integer"),
        (st.DecimalType, "decimal"),
        (st.FractionalType, "float"),
        (st.DateType, "date"),
        ((st.TimestampType, st.TimestampNTZType), "timestamp"),
        (st.BooleanType, "boolean"),
        (TEXT_TYPES, "category"),
    ]
    return next((kind for types, kind in kinds if isinstance(data_type, types)), None)
