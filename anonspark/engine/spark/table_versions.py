"""Find the version of a table where its format keeps several: Delta Lake, Apache Iceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from anonspark.engine.spark.filesystem import files_of

# Options by which a configuration says itself what to read, as they are compared; the last ones are
# Iceberg's.
_CHOSEN = frozenset({"versionasof", "timestampasof", "branch", "tag"})

_VERSION = "versionAsOf"
"""Spark's option: a number of Delta's log, or a snapshot of Iceberg."""

_COMMIT = re.compile(r"(\d{20})\.json")


def current_version(
    spark: SparkSession, paths: Sequence[str], data_format: str, options: Mapping[str, str]
) -> dict[str, str]:
    """Return the option that reads a table as it is now, whatever is written to it afterwards.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        A table of these formats has one.
    data_format : str
        Of the data source.
    options : mapping of str to str
        Of the data source.

    Returns
    -------
    dict of str to str
        Empty where the format keeps no versions, the options name one, or the table has none yet.

    Raises
    ------
    PySparkException, Py4JError
        If the table cannot be opened.

    Notes
    -----
    Of Delta its log is listed. Of Iceberg a job reads one row of metadata.
    """
    kind = data_format.lower()
    given = {name.lower() for name in options}
    if kind not in ("delta", "iceberg") or given & _CHOSEN or len(paths) != 1:
        return {}
    (path,) = paths
    if kind == "delta":
        # The newest commit is never cleaned up; its number has as many digits in every table.
        listed = files_of(spark).children(f"{path.rstrip('/')}/_delta_log")
        names = (_COMMIT.fullmatch(one.rpartition("/")[2]) for one in listed)
        commits = [int(name[1]) for name in names if name is not None]
        return {_VERSION: str(max(commits))} if commits else {}
    references = spark.read.format(data_format).options(**options).load(f"{path}#refs")
    found = references.where(sf.col("name") == "main").select("snapshot_id").head()
    return {} if found is None else {_VERSION: str(found.snapshot_id)}
