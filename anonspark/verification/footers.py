"""What the end of a Parquet or ORC file says: its columns, its rows, and whatever else is there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyarrow import orc, parquet

TAIL_BYTES = 2**20
"""The last bytes of a file that are looked at first: most footers are far smaller."""

_PARQUET = b"PAR1"

# What Spark and pyarrow write, with the form of its value. Everything else may hold anything.
_SHORT = re.compile(r"[\w.+:/-]{0,40}")
_ROWS = "org.apache.spark.sql.parquet.row.metadata"
_ARROW = "ARROW:schema"
_SHORT_KEYS = (
    "org.apache.spark.version",
    "org.apache.spark.timeZone",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
)
_WRITER = re.compile(r"parquet-(?:mr|cpp|cpp-arrow) version [\w.()+ -]{1,80}")

# How Spark keeps what a text column was declared as.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_DECLARATION = re.compile(r"(?:array|map|struct|char|varchar|[\w<>:,() ]){1,200}")


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
        Names of what neither Spark nor we write there; no values.
    """

    rows: int
    names: list[str]
    columns: list[str]
    strange: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def tail_to_read(tail: bytes) -> int:
    """Return how many bytes at the end of a file are its footer, as its last ones say."""
    if tail.endswith(_PARQUET):
        return 8 + int.from_bytes(tail[-8:-4], "little")
    return len(tail)


def read_footer(tail: bytes) -> Footer | None:
    """Read the footer of a file.

    Parameters
    ----------
    tail : bytes
        The end of the file; the footer is in it as a whole.

    Returns
    -------
    Footer or None
        None where it is no footer of Parquet or ORC, or damaged.
    """
    try:
        if tail.endswith(_PARQUET):
            return _of_parquet(parquet.read_metadata(pa.BufferReader(tail)))
        file = orc.ORCFile(pa.BufferReader(tail))
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    names = list(file.schema.names)
    texts = _texts(file.schema.metadata)
    return Footer(
        int(file.nrows),
        names,
        [f"{field.name}: {field.type}" for field in file.schema],
        list(_strange(texts, names)),
    )


def _of_parquet(metadata: Any) -> Footer:
    schema = metadata.schema
    names = list(schema.to_arrow_schema().names)
    columns = [
        f"{one.path}: {one.physical_type} {one.logical_type} {one.converted_type} "
        f"{one.length} {one.precision} {one.scale} "
        f"{one.max_definition_level} {one.max_repetition_level}"
        for one in map(schema.column, range(len(schema)))
    ]
    strange = list(_strange(_texts(metadata.metadata), names))
    if not _WRITER.fullmatch(metadata.created_by or ""):
        strange.append("created_by")
    for group in range(metadata.num_row_groups):
        described = metadata.row_group(group)
        for number in range(described.num_columns):
            column = described.column(number)
            # Since pyarrow 20 only.
            if getattr(column, "metadata", None):
                strange.append(f"metadata of column {column.path_in_schema}")
            if column.file_path:
                strange.append("file_path")
    return Footer(int(metadata.num_rows), names, columns, list(dict.fromkeys(strange)))


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in (metadata or {}).items()
    }


def _strange(found: Mapping[str, str], names: list[str]) -> Iterator[str]:
    """Find what may hold values of the data: unknown keys, and known ones that say more."""
    for key, value in found.items():
        if key == _ROWS:
            sound = _says_columns_only(value, names)
        elif key == _ARROW:
            sound = _is_plain_schema(value, names)
        else:
            sound = key in _SHORT_KEYS and bool(_SHORT.fullmatch(value))
        if not sound:
            yield key


def _says_columns_only(text: str, names: list[str]) -> bool:
    """Return whether Spark's own schema has the file's columns, and no metadata of columns."""
    try:
        schema = json.loads(text)
        if [field["name"] for field in schema["fields"]] != names:
            return False
        return not any(_metadata_of(schema))
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _metadata_of(described: object) -> Iterator[str]:
    """Find metadata in a type of Spark's JSON at any depth, and keys that no type has."""
    if isinstance(described, list):
        for one in described:
            yield from _metadata_of(one)
        return
    if not isinstance(described, dict):
        if not isinstance(described, str | bool) or len(str(described)) > 200:
            yield "value"
        return
    known = {"type", "fields", "name", "nullable", "metadata"}
    known |= {"elementType", "containsNull", "keyType", "valueType", "valueContainsNull"}
    for key, value in described.items():
        if key == "metadata":
            for name, told in value.items():
                if name != _DECLARED or not _DECLARATION.fullmatch(str(told)):
                    yield name
        elif key not in known:
            yield key
        elif key != "name":
            yield from _metadata_of(value)


def _is_plain_schema(text: str, names: list[str]) -> bool:
    """Return whether Arrow's own schema has the file's columns, and metadata of Spark at most."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (pa.ArrowException, ValueError, OSError):
        return False
    return (
        list(schema.names) == names
        and not any(_strange(_texts(schema.metadata), names))
        and not any(field.metadata for field in schema)
    )
