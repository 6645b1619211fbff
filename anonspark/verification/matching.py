"""What matching a release with its original, or with a population, shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.release.inference import infer_attributes
from anonspark.release.regions import Leaves, PublishedAttribute, leaves_by_label
from anonspark.verification.claims import Claim
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.linkage import Linkage, measure_linkage
from anonspark.verification.loss import Loss, measure_loss
from anonspark.verification.presence import RegionCounts, count_regions
from anonspark.verification.truthfulness import Truthfulness, measure_truthfulness


@dataclass(frozen=True)
class Labels:
    """Published records, and how their labels are read.

    Parameters
    ----------
    data : DataFrame
    claim : Claim
    leaves : mapping of str to Leaves
        Of the hierarchies that come from files.
    """

    data: DataFrame
    claim: Claim
    leaves: dict[str, Leaves]

    @classmethod
    def of(cls, data: DataFrame, claim: Claim) -> Labels:
        """Return the labels of records as a claim says that they are read."""
        hierarchies = claim.hierarchies.items()
        return cls(data, claim, {name: leaves_by_label(one) for name, one in hierarchies})

    def attributes(self, table: DataFrame) -> Sequence[PublishedAttribute]:
        """Return the quasi-identifiers; where nobody says how they are read, a table shows it."""
        return self.claim.attributes or infer_attributes(self.data, self.claim.names, table)


@dataclass(frozen=True)
class ByOriginal:
    """What matching a release with its original shows."""

    truthfulness: Truthfulness
    loss: Loss
    linkage: Linkage


def match_original(labels: Labels, published: PublishedClasses, original: DataFrame) -> ByOriginal:
    """Match a release with the table that it was made of.

    Parameters
    ----------
    labels : Labels
    published : PublishedClasses
        Of the release.
    original : DataFrame

    Notes
    -----
    The jobs of :func:`~anonspark.verification.truthfulness.measure_truthfulness`,
    :func:`~anonspark.verification.loss.measure_loss` and
    :func:`~anonspark.verification.linkage.measure_linkage`.
    """
    data, claim = labels.data, labels.claim
    attributes = labels.attributes(original)
    kept = original.filter(_kept(original, claim))
    truthfulness = measure_truthfulness(
        data,
        attributes,
        kept,
        [column for column in data.columns if column not in claim.columns],
        labels.leaves,
        missing_markers=claim.missing_markers,
        left_out=claim.rows_left_out,
    )
    loss = measure_loss(
        data, published, attributes, kept, labels.leaves, missing_markers=claim.missing_markers
    )
    return ByOriginal(truthfulness, loss, _link(labels, attributes, kept, "original"))


@dataclass(frozen=True)
class ByPopulation:
    """What matching a release with a population shows."""

    linkage: Linkage
    counts: RegionCounts

    @property
    def classes_not_covered(self) -> int:
        """Classes with more records than the population has in their region."""
        return int((self.counts.population < self.counts.released).sum())


def match_population(labels: Labels, population: DataFrame) -> ByPopulation:
    """Match a release with people that an attacker knows.

    Parameters
    ----------
    labels : Labels
    population : DataFrame
        With the quasi-identifiers as columns.

    Notes
    -----
    The jobs of :func:`~anonspark.verification.linkage.measure_linkage` and
    :func:`~anonspark.verification.presence.count_regions`.
    """
    attributes = labels.attributes(population)
    linkage = _link(labels, attributes, population, "population")
    counts = count_regions(
        labels.data,
        attributes,
        population,
        labels.leaves,
        missing_markers=labels.claim.missing_markers,
    )
    return ByPopulation(linkage, counts)


def _kept(original: DataFrame, claim: Claim) -> Column:
    """Return whether a record of the original was anonymized, by the policy for missing values."""
    kept = sf.lit(True)
    if not claim.drops_missing:
        return kept
    types = {one.name: one.dataType for one in original.schema}
    markers = [marker.strip() for marker in claim.missing_markers]
    numbers = {
        one.name
        for one in claim.attributes or ()
        if one.kind in ("float", "integer", "decimal") or one.rule == "intervals"
    }
    for name in claim.names:
        if name not in types:
            continue
        column = sf.col(quoted(name))
        kept &= column.isNotNull()
        if isinstance(types[name], TEXT_TYPES):
            kept &= ~sf.trim(column.cast("string")).isin(markers)
            if name in numbers:
                read = sf.expr(f"try_cast(trim({quoted(name)}) AS double)")
                kept &= ~sf.coalesce(sf.isnan(read), sf.lit(False))
        elif isinstance(types[name], (st.FloatType, st.DoubleType)):
            kept &= ~sf.isnan(column)
    return kept


def _link(
    labels: Labels,
    attributes: Sequence[PublishedAttribute],
    table: DataFrame,
    subject: str,
) -> Linkage:
    return measure_linkage(
        labels.data,
        attributes,
        table,
        labels.leaves,
        k=labels.claim.privacy.k,
        missing_markers=labels.claim.missing_markers,
        subject=subject,
    )


def broken_attacks(truthfulness: Truthfulness | None, linkage: dict[str, Linkage]) -> list[str]:
    """Tell what truthfulness and attacks found, without values of the data."""
    broken = []
    if truthfulness is not None and not truthfulness.holds:
        broken += truthfulness.describe()
    for table, one in linkage.items():
        if one.holds:
            continue
        if one.fewer_than_k:
            broken.append(
                f"linkage attack: {one.fewer_than_k:,} of {one.records:,} records of the {table} "
                f"match fewer than k = {one.k} published records (the fewest: "
                f"{one.smallest_candidates:,}), and {one.re_identified:,} published records are "
                "re-identified; the release must not be used"
            )
        else:
            broken.append(
                f"linkage attack: {one.singled_out:,} published records are alone in their class "
                f"and match one record of the {table}; the release must not be used"
            )
    return broken
