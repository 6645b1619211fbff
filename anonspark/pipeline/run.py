"""A run: the steps from the first layer to the last, in their order."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.gates import MetricsOptions
from anonspark.config.models import MappingOptions
from anonspark.config.output import ExecutionOptions
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.run_ids import require_run_id
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, NamedTable, Table
from anonspark.errors import AnonsparkError, PublishingError
from anonspark.labels.regions import require_readable
from anonspark.layers.evaluate.gates import (
    Drift,
    GateResult,
    check_gates,
    measure_drift,
    require_no_drift,
    require_passed,
)
from anonspark.layers.evaluate.small_counts import is_few
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.committing import begin, commit
from anonspark.layers.publish.history import append_to_history, last_comparable_run, require_history
from anonspark.layers.publish.paths import (
    require_replaceable_release,
    require_usable_metrics,
    require_usable_output,
)
from anonspark.layers.publish.staging import (
    Staging,
    find_resumable,
    open_staging,
    place_of,
    remove_staging,
)
from anonspark.pipeline.context import Purpose, Release, RunContext, register_of, released_before
from anonspark.pipeline.description import Findings, PublishedForm, published_form
from anonspark.pipeline.figures import Figures, Measured, make_figures
from anonspark.pipeline.preparing import Prepared, prepare_run
from anonspark.pipeline.publishable_data import Basis, basis_of_figures
from anonspark.pipeline.rounds import StagedRounds, run_rounds
from anonspark.pipeline.tasks import ModelMaker, choose, look_for_rival
from anonspark.pipeline.verifying import verify_staged
from anonspark.pipeline.warnings.dependencies import withheld_dependency_warnings
from anonspark.pipeline.warnings.published_values import published_value_warnings, withheld_warnings
from anonspark.pipeline.warnings.release_warning import (
    ReleaseWarning,
    blank_row_warnings,
    dropped_record_warnings,
    large_block_warnings,
    seed_warnings,
    tell_warnings,
)
from anonspark.pipeline.warnings.sensitive_values import warn_of_sensitive_values
from anonspark.pipeline.warnings.value_sizes import CountedColumn, count_value_sizes
from anonspark.pipeline.writing import (
    find_target,
    measure_association_kept,
    measure_information_kept,
    measure_isolating_ends,
    require_weights,
    stage_findings,
    stage_records,
)
from anonspark.progress import Progress
from anonspark.redaction import redact
from anonspark.release.manifest import MANIFEST
from anonspark.release.signatures import key_name
from anonspark.verification.attacks.presence import require_population


def warn_of_staged(
    context: RunContext,
    table: Table,
    prepared: Prepared,
    basis: Basis,
    measured: Measured,
) -> list[ReleaseWarning]:
    """Find, and write to the log, what the staged release should not be used without knowing.

    Parameters
    ----------
    context : RunContext
        Of a comparison nothing is warned.
    table : Table
        The staged release.
    prepared : Prepared
        Its warnings, which are in the log already, come first. They reveal nothing about records
        that were left out.
    basis : Basis
    measured : Measured
    """
    if not context.warns:
        return []
    configuration, published, units = context.configuration, measured.published, measured.units
    with context.progress.stage("warnings"):
        earlier = prepared.warnings
        if basis.left_out:
            earlier = withheld_warnings(prepared.identifiers)
            earlier += withheld_dependency_warnings(configuration)
        # The log has had it since the block was found.
        blocks = [result.large_block for result in basis.rounds.results]
        earlier = [*earlier, *large_block_warnings(max(blocks, default=0))]
        columns_as_is = {name: CountedColumn(name) for name in configuration.published_as_is}
        sizes = count_value_sizes(table, columns_as_is, published.rows, drawn=published.values)
        snapshot, k = prepared.snapshot, configuration.privacy.k
        raised = [
            *blank_row_warnings(snapshot.blank_rows, k),
            *dropped_record_warnings(snapshot.rows_dropped, published.rows, k),
        ]
        if context.request is not None and context.request.has_ledger:
            # For who carries the plan out. In releases it would be a count night by night.
            tell_warnings(raised)
            raised = []
        for text in [] if units is None else units.warnings():
            raised.append(ReleaseWarning("people_alone", text))
        raised += published_value_warnings(sizes, configuration)
        raised += warn_of_sensitive_values(table, configuration, sizes, published)
        tell_warnings(raised)
    return earlier + raised


# Directories beside the output that are looked at, the last ones by name: nights have dates.
_MOST_BESIDE = 30


def earlier_release_warnings(
    files: Files, configuration: Configuration
) -> Iterator[ReleaseWarning]:
    """Warn where a release of the same input lies at the output path, or beside it.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Notes
    -----
    Reads the manifests of at most 31 directories. No job.
    """
    paths = list(configuration.public_dict()["input"]["path"])
    number = sum(
        _input_of(files, path) == paths for path in _places(files, configuration.output.path)
    )
    if number:
        yield ReleaseWarning(
            "released_before",
            "input.path: a release of this input exists at output.path or next to it. A person who "
            "has several releases about the same people can intersect their classes, and is left "
            "with fewer than k. Make them by a plan with a ledger (anonspark distribute), so that "
            "releases together show no more than each of them alone",
            figures={"releases": number},
        )


def _places(files: Files, output: str) -> Iterator[str]:
    target = files.qualified(output).rstrip("/")
    yield target
    others = [
        path
        for path in files.children(files.parent(target))
        if path.rstrip("/") != target and not path.rpartition("/")[2].startswith((".", "_"))
    ]
    yield from sorted(others)[-_MOST_BESIDE:]


def _input_of(files: Files, path: str) -> list[str] | None:
    """Return the paths of the input of a release, None where no release can be read."""
    if not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        # Its form does not count here, and costs more to check than a small table to publish.
        paths = json.loads(files.read_text(f"{path}/{MANIFEST}"))["input"]["path"]
    except (AnonsparkError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return [paths] if isinstance(paths, str) else paths


_LOGGER = logging.getLogger("anonspark")

Earlier = Mapping[str, Any]
"""The row of the table ``summary`` of the last run that can be compared."""


def require_gates(context: RunContext, figures: Figures) -> list[GateResult]:
    """Return the figures of all gates.

    Raises
    ------
    GuaranteeError
        If one is out of its bounds.
    """
    gates = check_gates(
        context.configuration.gates,
        figures.summary,
        figures.attributes,
        figures.risk,
        figures.counted,
    )
    require_passed(gates)
    return gates


def look_back(context: RunContext) -> Earlier | None:
    """Return the last run of the job that can be compared, None where nothing is bounded.

    Raises
    ------
    DataError
        If the table of all runs cannot be read.
    """
    if not context.configuration.metrics.drift:
        return None
    with context.progress.stage("drift"):
        before = last_comparable_run(
            context.engine, context.configuration, context.run_id, context.started
        )
    if before is None:
        _LOGGER.info("no earlier run of job %r to compare with", context.configuration.metrics.job)
    return before


def require_usual_input(context: RunContext, snapshot: Snapshot, before: Earlier | None) -> None:
    """Judge what is known of a run before its work: how many records the input has.

    Parameters
    ----------
    context : RunContext
    snapshot : Snapshot
    before : mapping or None
        Of :func:`look_back`.

    Raises
    ------
    GuaranteeError
        If a gate or a bound of the drift will not be kept, whatever the run does.
    """
    configuration = context.configuration
    k = configuration.privacy.k
    dropped = snapshot.rows_dropped
    few = is_few(dropped, k)
    counts = {"rows_in": snapshot.rows_read, "rows_dropped_missing": dropped}
    published = {name: None if few else count for name, count in counts.items()}
    gates = {name: gate for name, gate in configuration.gates.items() if name in counts}
    require_passed(check_gates(gates, published, (), (), counts))
    if before is None:
        return
    # As runs are compared by them: by the least that a count which is withheld can be.
    known = {"rows_in": snapshot.rows if few else snapshot.rows_read}
    known["rows_dropped_missing"] = 0 if few else dropped
    bounds = configuration.metrics.drift
    drifts = measure_drift({name: bounds[name] for name in known if name in bounds}, known, before)
    # Of fewer than k records that find no class, the input's count would lack that many.
    require_no_drift(
        [drift for drift in drifts if drift.metric != "rows_in" or drift.is_sure(k - 1)]
    )


def require_little_drift(
    context: RunContext, figures: Figures, before: Earlier | None
) -> list[Drift]:
    """Return the figures that have a bound beside those of the last run of the job.

    Parameters
    ----------
    context : RunContext
    figures : Figures
    before : mapping or None
        Of :func:`look_back`.

    Raises
    ------
    GuaranteeError
        If a figure has moved too far.
    """
    drifts = measure_drift(context.configuration.metrics.drift, figures.summary, before)
    require_no_drift(drifts)
    return drifts


@dataclass(frozen=True)
class StagedRelease:
    """A release that is complete and proven, and not published yet.

    Parameters
    ----------
    context : RunContext
    staging : Staging
        Holds it.
    release : Release
        What is said of it.
    rounds : StagedRounds
        The finished records and classes that it was written from.
    form : PublishedForm
    hierarchies : mapping of str to Hierarchy
        Those that come from files.
    """

    context: RunContext
    staging: Staging
    release: Release
    rounds: StagedRounds
    form: PublishedForm
    hierarchies: Mapping[str, Hierarchy]

    def publish(self) -> Release:
        """Put it in its place.

        Raises
        ------
        ConfigurationError, PublishingError
        """
        output = self.context.configuration.output
        commit(self.context.files, self.staging, overwrite=output.mode == "overwrite")
        return self.release


def run(  # noqa: PLR0913 - each is an option of the command
    engine: Engine,
    configuration: Configuration,
    *,
    run_id: str | None = None,
    progress: Progress | None = None,
    table: Table | None = None,
    snapshot: Snapshot | None = None,
    resume: bool = False,
    purpose: Purpose = "release",
    compares: bool = False,
) -> Release:
    """Anonymize a table and publish the release with its metrics.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    run_id : str or None
        Name of the run in metrics and manifest. None makes a random one.
    progress : Progress or None
        Where progress is reported.
    table : Table or None
        The input. None opens what the configuration names.
    snapshot : Snapshot or None
        The input as :func:`prepare` staged it for a configuration that differs in nothing that
        counts there. None stages it.
    resume : bool
        Whether to continue a run that was killed: ``run_id``, or the only one of this output. Its
        finished rounds are not computed again. Where none is left the run begins anew. Should this
        run fail in a way that another attempt may not, its finished rounds are kept for that.
    purpose : str
        ``demonstration`` warns of no seed, for its people are invented. ``comparison`` warns of
        nothing, for its release is deleted once it is measured.
    compares : bool
        Whether other models are tried beside that of the run.

    Returns
    -------
    Release
        Where the run of this id has published its release already, and ``output.mode`` is
        ``error``: that one, without any work.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
        What was at the output path before is then unchanged, and no staging is left, unless the run
        is to be resumed, but for rows that could not be appended to the tables of all runs, which
        is reported for a complete release.

    Notes
    -----
    The input is read once, again in each attempt: that proves that it has not changed. Each round
    costs the model's passes over narrow columns, one shuffle and one write of its records.
    Publishing reads and writes all records once more. Warnings cost a narrow pass over the
    identifiers of the input and one over the published columns that are as they were, each with a
    shuffle of hashes.
    """
    run_id = _name_of_run(engine.files, configuration, run_id, resume=resume)
    progress = progress or Progress()
    progress.run_id = run_id
    context = RunContext(
        engine, configuration, run_id, datetime.now(UTC), progress, purpose, compares=compares
    )
    release = released_before(engine, configuration, run_id)
    if release is not None:
        forget_staging(context)
    else:
        with staged_release(context, table=table, snapshot=snapshot, resume=resume) as staged:
            if (register := register_of(context)) is not None:
                register.list_staged(context, staged.release)
            release = staged.publish()
    append_figures(context, release)
    write_named_table(context, release)
    return release


def forget_staging(context: RunContext) -> None:
    """Remove what a process left that was killed between the last steps of a run.

    Raises
    ------
    PublishingError
    """
    configuration = context.configuration
    path = place_of(
        context.files,
        configuration.output.path,
        context.run_id,
        configuration.execution.staging_path,
    )
    remove_staging(context.files, path)


def append_figures(context: RunContext, release: Release) -> None:
    """Append the figures of a release to the tables of all runs, where the configuration says so.

    Raises
    ------
    PublishingError
    """
    if context.configuration.metrics.append_to is not None:
        append_to_history(context.files, context.configuration, release.summary, release.rounds)


def named_table(context: RunContext) -> NamedTable | None:
    """Return the table that the published records are written to as well, or None if none is."""
    output = context.configuration.output
    if output.table is None or context.purpose != "release":
        return None
    replaces = output.table_mode == "overwrite"
    return context.engine.named_table(output.table, output.table_partition, replaces=replaces)


def write_named_table(context: RunContext, release: Release) -> None:
    """Write what is published to the table that the configuration names, unless it is there.

    Raises
    ------
    PublishingError
        The release stands all the same. The run id and the fingerprint of the records are in the
        commit, so that a run that is repeated does not write them twice.
    """
    if (table := named_table(context)) is None:
        return
    output = context.configuration.output
    note = {
        "run_id": context.run_id,
        "release": redact(context.files.qualified(output.path)),
        "partition": json.dumps(output.table_partition),
        "fingerprint": release.summary["output_fingerprint"],
    }
    running = context.engine.running(context.run_id, context.progress)
    try:
        with running, context.progress.stage("table"):
            records = context.engine.published(f"{output.path}/data", output.format)
            is_new = table.write(records, note)
    except AnonsparkError as error:
        raise PublishingError(
            f"{error}. The release at {output.path} is complete. Mend the table, and run again "
            f"with --run-id {context.run_id}"
        ) from error
    _LOGGER.info("output.table: %s %s", output.table, "written" if is_new else "has the release")


@contextmanager
def staged_release(
    context: RunContext,
    *,
    table: Table | None = None,
    snapshot: Snapshot | None = None,
    resume: bool = False,
    make_model: ModelMaker | None = None,
) -> Iterator[StagedRelease]:
    """Make a release, prove it, judge it by the gates, and have it ready to be published.

    Parameters
    ----------
    context : RunContext
    table, snapshot, resume
        As of :func:`run`.
    make_model : callable or None
        Makes the model. None takes the one that the configuration names.

    Yields
    ------
    StagedRelease
        What is staged is removed when the ``with`` block is left, however it is left, but see
        ``resume``.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
    """
    _require_usable_places(context, resume=resume)
    warnings: list[ReleaseWarning] = []
    if context.purpose == "release":
        warnings += seed_warnings(context.configuration)
    if context.request is None:
        # A plan has told them once for all of its releases, and knows of those before.
        if context.purpose == "release":
            warnings += earlier_release_warnings(context.files, context.configuration)
        tell_warnings(warnings)
    with _staged(context, resume=resume) as staging:
        prepared = prepare_run(context, staging, table=table, snapshot=snapshot)
        yield _anonymize(context, staging, prepared, warnings, make_model)


def _name_of_run(
    files: Files, configuration: Configuration, run_id: str | None, *, resume: bool
) -> str:
    """Return the id of a run: the one asked for, the one to resume, or a random one.

    Raises
    ------
    ConfigurationError
        If it cannot name a directory.
    """
    if run_id is None and resume:
        run_id = find_resumable(
            files, configuration.output.path, configuration.execution.staging_path
        )
    return require_run_id(run_id or uuid.uuid4().hex[:12])


def _require_usable_places(context: RunContext, *, resume: bool) -> None:
    """Check, before any work, that what the run is to write can be written.

    Raises
    ------
    ConfigurationError
    """
    configuration = context.configuration
    if not resume:
        require_usable_output(context.files, configuration)
    context.engine.require_format(configuration.output.format)
    if (key := configuration.output.signing_key) is not None:
        key_name(key)
    require_usable_metrics(context.files, configuration)
    if (register := register_of(context)) is not None:
        register.require_listable(context)
    if configuration.metrics.append_to is not None:
        require_history(context.files, configuration.metrics.append_to)
    if (table := named_table(context)) is not None:
        table.require_writable()


@contextmanager
def _staged(context: RunContext, *, resume: bool) -> Iterator[Staging]:
    """Open the staging of a run. Errors inside are explained, and then it is cleaned up."""
    configuration = context.configuration
    with (
        open_staging(
            context.files,
            configuration.output.path,
            context.run_id,
            staging_path=configuration.execution.staging_path,
            resume=resume,
        ) as staging,
        context.engine.running(context.run_id, context.progress),
    ):
        staging.state.require_identity(
            {"version": __version__, "configuration": _identity(configuration)}
        )
        if resume:
            # Now that half a release of the run before is gone.
            require_usable_output(context.files, configuration)
        yield staging


def _identity(configuration: Configuration) -> str:
    """Return a fingerprint, equal for configurations with the same release."""
    # Whoever ran out of memory may try again with smaller tasks.
    smaller = {"task_rows": ExecutionOptions().task_rows}
    alike = {
        "execution": configuration.execution.model_copy(update=smaller),
        "metrics": MetricsOptions(),
        "output": configuration.output.model_copy(update={"signing_key": None}),
    }
    return configuration.model_copy(update=alike).fingerprint()


def _read_mapping(
    context: RunContext, options: MappingOptions, snapshot: Snapshot
) -> tuple[Snapshot, ModelMaker]:
    """Return the input as an earlier release reads it, and the model of that release."""
    # Late, as the other models: a run imports what it uses.
    from anonspark.pipeline.mapping import apply_mapping

    with context.progress.stage("read the mapping"):
        mapping = apply_mapping(
            context.engine,
            options,
            context.configuration,
            snapshot.quasi_identifiers,
            snapshot.hierarchies,
        )
    snapshot = replace(snapshot, quasi_identifiers=mapping.quasi_identifiers)
    return snapshot, mapping.make_model


def _require_presence(context: RunContext, form: PublishedForm) -> None:
    """Refuse a population that cannot be counted before the work, not after it."""
    presence = context.configuration.privacy.delta_presence
    if presence is not None:
        require_readable(form.attributes)
        names = context.configuration.quasi_identifiers
        require_population(context.engine, presence, names)


def _anonymize(
    context: RunContext,
    staging: Staging,
    prepared: Prepared,
    warnings: list[ReleaseWarning],
    make_model: ModelMaker | None,
) -> StagedRelease:
    """Anonymize the prepared input, and prove the staged release."""
    configuration, files, progress = context.configuration, context.files, context.progress
    snapshot = prepared.snapshot
    require_replaceable_release(files, configuration.output.path)
    before = look_back(context)
    require_usual_input(context, snapshot, before)
    target = find_target(context, snapshot)
    require_weights(context, snapshot)
    if isinstance(configuration.model, MappingOptions):
        snapshot, make_model = _read_mapping(context, configuration.model, snapshot)
    form = published_form(configuration, snapshot.quasi_identifiers)
    chosen = choose(context, snapshot, form.generalizer, make_model)
    _require_presence(context, form)
    rounds = run_rounds(
        chosen.model,
        snapshot,
        snapshot.criteria,
        form.generalizer.columns(),
        staging=staging,
        files=files,
        progress=progress,
        warns=context.warns,
    )
    with progress.stage("evaluate"):
        basis = basis_of_figures(snapshot, rounds, form.generalizer)
        form = published_form(configuration, basis.quasi_identifiers)
    begin(files, staging)
    with progress.stage("publish", rows=snapshot.rows):
        written = stage_records(context, staging, snapshot, basis, form)
    verified = verify_staged(context, staging, snapshot, chosen.model, basis, form)
    table, measured = verified.table, verified.measured
    warnings = warnings + warn_of_staged(context, table, prepared, basis, measured)
    measured = replace(
        measured,
        information=measure_information_kept(context, table, snapshot, basis, form),
        ends=measure_isolating_ends(context, table, snapshot, basis, form),
        association=measure_association_kept(context, table, snapshot, basis, form, target),
    )
    figures = make_figures(context, chosen.model, snapshot, basis, measured)
    # The figures of a comparison are for who has the input.
    if form.generalizer.has_means and context.purpose != "comparison":
        figures = figures.without_losses()
    gates = require_gates(context, figures)
    drifts = require_little_drift(context, figures, before)
    findings = Findings(
        form, basis, chosen.choice, figures, gates, drifts, warnings, prepared.version
    )
    figures = stage_findings(context, staging, findings, [*written, *verified.files])
    # After all that is published is written: nothing of it is in the release.
    rival = look_for_rival(context, snapshot)
    columns = {name: figures.summary[name] for name in ("columns_published", "columns_in")}
    verification = replace(verified.proof, **columns)
    release = Release(
        configuration.output.path,
        *(figures.summary, figures.rounds, figures.attributes, figures.privacy, figures.risk),
        *(progress.seconds, warnings, verification, rival, snapshot.unpublished or ()),
    )
    return StagedRelease(context, staging, release, basis.rounds, form, snapshot.hierarchies)
