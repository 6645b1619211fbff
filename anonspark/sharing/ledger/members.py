"""Keep in a ledger the members of a release's classes, and their published columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.core.columns import SUBJECT
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Engine, Table

CLASS = "class"
"""xxHash64, as Spark has it, of what is published of a class."""

RECORDS = "records"
"""The number of records of a class."""

_SUBJECT_TYPE = pa.binary()
_FORMAT = "parquet"


def sensitive_column(index: int) -> str:
    """Return the column of the keyed hashes of a sensitive attribute."""
    return f"sensitive_{index}"


def members_schema(sensitive: int) -> pa.Schema:
    """Return the schema of members. ``sensitive`` is the number of sensitive attributes."""
    values = [(sensitive_column(index), pa.int64()) for index in range(sensitive)]
    return pa.schema([(SUBJECT, _SUBJECT_TYPE), (CLASS, pa.int64()), *values])


@dataclass(frozen=True)
class ReleaseFiles:
    """The files of one release in a ledger.

    Parameters
    ----------
    members, classes : list of PublishedFile
        Relative to their directories.
    """

    members: list[PublishedFile]
    classes: list[PublishedFile]

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the hashes of all files."""
        listed = [[file.path, file.sha256] for file in (*self.members, *self.classes)]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def keep(engine: Engine, table: Table, directory: str) -> list[PublishedFile]:
    """Write a table into a ledger.

    Parameters
    ----------
    engine : Engine
    table : Table
    directory : str
        Must not be there, but for what a process left that was killed.
    """
    files = engine.files
    files.delete(directory)
    files.make_private_directory(directory)
    written = table.publish(_FORMAT, directory, "data", f"{directory}/.writing")
    files.delete(f"{directory}/.writing")
    # Before an event says that it is there.
    files.sync_tree(directory)
    return written


def read_kept(engine: Engine, directory: str, columns: Sequence[str]) -> Table:
    """Return columns of a table that :func:`keep` wrote. Lazy."""
    return engine.published(f"{directory}/data", _FORMAT).select(list(columns))
