"""Spark jobs that end with the run that started them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Less than schedulers give a process between asking it to end and killing it.
_PATIENCE_SECONDS = 8.0


@contextmanager
def stoppable_jobs(context: SparkContext, group: str) -> Iterator[None]:
    """Run Spark jobs that are stopped, and their tasks waited for, if the block is left early.

    A task that went on would write records into the staging directory after its removal.
    """
    previous = {name: context.getLocalProperty(name) for name in _JOB_PROPERTIES}
    context.setJobGroup(group, "anonspark")
    try:
        yield
    except BaseException:
        tracker = context.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        if any(job is not None and job.status == "RUNNING" for job in jobs):
            context.cancelJobGroup(group)
        end = time.monotonic() + _PATIENCE_SECONDS
        while _has_running_tasks(context, group) and time.monotonic() < end:
            time.sleep(0.05)
        raise
    finally:
        for name, value in previous.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


def _has_running_tasks(context: SparkContext, group: str) -> bool:
    tracker = context.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (
        tracker.getStageInfo(stage)
        for job in jobs
        if job is not None and job.status != "SUCCEEDED"
        for stage in job.stageIds
    )
    return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
