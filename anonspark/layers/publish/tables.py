"""Write the metrics tables, and other small ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from anonspark.engine.files import Files, PublishedFile
from anonspark.engine.parquet_encoding import encode_table
from anonspark.redaction import redact_values


def write_rows(
    files: Files,
    rows: Sequence[Mapping[str, object]],
    schema: pa.Schema,
    release: str,
    directory: str,
) -> PublishedFile:
    """Write a small table as one Parquet file of a release, without a job.

    Absent keys of ``rows`` become nulls. Credentials in texts are redacted. ``directory`` is
    relative to the release's.
    """
    return write_small_table(files, _table_of(rows, schema), release, directory)


def write_small_table(files: Files, table: pa.Table, release: str, directory: str) -> PublishedFile:
    """Write a small table as it is. See :func:`write_rows`."""
    content = encode_table(table)
    path = f"{directory}/part-00000.parquet"
    files.write_bytes(f"{release}/{path}", content)
    return PublishedFile(path, len(content), table.num_rows, hashlib.sha256(content).hexdigest())


def parquet_file(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> bytes:
    """Return a small table as the content of a Parquet file. See :func:`write_rows`."""
    return encode_table(_table_of(rows, schema))


def _table_of(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    def value(row: Mapping[str, object], field: pa.Field) -> object:
        redacted = redact_values(row.get(field.name))
        is_big = pa.types.is_decimal(field.type) and isinstance(redacted, int)
        return Decimal(redacted) if is_big else redacted

    columns = [pa.array([value(row, field) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
