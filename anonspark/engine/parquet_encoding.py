"""Encode the Parquet files of a release batch by batch, with equal bytes on all engines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.raw_columns import type_name
from anonspark.engine.tasks import Batches

MAGIC = b"PAR1"
"""The last bytes of a Parquet file. Each row group ends with them, too, as Spark's tasks write it
(:mod:`anonspark.engine.spark.table`): bytes between row groups have no meaning."""

WRITER = f"parquet-cpp-arrow version {pa.cpp_version}"
"""Arrow's name for itself in a footer. Other versions may encode equal values differently."""

STAMPED_VERSION = "4.1.4"
"""Spark's version in every footer, whatever engine and Spark write it: bytes have to be equal.

From 3 on, days and moments are those of the Gregorian calendar. Spark reads files of an older
version, or of none, as those of Spark 2."""

CODECS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "none": {"compression": "none"},
        "uncompressed": {"compression": "none"},
        "snappy": {"compression": "snappy"},
        "gzip": {"compression": "gzip", "compression_level": 6},
        "lz4_raw": {"compression": "lz4"},
        "zstd": {"compression": "zstd", "compression_level": 3},
    }
)
"""Options of pyarrow for Spark's codecs and their levels."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of tables: nullable columns, the same in Spark's JSON, and Spark's codec."""

    columns: pa.Schema
    described: str
    codec: str

    @classmethod
    def of(cls, schema: pa.Schema, codec: str = "snappy") -> Encoding:
        """Return the encoding of tables of a schema, whose values need not be nullable."""
        columns = nullable(schema)
        return cls(columns, spark_description(columns), codec)

    @property
    def notes(self) -> dict[bytes, bytes]:
        """Return the metadata of a footer for Spark."""
        return {
            b"org.apache.spark.version": STAMPED_VERSION.encode(),
            b"org.apache.spark.sql.parquet.row.metadata": self.described.encode(),
        }


@dataclass
class EncodedFile:
    """A Parquet file while it is encoded, with its records, bytes and hash at the end."""

    encoding: Encoding
    rows: int = 0
    size: int = 0
    sha256: str = ""

    def parts(self, row_groups: Batches) -> Iterator[bytes]:
        """Encode row groups, and yield the bytes of each, then those of the footer.

        Sets ``size`` and ``sha256``. Each part ends with :data:`MAGIC`. Yields nothing without a
        row group.
        """
        sink = _Sink()
        file = pa.PythonFile(sink, mode="w")
        writer = None
        for row_group in row_groups:
            if writer is None:
                writer = parquet.ParquetWriter(
                    file,
                    self.encoding.columns,
                    # Only Arrow reads a stored schema. Smallest and largest values let readers skip
                    # nothing, as the order of classes has nothing to do with any column.
                    store_schema=False,
                    write_statistics=False,
                    store_decimal_as_integer=True,
                    **CODECS[self.encoding.codec],
                )
            # One chunk: bytes must not depend on how the records were divided.
            table = pa.Table.from_batches([row_group]).cast(self.encoding.columns).combine_chunks()
            if len(table):
                writer.write_table(table, row_group_size=len(table))
            self.rows += len(table)
            file.write(MAGIC)
            yield sink.take()
        if writer is None:
            return
        writer.add_key_value_metadata(self.encoding.notes)
        writer.close()
        last = sink.take()
        self.size, self.sha256 = sink.written, sink.digest.hexdigest()
        yield last


def encode_table(table: pa.Table) -> bytes:
    """Return a table as a Parquet file of one row group.

    >>> encode_table(pa.table({"age": [39, 41]}))[-4:]
    b'PAR1'
    """
    rows = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    file = EncodedFile(Encoding.of(table.schema))
    return b"".join(file.parts(iter(rows)))


class _Sink:
    """Hashes and counts the bytes written to a file, and holds them until they are taken."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.written = 0
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, content: bytes) -> int:
        part = bytes(content)
        self.digest.update(part)
        self.written += len(part)
        self._parts.append(part)
        return len(part)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        encoded = b"".join(self._parts)
        self._parts.clear()
        if not encoded.endswith(MAGIC):
            raise ValueError("a part of a Parquet file has to end with its magic bytes")
        return encoded

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Do nothing: bytes are taken, not flushed."""

    def close(self) -> None:
        self.closed = True


def nullable(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose values may all be null, with Spark's name for the elements of lists."""
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in schema])


def _nullable_type(data_type: pa.DataType) -> pa.DataType:
    """Return a type whose inner values may all be null."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pa.list_(pa.field("element", _nullable_type(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct(
            [pa.field(field.name, _nullable_type(field.type)) for field in _fields(data_type)]
        )
    return data_type


def _fields(data_type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct."""
    return [data_type.field(index) for index in range(data_type.num_fields)]


def spark_description(schema: pa.Schema) -> str:
    """Return a schema in Spark's JSON, with values that may all be null.

    The columns are numbers, texts, bytes, booleans, days, moments, and lists and structs of them.

    >>> json.loads(spark_description(pa.schema({"age": pa.int64()})))["fields"][0]["type"]
    'long'
    """
    return json.dumps(_described_fields(schema), separators=(",", ":"), sort_keys=True)


def _described_fields(fields: Any) -> dict[str, object]:
    """Describe the columns of a schema, or the fields of a struct."""
    described = [
        {"metadata": {}, "name": field.name, "nullable": True, "type": _described(field.type)}
        for field in fields
    ]
    return {"fields": described, "type": "struct"}


# Types for which Spark's JSON has another name than SQL.
_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def _described(data_type: pa.DataType) -> Any:
    """Describe a type."""
    if pa.types.is_struct(data_type):
        return _described_fields(_fields(data_type))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        element = _described(data_type.value_type)
        return {"containsNull": True, "elementType": element, "type": "array"}
    name = type_name(data_type)
    return _NAMES.get(name, name)
