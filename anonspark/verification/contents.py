"""Reading every file of a release once: its SHA-256, and what its footer says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from anonspark.engine.files import Entry
from anonspark.engine.protocol import Engine
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError
from anonspark.verification.footers import TAIL_BYTES, Footer, read_footer, tail_to_read

# A task holds a file as a whole; larger ones are read by the driver, piece by piece.
_LARGEST_IN_TASK = 256 * 2**20

_ROWS = pa.schema(
    [
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("footer", pa.string()),
        ("is_whole", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Content:
    """What was read of a file.

    Parameters
    ----------
    sha256 : str or None
        In hexadecimal digits; None where the file cannot be read, or not as Hadoop's checksum of
        it says.
    footer : Footer or None
        None where it is no file of Parquet or ORC.
    """

    sha256: str | None
    footer: Footer | None = None


def read_contents(engine: Engine, directory: str, entries: Iterable[Entry]) -> dict[str, Content]:
    """Read files.

    Parameters
    ----------
    engine : Engine
    directory : str
        Where they are.
    entries : iterable of Entry
        The files, relative to the directory.

    Returns
    -------
    dict of str to Content
        By relative path.

    Notes
    -----
    One job whose tasks read every file below the directory once: hashes in Java, footers (at most
    a mebibyte of each file) in Python; some lines for each file reach the driver. Files that Spark
    passes over (names with a dot or an underscore in front), or that are larger than 256 MiB, are
    read by the driver, which keeps none of them; so are all if the job fails, to tell which one
    cannot be read.
    """
    wanted = {entry.path: entry for entry in entries}
    address = engine.files.qualified(directory).rstrip("/")
    found = _in_tasks(engine, address) if any(map(_is_seen, wanted.values())) else {}
    return {
        path: found.get(path) or _by_driver(engine, f"{address}/{path}", entry.bytes)
        for path, entry in wanted.items()
    }


def _is_seen(entry: Entry) -> bool:
    """Return whether Spark looks at a file, and a task can hold it."""
    hidden = any(part.startswith((".", "_")) for part in entry.path.split("/"))
    return not hidden and 0 < entry.bytes <= _LARGEST_IN_TASK


def _in_tasks(engine: Engine, address: str) -> dict[str, Content]:
    try:
        table = engine.contents(address, largest=_LARGEST_IN_TASK, tail=TAIL_BYTES)
        rows = table.map_batches(_read_footers, _ROWS).collect().to_pylist()
    except engine.failures as error:
        if "cancelled" in str(error).lower():
            raise
        # Each file is tried alone: one that cannot be read is to be named.
        return {}
    return {
        row["path"]: Content(
            row["sha256"], None if row["footer"] is None else Footer(**json.loads(row["footer"]))
        )
        for row in rows
        if row["is_whole"]
    }


def _read_footers(batches: Batches) -> Batches:
    for batch in batches:
        tails = [tail.as_py() for tail in batch.column("tail")]
        footers = [read_footer(tail) for tail in tails]
        texts = [None if one is None else json.dumps(one.as_dict()) for one in footers]
        whole = [tail_to_read(tail) <= max(len(tail), 8) for tail in tails]
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("path"),
                batch.column("sha256"),
                pa.array(texts, pa.string()),
                pa.array(whole, pa.bool_()),
            ],
            schema=_ROWS,
        )


def _by_driver(engine: Engine, path: str, size: int) -> Content:
    files = engine.files
    failures: tuple[type[Exception], ...] = (OSError, ConfigurationError, *engine.failures)
    try:
        digest = files.sha256(path)
        length = min(size, TAIL_BYTES)
        tail = files.read_part(path, size - length, length)
        needed = min(tail_to_read(tail), size)
        if needed > length:
            tail = files.read_part(path, size - needed, needed)
    except failures:
        return Content(None)
    return Content(digest, read_footer(tail) if size else None)
