"""Writing the metrics tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.files import Files, PublishedFile
from anonspark.redaction import redact_values


def write_rows(
    files: Files,
    rows: Sequence[Mapping[str, object]],
    schema: pa.Schema,
    release: str,
    directory: str,
) -> PublishedFile:
    """Write a small table as one Parquet file, without a Spark job.

    Parameters
    ----------
    files : Files
    rows : sequence of dict
        Missing keys become nulls; credentials in texts are redacted.
    schema : pyarrow.Schema
    release : str
        The release's directory.
    directory : str
        To write to, relative to the release's.

    Returns
    -------
    PublishedFile
    """
    content = parquet_file(rows, schema)
    path = f"{directory}/part-00000.parquet"
    files.write_bytes(f"{release}/{path}", content)
    return PublishedFile(path, len(content), len(rows), hashlib.sha256(content).hexdigest())


def parquet_file(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> bytes:
    """Return a small table as the content of a Parquet file; parameters as :func:`write_rows`."""

    def value(row: Mapping[str, object], field: pa.Field) -> object:
        found = redact_values(row.get(field.name))
        is_big = pa.types.is_decimal(field.type) and isinstance(found, int)
        return Decimal(found) if is_big else found

    columns = [pa.array([value(row, field) for row in rows], field.type) for field in schema]
    content = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(columns, schema=schema), content)
    written: bytes = content.getvalue().to_pybytes()
    return written
