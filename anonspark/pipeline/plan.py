"""The two ways to look at a run before it: check and plan."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from anonspark.config import Configuration
from anonspark.config.configuration import AgreedCoding
from anonspark.config.models import FullDomainOptions, MappingOptions
from anonspark.core.columns import (
    identifier_column,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.files import Files
from anonspark.engine.memory import ClusterSizes, cluster_sizes
from anonspark.engine.protocol import Engine, OpenRecords
from anonspark.errors import ConfigurationError
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.lattice.search import NodePreview
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.snapshot import Inspection, inspect_input, require_criteria
from anonspark.layers.publish.paths import (
    require_replaceable_release,
    require_usable_metrics,
    require_usable_output,
)
from anonspark.layers.publish.staging import open_staging
from anonspark.layers.publish.writing import published_columns
from anonspark.models.full_domain import FullDomain
from anonspark.models.model import Model, Round
from anonspark.pipeline.mapping import apply_mapping
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.repeats import repeat_warnings, repeats_of_others
from anonspark.pipeline.tasks import first_model, generalizer_of, sensitive_values, task_of
from anonspark.pipeline.warnings.dependencies import RecordSample, dependency_warnings, sample_of
from anonspark.pipeline.warnings.published_values import (
    exact_end_warnings,
    identifier_warnings,
    published_value_warnings,
    read_identifiers,
    text_value_warnings,
)
from anonspark.pipeline.warnings.release_warning import (
    ReleaseWarning,
    blank_row_warnings,
    dropped_record_warnings,
    log_warnings,
    seed_warnings,
)
from anonspark.pipeline.warnings.sensitive_values import (
    privacy_warnings_of_input,
    sensitive_value_warnings,
)
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.manifest import Manifest, sound_manifest
from anonspark.verification.proof.measures import SensitiveValues
from anonspark.verification.proof.weights import sum_weights


def warn_of_input(
    open_records: OpenRecords,
    configuration: Configuration,
    records: int,
    sensitive: Sequence[SensitiveValues],
    quasi_identifiers: Sequence[QuasiIdentifier],
) -> tuple[list[ReleaseWarning], dict[str, ValueSizes], RecordSample | None]:
    """Return all warnings about a configuration and its input.

    ``open_records`` opens columns of the kept records, of which there are ``records``.
    ``sensitive`` are the values of the attributes that criteria are about. Also returns how many
    records share each value of the identifiers and of unchanged attributes, and the sample of
    records, or None if no warning needs one. Costs one job over identifiers and payload together
    (`count_value_sizes`), those of `sample_of`, and those of `sensitive_value_warnings`.
    """
    payload = [payload_column(index) for index in range(len(configuration.published_as_is))]
    columns = dict(zip(configuration.published_as_is, map(CountedColumn, payload), strict=True))
    names = [identifier_column(index) for index in range(len(configuration.identifiers))]
    with open_records([*payload, *names]) as opened:
        table, identifiers = read_identifiers(opened, configuration, payload)
        sizes = count_value_sizes(table, {**columns, **identifiers}, records)
    sample = None
    if payload or not configuration.privacy.unit:
        names = [quasi_identifier_column(index) for index in range(len(quasi_identifiers))]
        with open_records([*names, *payload]) as table:
            sample = sample_of(table, configuration, records)
    names = [columns[name].name for name in configuration.sensitive]
    weights = configuration.evaluate.risk.weights
    if weights is not None:
        column = (
            columns[weights].name
            if weights in columns
            else identifier_column(configuration.identifiers.index(weights))
        )
        with open_records([column]) as table:
            weighted = table.select({weights: column})
            sum_weights(weighted, [], weights, configuration.input.missing_markers)
    with open_records(names) as table:
        of_values = [
            *sensitive_value_warnings(table, configuration, sensitive, sizes),
            *privacy_warnings_of_input(table, configuration, sizes),
        ]
    # If k counts people, no identifier makes it count fewer.
    counted = {} if configuration.privacy.unit else {name: sizes[name] for name in identifiers}
    warnings = [
        *seed_warnings(configuration),
        *identifier_warnings(counted, configuration.privacy.k),
        *published_value_warnings({name: sizes[name] for name in columns}, configuration),
        *text_value_warnings(quasi_identifiers, configuration),
        *exact_end_warnings(quasi_identifiers, configuration, records),
        *(() if sample is None else dependency_warnings(sample, configuration)),
        *of_values,
    ]
    return warnings, sizes, sample


_SETTINGS = ("attributes", "missing", "privacy", "model")

_SECONDS_TO_BEGIN = 2.0

# docs/performance.md: ten million people, five numbers, two cores, on Spark and without Java, or
# None where that was not measured. Variants take as long.
_ROWS_A_SECOND = MappingProxyType[str, tuple[int, int | None]](
    {
        "smondrian": (177_000, 466_000),
        "mondrian": (177_000, 466_000),
        "su-mondrian": (157_000, 256_000),
        "u-mondrian": (157_000, 256_000),
        "canon": (136_000, None),
        "u-canon": (108_000, None),
        "microaggregation": (25_000, 35_000),
    }
)
_MEASURED_WITH = 5
_MOST_MEASURED = 10_000_000

# benchmarks/serial_seconds.py: CPU seconds of the driver's Python, of a run and of each row, from
# 20,000 and a million rows of su-mondrian. More rows and Java's part were not measured.
_SERIAL_SECONDS, _SERIAL_SECONDS_A_ROW = 1.3, 3.8e-7

# Columns of Parquet, compressed, of classes that lie side by side: somewhat less as a rule.
_BYTES_A_VALUE = 1.0


@dataclass(frozen=True, repr=False)
class Estimate(Redacted):
    """The estimated seconds and bytes of a run.

    Parameters
    ----------
    seconds : float or None
        None for a model whose rate is unknown.
    bytes : int
        Bytes of the published records.
    basis : str
        What the estimate is computed from, in words.
    run_id : str or None
        The earlier run, or None without one.
    serial_seconds : float or None
        Seconds that the driver works alone, however many the cores, or None without Spark.
    lower_bound : bool
        Whether no run of so many rows was measured, and runs of fewer rows took fewer passes.
    """

    seconds: float | None
    bytes: int
    basis: str
    run_id: str | None = None
    serial_seconds: float | None = None
    lower_bound: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        return asdict(self)


def estimate_run(engine: Engine, configuration: Configuration, rows: int, columns: int) -> Estimate:
    """Estimate what a run takes for ``rows`` records and ``columns`` published columns.

    It scales the figures of the release at the output path if that has the same attributes,
    criteria and model. Otherwise it uses constants, and names what was not measured. No job. One
    small file is read.
    """
    earlier = _earlier_release(engine.files, configuration)
    estimate = None if earlier is None else _as_before(earlier, rows)
    if estimate is not None:
        return estimate
    name, size = configuration.model.name, int(rows * columns * _BYTES_A_VALUE)
    if name not in _ROWS_A_SECOND:
        basis = f"no rate is known of {name}. After a first run to output.path there is one"
        return Estimate(None, size, basis)
    on_spark = "spark" in engine.versions
    spark, java_free = _ROWS_A_SECOND[name]
    basis = (
        "no earlier run at output.path. Constants of docs/performance.md, for numbers (texts were "
        "not measured) and two cores: yours may differ by a factor of three"
    )
    if not on_spark and java_free is None:
        basis += f". {name} was measured on Spark only"
    if rows > _MOST_MEASURED:
        basis += f". A lower bound: more than {_MOST_MEASURED:,} rows take more passes"
    rate = (spark if on_spark else java_free) or spark
    return Estimate(
        _SECONDS_TO_BEGIN + rows * len(configuration.quasi_identifiers) / _MEASURED_WITH / rate,
        size,
        basis,
        serial_seconds=_SERIAL_SECONDS + rows * _SERIAL_SECONDS_A_ROW if on_spark else None,
        lower_bound=rows > _MOST_MEASURED,
    )


def _earlier_release(files: Files, configuration: Configuration) -> Manifest | None:
    """Return the manifest at the output path if a run with the same settings wrote it, or None."""
    manifest = sound_manifest(files, configuration.output.path)
    if manifest is None:
        return None
    settings = configuration.public_dict()
    same = all(manifest.configuration.get(name) == settings[name] for name in _SETTINGS)
    return manifest if same and manifest.style == configuration.output.style else None


def _as_before(manifest: Manifest, rows: int) -> Estimate | None:
    """Scale what an earlier run took, or return None if its manifest does not say."""
    seconds = manifest.document.get("seconds")
    before = (manifest.document.get("published") or {}).get("rows")
    if not seconds or not before:
        return None
    size = sum(file.bytes for file in manifest.files if file.path.startswith("data/"))
    return Estimate(
        sum(seconds.values()) * rows / before,
        int(size * rows / before),
        f"as run {manifest.run_id}, which published {before:,} records",
        manifest.run_id,
    )


@dataclass(frozen=True, repr=False)
class Plan(Redacted):
    """The plan of a run.

    Parameters
    ----------
    rows : int
        Rows of the input.
    rows_dropped : int
        Rows that the policy for missing values drops.
    quasi_identifiers : tuple of QuasiIdentifier
    levels : int
        Levels of the tree that are cut on the cluster in the first round, if all cuts halve.
    tasks : int
        Smallest number of tasks of the first round.
    rounds : int
        Largest number of rounds.
    nodes : int or None
        Nodes of the lattice that a round searches, or None for models that cut a tree.
    columns : list of str
        Columns of the release.
    output : str
        Absolute address of the output.
    estimate : Estimate
        Estimated seconds and bytes.
    cluster : ClusterSizes or None
        Sizes of a cluster for the run, or None without Spark.
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
    estimate: Estimate
    cluster: ClusterSizes | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return {
            "rows": self.rows,
            "rows_to_drop": self.rows_dropped,
            "rounds": self.rounds,
            "levels": None if self.nodes is not None else self.levels,
            "tasks": None if self.nodes is not None else self.tasks,
            "nodes": self.nodes,
            "quasi_identifiers": [
                {"name": identifier.name, "kind": identifier.kind}
                for identifier in self.quasi_identifiers
            ],
            "columns": self.columns,
            "output": self.output,
            "estimate": self.estimate.as_dict(),
            "cluster": None if self.cluster is None else asdict(self.cluster),
        }


@dataclass(frozen=True, repr=False)
class Checked(Redacted):
    """The findings about the input.

    Parameters
    ----------
    rows : int
        Rows of the input.
    rows_dropped : int
        Rows that the policy for missing values drops.
    missing : dict of str to int
        Missing values of each quasi-identifier.
    warnings : list of ReleaseWarning
        Warnings that can be known before a run. They are in the log, too.
    coding : AgreedCoding or None
        The coding that the configuration follows.
    """

    rows: int
    rows_dropped: int
    missing: dict[str, int]
    warnings: list[ReleaseWarning]
    coding: AgreedCoding | None


def check_input(
    engine: Engine, configuration: Configuration, progress: Progress | None = None
) -> Checked:
    """Validate configuration and data without anonymizing.

    Raises ConfigurationError if the output path, or the path of the metrics of all runs, cannot be
    used, and DataError with all problems of the data.

    Costs one or two passes over the input, one for each sensitive attribute of a criterion, one
    with a shuffle of hashes that counts how many people identifiers and unchanged columns single
    out, and the passes of :func:`warn_of_input`. Without ``privacy.unit``, columns that may number
    people cost two more (:func:`anonspark.pipeline.repeats.repeats_of_others`). Nothing is written.
    """
    progress = progress or Progress()
    inspection, _, _ = _inspect(engine, configuration, progress)
    with (
        progress.stage("count who is singled out", rows=inspection.rows),
        engine.reading(configuration.input.paths),
    ):
        warnings, sizes, sample = warn_of_input(
            inspection.open_records,
            configuration,
            inspection.rows,
            sensitive_values(inspection.criteria),
            inspection.quasi_identifiers,
        )
        warnings += blank_row_warnings(inspection.blank_rows, configuration.privacy.k)
        warnings += dropped_record_warnings(
            inspection.rows_dropped, inspection.rows, configuration.privacy.k
        )
        source = engine.open_source(configuration)
        rows = inspection.rows_read
        keys, copies = repeats_of_others(configuration, source, rows, sizes, sample)
        warnings += repeat_warnings(keys, copies, configuration)
    log_warnings(warnings)
    return Checked(
        rows=inspection.rows_read,
        rows_dropped=inspection.rows_dropped,
        missing=dict(zip(configuration.quasi_identifiers, inspection.missing, strict=True)),
        warnings=warnings,
        coding=configuration.agreed_coding,
    )


def plan_run(
    engine: Engine, configuration: Configuration, progress: Progress | None = None
) -> Plan:
    """Plan a run, without anonymizing. Costs and errors are those of :func:`check_input`."""
    inspection, generalizer, model = _inspect(engine, configuration, progress or Progress())
    columns = list(published_columns(configuration, generalizer))
    rows, task_rows = inspection.rows, configuration.execution.task_rows
    tasks = -(-rows // task_rows)
    return Plan(
        rows=inspection.rows_read,
        rows_dropped=inspection.rows_dropped,
        quasi_identifiers=inspection.quasi_identifiers,
        levels=(tasks - 1).bit_length(),
        tasks=tasks,
        rounds=model.rounds,
        nodes=model.nodes,
        columns=columns,
        output=engine.files.qualified(configuration.output.path),
        estimate=estimate_run(engine, configuration, rows, len(columns)),
        cluster=cluster_sizes(rows, tasks) if "spark" in engine.versions else None,
    )


def _inspect(
    engine: Engine, configuration: Configuration, progress: Progress
) -> tuple[Inspection, Generalizer, Model]:
    """Check the output, inspect the input, and create the generalizer and the model."""
    files = engine.files
    require_usable_output(files, configuration, writes=False)
    engine.require_format(configuration.output.format)
    require_usable_metrics(files, configuration)
    with progress.stage("read the input"), engine.reading(configuration.input.paths):
        inspection = inspect_input(engine, configuration)
    if configuration.output.mode == "overwrite":
        require_replaceable_release(files, configuration.output.path)
    criteria = Criteria(configuration.privacy.k)
    options = configuration.model
    if isinstance(options, MappingOptions):
        with progress.stage("read the mapping"):
            hierarchies = read_hierarchies(files, configuration)
            mapping = apply_mapping(
                engine, options, configuration, inspection.quasi_identifiers, hierarchies
            )
        generalizer = generalizer_of(configuration, mapping.quasi_identifiers)
        task = task_of(configuration, generalizer, criteria)
        return inspection, generalizer, mapping.make_model(task)
    generalizer = generalizer_of(configuration, inspection.quasi_identifiers)
    # A model may refuse what only the data show, such as levels that a hierarchy has not.
    return inspection, generalizer, first_model(configuration, generalizer, criteria)


def require_lattice(configuration: Configuration) -> FullDomainOptions:
    """Return the options of a model that searches a lattice.

    Raises ConfigurationError if the model is another one.
    """
    options = configuration.model
    if not isinstance(options, FullDomainOptions):
        raise ConfigurationError(
            f"--nodes: model.name is {options.name}, which searches no lattice. Expected "
            "full-domain or rho-gain. Leave --nodes out, or choose one of them"
        )
    return options


def preview_nodes(
    engine: Engine, configuration: Configuration, progress: Progress
) -> list[NodePreview]:
    """List the nodes that the first round of a run would consider.

    Only people who have the input may see them, and no release may publish them. Raises an error if
    the input or the criteria cannot be used, or the model searches no lattice. One pass over the
    input, which is staged as in a run, next to the output or at ``execution.staging_path``. Then
    the costs of the search. The staging is removed at the end.
    """
    options = require_lattice(configuration)
    run_id = uuid.uuid4().hex[:12]
    staging_path = configuration.execution.staging_path
    opening = open_staging(
        engine.files, configuration.output.path, run_id, staging_path=staging_path
    )
    with opening as staging, engine.running(run_id, progress):
        with progress.stage("prepare"):
            snapshot = prepare(engine, configuration, staging.records)
            with engine.reading(configuration.input.paths):
                snapshot = require_criteria(snapshot, configuration)
        generalizer = generalizer_of(configuration, snapshot.quasi_identifiers)
        model = FullDomain(options, task_of(configuration, generalizer, snapshot.criteria))
        with progress.stage("look at nodes", rows=snapshot.rows):
            table = Round(
                snapshot.records,
                snapshot.rows,
                1,
                last=model.rounds == 1,
                report=progress.report_step,
            )
            return model.preview(table)
