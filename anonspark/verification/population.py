"""delta-presence of a release, measured against the population that somebody names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from anonspark.config.privacy import DeltaPresence
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.tables import open_table
from anonspark.errors import DataError
from anonspark.release.regions import Leaves, PublishedAttribute, require_readable
from anonspark.verification.presence import Presence, measure_presence

_SECTION = "privacy.delta_presence"


def open_population(spark: SparkSession, wanted: DeltaPresence, names: Iterable[str]) -> DataFrame:
    """Open the population table, each of whose files has to have the columns of these names.

    Errors as of :func:`anonspark.engine.spark.tables.open_table`.
    """
    return open_table(
        spark,
        [wanted.population],
        wanted.format,
        wanted.options,
        path_key=f"{_SECTION}.population",
        section=_SECTION,
        wanted=WantedColumns(dict.fromkeys(names, True)),
    )


def require_population(
    spark: SparkSession, wanted: DeltaPresence, attributes: Sequence[PublishedAttribute]
) -> DataFrame:
    """Open the population table, and check that the release can be matched with it.

    Parameters
    ----------
    spark : SparkSession
    wanted : DeltaPresence
    attributes : sequence of PublishedAttribute
        Quasi-identifiers of the release.

    Raises
    ------
    ConfigurationError, DataError
        If the population cannot be opened or lacks columns, or the release publishes means.
    """
    require_readable(attributes)
    population = open_population(spark, wanted, [one.name for one in attributes])
    lacking = [one.name for one in attributes if one.name not in population.columns]
    if lacking:
        raise DataError(
            f"{_SECTION}.population: {wanted.population} lacks the columns "
            f"{', '.join(map(repr, lacking))}; expected all quasi-identifiers"
        )
    return population


def measure_delta_presence(
    spark: SparkSession,
    data: DataFrame,
    wanted: DeltaPresence,
    attributes: Sequence[PublishedAttribute],
    hierarchies: Mapping[str, Leaves],
    missing_markers: Sequence[str],
) -> Presence:
    """Measure delta-presence in published files.

    Parameters
    ----------
    spark : SparkSession
    data : DataFrame
        Published records, read from their files.
    wanted : DeltaPresence
    attributes : sequence of PublishedAttribute
        Quasi-identifiers of the release.
    hierarchies : mapping of str to (mapping of str to collection of str)
        Those that come from files.
    missing_markers : sequence of str
        Texts of the population that mean missing.

    Raises
    ------
    ConfigurationError, DataError
        As :func:`require_population`, and if values cannot be read.

    Notes
    -----
    The jobs of :func:`anonspark.verification.presence.measure_presence`.
    """
    population = require_population(spark, wanted, attributes)
    with reading_input((wanted.population,), key=f"{_SECTION}.population: "):
        return measure_presence(
            data,
            attributes,
            population,
            hierarchies,
            lower=wanted.min,
            upper=wanted.max,
            missing_markers=missing_markers,
        )


def broken_presence(presence: Presence, wanted: DeltaPresence) -> list[str]:
    """Tell what of delta-presence a release does not keep, without values of the data."""
    if presence.classes_not_covered:
        return [
            f"{_SECTION}.population: {presence.classes_not_covered:,} of {presence.classes:,} "
            "classes hold more records than the population has in their region, so it is not a "
            "population of the released people; the release must not be used"
        ]
    if presence.out_of_bounds:
        return [
            f"{_SECTION}: for {presence.out_of_bounds:,} of {presence.population:,} records of the "
            f"population the probability to be in the release is out of bounds; it is "
            f"{presence.smallest:.4g} to {presence.largest:.4g}, expected {wanted.min:g} to "
            f"{wanted.max:g}; the release must not be used"
        ]
    return []
