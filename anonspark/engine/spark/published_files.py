"""Writing the files of a release's tables, and listing what was written."""

from __future__ import annotations

from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.files import Files, PublishedFile, literal
from anonspark.engine.spark.filesystem import files_of

# Whose files stand alone, so that they may have other names.
PLAIN_FORMATS = ("parquet", "orc")


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
        To write to, relative to the release's. Must not exist.
    aside : str
        Directory to write to before files get their names.

    Returns
    -------
    list of PublishedFile

    Notes
    -----
    The job that makes the table, and one that counts the rows of each file that was written. The
    driver reads the files for their hashes.
    """
    files = files_of(table.sparkSession)
    path = f"{release}/{directory}"
    if data_format not in PLAIN_FORMATS:
        # Its files may name each other.
        table.write.format(data_format).save(path)
    else:
        table.write.format(data_format).save(f"{aside}/{directory}")
        _take_over(files, f"{aside}/{directory}", path, data_format)
    reader = files.spark.read.format(data_format)
    if data_format in PLAIN_FORMATS:
        # Or a job looks for the columns.
        reader = reader.schema(table.schema)
    counted = (
        reader.load(literal(path)).groupBy(sf.input_file_name().alias("file")).count().collect()
    )
    rows = {unquote(row.file).rpartition("/")[2]: row["count"] for row in counted}
    return [
        PublishedFile(f"{directory}/{name}", size, rows.get(name), files.sha256(f"{path}/{name}"))
        for name, size in files.files_below(path)
    ]


def _take_over(files: Files, aside: str, path: str, data_format: str) -> None:
    """Move the files of a table, under names that only reveal their order.

    Left behind are the marks of a finished job, for a release has one of its own.
    """
    names = [name for name, _ in files.files_below(aside) if name.startswith("part-")]
    # As Spark names them: part-00000-...
    names.sort(key=lambda name: (int(name.split("-")[1]), name))
    files.make_directory(path)
    files.rename_each(
        {
            f"{aside}/{name}": f"{path}/part-{number:05d}.{data_format}"
            for number, name in enumerate(names)
        }
    )
    files.delete(aside)
