"""Tables of files that the driver reads, whose rows it hands to the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from anonspark.engine.local.given import schema_of_given, sources_of_given
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.tasks import Batches


def hand_to_tasks(spark: SparkSession, table: pa.Table) -> PythonStage:
    """Return a table in memory as Spark's, whose rows travel in batches of Arrow. Lazy."""
    schema = schema_of_given(table)
    rows = []
    for source in sources_of_given(table, schema):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema.remove_metadata()) as writer:
            for batch in source():
                writer.write_batch(batch)
        rows.append((sink.getvalue().to_pybytes(),))
    contents = spark.createDataFrame(rows, "content binary")
    decode = _Decode(tuple(schema.names))
    return PythonStage(contents, decode, schema, decode.select)


@dataclass(frozen=True)
class _Decode:
    names: tuple[str, ...]

    def select(self, names: Sequence[str]) -> _Decode:
        """Return what reads some of the columns."""
        return _Decode(tuple(names))

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for content in batch.column(0):
                for part in pa.ipc.open_stream(content.as_buffer()):
                    yield part.select(list(self.names))
