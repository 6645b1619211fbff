"""The small tables of metrics of a release, which the driver reads without a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.files import Files
from anonspark.errors import DataError

# A few rows for each round or attribute are far smaller.
_LARGEST = 64 * 2**20


def read_parts(files: Files, release: str, name: str) -> Iterator[pa.Table]:
    """Yield the files of a table of metrics.

    Raises ValueError if one is too large, and an error of Arrow if it is damaged.
    """
    directory = f"{release}/metrics/{name}"
    for path, size in files.files_below(directory):
        if path.startswith(("_", ".")):
            continue
        if size > _LARGEST:
            raise ValueError("larger than any table of metrics")
        content = files.read_part(f"{directory}/{path}", 0, size)
        yield parquet.read_table(pa.BufferReader(content))


def read_metrics(files: Files, release: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of metrics, or an empty list if the release has no such table.

    Raises DataError if it cannot be read.
    """
    if not files.exists(f"{release}/metrics/{name}"):
        return []
    try:
        return [row for part in read_parts(files, release, name) for row in part.to_pylist()]
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DataError(
            f"{release}/metrics/{name}: cannot be read. Restore the release or publish it again"
        ) from error
