"""Compare with the input, and write the staged parts of a release: records, tables, manifest."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from anonspark.config import Configuration
from anonspark.core.columns import (
    CLASS_ID,
    PAYLOAD_HASH,
    WEIGHT,
    is_published,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.figures import ENDS, OF_EVERY_RUN, TABLES, arrow_schema
from anonspark.core.pseudonyms import release_key
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Table
from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import Leaves, leaves_by_label
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.class_table import write_classes
from anonspark.layers.publish.file_assignment import divide
from anonspark.layers.publish.staging import Staging
from anonspark.layers.publish.tables import write_rows
from anonspark.layers.publish.writing import write_records
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.description import Findings, PublishedForm, release_manifest
from anonspark.pipeline.figures import Figures
from anonspark.pipeline.publishable_data import Basis
from anonspark.pipeline.rounds import StagedRounds
from anonspark.release.copies import write_copies
from anonspark.release.manifest import listing, write_manifest
from anonspark.sidecars.contents import write_sidecar_files
from anonspark.staged.records import bytes_of
from anonspark.verification.proof.weights import sum_weights

if TYPE_CHECKING:
    from anonspark.utility.association import Association
    from anonspark.utility.learning import Target
    from anonspark.verification.attacks.ends import Ends
    from anonspark.verification.proof.information import Information


# No measure may depend on withheld values of records left out: then only the published records
# are measured.

_LOGGER = logging.getLogger("anonspark")

_TARGET = "evaluate.association.target"


def find_target(context: RunContext, snapshot: Snapshot) -> Target | None:
    """Find, before the work, the classes of the target of association, or return None without one.

    Raises ConfigurationError if it is no category of 2 to 100 values. One narrow pass.
    """
    options = context.configuration.evaluate.association
    if options is None:
        return None
    from anonspark.utility.learning import describe_target

    with context.progress.stage("association"):
        records = snapshot.records.named(_payload(context, options.target))
        markers = context.configuration.input.missing_markers
        return describe_target(records, options.target, markers, _TARGET)


def require_weights(context: RunContext, snapshot: Snapshot) -> None:
    """Check the sampling weights before the work, if the configuration names any.

    Raises DataError if one is negative, or no finite number. One narrow pass over the snapshot.
    """
    name = context.configuration.evaluate.risk.weights
    if name is not None:
        is_published = name in context.configuration.published_as_is
        column = _payload(context, name) if is_published else {name: WEIGHT}
        records = snapshot.records.named(column)
        sum_weights(records, [], name, context.configuration.input.missing_markers)


def measure_information_kept(
    context: RunContext, table: Table, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> Information | None:
    """Compare the staged release with the snapshot, or return None if that is not configured.

    If values of left-out records are withheld, only the published records of the snapshot count.
    """
    if not context.configuration.evaluate.information:
        return None
    from anonspark.verification.proof.information import measure_information

    with context.progress.stage("information"):
        return measure_information(
            _labelled(context, table, snapshot, form),
            _records(snapshot, basis, {}),
            basis.left_out if basis.shows_left_out else 0,
        )


def measure_isolating_ends(
    context: RunContext, table: Table, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> Ends | None:
    """Count the ends of ranges that hold one record, or return None without a gate on them."""
    if ENDS not in context.configuration.gates:
        return None
    from anonspark.verification.attacks.ends import measure_ends

    with context.progress.stage("ends of ranges"):
        labels = _labelled(context, table, snapshot, form)
        return measure_ends(labels, _records(snapshot, basis, {}), drops_missing=False)


def measure_association_kept(
    context: RunContext,
    table: Table,
    snapshot: Snapshot,
    basis: Basis,
    form: PublishedForm,
    target: Target | None,
) -> Association | None:
    """Compare the association of the staged release with the snapshot's, or return None.

    ``target`` is the result of :func:`find_target`. If values of records left out are withheld, it
    is compared with the published records.
    """
    if target is None:
        return None
    from anonspark.utility.association import measure_association

    with context.progress.stage("association"):
        association = measure_association(
            table,
            _records(snapshot, basis, _payload(context, target.name)),
            form.attributes,
            _leaves(snapshot),
            target,
            context.configuration.input.missing_markers,
        )
    if association.loss is None:
        _LOGGER.warning(
            "association_loss is null: the quasi-identifiers predict next to nothing of %r",
            target.name,
        )
    return association


def _records(snapshot: Snapshot, basis: Basis, payload: dict[str, str]) -> Table:
    """Return the records that may be counted, under the names of the input."""
    named = {
        identifier.name: quasi_identifier_column(index)
        for index, identifier in enumerate(snapshot.quasi_identifiers)
    } | payload
    records = snapshot.records.named(named)
    if basis.withheld is not None:
        records = records.except_all(basis.withheld.records.named(named))
    return records


def _labelled(
    context: RunContext, table: Table, snapshot: Snapshot, form: PublishedForm
) -> LabelledTable:
    markers = context.configuration.input.missing_markers
    return LabelledTable(table, form.attributes, _leaves(snapshot), markers)


def _payload(context: RunContext, name: str) -> dict[str, str]:
    return {name: payload_column(context.configuration.published_as_is.index(name))}


def _leaves(snapshot: Snapshot) -> dict[str, Leaves]:
    return {name: leaves_by_label(hierarchy) for name, hierarchy in snapshot.hierarchies.items()}


def stage_records(
    context: RunContext, staging: Staging, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> list[PublishedFile]:
    """Write the records of a release, divided into files by their number and size.

    The residual counts as one more class if it is published. Jobs: those of :func:`divide` and
    :func:`write_records`.
    """
    configuration = context.configuration
    rounds = basis.rounds
    plain_bytes = sum(item.staged_bytes for item in rounds.results)
    plain_bytes += sum(item.label_bytes for item in basis.totals)
    largest_class = max(max(item.sizes) for item in basis.totals)
    residual, suppressed = rounds.residual, None
    if residual is not None and residual.labels is not None:
        suppressed = residual.labels
        label_bytes = bytes_of(suppressed.drop_columns(CLASS_ID))
        plain_bytes += residual.staged_bytes + residual.rows * label_bytes
        largest_class = max(largest_class, residual.rows)
    suppressed_ids = [] if suppressed is None else suppressed[CLASS_ID].to_pylist()
    rows = snapshot.rows - basis.left_out
    file_rows = configuration.output.file_rows
    division = divide(
        rounds.finished, rounds.classes, rows, plain_bytes, largest_class, suppressed_ids, file_rows
    )
    return write_records(
        rounds.finished,
        rounds.classes,
        suppressed,
        division,
        configuration,
        form.generalizer,
        staging,
        _pseudonym_key(configuration, snapshot, rounds),
    )


def _pseudonym_key(
    configuration: Configuration, snapshot: Snapshot, rounds: StagedRounds
) -> bytes | None:
    """Derive the key of the pseudonyms from input and result, or return None without pseudonyms.

    Everything else that a model reads, such as an earlier release, shows in the classes, their
    labels, or the records of each. Two jobs over narrow columns.
    """
    if not (names := configuration.output.pseudonyms):
        return None
    labels = filter(is_published, rounds.classes.schema.names)
    facts = (
        *chain.from_iterable(names.items()),
        snapshot.content_fingerprint(),
        configuration.settings_fingerprint(),
        # This hash of a record covers its person.
        rounds.finished.fingerprint(CLASS_ID, PAYLOAD_HASH),
        rounds.classes.fingerprint(CLASS_ID, *labels),
    )
    return release_key(configuration.execution.seed, *facts)


def stage_findings(
    context: RunContext, staging: Staging, findings: Findings, files: Iterable[PublishedFile]
) -> Figures:
    """Write the tables of metrics and the manifest, which lists other ``files``, too.

    Returns the figures as they are written, with the seconds that the run has taken.
    """
    with context.progress.stage("metrics"):
        basis, count = findings.basis, findings.figures.summary["classes"]
        columns = findings.form.generalizer.columns()
        classes = write_classes(
            basis.rounds.classes, count, basis.quasi_identifiers, columns, context.run_id, staging
        )
        listed = [*files, *classes]
        seconds = (datetime.now(UTC) - context.started).total_seconds()
        figures = findings.figures
        figures = replace(figures, summary=figures.summary | {"seconds": seconds})
        for name, table in TABLES.items():
            rows = [figures.summary] if name == "summary" else getattr(figures, name)
            if rows or name in OF_EVERY_RUN:
                schema, path = arrow_schema(table), f"metrics/{name}"
                listed.append(write_rows(context.files, rows, schema, staging.release, path))
        manifest = release_manifest(
            context, replace(findings, figures=figures), attempt=staging.state.attempt
        )
        data_format = context.configuration.output.format
        schema = context.engine.published(f"{staging.release}/data", data_format).schema
        if "csv" in context.configuration.output.copies:
            listed += write_copies(context.files, staging.release, listed)
        listed += write_sidecar_files(context.files, manifest, schema, listed, staging.release)
        manifest["files"] = listing(listed)
        key = context.configuration.output.signing_key
        write_manifest(context.files, staging.manifest, manifest, staging.release, key)
    return figures
