"""Names of Spark's jobs: run, stage and what the stage is at, as Spark's interface shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from anonspark.progress import Progress
from anonspark.redaction import redact

_DESCRIPTION = "spark.job.description"


@contextmanager
def described_jobs(context: SparkContext, progress: Progress, run_id: str) -> Iterator[None]:
    """Describe the jobs of this thread by what a run is at; afterwards as they were before.

    Parameters
    ----------
    context : SparkContext
    progress : Progress
        Of the run; used in the thread that starts the jobs.
    run_id : str
    """
    before = context.getLocalProperty(_DESCRIPTION)

    def describe(moment: str) -> None:
        context.setLocalProperty(_DESCRIPTION, redact(f"anonspark {run_id}: {moment}"))

    describe("between stages")
    try:
        with progress.followed_by(describe):
            yield
    finally:
        # None takes it away.
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
