"""Convert tables in memory to the types that tables of files have."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.engine.local.running import Source
from anonspark.engine.raw_columns import INDEX_NAMES, in_order, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import (
    BATCH_ROWS,
    TypeNotReadError,
    type_as_read,
    values_as_read,
)
from anonspark.engine.values.text_forms import forms_of, type_of
from anonspark.engine.values.value_texts import are_missing, parse
from anonspark.errors import DataError

# Rows of a task: with so many the time to start it does not matter.
_TASK_ROWS = 4 * BATCH_ROWS


def memory_schema(table: pa.Table) -> pa.Schema:
    """Return the schema of a table in memory, in the types that a file would have.

    Columns of a type that no file has keep it, and cannot be attributes.
    """
    stored = table.schema
    index = {name: value for name, value in (stored.metadata or {}).items() if name == INDEX_NAMES}
    return pa.schema(map(_field_of, stored, table.columns), index)


def with_days(table: pa.Table, configuration: Configuration | None = None) -> pa.Table:
    """Convert moments that are all midnights, and texts that are all ISO days, to days.

    Midnights are those of the column's zone. A declared type takes precedence, left-out records
    decide nothing, and only texts of quasi-identifiers are converted. Raises DataError if days are
    declared, and a moment is no day.
    """
    attributes = {} if configuration is None else configuration.attributes
    markers = () if configuration is None else ("", *configuration.input.missing_markers)
    stays = pa.repeat(pa.scalar(value=True), len(table))
    for name in configuration.required if configuration is not None else ():
        if table.schema.names.count(name) == 1:
            stays = pc.and_not(stays, are_missing(table[name], markers))
    for index, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        attribute = attributes.get(field.name)
        declared = None if attribute is None else attribute.declared_type
        if pa.types.is_timestamp(field.type) and declared != "timestamp":
            days, is_day = _days_of_moments(column, stays)
            if declared == "date" and not is_day:
                raise DataError(
                    f"attributes.{field.name}: declared as date, but holds moments that are not "
                    f"midnight in {field.type.tz or 'the zone of the column'}. Declare type: "
                    "timestamp, or convert the column"
                )
        elif (is_text(field.type) or field.type == pa.string_view()) and (
            configuration is None or (attribute is not None and attribute.is_undeclared)
        ):
            texts = column.cast(pa.string()).combine_chunks()
            present = texts.filter(pc.and_not(stays, are_missing(texts, markers)))
            is_day = type_of(forms_of(present))[0] == pa.date32()
            days = parse(texts, pa.date32()) if is_day else texts
        else:
            continue
        if is_day and days.null_count < len(days):
            table = table.set_column(index, field.name, days)
    return table


def _days_of_moments(column: pa.ChunkedArray, stays: pa.Array) -> tuple[pa.ChunkedArray, bool]:
    """Return the days of moments, and whether all moments of rows that stay are midnights."""
    local = pc.local_timestamp(column) if column.type.tz else column
    days = local.cast(pa.date32(), safe=False)
    midnights = pc.equal(days.cast(local.type), local).filter(stays)
    return days, pc.all(midnights, min_count=0).as_py()


def _field_of(source: pa.Field, column: pa.ChunkedArray) -> pa.Field:
    """Return a column in the type of a file, with the order of an ordered dictionary."""
    field = pa.field(source.name, _type_of(source.type))
    if not (pa.types.is_dictionary(source.type) and source.type.ordered and is_text(field.type)):
        return field
    orders = {tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks}
    return in_order(field, orders.pop()) if len(orders) == 1 else field


def _type_of(dtype: pa.DataType) -> pa.DataType:
    """Return the type that a file would have for a type in memory.

    >>> _type_of(pa.timestamp("ns", "Europe/Vienna"))
    TimestampType(timestamp[us, tz=UTC])
    """
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return _type_of(dtype.value_type)
    if pa.types.is_null(dtype):
        # Like in a file, a column without values is text.
        return pa.string()
    if pa.types.is_float16(dtype):
        return pa.float32()
    if pa.types.is_duration(dtype):
        # Files have integers, but in memory the unit depends on the library.
        return dtype
    if pa.types.is_struct(dtype):
        return _struct_of(dtype)
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    try:
        return type_as_read(dtype)
    except TypeNotReadError:
        return dtype


def _struct_of(dtype: pa.StructType) -> pa.DataType:
    """Return the type that a file would have for structs, in which durations keep theirs."""
    try:
        read = type_as_read(dtype)
    except TypeNotReadError:
        return dtype
    fields = (dtype.field(index) for index in range(dtype.num_fields))
    return pa.struct(
        read_field.with_type(_type_of(field.type))
        if pa.types.is_duration(field.type) or pa.types.is_struct(field.type)
        else read_field
        for field, read_field in zip(fields, read, strict=True)
    )


def memory_sources(table: pa.Table, schema: pa.Schema) -> list[Source]:
    """Return tasks that read the rows of a table in memory."""
    starts = range(0, max(len(table), 1), _TASK_ROWS)
    return [partial(_read, table.slice(start, _TASK_ROWS), schema) for start in starts]


def _read(table: pa.Table, schema: pa.Schema) -> Batches:
    """Yield batches of a table in memory, in the types of a file."""
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        pairs = zip(batch.columns, schema, strict=True)
        columns = [values_as_read(_decoded(values), field.type) for values, field in pairs]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _decoded(values: pa.Array) -> pa.Array:
    """Return values without a coding, but texts as dictionaries of plain texts."""
    if pa.types.is_run_end_encoded(values.type):
        return pc.run_end_decode(values)
    if not pa.types.is_dictionary(values.type) or is_text(values.type.value_type):
        return values
    if values.type.value_type == pa.string_view():
        # The texts of polars.
        return pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(pa.string()))
    return values.dictionary_decode()
