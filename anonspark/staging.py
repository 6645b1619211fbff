"""Where a run keeps what is not published yet: private, and removed at the end.

The release is staged beside the output, so that a rename publishes it. Raw records and the run's
state (:mod:`anonspark.run_state`) are staged in the same directory, or below
``execution.staging_path``.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import SparkContext

from anonspark.errors import (
    AnonsparkError,
    ConfigurationError,
    GuaranteeError,
    PublishingError,
)
from anonspark.filesystem import FileSystem
from anonspark.publish.manifest import MANIFEST
from anonspark.run_state import RunState, is_at_work, newest_attempt

__all__ = [
    "Place",
    "Staging",
    "find_resumable",
    "find_stagings",
    "open_staging",
    "place_of",
    "remove_staging",
    "restore_output",
    "take_back",
]

_LOGGER = logging.getLogger("anonspark")

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Less than schedulers give a process between asking it to end and killing it.
_PATIENCE_SECONDS = 8.0

_MARK = ".anonspark-"


@dataclass(frozen=True)
class Place:
    """Where a run of an output is staged.

    Parameters
    ----------
    output : str
        Qualified output path.
    run_id : str
    root : str
        Directory beside the output.
    private : str
        Directory of raw records and state; the same one without ``execution.staging_path``.
    """

    output: str
    run_id: str
    root: str
    private: str

    @property
    def state(self) -> str:
        """Directory of the run's state."""
        return f"{self.private}/state"

    @property
    def replaced(self) -> str:
        """What was at the output path before, while the new release takes its place."""
        return f"{self.root}/replaced"

    @property
    def mark(self) -> str:
        """File in a release of this run that lacks its manifest: the run may take it back."""
        return f"{self.output}/{self.mark_name}"

    @property
    def mark_name(self) -> str:
        """Name of the file, the same while the release is staged."""
        return f".anonspark-{self.run_id}"

    @property
    def rounds(self) -> str:
        """Directory of the rounds of all attempts; raw records, never published."""
        return f"{self.private}/rounds"


@dataclass(frozen=True)
class Staging:
    """Addresses inside the staging directories, and the state of the run.

    Parameters
    ----------
    place : Place
    state : RunState
    """

    place: Place
    state: RunState

    @property
    def records(self) -> str:
        """Where this attempt keeps raw records; never published."""
        return f"{self.place.private}/records-{self.state.attempt}"

    @property
    def rounds(self) -> str:
        """Where the rounds of all attempts are kept; raw records, never published."""
        return self.place.rounds

    @property
    def release(self) -> str:
        """What becomes the output as a whole."""
        return f"{self.place.root}/release-{self.state.attempt}"

    @property
    def manifest(self) -> str:
        """Directory of the manifest, which is published last."""
        return f"{self.place.root}/manifest-{self.state.attempt}"


def place_of(files: FileSystem, output: str, run_id: str, staging_path: str | None) -> Place:
    """Return where a run of an output is staged; parameters as of :func:`open_staging`."""
    output = files.qualified(output).rstrip("/")
    parent, _, name = output.rpartition("/")
    root = f"{parent}/.{name}{_MARK}{run_id}"
    if staging_path is None:
        return Place(output, run_id, root, root)
    return Place(output, run_id, root, f"{_below(files, output, staging_path)}{run_id}")


def _below(files: FileSystem, output: str, staging_path: str) -> str:
    """Return how the private directories of an output begin, below ``execution.staging_path``."""
    # Outputs of the same name in different directories may share the path.
    own = hashlib.sha256(output.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    name = output.rpartition("/")[2]
    return f"{files.qualified(staging_path).rstrip('/')}/{name}-{own}{_MARK}"


def find_stagings(files: FileSystem, output: str, staging_path: str | None) -> list[Place]:
    """Return where runs of an output were staged and not removed: they were killed, or go on.

    Parameters
    ----------
    files : FileSystem
    output : str
    staging_path : str or None
        ``execution.staging_path``.

    Returns
    -------
    list of Place
        In the order of their run ids.
    """
    output = files.qualified(output).rstrip("/")
    parent, _, name = output.rpartition("/")
    beginnings = {parent: f".{name}{_MARK}"}
    if staging_path is not None:
        below, _, beginning = _below(files, output, staging_path).rpartition("/")
        beginnings[below] = beginning
    run_ids = {
        path.rpartition("/")[2].removeprefix(beginning)
        for directory, beginning in beginnings.items()
        for path in files.children(directory)
        if path.rpartition("/")[2].startswith(beginning)
    }
    return [place_of(files, output, run_id, staging_path) for run_id in sorted(run_ids)]


def find_resumable(files: FileSystem, output: str, staging_path: str | None) -> str | None:
    """Return the run id of the one run of an output that can be continued, None where none is.

    Raises
    ------
    ConfigurationError
        If there are several.
    """
    there = [
        place.run_id
        for place in find_stagings(files, output, staging_path)
        if files.exists(place.state)
    ]
    if len(there) > 1:
        raise ConfigurationError(
            f"--resume: found {len(there)} runs of {output} that were not finished: "
            f"{', '.join(there)}; expected one; name it with --run-id, and remove the others with "
            "anonspark clean"
        )
    return there[0] if there else None


def take_back(files: FileSystem, place: Place) -> None:
    """Undo what a killed run left half published; nothing happens where it is still at work."""
    if not is_at_work(files, place.state):
        restore_output(files, place)


def remove_staging(files: FileSystem, place: Place) -> bool:
    """Remove what a killed run left, after a look that it does not go on on this machine.

    A release that it had set aside comes back, and a new one that it had not finished publishing
    goes.

    Returns
    -------
    bool
        False where a process of this machine is at work on it: nothing is removed.

    Raises
    ------
    OSError
        If the file system refuses.
    """
    if is_at_work(files, place.state):
        return False
    _delete(files, place)
    return True


def restore_output(files: FileSystem, place: Place) -> None:
    """Undo a publication that did not come to its end, or end one that did: the manifest tells.

    Raises
    ------
    OSError
        If the file system refuses, or somebody else's data are where an earlier release was.
    """
    complete = files.exists(f"{place.output}/{MANIFEST}")
    if files.exists(place.mark):
        files.delete(place.mark if complete else place.output)
    if complete:
        files.delete(place.replaced)
    if not files.exists(place.replaced):
        return
    if files.exists(place.output):
        raise OSError(f"{place.output} is no release; the one before it is at {place.replaced}")
    files.rename(place.replaced, place.output)


def _delete(files: FileSystem, place: Place) -> None:
    # A release that was set aside is in there; if it cannot be put back nothing is deleted.
    restore_output(files, place)
    # The raw records first.
    for path in dict.fromkeys((place.private, place.root)):
        files.delete(path)


@contextmanager
def open_staging(
    files: FileSystem,
    output: str,
    run_id: str,
    *,
    staging_path: str | None = None,
    resume: bool = False,
) -> Iterator[Staging]:
    """Create a run's staging directory, and remove it at the end, however the run ends.

    Parameters
    ----------
    files : FileSystem
    output : str
        The output path.
    run_id : str
        Tells concurrent runs apart.
    staging_path : str or None
        ``execution.staging_path``; None stages raw records beside the output, too.
    resume : bool
        Whether to continue a run that left its staging directory; and to leave it, with the rounds
        that are finished, should this run fail in a way that another attempt may not.

    Yields
    ------
    Staging

    Raises
    ------
    PublishingError
        If a directory cannot be created, is there already and the run is not resumed, or belongs
        to a run that goes on.
    """
    place = place_of(files, output, run_id, staging_path)
    if not resume:
        for path in (place.root, place.private):
            if files.exists(path):
                raise PublishingError(
                    f"output.path: {path} is there already: a run of this id is going on, or was "
                    "killed and left raw records; continue it with --resume, or see to it that "
                    f"none is going on and remove it with anonspark clean --run-id {run_id}"
                )
    created = _first_missing_parent(files, place.root.rpartition("/")[0])
    keep = False
    state: RunState | None = None
    try:
        state = _open(files, place)
        staging = Staging(place, state)
        _remove_unfinished(files, staging)
        with _stoppable_jobs(files.spark.sparkContext, f"anonspark-{run_id}"):
            yield staging
    except BaseException as error:
        # Another attempt would meet the same classes.
        keep = resume and not isinstance(error, GuaranteeError)
        raise
    finally:
        _close(files, place, state, keep=keep)
        if created is not None:
            with _undisturbed(created):
                files.delete_if_empty(created)


def _open(files: FileSystem, place: Place) -> RunState:
    """Create the directories, as far as they are not there, and take the run over."""
    directory = place.root
    try:
        for directory in dict.fromkeys((place.root, place.private, place.state)):
            if not files.exists(directory):
                files.make_private_directory(directory)
        return RunState.claim(files, place.state)
    except AnonsparkError:
        raise
    except Exception as error:
        key = "output.path" if directory == place.root else "execution.staging_path"
        raise PublishingError(
            f"{key}: cannot create the staging directory {directory}; check that its parent can "
            "be written and has room"
        ) from error


def _remove_unfinished(files: FileSystem, staging: Staging) -> None:
    """Remove what earlier attempts did not finish, and make room for this one."""
    place, state = staging.place, staging.state
    restore_output(files, place)
    for attempt in range(1, state.attempt):
        before = Staging(place, RunState(files, place.state, attempt))
        for path in (before.records, before.release, before.manifest):
            files.delete(path)
    number = 1
    while (finished := state.finished_round(number)) is not None:
        for path in files.children(f"{place.rounds}/round={number}"):
            if not path.endswith(f"/{finished.path}"):
                files.delete(path)
        number += 1
    # What follows a round that is not finished is a residual.
    while files.exists(f"{place.rounds}/round={number}"):
        files.delete(f"{place.rounds}/round={number}")
        number += 1
    files.make_directory(staging.release)
    files.make_directory(staging.manifest)


def _close(files: FileSystem, place: Place, state: RunState | None, *, keep: bool) -> None:
    """Remove the staging directories, or what cannot be of use to another attempt."""
    with _undisturbed(place.private):
        newest = newest_attempt(files, place.state)
        if newest > (0 if state is None else state.attempt):
            # It belongs to another process.
            return
        finished = state.rounds_finished if keep and state is not None else 0
        if state is None or not finished:
            _delete(files, place)
            return
        staging = Staging(place, state)
        for path in (staging.records, staging.release, staging.manifest):
            files.delete(path)
        state.end()
        _LOGGER.warning(
            "%s is kept, with raw records: %d finished rounds. Continue with --resume --run-id %s, "
            "or remove it with anonspark clean",
            place.private,
            finished,
            place.run_id,
        )


@contextmanager
def _undisturbed(path: str) -> Iterator[None]:
    """Clean up without hiding why the run ended."""
    try:
        yield
    except Exception:  # noqa: BLE001 - must not hide why the run ended
        _LOGGER.error(  # noqa: TRY400 - a stack trace tells nothing more
            "%s could not be removed; it may hold raw records: remove it", path
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
