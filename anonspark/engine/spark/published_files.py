"""Write the files of a release's tables by Spark, and list them."""

from __future__ import annotations

from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.files import Files, PublishedFile, literal
from anonspark.engine.spark.filesystem import files_of

# Formats whose files do not name each other, so that they can be renamed.
PLAIN_FORMATS = ("parquet", "orc")


def write_table(
    table: DataFrame, data_format: str, release: str, directory: str, aside: str
) -> list[PublishedFile]:
    """Write a table by Spark's writer to a new directory of a release, and list its files.

    Each partition becomes a file, in order, and its rows keep their order. Files are written to
    ``aside`` until they get their names. Two jobs: the table, and the rows of each file. The driver
    reads the files for their hashes.
    """
    files = files_of(table.sparkSession)
    path = f"{release}/{directory}"
    if data_format not in PLAIN_FORMATS:
        # Files of other formats may name each other.
        table.write.format(data_format).save(path)
    else:
        table.write.format(data_format).save(f"{aside}/{directory}")
        _take_over(files, f"{aside}/{directory}", path, data_format)
    reader = files.spark.read.format(data_format)
    if data_format in PLAIN_FORMATS:
        # Without a schema a job would infer one.
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
    """Move the files of a table to names that only show their order.

    The marks of a finished job stay behind, because a release has a separate mark.
    """
    names = [name for name, _ in files.files_below(aside) if name.startswith("part-")]
    # Spark's names: part-00000-...
    names.sort(key=lambda name: (int(name.split("-")[1]), name))
    files.make_directory(path)
    files.rename_each(
        {
            f"{aside}/{name}": f"{path}/part-{number:05d}.{data_format}"
            for number, name in enumerate(names)
        }
    )
    files.delete(aside)
