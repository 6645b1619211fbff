"""Running a grid: the input is prepared once, each cell measured, its release deleted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from anonspark.comparison.evaluation import CellEvaluation, evaluation_notes
from anonspark.comparison.grid import Cell, Grid, Trial
from anonspark.comparison.report import write_report
from anonspark.comparison.table import (
    CELL_FILES,
    CellResult,
    cells_directory,
    comparison_rows,
    read_result,
    write_result,
    write_tables,
)
from anonspark.config import Configuration
from anonspark.config.models import model_in_words
from anonspark.engine.files import Files, require_ours
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.prepare.inspection import require_enough_rows
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.paths import require_usable_output
from anonspark.layers.publish.staging import Staging, open_staging
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.run import run
from anonspark.progress import InnerProgress, Progress
from anonspark.redaction import Redacted
from anonspark.release.layout import foreign_entries, named

_WORTH = 0.98
"""From this share of the loss on another model is not worth a change."""


@dataclass(frozen=True)
class Advice:
    """A sentence without a full stop, and the overrides of ``--set`` that follow from it, if any.

    >>> Advice("take canon", ("model.name=canon",)).command_line
    '--set model.name=canon'
    """

    sentence: str
    overrides: tuple[str, ...] = ()

    @property
    def command_line(self) -> str:
        """The options of the command line."""
        return " ".join(f"--set {shlex.quote(override)}" for override in self.overrides)

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return {"sentence": self.sentence, "set": list(self.overrides)}


def advise(trial: Trial, results: Sequence[CellResult]) -> Advice:
    """Say which model loses least at the configuration's k, and what more protection would cost.

    The results are of all cells, in their order: of equal losses the first is best.
    """
    losses = {
        (result.settings["model.name"], result.settings["privacy.k"]): result.summary
        for result in results
        if not result.refused
    }
    at_k = {name: summary for (name, k), summary in losses.items() if k == trial.k}
    if not at_k:
        return Advice(
            f"no model can keep what is required at k = {trial.k:,}: the reasons are above. Weaken "
            "what is required, or name fewer quasi-identifiers"
        )
    best = min(at_k, key=lambda name: float(at_k[name]["loss"]))
    least = float(at_k[best]["loss"])
    current = trial.model if trial.model in at_k else None
    if current is not None and least > _WORTH * float(at_k[current]["loss"]):
        best = current
    lost = float(at_k[best]["loss"])
    named = f"at k = {trial.k:,} {model_in_words(best)}"
    if best == current:
        named += (
            ", which the configuration has," if trial.names_model else ", which is the default,"
        )
    elif trial.model is None and best in ("smondrian", "su-mondrian", "microaggregation"):
        named += ", which model: auto may choose, too,"
    is_least = lost == least
    sentence = f"{named} loses {'least' if is_least else 'about as little as any'} (loss {lost:.4f}"
    if not is_least:
        sentence += f", the least is {least:.4f}"
    if current is not None and best != current:
        before = float(at_k[current]["loss"])
        sentence += f", {lost / before:.2f} of {current}'s {before:.4f}"
    elif trial.model is not None and current is None:
        sentence += f". {trial.model} is refused"
    sentence += f"){_left_out(at_k[best])}"
    more = [
        f"{float(summary['loss']):.4f} at k = {k:,}"
        for (name, k), summary in losses.items()
        if name == best and k > trial.k
    ]
    if more:
        sentence += f". It would lose {' and '.join(more)}"
    if best == current:
        return Advice(sentence)
    override = f"model={{name: {best}}}" if trial.has_options else f"model.name={best}"
    return Advice(sentence, (override,))


def _left_out(summary: Mapping[str, Any]) -> str:
    """Write how many records the winner leaves out, or "" if none."""
    left_out = summary.get("rows_left_out")
    if left_out == 0:
        return ""
    if left_out is None:
        return f" and leaves fewer than {summary['k']:,} records out"
    return f" and leaves {left_out:,} records out"


# Tables and report, and the cells that they are made of.
_OWN_FILES = re.compile(rf"metrics/part-00000\.parquet|metrics\.csv|report\.html|{CELL_FILES}")

# One comparison at a time writes to an output: a second one finds the staging directory there.
_STAGING = "comparison"


@dataclass(frozen=True, repr=False)
class Comparison(Redacted):
    """The figures of a comparison, below ``path``.

    ``rows`` is the table of metrics, best cells first among those with the same privacy settings.
    ``results`` are by name of the cell, in the order of the grid, ``ran`` counts the cells that
    were run, ``reused`` those whose figures existed. ``notes`` is what readers of evaluations have
    to know. ``advice`` exists if a configuration was given instead of a grid.
    """

    path: str
    rows: list[dict[str, Any]]
    results: dict[str, CellResult]
    ran: int
    reused: int
    notes: tuple[str, ...] = ()
    advice: Advice | None = None


def compare(
    engine: Engine,
    grid: Grid,
    progress: Progress | None = None,
    *,
    table: Table | None = None,
) -> Comparison:
    """Run the missing cells of a grid, and write the metrics of all its cells.

    Without a ``table`` the input is that of the base. One pass over the input, also if no cell is
    missing, to know whether it is still the same, and one over held-out records. Then each cell
    costs as much as a run that does not read the input, and with an evaluation as
    :meth:`anonspark.utility.evaluation.ReleaseEvaluator.measure`. A cell whose guarantee cannot be
    met is recorded with the reason, and the others go on. Raw records and releases are in a private
    staging directory next to the output, which is removed however the comparison ends.

    Raises ConfigurationError if the output is unusable, or holds other files or figures of another
    input, or if the data show that a cell is impossible, and as :func:`anonspark.pipeline.run.run`.
    Cells that were measured before such an error stay measured.
    """
    progress = progress or Progress()
    files = engine.files
    # If there are rows enough for the largest k, there are for all; of a trial some may fail.
    choose = max if grid.trial is None else min
    shared = choose(grid.cells, key=lambda cell: cell.configuration.privacy.k).configuration
    output = files.qualified(grid.output).rstrip("/")
    _require_own_output(files, shared, output)
    staging_path = shared.execution.staging_path
    # Resuming removes what a killed comparison staged. Its finished cells are in the output.
    opening = open_staging(files, output, _STAGING, staging_path=staging_path, resume=True)
    with opening as staging, engine.running(_STAGING, progress):
        with progress.stage("prepare"):
            source = None if table is None else partial(engine.open_input, source=table)
            snapshot = prepare(engine, shared, staging.records, source)
        # Before any work.
        require_enough_rows(snapshot.rows_read, snapshot.rows, shared.privacy.k)
        fingerprint = snapshot.content_fingerprint()
        evaluation = None
        if grid.evaluation is not None:
            evaluation = CellEvaluation(engine, grid.evaluation, shared)
            fingerprint = evaluation.fingerprint(fingerprint)
        earlier = {
            cell.id: read_result(files, output, cell, fingerprint)
            # A population may have changed since, and nothing would tell.
            if cell.configuration.privacy.delta_presence is None
            else None
            for cell in grid.cells
        }
        files.make_directory(cells_directory(output))
        results = dict(earlier)
        missing = [cell for cell in grid.cells if earlier[cell.id] is None]
        with ExitStack() as stack:
            measure = None
            if evaluation is not None and missing:
                opened = stack.enter_context(closing(evaluation.open()))
                measure = partial(evaluation.measure, opened)
            how = _CellRun(progress, measure, may_fail=grid.trial is not None)
            for number, cell in enumerate(missing, start=1):
                with progress.stage(f"setting {number} of {len(missing)}: {cell.words}"):
                    result = _run_cell(engine, cell, snapshot, fingerprint, staging, how)
                    write_result(files, output, result)
                results[cell.id] = result
    # In the order of the grid, which now has all results.
    return _written(files, grid, {key: cell for key, cell in results.items() if cell}, len(missing))


def _written(files: Files, grid: Grid, results: dict[str, CellResult], ran: int) -> Comparison:
    """Write the table and the page of a comparison."""
    measured = list(results.values())
    rows = comparison_rows(grid, measured)
    write_tables(files, grid, rows)
    notes = evaluation_notes([result.evaluation for result in measured])
    write_report(files, grid, rows, notes)
    advice = None if grid.trial is None else advise(grid.trial, measured)
    return Comparison(grid.output, rows, results, ran, len(results) - ran, tuple(notes), advice)


def _placed(configuration: Configuration, path: str, mode: str = "error") -> Configuration:
    """Return a copy of a configuration whose release goes to a path."""
    output = configuration.output.model_copy(update={"path": path, "mode": mode})
    return configuration.model_copy(update={"output": output})


def _require_own_output(files: Files, configuration: Configuration, output: str) -> None:
    """Raise ConfigurationError if the output overlaps the input, or has foreign files in it."""
    require_usable_output(files, _placed(configuration, output, "overwrite"))
    require_ours(files, "output", cells_directory(output))
    entries = files.tree(output)
    ours = {entry.path for entry in entries if _OWN_FILES.fullmatch(entry.path)}
    has_cells = any(path.startswith("cells/") for path in ours)
    if not has_cells and [entry.path for entry in entries] not in ([], ["cells"]):
        raise ConfigurationError(
            f"output: what is at {output} is not a comparison (it has no folder 'cells' with "
            "figures of cells). Choose another path or remove it yourself"
        )
    foreign = foreign_entries(files, output, entries, ours)
    foreign = [name for name in foreign if name != "cells/ (a directory)"]
    if foreign:
        raise ConfigurationError(
            f"output: what is at {output} is not only a comparison, because it also has files that "
            f"do not belong to it: {named(foreign)}. Move that elsewhere, or choose another path"
        )


# Metrics of a release that are rows, besides its summary.
_TABLES = ("rounds", "attributes", "privacy", "risk")


@dataclass(frozen=True)
class _CellRun:
    """What all cells share when they run.

    ``measure`` evaluates a release, or is None. ``may_fail`` records what the data show to be
    impossible as the cell's result, instead of raising it.
    """

    progress: Progress
    measure: Callable[[str], dict[str, Any]] | None
    may_fail: bool


def _run_cell(
    engine: Engine,
    cell: Cell,
    snapshot: Snapshot,
    fingerprint: str,
    staging: Staging,
    how: _CellRun,
) -> CellResult:
    """Make the release of a cell, measure it, and delete it. A refusal is part of the result."""
    # A cell is deleted unpublished, so it may lie in the private directory of the raw records.
    path = f"{staging.records}/cells/{cell.id}"
    inner = InnerProgress(outer=how.progress)
    tables: dict[str, Any] = {"summary": {}} | {name: [] for name in _TABLES}
    evaluated: dict[str, Any] = {}
    reason = None
    try:
        release = run(
            engine,
            _placed(cell.configuration, path),
            run_id=cell.id,
            progress=inner,
            snapshot=snapshot,
            purpose="comparison",
        )
        if how.measure is not None:
            with inner.stage("evaluate"):
                evaluated = how.measure(path)
    except GuaranteeError as error:
        reason = str(error)
    except (ConfigurationError, DataError) as error:
        if not how.may_fail:
            raise type(error)(
                *(f"{cell.words}: {problem}" for problem in error.problems)
            ) from error
        reason = str(error)
    else:
        # Of the cell's configuration, not of the one that names the place in the staging directory.
        identity = {"configuration_fingerprint": cell.configuration.fingerprint()}
        tables = {name: getattr(release, name) for name in _TABLES}
        tables["summary"] = release.summary | identity
        engine.files.delete(path)
    return CellResult(
        cell=cell.id,
        settings=cell.settings,
        input=fingerprint,
        reason=reason,
        configuration=cell.configuration.public_dict(),
        seconds=inner.seconds,
        evaluation=evaluated,
        **tables,
    )
