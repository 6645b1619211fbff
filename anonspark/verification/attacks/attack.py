"""Attack a release with what an attacker may have: the original, or tables of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from anonspark.core.figure_text import rounded_share
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_hashable
from anonspark.labels.class_bounds import is_alike
from anonspark.labels.inference import infer_attributes
from anonspark.labels.region_matching import LabelledTable, TooManyClassesError
from anonspark.labels.regions import PublishedAttribute, leaves_by_label
from anonspark.progress import tell
from anonspark.release.derived_figures import risk_rows
from anonspark.release.originals import records_to_match
from anonspark.verification.attacks.ends import Ends, keys_of_proven, measure_ends
from anonspark.verification.attacks.linkage import Linkage, measure_linkage
from anonspark.verification.attacks.loss import Loss, measure_loss
from anonspark.verification.attacks.presence import (
    RegionCounts,
    broken_presence,
    count_regions,
    measure_delta_presence,
    require_population,
)
from anonspark.verification.attacks.truthfulness import Truthfulness, measure_truthfulness
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.left_out import count_texts, left_out_texts
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.result import Verification

_VALUES = "hash of values that are published as they are"
"""Column of the hash. No column of a table has a name like it by accident."""

INSENSITIVE, ALL_VALUES = "insensitive", "insensitive and sensitive"
"""The knowledge of an attacker besides quasi-identifiers."""


def labelled(data: Table, claim: Claim, table: Table) -> LabelledTable:
    """Return published records, and how a claim says that they are read, else a table shows it."""
    own = claim.attributes or infer_attributes(data, claim.names, table.schema)
    leaves = {name: leaves_by_label(one) for name, one in claim.hierarchies.items()}
    return LabelledTable(data, own, leaves, claim.missing_markers)


_WITHHELD = (
    "truthfulness: {:,} of {:,} originals that the recipient asked for have no published record of "
    "their own. The manifest does not count those that were withheld: compare with the ledger of "
    "the plan"
)


_NOT_MEASURED = "{}: not measured: {}"


@dataclass(frozen=True)
class ByOriginal:
    """The result of matching a release with its original."""

    rows: int
    truthfulness: Truthfulness | None
    loss: Loss
    linkage: Linkage | None
    with_values: dict[str, Linkage | None]
    warnings: list[str]
    left_out: dict[str, Counter[str | None]]
    ends: Ends
    failures: list[str]


def match_original(
    data: Table, claim: Claim, published: PublishedClasses, original: Table
) -> ByOriginal:
    """Match a release with the table that it was made of.

    Parameters
    ----------
    data : Table
    claim : Claim
    published : PublishedClasses
        Of the release.
    original : Table

    Notes
    -----
    The jobs of :func:`~anonspark.verification.attacks.truthfulness.measure_truthfulness`,
    :func:`~anonspark.verification.attacks.loss.measure_loss`,
    :func:`~anonspark.verification.attacks.ends.measure_ends` and
    :func:`~anonspark.verification.attacks.linkage.measure_linkage`, these up to three times.
    """
    # Pseudonyms are of no original.
    as_they_came = set(data.schema.names).difference(claim.columns, claim.pseudonyms)
    listed = [*claim.names, *sorted(as_they_came), *claim.privacy.unit]
    original = records_to_match(original, listed, claim.missing_markers, claim.recipient)
    labels = labelled(data, claim, original)
    drops = claim.drops_missing
    payload = [one for one in data.schema.names if one in as_they_came]
    left_out = claim.left_out.rows
    withheld, warnings = claim.recipient.get("rows_withheld", 0), []
    truthfulness, linkage, failures = None, None, []
    try:
        truthfulness = measure_truthfulness(
            labels, original, payload, drops_missing=drops, left_out=left_out + (withheld or 0)
        )
        rows = truthfulness.originals
        if withheld is None:
            # How many the recipient does not get is in the ledger alone, or fewer than k.
            withheld = truthfulness.unpaired_originals
            truthfulness = replace(truthfulness, left_out=left_out + withheld)
            warnings = [_WITHHELD.format(withheld, rows)] if withheld else []
        linkage = measure_linkage(
            labels, original, k=claim.privacy.k, drops_missing=drops, subject="original"
        )
    except TooManyClassesError as error:
        rows = labels.prepare(original, "original", drops_missing=drops).records.count()
        failures = [_NOT_MEASURED.format("truthfulness and linkage attack", error)]
    rows -= withheld or 0
    loss = measure_loss(labels, published, original, rows, drops_missing=drops)
    return ByOriginal(
        original.count() if drops else loss.rows,
        truthfulness,
        loss,
        linkage,
        _link_values(labels, claim, original),
        warnings,
        _count_left_out(labels, claim, original),
        measure_ends(labels, original, drops_missing=drops),
        failures,
    )


def _count_left_out(
    labels: LabelledTable, claim: Claim, original: Table
) -> dict[str, Counter[str | None]]:
    """Count the values that the original has beyond the release, where the release says them.

    Returns
    -------
    dict of str to Counter
        By attribute, of the texts of :data:`~anonspark.release.layout.LEFT_OUT`. Attributes of
        another type in the original are left out.
    """
    data, said = labels.data, claim.left_out.values
    names = (
        [] if said is None or claim.statements is None else said["attribute"].unique().to_pylist()
    )
    types = {one.name: one.type for one in original.schema}
    names = [one for one in names if is_alike(data.schema.field(one).type, types[one])]
    if not names:
        return {}
    drops = claim.drops_missing
    kept = labels.prepare(original, "original", drops_missing=drops, carried=names).records
    found = {}
    for name in names:
        found[name], published = (
            count_texts(left_out_texts(name, counted.collect()))
            for counted in (
                table.select({"value": name}).aggregate(["value"], count="records")
                for table in (kept, data)
            )
        )
        found[name].subtract(published)
    return found


def _link_values(labels: LabelledTable, claim: Claim, original: Table) -> dict[str, Linkage | None]:
    """Link records for an attacker who also knows values that are published as they are.

    Only records count as candidates that have these values, too. A hash of the values takes part as
    one more quasi-identifier, each of whose published values is itself.

    Returns
    -------
    dict of str to (Linkage or None)
        Of all insensitive attributes, and with the sensitive ones. None where too many different
        combinations overlap.
    """
    data = labels.data
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
            found[key] = measure_linkage(
                replace(labels, data=release, attributes=[*labels.attributes, values]),
                people,
                k=claim.privacy.k,
                drops_missing=claim.drops_missing,
                subject="original",
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
            "because too many combinations of labels and values overlap"
        ]
    if found is None or not found.fewer_than_k:
        return []
    share = rounded_share(found.fewer_than_k, found.records, found.k)
    records = f"fewer than {found.k:,}" if share is None else f"about {share:.1%} of the"
    return [
        f"linkage attack: for {records} records of the original, an attacker who also knows the "
        f"insensitive attributes has fewer than k = {found.k:,} candidates, and k does not protect "
        "against that. Leave such columns out, make them coarser, or make them quasi-identifiers"
    ]


@dataclass(frozen=True)
class ByPopulation:
    """The result of matching a release with a population."""

    linkage: Linkage
    counts: RegionCounts

    @property
    def classes_not_covered(self) -> int:
        """Classes with more records than the population has in their region."""
        return int((self.counts.population < self.counts.released).sum())


def match_population(data: Table, claim: Claim, population: Table) -> ByPopulation:
    """Match a release with people that an attacker knows.

    Parameters
    ----------
    data : Table
    claim : Claim
    population : Table
        With the quasi-identifiers as columns.

    Notes
    -----
    The jobs of :func:`~anonspark.verification.attacks.linkage.measure_linkage`,
    :func:`~anonspark.verification.attacks.presence.count_regions` and
    :func:`~anonspark.verification.attacks.ends.keys_of_proven`.
    """
    labels = labelled(data, claim, population)
    linkage = measure_linkage(labels, population, k=claim.privacy.k)
    counts = count_regions(labels, population)
    proven = np.isin(counts.keys, keys_of_proven(labels, population))
    # A journalist knows that these people were sampled, as the prosecutor does.
    counts.population[proven] = np.minimum(counts.population, counts.released)[proven]
    return ByPopulation(linkage, counts)


def broken_attacks(truthfulness: Truthfulness | None, linkage: dict[str, Linkage]) -> list[str]:
    """Report the findings of truthfulness and attacks, without values of the data."""
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
                "re-identified. The release must not be used"
            )
        else:
            broken.append(
                f"linkage attack: {one.singled_out:,} published records are alone in their class "
                f"and match one record of the {table}. The release must not be used"
            )
    return broken


def attack(
    proof: Verification,
    data: Table,
    claim: Claim,
    original: Table | None,
    population: Table | None,
) -> tuple[Verification, ByOriginal | None]:
    """Add what matching with other tables shows, and the risk by a population.

    Parameters
    ----------
    proof : Verification
        Of the records alone.
    data : Table
    claim : Claim
    original, population : Table or None

    Returns
    -------
    proof : Verification
    matched : ByOriginal or None
        None without an original.
    """
    failures, wanted = [*proof.failures], claim.privacy.delta_presence
    matched, counts = None, None
    linkage: dict[str, Linkage] = {}
    if wanted is not None:
        people = require_population(data.engine, wanted, claim.names)
        presence = measure_delta_presence(labelled(data, claim, people), people, wanted)
        failures += broken_presence(presence, wanted)
        proof, counts = replace(proof, presence=presence), presence.counts
    if original is not None:
        tell("matching with the original")
        matched = match_original(data, claim, proof.published, original)
        failures += matched.failures
        linkage |= {"original": matched.linkage} if matched.linkage else {}
        linked = linked_values_warnings(matched.with_values)
        proof = replace(
            proof,
            truthfulness=matched.truthfulness,
            loss=matched.loss,
            ends=matched.ends,
            linkage_with_values=matched.with_values,
            warnings=[*proof.warnings, *matched.warnings, *linked],
        )
    if population is not None:
        tell("attacking with the population")
        try:
            found = match_population(data, claim, population)
        except TooManyClassesError as error:
            failures.append(_NOT_MEASURED.format("linkage attack with the population", error))
        else:
            linkage["population"], counts = found.linkage, found.counts
            proof = replace(proof, classes_not_covered=found.classes_not_covered)
    # Of a population that does not cover the release, nothing.
    if counts is not None and bool((counts.population >= counts.released).all()):
        in_regions = counts.released, counts.population
        sizes = proof.published.sizes if proof.units is None else proof.units.classes
        risk = risk_rows(claim.risk, {}, sizes, None, in_regions, proof.weights)
        proof = replace(proof, risk=risk)
    failures += broken_attacks(proof.truthfulness, linkage)
    return replace(proof, linkage=linkage, failures=failures), matched
