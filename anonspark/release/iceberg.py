"""Describe the records of a release as a table of Apache Iceberg, whose files are those of data.

The release's directory is the table's. Nothing is copied: the metadata name the Parquet files, by
the address that the release was published at. All bytes follow from the manifest, the columns and
that address, so that verification writes them again and compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa

from anonspark.engine.files import PublishedFile
from anonspark.engine.raw_columns import type_name
from anonspark.release.manifest import Manifest

METADATA = "metadata"
"""Directory of a release, as Iceberg names it."""

_TABLE, _HINT, _SNAPSHOT, _LISTED = (
    f"{METADATA}/{name}"
    for name in ("v1.metadata.json", "version-hint.text", "snapshot.avro", "files.avro")
)
ICEBERG_FILES = (_TABLE, _HINT, _SNAPSHOT, _LISTED)
"""Files of a release that describe it as a table of Iceberg."""

# As SQL calls them, where Iceberg does not.
_TYPES = {"tinyint": "int", "smallint": "int", "bigint": "long"}
_TYPES |= {"timestamp": "timestamptz", "timestamp_ntz": "timestamp"}

# Fields of the second version of Iceberg's format: name, number, type of Avro.
_FILE = """content 134 int, file_path 100 string, file_format 101 string, partition 102 nothing,
    record_count 103 long, file_size_in_bytes 104 long"""
_ENTRY = """status 0 int, snapshot_id 1 optional, sequence_number 3 optional,
    file_sequence_number 4 optional, data_file 2 file"""
_MANIFEST = """manifest_path 500 string, manifest_length 501 long, partition_spec_id 502 int,
    content 517 int, sequence_number 515 long, min_sequence_number 516 long,
    added_snapshot_id 503 long, added_files_count 504 int, existing_files_count 505 int,
    deleted_files_count 506 int, added_rows_count 512 long, existing_rows_count 513 long,
    deleted_rows_count 514 long"""
_ADDED = 1


def iceberg_contents(
    manifest: Manifest, schema: pa.Schema, written: Iterable[PublishedFile], address: str
) -> dict[str, bytes]:
    """Return the metadata of the table, by path in the release.

    Parameters
    ----------
    manifest : Manifest
    schema : pyarrow.Schema
        Of the published records.
    written : iterable of PublishedFile
        The files of the release. Those of the records become files of the table.
    address : str
        Where the release is published, with scheme.
    """
    ids = count(1)
    columns, names = _columns(schema, ids)
    data = [one for one in written if one.path.startswith("data/part-")]
    identity = hashlib.sha256(f"{address} {manifest.run_id} {manifest.fingerprint}".encode())
    # Positive, and exact in every reader of JSON.
    snapshot = int.from_bytes(identity.digest()[:6], "big")
    table_schema = {"type": "struct", "schema-id": 0, "fields": columns}
    described = {"schema": json.dumps(table_schema), "schema-id": "0", "partition-spec": "[]"}
    described |= {"partition-spec-id": "0", "format-version": "2", "content": "data"}
    # A number that may be missing has the place of its type in front of it.
    added = (_ADDED, 1, snapshot, 1, 1, 1, 1, 0)
    entries = [
        (*added, f"{address}/{one.path}", "PARQUET", one.rows or 0, one.bytes)
        for one in sorted(data, key=lambda one: one.path)
    ]
    listed = _avro("manifest_entry", _ENTRY, entries, described)
    rows = int(manifest.published["rows"])
    whole = (f"{address}/{_LISTED}", len(listed), 0, 0, 1, 1, snapshot, len(data), 0, 0, rows, 0, 0)
    at = int(datetime.fromisoformat(str(manifest.document["started"])).timestamp() * 1000)
    document = {
        "format-version": 2,
        # The same in every night that replaces the release, so that readers go on.
        "table-uuid": str(uuid5(NAMESPACE_URL, address)),
        "location": address,
        "last-sequence-number": 1,
        "last-updated-ms": at,
        "last-column-id": next(ids) - 1,
        "schemas": [table_schema],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        **dict.fromkeys(("current-schema-id", "default-spec-id", "default-sort-order-id"), 0),
        # Asks other programs to delete no files of a release.
        "properties": {"gc.enabled": "false", "schema.name-mapping.default": json.dumps(names)},
        "current-snapshot-id": snapshot,
        "snapshots": [
            {
                "sequence-number": 1,
                "snapshot-id": snapshot,
                "timestamp-ms": at,
                "summary": {"operation": "append", "total-records": str(rows)},
                "manifest-list": f"{address}/{_SNAPSHOT}",
                "schema-id": 0,
            }
        ],
    }
    return {
        _TABLE: json.dumps(document, indent=2).encode(),
        _HINT: b"1",
        _SNAPSHOT: _avro("manifest_file", _MANIFEST, [whole], {"format-version": "2"}),
        _LISTED: listed,
    }


def _columns(
    fields: Iterable[pa.Field], ids: Iterator[int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return columns as Iceberg describes them, and which names in the files they have."""
    columns, names = [], []
    for field in fields:
        number = next(ids)
        name: dict[str, Any] = {"field-id": number, "names": [field.name]}
        kind: Any = _TYPES.get(type_name(field.type), type_name(field.type))
        if pa.types.is_struct(field.type):
            inside, name["fields"] = _columns(field.type, ids)
            kind = {"type": "struct", "fields": inside}
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            element = pa.field("element", field.type.value_type)
            (one,), name["fields"] = _columns([element], ids)
            kind = {"type": "list", "element-id": one["id"], "element": one["type"]}
            kind["element-required"] = False
        columns.append({"id": number, "name": field.name, "required": False, "type": kind})
        names.append(name)
    return columns, names


def _avro_type(kind: str) -> Any:
    if kind == "optional":
        return ["null", "long"]
    fields = {"nothing": "", "file": _FILE}.get(kind)
    return kind if fields is None else _record(f"r_{kind}", fields)


def _record(name: str, fields: str) -> dict[str, Any]:
    listed = [one.split() for one in fields.split(",") if one]
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": a, "field-id": int(b), "type": _avro_type(c)} for a, b, c in listed],
    }


def _avro(
    name: str, fields: str, rows: Sequence[Sequence[int | str]], described: Mapping[str, str]
) -> bytes:
    """Return an Avro file of one block. A row has the values of all fields, nested ones in turn."""
    head = {"avro.schema": json.dumps(_record(name, fields)), "avro.codec": "null", **described}
    texts = b"".join(_text(key) + _text(value) for key, value in head.items())
    block = b"".join(
        _text(one) if isinstance(one, str) else _long(one) for row in rows for one in row
    )
    mark = hashlib.sha256(texts + block).digest()[:16]
    start = b"Obj\x01" + _long(len(head)) + texts + _long(0) + mark
    return start + _long(len(rows)) + _long(len(block)) + block + mark


def _text(text: str) -> bytes:
    return _long(len(text.encode())) + text.encode()


def _long(number: int) -> bytes:
    """Return a number that is not negative as Avro has it."""
    number, encoded = number << 1, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
