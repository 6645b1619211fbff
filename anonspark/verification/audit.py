"""Proving a release from its own files, and attacking it with what an attacker may have.

Nothing here trusts the anonymizer: neither its metrics nor its class numbers nor its code. What is
shared with it are the vocabulary of the configuration and the reading of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.pseudonyms import PSEUDONYM, PSEUDONYM_FORM
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import is_publishable, require_distinct, require_read, type_name
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.progress import tell
from anonspark.release.class_bounds import is_alike
from anonspark.release.derived_figures import risk_rows
from anonspark.release.manifest import NOT_PROTECTED, Manifest
from anonspark.release.originals import open_original
from anonspark.release.risk import Floats, Sizes
from anonspark.verification.claims import Claim
from anonspark.verification.class_table import ClassLabels
from anonspark.verification.classes import count_published_classes
from anonspark.verification.linkage import Linkage
from anonspark.verification.matching import (
    ByOriginal,
    broken_attacks,
    labelled,
    linked_values_warnings,
    match_original,
    match_population,
)
from anonspark.verification.opening import OpenedRelease, open_release
from anonspark.verification.population import (
    broken_presence,
    broken_promises,
    measure_delta_presence,
    require_population,
)
from anonspark.verification.presence import RegionCounts
from anonspark.verification.result import Verification
from anonspark.verification.roles import Roles
from anonspark.verification.sensitive_figures import Trials, measure_sensitive
from anonspark.verification.statements import Statements
from anonspark.verification.unit_criteria import measure_units
from anonspark.verification.weights import sum_weights

_HOLDER, _RECORDS = "holder", "records"


def audit_release(
    engine: Engine,
    release: str,
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    original: str | None = None,
    population: str | None = None,
    signers: str | None = None,
) -> Verification:
    """Measure what the files of a release keep of its promise, and how attacks on it end.

    Parameters
    ----------
    engine : Engine
    release : str
        The directory that ``output.path`` named, or a table of another tool.
    configuration : Configuration or None
        What to require. Without it, what the release's manifest promises.
    roles : Roles or None
        What to require of a table without a manifest, where there is no configuration.
    original : str or None
        Path of the table that the release was made of.
    population : str or None
        Path of a table of people, with the quasi-identifiers as columns, that an attacker has.
    signers : str or None
        Local file of those who may have signed it. None does not check a signature.

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
    (:func:`~anonspark.verification.release_files.read_contents`). One pass over the published
    files and one shuffle of class sizes. Two more jobs for each sensitive attribute, two
    passes over the population for delta-presence, and the jobs of
    :func:`~anonspark.verification.truthfulness.measure_truthfulness` and
    :func:`~anonspark.verification.linkage.measure_linkage` for the tables given.
    """
    tell("reading the files")
    opened = open_release(
        engine,
        release,
        configuration,
        roles=roles,
        matched=original is not None or population is not None,
        signers=signers,
    )
    return audit_opened(engine, opened, original=original, population=population)


def audit_opened(
    engine: Engine,
    opened: OpenedRelease,
    *,
    original: str | Table | None = None,
    population: str | None = None,
) -> Verification:
    """Measure what an opened release keeps of its promise. See :func:`audit_release`."""
    described = opened.manifest or Manifest({})
    if original is not None and described.parts:
        raise ConfigurationError(
            f"--original: {opened.path} is a union, which has no original. Verify each of its "
            "parts with its own original"
        )
    if opened.manifest is None and opened.configuration is not None:
        described = Manifest({"configuration": opened.configuration.model_dump(mode="json")})
    tables: list[Table | None] = []
    paths = [opened.where]
    for key, table in (("original", original), ("population", population)):
        if isinstance(table, str):
            paths.append(table)
            with engine.reading((table,), key=f"--{key}: "):
                tables.append(open_original(engine, table, described, key=f"--{key}"))
        else:
            tables.append(table)
    with opened.reading(engine, paths):
        found = audit_table(
            opened.data,
            opened.claim,
            original=tables[0],
            population=tables[1],
            name=opened.path,
            where=opened.where,
        )
    found = replace(found, signature=opened.signature)
    if described.parts:
        return replace(found, warnings=[*found.warnings, NOT_PROTECTED])
    return found


def audit_table(
    data: Table,
    claim: Claim,
    *,
    original: Table | None = None,
    population: Table | None = None,
    name: str = "the table",
    where: str = "the table",
    trials: Trials | None = None,
) -> Verification:
    """Measure what published records keep of a claim. See :func:`audit_release`.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
    original, population : Table or None
        See :func:`audit_release`.
    name, where : str
        What the result and messages call the release and its records.
    trials : callable or None
        See :func:`~anonspark.verification.sensitive_figures.measure_sensitive`.
    """
    _require_columns(data, claim, original, population, where)
    tell("counting classes")
    misread, readable = _class_labels(data, claim, where)
    published = count_published_classes(data, claim.columns, labels=readable)
    if not published.rows:
        raise DataError(f"{where}: holds no records. There is nothing to verify")
    tell(f"measuring sensitive values of {published.rows:,} records")
    with _refused_as_promised(claim):
        sensitive = measure_sensitive(data, claim, published.rows, trials)
    tell("counting people")
    units = measure_units(data, claim, claim.units)
    k, warnings = claim.privacy.k, sensitive.warnings
    failures = [*claim.failures, *_unwanted_columns(data, claim, where), *misread]
    failures += broken_promises(published, k=k, measured=sensitive.criteria)
    if units is not None:
        units = replace(units, with_criteria=sensitive.of_people)
        failures += units.broken(k)
        warnings = [*warnings, *units.warnings()]
    presence, wanted = None, claim.privacy.delta_presence
    if wanted is not None:
        people = require_population(data.engine, wanted, claim.names)
        presence = measure_delta_presence(labelled(data, claim, people), people, wanted)
        failures += broken_presence(presence, wanted)
    linkage: dict[str, Linkage] = {}
    by_original = by_population = None
    counts = None if presence is None else presence.counts
    if original is not None:
        tell("matching with the original")
        by_original = match_original(data, claim, published, original)
        linkage["original"] = by_original.linkage
        linked = linked_values_warnings(by_original.with_values)
        warnings = [*warnings, *by_original.warnings, *linked]
    if population is not None:
        tell("attacking with the population")
        by_population = match_population(data, claim, population)
        linkage["population"] = by_population.linkage
        counts = by_population.counts
    weights, unsound = _sum_weights(data, claim)
    sizes = published.sizes if units is None else units.classes
    found = Verification(
        release=name,
        k=k,
        quasi_identifier_columns=list(claim.columns),
        published=published,
        criteria=sensitive.criteria,
        sensitive=sensitive.figures,
        units=units,
        risk=_risk(sizes, counts, weights, claim),
        presence=presence,
        truthfulness=by_original.truthfulness if by_original else None,
        loss=by_original.loss if by_original else None,
        ends=by_original.ends if by_original else None,
        linkage=linkage,
        linkage_with_values=by_original.with_values if by_original else {},
        classes_not_covered=by_population.classes_not_covered if by_population else None,
        failures=failures,
        warnings=warnings,
        tried=sensitive.tried,
        suppressed=claim.left_out.suppressed,
    )
    if claim.statements is not None:
        tell("comparing with what is said of the release")
        compared = None
        if by_original is not None and original is not None:
            compared = by_original, original.schema
        found = _beside_statements(found, claim.statements, data, claim, where, compared, weights)
    failures = [*found.failures, *broken_attacks(found.truthfulness, linkage)]
    return replace(found, failures=[*failures, *_of_weights(unsound, failures, claim, where)])


@contextmanager
def _refused_as_promised(claim: Claim) -> Iterator[None]:
    """Refuse a release whose sensitive values are not those that its own manifest describes."""
    try:
        yield
    except DataError as error:
        if claim.statements is None or claim.privacy != claim.statements.privacy:
            raise
        raise GuaranteeError("\n".join([*claim.failures, *error.problems])) from error


def _sum_weights(data: Table, claim: Claim) -> tuple[tuple[Sizes, Floats] | None, DataError | None]:
    """Return the sampling weights of classes, and why there are none: promises come first."""
    try:
        return sum_weights(data, claim.columns, claim.weights, claim.missing_markers), None
    except DataError as error:
        return None, error


def _of_weights(
    unsound: DataError | None, failures: Sequence[str], claim: Claim, where: str
) -> Sequence[str]:
    """Return what is wrong with sampling weights. Raise it where it refutes nothing."""
    if unsound is None:
        return []
    if claim.statements is not None and claim.statements.risk.weights == claim.weights:
        return [
            f"{where}: holds other values than sampling weights in {claim.weights!r}. Restore the "
            "release or publish it again"
        ]
    if not failures:
        raise unsound
    return unsound.problems


def _beside_statements(
    found: Verification,
    said: Statements,
    data: Table,
    claim: Claim,
    where: str,
    original: tuple[ByOriginal, pa.Schema] | None,
    weights: tuple[Sizes, Floats] | None,
) -> Verification:
    """Return what was measured, with what manifest and metrics say otherwise."""
    failures = [*found.failures, *_odd_pseudonyms(data, claim, where)]
    if found.published.fingerprint != said.manifest["fingerprints"]["output"]:
        failures.append(
            f"{where}: its records are not those that were published (the fingerprint "
            "differs from the manifest's). Restore the release or publish it again"
        )
    if claim.holder is not None:
        counted = data.select({_HOLDER: claim.holder}).aggregate([_HOLDER], count=_RECORDS)
        rows = counted.collect(len(said.manifest["parts"]) + 1).to_pylist()
        failures += said.misheld({row[_HOLDER]: row[_RECORDS] for row in rows})
    # What records that were left out had is known to the run alone.
    failures += said.miscounted(
        found.published,
        data.schema.names,
        [
            one
            for one in found.criteria
            if not one.criterion.is_distance
            or one.criterion.attribute not in claim.left_out.uncertainty
        ],
        found.presence if claim.privacy.delta_presence == said.privacy.delta_presence else None,
        {one.attribute: one.values for one in found.sensitive},
        found.units,
        weights if claim.risk.weights == said.risk.weights else None,
    )
    # An original that the release was not made of refutes nothing.
    if original is not None and found.loss and found.truthfulness and found.truthfulness.holds:
        measured, schema = original
        failures += said.mismeasured(found.published, found.loss, measured.rows)
        failures += said.compare_left_out(claim.left_out.values, measured.left_out)
        said.compare_types(data.schema, schema, claim.as_they_came)
    return replace(
        found,
        failures=failures,
        warnings=[*said.warnings(), *found.warnings],
        columns_published=said.manifest["summary"].get("columns_published"),
        columns_in=said.manifest["summary"].get("columns_in"),
        claimed=said.unproven,
    )


def complete_verification(
    data: Table, claim: Claim, verified: Verification, trials: Trials | None = None
) -> Verification:
    """Add to what a run has proven of its release what a run does not measure.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
        Of the release.
    verified : Verification
        Of the run: classes, criteria and risk, and nothing of every sensitive attribute.
    trials : callable or None
        See :func:`~anonspark.verification.sensitive_figures.measure_sensitive`.

    Notes
    -----
    The jobs of :func:`~anonspark.verification.sensitive_figures.measure_sensitive` and, where
    people count, of :func:`~anonspark.verification.unit_criteria.measure_units`. The files are not
    read as bytes, and classes are not counted again.
    """
    tell(f"measuring sensitive values of {verified.published.rows:,} records")
    sensitive = measure_sensitive(data, claim, verified.published.rows, trials, people=False)
    units = verified.units
    if units is not None:
        units = measure_units(data, claim, units.classes)
    return replace(
        verified,
        sensitive=sensitive.figures,
        tried=sensitive.tried,
        units=units,
        warnings=[*sensitive.warnings, *(units.warnings() if units is not None else ())],
    )


def _require_columns(
    data: Table,
    claim: Claim,
    original: Table | None,
    population: Table | None,
    where: str,
) -> None:
    """Check that columns have different names, and that those of the claim are there.

    Raises
    ------
    DataError
    """
    require_distinct(data.schema.names, data.schema.names, where)
    for subject, table in (("original", original), ("population", population)):
        if table is not None:
            used = {*claim.names, *data.schema.names}
            require_distinct(table.schema.names, used, subject)
            require_read(table.schema, used, f"{subject}: ")
    weights = () if claim.weights is None else (claim.weights,)
    needed = dict.fromkeys((*claim.columns, *claim.sensitive, *claim.people_columns, *weights))
    lacking = [column for column in needed if column not in data.schema.names]
    if lacking:
        raise DataError(f"{where}: lacks the published columns {', '.join(map(repr, lacking))}")
    used = {*claim.columns, *claim.sensitive}
    require_read(data.schema, used, f"{where}: ")
    odd = [
        f"{where}: column {field.name!r} has type {type_name(field.type)}, whose values cannot be "
        "compared. Convert it to a number, date, timestamp, boolean or text first"
        for field in data.schema
        if field.name in used and not (is_publishable(field.type) or pa.types.is_null(field.type))
    ]
    if odd:
        raise DataError(*odd)


def _class_labels(data: Table, claim: Claim, where: str) -> tuple[list[str], ClassLabels | None]:
    """Return which columns have other types than was said, and how labels are read if none has."""
    said = None if claim.statements is None else claim.statements.labels
    if said is None:
        return [], None
    misread = said.misread(data.schema)
    if misread:
        columns = ", ".join(map(repr, misread))
        text = f"{where}: the columns {columns} have other types than published.quasi_identifiers"
        return [f"{text} says. Restore the release or publish it again"], None
    return [], said if sorted(said.columns) == sorted(claim.columns) else None


def _unwanted_columns(data: Table, claim: Claim, where: str) -> list[str]:
    """Return forbidden columns: identifiers, and columns that are not listed."""
    if claim.publishable is None:
        return []
    # As Spark compares names.
    publishable = {name.lower() for name in claim.publishable}
    unwanted = [name for name in data.schema.names if name.lower() not in publishable]
    if not unwanted:
        return []
    return [
        f"{where}: publishes the columns {', '.join(map(repr, unwanted))}, which are identifiers "
        "or are not listed. The release must not be used"
    ]


def _odd_pseudonyms(data: Table, claim: Claim, where: str) -> list[str]:
    """Return the columns of pseudonyms that hold something else. One pass over each."""
    odd = []
    for name in claim.pseudonyms:
        counted = data.select([name]).map_batches(_count_odd_pseudonyms, _ODD)
        is_text = is_alike(data.schema.field(name).type, PSEUDONYM)
        if not is_text or counted.aggregate([], sums=_ODD.names).collect()[_RECORDS][0].as_py():
            odd.append(name)
    if not odd:
        return []
    return [
        f"{where}: holds other values than pseudonyms in {', '.join(map(repr, odd))}. The release "
        "must not be used"
    ]


_ODD = pa.schema([(_RECORDS, pa.int64())])


def _count_odd_pseudonyms(batches: Batches) -> Batches:
    for batch in batches:
        matched = pc.match_substring_regex(batch.column(0).cast(PSEUDONYM), PSEUDONYM_FORM)
        odd = batch.num_rows - (pc.sum(matched).as_py() or 0)
        yield pa.RecordBatch.from_pydict({_RECORDS: [odd]}, _ODD)


def _risk(
    sizes: Mapping[int, int],
    counts: RegionCounts | None,
    weights: tuple[Sizes, Floats] | None,
    claim: Claim,
) -> list[dict[str, object]]:
    """Return the risk by attacker. Of a population that does not cover the release, nothing."""
    covered = counts is not None and bool((counts.population >= counts.released).all())
    population = (counts.released, counts.population) if counts is not None and covered else None
    return risk_rows(claim.risk, {}, sizes, None, population, weights)
