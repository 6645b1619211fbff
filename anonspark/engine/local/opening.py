"""Open tables of files without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from anonspark.engine.data_files import (
    DataFiles,
    FileSchemas,
    bundled,
    find_files,
    require_columns,
)
from anonspark.engine.files import Files
from anonspark.engine.foreign_formats import refuse_foreign
from anonspark.engine.local.columnar_files import (
    ColumnarFile,
    Read,
    open_columnar,
    reads_of,
)
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.raw_columns import UnreadType, WantedColumns
from anonspark.engine.reading_errors import (
    TableAddress,
    note_nanoseconds,
    on_spark,
    type_not_read,
)
from anonspark.engine.struct_fields import struct_fields, with_struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import conform
from anonspark.engine.values.file_types import BATCH_ROWS, widest
from anonspark.engine.values.text_reader import TEXT_FORMATS
from anonspark.errors import ConfigurationError

FORMATS = ("parquet", "csv", "orc", "json")


@dataclass(frozen=True)
class Opened:
    """A table of files, with a function that reads columns for each task."""

    schema: pa.Schema
    reads: tuple[Read, ...]

    @property
    def tasks(self) -> tuple[Callable[[], Batches], ...]:
        """Return the functions that read all columns, one for each task. May be called again.

        A task is a row group, a stripe, or some megabytes of text. It raises DataError if files
        vanished, are damaged or hold malformed records.
        """
        return tuple(partial(read, self.schema) for read in self.reads)

    def with_fields(self) -> Opened:
        """Add the fields of structs as columns, each of which can be read alone."""
        return Opened(with_struct_fields(self.schema), self.reads)

    def select(self, names: Sequence[str]) -> Opened:
        """Return the table with at least one of its columns. Others are not read."""
        return Opened(pa.schema([self.schema.field(name) for name in names]), self.reads)


def open_files(
    files: Files,
    paths: Sequence[str],
    data_format: str,
    options: Mapping[str, str],
    *,
    key: str,
    section: str | None = None,
    texts: Sequence[str] = (),
    selection: WantedColumns | None = None,
) -> Opened:
    """Open a table of files. See :meth:`anonspark.engine.protocol.Engine.open_table`.

    Reads all footers, or all texts once to infer types. Raises DataError if a path does not exist
    or cannot be opened in this format, or a file lacks a column, and ConfigurationError if the
    local engine lacks the format or an option.
    """
    refuse_foreign(paths, data_format)
    if data_format.lower() not in FORMATS:
        raise ConfigurationError(
            f"{key if section is None else f'{section}.format'}: the local engine has no data "
            f"source {data_format!r}. Expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, or set "
            "execution.engine to spark, which reads others"
        )
    address = TableAddress(tuple(paths), data_format.lower(), key, section)
    require_plain_files(files, paths, data_format, key)
    data_files = find_files(files, paths, key, selection)
    if address.data_format in TEXT_FORMATS:
        return _open_texts(address, data_files, options, texts, selection)
    for name in options:
        what = address.key if address.section is None else f"{address.section}.options.{name}"
        raise ConfigurationError(
            f"{what}: the local engine knows no option {name!r} of {address.data_format}. Leave it "
            f"out, or say {on_spark(address.where)}, which reads it"
        )
    opened = open_columnar(data_files.files, address.data_format, address.where)
    return table_of_columnar(address, data_files, opened, selection)


def table_of_columnar(
    address: TableAddress,
    data_files: DataFiles,
    opened: Sequence[ColumnarFile],
    selection: WantedColumns | None,
) -> Opened:
    """Return the table of files whose footers were read. Raises as :func:`open_files` does."""

    def asks(name: str) -> bool:
        return selection is None or selection.asks(name)

    if selection is not None and selection.skips_malformed:
        # Then old days are no errors.
        opened = [replace(file, other_calendar=False) for file in opened]
    unread: dict[str, str] = {}
    for file in opened:
        note_nanoseconds(address.key, filter(asks, file.nanoseconds))
        for name, kind in file.unread.items():
            if selection is None:
                unread[name] = kind
            elif asks(name):
                where = f"{address.key}: {file.file.address}"
                raise type_not_read(where, kind, column=name)
    with_columns = (file.schema for file in opened if file.schema.names)
    first = next(with_columns, opened[0].schema if opened else None)
    if first is None or (address.data_format == "orc" and not first.names):
        raise address.not_of_the_format("no file has columns")
    schemas = _schemas(opened, data_files)
    fields = [_with_type(field, schemas.schemas) for field in first if field.name not in unread]
    fields += [pa.field(name, UnreadType(kind)) for name, kind in unread.items()]
    inner = {name.lower() for name in struct_fields(first)}
    if selection is not None:
        names = with_struct_fields(first).names
        lacking = require_columns(schemas, selection, columns=names, path_key=address.key)
        fields += [_with_type(field, schemas.schemas) for field in lacking]
        lower_names = {name.lower() for file in opened for name in file.schema.names}
        inner |= {field.name.lower() for field in fields} - lower_names
    schema = data_files.schema(fields)
    columns = [field.name for field in fields]
    reads = (
        (file.file, read)
        for file in opened
        for read in reads_of(file, data_files, columns, inner, address.where)
    )
    return Opened(schema, tuple(partial(_read_together, bundle) for bundle in bundled(reads)))


def _with_type(field: pa.Field, schemas: Collection[pa.Schema]) -> pa.Field:
    """Return a column in the type that holds its values in all files, or text without any."""
    name = field.name.lower()
    columns = (column for schema in schemas for column in schema if column.name.lower() == name)
    joined = widest([field.type, *(column.type for column in columns)]) or field.type
    return field.with_type(pa.string() if pa.types.is_null(joined) else joined)


def _read_together(reads: Sequence[Read], schema: pa.Schema) -> Batches:
    """Yield the batches of several reads, with small ones joined."""
    if len(reads) == 1:
        yield from reads[0](schema)
        return
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in (batch for read in reads for batch in read(schema)):
        if rows and rows + len(batch) > BATCH_ROWS:
            yield from pa.Table.from_batches(waiting, schema).combine_chunks().to_batches()
            waiting, rows = [], 0
        waiting.append(conform(batch, schema))
        rows += len(batch)
    yield from pa.Table.from_batches(waiting, schema).combine_chunks().to_batches()


def _open_texts(
    address: TableAddress,
    listed: DataFiles,
    options: Mapping[str, str],
    texts: Sequence[str],
    selection: WantedColumns | None,
) -> Opened:
    """Open a table of text files."""
    # Imported late: other formats do not need these modules.
    from anonspark.engine.local.text_files import TextFiles, first_line
    from anonspark.engine.text_tables import open_reader, read_schema

    files = TextFiles(listed, open_reader(address, listed, options, texts, selection, first_line))
    schema = read_schema(address, files.reader, files.forms)
    return Opened(listed.schema(schema), tuple(files.reads(schema)))


def _schemas(opened: Sequence[ColumnarFile], data_files: DataFiles) -> FileSchemas:
    """Return the different schemas of files, and the index of each file's."""
    indices: dict[pa.Schema, int] = {}
    schema_of_file = [indices.setdefault(file.schema, len(indices)) for file in opened]
    addresses = [file.file.address for file in opened]
    return FileSchemas(addresses, list(indices), schema_of_file, data_files.folders.names)
