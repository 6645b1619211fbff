"""Convert tables of all kinds that a program may have to Arrow, and back."""

from __future__ import annotations

import os
import re
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals import dependencies as kinds

from anonspark.config import Configuration
from anonspark.engine.raw_columns import INDEX_NAMES, flags, unread_column
from anonspark.engine.values.text_forms import mean_missing
from anonspark.errors import ConfigurationError, DataError, EnvironmentProblem
from anonspark.reading.frames import as_pandas

Frame = TypeVar("Frame")
"""A table of the kind that was given: a DataFrame of Spark, pandas or polars, or Arrow's."""

GIVEN = "the given DataFrame"
"""What messages call the table."""


def is_of_spark(table: object) -> bool:
    """Return whether a table is a DataFrame of Spark, also one of Spark Connect.

    One of Connect is recognized by the module of its class, because its packages may not load.
    """
    return kinds.is_pyspark_dataframe(table) or any(
        kind.__module__.startswith("pyspark.sql.connect.") for kind in type(table).__mro__
    )


def as_arrow(table: Any, configuration: Configuration | None = None) -> pa.Table:
    """Convert a table of any library that narwhals knows, or that hands out Arrow, to Arrow.

    Lazy tables are computed. A column whose values Arrow has no type for keeps its name and kind
    alone: see :mod:`anonspark.engine.raw_columns`. The ``configuration`` says in which records
    values are required, because others decide no type of pandas' objects. Raises ConfigurationError
    for something else, and DataError if computing fails.
    """
    if kinds.is_pyarrow_table(table):
        return table
    if kinds.is_pandas_dataframe(table):
        return _of_pandas(table, configuration)
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = _computed(frame)
    if isinstance(frame, nw.DataFrame):
        return _of_narwhals(frame)
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return pa.table(table)
        except _NOT_CONVERTED:
            # A column alone hands out Arrow, too.
            raise no_table(table) from None
    raise no_table(table)


def no_table(value: object) -> ConfigurationError:
    """Make the error about a value that is no table.

    >>> str(no_table("people.csv"))[:30]
    'table: found str. Expected a D'
    """
    hint = ". A file is read first" if isinstance(value, str | os.PathLike) else ""
    return ConfigurationError(
        f"table: found {type(value).__name__}. Expected a DataFrame of Spark, pandas or polars, "
        f"or a table of Arrow{hint}"
    )


# Arrow's own errors, and those of columns that convert themselves; all quote values.
_NOT_CONVERTED = (ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException)

# Types of Python that a message names of a column of objects.
_MOST_TYPES = 4


def with_texts(table: Any) -> Any:
    """Convert the objects of a table of pandas to texts. Other tables stay.

    The type of a column of objects is made of all its values, so one would change how the others
    are read, or whether they are.
    """
    if not kinds.is_pandas_dataframe(table):
        return table
    table = table.copy(deep=False)
    for index in range(len(table.columns)):
        values = table.iloc[:, index]
        if values.dtype.kind == "O":
            table.isetitem(index, values.astype(object).map(_text_of, na_action="ignore"))
    return table


def _text_of(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("utf-8", "replace").decode()


def _of_pandas(table: Any, configuration: Configuration | None) -> pa.Table:
    columns = []
    for position in range(len(table.columns)):
        values = table.iloc[:, position]
        try:
            columns.append(_of_objects(table, values, configuration))
        except _NOT_CONVERTED as error:
            columns.append(unread_column(_kind_of(values, error), len(values)))
    names = [str(name) for name in table.columns]
    index = "\0".join(str(name) for name in table.index.names if name is not None)
    metadata = {INDEX_NAMES: index} if index else None
    return pa.Table.from_arrays(columns, names=names, metadata=metadata)


def _of_objects(table: Any, values: Any, configuration: Configuration | None) -> pa.Array:
    """Convert a column of pandas. Of objects, the records that stay decide the type.

    Values of other records that do not fit are missing, as in files of texts.
    """
    kind_of_objects = kinds.get_pandas().api.types.infer_dtype
    if configuration is None or values.dtype != object or kind_of_objects(values) == "string":
        return pa.array(values, from_pandas=True)
    stays = np.ones(len(values), bool)
    for name in configuration.required:
        if list(table.columns).count(name) == 1:
            texts = table[name].astype(object).map(_text_of, na_action="ignore")
            column = pa.array(texts, pa.string(), from_pandas=True)
            stays &= ~flags(mean_missing(column, configuration.input.missing_markers, numbers=True))
    kind = pa.array(values[stays], from_pandas=True).type
    fit = (stay or _fits(value, kind) for value, stay in zip(values, stays, strict=True))
    return pa.array(values.where(list(fit), None), kind, from_pandas=True)


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        return bool(pa.scalar(value, kind).type == kind)
    except _NOT_CONVERTED:
        return False


def _kind_of(values: Any, error: Exception) -> str:
    """Describe the values of a column of pandas, without a value."""
    if isinstance(error, OverflowError):
        return "whole numbers of more than 64 bits"
    if isinstance(error, UnicodeError):
        return "texts that are no Unicode"
    if values.dtype != object:
        return f"values of the type {_type_alone(values.dtype)}"
    names = sorted({type(value).__name__ for value in values.dropna()})
    several = len(names) > 1
    types = ", ".join(names[:_MOST_TYPES]) + (" and others" if len(names) > _MOST_TYPES else "")
    return f"objects of the type{'s' if several else ''} {types}"


def _type_alone(data_type: object) -> str:
    """Return the name of a type without its values, which a category's has.

    >>> _type_alone("category[a, b]")
    'category'
    """
    return re.split(r"[\[(]", str(data_type))[0]


def _of_narwhals(table: nw.DataFrame[Any]) -> pa.Table:
    # For objects, polars would hand out addresses in its memory.
    """Convert a table to Arrow, and mark columns that cannot be converted as not read."""
    objects = [name for name, field in table.schema.items() if field == nw.Object]
    if not objects:
        try:
            return table.to_arrow()
        except _NOT_CONVERTED:
            # The loop below finds the column that fails.
            pass
    columns = []
    for name, dtype in table.schema.items():
        try:
            if name not in objects:
                columns.append(table.get_column(name).to_arrow())
                continue
        except _NOT_CONVERTED:
            pass
        columns.append(unread_column(f"values of the type {_type_alone(dtype)}", len(table)))
    return pa.Table.from_arrays(columns, names=table.columns)


def _computed(table: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Compute a lazy table. The error withholds the library's text, which may quote a value."""
    failures: list[type[Exception]] = [nw.exceptions.NarwhalsError, *_NOT_CONVERTED]
    if (polars := kinds.get_polars()) is not None:
        failures.append(polars.exceptions.PolarsError)
    if (duckdb := kinds.get_duckdb()) is not None:
        failures.append(duckdb.Error)
    try:
        return table.collect()
    except tuple(failures) as error:
        kind = type(error).__name__
    # Outside the handler, so that the traceback does not show the error that came first.
    raise DataError(
        f"table: computing the lazy {type(table.to_native()).__name__} failed with {kind}, whose "
        "text is left out: it may hold data. Compute it yourself, which shows it, and give what "
        "you get"
    )


def as_kind_of(table: pa.Table, like: Any) -> Any:
    """Convert an Arrow table to the library of the caller's table.

    A lazy one of polars becomes a table in memory. Libraries without tables in memory, such as
    DuckDB, get Arrow's.

    >>> as_kind_of(pa.table({"age": [20]}), pa.table({})).column_names
    ['age']
    """
    if kinds.is_pandas_dataframe(like):
        return as_pandas(table)
    if kinds.is_pyarrow_table(like):
        # Narwhals takes no table with a name twice.
        return table
    frame = nw.from_native(like, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return table
    library = frame.implementation
    if isinstance(frame, nw.LazyFrame) and not library.is_polars():
        return table
    return nw.from_arrow(table, backend=library).to_native()


def as_polars(table: pa.Table) -> Any:
    """Convert an Arrow table to polars. Raises EnvironmentProblem if polars is not installed."""
    try:
        return nw.from_arrow(table, backend="polars").to_native()
    except ImportError:
        raise EnvironmentProblem(
            "polars: it is not installed. Install it, or ask for .to_pandas() or .to_arrow()"
        ) from None
