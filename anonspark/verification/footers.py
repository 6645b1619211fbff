"""Read the end of a Parquet or ORC file: its columns, its rows, and everything else there.

Readers see only the values that a footer points to, but every byte is published: values behind a
page or in a dictionary that no record has, notes, statistics. So a Parquet file of a release is
encoded again from its values, and every byte compared.
:mod:`anonspark.engine.parquet_encoding` alone writes these files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from anonspark.engine.parquet_encoding import WRITER, EncodedFile, Encoding
from anonspark.engine.raw_columns import flags
from anonspark.engine.tasks import Batches

TAIL_BYTES = 2**20
"""The last bytes of a file that are looked at first: most footers are far smaller."""

_PARQUET = b"PAR1"

# What Spark writes beside the columns of ORC files. Everything else may hold anything.
_SPARK = b"org.apache.spark.version"
_NUMBERS = r"\d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?"
_VERSION = re.compile(_NUMBERS.encode())
_WRITERS = re.compile(f"parquet-cpp-arrow version {_NUMBERS}")


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
    is_of_another_arrow : bool
        Whether its bytes were not compared, as another version of Arrow may encode otherwise.
    """

    rows: int
    names: list[str]
    columns: list[str]
    strange: list[str]
    runs: int = 0
    row_groups: int = 0
    is_of_another_arrow: bool = False

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
    schema = metadata.schema.to_arrow_schema().remove_metadata()
    footer = Footer(int(metadata.num_rows), list(schema.names), _columns(schema), [])
    if not whole:
        return footer
    encoding = Encoding.of(schema, _codec_of(metadata))
    if metadata.metadata != encoding.notes:
        return replace(footer, strange=["notes of the footer"])
    if metadata.created_by != WRITER and _WRITERS.fullmatch(metadata.created_by):
        return replace(footer, is_of_another_arrow=True)
    # Texts are decoded once for each entry of a dictionary, and compared by its numbers.
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    file = parquet.ParquetFile(pa.BufferReader(content), metadata=metadata, read_dictionary=texts)
    runs: list[int] = []
    encoded, position = EncodedFile(encoding), 0
    for part in encoded.parts(_row_groups(file, labels, runs)):
        if content[position : position + len(part)] != part:
            return replace(footer, strange=["bytes other than those of its values"])
        position += len(part)
    strange = [] if position == len(content) else ["bytes behind its end"]
    return replace(footer, strange=strange, runs=sum(runs), row_groups=len(runs))


def _codec_of(metadata: parquet.FileMetaData) -> str:
    """Return the codec of the first page, as Spark calls it."""
    if not metadata.num_row_groups:
        return "snappy"
    codec = str(metadata.row_group(0).column(0).compression).lower()
    return {"lz4": "lz4_raw"}.get(codec, codec)


def _row_groups(file: parquet.ParquetFile, labels: Sequence[str], runs: list[int]) -> Batches:
    """Yield the row groups of a file, and note how often labels change in each."""
    schema = file.metadata.schema.to_arrow_schema()
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, use_threads=False).combine_chunks()
        columns = dict(zip(group.column_names, (one.chunk(0) for one in group), strict=True))
        runs.append(_count_runs([columns[name] for name in labels if name in columns]))
        decoded = [
            one.dictionary_decode() if pa.types.is_dictionary(one.type) else one
            for one in columns.values()
        ]
        yield pa.RecordBatch.from_arrays(decoded, schema=schema)
    if not file.num_row_groups:
        yield pa.RecordBatch.from_pylist([], schema)


def _count_runs(columns: Sequence[pa.Array]) -> int:
    """Count how often rows differ from the row before, and one for the first row."""
    # Sets and bounds that are lists have no order of theirs; the others are enough.
    plain = [
        one.indices if pa.types.is_dictionary(one.type) else one
        for one in columns
        if not pa.types.is_nested(one.type)
    ]
    if not plain:
        return 0
    changes = np.zeros(len(plain[0]) - 1, bool)
    for column in plain:
        before, after = column[:-1], column[1:]
        changes |= flags(pc.not_equal(before, after).fill_null(fill_value=False))
        changes |= flags(pc.not_equal(before.is_null(), after.is_null()))
    return int(changes.sum()) + 1
