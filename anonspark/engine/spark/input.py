"""The input as Spark reads it: the one pass that judges, hashes, counts and stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from anonspark.config import Configuration
from anonspark.core.columns import HASH_KEY, PAYLOAD_HASH, RECORD_HASH, is_payload
from anonspark.core.fingerprints import table_fingerprint
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Engine, InputColumn, OnBatches, Staged
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.fingerprints import content_hash, hash_sums, sum_of_hashes
from anonspark.engine.spark.hidden import with_hidden_number
from anonspark.engine.spark.judging import KEPT, inspection_columns, judge_rows
from anonspark.engine.spark.reading import ColumnPlan, plan_columns, select_attributes
from anonspark.engine.spark.settings import batches_of_rows
from anonspark.engine.spark.table import SparkTable


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
    """

    engine: Engine
    table: DataFrame
    judged: DataFrame
    plans: list[ColumnPlan]
    content: list[str]
    configuration: Configuration
    read: list[ColumnPlan]

    @classmethod
    def of(
        cls,
        engine: Engine,
        table: DataFrame,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
    ) -> SparkInput:
        """Find each attribute's column in a table.

        Raises
        ------
        DataError
            If columns are missing or there twice, or hold what cannot be published.
        """
        selected = select_attributes(table, configuration)
        read = plan_columns(selected, configuration, hierarchies)
        judged, plans = judge_rows(selected, read, configuration)
        return cls(engine, table, judged, plans, selected.columns, configuration, read)

    @property
    def columns(self) -> list[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    @property
    def kept(self) -> SparkTable:
        """The records that stay, as they are staged; lazy."""
        return SparkTable(self.judged.filter(KEPT), self.engine)

    @property
    def identified(self) -> SparkTable:
        """The same with their identifiers, which are not staged; lazy."""
        selected = select_attributes(self.table, self.configuration, identifiers=True)
        judged, _ = judge_rows(selected, self.read, self.configuration)
        return SparkTable(judged.filter(KEPT), self.engine)

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        row = self.judged.agg(*inspection_columns(self.plans)).first()
        return row.asDict() if row is not None else {}

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count."""
        kept = sf.col(KEPT)
        observation = Observation("prepare")
        keyed = with_hidden_number(self.judged, HASH_KEY, seed)
        key = sf.col(HASH_KEY)
        content = [sf.col(name) for name in self.content]
        payload = [sf.col(name) for name in self.content if is_payload(name)]
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
            .select(*self.content, RECORD_HASH, PAYLOAD_HASH)
        )
        with batches_of_rows(self.table.sparkSession):
            SparkTable(written, self.engine).map_batches(pack, schema).stage(path)
        found = observation.get
        return Staged(
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
