"""The rounds: every model's table goes through it, its outliers again, up to ρ times."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from anonspark.columns import FINISHED
from anonspark.filesystem import FileSystem
from anonspark.models.model import Model, Round
from anonspark.prepare.snapshot import Snapshot
from anonspark.progress import Progress

__all__ = ["RoundResult", "run_rounds"]


@dataclass(frozen=True)
class RoundResult:
    """What a round made.

    Parameters
    ----------
    number : int
        1, 2, ...
    rows : int
        Records of its table.
    left_over : int
        Records that went to the next round.
    """

    number: int
    rows: int
    left_over: int


def run_rounds(
    model: Model,
    snapshot: Snapshot,
    *,
    k: int,
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
    k : int
        Fewer records than this cannot have a round of their own.
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
    A round is one job that writes its result, besides the passes of the model. A round that leaves
    fewer than k records is run again as the last one.
    """
    results: list[RoundResult] = []
    spark = snapshot.records.sparkSession
    records, rows = snapshot.records, snapshot.rows
    number = 1
    while rows > 0:
        last = number >= model.rounds
        path = f"{directory}/round={number}"
        with progress.stage(f"round {number} of {model.rounds}", rows=rows):
            left_over = _stage(model.anonymize(Round(records, rows, number, last)), path)
            if not last and 0 < left_over < k:
                files.delete(path)
                left_over = _stage(model.anonymize(Round(records, rows, number, True)), path)
        results.append(RoundResult(number, rows, left_over))
        rows = left_over
        if left_over:
            records = spark.read.parquet(f"{path}/{FINISHED}=false")
            records = records.select(*snapshot.records.columns)
        number += 1
    paths = [f"{directory}/round={result.number}/{FINISHED}=true" for result in results]
    return results, spark.read.option("basePath", directory).parquet(*paths)


def _stage(assigned: DataFrame, path: str) -> int:
    """Write a round's result and return how many records it left over."""
    observation = Observation("round")
    counted = assigned.observe(
        observation,
        sf.count_if(~sf.col(FINISHED)).alias("left_over"),
    )
    counted.write.partitionBy(FINISHED).parquet(path)
    return int(observation.get["left_over"])
