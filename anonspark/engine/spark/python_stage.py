"""Chain our functions in a task, without Java between two of them.

Handing rows from Python to Java and back takes longer than most of our functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.protocol import OnBatches
from anonspark.engine.spark.arrow import SPARK_TYPE, arrow_schema, spark_schema
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.table import SelectColumns
from anonspark.engine.tasks import Batches, takes_dictionaries
from anonspark.engine.values.batches import Conform


@dataclass(frozen=True)
class PythonStage:
    """The result of a function for the batches of a DataFrame, whose texts may be dictionaries.

    ``schema`` is that of the result without dictionaries. ``choose`` returns the function for some
    of the columns, or is None if it would not save work. ``rows`` returns the same result as Spark
    computes it, if that is shorter, or is None.
    """

    source: DataFrame
    function: OnBatches
    schema: pa.Schema
    choose: Callable[[Sequence[str]], OnBatches] | None = None
    rows: Callable[[], DataFrame] | None = None

    @property
    def plain(self) -> OnBatches:
        """Return the function with a result without dictionaries."""
        return Chain(self.function, Conform(self.schema))

    def frame(self) -> DataFrame:
        """Return the rows."""
        if self.rows is not None:
            return self.rows()
        return map_batches(self.source, self.plain, spark_schema(self.schema))

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> PythonStage:
        """Apply a function. Texts stay dictionaries if it takes them."""
        conform = Conform(self.schema, takes_dictionaries(function))
        return stage_of(self.source, Chain(Chain(self.function, conform), function), schema)

    def select(self, columns: Mapping[str, str]) -> PythonStage:
        """Return columns under new names."""
        schema = pa.schema(self.schema.field(old).with_name(new) for new, old in columns.items())
        names = list(dict.fromkeys(columns.values()))
        function = self.function if self.choose is None else self.choose(names)
        rows = None if self.rows is None else _Renamed(self.rows, columns)
        return PythonStage(self.source, Chain(function, SelectColumns(columns)), schema, rows=rows)


def stage_of(source: DataFrame, function: OnBatches, schema: pa.Schema) -> PythonStage:
    """Return the stage of a function, with a schema in the types that Spark has."""
    return PythonStage(source, function, arrow_schema(spark_schema(schema)))


def is_whole_type(field: pa.Field) -> bool:
    """Return whether Arrow expresses a column's type of Spark: it cannot express a collation."""
    return SPARK_TYPE not in (field.metadata or {})


@dataclass(frozen=True)
class Chain:
    """Applies one function after another."""

    first: OnBatches
    second: OnBatches

    def __call__(self, batches: Batches) -> Batches:
        """Apply both.

        >>> list(Chain(list, reversed)([1, 2]))
        [2, 1]
        """
        return self.second(self.first(batches))


@dataclass(frozen=True)
class _Renamed:
    """Renames the columns of rows that Spark computes."""

    rows: Callable[[], DataFrame]
    columns: Mapping[str, str]

    def __call__(self) -> DataFrame:
        columns = [sf.col(quoted(old)).alias(new) for new, old in self.columns.items()]
        return self.rows().select(*columns)
