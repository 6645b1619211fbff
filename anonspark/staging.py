"""Where a run keeps what is not published yet: beside the output, private, removed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anonspark.errors import PublishingError
from anonspark.filesystem import FileSystem

__all__ = ["Staging", "open_staging"]


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
        If the directory cannot be created.
    """
    output = files.qualified(output).rstrip("/")
    parent, _, name = output.rpartition("/")
    staging = Staging(f"{parent}/.{name}.anonspark-{run_id}")
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
        yield staging
    finally:
        files.delete(staging.root)
        if created is not None:
            files.delete_if_empty(created)


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
