"""Stage a run: private directories for unpublished data, removed at the end.

The release is staged next to the output, so that a rename publishes it. Raw records and the run's
state (:mod:`anonspark.layers.publish.run_state`) are staged in the same directory, or below
``execution.staging_path``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from anonspark.engine.files import Files, holds_copies
from anonspark.errors import (
    AnonsparkError,
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    GuaranteeError,
    PublishingError,
)
from anonspark.layers.publish.run_state import RunState, is_at_work, newest_attempt
from anonspark.ownership import Access
from anonspark.release.layout import files_of_half_a_release, foreign_entries, named
from anonspark.release.manifest import MANIFEST, read_manifest

_LOGGER = logging.getLogger("anonspark")

_MARK = ".anonspark-"

_REPLACED = "replaced"
_NAMES = "release-files.json"
_LAST = f"{_MARK}{MANIFEST}"
_PRIVATE = "raw-records-at.txt"

# All names that runs use in their staging directories. Attempts are numbered. Hadoop's local file
# system adds checksums, and half-written files have the name of the whole one.
_STAGED = re.compile(
    r"state|rounds|kept|(?:records|release|written|manifest)-\d+|"
    rf"\.?(?:{'|'.join(map(re.escape, (_REPLACED, _NAMES, _PRIVATE)))})(?:\.writing)?(?:\.crc)?|"
    rf"\.\.{re.escape(_PRIVATE)}\.writing\.crc"
)


@dataclass(frozen=True)
class StagingPaths:
    """The staging directories of a run.

    ``output`` is the qualified output path, which ``key`` names in messages. ``root`` is a
    directory next to it, and ``private`` that of raw records and state: the same one without
    ``execution.staging_path``.
    """

    output: str
    run_id: str
    root: str
    private: str
    key: str = "output.path"

    @property
    def state(self) -> str:
        """Directory of the run's state."""
        return f"{self.private}/state"

    @property
    def replaced(self) -> str:
        """Return the path of the replaced release, while the new one takes its place."""
        return f"{self.root}/{_REPLACED}"

    @property
    def mark(self) -> str:
        """File in a release of this run that lacks its manifest: the run may take it back."""
        return f"{self.output}/{self.mark_name}"

    @property
    def mark_name(self) -> str:
        """Name of the file, the same while the release is staged."""
        return f".anonspark-{self.run_id}"

    @property
    def names(self) -> str:
        """File with the paths of all files of the release that is being published, as JSON."""
        return f"{self.root}/{_NAMES}"

    @property
    def rounds(self) -> str:
        """Directory of the rounds of all attempts. Raw records, never published."""
        return f"{self.private}/rounds"

    @property
    def shared(self) -> str:
        """Directory of what else all attempts share. Raw records, never published."""
        return f"{self.private}/kept"


@dataclass(frozen=True)
class Staging:
    """Addresses inside the staging directories, and the state of the run.

    If ``in_place``, the release is written to the output path at once, and is one as soon as its
    manifest is there: a rename would copy it all, and nothing is there to be replaced.
    """

    paths: StagingPaths
    state: RunState
    in_place: bool = False

    @property
    def records(self) -> str:
        """Return the directory of this attempt's raw records. Never published."""
        return f"{self.paths.private}/records-{self.state.attempt}"

    @property
    def rounds(self) -> str:
        """Return the directory of the rounds of all attempts. Raw records, never published."""
        return self.paths.rounds

    @property
    def release(self) -> str:
        """Return the directory that becomes the output as a whole."""
        if self.in_place:
            return self.paths.output
        return f"{self.paths.root}/release-{self.state.attempt}"

    @property
    def written(self) -> str:
        """Return the directory of tables that jobs write, before their files get their names."""
        return f"{self.paths.root}/written-{self.state.attempt}"

    @property
    def manifest(self) -> str:
        """Directory of the manifest, which is published last."""
        return f"{self.paths.root}/manifest-{self.state.attempt}"


def place_of(files: Files, output: str, run_id: str, staging_path: str | None) -> StagingPaths:
    """Return the staging directories of a run. See :func:`open_staging`."""
    output = files.qualified(output).rstrip("/")
    parent, _, name = output.rpartition("/")
    root = f"{parent}/.{name}{_MARK}{run_id}"
    if staging_path is None:
        return StagingPaths(output, run_id, root, root)
    return StagingPaths(output, run_id, root, f"{_below(files, output, staging_path)}{run_id}")


def _below(files: Files, output: str, staging_path: str) -> str:
    """Return how the private directories of an output begin, below ``execution.staging_path``."""
    return f"{files.qualified(staging_path).rstrip('/')}/{_private_name(output)}"


def _private_name(output: str) -> str:
    # Outputs of the same name in different directories may share the path.
    digest = hashlib.sha256(output.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{output.rpartition('/')[2]}-{digest}{_MARK}"


def find_stagings(files: Files, output: str, staging_path: str | None) -> list[StagingPaths]:
    """Return the staging directories of an output, by run id. Their runs were killed, or go on."""
    output = files.qualified(output).rstrip("/")
    beginnings = {files.parent(output): f".{output.rpartition('/')[2]}{_MARK}"}
    if staging_path is not None:
        beginnings[files.qualified(staging_path)] = _private_name(output)
    run_ids = {
        path.rpartition("/")[2].removeprefix(beginning)
        for directory, beginning in beginnings.items()
        for path in files.children(directory)
        if path.rpartition("/")[2].startswith(beginning)
    }
    places = [place_of(files, output, run_id, staging_path) for run_id in sorted(run_ids)]
    # They may have been started with another staging path.
    return [
        replace(paths, private=_stated_private(files, paths) or paths.private) for paths in places
    ]


def _private_file(paths: StagingPaths) -> str:
    return f"{paths.root}/{_PRIVATE}"


def _stated_private(files: Files, paths: StagingPaths) -> str | None:
    """Return the directory of raw records that the run's first attempt noted, or None.

    Raises PublishingError if no run of this output and id uses such a directory, because it would
    be removed.
    """
    path = _private_file(paths)
    with putting_right(paths):
        # A file that another user made is not trusted.
        if files.fault(paths.root, "private") is not None or not files.exists(path):
            return None
        text = files.read_text(path)
    if text != paths.root and text.rpartition("/")[2] != (
        _private_name(paths.output) + paths.run_id
    ):
        raise PublishingError(
            f"output.path: {path} names no staging directory of this run, so nothing is removed. "
            f"See where its raw records are, remove them and {paths.root} yourself"
        )
    return text


def find_resumable(files: Files, output: str, staging_path: str | None) -> str | None:
    """Return the id of the only run of an output that can be continued, or None.

    Raises ConfigurationError if there are several.
    """
    runs = [
        staging.run_id
        for staging in find_stagings(files, output, staging_path)
        if files.exists(staging.state)
    ]
    if len(runs) > 1:
        raise ConfigurationError(
            f"--resume: found {len(runs)} runs of {output} that were not finished: "
            f"{', '.join(runs)}. Expected one. Name it with --run-id, and remove the others with "
            "anonspark clean"
        )
    return runs[0] if runs else None


def remove_staging(files: Files, paths: StagingPaths) -> bool:
    """Remove what a killed run left, unless a process of this machine is at work on it.

    A release that it had set aside comes back, and a new one that it had not finished publishing
    goes. Returns False if nothing is removed. Raises PublishingError if the file system refuses, or
    it is unclear which of two releases is the right one.
    """
    with putting_right(paths):
        _require_ours(files, paths)
        if is_at_work(files, paths.state):
            return False
    _delete(files, paths)
    return True


def restore_output(files: Files, paths: StagingPaths) -> bool:
    """Undo an unfinished publication, or complete a finished one, as the manifest decides.

    - This run's mark and no manifest: half a release. Delete it, and put the earlier one back.
    - Mark and manifest: published. Delete the earlier one.
    - No mark, and nothing at the output: killed between two renames. Put the earlier one back.
    - No mark, and another release: delete the earlier one if the other is of a later run, else
      raise PublishingError and delete nothing.

    Returns whether the run's release is published. Also raises if the file system refuses.
    """
    with putting_right(paths):
        # The mark shows that the release is this run's, complete or not.
        is_ours = files.exists(paths.mark) and files.fault(paths.output) is None
        is_published = is_ours and files.exists(f"{paths.output}/{MANIFEST}")
        if is_ours and not is_published:
            _require_half_release(files, paths)
            files.delete(paths.output)
        if files.exists(paths.replaced):
            if not is_published and files.exists(paths.output):
                _delete_half_copy(files, paths)
            if is_published:
                files.delete(paths.replaced)
                # Synced before the mark goes, by which a later attempt recognizes its release.
                files.sync(paths.root)
            elif not files.exists(paths.output):
                _put_back(files, paths)
            elif files.exists(paths.replaced):
                if _is_superseded(files, paths):
                    files.delete(paths.replaced)
                    return False
                raise PublishingError(
                    f"output.path: something else is at {paths.output} since a run of it was "
                    f"killed. The release that was there before is at {paths.replaced}. Nothing is "
                    "deleted: see which of the two is right (anonspark verify), remove the other "
                    "or move it elsewhere, then run anonspark clean"
                )
        _rename_completely(files, paths.output, _LAST, MANIFEST)
        if is_published:
            files.delete(paths.mark)
        return is_published


def _is_superseded(files: Files, paths: StagingPaths) -> bool:
    """Return whether the output path has a release of a later run than the one set aside.

    Another run may publish while one is killed, or goes on, between its two renames.
    """
    try:
        manifests = [read_manifest(files, path) for path in (paths.replaced, paths.output)]
    except (DataError, GuaranteeError):
        return False
    earlier, later = (str(manifest.document.get("started") or "") for manifest in manifests)
    return "" < earlier <= later


def _put_back(files: Files, paths: StagingPaths) -> None:
    """Rename the replaced release to the output path. If that copies, its manifest comes last."""
    if files.rename_copies(paths.output):
        _rename_completely(files, paths.replaced, MANIFEST, _LAST)
    files.rename(paths.replaced, paths.output)


def _rename_completely(files: Files, directory: str, name: str, new_name: str) -> None:
    """Rename a file if it is there, also if an interrupted call had copied it."""
    source, target = f"{directory}/{name}", f"{directory}/{new_name}"
    if files.exists(source):
        if files.exists(target):
            files.delete(source)
        else:
            files.rename(source, target)


def _delete_half_copy(files: Files, paths: StagingPaths) -> None:
    """Delete what a stopped rename left of the replaced release, if renames copy.

    The release is whole at one of two paths that exist. Nothing is deleted unless it is.
    """
    for whole, part in ((paths.output, paths.replaced), (paths.replaced, paths.output)):
        if files.rename_copies(paths.output) and holds_copies(files, whole, part):
            files.delete(part)
            return


def _require_half_release(files: Files, paths: StagingPaths) -> None:
    """Raise PublishingError if a half-published release cannot be removed without foreign files."""
    entries = files.tree(paths.output)
    # Written before a release is renamed. What is written in its place has no list until then.
    names = (
        json.loads(files.read_text(paths.names))
        if files.exists(paths.names)
        else files_of_half_a_release(entries)
    )
    foreign = foreign_entries(files, paths.output, entries, names, marks=(paths.mark_name,))
    if foreign:
        raise PublishingError(
            f"output.path: a run was killed while it published, and since then {named(foreign)} "
            f"came to {paths.output}. Nothing is deleted. Move that elsewhere, then run anonspark "
            "clean"
        )


def _require_ours(files: Files, paths: StagingPaths, access: Access = "private") -> None:
    """Raise PublishingError if existing staging directories are not ours, or lead elsewhere."""
    for directory in dict.fromkeys((paths.root, paths.private)):
        fault = files.fault(directory, access)
        if fault is not None:
            raise PublishingError(f"{paths.key}: {directory} {fault}")
        for entry in files.tree(directory):
            if entry.kind not in ("file", "directory"):
                raise PublishingError(
                    f"{paths.key}: {directory}/{entry.path} is a link or a device, which no run "
                    f"makes. Nothing there is read or written. Remove {directory}"
                )


def _require_own_staging(files: Files, paths: StagingPaths) -> None:
    """Raise PublishingError if more than what runs stage would be removed."""
    # Some file systems have no permissions, and what was staged there must go, too.
    _require_ours(files, paths, "shared")
    for directory in dict.fromkeys((paths.private, paths.root)):
        inside = [path.rpartition("/")[2] for path in files.children(directory)]
        foreign = [name for name in inside if not _STAGED.fullmatch(name)]
        if foreign:
            raise PublishingError(
                f"output.path: {named(foreign)} in {directory} was not put there by a run. Nothing "
                "is deleted. Move that elsewhere, then run anonspark clean"
            )


def _delete(files: Files, paths: StagingPaths) -> None:
    """Remove everything that is staged, beginning with the raw records."""
    with putting_right(paths):
        _require_own_staging(files, paths)
        # First of all: what is left of a directory that is being deleted is not to be resumed.
        files.delete(paths.state)
        files.sync(paths.private)
        last = (_REPLACED, _NAMES, _PRIVATE)
        for directory in dict.fromkeys((paths.private, paths.root)):
            for path in files.children(directory):
                if path.rpartition("/")[2] not in last:
                    files.delete(path)
    restore_output(files, paths)
    with putting_right(paths):
        for path in dict.fromkeys((paths.private, paths.root)):
            files.delete(path)


@contextmanager
def putting_right(paths: StagingPaths) -> Iterator[None]:
    """Translate errors of a file system to PublishingError."""
    try:
        yield
    except (OSError, ConfigurationError, EnvironmentProblem) as error:
        raise PublishingError(
            f"output.path: what a run has left in {paths.root} cannot be put right. It may hold "
            f"raw records, and the release that was at {paths.output} before. Check disk, "
            "connection and permissions, then run anonspark clean"
        ) from error


@contextmanager
def open_staging(
    files: Files,
    output: str,
    run_id: str,
    *,
    staging_path: str | None = None,
    resume: bool = False,
    key: str = "output.path",
) -> Iterator[Staging]:
    """Create a run's staging directory, and remove it at the end, however the run ends.

    ``run_id`` distinguishes concurrent runs. ``staging_path`` is ``execution.staging_path``, or
    None to stage raw records next to the output as well. With ``resume``, a run continues that left
    its staging directory. If it fails again, but not for a reason that recurs, the directory stays
    with the finished rounds. Raises PublishingError if a directory cannot be created, exists and
    the run is not resumed, or belongs to a run that goes on.
    """
    paths = replace(place_of(files, output, run_id, staging_path), key=key)
    _require_ours(files, paths)
    if not resume:
        for path in (paths.root, paths.private):
            if files.exists(path):
                raise PublishingError(
                    f"{key}: {path} is there already: a run of this id is going on, or was "
                    "killed and left raw records. Continue it with --resume, or see to it that "
                    f"none is going on and remove it with anonspark clean --run-id {run_id}"
                )
    created = _first_missing_parent(files, files.parent(paths.root))
    keep = False
    state: RunState | None = None
    try:
        state = _open(files, paths)
        _remove_unfinished(files, Staging(paths, state))
        in_place = files.rename_copies(paths.output) and not files.exists(paths.output)
        yield Staging(paths, state, in_place)
    except BaseException as error:
        # Another attempt would meet the same classes.
        keep = resume and not isinstance(error, GuaranteeError)
        raise
    finally:
        _close(files, paths, state, keep=keep)
        if created is not None:
            with _undisturbed(created):
                files.delete_if_empty(created)


def _open(files: Files, paths: StagingPaths) -> RunState:
    """Create the directories that do not exist, and take over the run."""
    directory = paths.root
    try:
        for directory in dict.fromkeys((paths.root, paths.private, paths.state)):
            files.make_private_directory(directory)
        path = _stated_private(files, paths)
        if path is None:
            files.write_atomically(_private_file(paths), paths.private)
        elif path != paths.private:
            raise ConfigurationError(
                f"execution.staging_path: the run was started with raw records at {path}. Expected "
                "the same path, because its finished rounds are there. Undo the change, or begin "
                "anew after anonspark clean"
            )
        return RunState.claim(files, paths.state)
    except AnonsparkError:
        raise
    except Exception as error:
        key = paths.key if directory == paths.root else "execution.staging_path"
        raise PublishingError(
            f"{key}: cannot create the staging directory {directory}, or make it private. Check "
            "that its parent can be written and has room, and that no other user has made it"
        ) from error


def _remove_unfinished(files: Files, staging: Staging) -> None:
    """Remove what earlier attempts left unfinished, and create the directory of the manifest.

    An earlier release at the output comes back first. Then all goes but the rounds and facts that
    an attempt noted down as finished: this one goes on with them.
    """
    paths, state = staging.paths, staging.state
    restore_output(files, paths)
    with putting_right(paths):
        for attempt in range(1, state.attempt + 1):
            before = Staging(paths, RunState(files, paths.state, attempt))
            for path in (before.records, before.release, before.manifest):
                files.delete(path)
        finished: dict[str, str] = {}
        number = 1
        while (round_ := state.finished_round(number)) is not None:
            directory = f"{paths.rounds}/round={number}"
            if not files.exists(f"{directory}/{round_.path}"):
                # A process that was thought dead noted it down after all had been tidied up.
                state.forget_round(number)
                break
            finished[f"round={number}"] = round_.path
            number += 1
        for directory in files.children(paths.shared):
            if state.facts_of(directory.rpartition("/")[2]) is None:
                files.delete(directory)
        for directory in files.children(paths.rounds):
            finished_attempt = finished.get(directory.rpartition("/")[2])
            if finished_attempt is None:
                files.delete(directory)
                continue
            for attempt_directory in files.children(directory):
                if attempt_directory.rpartition("/")[2] != finished_attempt:
                    files.delete(attempt_directory)
        files.make_directory(staging.manifest)


def _close(files: Files, paths: StagingPaths, state: RunState | None, *, keep: bool) -> None:
    """Remove the staging directories, or only what another attempt cannot use."""
    with _undisturbed(paths.private):
        if newest_attempt(files, paths.state) and (state is None or not state.is_newest):
            # It belongs to another process.
            return
        finished = state.rounds_finished if keep and state is not None else 0
        shared = len(files.children(paths.shared)) if keep else 0
        if state is None or not finished + shared:
            _delete(files, paths)
            return
        staging = Staging(paths, state)
        for path in (staging.records, staging.release, staging.manifest):
            files.delete(path)
        state.end()
        _LOGGER.warning(
            "%s is kept, with raw records: %d finished %s%s. Continue with --resume --run-id %s, "
            "or remove it with anonspark clean",
            paths.private,
            finished or shared,
            "round" if finished else "step",
            "s" if (finished or shared) > 1 else "",
            paths.run_id,
        )
        restore_output(files, paths)


@contextmanager
def _undisturbed(path: str) -> Iterator[None]:
    """Clean up without hiding why the run ended."""
    try:
        yield
    except Exception:  # noqa: BLE001 - must not hide why the run ended
        _LOGGER.error(  # noqa: TRY400 - a stack trace adds nothing
            "%s could not be removed. It may hold raw records: remove it", path
        )


def _first_missing_parent(files: Files, path: str) -> str | None:
    """Return the topmost directory above a path that does not exist, or None if all exist."""
    missing = None
    while not files.exists(path):
        missing = path
        above = files.parent(path)
        if above == path:
            break
        path = above
    return missing
