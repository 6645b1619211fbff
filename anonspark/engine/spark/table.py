"""Implement the verbs of tables (:mod:`anonspark.engine.protocol`) by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.files import PublishedFile, literal
from anonspark.engine.parquet_encoding import Encoding
from anonspark.engine.protocol import ROW_GROUP_BYTES, TASK, Engine, OnBatches, Table
from anonspark.engine.spark.aggregation import (
    aggregate_each_task,
    aggregate_in_tasks,
    can_aggregate_in_tasks,
)
from anonspark.engine.spark.arrow import arrow_schema, collect_arrow
from anonspark.engine.spark.file_contents import SourceFiles
from anonspark.engine.spark.filesystem import files_of
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.parquet_files import (
    VALUES,
    encode_values,
    encoding_of,
    take_over_files,
    write_values,
)
from anonspark.engine.spark.published_files import write_table
from anonspark.engine.spark.python_stage import Chain, PythonStage, stage_of
from anonspark.engine.spark.shuffle_batches import PARCELS, SendParcels, Unpack, shuffled
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.table import BatchTable
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import Conform
from anonspark.engine.values.grouping import Aggregate, aggregates_of

# Options of staged files, whose values are large and compressed already.
_STAGED_FILES = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    # A reader holds a whole row group in memory. By default a writer checks its size only after a
    # hundred rows.
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.page.size.row.check.min": "1",
}

_LISTS = "anonspark_lists"
_TEXTS = (st.StringType, st.VarcharType, st.CharType)


@dataclass(frozen=True)
class SparkTable(BatchTable):
    """A DataFrame, or functions of ours over one, as a :class:`anonspark.engine.protocol.Table`.

    More functions, or a selection of columns, extend a Python stage, so that its rows need not be
    handed to Spark and back. ``source`` has the files of the table if tasks may decode them.
    """

    content: DataFrame | PythonStage
    engine: Engine
    source: SourceFiles | None = None
    _is_persisted: bool = field(default=False, repr=False)

    def _of(self, content: DataFrame | PythonStage) -> SparkTable:
        """Return other content as a table of this engine."""
        return SparkTable(content, self.engine)

    @cached_property
    def frame(self) -> DataFrame:
        """Return the rows as a DataFrame."""
        return self.content.frame() if isinstance(self.content, PythonStage) else self.content

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        if isinstance(self.content, PythonStage):
            return self.content.schema
        return arrow_schema(self.content.schema)

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> SparkTable:
        """Apply a function to the batches of each task."""
        if isinstance(self.content, PythonStage):
            return self._of(self.content.map_batches(function, schema))
        return self._of(stage_of(self.content, function, schema))

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> SparkTable:
        """Apply a function that names a task for each row, and send each row to its task."""
        keys = keys_for_partitions(tasks)
        if any(pa.types.is_binary(field.type) for field in schema):
            # Rows with bytes are few and large, as packed batches are: no parcels are needed.
            addressed = self.map_batches(_Addressed(function, keys), schema)
            return self._of(addressed.frame.repartition(tasks, TASK))
        addressed = self.map_batches(function, schema)
        if not isinstance(addressed.content, PythonStage):
            raise TypeError("the result of a function has to be a stage of Python")
        parcels = map_batches(
            addressed.content.source, Chain(addressed.content.plain, SendParcels(keys)), PARCELS
        )
        return self._of(stage_of(shuffled(parcels, tasks), Unpack(), schema))

    def group(self, by: Sequence[str], tasks: int) -> SparkTable:
        """Bring rows that are equal in some columns into one task."""
        return self._of(self.frame.repartition(tasks, *map(quoted, by)))

    def aggregate(
        self,
        by: Sequence[str],
        *,
        count: str | None = None,
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        hashes: str | None = None,
        lists: Sequence[str] = (),
    ) -> SparkTable:
        """Return one row for each group of rows that are equal in some columns."""
        figures = aggregates_of(
            self.schema, count=count, sums=sums, least=least, most=most, hashes=hashes, lists=lists
        )
        if (
            not isinstance(self.content, PythonStage)
            or not can_aggregate_in_tasks(self.schema, by, figures)
            or (lists and not by)
        ):
            return self._aggregate_by_spark(by, figures)
        if not by:
            rows = self._of(aggregate_each_task(self.content, figures))
            merged = rows._aggregate_by_spark(by, [figure.merged for figure in figures])
            # Without rows Spark's sum of counts is null.
            return merged if count is None else self._of(merged.frame.fillna(0, [count]))
        configuration = self.content.source.sparkSession.conf
        parts = int(configuration.get("spark.sql.shuffle.partitions", None) or 200)
        keys = keys_for_partitions(parts)
        return self._of(aggregate_in_tasks(self.content, by, figures, keys))

    def _aggregate_by_spark(self, by: Sequence[str], figures: Sequence[Aggregate]) -> SparkTable:
        """Aggregate in Spark, for rows that Spark has and figures that are exact in any order.

        With 10M rows, handing them to tasks of ours first takes four times as long or more.
        """
        lists = [quoted(figure.column) for figure in figures if figure.kind == "list"]
        expressions = [_figure(figure) for figure in figures if figure.kind != "list"]
        if lists:
            # One list of structs, so that all lists have the same order.
            expressions.append(sf.collect_list(sf.struct(*lists)).alias(_LISTS))
        keys = [self._key(name) for name in by]
        if not expressions:
            return self._of(self.frame.select(*keys).distinct())
        added = self.frame.groupBy(*keys).agg(*expressions)
        if lists:
            columns = [
                f"{_LISTS}.{quoted(figure.name)}" if figure.kind == "list" else quoted(figure.name)
                for figure in figures
            ]
            names = [*by, *(figure.name for figure in figures)]
            added = added.select(*map(quoted, by), *columns).toDF(*names)
        return self._of(added)

    def _key(self, name: str) -> Column:
        """Return a column to group by: the bytes of texts count, not a collation."""
        column = sf.col(quoted(name))
        data_type = self.frame.schema[name].dataType
        return column.cast("string").alias(name) if isinstance(data_type, _TEXTS) else column

    def join(self, other: Table, on: Sequence[str], *, small: bool) -> SparkTable:
        """Add the columns of another table's row that is equal in some columns, or nulls."""
        frame = frame_of(other)
        return self._of(self.frame.join(sf.broadcast(frame) if small else frame, list(on), "left"))

    def select(self, names: Sequence[str] | Mapping[str, str]) -> SparkTable:
        """Return some columns, also under new names.

        Files are only decoded, and Spark's rows only handed over, for these columns.
        """
        named = names if isinstance(names, Mapping) else {name: name for name in names}
        if (
            isinstance(self.content, PythonStage)
            and named
            and {*named.values()} <= {*self.schema.names}
        ):
            return self._of(self.content.select(named))
        if self.source is not None and named:
            decoded = self.source.select(self.frame, named)
            if decoded is not None:
                return self._of(decoded)
        columns = [sf.col(quoted(old)).alias(new) for new, old in named.items()]
        return self._of(self.frame.select(*columns))

    def union(self, other: Table) -> SparkTable:
        """Return the rows of both tables."""
        return self._of(self.frame.unionByName(frame_of(other)))

    def except_all(self, other: Table) -> SparkTable:
        """Leave out as many copies of each row as another table has."""
        return self._of(self.frame.exceptAll(frame_of(other)))

    def persist(self) -> SparkTable:
        """Return the same table, which keeps its rows in memory or on disk from the first job."""
        return SparkTable(
            self.frame.persist(StorageLevel.MEMORY_AND_DISK_DESER), self.engine, _is_persisted=True
        )

    def unpersist(self) -> None:
        """Free the rows of a table that :meth:`persist` returned."""
        if self._is_persisted:
            self.frame.unpersist()

    def count(self) -> int:
        """Return the number of rows."""
        return self.frame.count()

    def collect(self, most: int | None = None) -> pa.Table:
        """Return all rows, or some of them."""
        return collect_arrow(self.frame if most is None else self.frame.limit(most))

    def stage(self, path: str) -> None:
        """Write the rows to a new directory."""
        self.frame.write.options(**_STAGED_FILES).parquet(path)

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write the rows to a new directory, with a folder for each part, and add up sums by part.

        A small job adds them up afterwards, because each task of an Observation returns 50 kB.
        """
        write_parts(self.frame, path, part)
        if not sums:
            return {key: {} for key in parts}
        staged = self.frame.sparkSession.read.schema(self.frame.schema).parquet(literal(path))
        rows = staged.groupBy(part).agg(*(sf.sum(name).alias(name) for name in sums)).collect()
        added = {row[part]: row for row in rows}
        return {
            key: {name: added[key][name] if key in added else None for name in sums}
            for key in parts
        }

    def publish(
        self, data_format: str, release: str, directory: str, aside: str
    ) -> list[PublishedFile]:
        """Write the rows as files that any program can read."""
        if data_format != "parquet":
            return write_table(self.frame, data_format, release, directory, aside)
        content, schema = self.content, self.schema
        if not isinstance(content, PythonStage):
            content = stage_of(content, Conform(schema), schema)
        session, aside_path = content.source.sparkSession, f"{aside}/{directory}"
        encode = _Encode(content.plain, encoding_of(session, schema))
        write_values(map_batches(content.source, encode, VALUES), aside_path)
        return take_over_files(files_of(session), aside_path, release, directory)


def _figure(figure: Aggregate) -> Column:
    """Return Spark's expression for a figure that is no list."""
    if figure.kind == "count":
        return sf.count(sf.lit(1)).alias(figure.name)
    column = sf.col(quoted(figure.column))
    if figure.type == pa.decimal128(38, 0):
        # Sums of hashes have more than 64 bits.
        column = column.cast("decimal(38,0)")
    figures = {"sum": sf.sum, "min": sf.min, "max": sf.max, "xor": sf.bit_xor}
    return figures[figure.kind](column).alias(figure.name)


@dataclass(frozen=True)
class _Encode:
    """Encodes the batches of a task as a Parquet file."""

    function: OnBatches
    encoding: Encoding

    def __call__(self, batches: Batches) -> Batches:
        return encode_values(self.encoding, self.function(batches))


def write_parts(frame: DataFrame, path: str, part: str) -> None:
    """Write staged rows to a new directory, with a directory for each part. One job.

    ``part`` is the column that names the part of each row. It is not written.
    """
    frame.write.options(**_STAGED_FILES).partitionBy(part).parquet(path)


def frame_of(table: Table) -> DataFrame:
    """Return the DataFrame of a table. Raises TypeError if the table is another engine's."""
    if not isinstance(table, SparkTable):
        raise TypeError(f"expected a table of Spark, found one of {type(table).__name__}")
    return table.frame


@dataclass(frozen=True)
class _Addressed:
    """Replaces the numbers of tasks by keys that Spark sends to these tasks."""

    function: OnBatches
    task_keys: npt.NDArray[np.int32]

    def __call__(self, batches: Batches) -> Batches:
        for batch in self.function(batches):
            index = batch.schema.get_field_index(TASK)
            keys = pa.array(self.task_keys[batch.column(index).to_numpy()])
            yield batch.set_column(index, TASK, keys)


def keys_for_partitions(partitions: int) -> npt.NDArray[np.int32]:
    """Return for each partition an integer that Spark's hash partitioning sends there, int32 (n,).

    ``repartition(n, column)`` puts a row into partition ``pmod(hash(column), n)``. If the numbers
    of tasks were used as keys, some tasks would get several blocks and others none.

    >>> keys_for_partitions(2).tolist()
    [2, 0]
    """
    keys = np.full(partitions, -1, np.int32)
    start, step = 0, max(1024, 8 * partitions)
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        targets = _murmur3(candidates).astype(np.int64) % partitions
        # The first candidate of each partition, whatever the order of assignment.
        targets_seen, first = np.unique(targets, return_index=True)
        new = keys[targets_seen] < 0
        keys[targets_seen[new]] = candidates[first[new]]
        start += step
    return keys


def _murmur3(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return Spark's ``hash`` of integers: Murmur3 x86 32 bit with seed 42."""
    unsigned = np.uint32
    with np.errstate(over="ignore"):
        mixed = values.astype(unsigned) * unsigned(0xCC9E2D51)
        mixed = (mixed << unsigned(15)) | (mixed >> unsigned(17))
        state = unsigned(42) ^ (mixed * unsigned(0x1B873593))
        state = (state << unsigned(13)) | (state >> unsigned(19))
        state = state * unsigned(5) + unsigned(0xE6546B64)
        state ^= unsigned(4)
        state ^= state >> unsigned(16)
        state *= unsigned(0x85EBCA6B)
        state ^= state >> unsigned(13)
        state *= unsigned(0xC2B2AE35)
        state ^= state >> unsigned(16)
    return state.view(np.int32)
