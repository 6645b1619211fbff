"""The rounds: every model's table goes through it, its outliers again, up to ρ times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from anonspark.columns import CLASS_SUMMARY, FINISHED
from anonspark.evaluate.metrics import RoundResult, exact, penalty_of_class
from anonspark.filesystem import FileSystem
from anonspark.models.model import Model, Round
from anonspark.prepare.sensitive import count_values
from anonspark.prepare.snapshot import Snapshot
from anonspark.privacy.criteria import Criteria
from anonspark.progress import Progress

__all__ = ["run_rounds"]


def run_rounds(
    model: Model,
    snapshot: Snapshot,
    criteria: Criteria,
    *,
    directory: str,
    files: FileSystem,
    progress: Progress,
) -> tuple[list[RoundResult], DataFrame]:
    """Run a model's rounds until no record is left over (DESIGN 4.5).

    Parameters
    ----------
    model : Model
    snapshot : Snapshot
        The prepared table.
    criteria : Criteria
        Records that violate them as a whole cannot have a round of their own.
    directory : str
        Where each round's result is staged; holds raw values.
    files : FileSystem
    progress : Progress

    Returns
    -------
    results : list of RoundResult
    finished : DataFrame
        Records of all finished classes, read from the staging directory, with their round in
        column ``round``.

    Notes
    -----
    A round is one job that writes its result, besides the passes of the model; with criteria
    beyond k one more counts the sensitive values of the records left over. A round whose records
    left over violate the criteria, or whose gain is below the model's smallest, is run again as
    the last one.
    """
    results: list[RoundResult] = []
    spark = snapshot.records.sparkSession
    weights = [quasi_identifier.weight for quasi_identifier in snapshot.quasi_identifiers]
    table = Round(snapshot.records, snapshot.rows, 1, last=model.rounds == 1)
    while True:
        path = f"{directory}/round={table.number}"
        with progress.stage(f"round {table.number} of {model.rounds}", rows=table.rows):
            result = _stage(model.anonymize(table), path, table, weights, results)
            if result.left_over:
                left_over = spark.read.parquet(f"{path}/{FINISHED}=false")
                left_over = left_over.select(*snapshot.records.columns)
                if _gains_too_little(result, results, model) or not criteria.satisfied_by(
                    result.left_over, count_values(left_over, criteria)
                ):
                    files.delete(path)
                    table = replace(table, last=True)
                    result = _stage(model.anonymize(table), path, table, weights, results)
        results.append(result)
        if not result.left_over:
            break
        number = table.number + 1
        table = Round(left_over, result.left_over, number, last=number == model.rounds)
    paths = [f"{directory}/round={result.number}/{FINISHED}=true" for result in results]
    return results, spark.read.option("basePath", directory).parquet(*paths)


def _gains_too_little(result: RoundResult, before: Sequence[RoundResult], model: Model) -> bool:
    """Return whether ending with the round before would have lost hardly more."""
    if not before or not model.minimum_gain:
        return False
    without = before[-1].penalty_if_last
    return without - result.penalty_if_last < without * Decimal(str(model.minimum_gain))


def _stage(
    assigned: DataFrame,
    path: str,
    table: Round,
    weights: Sequence[float],
    before: Sequence[RoundResult],
) -> RoundResult:
    """Write a round's result and return what it made."""
    observation = Observation("round")
    counted = assigned.observe(
        observation,
        sf.count_if(~sf.col(FINISHED)).alias("left_over"),
        sf.sum(exact(penalty_of_class(weights))).alias("penalty"),
        sf.sum(exact(sf.col(f"{CLASS_SUMMARY}.whole_penalty"))).alias("whole_penalty"),
    )
    counted.write.partitionBy(FINISHED).parquet(path)
    found = observation.get
    finished_before = sum((one.penalty for one in before), Decimal(0))
    return RoundResult(
        number=table.number,
        rows=table.rows,
        left_over=int(found["left_over"]),
        penalty=found["penalty"],
        penalty_if_last=finished_before + found["whole_penalty"],
    )
