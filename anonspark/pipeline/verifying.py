"""The staged release is read back and proven before anything of it is published."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.columns import CLASS_ID, UNIT, WEIGHT, is_published
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain
from anonspark.engine.tasks import Batches
from anonspark.errors import GuaranteeError
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.staging import Staging
from anonspark.layers.publish.tables import write_small_table
from anonspark.models.model import Model
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.description import PublishedForm
from anonspark.pipeline.figures import Figures, Measured
from anonspark.pipeline.publishable_data import Basis
from anonspark.pipeline.rounds import StagedRounds
from anonspark.pipeline.tasks import sensitive_values
from anonspark.pipeline.warnings.value_sizes import EXACT_ROWS
from anonspark.release.layout import LEFT_OUT
from anonspark.release.region_matching import LabelledTable
from anonspark.release.regions import leaves_by_label
from anonspark.release.risk import Floats, Sizes
from anonspark.staged.sampling import draw_divisor
from anonspark.verification.classes import PublishedClasses, count_published_classes
from anonspark.verification.criteria import MeasuredCriterion, asked_of, measure_criteria
from anonspark.verification.left_out import left_out_texts
from anonspark.verification.population import (
    broken_presence,
    broken_promises,
    measure_delta_presence,
    require_population,
)
from anonspark.verification.presence import Presence
from anonspark.verification.result import Verification
from anonspark.verification.unit_criteria import (
    MeasuredUnits,
    count_sizes,
    measure_people,
    people_who_agree,
)
from anonspark.verification.weights import sum_weights


def _require_people(
    context: RunContext,
    table: Table,
    snapshot: Snapshot,
    basis: Basis,
    columns: Sequence[str],
    published: PublishedClasses,
) -> MeasuredUnits | None:
    """Count the people of each class. Refuse fewer than k, and pseudonyms of people who are alone.

    Notes
    -----
    Nothing that formed the classes is asked. One job with two shuffles, of the different pairs of a
    class and a person and of the classes, if people have several records, and that of
    :func:`~anonspark.verification.unit_criteria.people_who_agree` if the files show people.
    """
    if snapshot.units is None:
        return None
    configuration, privacy = context.configuration, context.configuration.privacy
    numbers: Mapping[int, int] = published.sizes
    if snapshot.units.repeat:
        pairs = basis.rounds.finished.rows(CLASS_ID, UNIT).aggregate([CLASS_ID, UNIT])
        numbers = count_sizes(pairs, [CLASS_ID])
    shown = configuration.people_columns
    agreeing = people_who_agree(table, columns, shown) if shown else None
    units = MeasuredUnits(tuple(privacy.unit), numbers, agreeing=agreeing)
    failures = units.broken(privacy.k)
    if configuration.output.pseudonyms and context.warns and not privacy.allow_alone:
        failures += [
            f"output.pseudonyms: {text}. If no one can know several records of a person, set "
            "privacy.allow_alone to true. Nothing was published"
            for text in units.warnings()
        ]
    if failures:
        raise GuaranteeError("\n".join(failures))
    return units


_TUPLE = "tuple"
_TUPLES = pa.schema([(CLASS_ID, pa.int64()), (_TUPLE, pa.int64())])


def measure_people_of_classes(rounds: StagedRounds, criteria: Criteria) -> list[MeasuredCriterion]:
    """Measure criteria that count people in the published tuples.

    Parameters
    ----------
    rounds : StagedRounds
    criteria : Criteria
        Of the whole input.

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria.

    Notes
    -----
    Nothing that formed the classes is asked. Of each sensitive attribute a job with four shuffles:
    of the records by class, of the different triples of tuple, value and person, and of counts.
    """
    found: dict[Criterion, MeasuredCriterion] = {}
    tuples = _published_tuples(rounds)
    for place, attribute in enumerate(sensitive_values(criteria)):
        own = [one for one in criteria.criteria if one.attribute == attribute.name]
        data = _people(rounds, criteria.sensitive[place].column).join(
            tuples, [CLASS_ID], small=False
        )
        found |= zip(own, measure_people(data, [_TUPLE], attribute, own), strict=True)
    return [found[one] for one in criteria.criteria]


def _people(rounds: StagedRounds, column: str) -> Table:
    """Return classes, values and whom records are about."""
    records = rounds.finished.rows(CLASS_ID, UNIT, column)
    return records.select({CLASS_ID: CLASS_ID, "value": column, UNIT: UNIT})


@dataclass(frozen=True)
class _NameTuples:
    """Yields of each class the smallest name of those that are published alike."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            names = batch.column(CLASS_ID)
            owners = names.value_parent_indices()
            smallest = pa.table({"owner": owners, "name": names.flatten()}).group_by("owner")
            found = smallest.aggregate([("name", "min")]).sort_by("owner")["name_min"]
            columns = [names.flatten(), pc.take(found, owners).combine_chunks()]
            yield pa.RecordBatch.from_arrays(columns, schema=_TUPLES)


def _published_tuples(rounds: StagedRounds) -> Table:
    """Return the classes, and one name for those that are published alike."""
    labels = [name for name in rounds.classes.schema.names if is_published(name)]
    classes = rounds.classes.rows(CLASS_ID, *labels)
    residual = rounds.residual
    if residual is not None and residual.labels is not None:
        own = residual.labels.select([CLASS_ID, *labels]).cast(classes.schema)
        classes = classes.union(classes.engine.table(own))
    alike = classes.aggregate(labels, lists=[CLASS_ID]).select([CLASS_ID])
    return alike.map_batches(_NameTuples(), _TUPLES)


def _sum_weights(
    configuration: Configuration, table: Table, columns: Sequence[str], rounds: StagedRounds
) -> tuple[Sizes, Floats] | None:
    """Add up the sampling weights, of the published files where they have them."""
    name, markers = configuration.evaluate.risk.weights, configuration.input.missing_markers
    if name is None or name in configuration.published_as_is:
        return sum_weights(table, columns, name, markers)
    records = rounds.finished.rows(CLASS_ID, WEIGHT)
    tuples = records.join(_published_tuples(rounds), [CLASS_ID], small=False)
    return sum_weights(tuples, [_TUPLE], WEIGHT, markers)


def write_left_out(basis: Basis, criteria: Criteria, staging: Staging) -> list[PublishedFile]:
    """Write how often each sensitive value of a distance occurs among the records left out.

    Parameters
    ----------
    basis : Basis
        Shows whether any are left out, and whether their values may be published.
    criteria : Criteria
        Of the whole input.
    staging : Staging
        Of the release.

    Returns
    -------
    list of PublishedFile
        None where a release needs no such table.

    Notes
    -----
    Of each attribute one job with one shuffle of the different values of each task. Their counts
    are collected, at most 50,000.
    """
    residual = basis.rounds.residual
    named = {one.attribute for one in criteria.criteria if one.is_distance}
    if residual is None or not named or not basis.left_out or not basis.values_told:
        return []
    columns = {one.name: one.column for one in criteria.sensitive if one.name in named}
    counted = {
        name: residual.records.named({"value": column}).aggregate(["value"], count="records")
        for name, column in columns.items()
    }
    counts = pa.concat_tables(
        left_out_texts(name, values.collect()) for name, values in counted.items()
    )
    # In one order, missing values first, so that it tells nothing of the records' own.
    flagged = counts.append_column("is_value", pc.is_valid(counts["value"]))
    keys = [(name, "ascending") for name in ("attribute", "is_value", "value")]
    table = flagged.sort_by(keys).select(counts.column_names)
    files = residual.records.engine.files
    return [write_small_table(files, table, staging.release, LEFT_OUT)]


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
        Decides which criteria it keeps. Of others is only warned.
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
        # Warnings need these, which come along here.
        criteria_beyond_k = context.configuration.privacy.criteria
        forbidden = {one.attribute for one in criteria_beyond_k if one.forbids_one_value}
        of_interest = [
            name
            for name in context.configuration.sensitive
            if context.warns and name not in forbidden and is_plain(table.schema.field(name).type)
        ]
        k, rows = context.configuration.privacy.k, snapshot.rows - basis.left_out
        published = count_published_classes(
            table,
            form.columns,
            of_interest,
            counted=context.configuration.published_as_is if context.warns else (),
            divisor=draw_divisor(rows, EXACT_ROWS),
        )
        if snapshot.criteria.counts_people:
            criteria = measure_people_of_classes(basis.rounds, snapshot.criteria)
        else:
            asked = asked_of(snapshot.criteria.criteria, sensitive_values(snapshot.criteria))
            criteria = measure_criteria(table, form.columns, asked)
        kept = [one for one in criteria if model.keeps(one.criterion)]
        _require_promises(published, k, kept, rows)
        criteria = _with_told_distances(table, form.columns, criteria, basis)
        units = _require_people(context, table, snapshot, basis, form.columns, published)
        files = write_left_out(basis, snapshot.criteria, staging)
        _warn_of_violations(criteria, published)
        presence = _require_presence(context, table, snapshot, form)
        measured = Measured(
            published,
            criteria,
            presence,
            units=units,
            of_people=snapshot.criteria.counts_people,
            weights=_sum_weights(context.configuration, table, form.columns, basis.rounds),
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
        units=measured.units,
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
            "lost or doubled on the way. Nothing was published. Please report this as a bug"
        )
    broken = broken_promises(published, k=k, measured=measured)
    if broken:
        raise GuaranteeError("\n".join(broken))


def _with_told_distances(
    table: Table, names: Sequence[str], measured: list[MeasuredCriterion], basis: Basis
) -> list[MeasuredCriterion]:
    """Return the published criteria: distances from the input as the release shows it.

    The distance from the whole input would depend on the values of records left out.
    """
    if basis.withheld is None or not basis.withheld.uncertainty:
        return measured
    distances = [one for one in measured if one.criterion.is_distance]
    asked = asked_of((one.criterion for one in distances), sensitive_values(basis.criteria))
    shown = measure_criteria(table, names, asked, basis.withheld.uncertainty)
    by_criterion = {one.criterion: one for one in shown}
    return [by_criterion.get(one.criterion, one) for one in measured]


def _warn_of_violations(measured: Sequence[MeasuredCriterion], published: PublishedClasses) -> None:
    for one in measured:
        if one.violating_classes:
            _LOGGER.warning(
                "%d of %d classes, with %d records, violate %s on attribute %r, as the "
                "model's options allow. anonspark verify will refuse the release",
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
        LabelledTable(
            table,
            form.attributes,
            {name: leaves_by_label(one) for name, one in snapshot.hierarchies.items()},
            context.configuration.input.missing_markers,
        ),
        require_population(context.engine, wanted, context.configuration.quasi_identifiers),
        wanted,
    )
    broken = broken_presence(presence, wanted)
    if broken:
        raise GuaranteeError("\n".join(broken))
    return presence
