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
from anonspark.progress import report_step
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
    """Return published records, read as a claim says, or else as the table to match shows."""
    attributes = claim.attributes or infer_attributes(data, claim.names, table.schema)
    leaves = {name: leaves_by_label(hierarchy) for name, hierarchy in claim.hierarchies.items()}
    return LabelledTable(data, attributes, leaves, claim.missing_markers)


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
    with_values: dict[str, Linkage]
    warnings: list[str]
    left_out: dict[str, Counter[str | None]]
    ends: Ends
    failures: list[str]


def match_original(
    data: Table, claim: Claim, published: PublishedClasses, original: Table
) -> ByOriginal:
    """Match a release with the table that it was made of, by every measure that needs it.

    Runs the jobs of :func:`~anonspark.verification.attacks.truthfulness.measure_truthfulness`,
    :func:`~anonspark.verification.attacks.loss.measure_loss`,
    :func:`~anonspark.verification.attacks.ends.measure_ends` and, up to three times,
    :func:`~anonspark.verification.attacks.linkage.measure_linkage`.
    """
    # An original has no pseudonyms.
    as_they_came = set(data.schema.names).difference(claim.columns, claim.pseudonyms)
    listed = [*claim.names, *sorted(as_they_came), *claim.privacy.unit]
    original = records_to_match(original, listed, claim.missing_markers, claim.recipient)
    labels = labelled(data, claim, original)
    drops = claim.drops_missing
    payload = [name for name in data.schema.names if name in as_they_came]
    left_out = claim.left_out.rows
    withheld, warnings = claim.recipient.get("rows_withheld", 0), []
    truthfulness, linkage, with_values, failures = None, None, {}, []
    try:
        truthfulness = measure_truthfulness(
            labels, original, payload, drops_missing=drops, left_out=left_out + (withheld or 0)
        )
        rows = truthfulness.originals
        if withheld is None:
            # Only the ledger knows how many were withheld, or they are fewer than k.
            withheld = truthfulness.unpaired_originals
            truthfulness = replace(truthfulness, left_out=left_out + withheld)
            warnings = [_WITHHELD.format(withheld, rows)] if withheld else []
        linkage = measure_linkage(
            labels, original, k=claim.privacy.k, drops_missing=drops, subject="original"
        )
        with_values = _link_values(labels, claim, original)
    except TooManyClassesError as error:
        name = "linkage attack with values" if linkage else "truthfulness and linkage attack"
        failures = [_NOT_MEASURED.format(name, error)]
        rows = labels.prepare(original, "original", drops_missing=drops).records.count()
    loss = measure_loss(labels, published, original, rows - (withheld or 0), drops_missing=drops)
    return ByOriginal(
        original.count() if drops else loss.rows,
        truthfulness,
        loss,
        linkage,
        with_values,
        warnings,
        _count_left_out(labels, claim, original),
        measure_ends(labels, original, drops_missing=drops),
        failures,
    )


def _count_left_out(
    labels: LabelledTable, claim: Claim, original: Table
) -> dict[str, Counter[str | None]]:
    """Count the values that the original has beyond the release, if the release lists them.

    The result has counts of the texts of :data:`~anonspark.release.layout.LEFT_OUT` by attribute.
    Attributes of another type in the original are left out.
    """
    data, stated = labels.data, claim.left_out.values
    if stated is None or claim.statements is None:
        return {}
    schemas = data.schema, original.schema
    names = stated["attribute"].unique().to_pylist()
    names = [name for name in names if is_alike(*(schema.field(name).type for schema in schemas))]
    if not names:
        return {}
    drops = claim.drops_missing
    records = labels.prepare(original, "original", drops_missing=drops, carried=names).records
    surplus = {}
    for name in names:
        surplus[name], published = (
            count_texts(left_out_texts(name, counted.collect()))
            for counted in (
                table.select({"value": name}).aggregate(["value"], count="records")
                for table in (records, data)
            )
        )
        surplus[name].subtract(published)
    return surplus


def _link_values(labels: LabelledTable, claim: Claim, original: Table) -> dict[str, Linkage]:
    """Link records for an attacker who also knows values that are published unchanged.

    A hash of these values is one more quasi-identifier, so candidates have them as well. Links once
    by all insensitive attributes, and once also by the sensitive ones.
    """
    data = labels.data
    shared = set(original.schema.names).difference(claim.columns, claim.pseudonyms)
    columns = [cell.name for cell in data.schema if cell.name in shared and is_hashable(cell.type)]
    insensitive = [name for name in columns if name not in claim.sensitive]
    linkages: dict[str, Linkage] = {}
    for key, knowledge in ((INSENSITIVE, insensitive), (ALL_VALUES, columns)):
        if not knowledge or (key == ALL_VALUES and knowledge == insensitive):
            continue
        release, people = (
            table.with_hashes({_VALUES: knowledge}, like=data.schema) for table in (data, original)
        )
        values = PublishedAttribute(_VALUES, "integer", "interval", (_VALUES,))
        linkages[key] = measure_linkage(
            replace(labels, data=release, attributes=[*labels.attributes, values]),
            people,
            k=claim.privacy.k,
            drops_missing=claim.drops_missing,
            subject="original",
        )
    return linkages


def linked_values_warnings(with_values: Mapping[str, Linkage]) -> list[str]:
    """Warn of records that insensitive values single out inside of their classes.

    >>> linked_values_warnings({})
    []
    """
    linkage = with_values.get(INSENSITIVE)
    if linkage is None or not linkage.fewer_than_k:
        return []
    share = rounded_share(linkage.fewer_than_k, linkage.records, linkage.k)
    records = f"fewer than {linkage.k:,}" if share is None else f"about {share:.1%} of the"
    return [
        f"linkage attack: for {records} records of the original, an attacker who also knows the "
        f"insensitive attributes has fewer than k = {linkage.k:,} candidates, and k does not "
        "protect against that. Leave such columns out, make them coarser, or make them "
        "quasi-identifiers"
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
    """Match a release with people that an attacker knows, by columns of quasi-identifiers.

    The jobs of :func:`~anonspark.verification.attacks.linkage.measure_linkage`,
    :func:`~anonspark.verification.attacks.presence.count_regions` and
    :func:`~anonspark.verification.attacks.ends.keys_of_proven`.
    """
    labels = labelled(data, claim, population)
    linkage = measure_linkage(labels, population, k=claim.privacy.k)
    counts = count_regions(labels, population)
    proven = np.isin(counts.keys, keys_of_proven(labels, population))
    # A journalist knows that these people were sampled, as the prosecutor does.
    people = np.where(proven, np.minimum(counts.population, counts.released), counts.population)
    return ByPopulation(linkage, replace(counts, population=people))


def broken_attacks(truthfulness: Truthfulness | None, linkage: dict[str, Linkage]) -> list[str]:
    """List what is untrue and which attacks succeed, without values of the data.

    >>> from anonspark.verification.attacks.linkage import Linkage
    >>> broken_attacks(None, {"original": Linkage(9, 9, 0, 5, 0, 0, k=5)})
    []
    """
    broken = []
    if truthfulness is not None and not truthfulness.holds:
        broken += truthfulness.describe()
    for name, links in linkage.items():
        if links.holds:
            continue
        if links.fewer_than_k:
            broken.append(
                f"linkage attack: {links.fewer_than_k:,} of {links.records:,} records of the "
                f"{name} match fewer than k = {links.k} published records (the fewest: "
                f"{links.smallest_candidates:,}), and {links.re_identified:,} published records "
                "are re-identified. The release must not be used"
            )
        else:
            broken.append(
                f"linkage attack: {links.singled_out:,} published records are alone in their class "
                f"and match one record of the {name}. The release must not be used"
            )
    return broken


def attack(
    proof: Verification,
    data: Table,
    claim: Claim,
    original: Table | None,
    population: Table | None,
) -> tuple[Verification, ByOriginal | None]:
    """Add to a proof what other tables reveal: presence, a match, and the risk in a population.

    Also return the match with the original, or None without an original.
    """
    failures, presence_options = [*proof.failures], claim.privacy.delta_presence
    matched, counts = None, None
    linkage: dict[str, Linkage] = {}
    if presence_options is not None:
        people = require_population(data.engine, presence_options, claim.names)
        presence = measure_delta_presence(labelled(data, claim, people), people, presence_options)
        failures += broken_presence(presence, presence_options)
        proof, counts = replace(proof, presence=presence), presence.counts
    if original is not None:
        report_step("matching with the original")
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
        report_step("attacking with the population")
        try:
            by_population = match_population(data, claim, population)
            linkage["population"], counts = by_population.linkage, by_population.counts
            proof = replace(proof, classes_not_covered=by_population.classes_not_covered)
        except TooManyClassesError as error:
            failures.append(_NOT_MEASURED.format("linkage attack with the population", error))
    # A population that does not cover the release says nothing about its risk.
    if counts is not None and bool((counts.population >= counts.released).all()):
        in_regions = counts.released, counts.population
        sizes = proof.published.sizes if proof.units is None else proof.units.classes
        risk = risk_rows(claim.risk, {}, sizes, None, in_regions, proof.weights)
        proof = replace(proof, risk=risk)
    failures += broken_attacks(proof.truthfulness, linkage)
    return replace(proof, linkage=linkage, failures=failures), matched
