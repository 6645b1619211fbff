"""Write the staged parts of a release: records, tables of metrics, manifest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from anonspark.config import Configuration
from anonspark.core.columns import CLASS_ID, PAYLOAD_HASH, is_published
from anonspark.core.figures import OF_EVERY_RUN, TABLES, arrow_schema
from anonspark.core.pseudonyms import release_key
from anonspark.engine.files import PublishedFile
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
from anonspark.release.sidecar_files.contents import write_sidecar_files
from anonspark.staged.records import bytes_of


def stage_records(
    context: RunContext, staging: Staging, snapshot: Snapshot, basis: Basis, form: PublishedForm
) -> list[PublishedFile]:
    """Write the records of a release. Costs as :func:`divide` and :func:`write_records`.

    Raises
    ------
    PublishingError
    """
    configuration = context.configuration
    rounds = basis.rounds
    taken = sum(one.staged_bytes for one in rounds.results)
    taken += sum(one.label_bytes for one in basis.totals)
    largest = max(max(one.sizes) for one in basis.totals)
    residual, suppressed = rounds.residual, None
    if residual is not None and residual.labels is not None:
        suppressed = residual.labels
        taken += residual.staged_bytes + residual.rows * bytes_of(suppressed.drop_columns(CLASS_ID))
        largest = max(largest, residual.rows)
    names = [] if suppressed is None else suppressed[CLASS_ID].to_pylist()
    rows = snapshot.rows - basis.left_out
    file_rows = configuration.output.file_rows
    division = divide(rounds.finished, rounds.classes, rows, taken, largest, names, file_rows)
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
    """Return the key of the pseudonyms, if there are any.

    It depends on what a release is made of and on what it became: whatever else a model reads, such
    as an earlier release, shows in the classes, their labels, or the records of each.

    Notes
    -----
    Two jobs over narrow columns.
    """
    if not (names := configuration.output.pseudonyms):
        return None
    labels = filter(is_published, rounds.classes.schema.names)
    facts = (
        *chain.from_iterable(names.items()),
        snapshot.content_fingerprint(),
        configuration.settings_fingerprint(),
        # Of a record this hash covers whom it is about.
        rounds.finished.fingerprint(CLASS_ID, PAYLOAD_HASH),
        rounds.classes.fingerprint(CLASS_ID, *labels),
    )
    return release_key(configuration.execution.seed, *facts)


def stage_findings(
    context: RunContext, staging: Staging, findings: Findings, files: Iterable[PublishedFile]
) -> Figures:
    """Write the tables of metrics and the manifest.

    Parameters
    ----------
    context : RunContext
    staging : Staging
    findings : Findings
    files : iterable of PublishedFile
        What else of the release is written.

    Returns
    -------
    Figures
        As they are written, with the seconds that the run has taken.

    Raises
    ------
    PublishingError
    """
    with context.progress.stage("metrics"):
        basis, count = findings.basis, findings.figures.summary["classes"]
        columns = findings.form.generalizer.columns()
        classes = write_classes(
            basis.rounds.classes,
            count,
            basis.quasi_identifiers,
            columns,
            context.run_id,
            staging,
        )
        listed = [*files, *classes]
        seconds = (datetime.now(UTC) - context.started).total_seconds()
        figures = findings.figures
        figures = replace(figures, summary=figures.summary | {"seconds": seconds})
        for name, rows in (
            ("summary", [figures.summary]),
            ("rounds", figures.rounds),
            ("attributes", figures.attributes),
            ("privacy", figures.privacy),
            ("risk", figures.risk),
            ("nodes", figures.nodes),
        ):
            if not rows and name not in OF_EVERY_RUN:
                continue
            schema, path = arrow_schema(TABLES[name]), f"metrics/{name}"
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
