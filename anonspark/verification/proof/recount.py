"""Recount what published records keep of a claim: nothing but the records is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_publishable, require_distinct, require_read, type_name
from anonspark.errors import DataError, GuaranteeError
from anonspark.progress import report_step
from anonspark.release.derived_figures import risk_rows
from anonspark.verification.claims.claim import Claim
from anonspark.verification.proof.class_table import ClassLabels
from anonspark.verification.proof.classes import PublishedClasses, count_published_classes
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.sensitive_figures import Trials, measure_sensitive
from anonspark.verification.proof.unit_criteria import measure_units
from anonspark.verification.proof.weights import sum_weights
from anonspark.verification.result import Verification


def recount(
    data: Table,
    claim: Claim,
    where: str,
    trials: Trials | None = None,
    published: PublishedClasses | None = None,
) -> Verification:
    """Count classes, and measure every criterion and the risk.

    Parameters are those of ``audit_table``. Raises DataError if a requirement cannot be measured in
    this table, and GuaranteeError if its own manifest requires it.
    """
    _require_columns(data, claim, where)
    misread, readable = _class_labels(data, claim, where)
    if published is None:
        report_step("counting classes")
        published = count_published_classes(data, claim.columns, labels=readable)
    if not published.rows:
        raise DataError(f"{where}: holds no records. There is nothing to verify")
    k = claim.privacy.k
    failures = [*claim.failures, *_unwanted_columns(data, claim, where), *misread]
    try:
        report_step(f"measuring sensitive values of {published.rows:,} records")
        sensitive = measure_sensitive(data, claim, published.rows, trials)
        failures += broken_promises(published, k=k, measured=sensitive.criteria)
        report_step("counting people")
        units, warnings = measure_units(data, claim, claim.units), sensitive.warnings
        if units is not None:
            units = replace(units, with_criteria=sensitive.of_people)
            failures += units.broken(k)
            warnings = [*warnings, *units.warnings()]
        weights = claim.class_weights or sum_weights(
            data, claim.columns, claim.weights, claim.missing_markers
        )
    except DataError as error:
        if claim.is_of_manifest:
            failures.append(
                f"{where}: its records are not those that its manifest describes. Restore the "
                "release or publish it again"
            )
        if not failures:
            raise
        raise GuaranteeError("\n".join([*failures, *error.problems])) from error
    return Verification(
        release=where,
        k=k,
        quasi_identifier_columns=list(claim.columns),
        published=published,
        criteria=sensitive.criteria,
        sensitive=sensitive.figures,
        risk=risk_rows(
            claim.risk, {}, units.classes if units else published.sizes, None, None, weights
        ),
        units=units,
        failures=failures,
        warnings=warnings,
        tried=sensitive.tried,
        suppressed=claim.left_out.suppressed,
        weights=weights,
    )


def _require_columns(data: Table, claim: Claim, where: str) -> None:
    """Raise DataError if columns have equal names, are missing, or cannot be compared."""
    require_distinct(data.schema.names, data.schema.names, where)
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
    """Return which columns have other types than stated, and how labels are read if none has."""
    labels = None if claim.statements is None else claim.statements.labels
    if labels is None:
        return [], None
    misread = labels.misread(data.schema)
    if misread:
        columns = ", ".join(map(repr, misread))
        text = f"{where}: the columns {columns} have other types than published.quasi_identifiers"
        return [f"{text} says. Restore the release or publish it again"], None
    return [], labels if sorted(labels.columns) == sorted(claim.columns) else None


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


def broken_promises(
    published: PublishedClasses,
    *,
    k: int,
    measured: Sequence[MeasuredCriterion] = (),
) -> list[str]:
    """List the promises that counted classes and measured criteria do not keep.

    One sentence each, without values of the data.
    """
    broken = []
    if published.smallest < k:
        broken.append(
            f"the smallest class of the release has {published.smallest:,} "
            f"{'record' if published.smallest == 1 else 'records'}, "
            f"expected at least k = {k}. The release must not be used"
        )
    broken += [
        f"{criterion.violating_classes:,} of {published.classes:,} classes of the release, with "
        f"{criterion.violating_records:,} records, violate {criterion.criterion.describe()} on "
        f"attribute {criterion.criterion.attribute!r}. The release must not be used"
        for criterion in measured
        if criterion.violating_classes
    ]
    return broken
