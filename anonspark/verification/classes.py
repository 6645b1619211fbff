"""The classes of published files, as an attacker forms them: by published tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.columns import published_column
from anonspark.engine.spark.fingerprints import (
    content_hash,
    hash_sums,
    sum_of_hashes,
    table_fingerprint,
)
from anonspark.engine.spark.names import quoted
from anonspark.release.published import value_of


@dataclass(frozen=True)
class PublishedClasses:
    """Classes by published tuple, as an attacker forms them.

    Parameters
    ----------
    rows : int
        Published records.
    classes : int
        Different tuples of quasi-identifiers.
    smallest, largest : int
        Records of the smallest and largest class; 0 where nothing was published.
    sizes : mapping of int to int
        Classes of each size.
    fingerprint : str
        Tells whether two releases hold the same records, in whatever order and files.
    """

    rows: int
    classes: int
    smallest: int
    largest: int
    sizes: Mapping[int, int]
    fingerprint: str


def count_published_classes(data: DataFrame, quasi_identifiers: Sequence[str]) -> PublishedClasses:
    """Count the classes of published records.

    Parameters
    ----------
    data : DataFrame
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that tell of quasi-identifiers.

    Returns
    -------
    PublishedClasses

    Notes
    -----
    One job; one shuffle of one row a class and task, and one of a row a class size and task.
    Nothing but the files is trusted.
    """
    columns = [sf.col(quoted(name)) for name in data.columns]
    # Numbered, so that no published name clashes with ours.
    tuple_columns = [
        value_of(name, data.schema[name].dataType).alias(published_column(index))
        for index, name in enumerate(quasi_identifiers)
    ]
    names = [published_column(index) for index in range(len(quasi_identifiers))]
    sums = hash_sums(sf.col("content_hash"))
    found = (
        data.select(*tuple_columns, content_hash(columns).alias("content_hash"))
        .groupBy(*names)
        .agg(
            sf.count(sf.lit(1)).alias("size"),
            *(column.alias(name) for name, column in sums.items()),
        )
        .groupBy("size")
        .agg(
            sf.count(sf.lit(1)).alias("classes"),
            *(sf.sum(name).alias(name) for name in sums if name != "hash_xor"),
            sf.bit_xor("hash_xor").alias("hash_xor"),
        )
        .collect()
    )
    sizes = {row["size"]: row["classes"] for row in found}
    records = sum(size * classes for size, classes in sizes.items())
    return PublishedClasses(
        rows=records,
        classes=sum(sizes.values()),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        sizes=sizes,
        fingerprint=table_fingerprint(
            records,
            sum(sum_of_hashes(row.asDict()) for row in found),
            reduce(xor, (row["hash_xor"] for row in found), 0),
        ),
    )
