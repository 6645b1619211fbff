"""Proof from published files alone: what the smallest class is that an attacker can see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.columns import published_column, quoted
from anonspark.errors import GuaranteeError
from anonspark.fingerprints import content_hash, table_fingerprint
from anonspark.verification.criteria import MeasuredCriterion

__all__ = ["PublishedClasses", "count_published_classes", "require_guarantee"]


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
        sf.col(quoted(name)).alias(published_column(index))
        for index, name in enumerate(quasi_identifiers)
    ]
    names = [published_column(index) for index in range(len(quasi_identifiers))]
    found = (
        data.select(*tuple_columns, content_hash(columns).alias("content_hash"))
        .groupBy(*names)
        .agg(
            sf.count(sf.lit(1)).alias("size"),
            sf.sum(sf.col("content_hash").cast("decimal(38,0)")).alias("hash_sum"),
            sf.bit_xor("content_hash").alias("hash_xor"),
        )
        .groupBy("size")
        .agg(
            sf.count(sf.lit(1)).alias("classes"),
            sf.sum("hash_sum").alias("hash_sum"),
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
            sum(int(row["hash_sum"]) for row in found),
            reduce(xor, (row["hash_xor"] for row in found), 0),
        ),
    )


def require_guarantee(
    published: PublishedClasses,
    *,
    k: int,
    measured: Sequence[MeasuredCriterion] = (),
    rows: int | None = None,
) -> None:
    """Check that a release keeps its promise.

    Parameters
    ----------
    published : PublishedClasses
        Counted from the files.
    k : int
        Smallest class size allowed.
    measured : sequence of MeasuredCriterion
        Criteria beyond k, measured in the files.
    rows : int or None
        Records that the release must hold; None where that is not known.

    Raises
    ------
    GuaranteeError
        If a class is too small or violates a criterion, or records are missing or too many.
    """
    if rows is not None and published.rows != rows:
        raise GuaranteeError(
            f"the staged release holds {published.rows:,} records, expected {rows:,}: records were "
            "lost or doubled on the way; nothing was published. Please report this as a bug"
        )
    if published.smallest < k:
        raise GuaranteeError(
            f"the smallest class of the release has {published.smallest:,} records, "
            f"expected at least k = {k}; the release must not be used"
        )
    violated = [one for one in measured if one.violating_classes]
    if violated:
        raise GuaranteeError(
            "\n".join(
                f"{one.violating_classes:,} of {published.classes:,} classes of the release, with "
                f"{one.violating_records:,} records, violate {one.criterion.describe()} on "
                f"attribute {one.criterion.attribute!r}; the release must not be used"
                for one in violated
            )
        )
