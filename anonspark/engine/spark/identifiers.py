"""Identifiers of a table that has to be written before it is anonymized."""

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
    """Return a table whose identifiers only show which of its records share one.

    Parameters
    ----------
    table : DataFrame
        See :func:`anonspark.engine.spark.reading.select_attributes`.
    configuration : Configuration

    Returns
    -------
    DataFrame
        The same columns. Identifiers are hashes with a key that is drawn here and kept nowhere, so
        that no one can try names against them. Null where they are missing. Lazy, no shuffle.
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
    """Replaces identifiers by keyed hashes. What cannot be hashed by nulls."""

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
        reading = self.readings[name]
        if reading is None:
            return pa.nulls(len(column), pa.int64())
        values, missing = read_values(reading, column)
        # A hash passes over nulls inside of nested values, which their texts have.
        hashes = content_hash([hashed_as(values, values.type)[0]], self.key)
        return pa.array(hashes, mask=missing.to_numpy(zero_copy_only=False))
