"""The two ways to look before a run: check and plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anonspark.config import Configuration
from anonspark.config.coding import Coding
from anonspark.config.models import MappingOptions
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Engine
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.snapshot import Inspection, inspect_input
from anonspark.layers.publish.metrics_paths import require_usable_metrics
from anonspark.layers.publish.paths import require_replaceable_output, require_usable_output
from anonspark.layers.publish.writing import published_names
from anonspark.models.model import Model
from anonspark.pipeline.estimate import Estimate, estimate_run
from anonspark.pipeline.mapping import apply_mapping
from anonspark.pipeline.repeats import Repeat, repeats_of_identifiers, repeats_of_others
from anonspark.pipeline.tasks import first_model, generalizer_of, sensitive_values, task_of
from anonspark.pipeline.warnings.dropped_records import dropped_record_warnings
from anonspark.pipeline.warnings.input_warnings import warn_of_input
from anonspark.pipeline.warnings.release_warning import ReleaseWarning, tell_warnings
from anonspark.progress import Progress
from anonspark.redaction import Redacted


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
    estimate : Estimate
        Of its seconds and bytes.
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

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "rows": self.rows,
            "rows_to_drop": self.rows_dropped,
            "rounds": self.rounds,
            "levels": None if self.nodes is not None else self.levels,
            "tasks": None if self.nodes is not None else self.tasks,
            "nodes": self.nodes,
            "quasi_identifiers": [
                {"name": one.name, "kind": one.kind} for one in self.quasi_identifiers
            ],
            "columns": self.columns,
            "output": self.output,
            "estimate": self.estimate.as_dict(),
        }


@dataclass(frozen=True, repr=False)
class Checked(Redacted):
    """What a look at the input found.

    Parameters
    ----------
    rows : int
        Rows of the input.
    rows_dropped : int
        Of them, those that the policy for missing values drops.
    missing : dict of str to int
        Missing values of each quasi-identifier.
    warnings : list of ReleaseWarning
        What can be known before a run; they are in the log, too.
    coding : Coding or None
        What the configuration follows.
    repeats : list of Repeat
        Columns of people who have several records, where k counts records.
    k : int
    """

    rows: int
    rows_dropped: int
    missing: dict[str, int]
    warnings: list[ReleaseWarning]
    coding: Coding | None
    repeats: list[Repeat]
    k: int


def check_input(
    engine: Engine, configuration: Configuration, progress: Progress | None = None
) -> Checked:
    """Validate configuration and data without anonymizing.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    progress : Progress or None
        Where to tell what is going on.

    Returns
    -------
    Checked

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
    published as they are. Without ``privacy.unit`` two more over all columns, for
    :func:`anonspark.pipeline.repeats.repeats_of_others`. Nothing is written.
    """
    progress = progress or Progress()
    inspection, _, _ = _look(engine, configuration, progress)
    with (
        progress.stage("count who is singled out", rows=inspection.rows),
        engine.reading(configuration.input.paths),
    ):
        warnings, sizes = warn_of_input(
            inspection.kept,
            configuration,
            inspection.rows,
            sensitive_values(inspection.criteria),
            inspection.quasi_identifiers,
        )
        warnings += dropped_record_warnings(
            inspection.rows_dropped, inspection.rows, configuration.privacy.k
        )
        source = engine.open_source(configuration)
        others = repeats_of_others(configuration, source, inspection.rows_read)
        warnings += [one.warning(configuration) for one in others]
        repeats = repeats_of_identifiers(sizes, configuration) + others
    tell_warnings(warnings)
    return Checked(
        rows=inspection.rows_read,
        rows_dropped=inspection.rows_dropped,
        missing=dict(zip(configuration.quasi_identifiers, inspection.missing, strict=True)),
        warnings=warnings,
        coding=configuration.agreed_coding,
        repeats=repeats,
        k=configuration.privacy.k,
    )


def plan_run(
    engine: Engine, configuration: Configuration, progress: Progress | None = None
) -> Plan:
    """Tell what a run would do, without anonymizing; costs and errors as :func:`check_input`."""
    inspection, generalizer, model = _look(engine, configuration, progress or Progress())
    columns = published_names(configuration, generalizer)
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
        estimate=estimate_run(engine.files, configuration, rows, len(columns)),
    )


def _look(
    engine: Engine, configuration: Configuration, progress: Progress
) -> tuple[Inspection, Generalizer, Model]:
    """Look at the output, the input, and at what a model would make of it."""
    files = engine.files
    require_usable_output(files, configuration, writes=False)
    engine.require_format(configuration.output.format)
    require_usable_metrics(files, configuration)
    with progress.stage("read the input"), engine.reading(configuration.input.paths):
        inspection = inspect_input(engine, configuration)
    if configuration.output.mode == "overwrite":
        require_replaceable_output(files, configuration)
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
