"""The files of a release: where each lies, how large it is, and a hash of its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import functions as sf

from anonspark.engine.spark.filesystem import FileSystem

__all__ = ["PublishedFile", "hash_files", "read_files"]

# A task holds a file that it hashes as a whole; larger ones are read by the driver, piece by piece.
_LARGEST_IN_TASK = 256 * 2**20


@dataclass(frozen=True)
class PublishedFile:
    """A file of a release.

    Parameters
    ----------
    path : str
        Relative to the release's directory, with slashes.
    bytes : int
    rows : int or None
        None for a file that is no part of a table.
    sha256 : str
        Of its content, in hexadecimal digits.
    """

    path: str
    bytes: int
    rows: int | None
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as the manifest lists it."""
        return asdict(self)


def hash_files(files: FileSystem, directory: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of files, in hexadecimal digits.

    Parameters
    ----------
    files : FileSystem
    directory : str
        An absolute address.
    paths : sequence of str
        Of the files, relative to the directory.

    Returns
    -------
    dict of str to str
        In the order of the paths.

    Notes
    -----
    One job, whose tasks read every file below the directory once, in Java. Spark passes over names
    that begin with a dot or an underscore, and a task had to hold a large file as a whole: these
    are read by the driver.
    """
    reader = files.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    found = (
        reader.load(directory)
        .where(sf.col("length") <= _LARGEST_IN_TASK)
        .select("path", sf.sha2("content", 256).alias("sha256"))
        .collect()
        if paths
        else []
    )
    start = len(directory.rstrip("/")) + 1
    by_path = {row.path[start:]: row.sha256 for row in found}
    return {path: by_path.get(path) or files.sha256(f"{directory}/{path}") for path in paths}


def read_files(
    files: FileSystem, directory: str, rows: dict[str, int] | None = None
) -> list[PublishedFile]:
    """List every file below a directory by reading it, hidden ones too; costs as `hash_files`.

    Parameters
    ----------
    files : FileSystem
    directory : str
        An absolute address.
    rows : dict of str to int or None
        Of the files of tables, by relative path; the others have none.

    Returns
    -------
    list of PublishedFile
        Sorted by path, which is relative to the directory.
    """
    sizes = dict(files.files_below(directory))
    hashes = hash_files(files, directory, sorted(sizes))
    return [
        PublishedFile(path, sizes[path], (rows or {}).get(path), sha256)
        for path, sha256 in hashes.items()
    ]
