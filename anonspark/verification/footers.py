"""What the end of a Parquet or ORC file says: its columns, its rows, and whatever else is there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import orc, parquet

from anonspark.verification.parquet_bytes import find_odd_part

TAIL_BYTES = 2**20
"""The last bytes of a file that are looked at first: most footers are far smaller."""

_PARQUET = b"PAR1"

# What Spark and pyarrow write, with the form of its value. Everything else may hold anything.
_ROWS = "org.apache.spark.sql.parquet.row.metadata"
_ARROW = "ARROW:schema"
_SHORT = {
    "org.apache.spark.version": re.compile(r"\d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?"),
    "org.apache.spark.timeZone": re.compile(r"[A-Z][A-Za-z]{1,20}(?:[/_][A-Z][A-Za-z]{1,20}){0,4}"),
    "org.apache.spark.legacyDateTime": re.compile(""),
    "org.apache.spark.legacyINT96": re.compile(""),
}
_WRITER = re.compile(
    r"parquet-(?:mr|cpp|cpp-arrow) version \d+(?:\.\d+){1,3}(?:-[a-zA-Z]{1,12}(?:-?\d{1,6})?)?"
    r"(?: \(build [0-9a-f]{40}\))?"
)

# Types in Spark's JSON that are words, and how a text column was declared.
_TYPE = re.compile(
    r"string|byte|short|integer|long|float|double|boolean|binary|date|timestamp|timestamp_ntz|void"
    r"|variant|time\(\d\)|decimal\(\d{1,2},\d{1,2}\)|struct|array|map"
    r"|interval (?:year|month|day|hour|minute|second)(?: to (?:month|hour|minute|second))?"
)
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_DECLARATION = re.compile(r"(?:array<)*(?:var)?char\(\d{1,9}\)>*")


@dataclass(frozen=True)
class Footer:
    """What the end of a file says.

    Parameters
    ----------
    rows : int
    names : list of str
        Columns at the top, in order.
    columns : list of str
        Name and type of every column, in order, as they are stored.
    strange : list of str
        Names of what neither Spark nor we write; no values.
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

    def as_dict(self) -> dict[str, Any]:
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
        The end of the file; the footer is in it as a whole.
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
    names = list(file.schema.names)
    texts = _texts(file.schema.metadata)
    return Footer(
        int(file.nrows),
        names,
        [f"{field.name}: {field.type}" for field in file.schema],
        list(_strange(texts, file.schema)),
    )


def _of_parquet(content: bytes, *, whole: bool, labels: Sequence[str]) -> Footer:
    metadata = parquet.read_metadata(pa.BufferReader(content))
    schema = metadata.schema
    arrow = schema.to_arrow_schema()
    columns = [
        f"{one.path}: {one.physical_type} {one.logical_type} {one.converted_type} "
        f"{one.length} {one.precision} {one.scale} "
        f"{one.max_definition_level} {one.max_repetition_level}"
        for one in map(schema.column, range(len(schema)))
    ]
    strange = list(_strange(_texts(metadata.metadata), arrow))
    if not _WRITER.fullmatch(metadata.created_by or ""):
        strange.append("created_by")
    if whole and (odd := find_odd_part(content, schema)):
        strange.append(odd)
    runs = 0
    if whole and labels and not strange and set(labels) <= set(arrow.names):
        # Sets and bounds that are lists have no codes; the others are enough.
        plain = [name for name in labels if not pa.types.is_nested(arrow.field(name).type)]
        runs = _runs(content, metadata, plain)
    return Footer(
        int(metadata.num_rows),
        list(arrow.names),
        columns,
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


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (metadata or {}).items()
    }


def _strange(found: Mapping[str, str], schema: pa.Schema) -> Iterator[str]:
    """Find what may hold values of the data: unknown keys, and known ones that say more."""
    for key, value in found.items():
        if key == _ROWS:
            sound = _says_columns_only(value, schema)
        elif key == _ARROW:
            sound = _is_plain_schema(value, schema)
        else:
            sound = key in _SHORT and bool(_SHORT[key].fullmatch(value))
        if not sound:
            yield key


def _says_columns_only(text: str, schema: pa.Schema) -> bool:
    """Return whether Spark's own schema has the file's columns, and no metadata of columns."""
    try:
        described = json.loads(text, object_pairs_hook=_unlike)
        between = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
        if [one["name"] for one in described["fields"]] != schema.names or " " in between:
            return False
        return between.isprintable() and not any(_metadata_of(described, set(_names(schema))))
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _unlike(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; of two equal keys readers look at one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key that is there twice")
    return found


def _names(fields: Iterable[pa.Field]) -> Iterator[str]:
    for one in fields:
        yield one.name
        yield from _names(map(one.type.field, range(one.type.num_fields)))


def _metadata_of(described: object, names: set[str]) -> Iterator[str]:
    """Find metadata in a type of Spark's JSON at any depth, and what no type has."""
    if isinstance(described, list):
        for one in described:
            yield from _metadata_of(one, names)
        return
    if not isinstance(described, dict):
        if not isinstance(described, bool) and not _TYPE.fullmatch(str(described)):
            yield "value"
        return
    known = {"type", "fields", "nullable"}
    known |= {"elementType", "containsNull", "keyType", "valueType", "valueContainsNull"}
    for key, value in described.items():
        if key == "metadata":
            for name, declared in value.items():
                if name != _DECLARED or not _DECLARATION.fullmatch(str(declared)):
                    yield name
        elif key == "name" and value in names:
            continue
        elif key not in known:
            yield key
        else:
            yield from _metadata_of(value, names)


def _is_plain_schema(text: str, expected: pa.Schema) -> bool:
    """Return whether Arrow's own schema has the file's columns, and metadata of Spark at most."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (pa.ArrowException, ValueError, OSError):
        return False
    return (
        schema.names == expected.names
        # Nothing stands between what it says.
        and base64.b64encode(schema.serialize()).decode() == text
        and not any(_strange(_texts(schema.metadata), expected))
        and not any(field.metadata for field in schema)
    )
