"""Read the staged release back, and prove it before anything of it is published."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from anonspark.pipeline.figures import Measured
from anonspark.pipeline.publishable_data import Basis
from anonspark.pipeline.rounds import StagedRounds
from anonspark.pipeline.tasks import sensitive_values
from anonspark.pipeline.warnings.value_sizes import EXACT_ROWS
from anonspark.release.layout import LEFT_OUT
from anonspark.release.risk import Floats, Sizes
from anonspark.staged.sampling import draw_divisor
from anonspark.verification.audit import audit_table
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.left_out import left_out_texts
from anonspark.verification.proof.classes import PublishedClasses, count_published_classes
from anonspark.verification.proof.criteria import MeasuredCriterion, asked_of, measure_criteria
from anonspark.verification.proof.recount import broken_promises
from anonspark.verification.proof.unit_criteria import count_sizes, measure_people
from anonspark.verification.proof.weights import sum_weights
from anonspark.verification.result import Verification


def _count_people(
    snapshot: Snapshot, basis: Basis, published: PublishedClasses
) -> Mapping[int, int] | None:
    """Count the people of each class, whom the files do not show, or return None for records.

    If people have several records: one job with two shuffles, of the different pairs of a class and
    a person, and of the classes.
    """
    if snapshot.units is None or not snapshot.units.repeat:
        return None if snapshot.units is None else published.sizes
    pairs = basis.rounds.finished.rows(CLASS_ID, UNIT).aggregate([CLASS_ID, UNIT])
    return count_sizes(pairs, [CLASS_ID])


_TUPLE = "tuple"
_TUPLES = pa.schema([(CLASS_ID, pa.int64()), (_TUPLE, pa.int64())])


def measure_people_of_classes(rounds: StagedRounds, criteria: Criteria) -> list[MeasuredCriterion]:
    """Measure criteria that count people in the published tuples, in the order of the criteria.

    It uses nothing that formed the classes. Each sensitive attribute takes a job of four shuffles:
    of records by class, of the different triples of tuple, value and person, and of counts.
    """
    tuples = _published_tuples(rounds)
    measured: dict[Criterion, MeasuredCriterion] = {}
    for attribute, values in zip(criteria.sensitive, sensitive_values(criteria), strict=True):
        asked = [item for item in criteria.criteria if item.attribute == attribute.name]
        data = _people(rounds, attribute.column).join(tuples, [CLASS_ID], small=False)
        measured |= zip(asked, measure_people(data, [_TUPLE], values, asked), strict=True)
    return [measured[criterion] for criterion in criteria.criteria]


def _people(rounds: StagedRounds, column: str) -> Table:
    """Return classes, values and persons of the finished records."""
    records = rounds.finished.rows(CLASS_ID, UNIT, column)
    return records.select({CLASS_ID: CLASS_ID, "value": column, UNIT: UNIT})


@dataclass(frozen=True)
class _NameTuples:
    """Yields, for each class, the smallest name of the classes that are published alike."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            names = batch.column(CLASS_ID)
            owners = names.value_parent_indices()
            by_tuple = pa.table({"owner": owners, "name": names.flatten()}).group_by("owner")
            smallest_of_tuple = by_tuple.aggregate([("name", "min")]).sort_by("owner")["name_min"]
            columns = [names.flatten(), pc.take(smallest_of_tuple, owners).combine_chunks()]
            yield pa.RecordBatch.from_arrays(columns, schema=_TUPLES)


def _published_tuples(rounds: StagedRounds) -> Table:
    """Return the classes, and one name for those that are published alike."""
    labels = [name for name in rounds.classes.schema.names if is_published(name)]
    classes = rounds.classes.rows(CLASS_ID, *labels)
    residual = rounds.residual
    if residual is not None and residual.labels is not None:
        suppressed = residual.labels.select([CLASS_ID, *labels]).cast(classes.schema)
        classes = classes.union(classes.engine.table(suppressed))
    by_labels = classes.aggregate(labels, lists=[CLASS_ID]).select([CLASS_ID])
    return by_labels.map_batches(_NameTuples(), _TUPLES)


def _sum_weights(
    configuration: Configuration, table: Table, columns: Sequence[str], rounds: StagedRounds
) -> tuple[Sizes, Floats] | None:
    """Sum the sampling weights, from the published files if they have them."""
    name, markers = configuration.evaluate.risk.weights, configuration.input.missing_markers
    if name is None or name in configuration.published_as_is:
        return sum_weights(table, columns, name, markers)
    records = rounds.finished.rows(CLASS_ID, WEIGHT)
    tuples = records.join(_published_tuples(rounds), [CLASS_ID], small=False)
    return sum_weights(tuples, [_TUPLE], WEIGHT, markers)


def write_left_out(basis: Basis, criteria: Criteria, staging: Staging) -> list[PublishedFile]:
    """Write how often each sensitive value of a distance occurs among the records left out.

    Writes nothing if none are left out, or their values may not be published. Each attribute takes
    one job with one shuffle of the different values of each task, whose counts, at most 50,000, are
    collected.
    """
    residual = basis.rounds.residual
    named = {item.attribute for item in criteria.criteria if item.is_distance}
    if residual is None or not named or not basis.left_out or not basis.shows_left_out:
        return []
    columns = {item.name: item.column for item in criteria.sensitive if item.name in named}
    counted = {
        name: residual.records.named({"value": column}).aggregate(["value"], count="records")
        for name, column in columns.items()
    }
    counts = pa.concat_tables(
        left_out_texts(name, values.collect()) for name, values in counted.items()
    )
    # In a fixed order, missing values first, so that it reveals nothing of the records' order.
    flagged = counts.append_column("is_value", pc.is_valid(counts["value"]))
    keys = [(name, "ascending") for name in ("attribute", "is_value", "value")]
    table = flagged.sort_by(keys).select(counts.column_names)
    files = residual.records.engine.files
    return [write_small_table(files, table, staging.release, LEFT_OUT)]


_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class VerifiedRelease:
    """The staged release, whose promises are proven.

    ``table`` are its records, read from the staged files. ``measured`` lacks what is compared with
    the input. ``proof`` is the same as a stranger's, without figures of attributes that no
    criterion is about. ``files`` were written so that others can prove the release, too.
    """

    table: Table
    measured: Measured
    proof: Verification
    files: list[PublishedFile]


def verify_staged(
    context: RunContext,
    staging: Staging,
    snapshot: Snapshot,
    model: Model,
    basis: Basis,
    form: PublishedForm,
) -> VerifiedRelease:
    """Prove the staged release from its files, in the same way as a published one.

    The model decides which criteria it keeps. A violation of the others only causes a warning.
    Raises GuaranteeError if records are lost or doubled, or a promise is not kept.
    """
    configuration = context.configuration
    with context.progress.stage("verify"):
        table = context.engine.published(f"{staging.release}/data", configuration.output.format)
        published = _count_classes(context, table, snapshot.rows - basis.left_out, form)
        claim = _claim_of_run(context, table, snapshot, basis, form, published)
        proof = audit_table(table, claim, name=configuration.output.path, published=published)
        _require_promises(context, proof, model)
        shown = _with_published_distances(table, form.columns, proof.criteria, basis)
        _warn_of_violations(shown, published)
        files = write_left_out(basis, snapshot.criteria, staging)
        if (units := proof.units) is not None:
            # The run has counted people whom the files do not show.
            units = replace(units, not_published=())
        proof = replace(
            proof,
            criteria=shown,
            units=units,
            failures=broken_promises(published, k=proof.k, measured=shown),
            warnings=[],
        )
        measured = Measured(
            published,
            shown,
            proof.presence,
            units=units,
            of_people=snapshot.criteria.counts_people,
            weights=claim.class_weights,
        )
    return VerifiedRelease(table, measured, proof, files)


def _count_classes(
    context: RunContext, table: Table, rows: int, form: PublishedForm
) -> PublishedClasses:
    """Count the classes of the staged release, and in the same pass what warnings need.

    Raises GuaranteeError unless there are ``rows`` records.
    """
    configuration = context.configuration
    forbidden = {
        item.attribute for item in configuration.privacy.criteria if item.forbids_one_value
    }
    of_interest = [
        name
        for name in configuration.sensitive
        if context.warns and name not in forbidden and is_plain(table.schema.field(name).type)
    ]
    published = count_published_classes(
        table,
        form.columns,
        of_interest,
        counted=configuration.published_as_is if context.warns else (),
        divisor=draw_divisor(rows, EXACT_ROWS),
    )
    if published.rows != rows:
        raise GuaranteeError(
            f"the staged release holds {published.rows:,} records, expected {rows:,}: records were "
            "lost or doubled on the way. Nothing was published. Please report this as a bug"
        )
    return published


def _claim_of_run(
    context: RunContext,
    table: Table,
    snapshot: Snapshot,
    basis: Basis,
    form: PublishedForm,
    published: PublishedClasses,
) -> Claim:
    """Return the promises of the configuration, with what only the run knows of its input."""
    configuration, criteria = context.configuration, snapshot.criteria
    pseudonyms = tuple(configuration.output.pseudonyms.values())
    hides_people = not configuration.people_columns
    counts_people = hides_people and criteria.counts_people
    return Claim(
        configuration.privacy,
        form.columns,
        tuple(configuration.quasi_identifiers),
        hierarchies=snapshot.hierarchies,
        risk=configuration.evaluate.risk,
        publishable=(*form.columns, *configuration.published_as_is, *pseudonyms),
        as_they_came=tuple(configuration.published_as_is),
        pseudonyms=pseudonyms,
        attributes=form.attributes,
        missing_markers=configuration.input.missing_markers,
        units=_count_people(snapshot, basis, published) if hides_people else None,
        of_people=measure_people_of_classes(basis.rounds, criteria) if counts_people else None,
        values={attribute.name: attribute for attribute in sensitive_values(criteria)},
        class_weights=_sum_weights(configuration, table, form.columns, basis.rounds),
    )


def _require_promises(context: RunContext, proof: Verification, model: Model) -> None:
    """Refuse a staged release that breaks a promise of its model, or shows people who are alone."""
    configuration = context.configuration
    allowed = [case for case in proof.criteria if not model.keeps(case.criterion)]
    # The model's options allow classes to violate these criteria.
    violated = broken_promises(
        replace(proof.published, smallest=proof.k), k=proof.k, measured=allowed
    )
    broken = [text for text in proof.failures if text not in violated]
    is_alone_allowed = configuration.privacy.allow_alone or not context.warns
    if configuration.output.pseudonyms and not is_alone_allowed and proof.units is not None:
        broken += [
            f"output.pseudonyms: {text}. If no one can know several records of a person, set "
            "privacy.allow_alone to true. Nothing was published"
            for text in proof.units.warnings()
        ]
    if broken:
        raise GuaranteeError("\n".join(broken))


def _with_published_distances(
    table: Table, names: Sequence[str], measured: list[MeasuredCriterion], basis: Basis
) -> list[MeasuredCriterion]:
    """Replace distances by those from the input as the release shows it.

    The distance from the whole input would depend on the values of records left out.
    """
    if basis.withheld is None or not basis.withheld.uncertainty:
        return measured
    distances = [case for case in measured if case.criterion.is_distance]
    asked = asked_of((case.criterion for case in distances), sensitive_values(basis.criteria))
    shown = measure_criteria(table, names, asked, basis.withheld.uncertainty)
    by_criterion = {case.criterion: case for case in shown}
    return [by_criterion.get(case.criterion, case) for case in measured]


def _warn_of_violations(measured: Sequence[MeasuredCriterion], published: PublishedClasses) -> None:
    for case in measured:
        if case.violating_classes:
            _LOGGER.warning(
                "%d of %d classes, with %d records, violate %s on attribute %r, as the "
                "model's options allow. anonspark verify will refuse the release",
                case.violating_classes,
                published.classes,
                case.violating_records,
                case.criterion.describe(),
                case.criterion.attribute,
            )
