"""Proving a release from its own files, and attacking it with what an attacker may have.

Nothing here trusts the anonymizer: neither its metrics nor its class numbers nor its code. What is
shared with it are the vocabulary of the configuration and the reading of files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.config import Configuration
from anonspark.core.criterion import CRITERIA, Criterion, CriterionKind
from anonspark.core.kinds import TEXT_TYPES
from anonspark.engine.spark.errors import reading_input
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tables import require_distinct
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.redaction import Redacted, redact
from anonspark.release.formats import open_published
from anonspark.release.inference import infer_attributes
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.release.originals import open_by_suffix, open_original
from anonspark.release.regions import Leaves, PublishedAttribute, leaves_by_label
from anonspark.verification.claims import (
    Claim,
    Roles,
    claim_of_configuration,
    claim_of_manifest,
    claim_of_roles,
)
from anonspark.verification.classes import PublishedClasses, count_published_classes
from anonspark.verification.criteria import MeasuredCriterion, measure_criteria
from anonspark.verification.guarantee import broken_promises
from anonspark.verification.linkage import Linkage, measure_linkage
from anonspark.verification.loss import Loss, measure_loss
from anonspark.verification.merged import describe_merged, measure_merged, merge_values
from anonspark.verification.population import (
    broken_presence,
    measure_delta_presence,
    open_population,
)
from anonspark.verification.presence import Presence, RegionCounts, count_regions
from anonspark.verification.release_files import audit_table_files
from anonspark.verification.risk import attacks, attacks_with_population, risk_row
from anonspark.verification.sensitive import MOST_VALUES, SensitiveValues, describe_values
from anonspark.verification.truthfulness import Truthfulness, measure_truthfulness

__all__ = ["SensitiveFigures", "Verification", "audit_release", "audit_table", "verify_release"]


@dataclass(frozen=True)
class SensitiveFigures:
    """What the worst class tells of a sensitive attribute, whatever was required.

    Parameters
    ----------
    attribute : str
    values : int or None
        Different values; None where there are more than 50,000, and nothing else is measured.
    worst : mapping of str to float
        Figures of the worst class under the names that
        :data:`anonspark.core.criterion.CRITERIA` has for them: ``distinct`` (the fewest different
        values), ``entropy`` (the smallest exponential of an entropy), ``recursive`` (what c must
        exceed for recursive (c, 2)-diversity; infinite where a class has one value), and so on.
        Distances from the whole release lack where values have no order, or no hierarchy is known.
    distinct_merged : int or None
        Distinct l, were values one that are equal but for case, blanks, Unicode form and markers of
        missing values.
    distinct_present : int or None
        The same where missing does not count.
    homogeneous_classes, homogeneous_records : int or None
        Classes that hold one value only, and their records: whoever is known to be in one of them
        is known to have that value (homogeneity attack).
    """

    attribute: str
    values: int | None
    worst: Mapping[str, float] = field(default_factory=dict)
    distinct_merged: int | None = None
    distinct_present: int | None = None
    homogeneous_classes: int | None = None
    homogeneous_records: int | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """Return all figures by name, None for those that were not measured."""
        names = [one.column for one in CRITERIA.values()]
        return {
            "attribute": self.attribute,
            "values": self.values,
            "distinct": self.worst.get("distinct"),
            "distinct_merged": self.distinct_merged,
            "distinct_present": self.distinct_present,
            **{name: self.worst.get(name) for name in names},
            "homogeneous_classes": self.homogeneous_classes,
            "homogeneous_records": self.homogeneous_records,
        }


@dataclass(frozen=True, repr=False)
class Verification(Redacted):
    """What the files of a release show.

    Parameters
    ----------
    release : str
        Where it is.
    k : int
        Class size that was required.
    quasi_identifier_columns : list of str
        Published columns that classes were formed by.
    published : PublishedClasses
        Counted from the files.
    criteria : list of MeasuredCriterion
        The criteria beyond k that were required, measured in the files.
    sensitive : list of SensitiveFigures
        Of every sensitive attribute.
    risk : list of dict
        Rows as those of the table ``risk``: attackers, figures, and whether each is high.
    presence : Presence or None
        What an attacker learns of who is in the release; None where that was not required.
    truthfulness : Truthfulness or None
        How the originals lie in the published regions; None without them.
    loss : Loss or None
        What the labels lose of the original; None without it.
    linkage : dict of str to Linkage
        The linkage attack with the ``original`` and with a ``population``.
    classes_not_covered : int or None
        Classes with more records than the population has in their region; None without one.
    failures : list of str
        What does not hold, one sentence each.
    warnings : list of str
        What holds, but may mean less than it seems to.
    """

    release: str
    k: int
    quasi_identifier_columns: list[str]
    published: PublishedClasses
    criteria: list[MeasuredCriterion]
    sensitive: list[SensitiveFigures]
    risk: list[dict[str, object]]
    presence: Presence | None = None
    truthfulness: Truthfulness | None = None
    loss: Loss | None = None
    linkage: dict[str, Linkage] = field(default_factory=dict)
    classes_not_covered: int | None = None
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def require(self) -> Verification:
        """Return this verification where everything holds.

        Raises
        ------
        GuaranteeError
            With everything that does not.
        """
        if self.failures:
            raise GuaranteeError("\n".join(self.failures))
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, for JSON; infinite ones are null."""
        presence = None
        if self.presence is not None:
            presence = {
                name: value for name, value in vars(self.presence).items() if name != "counts"
            }
        published = {name: value for name, value in vars(self.published).items() if name != "sizes"}
        return {
            "release": redact(self.release),
            "holds": self.holds,
            "failures": list(map(redact, self.failures)),
            "warnings": list(map(redact, self.warnings)),
            "k": self.k,
            "quasi_identifier_columns": self.quasi_identifier_columns,
            **published,
            "sizes": [list(pair) for pair in sorted(self.published.sizes.items())],
            "unique_records": self.published.sizes.get(1, 0),
            "criteria": [
                {
                    "attribute": one.criterion.attribute,
                    "criterion": one.criterion.kind,
                    "required": one.criterion.bound,
                    "c": one.criterion.told_c,
                    "measured": _finite(one.measured),
                    "violating_classes": one.violating_classes,
                    "violating_records": one.violating_records,
                }
                for one in self.criteria
            ],
            "sensitive": [
                {name: _finite(value) for name, value in one.as_dict().items()}
                for one in self.sensitive
            ],
            "risk": self.risk,
            "presence": presence,
            "truthfulness": None
            if self.truthfulness is None
            else {**asdict(self.truthfulness), "holds": self.truthfulness.holds},
            "loss": None if self.loss is None else asdict(self.loss),
            "linkage": {
                name: {**asdict(one), "unmatched": one.unmatched, "holds": one.holds}
                for name, one in self.linkage.items()
            },
            "classes_not_covered": self.classes_not_covered,
        }


def _finite(value: object) -> object:
    return None if isinstance(value, float) and math.isinf(value) else value


def verify_release(
    spark: SparkSession, release: str, configuration: Configuration | None = None
) -> Verification:
    """Prove that every class of a release, by published tuple, satisfies all criteria.

    Parameters, costs and errors: :func:`audit_release`.

    Raises
    ------
    GuaranteeError
        If something does not hold.
    """
    return audit_release(spark, release, configuration).require()


def audit_release(
    spark: SparkSession,
    release: str,
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    original: str | None = None,
    population: str | None = None,
) -> Verification:
    """Measure what the files of a release keep of its promise, and how attacks on it end.

    Parameters
    ----------
    spark : SparkSession
    release : str
        The directory that ``output.path`` named, or a table of another tool.
    configuration : Configuration or None
        What to require; without it, what the release's manifest promises.
    roles : Roles or None
        What to require of a table without a manifest, where there is no configuration.
    original : str or None
        Path of the table that the release was made of.
    population : str or None
        Path of a table of people, with the quasi-identifiers as columns, that an attacker has.

    Returns
    -------
    Verification

    Raises
    ------
    ConfigurationError
        If a file that a criterion needs (a hierarchy, a population) cannot be used.
    DataError
        If there is no complete release, it lacks columns, or tables cannot be read.
    GuaranteeError
        If the manifest is damaged, or records cannot be read because files are.

    Notes
    -----
    One job that reads every file of the release once as bytes
    (:func:`~anonspark.verification.contents.read_contents`). One pass over the published files and
    one shuffle of class sizes; two more jobs for each
    sensitive attribute, two passes over the population for delta-presence, and the jobs of
    :func:`~anonspark.verification.truthfulness.measure_truthfulness` and
    :func:`~anonspark.verification.linkage.measure_linkage` for the tables given. The metrics are
    not looked at.
    """
    files = FileSystem(spark)
    release = release.rstrip("/")
    matched = original is not None or population is not None
    manifest: Manifest | None = None
    if files.exists(f"{release}/{MANIFEST}") or (configuration is None and roles is None):
        manifest = _manifest(files, release)
        if roles is not None:
            raise ConfigurationError(
                "--quasi-identifier, --sensitive, --k: found for a release with a manifest, which "
                "says the same; leave them out, or require more with --config"
            )
    claim: Claim | None = None
    if manifest is None:
        failures = tuple(audit_table_files(files, release))
    else:
        claim = claim_of_manifest(
            spark, release, manifest, matched=matched and configuration is None
        )
        failures = claim.failures
    where = release if manifest is None else f"{release}/data"
    with _telling_first(failures), reading_input((where,), key=""):
        if manifest is None:
            data = open_by_suffix(spark, release, "release")
        else:
            data = open_published(spark, release, manifest.data_format)
        if configuration is not None:
            claim = claim_of_configuration(
                spark, configuration, data.columns, claim, matched=matched
            )
        elif roles is not None and claim is None:
            claim = claim_of_roles(roles, data.columns)
        if claim is None:
            raise ConfigurationError(f"{release}: nothing says what to require of it")
        if manifest is None:
            # Classes are formed by what is written: 01234 and 1234 are two values.
            data = open_by_suffix(spark, release, "release", texts=claim.columns)
            claim = replace(claim, failures=failures)
    described = manifest or Manifest({})
    if manifest is None and configuration is not None:
        described = Manifest({"configuration": configuration.model_dump(mode="json")})
    tables = {}
    for key, path in (("original", original), ("population", population)):
        if path is not None:
            with reading_input((path,), key=f"--{key}: "):
                tables[key] = open_original(spark, path, described, key=f"--{key}")
    paths = (where, *filter(None, (original, population)))
    with _telling_first(failures), reading_input(paths, key=""):
        return audit_table(data, claim, name=release, where=where, **tables)


@contextmanager
def _telling_first(failures: Sequence[str]) -> Iterator[None]:
    """Say what is wrong with files where records cannot be read because of that.

    Raises
    ------
    GuaranteeError
    """
    try:
        yield
    except (DataError, PySparkException, Py4JError) as error:
        if not failures:
            raise
        told = [str(error)] if isinstance(error, DataError) else []
        raise GuaranteeError("\n".join([*failures, *told])) from error


def _manifest(files: FileSystem, release: str) -> Manifest:
    try:
        return read_manifest(files, release)
    except DataError as error:
        if files.exists(f"{release}/{MANIFEST}"):
            raise
        raise DataError(
            *error.problems,
            "of a table of another tool, name the columns that people could be recognized by with "
            "--quasi-identifier, or its configuration with --config",
        ) from error


def audit_table(
    data: DataFrame,
    claim: Claim,
    *,
    original: DataFrame | None = None,
    population: DataFrame | None = None,
    name: str = "the table",
    where: str = "the table",
) -> Verification:
    """Measure what published records keep of a claim; see :func:`audit_release`.

    Parameters
    ----------
    data : DataFrame
        Published records.
    claim : Claim
    original, population : DataFrame or None
        See :func:`audit_release`.
    name, where : str
        What the result and messages call the release and its records.
    """
    _require_columns(data, claim, original, population, where)
    published = count_published_classes(data, claim.columns)
    if not published.rows:
        raise DataError(f"{where}: holds no records; there is nothing to verify")
    criteria, figures, warnings = _measure_sensitive(data, claim)
    failures = [*claim.failures, *_unwanted_columns(data, claim, where)]
    failures += broken_promises(published, k=claim.privacy.k, measured=criteria)
    if claim.fingerprint is not None and published.fingerprint != claim.fingerprint:
        failures.append(
            f"{where}: its records are not those that were published (the fingerprint "
            "differs from the manifest's); restore the release or publish it again"
        )
    labels = _Labels.of(data, claim)
    presence = _presence(labels)
    if presence is not None and claim.privacy.delta_presence is not None:
        failures += broken_presence(presence, claim.privacy.delta_presence)
    failures += _miscounted(data, claim, published, criteria, presence, figures)
    by_original = None if original is None else _match_original(labels, published, original)
    by_population = None if population is None else _match_population(labels, population)
    linkage: dict[str, Linkage] = {}
    if by_original is not None:
        linkage["original"] = by_original.linkage
    counts = presence.counts if presence is not None else None
    if by_population is not None:
        linkage["population"] = by_population.linkage
        counts = by_population.counts
    truthfulness = by_original.truthfulness if by_original is not None else None
    failures += _broken_attacks(truthfulness, linkage)
    return Verification(
        release=name,
        k=claim.privacy.k,
        quasi_identifier_columns=list(claim.columns),
        published=published,
        criteria=criteria,
        sensitive=figures,
        risk=_risk(published, counts, claim),
        presence=presence,
        truthfulness=truthfulness,
        loss=by_original.loss if by_original is not None else None,
        linkage=linkage,
        classes_not_covered=by_population.classes_not_covered
        if by_population is not None
        else None,
        failures=failures,
        warnings=warnings,
    )


def _require_columns(
    data: DataFrame,
    claim: Claim,
    original: DataFrame | None,
    population: DataFrame | None,
    where: str,
) -> None:
    """Check that columns can be told from each other, and that those of the claim are there.

    Raises
    ------
    DataError
    """
    require_distinct(data, data.columns, where)
    for subject, table in (("original", original), ("population", population)):
        if table is not None:
            require_distinct(table, {*claim.names, *data.columns}, subject)
    lacking = [
        column for column in (*claim.columns, *claim.sensitive) if column not in data.columns
    ]
    if lacking:
        raise DataError(f"{where}: lacks the published columns {', '.join(map(repr, lacking))}")


@dataclass(frozen=True)
class _Labels:
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
    def of(cls, data: DataFrame, claim: Claim) -> _Labels:
        """Return the labels of records as a claim says that they are read."""
        hierarchies = claim.hierarchies.items()
        return cls(data, claim, {name: leaves_by_label(one) for name, one in hierarchies})

    def attributes(self, table: DataFrame) -> Sequence[PublishedAttribute]:
        """Return the quasi-identifiers; where nobody says how they are read, a table shows it."""
        return self.claim.attributes or infer_attributes(self.data, self.claim.names, table)


def _presence(labels: _Labels) -> Presence | None:
    """Measure delta-presence, where it is required."""
    claim, spark = labels.claim, labels.data.sparkSession
    wanted = claim.privacy.delta_presence
    if wanted is None:
        return None
    attributes = claim.attributes or labels.attributes(open_population(spark, wanted, claim.names))
    return measure_delta_presence(
        spark, labels.data, wanted, attributes, labels.leaves, claim.missing_markers
    )


def _miscounted(
    data: DataFrame,
    claim: Claim,
    published: PublishedClasses,
    criteria: Sequence[MeasuredCriterion],
    presence: Presence | None,
    figures: Sequence[SensitiveFigures],
) -> list[str]:
    """Tell what manifest and metrics say otherwise than is counted in the records."""
    if claim.statements is None:
        return []
    same = claim.privacy.delta_presence == claim.statements.privacy.delta_presence
    return claim.statements.miscounted(
        published,
        data.columns,
        # What records that were left out had is known to the run alone.
        [
            one
            for one in criteria
            if not (one.criterion.is_distance and one.criterion.attribute in claim.uncertainty)
        ],
        presence if same else None,
        {one.attribute: one.values for one in figures},
    )


@dataclass(frozen=True)
class _ByOriginal:
    """What matching a release with its original shows."""

    truthfulness: Truthfulness
    loss: Loss
    linkage: Linkage


def _match_original(
    labels: _Labels, published: PublishedClasses, original: DataFrame
) -> _ByOriginal:
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
    return _ByOriginal(truthfulness, loss, _link(labels, attributes, kept, "original"))


@dataclass(frozen=True)
class _ByPopulation:
    """What matching a release with a population shows."""

    linkage: Linkage
    counts: RegionCounts

    @property
    def classes_not_covered(self) -> int:
        """Classes with more records than the population has in their region."""
        return int((self.counts.population < self.counts.released).sum())


def _match_population(labels: _Labels, population: DataFrame) -> _ByPopulation:
    attributes = labels.attributes(population)
    linkage = _link(labels, attributes, population, "population")
    counts = count_regions(
        labels.data,
        attributes,
        population,
        labels.leaves,
        missing_markers=labels.claim.missing_markers,
    )
    return _ByPopulation(linkage, counts)


def _unwanted_columns(data: DataFrame, claim: Claim, where: str) -> list[str]:
    """Tell which columns must not be there: identifiers, and what is not listed."""
    if claim.publishable is None:
        return []
    # As Spark compares names.
    publishable = {name.lower() for name in claim.publishable}
    unwanted = [name for name in data.columns if name.lower() not in publishable]
    if not unwanted:
        return []
    return [
        f"{where}: publishes the columns {', '.join(map(repr, unwanted))}, which are identifiers "
        "or are not listed; the release must not be used"
    ]


def _measure_sensitive(
    data: DataFrame, claim: Claim
) -> tuple[list[MeasuredCriterion], list[SensitiveFigures], list[str]]:
    """Measure the criteria that are required, and all figures of every sensitive attribute.

    The last list warns of values that count as different and say the same.
    """
    required = claim.privacy.criteria
    criteria: list[Criterion] = list(required)
    described: list[SensitiveValues] = []
    figures: list[tuple[str, SensitiveValues | None, dict[CriterionKind, Criterion]]] = []
    for name in dict.fromkeys((*(one.attribute for one in required), *claim.sensitive)):
        kinds = {one.kind for one in required if one.attribute == name}
        by_hierarchy = "hierarchical distance" in kinds
        values = describe_values(
            data,
            name,
            order=claim.orders.get(name),
            hierarchy=claim.hierarchies[name] if by_hierarchy else None,
            left_out=claim.left_out,
        )
        if values is None:
            if kinds:
                raise DataError(
                    f"attributes.{name}: more than {MOST_VALUES:,} different values; l-diversity "
                    "and t-closeness need an attribute whose values repeat; make it coarser"
                )
            figures.append((name, None, {}))
            continue
        if "ordered distance" in kinds and not values.is_ordered:
            raise DataError(
                f"attributes.{name}: a text without an order, for which the ordered distance means "
                f"nothing; declare attributes.{name}.order, or choose another distance"
            )
        has = {None: True, "order": values.is_ordered, "hierarchy": by_hierarchy}
        own = {
            kind: Criterion(name, kind, *one.loosest)
            for kind, one in CRITERIA.items()
            if has[one.needs]
        }
        described.append(values)
        criteria += own.values()
        figures.append((name, values, own))
    criteria = list(dict.fromkeys(criteria))
    measured = dict(
        zip(
            criteria,
            measure_criteria(data, claim.columns, criteria, described, claim.uncertainty),
            strict=True,
        )
    )
    found = []
    warnings = []
    for name, values, own in figures:
        if values is None:
            found.append(SensitiveFigures(name, None))
            continue
        worst = {one.type.column: measured[one].measured for one in own.values()}
        homogeneous = measured[own["distinct"]]
        worst["distinct"] = distinct = present = int(worst["distinct"])
        merged = merge_values(values, claim.missing_markers)
        if not merged.is_plain:
            about = [one for one in required if one.attribute == name]
            alike = measure_merged(data, claim.columns, about, merged)
            distinct, present = alike.distinct, alike.distinct_present
            told = describe_merged(alike)
            if told is not None:
                warnings.append(f"attributes.{name}: {told[1]}")
        found.append(
            SensitiveFigures(
                name,
                len(values.values),
                worst,
                distinct,
                present,
                homogeneous_classes=homogeneous.violating_classes,
                homogeneous_records=homogeneous.violating_records,
            )
        )
    return [measured[one] for one in required], found, warnings


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
    labels: _Labels,
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


def _broken_attacks(truthfulness: Truthfulness | None, linkage: dict[str, Linkage]) -> list[str]:
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


def _risk(
    published: PublishedClasses, counts: RegionCounts | None, claim: Claim
) -> list[dict[str, object]]:
    """Return the risk by attacker; of a population that does not cover the release, nothing."""
    covered = counts is not None and bool((counts.population >= counts.released).all())
    if counts is not None and covered:
        found = attacks_with_population(counts.released, counts.population, claim.risk.threshold)
    else:
        found = attacks(published.sizes, claim.risk.threshold)
    return [{"population": covered, **risk_row(attack, claim.risk)} for attack in found]
