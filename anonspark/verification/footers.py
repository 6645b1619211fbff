"""Read the end of a Parquet or ORC file: its columns, its rows, and everything else there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from pyarrow import orc, parquet

from anonspark.verification.parquet_bytes import find_odd_part

TAIL_BYTES = 2**20
"""The last bytes of a file that are looked at first: most footers are far smaller."""

_PARQUET = b"PAR1"

# What Spark writes beside the columns of ORC files. Everything else may hold anything.
_SPARK = b"org.apache.spark.version"
_VERSION = re.compile(rb"\d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?")


@dataclass(frozen=True)
class Footer:
    """The content of the end of a file.

    Parameters
    ----------
    rows : int
    names : list of str
        Columns at the top, in order.
    columns : list of str
        Name and type of every column, in order, as they are stored.
    strange : list of str
        Names of what neither Spark nor we write, if it was looked for. No values.
    runs : int
        How often the labels change from one record to the next, and one for the first of a group.
    row_groups : int
    """

    rows: int
    names: list[str]
    columns: list[str]
    strange: list[str]
    runs: int = 0
    row_groups: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return asdict(self)


def tail_to_read(tail: bytes) -> int:
    """Return how many bytes at the end of a file are its footer, as its last ones say."""
    if tail.endswith(_PARQUET):
        return 8 + int.from_bytes(tail[-8:-4], "little")
    return len(tail)


def read_footer(tail: bytes, *, whole: bool = False, labels: Sequence[str] = ()) -> Footer | None:
    """Read the footer of a file.

    Parameters
    ----------
    tail : bytes
        The end of the file. The footer is in it as a whole.
    whole : bool
        Whether it is the whole file, and a Parquet file's other bytes are to be looked at, too.
    labels : sequence of str
        Columns whose changes from record to record are counted then.

    Returns
    -------
    Footer or None
        None where it is no footer of Parquet or ORC, or damaged.
    """
    try:
        if tail.endswith(_PARQUET):
            return _of_parquet(tail, whole=whole, labels=labels)
        file = orc.ORCFile(pa.BufferReader(tail))
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    notes = dict(file.schema.metadata or {})
    if _VERSION.fullmatch(notes.get(_SPARK, b"")):
        del notes[_SPARK]
    strange = [key.decode(errors="replace") for key in notes]
    return Footer(int(file.nrows), list(file.schema.names), _columns(file.schema), strange)


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}" for field in schema]


def _of_parquet(content: bytes, *, whole: bool, labels: Sequence[str]) -> Footer:
    metadata = parquet.read_metadata(pa.BufferReader(content))
    schema = metadata.schema.to_arrow_schema()
    odd = find_odd_part(content, metadata) if whole else None
    strange = [odd] if odd else []
    runs = 0
    if whole and labels and not strange and set(labels) <= set(schema.names):
        # Sets and bounds that are lists have no codes; the others are enough.
        plain = [name for name in labels if not pa.types.is_nested(schema.field(name).type)]
        runs = _runs(content, metadata, plain)
    return Footer(
        int(metadata.num_rows),
        list(schema.names),
        _columns(schema),
        strange,
        runs=runs,
        row_groups=int(metadata.num_row_groups),
    )


def _runs(content: bytes, metadata: parquet.FileMetaData, plain: Sequence[str]) -> int:
    """Count how often labels change, and one for the first record of each row group."""
    file = parquet.ParquetFile(
        pa.BufferReader(content), metadata=metadata, read_dictionary=list(plain)
    )
    runs = 0
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, columns=list(plain), use_threads=False)
        changes = np.zeros(max(len(group) - 1, 0), bool)
        for column in group.combine_chunks().columns:
            if len(group):
                codes = column.chunk(0)
                if not pa.types.is_dictionary(codes.type):
                    codes = codes.dictionary_encode()
                codes = codes.indices.fill_null(-1).to_numpy()
                changes |= codes[1:] != codes[:-1]
        runs += int(changes.sum()) + bool(len(group))
    return runs
