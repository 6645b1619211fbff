"""Tables of all kinds that a program may have: told apart, made Arrow's, and given back."""

from __future__ import annotations

from typing import Any, TypeVar

import narwhals as nw
import pyarrow as pa
from narwhals import dependencies as kinds

from anonspark.errors import ConfigurationError, EnvironmentProblem

Frame = TypeVar("Frame")
"""A table of the kind that was given: a DataFrame of Spark, pandas or polars, or Arrow's."""

GIVEN = "the given DataFrame"
"""What messages call the table."""


def is_of_spark(table: object) -> bool:
    """Return whether a table is a DataFrame of Spark, also one of Spark Connect.

    One of Connect is told by the module of its class, as its session is: its packages may not load.
    """
    return kinds.is_pyspark_dataframe(table) or any(
        kind.__module__.startswith("pyspark.sql.connect.") for kind in type(table).__mro__
    )


def as_arrow(table: Any) -> pa.Table:
    """Return a table as Arrow's; lazy ones are computed.

    Parameters
    ----------
    table : DataFrame
        Of pandas, polars or another library that narwhals knows, or whatever hands out Arrow.

    Raises
    ------
    ConfigurationError
        If it is no table.
    """
    if kinds.is_pyarrow_table(table):
        return table
    if kinds.is_pandas_dataframe(table):
        return pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    known = nw.from_native(table, pass_through=True)
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    if isinstance(known, nw.DataFrame):
        return known.to_arrow()
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise ConfigurationError(
        f"table: found {type(table).__name__}; expected a DataFrame of Spark, pandas or polars, or "
        "a table of Arrow"
    )


def as_given(found: pa.Table, like: Any) -> Any:
    """Return a table of Arrow as one of the kind that was given.

    Parameters
    ----------
    found : pyarrow.Table
    like : DataFrame
        What was given. A lazy one of polars comes back as a table in memory, and what has no
        tables in memory, such as DuckDB, gets Arrow's.
    """
    if kinds.is_pandas_dataframe(like):
        return found.to_pandas()
    known = nw.from_native(like, pass_through=True)
    if not isinstance(known, nw.DataFrame | nw.LazyFrame):
        return found
    library = known.implementation
    if isinstance(known, nw.LazyFrame) and not library.is_polars():
        return found
    return nw.from_arrow(found, backend=library).to_native()


def as_polars(found: pa.Table) -> Any:
    """Return a table of Arrow as a DataFrame of polars.

    Raises
    ------
    EnvironmentProblem
        If polars is not installed.
    """
    try:
        return nw.from_arrow(found, backend="polars").to_native()
    except ImportError:
        raise EnvironmentProblem(
            "polars: it is not installed; install it, or ask for .to_pandas() or .to_arrow()"
        ) from None
