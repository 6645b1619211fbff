"""A run from the first layer to the last, and the two ways to look before it: check and plan."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.models import AutoOptions
from anonspark.config.schema import ExecutionOptions, MetricsOptions, RiskOptions
from anonspark.core.criteria import Criteria
from anonspark.core.decision_rules import Baseline, decide, decide_gain
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.schemas import (
    ATTRIBUTES_SCHEMA,
    PRIVACY_SCHEMA,
    RISK_SCHEMA,
    ROUNDS_SCHEMA,
    SUMMARY_SCHEMA,
)
from anonspark.core.utility_score import utility_score
from anonspark.engine.spark.errors import reading_input, running_tasks, writing_output
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.job_descriptions import described_jobs
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.evaluate.drift import Drift, measure_drift, require_no_drift
from anonspark.layers.evaluate.gates import GateResult, check_gates, require_passed
from anonspark.layers.evaluate.metrics import Totals, class_table, round_rows
from anonspark.layers.evaluate.withholding import told_counts, told_missing
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.snapshot import (
    Snapshot,
    inspect_input,
    require_criteria,
    take_snapshot,
)
from anonspark.layers.publish.committing import commit
from anonspark.layers.publish.division import Division, divide
from anonspark.layers.publish.history import append_to_history, last_comparable_run, require_history
from anonspark.layers.publish.metrics_paths import require_usable_metrics
from anonspark.layers.publish.paths import require_replaceable_output, require_usable_output
from anonspark.layers.publish.staging import find_resumable, open_staging, place_of, remove_staging
from anonspark.layers.publish.tables import write_rows, write_table
from anonspark.layers.publish.writing import published_names, write_records
from anonspark.models.choosing import candidates, choose_model
from anonspark.models.model import Model, Task, finished_schema, suppressed_class
from anonspark.models.registry import create_model
from anonspark.pipeline.basis import Basis, basis_of_figures
from anonspark.pipeline.left_out import write_left_out
from anonspark.pipeline.rounds import Residual, run_rounds
from anonspark.pipeline.warnings.identifiers import (
    count_identifiers,
    identifier_warnings,
    withheld_warnings,
)
from anonspark.pipeline.warnings.input_warnings import warn_of_input
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
from anonspark.release.manifest import MANIFEST, read_manifest, versions, write_manifest
from anonspark.release.regions import leaves_by_label, published_attributes
from anonspark.staged.columns import quasi_identifier_column
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
from anonspark.verification.presence import Presence
from anonspark.verification.risk import attacks, attacks_with_population, risk_row
from anonspark.verification.sensitive import SensitiveValues

__all__ = ["Plan", "Purpose", "Release", "check", "plan", "prepare", "run"]

_LOGGER = logging.getLogger("anonspark")

Purpose = Literal["release", "demonstration", "comparison"]
"""What a run is for: a release that somebody will use, one of invented people, or its figures."""

# It names the staging directory.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# Rows of a file of the table of classes.
_CLASSES_IN_FILE = 1_000_000


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


@dataclass(frozen=True, repr=False)
class Plan(Redacted):
    """What a run would do.

    Parameters
    ----------
    rows : int
        Rows of the input.
    rows_dropped : int
        Of them, those that the policy for missing values drops.
    quasi_identifiers : tuple of QuasiIdentifier
    levels : int
        Levels of the tree that are cut on the cluster in the first round, where all cuts halve.
    tasks : int
        Tasks of the first round at least.
    rounds : int
        Rounds at most.
    nodes : int or None
        Nodes of the lattice that a round searches; None for models that cut a tree.
    columns : list of str
        Columns of the release.
    output : str
        Absolute address of the output.
    """

    rows: int
    rows_dropped: int
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    levels: int
    tasks: int
    rounds: int
    nodes: int | None
    columns: list[str]
    output: str


def check(spark: SparkSession, configuration: Configuration) -> dict[str, Any]:
    """Validate configuration and data without anonymizing.

    Parameters
    ----------
    spark : SparkSession
    configuration : Configuration

    Returns
    -------
    dict
        Counts of the inspection: rows, rows kept, missing values; and ``warnings``, a list of
        mappings as in the manifest, which are in the log, too.

    Raises
    ------
    ConfigurationError
        If the output path, or a place for the metrics of all runs, cannot be used.
    DataError
        With everything that is wrong with the data.

    Notes
    -----
    One or two passes over the input, one for each sensitive attribute of a criterion, and one with
    a shuffle of hashes that counts who is singled out by identifiers and by columns that are
    published as they are; nothing is written.
    """
    files = FileSystem(spark)
    require_usable_output(files, configuration)
    require_known_format(spark, configuration.output.format)
    require_usable_metrics(files, configuration)
    with reading_input(configuration.input.paths):
        inspection = inspect_input(spark, configuration)
    require_replaceable_output(files, configuration)
    # A model may refuse what only the data show, such as levels that a hierarchy has not.
    _model(
        configuration,
        _generalizer(configuration, inspection.quasi_identifiers),
        Criteria(configuration.privacy.k),
    )
    with reading_input(configuration.input.paths):
        warnings = warn_of_input(
            inspection.kept,
            configuration,
            inspection.found["kept"],
            _sensitive_values(inspection.criteria),
        )
    tell_warnings(warnings)
    return inspection.found | {"warnings": [one.as_dict() for one in warnings]}


def plan(spark: SparkSession, configuration: Configuration) -> Plan:
    """Tell what a run would do, without anonymizing; costs and errors as :func:`check`."""
    files = FileSystem(spark)
    require_usable_output(files, configuration)
    require_known_format(spark, configuration.output.format)
    require_usable_metrics(files, configuration)
    with reading_input(configuration.input.paths):
        inspection = inspect_input(spark, configuration)
    found, quasi_identifiers = inspection.found, inspection.quasi_identifiers
    require_replaceable_output(files, configuration)
    generalizer = _generalizer(configuration, quasi_identifiers)
    model = _model(configuration, generalizer, Criteria(configuration.privacy.k))
    rows, task_rows = found["kept"], configuration.execution.task_rows
    tasks = -(-rows // task_rows)
    return Plan(
        rows=found["rows"],
        rows_dropped=found["rows"] - rows,
        quasi_identifiers=quasi_identifiers,
        levels=(tasks - 1).bit_length(),
        tasks=tasks,
        rounds=model.rounds,
        nodes=model.nodes,
        columns=published_names(configuration, generalizer),
        output=files.qualified(configuration.output.path),
    )


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
        generalizer = _generalizer(configuration, snapshot.quasi_identifiers)
        task = _task(configuration, generalizer, snapshot.criteria)
        options, choice = configuration.model, None
        if isinstance(options, AutoOptions):
            with progress.stage("choose a model", rows=snapshot.rows):
                choice = choose_model(options, task, snapshot.records, snapshot.rows)
            options = choice.options
            _LOGGER.info("%s", choice.describe())
        model = create_model(options, task)
        description = _describe_release(configuration, generalizer)
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
            generalizer = _generalizer(configuration, basis.quasi_identifiers)
            description = _describe_release(configuration, generalizer)
        with progress.stage("publish", rows=snapshot.rows):
            division = _divide(basis, configuration.execution.seed)
            listed = write_records(
                staged.finished, division, configuration, generalizer, files, staging
            )
        with progress.stage("verify"):
            names = [column.name for column in generalizer.columns()]
            table = open_published(spark, staging.release, description)
            published = count_published_classes(table, names)
            measured = measure_criteria(
                table, names, snapshot.criteria.criteria, _sensitive_values(snapshot.criteria)
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
                listed += write_left_out(residual, snapshot.criteria, files, staging, LEFT_OUT)
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
        information = None
        if configuration.evaluate.information:
            with progress.stage("information"):
                information = _information(
                    table, snapshot, configuration, description, basis, residual
                )
        counts = {
            "rows_in": snapshot.rows_read,
            "rows_dropped_missing": snapshot.rows_read - snapshot.rows,
            "rows_suppressed": residual.rows if residual is not None else 0,
            "rows_left_out": basis.left_out,
        }
        summary = _summary(configuration, model, snapshot, basis, published) | {
            **told_counts(counts, configuration.privacy.k),
            "run_id": run_id,
            "started": started,
        }
        if information is not None:
            summary["entropy"] = sum(information.entropy)
            summary["kl_divergence"] = information.divergence
        rounds = [row | {"run_id": run_id} for row in round_rows(staged.results, basis.totals)]
        attributes = [
            row | {"run_id": run_id}
            for row in _attribute_rows(
                configuration, basis, counts["rows_dropped_missing"], information
            )
        ]
        risk = [
            row | {"run_id": run_id}
            for row in _risk_rows(configuration.evaluate.risk, basis.totals, published, presence)
        ]
        privacy = [
            row | {"run_id": run_id}
            for row in _privacy_rows(configuration, published, measured, presence)
        ]
        gates = check_gates(
            configuration.gates, summary, attributes, risk, counts | _missing_by_gate(basis)
        )
        require_passed(gates)
        drifts = _drifts(files, configuration, summary, progress)
        require_no_drift(drifts)
        with progress.stage("metrics"):
            classes = class_table(staged.classes, basis.quasi_identifiers, run_id)
            # Not in the order of the tasks and of the tree.
            in_order = classes.repartition(
                -(-summary["classes"] // _CLASSES_IN_FILE), "class_id"
            ).sortWithinPartitions("class_id")
            listed += write_table(in_order, "parquet", files, staging, "metrics/classes")
            summary["seconds"] = (datetime.now(UTC) - started).total_seconds()
            for name, rows, schema in (
                ("summary", [summary], SUMMARY_SCHEMA),
                ("rounds", rounds, ROUNDS_SCHEMA),
                ("attributes", attributes, ATTRIBUTES_SCHEMA),
                ("privacy", privacy, PRIVACY_SCHEMA),
                ("risk", risk, RISK_SCHEMA),
            ):
                listed.append(write_rows(files, rows, schema, staging.release, f"metrics/{name}"))
            manifest = _manifest(spark, description, basis, summary, gates, drifts, progress)
            manifest["attempt"] = staging.state.attempt
            if choice is not None:
                manifest["chosen_model"] = choice.as_dict()
            manifest["warnings"] = [one.as_dict() for one in warnings]
            listed.sort(key=lambda one: one.path)
            manifest["files"] = [one.as_dict() for one in listed]
            write_manifest(files, staging.manifest, manifest)
        commit(files, staging, overwrite=configuration.output.mode == "overwrite")
    if configuration.metrics.append_to is not None:
        append_to_history(files, configuration, summary, rounds)
    return Release(
        configuration.output.path,
        summary,
        rounds,
        attributes,
        privacy,
        risk,
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
        table, names, configuration, _sensitive_values(basis.criteria), sizes
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


def _generalizer(
    configuration: Configuration, quasi_identifiers: tuple[QuasiIdentifier, ...]
) -> Generalizer:
    return Generalizer(
        quasi_identifiers,
        configuration.output.style,
        tell_missing=configuration.missing == "category",
    )


def _task(configuration: Configuration, generalizer: Generalizer, criteria: Criteria) -> Task:
    execution = configuration.execution
    return Task(generalizer, criteria, execution.seed, execution.task_rows)


def _model(configuration: Configuration, generalizer: Generalizer, criteria: Criteria) -> Model:
    """Return the model as far as it is known without the data: of ``auto`` the first candidate."""
    options = configuration.model
    if isinstance(options, AutoOptions):
        options = candidates(options.objective)[0]
    return create_model(options, _task(configuration, generalizer, criteria))


def _sensitive_values(criteria: Criteria) -> list[SensitiveValues]:
    """Return the sensitive values of the whole input as the verification knows them."""
    return [
        SensitiveValues(
            one.name,
            one.values,
            one.shares,
            one.parents,
            one.heights,
            as_text=one.as_text,
            is_ordered=True,
        )
        for one in criteria.sensitive
    ]


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
        _sensitive_values(basis.criteria),
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


def _total(basis: Basis) -> Totals:
    """Return the figures of all rounds and of the records that found no class."""
    residual = basis.rounds.residual
    suppressed = residual.rows if residual else 0
    return replace(reduce(Totals.__add__, basis.totals), suppressed=suppressed)


def _summary(
    configuration: Configuration,
    model: Model,
    snapshot: Snapshot,
    basis: Basis,
    published: PublishedClasses,
) -> dict[str, Any]:
    total = _total(basis)
    k = configuration.privacy.k
    summary: dict[str, Any] = {
        "model": configuration.model.name,
        "k": k,
        "rho": model.rounds,
        "rounds": len(basis.rounds.results),
        "rows_published": published.rows,
        "classes": total.classes,
        "published_classes": published.classes,
        "dm": total.discernibility,
        "gcp_total": total.certainty_penalty,
        "gcp": total.global_certainty_penalty,
        "iloss": total.information_loss,
        "aecs": total.mean_class_size / k,
        "mean_class_size": total.mean_class_size,
        "mean_class_size_with_suppressed": total.mean_class_size_with_suppressed,
        "precision": total.precision,
        "loss": total.loss,
        "utility_score": utility_score(total.loss),
        "min_class_size": total.smallest,
        "max_class_size": total.largest,
        "published_min_class_size": published.smallest,
        "configuration_fingerprint": configuration.fingerprint(),
        "input_fingerprint": snapshot.fingerprint,
        "output_fingerprint": published.fingerprint,
        "version": __version__,
    }
    if model.rounds > 1:
        first = basis.totals[0]
        gain = decide_gain(
            (first.classes, basis.rounds.results[0].left_over, first.smallest),
            (total.classes, total.suppressed, total.smallest),
        )
        summary |= {
            "rule_gain_utility": gain.utility,
            "rule_gain_risk": gain.risk,
            "rule_gain": gain.gain,
        }
    if model.rounds > 1 or configuration.evaluate.compare_baseline:
        summary |= _beside_baseline(total, _without_outlier_handling(model, basis))
    return summary


def _without_outlier_handling(model: Model, basis: Basis) -> Baseline:
    """Return the figures of the same model without outlier handling: one round, all kept."""
    result, own = basis.rounds.results[0], basis.totals[0]
    if model.leaves_residual:
        # Its records left over are suppressed.
        own = replace(own, suppressed=result.left_over)
    elif len(basis.totals) > 1:
        penalty = float(result.penalty_if_last)
        return Baseline(own.classes, result.squares_if_whole, penalty, result.rows / own.classes)
    return Baseline(own.classes, own.discernibility, own.certainty_penalty, own.mean_class_size)


def _beside_baseline(total: Totals, baseline: Baseline) -> dict[str, Any]:
    """Return the figures without outlier handling, and whether it paid."""
    rules = decide(
        (total.discernibility, baseline.discernibility),
        (total.mean_class_size, baseline.mean_class_size),
        (total.certainty_penalty, baseline.certainty_penalty),
    )
    return {
        "baseline_classes": baseline.classes,
        "baseline_dm": baseline.discernibility,
        "baseline_gcp_total": baseline.certainty_penalty,
        "baseline_mean_class_size": baseline.mean_class_size,
        "rule_a": rules.a,
        "rule_b": rules.b,
        "rule_c": rules.c,
    }


def _privacy_rows(
    configuration: Configuration,
    published: PublishedClasses,
    measured: Sequence[MeasuredCriterion],
    presence: Presence | None,
) -> list[dict[str, object]]:
    size: dict[str, object] = {
        "criterion": "k",
        "required": float(configuration.privacy.k),
        "measured": float(published.smallest),
    }
    rows: list[dict[str, object]] = [size]
    for one in measured:
        rows.append(
            {
                "attribute": one.criterion.attribute,
                "criterion": one.criterion.kind,
                "required": one.criterion.bound,
                "c": one.criterion.c if one.criterion.kind == "recursive" else None,
                "measured": one.measured,
            }
        )
    wanted = configuration.privacy.delta_presence
    if presence is not None and wanted is not None:
        rows += [
            {
                "criterion": "smallest presence",
                "required": wanted.min,
                "measured": presence.smallest,
            },
            {"criterion": "largest presence", "required": wanted.max, "measured": presence.largest},
        ]
    return rows


def _attribute_rows(
    configuration: Configuration, basis: Basis, dropped: int, information: Information | None
) -> list[dict[str, object]]:
    total = _total(basis)
    missing = told_missing(
        basis.missing, dropped if configuration.missing == "drop" else None, configuration.privacy.k
    )
    rows: list[dict[str, object]] = []
    for index, quasi_identifier in enumerate(basis.quasi_identifiers):
        own = total.of_attribute(index)
        rows.append(
            {
                "position": index + 1,
                "attribute": quasi_identifier.name,
                "kind": quasi_identifier.kind,
                "weight": quasi_identifier.weight,
                "missing_rows": missing[index],
                "generalized_rows": own.generalized,
                "generalized_share": own.generalized / basis.rows,
                "ncp_total": float(own.penalty),
                "ncp": float(own.penalty) / basis.rows,
                "iloss": float(own.iloss) / basis.rows,
                "loss": float(own.loss) / basis.rows,
                "height": quasi_identifier.height,
                "precision": 1.0 - float(own.lifted) / basis.rows,
                "entropy": None if information is None else information.entropy[index],
            }
        )
    return rows


def _missing_by_gate(basis: Basis) -> dict[str, int]:
    """Return the missing values of quasi-identifiers under the names that gates have for them."""
    pairs = zip(basis.quasi_identifiers, basis.missing, strict=True)
    return {f"attributes.{one.name}.missing_rows": missing for one, missing in pairs}


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
    records = snapshot.records.rows(*names)
    if residual is not None and not basis.values_told:
        records = records.exceptAll(residual.records.rows(*names))
    return measure_information(
        table,
        published_attributes(description),
        records.select(*columns),
        basis.left_out if basis.values_told else 0,
        {name: leaves_by_label(one) for name, one in snapshot.hierarchies.items()},
        configuration.input.missing_markers,
    )


def _risk_rows(
    options: RiskOptions,
    totals: Sequence[Totals],
    published: PublishedClasses,
    presence: Presence | None,
) -> list[dict[str, object]]:
    """Return the risk of each round's classes, and of the release by published tuple."""
    rows: list[dict[str, object]] = []
    for number, own in enumerate(totals, start=1):
        found = attacks(own.sizes, options.threshold)
        rows += [{"round": number, **risk_row(attack, options)} for attack in found]
    found = attacks(published.sizes, options.threshold)
    if presence is not None:
        counts = presence.counts
        found = attacks_with_population(counts.released, counts.population, options.threshold)
    return rows + [
        {"population": presence is not None, **risk_row(attack, options)} for attack in found
    ]


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


def _describe_release(configuration: Configuration, generalizer: Generalizer) -> dict[str, Any]:
    """Return what a manifest says of a release before anything is counted."""
    return {
        "configuration": configuration.public_dict(),
        "published": {
            "columns": published_names(configuration, generalizer),
            "quasi_identifier_columns": [column.name for column in generalizer.columns()],
            "quasi_identifiers": [
                quasi_identifier.describe() for quasi_identifier in generalizer.quasi_identifiers
            ],
        },
    }


def _manifest(
    spark: SparkSession,
    description: dict[str, Any],
    basis: Basis,
    summary: dict[str, Any],
    gates: Sequence[GateResult],
    drifts: Sequence[Drift],
    progress: Progress,
) -> dict[str, Any]:
    return {
        "run_id": summary["run_id"],
        "started": summary["started"].isoformat(timespec="seconds"),
        "seconds": {name: round(seconds, 3) for name, seconds in progress.seconds.items()},
        "versions": versions(spark.version),
        "configuration": description["configuration"],
        "fingerprints": {
            name: summary[f"{name}_fingerprint"] for name in ("configuration", "input", "output")
        },
        "published": {
            "rows": summary["rows_published"],
            "rows_left_out": summary["rows_left_out"],
            "sensitive_values": basis.sensitive_values,
            "left_out_values": "told" if basis.values_told else "withheld",
            **description["published"],
        },
        "summary": {
            name: value
            for name, value in summary.items()
            if not name.endswith("_fingerprint") and name not in ("run_id", "started")
        },
        "gates": [
            {name: value for name, value in asdict(gate).items() if name != "within"}
            for gate in gates
        ],
        # A count that is withheld is judged by the least that it can be, and stays withheld.
        "drift": [
            asdict(drift) | ({"found": None} if summary.get(drift.metric) is None else {})
            for drift in drifts
        ],
    }
