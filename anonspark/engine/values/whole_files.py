"""Parquet files that lie in memory as a whole, decoded."""

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

# With its length alone, a text would take more.
_BYTES_OF_A_CODE = 2

# Of a column chunk in a file on a disk, that are read at a time.
_BUFFER = 1 << 20


class Share(NamedTuple):
    """One of several equal parts of a file on a disk, of so many bytes in all."""

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
    """Decode columns of a Parquet file.

    Parameters
    ----------
    source : pyarrow.Buffer or Share
        The file, or what is read of it.
    columns : pyarrow.Schema
        Their names in any case of letters, and the types that they are read as.
    dictionaries : bool
        Whether all texts become dictionaries. Else those do that are numbers of few different ones
        in the file: to read them so takes a fraction of the time.
    complete : bool
        Whether the file has to have all columns, else one that it lacks is missing in every row.
    constants : mapping of str to pyarrow.Scalar
        Values of columns that are not in the file.
    name : str
        Of the file, for messages.

    Raises
    ------
    DataError
        If the file is damaged, lacks a column, or has one of another type.
    """
    try:
        yield from _decoded(source, columns, dictionaries, complete, constants)
    except MemoryError:
        raise
    except (pa.ArrowException, KeyError, OSError, _OtherTypeError):
        pass
    else:
        return
    # Outside the handler, so that no traceback shows the error that came first. In the words of
    # Spark for it, by which the driver knows what failed.
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
        # One column at least tells how many rows there are.
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
    """Return which columns of texts are numbers of few different ones, as their size shows.

    Parameters
    ----------
    metadata : pyarrow.parquet.FileMetaData
    names : sequence of str
        Of the columns.
    bytes_of_a_code : int
        What a row takes at most.
    group : int or None
        The row group that is looked at. None for all of them.
    """
    numbers = range(metadata.num_row_groups) if group is None else [group]
    groups = [metadata.row_group(number) for number in numbers]
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    most = bytes_of_a_code * sum(part.num_rows for part in groups)
    return [
        name
        for name in names
        if name in places
        and sum(part.column(places[name]).total_uncompressed_size for part in groups) <= most
    ]


def _as_read(values: pa.Array, target: pa.DataType) -> pa.Array:
    if not is_read_as(values.type, target):
        raise _OtherTypeError
    if values.type == _TEXTS and target == _TEXTS.value_type:
        return values
    return values_as_read(values, target)
