"""Proving a release from its own files."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from anonspark.configuration import Configuration
from anonspark.errors import DataError, GuaranteeError
from anonspark.filesystem import FileSystem
from anonspark.publish.manifest import read_manifest
from anonspark.publish.verification import (
    PublishedClasses,
    count_published_classes,
    require_guarantee,
)
from anonspark.spark_errors import reading_input

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """What the files of a release show.

    Parameters
    ----------
    k : int
        Class size that was required.
    quasi_identifier_columns : list of str
        Published columns that classes were formed by.
    published : PublishedClasses
        Counted from the files.
    """

    k: int
    quasi_identifier_columns: list[str]
    published: PublishedClasses


def verify(
    spark: SparkSession, release: str, configuration: Configuration | None = None
) -> Verification:
    """Prove that every class of a release, by published tuple, has at least k records.

    Parameters
    ----------
    spark : SparkSession
    release : str
        The directory that ``output.path`` named.
    configuration : Configuration or None
        What to require; without it, what the release's manifest promises.

    Returns
    -------
    Verification

    Raises
    ------
    DataError
        If there is no complete release, or it lacks columns.
    GuaranteeError
        If a class is too small, or the files are not those that were published.

    Notes
    -----
    One pass over the published files, one shuffle of class sizes. The metrics are not looked at.
    """
    files = FileSystem(spark)
    release = release.rstrip("/")
    manifest = read_manifest(files, release)
    with reading_input((f"{release}/data",), key=""):
        data = spark.read.parquet(f"{release}/data")
        if configuration is None:
            k = int(manifest["configuration"]["privacy"]["k"])
            columns = list(manifest["published"]["quasi_identifier_columns"])
        else:
            k = configuration.privacy.k
            columns = _columns_of(configuration, data.columns)
        lacking = [name for name in columns if name not in data.columns]
        if lacking:
            raise DataError(
                f"{release}/data: lacks the published columns {', '.join(map(repr, lacking))}"
            )
        published = count_published_classes(data, columns)
    require_guarantee(published, k=k)
    if published.fingerprint != manifest["fingerprints"]["output"]:
        raise GuaranteeError(
            f"{release}/data: its records are not those that were published (the fingerprint "
            "differs from the manifest's); restore the release or publish it again"
        )
    return Verification(k, columns, published)


def _columns_of(configuration: Configuration, found: list[str]) -> list[str]:
    """Return the published columns of the configured quasi-identifiers, whatever the style."""
    columns = []
    others = set(configuration.attributes) - set(configuration.quasi_identifiers)
    for name in configuration.quasi_identifiers:
        own = [
            column
            for column in (name, f"{name}_min", f"{name}_max", f"{name}_missing")
            if column in found and column not in others
        ]
        columns += own or [name]
    return columns
