"""Proving a release from its own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pyspark.sql import SparkSession

from anonspark.configuration import Configuration
from anonspark.configuration.privacy import PrivacyOptions
from anonspark.errors import DataError, GuaranteeError
from anonspark.filesystem import FileSystem
from anonspark.prepare.hierarchies import read_hierarchy_files
from anonspark.prepare.sensitive import describe_criteria
from anonspark.publish.left_out import read_left_out
from anonspark.publish.manifest import MANIFEST, read_manifest
from anonspark.publish.presence import check_delta_presence
from anonspark.publish.verification import (
    PublishedClasses,
    count_published_classes,
    require_guarantee,
)
from anonspark.spark_errors import reading_input
from anonspark.verification.criteria import MeasuredCriterion, measure_criteria
from anonspark.verification.presence import Presence

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
    criteria : list of MeasuredCriterion
        The criteria beyond k that were required, measured in the files.
    presence : Presence or None
        What an attacker learns of who is in the release; None where that was not required.
    """

    k: int
    quasi_identifier_columns: list[str]
    published: PublishedClasses
    criteria: list[MeasuredCriterion]
    presence: Presence | None


def verify(
    spark: SparkSession, release: str, configuration: Configuration | None = None
) -> Verification:
    """Prove that every class of a release, by published tuple, satisfies all criteria.

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
    ConfigurationError
        If a file that a criterion needs (a hierarchy, a population) cannot be used.
    DataError
        If there is no complete release, or it lacks columns.
    GuaranteeError
        If a class is too small or violates a criterion, or the files are not those that were
        published.

    Notes
    -----
    One pass over the published files and one shuffle of class sizes; two more jobs for each
    sensitive attribute of a criterion, and two passes over the population for delta-presence. The
    metrics are not looked at.
    """
    files = FileSystem(spark)
    release = release.rstrip("/")
    manifest = read_manifest(files, release)
    with reading_input((f"{release}/data",), key=""):
        data = spark.read.parquet(f"{release}/data")
        if configuration is None:
            privacy = _promised(manifest, release)
            attributes = manifest["configuration"]["attributes"]
            columns = list(manifest["published"]["quasi_identifier_columns"])
        else:
            privacy = configuration.privacy
            attributes = configuration.model_dump(mode="json")["attributes"]
            columns = _columns_of(configuration, data.columns)
        sensitive = dict.fromkeys(criterion.attribute for criterion in privacy.criteria)
        lacking = [name for name in (*columns, *sensitive) if name not in data.columns]
        if lacking:
            raise DataError(
                f"{release}/data: lacks the published columns {', '.join(map(repr, lacking))}"
            )
        by_hierarchy = {
            criterion.attribute
            for criterion in privacy.criteria
            if criterion.kind == "hierarchical distance"
        }
        paths = {
            name: attribute["hierarchy"]
            for name, attribute in attributes.items()
            if isinstance(attribute.get("hierarchy"), str)
            and (
                name in by_hierarchy
                or (name not in sensitive and privacy.delta_presence is not None)
            )
        }
        hierarchies = read_hierarchy_files(spark, paths)
        left_out = read_left_out(spark, files, release, manifest)
        criteria = describe_criteria(
            data,
            privacy,
            {name: name for name in sensitive},
            {
                name: attribute["order"]
                for name, attribute in attributes.items()
                if name in sensitive and attribute.get("order")
            },
            hierarchies,
            left_out.values,
        )
        published = count_published_classes(data, columns)
        measured = measure_criteria(data, columns, criteria, left_out.uncertainty)
    require_guarantee(published, k=privacy.k, measured=measured)
    if published.fingerprint != manifest["fingerprints"]["output"]:
        raise GuaranteeError(
            f"{release}/data: its records are not those that were published (the fingerprint "
            "differs from the manifest's); restore the release or publish it again"
        )
    presence = None
    if privacy.delta_presence is not None:
        markers = manifest["configuration"]["input"]["missing_markers"]
        presence = check_delta_presence(
            spark, data, privacy.delta_presence, manifest, hierarchies, markers
        )
    return Verification(privacy.k, columns, published, measured, presence)


def _promised(manifest: Mapping[str, Any], release: str) -> PrivacyOptions:
    """Return what a manifest promises."""
    try:
        return PrivacyOptions.model_validate(manifest["configuration"]["privacy"])
    except ValidationError as error:
        raise DataError(
            f"{release}/{MANIFEST}: its section configuration.privacy is not one of this version; "
            "the file is damaged, or another version wrote it"
        ) from error


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
