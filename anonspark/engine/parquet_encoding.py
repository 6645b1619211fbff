"""Parquet files of a release, encoded batch by batch into the same bytes by all engines."""

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
"""The last bytes of a Parquet file, which stand behind each row group, too: what lies between them
has no meaning, and Spark writes it so (:mod:`anonspark.engine.spark.table`)."""

WRITER = f"parquet-cpp-arrow version {pa.cpp_version}"
"""Name that Arrow leaves in a footer. Other versions may encode the same values otherwise."""

STAMPED_VERSION = "4.1.4"
"""Spark's version in every footer, whatever engine and Spark write it, so that bytes are the same.

From 3 on it says that days and times are those of today's calendar. Spark takes files of an older
version, or of none, for files of Spark 2."""

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
"""Spark's codecs and levels, as pyarrow has them."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of tables.

    Parameters
    ----------
    columns : pyarrow.Schema
        Of the table. All of its values may be null.
    described : str
        The same in Spark's JSON.
    codec : str
        As Spark calls it.
    """

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
        """Return what a footer says beside the columns, for Spark."""
        return {
            b"org.apache.spark.version": STAMPED_VERSION.encode(),
            b"org.apache.spark.sql.parquet.row.metadata": self.described.encode(),
        }


@dataclass
class EncodedFile:
    """A Parquet file as it is encoded.

    Parameters
    ----------
    encoding : Encoding
    """

    encoding: Encoding
    rows: int = 0
    size: int = 0
    sha256: str = ""

    def parts(self, row_groups: Batches) -> Iterator[bytes]:
        """Encode a file. Afterwards its rows, bytes (``size``) and hash are known.

        Parameters
        ----------
        row_groups : iterator of pyarrow.RecordBatch
            Of the columns.

        Yields
        ------
        bytes
            A row group each, and last the footer. Each ends with :data:`MAGIC`. Nothing where
            there is no row group.
        """
        sink = _Sink()
        file = pa.PythonFile(sink, mode="w")
        writer = None
        for row_group in row_groups:
            if writer is None:
                writer = parquet.ParquetWriter(
                    file,
                    self.encoding.columns,
                    # What only Arrow understands is left out. So are smallest and largest values,
                    # which spare readers nothing, for the classes stand in no order of theirs.
                    store_schema=False,
                    write_statistics=False,
                    store_decimal_as_integer=True,
                    **CODECS[self.encoding.codec],
                )
            # One chunk: what is encoded must not depend on how the records came here.
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
    """Return a table as a Parquet file of one row group."""
    rows = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    file = EncodedFile(Encoding.of(table.schema))
    return b"".join(file.parts(iter(rows)))


class _Sink:
    """The bytes written to a file: hashed, counted, and kept until they are taken."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.written = 0
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, content: bytes) -> int:
        written = bytes(content)
        self.digest.update(written)
        self.written += len(written)
        self._parts.append(written)
        return len(written)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        encoded = b"".join(self._parts)
        self._parts.clear()
        if not encoded.endswith(MAGIC):
            raise ValueError("a part of a Parquet file has to end with its magic bytes")
        return encoded

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        """Do nothing: it is kept anyway."""

    def close(self) -> None:
        self.closed = True


def nullable(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose values may all be null, named as Spark names what is in lists."""
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in schema])


def _nullable_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pa.list_(pa.field("element", _nullable_type(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct(
            [pa.field(field.name, _nullable_type(field.type)) for field in _fields(data_type)]
        )
    return data_type


def _fields(data_type: pa.DataType) -> list[pa.Field]:
    return [data_type.field(index) for index in range(data_type.num_fields)]


def spark_description(schema: pa.Schema) -> str:
    """Return a schema whose values may all be null in Spark's JSON.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of numbers, texts, bytes, truth values, days and times, and of lists and structures of
        them.
    """
    return json.dumps(_described_fields(schema), separators=(",", ":"), sort_keys=True)


def _described_fields(fields: Any) -> dict[str, object]:
    described = [
        {"metadata": {}, "name": field.name, "nullable": True, "type": _described(field.type)}
        for field in fields
    ]
    return {"fields": described, "type": "struct"}


# What Spark's JSON calls in another way than SQL.
_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def _described(data_type: pa.DataType) -> Any:
    if pa.types.is_struct(data_type):
        return _described_fields(_fields(data_type))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        element = _described(data_type.value_type)
        return {"containsNull": True, "elementType": element, "type": "array"}
    name = type_name(data_type)
    return _NAMES.get(name, name)
