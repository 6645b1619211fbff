"""Publish a staged release."""

from __future__ import annotations

import json

from anonspark.engine.files import Files
from anonspark.errors import AnonsparkError, PublishingError
from anonspark.layers.publish.paths import require_replaceable_release
from anonspark.layers.publish.staging import (
    Staging,
    find_stagings,
    putting_right,
    remove_staging,
    restore_output,
)
from anonspark.release.manifest import MANIFEST


def begin(files: Files, staging: Staging) -> None:
    """Create the directory that a release is written to.

    Raises PublishingError if a release is written in place, and something exists there or another
    run writes there.
    """
    paths = staging.paths
    if not staging.in_place:
        files.make_directory(staging.release)
        return
    if files.exists(paths.output):
        raise _appeared(staging)
    files.write_text(paths.mark, "")
    # If two runs come this far, the later one sees both marks.
    marks = [path for path in files.children(paths.output) if path != paths.mark]
    if marks:
        files.delete(paths.mark)
        raise _appeared(staging)
    _require_alone(files, staging)


def _require_alone(files: Files, staging: Staging) -> None:
    """Raise PublishingError if another run is replacing the release and renames take long.

    Each run first writes the names of its files, so the later run sees both lists.
    """
    paths = staging.paths
    if not files.rename_copies(paths.output):
        return
    for other in find_stagings(files, paths.output, None):
        is_replacing = files.exists(other.names) and not files.exists(other.mark)
        if other.run_id != paths.run_id and is_replacing:
            raise PublishingError(
                f"{paths.key}: run {other.run_id} is replacing what is at {paths.output}, or was "
                "killed while it did. Nothing was published. Wait until it has ended, or call "
                "anonspark clean"
            )


def _appeared(staging: Staging) -> PublishingError:
    paths = staging.paths
    advice = " or set output.mode to overwrite" if paths.key == "output.path" else ""
    return PublishingError(
        f"{paths.key}: {paths.output} appeared while the run was going on. Nothing was "
        f"published. Choose another path{advice}"
    )


def commit(files: Files, staging: Staging, *, overwrite: bool) -> None:
    """Rename a staged, verified release to the output path, and its manifest into it last.

    If a release was written in place, only the manifest makes it one. Readers that ask for the
    manifest first see a complete release or none. With ``overwrite``, an existing release is set
    aside by a rename, comes back if anything goes wrong, and is removed with the staging directory.

    Raises ConfigurationError if something that is no release came to the output path during the
    run, and PublishingError if the file system refuses, or another process has taken the run over:
    the output path is then as before.
    """
    paths, state = staging.paths, staging.state
    state.require_newest()
    try:
        # If this process is killed, these names distinguish its half release from other files.
        names = [path for path, _ in files.files_below(staging.release)]
        files.replace(paths.names, json.dumps(names).encode(), ".release-files.json.writing")
        if not staging.in_place:
            files.write_text(f"{staging.release}/{paths.mark_name}", "")
        # A power cut must not leave a manifest of files that are lost, nor a release without its
        # mark.
        files.sync_tree(staging.release)
        files.sync_tree(staging.manifest)
        if not staging.in_place:
            _replace_output(files, staging, overwrite=overwrite)
        # If a rename takes long, another process may have taken the run over meanwhile.
        state.require_newest()
        files.rename(f"{staging.manifest}/{MANIFEST}", f"{paths.output}/{MANIFEST}")
        # Synced before the replaced release is deleted.
        files.sync(paths.output)
    except BaseException as error:
        # Ctrl-C, too, must not leave the output path empty; but what another process has taken
        # over is its own.
        with putting_right(paths):
            is_newest = state.is_newest
        if is_newest and restore_output(files, paths) and isinstance(error, OSError):
            # The manifest has been renamed, and only the answer was lost.
            return
        if isinstance(error, Exception) and not isinstance(error, AnonsparkError):
            if not overwrite and files.exists(paths.output):
                # Another run was faster.
                raise _appeared(staging) from error
            raise PublishingError(
                f"{paths.key}: the release could not be renamed to {paths.output}. What was there "
                "before is unchanged. Check permissions and free space"
            ) from error
        raise


def _replace_output(files: Files, staging: Staging, *, overwrite: bool) -> None:
    """Rename a staged release to the output path, and set aside the one there.

    The earlier release goes to ``paths.replaced``, from where :func:`.staging.restore_output`
    brings it back. What its own run had not tidied up is deleted before. Raises as :func:`commit`.
    """
    paths = staging.paths
    _require_alone(files, staging)
    if files.exists(paths.output) or files.fault(paths.output):
        if not overwrite:
            raise _appeared(staging)
        # Checked again: what came there since the run began would be removed with the release.
        require_replaceable_release(files, paths.output)
        for other_run in find_stagings(files, paths.output, None):
            # A complete run that was killed or is still tidying up. Its mark, which shows that,
            # goes with its release.
            if other_run.run_id != paths.run_id and files.exists(other_run.mark):
                files.delete(other_run.replaced)
                remove_staging(files, other_run)
        files.rename(paths.output, paths.replaced)
    files.rename(staging.release, paths.output)
    files.sync_names(paths.output)
