"""The staged release is read back and proven before anything of it is published."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from anonspark.config import Configuration
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Table
from anonspark.errors import GuaranteeError
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.models.model import Model
from anonspark.pipeline.basis import Basis
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.description import PublishedForm
from anonspark.pipeline.figures import Figures, Measured
from anonspark.pipeline.left_out import write_left_out
from anonspark.pipeline.people import (
    measure_people_of_classes,
    require_people,
    require_whole_order,
    with_told_shares,
)
from anonspark.pipeline.tasks import sensitive_values
from anonspark.pipeline.units import require_units
from anonspark.release.regions import leaves_by_label
from anonspark.verification.classes import PublishedClasses, count_published_classes
from anonspark.verification.criteria import MeasuredCriterion, measure_criteria
from anonspark.verification.guarantee import broken_promises
from anonspark.verification.population import broken_presence, measure_delta_presence
from anonspark.verification.presence import Presence
from anonspark.verification.result import Verification
from anonspark.verification.units import MeasuredUnits

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class VerifiedRelease:
    """The staged release, of which the promises are proven.

    Parameters
    ----------
    table : Table
        Its records, read from the staged files.
    measured : Measured
        Without what is measured beside the input.
    files : list of PublishedFile
        Written so that others can prove the release as well.
    """

    table: Table
    measured: Measured
    files: list[PublishedFile]


def verify_staged(
    context: RunContext,
    staging: Staging,
    snapshot: Snapshot,
    model: Model,
    basis: Basis,
    form: PublishedForm,
) -> VerifiedRelease:
    """Measure the staged release from its files, and check that it keeps its promise.

    Parameters
    ----------
    context : RunContext
    staging : Staging
        Holds the release.
    snapshot : Snapshot
    model : Model
        Tells which criteria it keeps; of others is only warned.
    basis : Basis
    form : PublishedForm

    Raises
    ------
    GuaranteeError
        If records are missing or too many, or a promise is not kept.
    """
    with context.progress.stage("verify"):
        data_format = context.configuration.output.format
        table = context.engine.published(f"{staging.release}/data", data_format)
        published = count_published_classes(table, form.columns)
        k, rows = context.configuration.privacy.k, snapshot.rows - basis.left_out
        if snapshot.criteria.counts_people:
            _require_promises(published, k, [], rows)
            require_whole_order(snapshot.criteria, basis.left_out)
            criteria = measure_people_of_classes(basis.rounds, snapshot.criteria, rows)
            require_people([one for one in criteria if model.keeps(one.criterion)])
            criteria = with_told_shares(criteria, basis, snapshot.criteria, rows)
        else:
            criteria = measure_criteria(
                table, form.columns, snapshot.criteria.criteria, sensitive_values(snapshot.criteria)
            )
            kept = [one for one in criteria if model.keeps(one.criterion)]
            _require_promises(published, k, kept, rows)
            criteria = _with_told_distances(table, form.columns, criteria, basis)
        units = require_units(basis.rounds.finished, snapshot, published, k)
        files = write_left_out(basis, snapshot.criteria, staging)
        _warn_of_violations(criteria, published)
        presence = _require_presence(context, table, snapshot, form)
        measured = Measured(
            published,
            criteria,
            presence,
            units=units,
            of_people=snapshot.criteria.counts_people,
        )
    return VerifiedRelease(table, measured, files)


def verified_by_run(
    configuration: Configuration, columns: Sequence[str], measured: Measured, figures: Figures
) -> Verification:
    """Return what a run has proven of its release, in the form that ``anonspark verify`` has.

    Parameters
    ----------
    configuration : Configuration
    columns : sequence of str
        Published columns that form classes.
    measured : Measured
    figures : Figures
        Of the run: the risk of the whole release is in them.

    Returns
    -------
    Verification
        Without what a run does not look at: attributes that no criterion is about, and attacks.
    """
    privacy = configuration.privacy
    units = measured.units
    return Verification(
        release=configuration.output.path,
        k=privacy.k,
        quasi_identifier_columns=list(columns),
        published=measured.published,
        criteria=list(measured.criteria),
        sensitive=[],
        risk=[
            {name: value for name, value in row.items() if name != "run_id"}
            for row in figures.risk
            if "round" not in row
        ],
        units=None if units is None else MeasuredUnits(tuple(privacy.unit), units),
        presence=measured.presence,
        columns_published=figures.summary["columns_published"],
        columns_in=figures.summary["columns_in"],
        failures=broken_promises(measured.published, k=privacy.k, measured=measured.criteria),
    )


def _require_promises(
    published: PublishedClasses, k: int, measured: Sequence[MeasuredCriterion], rows: int
) -> None:
    """Check that the staged release holds all records and keeps its promise.

    Raises
    ------
    GuaranteeError
        If records are missing or too many, or a class is too small or violates a criterion.
    """
    if published.rows != rows:
        raise GuaranteeError(
            f"the staged release holds {published.rows:,} records, expected {rows:,}: records were "
            "lost or doubled on the way; nothing was published. Please report this as a bug"
        )
    broken = broken_promises(published, k=k, measured=measured)
    if broken:
        raise GuaranteeError("\n".join(broken))


def _with_told_distances(
    table: Table, names: Sequence[str], measured: list[MeasuredCriterion], basis: Basis
) -> list[MeasuredCriterion]:
    """Return what is told of criteria: distances from what the release shows of the whole input.

    The distance from the whole input would depend on the values of records left out.
    """
    if basis.withheld is None or not basis.withheld.uncertainty:
        return measured
    distances = [one for one in measured if one.criterion.is_distance]
    shown = measure_criteria(
        table,
        names,
        [one.criterion for one in distances],
        sensitive_values(basis.criteria),
        basis.withheld.uncertainty,
    )
    by_criterion = {one.criterion: one for one in shown}
    return [by_criterion.get(one.criterion, one) for one in measured]


def _warn_of_violations(measured: Sequence[MeasuredCriterion], published: PublishedClasses) -> None:
    for one in measured:
        if one.violating_classes:
            _LOGGER.warning(
                "%d of %d classes, with %d records, violate %s on attribute %r, as the "
                "model's options allow; anonspark verify will refuse the release",
                one.violating_classes,
                published.classes,
                one.violating_records,
                one.criterion.describe(),
                one.criterion.attribute,
            )


def _require_presence(
    context: RunContext, table: Table, snapshot: Snapshot, form: PublishedForm
) -> Presence | None:
    """Measure delta-presence, where it is asked for, and check that it holds."""
    wanted = context.configuration.privacy.delta_presence
    if wanted is None:
        return None
    presence = measure_delta_presence(
        context.engine,
        table,
        wanted,
        form.attributes,
        {name: leaves_by_label(one) for name, one in snapshot.hierarchies.items()},
        context.configuration.input.missing_markers,
    )
    broken = broken_presence(presence, wanted)
    if broken:
        raise GuaranteeError("\n".join(broken))
    return presence
