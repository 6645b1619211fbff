"""Where a run keeps what is not published yet: beside the output, private, removed at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import SparkContext

from anonspark.errors import PublishingError
from anonspark.filesystem import FileSystem

__all__ = ["Staging", "open_staging"]

_LOGGER = logging.getLogger("anonspark")

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Less than schedulers give a process between asking it to end and killing it.
_PATIENCE_SECONDS = 8.0


@dataclass(frozen=True)
class Staging:
    """Addresses inside the staging directory.

    Parameters
    ----------
    root : str
        The directory; a sibling of the output, so that a rename publishes.
    """

    root: str

    @property
    def records(self) -> str:
        """Where raw records are kept; never published."""
        return f"{self.root}/records"

    @property
    def release(self) -> str:
        """What becomes the output as a whole."""
        return f"{self.root}/release"


@contextmanager
def open_staging(files: FileSystem, output: str, run_id: str) -> Iterator[Staging]:
    """Create a run's staging directory, and remove it at the end, however the run ends.

    Parameters
    ----------
    files : FileSystem
    output : str
        The output path.
    run_id : str
        Tells concurrent runs apart.

    Yields
    ------
    Staging

    Raises
    ------
    PublishingError
        If the directory cannot be created, or is there already.
    """
    output = files.qualified(output).rstrip("/")
    parent, _, name = output.rpartition("/")
    staging = Staging(f"{parent}/.{name}.anonspark-{run_id}")
    if files.exists(staging.root):
        raise PublishingError(
            f"output.path: {staging.root} is there already: a run of this id is going on, or was "
            "killed and left raw records; see to it that none is. If it holds a folder 'replaced', "
            "that is the release that was there before: rename it back. Then remove the directory "
            "and run again"
        )
    created = _first_missing_parent(files, parent)
    try:
        try:
            files.make_private_directory(staging.root)
            files.make_directory(staging.release)
        except Exception as error:
            raise PublishingError(
                f"output.path: cannot create the staging directory {staging.root}; check that "
                f"{parent} can be written and has room"
            ) from error
        with _stoppable_jobs(files.spark.sparkContext, f"anonspark-{run_id}"):
            yield staging
    finally:
        try:
            files.delete(staging.root)
            if created is not None:
                files.delete_if_empty(created)
        except Exception:  # noqa: BLE001 - must not hide why the run ended
            _LOGGER.error(  # noqa: TRY400 - a stack trace tells nothing more
                "%s could not be removed; it may hold raw records: remove it", staging.root
            )


def _first_missing_parent(files: FileSystem, path: str) -> str | None:
    """Return the topmost directory above a path that does not exist yet."""
    missing = None
    while not files.exists(path):
        missing = path
        above = files.parent(path)
        if above == path:
            break
        path = above
    return missing


@contextmanager
def _stoppable_jobs(context: SparkContext, group: str) -> Iterator[None]:
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
