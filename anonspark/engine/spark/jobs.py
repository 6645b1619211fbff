"""Stop Spark jobs with the run that started them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anonspark.engine.spark.settings import is_of_connect

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Schedulers wait longer between asking a process to end and killing it.
_PATIENCE_SECONDS = 8.0

# Java ends the tasks of a stopped job in less time.
_PATIENCE_WITHOUT_REPORTS = 2.0


@contextmanager
def stoppable_jobs(context: SparkContext, group: str) -> Iterator[None]:
    """Stop the Spark jobs of a block if it raises an error, and wait for their tasks.

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


@contextmanager
def tagged_jobs(session: SparkSession, tag: str) -> Iterator[None]:
    """Stop the Spark jobs of a block on a server if it raises an error.

    The server does not report which tasks still run, so the block waits a fixed time for their end.
    """
    session.addTag(tag)
    try:
        yield
    except BaseException:
        # Wait also if another thread stopped the jobs: their tasks still run.
        with suppress(PySparkException):
            session.interruptTag(tag)
        time.sleep(_PATIENCE_WITHOUT_REPORTS)
        raise
    finally:
        session.removeTag(tag)


def stop_all_jobs(session: SparkSession) -> None:
    """Stop all jobs of a session."""
    if is_of_connect(session):
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()


def _has_running_tasks(context: SparkContext, group: str) -> bool:
    """Return whether tasks of a group of jobs still run."""
    tracker = context.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (
        tracker.getStageInfo(stage)
        for job in jobs
        if job is not None and job.status != "SUCCEEDED"
        for stage in job.stageIds
    )
    return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
