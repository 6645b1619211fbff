"""A run from the first layer to the last."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.models import AutoOptions
from anonspark.config.schema import ExecutionOptions, MetricsOptions
from anonspark.core.columns import quasi_identifier_column
from anonspark.core.figures import TABLES, ddl
from anonspark.engine.spark.errors import reading_input, running_tasks, writing_output
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.job_descriptions import described_jobs
from anonspark.engine.spark.jobs import stoppable_jobs
from anonspark.engine.spark.table import frame_of
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.evaluate.drift import Drift, measure_drift, require_no_drift
from anonspark.layers.evaluate.gates import check_gates, require_passed
from anonspark.layers.prepare.snapshot import (
    Snapshot,
    require_criteria,
    take_snapshot,
)
from anonspark.layers.publish.class_table import write_classes
from anonspark.layers.publish.committing import commit
from anonspark.layers.publish.division import Division, divide
from anonspark.layers.publish.history import append_to_history, last_comparable_run, require_history
from anonspark.layers.publish.metrics_paths import require_usable_metrics
from anonspark.layers.publish.paths import require_replaceable_output, require_usable_output
from anonspark.layers.publish.staging import find_resumable, open_staging, place_of, remove_staging
from anonspark.layers.publish.tables import write_rows
from anonspark.layers.publish.writing import write_records
from anonspark.models.choosing import choose_model
from anonspark.models.model import finished_schema, suppressed_class
from anonspark.models.registry import create_model
from anonspark.pipeline.basis import Basis, basis_of_figures
from anonspark.pipeline.description import describe_release, release_manifest
from anonspark.pipeline.figures import Measured, make_figures
from anonspark.pipeline.left_out import write_left_out
from anonspark.pipeline.rounds import Residual, run_rounds
from anonspark.pipeline.tasks import generalizer_of, sensitive_values, task_of
from anonspark.pipeline.warnings.identifiers import (
    count_identifiers,
    identifier_warnings,
    withheld_warnings,
)
from anonspark.pipeline.warnings.published_values import (
    count_published_values,
    published_value_warnings,
)
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, tell_warnings
from anonspark.pipeline.warnings.seeds import seed_warnings
from anonspark.pipeline.warnings.sensitive_values import warn_of_sensitive_values
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.formats import open_published, require_known_format
from anonspark.release.manifest import MANIFEST, read_manifest, write_manifest
from anonspark.release.regions import leaves_by_label, published_attributes
from anonspark.verification.classes import PublishedClasses, count_published_classes
from anonspark.verification.criteria import MeasuredCriterion, measure_criteria
from anonspark.verification.guarantee import broken_promises
from anonspark.verification.information import Information, measure_information
from anonspark.verification.left_out import LEFT_OUT
from anonspark.verification.population import (
    broken_presence,
    measure_delta_presence,
    require_population,
)

__all__ = ["Purpose", "Release", "prepare", "run"]

_LOGGER = logging.getLogger("anonspark")

Purpose = Literal["release", "demonstration", "comparison"]
"""What a run is for: a release that somebody will use, one of invented people, or its figures."""

# It names the staging directory.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, repr=False)
class Release(Redacted):
    """What a run published.

    Parameters
    ----------
    path : str
        The output path.
    summary : dict
        The row of the table ``summary``.
    rounds : list of dict
        The rows of the table ``rounds``.
    attributes : list of dict
        The rows of the table ``attributes``.
    privacy : list of dict
        The rows of the table ``privacy``.
    risk : list of dict
        The rows of the table ``risk``.
    seconds : dict
        Seconds of each stage.
    warnings : list of dict
        What who releases it should know, as in the manifest.
    """

    path: str
    summary: dict[str, Any]
    rounds: list[dict[str, object]]
    attributes: list[dict[str, object]]
    privacy: list[dict[str, object]]
    risk: list[dict[str, object]]
    seconds: dict[str, float]
    warnings: list[dict[str, Any]]


def prepare(
    spark: SparkSession,
    configuration: Configuration,
    directory: str,
    *,
    table: DataFrame | None = None,
) -> Snapshot:
    """Read the input once and stage it, for one run or several.

    Parameters
    ----------
    spark : SparkSession
    configuration : Configuration
        Of it count input, attributes, policy for missing values and seed.
    directory : str
        Where to stage; holds raw values, so it has to be private and removed afterwards.
    table : DataFrame or None
        The input; None opens what the configuration names.

    Returns
    -------
    Snapshot

    Raises
    ------
    ConfigurationError, DataError, PublishingError

    Notes
    -----
    One pass over the input that writes Parquet, and a narrow one over what was written where text
    quasi-identifiers need their categories.
    """
    paths = configuration.input.paths if table is None else ("the given DataFrame",)
    with reading_input(paths):
        return take_snapshot(spark, configuration, f"{directory}/snapshot", table)


def run(
    spark: SparkSession,
    configuration: Configuration,
    *,
    run_id: str | None = None,
    progress: Progress | None = None,
    table: DataFrame | None = None,
    snapshot: Snapshot | None = None,
    resume: bool = False,
    purpose: Purpose = "release",
) -> Release:
    """Anonymize a table and publish the release with its metrics.

    Parameters
    ----------
    spark : SparkSession
    configuration : Configuration
    run_id : str or None
        Name of the run in metrics and manifest; None makes a random one.
    progress : Progress or None
        Where to tell what is going on.
    table : DataFrame or None
        The input; None opens what the configuration names.
    snapshot : Snapshot or None
        The input as :func:`prepare` staged it for a configuration that differs in nothing that
        counts there; None stages it.
    resume : bool
        Whether to continue a run that was killed: ``run_id``, or the only one of this output. Its
        finished rounds are not computed again. Where none is left the run begins anew. Should this
        run fail in a way that another attempt may not, its finished rounds are kept for that.
    purpose : str
        ``demonstration`` warns of no seed, for its people are invented. ``comparison`` warns of
        nothing, for its release is deleted once it is measured.

    Returns
    -------
    Release
        Where the run of this id has published its release already, and ``output.mode`` is
        ``error``: that one, without any work.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
        What was at the output path before is then unchanged, and no staging is left, unless the
        run is to be resumed; but for rows that could not be appended to the tables of all runs,
        which is told of a complete release.

    Notes
    -----
    The input is read once, again in each attempt: that proves that it has not changed. Each round
    costs the model's passes over narrow columns, one shuffle and one write of its records;
    publishing reads and writes all records once more. Warnings cost a narrow pass over the
    identifiers of the input and one over the published columns that are as they were, each with a
    shuffle of hashes.
    """
    files = FileSystem(spark)
    output, staging_path = configuration.output.path, configuration.execution.staging_path
    if run_id is None and resume:
        run_id = find_resumable(files, output, staging_path)
    run_id = run_id or uuid.uuid4().hex[:12]
    if not _RUN_ID.fullmatch(run_id):
        raise ConfigurationError(
            "run id: expected at most 100 letters, digits, dots, hyphens and underscores, the "
            "first of them a letter or digit; choose another"
        )
    progress = progress or Progress()
    progress.run_id = run_id
    started = datetime.now(UTC)
    place = place_of(files, output, run_id, staging_path)
    earlier = _released_before(spark, files, configuration, run_id)
    if earlier is not None:
        # Of a process that was killed between its last steps.
        remove_staging(files, place)
        if configuration.metrics.append_to is not None:
            append_to_history(files, configuration, earlier.summary, earlier.rounds)
        return earlier
    if not resume:
        require_usable_output(files, configuration)
    require_known_format(spark, configuration.output.format)
    require_usable_metrics(files, configuration)
    if configuration.metrics.append_to is not None:
        require_history(files, configuration.metrics.append_to)
    warned = purpose != "comparison"
    warnings = seed_warnings(configuration) if purpose == "release" else []
    tell_warnings(warnings)
    with (
        open_staging(files, output, run_id, staging_path=staging_path, resume=resume) as staging,
        stoppable_jobs(spark.sparkContext, f"anonspark-{run_id}"),
        running_tasks(progress),
        writing_output(),
        described_jobs(spark.sparkContext, progress, run_id),
    ):
        staging.state.require_identity(
            {"version": __version__, "configuration": _identity(configuration)}
        )
        if resume:
            # Now that half a release of the run before is gone.
            require_usable_output(files, configuration)
        with progress.stage("prepare"):
            if snapshot is None:
                snapshot = prepare(spark, configuration, staging.records, table=table)
            # Before anything that another input would fail in.
            staging.state.require_identity({"input": snapshot.content_fingerprint()})
            with reading_input(configuration.input.paths):
                snapshot = require_criteria(snapshot, configuration)
                identifiers = count_identifiers(
                    snapshot.identified if warned else None, configuration, snapshot.rows
                )
            repeated = identifier_warnings(identifiers, configuration.privacy.k)
            tell_warnings(repeated)
        require_replaceable_output(files, configuration)
        generalizer = generalizer_of(configuration, snapshot.quasi_identifiers)
        task = task_of(configuration, generalizer, snapshot.criteria)
        options, choice = configuration.model, None
        if isinstance(options, AutoOptions):
            with progress.stage("choose a model", rows=snapshot.rows):
                choice = choose_model(options, task, snapshot.records, snapshot.rows)
            options = choice.options
            _LOGGER.info("%s", choice.describe())
        model = create_model(options, task)
        description = describe_release(configuration, generalizer)
        if configuration.privacy.delta_presence is not None:
            # Before the work, for what can be known before.
            require_population(
                spark, configuration.privacy.delta_presence, published_attributes(description)
            )
        staged = run_rounds(
            model,
            snapshot,
            snapshot.criteria,
            finished_schema(snapshot.records.schema, generalizer),
            staging=staging,
            files=files,
            progress=progress,
        )
        residual = staged.residual
        with progress.stage("evaluate"):
            basis = basis_of_figures(snapshot, staged, generalizer)
            staged = basis.rounds
            generalizer = generalizer_of(configuration, basis.quasi_identifiers)
            description = describe_release(configuration, generalizer)
        with progress.stage("publish", rows=snapshot.rows):
            division = _divide(basis, configuration.execution.seed)
            listed = write_records(staged.finished, division, configuration, generalizer, staging)
        with progress.stage("verify"):
            names = [column.name for column in generalizer.columns()]
            table = open_published(spark, staging.release, description)
            published = count_published_classes(table, names)
            measured = measure_criteria(
                table, names, snapshot.criteria.criteria, sensitive_values(snapshot.criteria)
            )
            _require_promises(
                published,
                configuration.privacy.k,
                [one for one in measured if model.keeps(one.criterion)],
                snapshot.rows - basis.left_out,
            )
            if basis.uncertainty:
                measured = _with_told_distances(table, names, measured, basis)
            if (
                basis.left_out
                and basis.values_told
                and residual is not None
                and any(one.is_distance for one in snapshot.criteria.criteria)
            ):
                listed += write_left_out(residual, snapshot.criteria, staging, LEFT_OUT)
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
            presence = None
            if configuration.privacy.delta_presence is not None:
                presence = measure_delta_presence(
                    spark,
                    table,
                    configuration.privacy.delta_presence,
                    published_attributes(description),
                    {name: leaves_by_label(one) for name, one in snapshot.hierarchies.items()},
                    configuration.input.missing_markers,
                )
                broken = broken_presence(presence, configuration.privacy.delta_presence)
                if broken:
                    raise GuaranteeError("\n".join(broken))
        if warned:
            with progress.stage("warnings"):
                # Of records that were left out nothing is told.
                warnings += repeated if not basis.left_out else withheld_warnings(identifiers)
                warnings += _warn_of_release(table, names, configuration, basis, published)
        measurement = Measured(published, measured, presence)
        if configuration.evaluate.information:
            with progress.stage("information"):
                information = _information(
                    table, snapshot, configuration, description, basis, residual
                )
            measurement = replace(measurement, information=information)
        figures = make_figures(
            configuration, model, snapshot, basis, measurement, run_id=run_id, started=started
        )
        summary = figures.summary
        gates = check_gates(
            configuration.gates, summary, figures.attributes, figures.risk, figures.counted
        )
        require_passed(gates)
        drifts = _drifts(files, configuration, summary, progress)
        require_no_drift(drifts)
        with progress.stage("metrics"):
            listed += write_classes(
                staged.classes, summary["classes"], basis.quasi_identifiers, run_id, staging
            )
            summary["seconds"] = (datetime.now(UTC) - started).total_seconds()
            for name, rows in (
                ("summary", [summary]),
                ("rounds", figures.rounds),
                ("attributes", figures.attributes),
                ("privacy", figures.privacy),
                ("risk", figures.risk),
            ):
                schema = ddl(TABLES[name])
                listed.append(write_rows(files, rows, schema, staging.release, f"metrics/{name}"))
            manifest = release_manifest(
                spark.version, description, basis, summary, gates, drifts, progress
            )
            manifest["attempt"] = staging.state.attempt
            if choice is not None:
                manifest["chosen_model"] = choice.as_dict()
            manifest["warnings"] = [one.as_dict() for one in warnings]
            listed.sort(key=lambda one: one.path)
            manifest["files"] = [one.as_dict() for one in listed]
            write_manifest(files, staging.manifest, manifest)
        commit(files, staging, overwrite=configuration.output.mode == "overwrite")
    if configuration.metrics.append_to is not None:
        append_to_history(files, configuration, summary, figures.rounds)
    return Release(
        configuration.output.path,
        summary,
        figures.rounds,
        figures.attributes,
        figures.privacy,
        figures.risk,
        progress.seconds,
        [one.as_dict() for one in warnings],
    )


def _warn_of_release(
    table: DataFrame,
    names: Sequence[str],
    configuration: Configuration,
    basis: Basis,
    published: PublishedClasses,
) -> list[ReleaseWarning]:
    """Find, and tell, what the staged release should not be used without knowing."""
    sizes = count_published_values(table, configuration, published.rows)
    found = published_value_warnings(sizes, configuration)
    found += warn_of_sensitive_values(
        table, names, configuration, sensitive_values(basis.criteria), sizes
    )
    tell_warnings(found)
    return found


def _identity(configuration: Configuration) -> str:
    """Return what tells whether two configurations make the same release."""
    # Whoever ran out of memory may try again with smaller tasks.
    smaller = {"task_rows": ExecutionOptions().task_rows}
    alike = {
        "execution": configuration.execution.model_copy(update=smaller),
        "metrics": MetricsOptions(),
    }
    return configuration.model_copy(update=alike).fingerprint()


def _released_before(
    spark: SparkSession, files: FileSystem, configuration: Configuration, run_id: str
) -> Release | None:
    """Return the release that a run of the same id and configuration has published, if any."""
    path = configuration.output.path.rstrip("/")
    if configuration.output.mode != "error" or not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        manifest = read_manifest(files, path)
    except (DataError, GuaranteeError):
        return None
    same = (run_id, configuration.fingerprint())
    if (manifest.get("run_id"), manifest["fingerprints"].get("configuration")) != same:
        return None
    _LOGGER.info("run %s is published already at %s; nothing is done", run_id, path)
    tables = {
        name: [row.asDict() for row in spark.read.parquet(f"{path}/metrics/{name}").collect()]
        for name in ("summary", "rounds", "attributes", "privacy", "risk")
    }
    (summary,) = tables.pop("summary")
    summary["started"] = summary["started"].astimezone(UTC)
    return Release(
        path=path,
        summary=summary,
        seconds=manifest["seconds"],
        warnings=manifest.get("warnings", []),
        **tables,
    )


def _with_told_distances(
    table: DataFrame, names: Sequence[str], measured: Sequence[MeasuredCriterion], basis: Basis
) -> list[MeasuredCriterion]:
    """Return what is told of criteria: distances from what the release shows of the whole input.

    The distance from the whole input would depend on the values of records left out.
    """
    distances = [one for one in measured if one.criterion.is_distance]
    shown = measure_criteria(
        table,
        names,
        [one.criterion for one in distances],
        sensitive_values(basis.criteria),
        basis.uncertainty,
    )
    by_criterion = {one.criterion: one for one in shown}
    return [by_criterion.get(one.criterion, one) for one in measured]


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


def _divide(basis: Basis, seed: int) -> Division:
    """Decide which file of the release each record goes to; costs as :func:`divide`."""
    residual = basis.rounds.residual
    suppressed = residual.rows if residual is not None and residual.published else 0
    return divide(
        basis.rounds.finished,
        basis.rounds.classes,
        max(suppressed, *(one.largest for one in basis.totals)),
        [suppressed_class(seed)] if suppressed else [],
    )


def _information(
    table: DataFrame,
    snapshot: Snapshot,
    configuration: Configuration,
    description: dict[str, Any],
    basis: Basis,
    residual: Residual | None,
) -> Information:
    """Measure the published files beside the snapshot, or beside the published records of it."""
    columns = []
    names = [quasi_identifier_column(index) for index in range(len(snapshot.quasi_identifiers))]
    for staged, quasi_identifier in zip(names, snapshot.quasi_identifiers, strict=True):
        value = sf.col(staged)
        if quasi_identifier.kind == "float":
            value = sf.when(~sf.isnan(value), value)
        columns.append(value.alias(quasi_identifier.name))
    records = frame_of(snapshot.records.rows(*names))
    if residual is not None and not basis.values_told:
        records = records.exceptAll(frame_of(residual.records.rows(*names)))
    return measure_information(
        table,
        published_attributes(description),
        records.select(*columns),
        basis.left_out if basis.values_told else 0,
        {name: leaves_by_label(one) for name, one in snapshot.hierarchies.items()},
        configuration.input.missing_markers,
    )


def _drifts(
    files: FileSystem,
    configuration: Configuration,
    summary: dict[str, Any],
    progress: Progress,
) -> list[Drift]:
    """Put the figures that have a bound beside those of the last run of the job."""
    bounds = configuration.metrics.drift
    if not bounds:
        return []
    with progress.stage("drift"):
        before = last_comparable_run(files, configuration, summary["run_id"], summary["started"])
    if before is None:
        _LOGGER.info("no earlier run of job %r to compare with", configuration.metrics.job)
    return measure_drift(bounds, summary, before)
