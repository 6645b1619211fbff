"""delta-presence of a release, measured against the population that the configuration names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anonspark.configuration.privacy import DeltaPresence
from anonspark.errors import DataError, GuaranteeError
from anonspark.hierarchies.hierarchy import Hierarchy
from anonspark.spark_errors import reading_input
from anonspark.tables import open_table
from anonspark.verification.presence import Presence, measure_presence
from anonspark.verification.regions import (
    leaves_by_label,
    published_attributes,
    require_readable,
)

__all__ = ["check_delta_presence", "require_population"]

_SECTION = "privacy.delta_presence"


def require_population(
    spark: SparkSession, wanted: DeltaPresence, manifest: Mapping[str, Any]
) -> DataFrame:
    """Open the population table, and check that the release can be matched with it.

    Parameters
    ----------
    spark : SparkSession
    wanted : DeltaPresence
    manifest : mapping
        Sections ``configuration`` and ``published`` of the release's manifest.

    Raises
    ------
    ConfigurationError, DataError
        If the population cannot be opened or lacks columns, or the release publishes means.
    """
    attributes = published_attributes(manifest)
    require_readable(attributes)
    population = open_table(
        spark,
        [wanted.population],
        wanted.format,
        wanted.options,
        path_key=f"{_SECTION}.population",
        section=_SECTION,
    )
    lacking = [one.name for one in attributes if one.name not in population.columns]
    if lacking:
        raise DataError(
            f"{_SECTION}.population: {wanted.population} lacks the columns "
            f"{', '.join(map(repr, lacking))}; expected all quasi-identifiers"
        )
    return population


def check_delta_presence(
    spark: SparkSession,
    data: DataFrame,
    wanted: DeltaPresence,
    manifest: Mapping[str, Any],
    hierarchies: Mapping[str, Hierarchy],
    missing_markers: Sequence[str],
) -> Presence:
    """Measure delta-presence in published files, and refuse what violates it.

    Parameters
    ----------
    spark : SparkSession
    data : DataFrame
        Published records, read from their files.
    wanted : DeltaPresence
    manifest : mapping
        Sections ``configuration`` and ``published`` of the release's manifest.
    hierarchies : mapping of str to Hierarchy
        Those that come from files.
    missing_markers : sequence of str
        Texts of the population that mean missing.

    Raises
    ------
    ConfigurationError, DataError
        As :func:`require_population`, and if values cannot be read.
    GuaranteeError
        If a probability is out of bounds, or the population is none of the released people.

    Notes
    -----
    The jobs of :func:`anonspark.verification.presence.measure_presence`.
    """
    population = require_population(spark, wanted, manifest)
    with reading_input((wanted.population,), key=f"{_SECTION}.population: "):
        presence = measure_presence(
            data,
            published_attributes(manifest),
            population,
            {name: leaves_by_label(hierarchy) for name, hierarchy in hierarchies.items()},
            lower=wanted.min,
            upper=wanted.max,
            missing_markers=missing_markers,
        )
    if presence.classes_not_covered:
        raise GuaranteeError(
            f"{_SECTION}.population: {presence.classes_not_covered:,} of {presence.classes:,} "
            "classes hold more records than the population has in their region, so it is not a "
            "population of the released people; the release must not be used"
        )
    if presence.out_of_bounds:
        raise GuaranteeError(
            f"{_SECTION}: for {presence.out_of_bounds:,} of {presence.population:,} records of the "
            f"population the probability to be in the release is out of bounds; it is "
            f"{presence.smallest:.4g} to {presence.largest:.4g}, expected {wanted.min:g} to "
            f"{wanted.max:g}; the release must not be used"
        )
    return presence
