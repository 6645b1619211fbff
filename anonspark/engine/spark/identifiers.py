"""Identifiers of a table that has to be written before it is anonymized."""

from __future__ import annotations

import secrets

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.config import Configuration
from anonspark.core.columns import HASH_KEY, identifier_column
from anonspark.engine.raw_columns import Reading, is_hashable
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.hidden import with_hidden_number
from anonspark.engine.spark.raw_values import hashable, read_column


def with_numbers_for_identifiers(table: DataFrame, configuration: Configuration) -> DataFrame:
    """Return a table without identifiers that tells as well which of its records share one.

    Parameters
    ----------
    table : DataFrame
        See :func:`anonspark.engine.spark.reading.select_attributes`, with identifiers.
    configuration : Configuration

    Returns
    -------
    DataFrame
        The same columns. Identifiers are hashes with a key that is drawn here and kept nowhere, so
        that nobody can try names against them; null where they are missing. Lazy, no shuffle.
    """
    names = {identifier_column(place) for place in range(len(configuration.identifiers))}
    markers = ("", *configuration.input.missing_markers)
    types = arrow_schema(table.schema)

    def numbers(name: str) -> Column:
        if not is_hashable(types.field(name).type):
            return sf.lit(None).cast("long").alias(name)
        data_type = table.schema[name].dataType
        value, _ = read_column(Reading(name, name, None, markers), data_type)
        number = sf.xxhash64(sf.col(HASH_KEY), hashable(value, data_type))
        return sf.when(value.isNotNull(), number).alias(name)

    keyed = with_hidden_number(table, HASH_KEY, secrets.randbits(64) - 2**63)
    return keyed.select(*(numbers(name) if name in names else name for name in table.columns))
