"""Making a staged release the published one."""

from __future__ import annotations

from anonspark.errors import PublishingError
from anonspark.filesystem import FileSystem
from anonspark.staging import Staging

__all__ = ["commit"]


def commit(files: FileSystem, staging: Staging, output: str, *, overwrite: bool) -> None:
    """Rename a staged release to the output path; raw records are deleted first.

    Parameters
    ----------
    files : FileSystem
    staging : Staging
        Holds the complete, verified release.
    output : str
    overwrite : bool
        Whether what is there is replaced. It is set aside by a rename and comes back should the
        second rename fail.

    Raises
    ------
    PublishingError
        If the file system refuses; what was at the output path is there again.
    """
    set_aside = f"{staging.root}/replaced"
    replaced = False
    try:
        files.delete(staging.records)
        if files.exists(output):
            if not overwrite:
                raise PublishingError(
                    f"output.path: {output} appeared while the run was going on; nothing was "
                    "published. Choose another path or set output.mode to overwrite"
                )
            replaced = True
            files.rename(output, set_aside)
        files.rename(staging.release, output)
    except BaseException as error:
        # Ctrl-C, too, must not leave the output path empty.
        if replaced and files.exists(set_aside) and not files.exists(output):
            files.rename(set_aside, output)
        if isinstance(error, Exception) and not isinstance(error, PublishingError):
            raise PublishingError(
                f"output.path: the release could not be renamed to {output}; what was there "
                "before is unchanged. Check permissions and free space"
            ) from error
        raise
