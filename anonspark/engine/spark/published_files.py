"""Writing the files of a release's tables, and listing what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.files import PublishedFile, literal
from anonspark.engine.spark.filesystem import FileSystem

# Whose files stand alone, so that they may have other names.
_PLAIN_FORMATS = ("parquet", "orc")

# A task holds a file that it hashes as a whole; larger ones are read by the driver, piece by piece.
_LARGEST_IN_TASK = 256 * 2**20
# What the driver reads itself, for that takes less time than a job: so many files and bytes.
_FILES_BY_DRIVER, _BYTES_BY_DRIVER = 16, 2**22


def hash_files(files: FileSystem, directory: str, sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the SHA-256 of files, in hexadecimal digits.

    Parameters
    ----------
    files : FileSystem
    directory : str
        An absolute address.
    sizes : mapping of str to int
        Of the files the bytes, by their paths relative to the directory.

    Returns
    -------
    dict of str to str
        In the order of the paths.

    Notes
    -----
    No job for a few small files, which the driver reads. Else one, whose tasks read every file
    below the directory once, in Java. Spark passes over names that begin with a dot or an
    underscore, and a task had to hold a large file as a whole: these are read by the driver, too.
    """
    few = len(sizes) <= _FILES_BY_DRIVER and sum(sizes.values()) <= _BYTES_BY_DRIVER
    by_path = {} if few else _hashes_of_tasks(files, directory)
    return {
        path: by_path.get(path) or files.sha256(f"{directory}/{path}") for path in sorted(sizes)
    }


def _hashes_of_tasks(files: FileSystem, directory: str) -> dict[str, str]:
    reader = files.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    found = (
        reader.load(literal(directory))
        .where(sf.col("length") <= _LARGEST_IN_TASK)
        .select("path", sf.sha2("content", 256).alias("sha256"))
        .collect()
    )
    start = len(directory.rstrip("/")) + 1
    return {row.path[start:]: row.sha256 for row in found}


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
    hashes = hash_files(files, directory, sizes)
    return [
        PublishedFile(path, sizes[path], (rows or {}).get(path), sha256)
        for path, sha256 in hashes.items()
    ]


def write_table(
    table: DataFrame, data_format: str, release: str, directory: str, aside: str
) -> list[PublishedFile]:
    """Write a table by Spark's own writer, and list what it has written.

    Parameters
    ----------
    table : DataFrame
        Its partitions become files, in their order, whose rows keep theirs.
    data_format : str
        A Spark data source.
    release : str
        The release's directory.
    directory : str
        To write to, relative to the release's; must not exist.
    aside : str
        Directory to write to before files get their names.

    Returns
    -------
    list of PublishedFile

    Notes
    -----
    The job that makes the table, one that counts the rows of each file that was written, and that
    of :func:`hash_files`.
    """
    files = FileSystem(table.sparkSession)
    path = f"{release}/{directory}"
    if data_format not in _PLAIN_FORMATS:
        # Its files may name each other.
        table.write.format(data_format).save(path)
    else:
        table.write.format(data_format).save(f"{aside}/{directory}")
        _take_over(files, f"{aside}/{directory}", path, data_format)
    reader = files.spark.read.format(data_format)
    if data_format in _PLAIN_FORMATS:
        # Or a job looks for the columns.
        reader = reader.schema(table.schema)
    counted = (
        reader.load(literal(path)).groupBy(sf.input_file_name().alias("file")).count().collect()
    )
    rows = {unquote(row.file).rpartition("/")[2]: row["count"] for row in counted}
    found = read_files(files, path)
    return [replace(one, path=f"{directory}/{one.path}", rows=rows.get(one.path)) for one in found]


def _take_over(files: FileSystem, aside: str, path: str, data_format: str) -> None:
    """Move the files of a table, under names that tell nothing but their order.

    Left behind are the marks of a finished job, for a release has one of its own.
    """
    names = [name for name, _ in files.files_below(aside) if name.startswith("part-")]
    # As Spark names them: part-00000-...
    names.sort(key=lambda name: (int(name.split("-")[1]), name))
    files.make_directory(path)
    for number, name in enumerate(names):
        files.rename(f"{aside}/{name}", f"{path}/part-{number:05d}.{data_format}")
    files.delete(aside)
