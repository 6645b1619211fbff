"""What matching a release with its original, or with a population, shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anonspark.core.rounded_shares import rounded_share
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_hashable
from anonspark.engine.values.batches import records_of
from anonspark.release.inference import infer_attributes
from anonspark.release.region_matching import TooManyClassesError
from anonspark.release.regions import Leaves, PublishedAttribute, leaves_by_label
from anonspark.verification.claims import Claim
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.linkage import Linkage, measure_linkage
from anonspark.verification.loss import Loss, measure_loss
from anonspark.verification.presence import RegionCounts, count_regions
from anonspark.verification.truthfulness import Truthfulness, measure_truthfulness

_VALUES = "hash of values that are published as they are"
"""Column of the hash; no column of a table has a name like it by accident."""

INSENSITIVE, ALL_VALUES = "insensitive", "insensitive and sensitive"
"""What an attacker knows besides quasi-identifiers."""


@dataclass(frozen=True)
class Labels:
    """Published records, and how their labels are read.

    Parameters
    ----------
    data : Table
    claim : Claim
    leaves : mapping of str to Leaves
        Of the hierarchies that come from files.
    """

    data: Table
    claim: Claim
    leaves: dict[str, Leaves]

    @classmethod
    def of(cls, data: Table, claim: Claim) -> Labels:
        """Return the labels of records as a claim says that they are read."""
        hierarchies = claim.hierarchies.items()
        return cls(data, claim, {name: leaves_by_label(one) for name, one in hierarchies})

    def attributes(self, table: Table) -> Sequence[PublishedAttribute]:
        """Return the quasi-identifiers; where nobody says how they are read, a table shows it."""
        own = self.claim.attributes
        return own or infer_attributes(self.data, self.claim.names, table.schema)


@dataclass(frozen=True)
class ByOriginal:
    """What matching a release with its original shows, which has some records and columns."""

    rows: int
    truthfulness: Truthfulness
    loss: Loss
    linkage: Linkage
    with_values: dict[str, Linkage | None]


def match_original(labels: Labels, published: PublishedClasses, original: Table) -> ByOriginal:
    """Match a release with the table that it was made of.

    Parameters
    ----------
    labels : Labels
    published : PublishedClasses
        Of the release.
    original : Table

    Notes
    -----
    The jobs of :func:`~anonspark.verification.truthfulness.measure_truthfulness`,
    :func:`~anonspark.verification.loss.measure_loss` and
    :func:`~anonspark.verification.linkage.measure_linkage`, these up to three times.
    """
    data, claim = labels.data, labels.claim
    # Pseudonyms are of no original.
    as_they_came = set(data.schema.names).difference(claim.columns, claim.pseudonyms)
    listed = [*claim.names, *sorted(as_they_came), *claim.privacy.unit]
    original = records_of(original, listed, claim.missing_markers)
    attributes = labels.attributes(original)
    truthfulness = measure_truthfulness(
        data,
        attributes,
        original,
        [one for one in data.schema.names if one in as_they_came],
        labels.leaves,
        missing_markers=claim.missing_markers,
        drops_missing=claim.drops_missing,
        left_out=claim.rows_left_out,
    )
    loss = measure_loss(
        data,
        published,
        attributes,
        original,
        labels.leaves,
        missing_markers=claim.missing_markers,
        drops_missing=claim.drops_missing,
    )
    linkage = _link(labels, attributes, original, "original", claim.drops_missing)
    rows = original.count() if claim.drops_missing else loss.rows
    return ByOriginal(rows, truthfulness, loss, linkage, _link_values(labels, attributes, original))


def _link_values(
    labels: Labels, attributes: Sequence[PublishedAttribute], original: Table
) -> dict[str, Linkage | None]:
    """Link records for an attacker who also knows values that are published as they are.

    Only records count as candidates that have these values, too. A hash of the values takes part as
    one more quasi-identifier, each of whose published values is itself.

    Returns
    -------
    dict of str to (Linkage or None)
        Of all insensitive attributes, and with the sensitive ones; None where the release has too
        many different combinations.
    """
    data, claim = labels.data, labels.claim
    left = {*claim.columns, *claim.pseudonyms}
    both = set(original.schema.names).difference(left)
    columns = [one.name for one in data.schema if one.name in both and is_hashable(one.type)]
    insensitive = [name for name in columns if name not in claim.sensitive]
    found: dict[str, Linkage | None] = {}
    for key, own in ((INSENSITIVE, insensitive), (ALL_VALUES, columns)):
        if not own or (key == ALL_VALUES and own == insensitive):
            continue
        release, people = (
            one.with_hashes({_VALUES: own}, like=data.schema) for one in (data, original)
        )
        values = PublishedAttribute(_VALUES, "integer", "interval", (_VALUES,))
        try:
            found[key] = _link(
                replace(labels, data=release),
                [*attributes, values],
                people,
                "original",
                claim.drops_missing,
            )
        except TooManyClassesError:
            found[key] = None
    return found


def linked_values_warnings(with_values: Mapping[str, Linkage | None]) -> list[str]:
    """Warn of records that insensitive values single out inside of their classes."""
    found = with_values.get(INSENSITIVE)
    if INSENSITIVE in with_values and found is None:
        return [
            "linkage attack: for who also knows the insensitive attributes it was not measured, "
            "because the release has more than 1,000,000 combinations of labels and values"
        ]
    if found is None or not found.fewer_than_k:
        return []
    share = rounded_share(found.fewer_than_k, found.records, found.k)
    records = f"fewer than {found.k:,}" if share is None else f"about {share:.1%} of the"
    return [
        f"linkage attack: for {records} records of the original, somebody who also knows the "
        f"insensitive attributes has fewer than k = {found.k:,} candidates, and k does not protect "
        "against that. Leave such columns out, make them coarser, or make them quasi-identifiers"
    ]


@dataclass(frozen=True)
class ByPopulation:
    """What matching a release with a population shows."""

    linkage: Linkage
    counts: RegionCounts

    @property
    def classes_not_covered(self) -> int:
        """Classes with more records than the population has in their region."""
        return int((self.counts.population < self.counts.released).sum())


def match_population(labels: Labels, population: Table) -> ByPopulation:
    """Match a release with people that an attacker knows.

    Parameters
    ----------
    labels : Labels
    population : Table
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


def _link(
    labels: Labels,
    attributes: Sequence[PublishedAttribute],
    table: Table,
    subject: str,
    drops_missing: bool = False,
) -> Linkage:
    return measure_linkage(
        labels.data,
        attributes,
        table,
        labels.leaves,
        k=labels.claim.privacy.k,
        missing_markers=labels.claim.missing_markers,
        drops_missing=drops_missing,
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
