"""Replace the identifiers of a table that has to be written before it is anonymized."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from anonspark.config import Configuration
from anonspark.engine.raw_columns import Reading, is_hashable
from anonspark.engine.spark.arrow import arrow_schema, spark_schema
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.engine.values.value_texts import hashed_as, read_values


def with_numbers_for_identifiers(table: DataFrame, configuration: Configuration) -> DataFrame:
    """Replace identifiers by keyed hashes, which only show which records share a value.

    Takes the table of :func:`anonspark.engine.spark.reading.select_attributes`. The key is drawn
    here and stored nowhere, so no reader can test names. Missing values are null. Lazy, no shuffle.
    """
    names = configuration.identifiers
    if not names:
        return table
    schema = arrow_schema(table.schema)
    markers = ("", *configuration.input.missing_markers)
    readings = {
        name: Reading(name, name, None, markers) if is_hashable(schema.field(name).type) else None
        for name in names
    }
    for name in names:
        index = schema.get_field_index(name)
        schema = schema.set(index, pa.field(name, pa.int64()))
    numbers = _NumbersForIdentifiers(readings, secrets.randbits(64) - 2**63)
    return map_batches(table, numbers, spark_schema(schema))


@dataclass(frozen=True)
class _NumbersForIdentifiers:
    """Replaces identifiers by keyed hashes, or by nulls if they cannot be hashed."""

    readings: Mapping[str, Reading | None]
    key: int

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = {
                name: self._numbers(name, column) if name in self.readings else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            yield pa.RecordBatch.from_pydict(columns)

    def _numbers(self, name: str, column: pa.Array) -> pa.Array:
        """Return the hashes of an identifier."""
        reading = self.readings[name]
        if reading is None:
            return pa.nulls(len(column), pa.int64())
        values, missing = read_values(reading, column)
        # Nested values are hashed as texts, as a hash would skip the nulls in them.
        hashes = content_hash([hashed_as(values, values.type)[0]], self.key)
        return pa.array(hashes, mask=missing.to_numpy(zero_copy_only=False))
