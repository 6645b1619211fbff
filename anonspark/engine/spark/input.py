"""The input as Spark reads it: the one pass that judges, hashes, counts and stages."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from anonspark.config import Configuration
from anonspark.core.columns import (
    HASH_KEY,
    PAYLOAD_HASH,
    RECORD_HASH,
    UNIT,
    is_part_of_unit,
    is_payload,
)
from anonspark.core.fingerprints import table_fingerprint
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.columns.judging import Found
from anonspark.engine.columns.planning import plan_columns as plan_columns_of_files
from anonspark.engine.columns.reading import ReadRecords
from anonspark.engine.columns.whole_files import (
    BATCHES,
    FOUND,
    FOUND_TEXT,
    PART,
    PrepareFiles,
    PrepareRecords,
)
from anonspark.engine.file_schemas import FileSchemas
from anonspark.engine.files import literal
from anonspark.engine.protocol import Engine, InputColumn, OnBatches, Staged
from anonspark.engine.spark.arrow import arrow_schema, spark_schema
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.fingerprints import content_hash, hash_sums, sum_of_hashes
from anonspark.engine.spark.hidden import with_hidden_number
from anonspark.engine.spark.judging import KEPT, inspection_columns, judge_rows
from anonspark.engine.spark.reading import ColumnPlan, plan_columns, select_attributes, with_units
from anonspark.engine.spark.settings import batches_of_rows, one_row_at_a_time
from anonspark.engine.spark.table import SparkTable, write_parts
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.spark.whole_files import WholeFiles, find_whole_files
from anonspark.engine.struct_fields import whole_columns

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class SparkInput:
    """A DataFrame as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    engine : Engine
    table : DataFrame
        As it was opened.
    judged : DataFrame
        What may be published of it, judged.
    plans : list of ColumnPlan
        Of ``judged``.
    content : list of str
        Columns of the records.
    configuration : Configuration
    read : list of ColumnPlan
        Of ``table``.
    hierarchies : mapping of str to Hierarchy
    files : FileSchemas or None
        What the files of ``table`` tell, if it is made of files that tell something.
    """

    engine: Engine
    table: DataFrame
    judged: DataFrame
    plans: list[ColumnPlan]
    content: list[str]
    configuration: Configuration
    read: list[ColumnPlan]
    hierarchies: Mapping[str, Hierarchy]
    files: FileSchemas | None = None

    @classmethod
    def of(
        cls,
        engine: Engine,
        table: DataFrame,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        files: FileSchemas | None = None,
    ) -> SparkInput:
        """Find each attribute's column in a table.

        Raises
        ------
        DataError
            If columns are missing or there twice, or hold what cannot be published.
        """
        table = with_fields(table)
        selected = select_attributes(table, configuration)
        read = plan_columns(selected, configuration, hierarchies)
        judged, plans = judge_rows(selected, read, configuration)
        content = [name for name in selected.columns if not is_part_of_unit(name)]
        return cls(engine, table, judged, plans, content, configuration, read, hierarchies, files)

    @property
    def columns(self) -> list[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    @property
    def names(self) -> list[str]:
        """The columns of the table."""
        return whole_columns(arrow_schema(plain_schema(self.table.schema)))

    @property
    def kept(self) -> SparkTable:
        """The records that stay, as they are staged; lazy."""
        return SparkTable(with_units(self.judged.filter(KEPT), self.configuration), self.engine)

    @property
    def identified(self) -> SparkTable:
        """The same with their identifiers, which are not staged; lazy."""
        selected = select_attributes(self.table, self.configuration, identifiers=True, units=False)
        judged, _ = judge_rows(selected, self.read, self.configuration)
        return SparkTable(judged.filter(KEPT), self.engine)

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        row = self.judged.agg(*inspection_columns(self.plans)).first()
        return row.asDict() if row is not None else {}

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count."""
        given = arrow_schema(plain_schema(self.table.schema))
        columns = plan_columns_of_files(given, self.configuration, self.hierarchies)
        reader = ReadRecords.of(columns, self.configuration, seed=seed)
        whole = find_whole_files(
            self.table.sparkSession,
            self.files,
            self.configuration.input.options,
            given,
            columns,
            reader.columns,
        )
        if isinstance(whole, str):
            _LOGGER.info("the input is handed over row by row, because of %s", whole)
            return self._stage_rows(path, pack, schema, seed)
        return self._stage_files(path, PrepareRecords(reader, pack, schema), whole)

    def _stage_files(self, path: str, prepare: PrepareRecords, whole: WholeFiles) -> Staged:
        session = self.table.sparkSession
        with one_row_at_a_time(session):
            from_files = PrepareFiles(whole.columns, prepare)
            rows = map_batches(whole.contents(session), from_files, spark_schema(prepare.schema))
            write_parts(rows, path, PART)
        notes = f"{literal(path)}/{PART}={FOUND}"
        told = session.read.schema(f"{FOUND_TEXT} string").parquet(notes)
        total = Found()
        for row in told.collect():
            total.merge(Found.of_text(row[0]))
        return Staged(
            f"{path}/{PART}={BATCHES}",
            prepare.reader.schema(whole.columns),
            total.as_dict(prepare.reader.plans),
            table_fingerprint(total.kept, total.hash_sum, total.hash_xor),
        )

    def _stage_rows(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        kept = sf.col(KEPT)
        observation = Observation("prepare")
        key = sf.col(HASH_KEY)
        keyed = with_hidden_number(self.judged, HASH_KEY, seed)
        keyed = with_units(keyed, self.configuration, key)
        units = [UNIT] * bool(self.configuration.privacy.unit)
        content = [sf.col(name) for name in self.content]
        published = [name for name in self.content if is_payload(name)]
        people = [UNIT] * bool(self.configuration.output.pseudonyms)
        payload = [sf.col(name) for name in (*published, *people)]
        hashed = keyed.withColumn(RECORD_HASH, content_hash(content, key)).withColumn(
            PAYLOAD_HASH, content_hash(payload, key)
        )
        sums = hash_sums(sf.when(kept, sf.col(RECORD_HASH)))
        written = (
            hashed.observe(
                observation,
                *inspection_columns(self.plans),
                *(column.alias(name) for name, column in sums.items()),
            )
            .filter(kept)
            .select(*self.content, RECORD_HASH, PAYLOAD_HASH, *units)
        )
        with batches_of_rows(self.table.sparkSession):
            SparkTable(written, self.engine).map_batches(pack, schema).stage(path)
        found = observation.get
        return Staged(
            path,
            arrow_schema(plain_schema(written.schema)),
            found,
            table_fingerprint(found["kept"], sum_of_hashes(found), found["hash_xor"]),
        )


def plain_schema(schema: StructType) -> StructType:
    """Return a schema without the metadata of its fields, which the release's files would hold.

    They may list values, as those that Spark ML gives its columns do.
    """
    return StructType.fromJson(_without_metadata(schema.jsonValue()))


def _without_metadata(described: Any) -> Any:
    if isinstance(described, list):
        return [_without_metadata(each) for each in described]
    if not isinstance(described, dict):
        return described
    inner = {key: _without_metadata(value) for key, value in described.items()}
    return inner | ({"metadata": {}, "nullable": True} if "name" in described else {})
