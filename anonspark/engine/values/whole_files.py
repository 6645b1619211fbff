"""Decode Parquet files of which a task has the whole content, or a share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyarrow import parquet

from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import (
    BATCH_ROWS,
    is_read_as,
    values_as_read,
)
from anonspark.errors import DataError

_TEXTS = pa.dictionary(pa.int32(), pa.string())

# A text takes more, for its length has four bytes.
_BYTES_OF_A_CODE = 2

# Bytes of a column chunk of a file on a disk to read at a time.
_BUFFER = 1 << 20


class Share(NamedTuple):
    """One of several equal parts of a file on a disk, by its index, and the bytes of the file."""

    address: str
    bytes: int
    part: int
    parts: int

    def groups(self, metadata: parquet.FileMetaData) -> list[int]:
        """Return the row groups whose middle lies in the part."""
        groups = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            chunks = [group.column(index) for index in range(group.num_columns)]
            start = chunks[0].dictionary_page_offset or chunks[0].data_page_offset
            middle = start + sum(chunk.total_compressed_size for chunk in chunks) // 2
            if min(middle * self.parts // self.bytes, self.parts - 1) == self.part:
                groups.append(number)
        return groups


def decode_file(
    source: pa.Buffer | Share,
    columns: pa.Schema,
    *,
    dictionaries: bool = False,
    complete: bool = True,
    constants: Mapping[str, pa.Scalar] = MappingProxyType({}),
    name: str = "a Parquet file",
) -> Batches:
    """Decode columns of a Parquet file, by names in any case, as the types that Spark reads.

    With ``dictionaries``, all columns of texts become dictionaries. Otherwise only those do that
    the file itself stores as a dictionary of few texts, which is much faster than to copy each
    text. Unless the file must be ``complete``, a column that it lacks is null. ``constants`` are
    values of columns that are not in the file. Raises DataError, with the name of the file, if it
    is damaged, lacks a column, or has one of another type.
    """
    try:
        yield from _decoded(source, columns, dictionaries, complete, constants)
    except MemoryError:
        raise
    except (pa.ArrowException, KeyError, OSError, _OtherTypeError):
        pass
    else:
        return
    # Outside of the handler, so that no traceback shows the first error. The driver knows the
    # failure by Spark's word for it.
    raise DataError(f"CANNOT_READ: {name} is damaged, or is another than when the table was opened")


class _OtherTypeError(Exception):
    """A column has another type than when the table was opened."""


def _decoded(
    source: pa.Buffer | Share,
    columns: pa.Schema,
    dictionaries: bool,
    complete: bool,
    constants: Mapping[str, pa.Scalar],
) -> Batches:
    """Decode columns of a Parquet file. Raises errors of Arrow if it is damaged."""
    if isinstance(source, Share):
        opened: pa.NativeFile = pa.OSFile(source.address.removeprefix("file:"))
        if opened.size() != source.bytes:
            raise _OtherTypeError
    else:
        opened = pa.BufferReader(source)
    metadata = parquet.read_metadata(opened)
    groups, buffer = (source.groups(metadata), _BUFFER) if isinstance(source, Share) else (None, 0)
    stored_names = {name.lower(): name for name in metadata.schema.to_arrow_schema().names}
    stored = [field for field in columns if field.name not in constants]
    names = {field.name: stored_names.get(field.name.lower()) for field in stored}
    present = [name for name in names.values() if name is not None]
    if complete and len(present) < len(stored):
        raise KeyError("a column")
    texts = [
        name for field in stored if is_text(field.type) and (name := names[field.name]) is not None
    ]
    if not dictionaries:
        texts = coded_columns(metadata, texts, _BYTES_OF_A_CODE)
    with parquet.ParquetFile(
        opened, metadata=metadata, read_dictionary=texts, pre_buffer=False, buffer_size=buffer
    ) as file:
        # At least one column is read, for the number of rows.
        for batch in file.iter_batches(
            BATCH_ROWS,
            groups,
            columns=present or list(stored_names.values())[:1],
            use_threads=False,
        ):
            values = [
                pa.repeat(constants[field.name], len(batch))
                if field.name in constants
                else pa.nulls(len(batch), field.type)
                if (name := names[field.name]) is None
                else _as_read(batch.column(name), field.type)
                for field in columns
            ]
            if dictionaries:
                values = [
                    value.dictionary_encode() if is_text(value.type) else value for value in values
                ]
            yield pa.RecordBatch.from_arrays(values, columns.names)


def coded_columns(
    metadata: parquet.FileMetaData,
    names: Sequence[str],
    bytes_of_a_code: int,
    group: int | None = None,
) -> list[str]:
    """Return the columns of texts that a file stores as codes of few different texts.

    Their size shows it: a row takes at most ``bytes_of_a_code``, in one row group or in all.
    """
    numbers = range(metadata.num_row_groups) if group is None else [group]
    groups = [metadata.row_group(number) for number in numbers]
    indices = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    limit = bytes_of_a_code * sum(part.num_rows for part in groups)
    return [
        name
        for name in names
        if name in indices
        and sum(part.column(indices[name]).total_uncompressed_size for part in groups) <= limit
    ]


def _as_read(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert values to the type they are read as, but leave dictionaries of texts as they are."""
    if not is_read_as(values.type, target):
        raise _OtherTypeError
    if values.type == _TEXTS and target == _TEXTS.value_type:
        return values
    return values_as_read(values, target)
