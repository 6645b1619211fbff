"""The rounds: every model's table goes through it, its outliers again, up to ρ times."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.columns import PART, PENALTY, WHOLE_PENALTY, WHOLE_SQUARES, Part
from anonspark.core.criteria import Criteria
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.metrics import RoundResult
from anonspark.layers.generalize.figures import class_schema
from anonspark.layers.prepare.sensitive import count_values
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.layers.publish.run_state import FinishedRound
from anonspark.layers.publish.staging import Staging
from anonspark.models.model import Model, Round
from anonspark.progress import Progress
from anonspark.staged.records import PACKED, ROWS, Records

# Begins the names of the attempts' folders.
_ATTEMPT = "attempt"

_LOGGER = logging.getLogger(__name__)

__all__ = ["Residual", "StagedRounds", "run_rounds"]


@dataclass(frozen=True)
class Residual:
    """Records that no round found a class for.

    Parameters
    ----------
    records : Records
        As staged, with their raw values.
    rows : int
        Their number.
    counts : list of int64 ndarray
        How often each value of each sensitive attribute of a criterion occurs among them.
    published : bool
        Whether they are published, all their quasi-identifiers suppressed.
    """

    records: Records
    rows: int
    counts: list[npt.NDArray[np.int64]]
    published: bool


@dataclass(frozen=True)
class StagedRounds:
    """What all rounds made together.

    Parameters
    ----------
    results : list of RoundResult
    finished : Records
        Those to publish, of :func:`anonspark.models.model.finished_schema`, read from the staging
        directory.
    classes : Records
        The finished classes, of :func:`anonspark.layers.generalize.figures.class_schema`.
    residual : Residual or None
        None where every record found a class.
    """

    results: list[RoundResult]
    finished: Records
    classes: Records
    residual: Residual | None


def run_rounds(
    model: Model,
    snapshot: Snapshot,
    criteria: Criteria,
    published: pa.Schema,
    *,
    staging: Staging,
    files: FileSystem,
    progress: Progress,
) -> StagedRounds:
    """Run a model's rounds until no record is left over, or no further round is worth it.

    Parameters
    ----------
    model : Model
    snapshot : Snapshot
        The prepared table.
    criteria : Criteria
        What classes have to satisfy; records that violate them as a whole cannot have a round of
        their own, unless the model may leave a residual.
    published : pyarrow.Schema
        Of :func:`anonspark.models.model.finished_schema`.
    staging : Staging
        Where each round's result is staged, and the rounds that an earlier attempt has finished:
        they are taken from there.
    files : FileSystem
    progress : Progress

    Returns
    -------
    StagedRounds

    Raises
    ------
    GuaranteeError
        If a residual that is to be published violates the criteria.

    Notes
    -----
    See docs/algorithms.md, Rounds. A round is one job that writes its result, besides the passes of
    the model; with criteria beyond k one more counts the sensitive values of the records left over.
    A round whose records left over violate the criteria, or whose gain is below the model's
    smallest, is run again as the last one. Of a model that undoes rounds, the round that loses
    least as the last one is run again as such, where others came after it. A model that leaves a
    residual gets its rounds as long as they form classes.
    """
    results: list[RoundResult] = []
    tables: list[Round] = []
    directory = staging.rounds
    paths: list[str] = []
    table = Round(snapshot.records, snapshot.rows, 1, last=model.rounds == 1, tell=progress.tell)
    remaining: tuple[Records, int] | None = None
    while True:
        name = f"round {table.number} of {model.rounds}"
        finished = staging.state.finished_round(table.number)
        if finished is not None:
            progress.skip(name, rows=table.rows)
        else:
            with progress.stage(name, rows=table.rows):
                finished = _run_round(model, snapshot, criteria, staging, files, table, results)
            if finished is None:
                remaining = table.records, table.rows
                break
            staging.state.finish_round(finished)
        result = finished.result
        path = f"{directory}/round={table.number}/{finished.path}"
        paths.append(path)
        if result.left_over:
            left_over = _left_over(snapshot, path)
        results.append(result)
        tables.append(table)
        if not result.left_over:
            break
        if finished.last or result.left_over < criteria.k:
            remaining = left_over, result.left_over
            break
        number = table.number + 1
        table = replace(
            table,
            records=left_over,
            rows=result.left_over,
            number=number,
            last=number == model.rounds,
            mean_penalty=results[0].penalty_if_last / results[0].rows,
        )
    best = results.index(min(results, key=lambda one: one.penalty_if_last))
    if model.undoes_rounds and best + 1 < len(results):
        remaining = None
        paths[best:] = [_end_with(tables[best], model, snapshot, staging, progress, results)]
    residual = None
    classes = [f"{path}/{PART}={Part.CLASSES}" for path in paths]
    records = [f"{path}/{PART}={Part.FINISHED}" for path in paths]
    if remaining is not None:
        # Behind the rounds, so that it reads like one of them.
        number = results[-1].number + 1
        path = f"{directory}/round={number}/{_attempt(staging)}/{PART}={Part.SUPPRESSED}"
        residual = _stage_residual(model, *remaining, criteria, path)
        records += [path] * residual.published
    engine = snapshot.records.engine
    of_classes = class_schema(snapshot.records.schema, len(snapshot.quasi_identifiers))
    return StagedRounds(
        results,
        Records(engine.staged(records, PACKED), published),
        Records(engine.staged(classes, PACKED), of_classes),
        residual,
    )


def _run_round(
    model: Model,
    snapshot: Snapshot,
    criteria: Criteria,
    staging: Staging,
    files: FileSystem,
    table: Round,
    before: Sequence[RoundResult],
) -> FinishedRound | None:
    """Run a round, once more as the last one where its records left over ask for that.

    A round that will be undone is the last one as it is.
    """
    weights = [quasi_identifier.weight for quasi_identifier in snapshot.quasi_identifiers]
    # Each attempt has its own place: one that was thought dead may still be writing.
    name = _attempt(staging)
    path = f"{staging.rounds}/round={table.number}/{name}"
    result = _stage(model, path, table, weights, before)
    if result is None:
        return None
    if (
        result.left_over
        and not model.leaves_residual
        and (
            _gains_too_little(result, before, model)
            or not criteria.satisfied_by(
                result.left_over, count_values(_left_over(snapshot, path), criteria)
            )
        )
    ):
        table = replace(table, last=True)
        if not _will_be_undone(result, before, model):
            files.delete(path)
            result = _stage(model, path, table, weights, before) or result
    return FinishedRound(result, table.last, name)


def _end_with(
    table: Round,
    model: Model,
    snapshot: Snapshot,
    staging: Staging,
    progress: Progress,
    results: list[RoundResult],
) -> str:
    """Run a round again as the last one and undo those after it; return where it is staged.

    The results of the rounds that count stay in ``results``. The next attempt after one that is
    killed meanwhile comes to the same choice.
    """
    before_it = table.number - 1
    undone = [one.number for one in results[before_it:]]
    _LOGGER.info(
        "the release loses least if it ends with round %d: gcp_total %.6g, with %d rounds %.6g; "
        "the rounds after it are undone",
        table.number,
        results[before_it].penalty_if_last,
        len(results),
        results[-1].penalty_if_last,
    )
    weights = [quasi_identifier.weight for quasi_identifier in snapshot.quasi_identifiers]
    name = f"{_attempt(staging)}-last"
    path = f"{staging.rounds}/round={table.number}/{name}"
    with progress.stage(f"round {table.number} of {model.rounds}", rows=table.rows):
        result = _stage(model, path, replace(table, last=True), weights, results[:before_it])
        if result is None:
            raise TypeError(f"{type(model).__name__} made nothing of a round that it had made")
        for one in reversed(undone):
            staging.state.forget_round(one)
        staging.state.finish_round(FinishedRound(result, last=True, path=name))
    results[before_it:] = [result]
    return path


def _attempt(staging: Staging) -> str:
    return f"{_ATTEMPT}={staging.state.attempt}"


def _left_over(snapshot: Snapshot, path: str) -> Records:
    """Return the records that a staged round left over, as they were staged before it."""
    records = snapshot.records
    packed = records.engine.staged([f"{path}/{PART}={Part.LEFT_OVER}"], PACKED)
    return Records(packed, records.schema)


def _stage_residual(
    model: Model, records: Records, rows: int, criteria: Criteria, path: str
) -> Residual:
    counts = count_values(records, criteria)
    suppressed = model.suppress(records)
    if suppressed is None:
        return Residual(records, rows, counts, published=False)
    if not criteria.satisfied_by(rows, counts):
        violated = criteria.violated_by(rows, counts) if rows >= criteria.k else None
        what = (
            f"are fewer than k = {criteria.k}"
            if violated is None
            else f"violate {violated.describe()} on attribute {violated.attribute!r}"
        )
        raise GuaranteeError(
            f"model.residual: the {rows:,} records that no round found a class for {what} "
            "together, so they cannot be published as a class of their own, not even suppressed; "
            "set it to drop, or weaken the criteria; nothing was published"
        )
    suppressed.packed.stage(path)
    return Residual(records, rows, counts, published=True)


def _gains_too_little(result: RoundResult, before: Sequence[RoundResult], model: Model) -> bool:
    """Return whether ending with the round before would have lost hardly more."""
    if not before or not model.minimum_gain:
        return False
    without = before[-1].penalty_if_last
    return without - result.penalty_if_last < without * Decimal(str(model.minimum_gain))


def _will_be_undone(result: RoundResult, before: Sequence[RoundResult], model: Model) -> bool:
    """Return whether a last round goes anyway, for the release loses less without it.

    Run again as the last one, a round forms the same groups and so loses the same.
    """
    return model.undoes_rounds and any(
        one.penalty_if_last <= result.penalty_if_last for one in before
    )


def _stage(
    model: Model,
    path: str,
    table: Round,
    weights: Sequence[float],
    before: Sequence[RoundResult],
) -> RoundResult | None:
    """Anonymize a round's table, write the result, and return what it made, if anything."""
    anonymized = model.anonymize(table)
    if anonymized is None:
        return None
    sums = (ROWS, PENALTY, WHOLE_PENALTY, WHOLE_SQUARES)
    parts = (Part.FINISHED, Part.LEFT_OVER, Part.CLASSES)
    try:
        found = anonymized.rows.stage_parts(path, PART, parts, sums)
    finally:
        anonymized.release()
    left_over = int(found[Part.LEFT_OVER][ROWS] or 0)
    classes = found[Part.CLASSES]
    if_last = sum((one.penalty for one in before), classes[WHOLE_PENALTY] or Decimal(0))
    if model.leaves_residual:
        # Were this the last round, its records left over would be suppressed.
        if_last += left_over * sum(Decimal(str(weight)) for weight in weights)
    return RoundResult(
        number=table.number,
        rows=table.rows,
        left_over=left_over,
        penalty=classes[PENALTY] or Decimal(0),
        penalty_if_last=if_last,
        squares_if_whole=int(classes[WHOLE_SQUARES] or 0),
        levels=anonymized.levels,
    )
