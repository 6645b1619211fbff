"""Opening the input and finding each attribute's column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.config import Configuration
from anonspark.core.columns import (
    UNIT,
    identifier_column,
    payload_column,
    quasi_identifier_column,
    unit_column,
)
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.kinds import Kind
from anonspark.engine.columns.planning import (
    PlannedColumn,
    no_unit,
    plan_column,
    require_columns,
    told_inside,
    uncountable,
    unfit,
    unpublishable,
)
from anonspark.engine.protocol import InputColumn
from anonspark.engine.raw_columns import WantedColumns, require_distinct
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.databases import is_database, open_database_table
from anonspark.engine.spark.errors import opening_table
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.fingerprints import content_hash
from anonspark.engine.spark.tables import OpenedTable, open_table
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

_NAMES_OF_TYPES = {
    pa.float64(): "double",
    pa.date32(): "date",
    # By its own name: what "timestamp" means is a setting of the session.
    pa.timestamp("us", "UTC"): "timestamp_ltz",
    pa.bool_(): "boolean",
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


def open_input(spark: SparkSession, configuration: Configuration) -> OpenedTable:
    """Open the input, each of whose files has to have every attribute.

    See :func:`anonspark.engine.spark.tables.open_table`, and of databases
    :func:`anonspark.engine.spark.databases.open_database_table`.
    """
    options = configuration.input
    if is_database(options.format):
        with opening_table(options.paths, options.format, "input.path", "input"):
            frame = open_database_table(
                spark, options.paths, options.options, path_key="input.path", section="input"
            )
        return OpenedTable(frame)
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
    table: DataFrame,
    configuration: Configuration,
    *,
    identifiers: bool = False,
    units: bool = True,
) -> DataFrame:
    """Return what may be published, under staged names; identifiers and unlisted columns are left.

    Parameters
    ----------
    table : DataFrame
        With fields of structs as columns or without.
    configuration : Configuration
    identifiers : bool
        Whether the identifiers are there, too: to be counted, not to be staged.
    units : bool
        Whether what tells people apart is there, too, for :func:`with_units`.

    Raises
    ------
    DataError
        If columns are missing or there twice, or hold a type that cannot be published.
    """
    table = with_fields(table)
    require_distinct(table.columns, configuration.attributes, "input")
    require_columns(arrow_schema(table.schema), configuration)
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
    columns += [
        sf.col(places[name]).alias(unit_column(index))
        for index, name in enumerate(configuration.privacy.unit if units else ())
    ]
    if identifiers:
        columns += [
            sf.col(places[name]).alias(identifier_column(index))
            for index, name in enumerate(configuration.identifiers)
        ]
    return table.toDF(*numbered).select(*columns)


def _require_types(available: st.StructType, configuration: Configuration) -> None:
    """Check that the columns hold what attributes of their roles can be."""
    schema = arrow_schema(available)
    problems = []

    def refuse(name: str, say: Callable[[str, pa.DataType, str], str]) -> None:
        told = say(name, schema.field(name).type, _name_of(available[name].dataType))
        problems.append(f"attributes.{name}: {told}")

    for name in configuration.quasi_identifiers:
        if _has_negative_scale(available[name].dataType):
            # No file holds them, not even a staged one.
            refuse(name, unfit)
    for name in configuration.published_as_is:
        if not _publishable(available[name].dataType):
            refuse(name, unpublishable)
    problems += told_inside(schema, configuration)
    for name in dict.fromkeys(one.attribute for one in configuration.privacy.criteria):
        if not isinstance(available[name].dataType, _COUNTABLE_TYPES):
            refuse(name, uncountable)
    for name in configuration.privacy.unit:
        if not isinstance(available[name].dataType, _COUNTABLE_TYPES):
            refuse(name, no_unit)
    if problems:
        raise DataError(*problems)


def with_units(table: DataFrame, configuration: Configuration, *key: Column) -> DataFrame:
    """Replace what tells people apart by a hash of it, null where any part of it is missing.

    Parameters
    ----------
    table : DataFrame
        See :func:`select_attributes`.
    configuration : Configuration
    *key : Column
        Hashed first.
    """
    names = [unit_column(index) for index in range(len(configuration.privacy.unit))]
    if not names:
        return table
    markers = ["", *(marker.strip() for marker in configuration.input.missing_markers)]
    values, missing = [], sf.lit(False)
    for name in names:
        value, found = sf.col(name), table.schema[name].dataType
        gone = value.isNull()
        if isinstance(found, TEXT_TYPES):
            # Two spellings of a number would be two people.
            value = sf.trim(value.cast("string"))
            gone = gone | value.isin(markers)
        elif isinstance(found, st.FractionalType) and not isinstance(found, st.DecimalType):
            gone = gone | sf.isnan(value)
        values.append(value)
        missing = missing | gone
    hashed = sf.when(~missing, content_hash(values, *key))
    return table.withColumn(UNIT, hashed).drop(*names)


def _name_of(data_type: st.DataType) -> str:
    return data_type.simpleString()


def _has_negative_scale(data_type: st.DataType) -> bool:
    """Return whether values are decimals that Spark has where it is told to, and no file has."""
    return isinstance(data_type, st.DecimalType) and data_type.scale < 0


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
    selected_types = arrow_schema(selected.schema)
    for index, name in enumerate(configuration.quasi_identifiers):
        column = quasi_identifier_column(index)
        attribute = configuration.attributes[name]
        found = selected.schema[column].dataType
        # A type that Arrow has not, or whose values no file holds, is fit for nothing here.
        known = pa.null() if _has_negative_scale(found) else selected_types.field(column).type
        named = _name_of(found)
        plan = plan_column(name, attribute, known, hierarchies.get(name), named)
        if isinstance(plan, str):
            problems.append(f"attributes.{name}: {plan}")
        else:
            plans.append(_plan(column, plan, found, configuration.input.missing_markers))
    if problems:
        raise DataError(*problems)
    return plans


def _plan(
    column: str, planned: PlannedColumn, found: st.DataType, markers: list[str]
) -> ColumnPlan:
    """Return the columns that read and judge a quasi-identifier."""
    value = sf.col(column)
    missing = value.isNull()
    invalid = infinite = numeric_text = sf.lit(False)
    is_text = isinstance(found, TEXT_TYPES)
    if is_text:
        value = value.cast("string")
        missing = missing | sf.trim(value).isin([marker.strip() for marker in markers])
        if planned.column.undeclared_text:
            numeric_text = ~missing & sf.expr(f"try_cast(trim({column}) AS double)").isNotNull()
    if planned.read_as is not None:
        target = _NAMES_OF_TYPES[planned.read_as]
        cast = sf.expr(f"try_cast(trim({column}) AS {target})")
        invalid = ~missing & cast.isNull()
        value = cast
    if planned.kind_read == "float":
        missing = missing | sf.isnan(value)
        infinite = ~missing & sf.abs(value).eqNullSafe(sf.lit(float("inf")))
    if planned.column.attribute.hierarchy is not None:
        value = _text_of(value, planned.kind_read)
    elif planned.in_text is not None:
        value = value.cast("string")
    return ColumnPlan(
        column=planned.column,
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
