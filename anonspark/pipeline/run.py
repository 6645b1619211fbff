"""A run: the steps from the first layer to the last, in their order."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.gates import MetricsOptions
from anonspark.config.models import MappingOptions
from anonspark.config.output import ExecutionOptions
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.run_ids import require_run_id
from anonspark.engine.files import Files, PublishedFile
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
from anonspark.pipeline.tasks import ChosenModel, ModelMaker, choose, compare_models
from anonspark.pipeline.verifying import VerifiedRelease, verify_staged
from anonspark.pipeline.warnings.dependencies import withheld_dependency_warnings
from anonspark.pipeline.warnings.published_values import published_value_warnings, withheld_warnings
from anonspark.pipeline.warnings.release_warning import (
    ReleaseWarning,
    blank_row_warnings,
    dropped_record_warnings,
    large_block_warnings,
    log_warnings,
    seed_warnings,
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

if TYPE_CHECKING:
    from anonspark.utility.learning import Target


def warn_of_staged(
    context: RunContext,
    table: Table,
    prepared: Prepared,
    basis: Basis,
    measured: Measured,
) -> list[ReleaseWarning]:
    """Find and log everything that users of the staged release should know.

    ``table`` is the staged release. The warnings of ``prepared`` come first: they are in the log
    already, and reveal nothing about records that were left out. A comparison has no warnings.
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
            # Only in the log. In releases it would be a count night by night.
            log_warnings(raised)
            raised = []
        for text in [] if units is None else units.warnings():
            raised.append(ReleaseWarning("people_alone", text))
        raised += published_value_warnings(sizes, configuration)
        raised += warn_of_sensitive_values(table, configuration, sizes, published)
        log_warnings(raised)
    return earlier + raised


# Directories beside the output that are looked at, the last ones by name: nights have dates.
_MOST_BESIDE = 30


def earlier_release_warnings(
    files: Files, configuration: Configuration
) -> Iterator[ReleaseWarning]:
    """Warn if a release of the same input lies at the output path, or next to it.

    Reads the manifests of at most 31 directories. No job.
    """
    paths = list(configuration.public_dict()["input"]["path"])
    number = sum(
        _input_of(files, path) == paths for path in _release_paths(files, configuration.output.path)
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


def _release_paths(files: Files, output: str) -> Iterator[str]:
    """Yield the output path, and the last directories next to it by name."""
    target = files.qualified(output).rstrip("/")
    yield target
    others = [
        path
        for path in files.children(files.parent(target))
        if path.rstrip("/") != target and not path.rpartition("/")[2].startswith((".", "_"))
    ]
    yield from sorted(others)[-_MOST_BESIDE:]


def _input_of(files: Files, path: str) -> list[str] | None:
    """Return the paths of the input of a release, or None if no release can be read."""
    if not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        # The form is not checked, because that costs more than to publish a small table.
        paths = json.loads(files.read_text(f"{path}/{MANIFEST}"))["input"]["path"]
    except (AnonsparkError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return [paths] if isinstance(paths, str) else paths


_LOGGER = logging.getLogger("anonspark")

Earlier = Mapping[str, Any]
"""The row of the table ``summary`` of the last run that can be compared."""


def find_comparable_run(context: RunContext) -> Earlier | None:
    """Return the last comparable run of the job, or None if there is none or no drift is bounded.

    Raises DataError if the table of all runs cannot be read.
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
    """Refuse a run early if its number of records breaks a gate or a bound of the drift.

    ``before`` is the result of :func:`find_comparable_run`. Raises GuaranteeError if a bound will
    certainly be broken.
    """
    configuration = context.configuration
    k = configuration.privacy.k
    dropped = snapshot.rows_dropped
    hides_counts = is_few(dropped, k)
    counts = {"rows_in": snapshot.rows_read, "rows_dropped_missing": dropped}
    published = {name: None if hides_counts else count for name, count in counts.items()}
    gates = {name: gate for name, gate in configuration.gates.items() if name in counts}
    require_passed(check_gates(gates, published, (), (), counts))
    if before is None:
        return
    # Runs are compared by the least that a withheld count can be.
    least = {"rows_in": snapshot.rows if hides_counts else snapshot.rows_read}
    least["rows_dropped_missing"] = 0 if hides_counts else dropped
    bounds = configuration.metrics.drift
    drifts = measure_drift({name: bounds[name] for name in least if name in bounds}, least, before)
    # If fewer than k records find no class, the published count of the input lacks them.
    require_no_drift(
        [drift for drift in drifts if drift.metric != "rows_in" or drift.is_sure(k - 1)]
    )


@dataclass(frozen=True)
class StagedRelease:
    """A release that is complete and proven, and not published yet.

    ``release`` describes it, and ``rounds`` are the finished records and classes that it was
    written from. ``hierarchies`` are those that come from files.
    """

    context: RunContext
    staging: Staging
    release: Release
    rounds: StagedRounds
    form: PublishedForm
    hierarchies: Mapping[str, Hierarchy]

    def publish(self) -> Release:
        """Move the release to the output path. Raises ConfigurationError or PublishingError."""
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
        The input as :func:`prepare` staged it for a configuration with the same input, attributes,
        policy for missing values and seed. None stages it.
    resume : bool
        Whether to continue a run that was killed: ``run_id``, or the only one of this output. Its
        finished rounds are not computed again. If none is left, the run begins anew. If this run
        fails in a way that another attempt may not, its finished rounds are kept for that.
    purpose : str
        ``demonstration`` warns of no seed, because its people are invented. ``comparison`` warns of
        nothing, because its release is deleted once it is measured.
    compares : bool
        Whether other models are tried, to compare them with that of the run.

    Returns
    -------
    Release
        If the run of this id has published its release already, and ``output.mode`` is ``error``:
        that one, without any work.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
        The output path is then unchanged, and no staging is left, unless the run is to be resumed.
        Rows that could not be appended to the tables of all runs are reported for a complete
        release.

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
    """Remove the staging of a process that was killed between the last steps of a run."""
    configuration = context.configuration
    path = place_of(
        context.files,
        configuration.output.path,
        context.run_id,
        configuration.execution.staging_path,
    )
    remove_staging(context.files, path)


def append_figures(context: RunContext, release: Release) -> None:
    """Append the figures of a release to the tables of all runs, if that is configured."""
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

    The run id and the fingerprint of the records are in the commit, so that a run that is repeated
    does not write them twice. Raises PublishingError: the release stands all the same.
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
    """Make a release, prove it, judge it by the gates, and yield it ready to be published.

    ``table``, ``snapshot`` and ``resume`` are those of :func:`run`. ``make_model`` makes the model,
    or is None to take the one that the configuration names. The staging is removed when the
    ``with`` block is left, however it is left, except for a run that may be resumed.
    """
    _require_usable_places(context, resume=resume)
    warnings: list[ReleaseWarning] = []
    if context.purpose == "release":
        warnings += seed_warnings(context.configuration)
    if context.request is None:
        # A plan has logged them once for all of its releases, and knows the earlier ones.
        if context.purpose == "release":
            warnings += earlier_release_warnings(context.files, context.configuration)
        log_warnings(warnings)
    with _staged(context, resume=resume) as staging:
        prepared = prepare_run(context, staging, table=table, snapshot=snapshot)
        yield _anonymize(context, staging, prepared, warnings, make_model)


def _name_of_run(
    files: Files, configuration: Configuration, run_id: str | None, *, resume: bool
) -> str:
    """Return the id of a run: the one asked for, the one to resume, or a random one.

    Raises ConfigurationError if it cannot name a directory.
    """
    if run_id is None and resume:
        run_id = find_resumable(
            files, configuration.output.path, configuration.execution.staging_path
        )
    return require_run_id(run_id or uuid.uuid4().hex[:12])


def _require_usable_places(context: RunContext, *, resume: bool) -> None:
    """Check, before any work, that everything the run writes can be written, or raise."""
    configuration = context.configuration
    if not resume:
        require_usable_output(context.files, configuration)
    context.engine.require_format(configuration.output.format)
    if (key := configuration.output.signing_key) is not None:
        key_name(key)
    require_usable_metrics(context.files, configuration)
    if isinstance(configuration.model, MappingOptions):
        from anonspark.pipeline.mapping import read_mappable

        read_mappable(context.files, configuration.model)
    if (register := register_of(context)) is not None:
        register.require_listable(context)
    if configuration.metrics.append_to is not None:
        require_history(context.files, configuration.metrics.append_to)
    if (table := named_table(context)) is not None:
        table.require_writable()


@contextmanager
def _staged(context: RunContext, *, resume: bool) -> Iterator[Staging]:
    """Open the staging of a run. It explains errors inside, and then removes what is not needed."""
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
            # Checked now, because half a release of the run before is gone.
            require_usable_output(context.files, configuration)
        yield staging


def _identity(configuration: Configuration) -> str:
    """Return a fingerprint that is equal for configurations with the same release."""
    # A user who ran out of memory may try again with smaller tasks.
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
    # Imported late, as other models are: a run imports only what it uses.
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
    """Refuse, before the work, a population that cannot be counted."""
    presence = context.configuration.privacy.delta_presence
    if presence is not None:
        require_readable(form.attributes)
        names = context.configuration.quasi_identifiers
        require_population(context.engine, presence, names)


@dataclass(frozen=True)
class _PlannedRun:
    """A run whose demands can be met, as far as that can be known before the work."""

    snapshot: Snapshot
    before: Earlier | None
    target: Target | None
    form: PublishedForm
    chosen: ChosenModel


@dataclass(frozen=True)
class _StagedRecords:
    """The staged records of a release, their files, and the basis of its figures."""

    basis: Basis
    form: PublishedForm
    files: list[PublishedFile]


def _plan(context: RunContext, snapshot: Snapshot, make_model: ModelMaker | None) -> _PlannedRun:
    """Check that the release can be written and measured, and choose its model."""
    configuration = context.configuration
    require_replaceable_release(context.files, configuration.output.path)
    before = find_comparable_run(context)
    require_usual_input(context, snapshot, before)
    target = find_target(context, snapshot)
    require_weights(context, snapshot)
    if isinstance(configuration.model, MappingOptions):
        snapshot, make_model = _read_mapping(context, configuration.model, snapshot)
    form = published_form(configuration, snapshot.quasi_identifiers)
    chosen = choose(context, snapshot, form.generalizer, make_model)
    _require_presence(context, form)
    return _PlannedRun(snapshot, before, target, form, chosen)


def _stage(context: RunContext, staging: Staging, planned: _PlannedRun) -> _StagedRecords:
    """Run the rounds of the model, and write the records of the release to the staging."""
    snapshot, generalizer = planned.snapshot, planned.form.generalizer
    rounds = run_rounds(
        planned.chosen.model,
        snapshot,
        snapshot.criteria,
        generalizer.columns(),
        staging=staging,
        files=context.files,
        progress=context.progress,
        warns=context.warns,
    )
    with context.progress.stage("evaluate"):
        basis = basis_of_figures(snapshot, rounds, generalizer)
        form = published_form(context.configuration, basis.quasi_identifiers)
    begin(context.files, staging)
    with context.progress.stage("publish", rows=snapshot.rows):
        files = stage_records(context, staging, snapshot, basis, form)
    return _StagedRecords(basis, form, files)


def _evaluate(
    context: RunContext, planned: _PlannedRun, staged: _StagedRecords, verified: VerifiedRelease
) -> Figures:
    """Compare the proven release with its input, and return all of its figures."""
    compared = (context, verified.table, planned.snapshot, staged.basis, staged.form)
    measured = replace(
        verified.measured,
        information=measure_information_kept(*compared),
        ends=measure_isolating_ends(*compared),
        association=measure_association_kept(*compared, planned.target),
    )
    figures = make_figures(context, planned.chosen.model, planned.snapshot, staged.basis, measured)
    # The figures of a comparison are only for people with the input.
    hides_losses = staged.form.generalizer.has_means and context.purpose != "comparison"
    return figures.without_losses() if hides_losses else figures


def _judge(
    context: RunContext, figures: Figures, before: Earlier | None
) -> tuple[list[GateResult], list[Drift]]:
    """Return all gates and drifts with their figures; raise GuaranteeError if one is exceeded."""
    configuration = context.configuration
    tables = (figures.summary, figures.attributes, figures.risk, figures.counted)
    gates = check_gates(configuration.gates, *tables)
    require_passed(gates)
    drifts = measure_drift(configuration.metrics.drift, figures.summary, before)
    require_no_drift(drifts)
    return gates, drifts


def _anonymize(
    context: RunContext,
    staging: Staging,
    prepared: Prepared,
    warnings: list[ReleaseWarning],
    make_model: ModelMaker | None,
) -> StagedRelease:
    """Anonymize the prepared input, prove the staged release, and judge it by the gates."""
    planned = _plan(context, prepared.snapshot, make_model)
    snapshot, chosen = planned.snapshot, planned.chosen
    staged = _stage(context, staging, planned)
    basis, form = staged.basis, staged.form
    verified = verify_staged(context, staging, snapshot, chosen.model, basis, form)
    table, measured = verified.table, verified.measured
    warnings = warnings + warn_of_staged(context, table, prepared, basis, measured)
    figures = _evaluate(context, planned, staged, verified)
    gates, drifts = _judge(context, figures, planned.before)
    findings = Findings(
        form, basis, chosen.choice, figures, gates, drifts, warnings, prepared.version
    )
    figures = stage_findings(context, staging, findings, [*staged.files, *verified.files])
    # Compared after the release is written, because nothing of it is published.
    better = compare_models(context, snapshot)
    columns = {name: figures.summary[name] for name in ("columns_published", "columns_in")}
    verification = replace(verified.proof, **columns)
    release = Release(
        context.configuration.output.path,
        *(figures.summary, figures.rounds, figures.attributes, figures.privacy, figures.risk),
        *(context.progress.seconds, warnings, verification, better, snapshot.unpublished or ()),
    )
    return StagedRelease(context, staging, release, basis.rounds, form, snapshot.hierarchies)
