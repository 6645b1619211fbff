"""Batches that our functions make in a task, one function after the other.

Between two functions nothing is handed to Java: what Spark does with rows on their way from Python
and back costs more than most of our functions do.
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
    """The result of a function for the rows of a DataFrame.

    Parameters
    ----------
    source : DataFrame
    function : callable
        Its texts may be dictionaries.
    schema : pyarrow.Schema
        Of what it makes, without dictionaries.
    choose : callable or None
        Returns the function that makes some of the columns alone. None where it would do the same
        work.
    rows : callable or None
        Returns the same as rows, where Spark has a shorter way to them.
    """

    source: DataFrame
    function: OnBatches
    schema: pa.Schema
    choose: Callable[[Sequence[str]], OnBatches] | None = None
    rows: Callable[[], DataFrame] | None = None

    @property
    def plain(self) -> OnBatches:
        """The function, without dictionaries."""
        return Then(self.function, Conform(self.schema))

    def frame(self) -> DataFrame:
        """Return the rows."""
        if self.rows is not None:
            return self.rows()
        return map_batches(self.source, self.plain, spark_schema(self.schema))

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> PythonStage:
        """Apply a function. Texts stay dictionaries where it takes them."""
        conform = Conform(self.schema, takes_dictionaries(function))
        return stage_of(self.source, Then(Then(self.function, conform), function), schema)

    def select(self, columns: Mapping[str, str]) -> PythonStage:
        """Return columns under new names."""
        schema = pa.schema(self.schema.field(old).with_name(new) for new, old in columns.items())
        names = list(dict.fromkeys(columns.values()))
        function = self.function if self.choose is None else self.choose(names)
        rows = None if self.rows is None else _Renamed(self.rows, columns)
        return PythonStage(self.source, Then(function, SelectColumns(columns)), schema, rows=rows)


def stage_of(source: DataFrame, function: OnBatches, schema: pa.Schema) -> PythonStage:
    """Return what a function makes of rows, with the types that Spark has for it."""
    return PythonStage(source, function, arrow_schema(spark_schema(schema)))


def is_whole_type(field: pa.Field) -> bool:
    """Return whether a type of Arrow says all of a type of Spark: not the collation of a text."""
    return SPARK_TYPE not in (field.metadata or {})


@dataclass(frozen=True)
class Then:
    """Applies one function after the other."""

    first: OnBatches
    second: OnBatches

    def __call__(self, batches: Batches) -> Batches:
        """Apply both."""
        return self.second(self.first(batches))


@dataclass(frozen=True)
class _Renamed:
    rows: Callable[[], DataFrame]
    columns: Mapping[str, str]

    def __call__(self) -> DataFrame:
        columns = [sf.col(quoted(old)).alias(new) for new, old in self.columns.items()]
        return self.rows().select(*columns)
