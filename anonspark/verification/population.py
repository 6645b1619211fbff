"""Measure delta-presence of a release against a named population."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anonspark.config.privacy import DeltaPresence
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import DataError
from anonspark.release.originals import open_named
from anonspark.release.region_matching import LabelledTable
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.presence import Presence, measure_presence

_SECTION = "privacy.delta_presence"


def require_population(engine: Engine, wanted: DeltaPresence, names: Iterable[str]) -> Table:
    """Open the population table, each of whose files has to have the quasi-identifiers as columns.

    Raises
    ------
    ConfigurationError, DataError
        If it cannot be opened or lacks columns.
    """
    needed = dict.fromkeys(names, True)
    population = open_named(
        engine,
        wanted.population,
        wanted.format,
        wanted.options,
        key=f"{_SECTION}.population",
        section=_SECTION,
        wanted=WantedColumns(needed),
    )
    lacking = [name for name in needed if name not in population.schema.names]
    if lacking:
        raise DataError(
            f"{_SECTION}.population: {wanted.population} lacks the columns "
            f"{', '.join(map(repr, lacking))}. Expected all quasi-identifiers"
        )
    return population


def measure_delta_presence(
    labels: LabelledTable, population: Table, wanted: DeltaPresence
) -> Presence:
    """Measure delta-presence in published files.

    Parameters
    ----------
    labels : LabelledTable
        Published records, read from their files.
    population : Table
        Of :func:`require_population`.
    wanted : DeltaPresence

    Raises
    ------
    ConfigurationError, DataError
        As :func:`anonspark.verification.presence.measure_presence`.

    Notes
    -----
    The jobs of :func:`anonspark.verification.presence.measure_presence`.
    """
    with labels.data.engine.reading((wanted.population,), key=f"{_SECTION}.population: "):
        return measure_presence(labels, population, lower=wanted.min, upper=wanted.max)


def broken_presence(presence: Presence, wanted: DeltaPresence) -> list[str]:
    """Report how a release violates delta-presence, without values of the data."""
    if presence.classes_not_covered:
        return [
            f"{_SECTION}.population: {presence.classes_not_covered:,} of {presence.classes:,} "
            "classes hold more records than the population has in their region, so it is not a "
            "population of the released people. The release must not be used"
        ]
    if presence.out_of_bounds:
        return [
            f"{_SECTION}: for {presence.out_of_bounds:,} of {presence.population:,} records of the "
            f"population the probability to be in the release is out of bounds, or unknown "
            f"because labels overlap. It is "
            f"{presence.smallest:.4g} to {presence.largest:.4g}, expected {wanted.min:g} to "
            f"{wanted.max:g}. The release must not be used"
        ]
    return []


def broken_promises(
    published: PublishedClasses,
    *,
    k: int,
    measured: Sequence[MeasuredCriterion] = (),
) -> list[str]:
    """Report the promises that a release does not keep.

    Parameters
    ----------
    published : PublishedClasses
        Counted from the files.
    k : int
        Smallest class size allowed.
    measured : sequence of MeasuredCriterion
        Criteria beyond k, measured in the files.

    Returns
    -------
    list of str
        One sentence each. No value of the data is in them.
    """
    broken = []
    if published.smallest < k:
        broken.append(
            f"the smallest class of the release has {published.smallest:,} "
            f"{'record' if published.smallest == 1 else 'records'}, "
            f"expected at least k = {k}. The release must not be used"
        )
    broken += [
        f"{one.violating_classes:,} of {published.classes:,} classes of the release, with "
        f"{one.violating_records:,} records, violate {one.criterion.describe()} on "
        f"attribute {one.criterion.attribute!r}. The release must not be used"
        for one in measured
        if one.violating_classes
    ]
    return broken
