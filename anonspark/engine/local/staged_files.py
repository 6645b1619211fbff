"""Stage tables of a run in files of few, large values.

Parts, which only this run reads, are Arrow files that are mapped into memory. Others are Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from anonspark.engine.protocol import ROW_GROUP_BYTES
from anonspark.engine.tasks import Batches
from anonspark.engine.values.grouping import aggregate, aggregates_of, merge

if TYPE_CHECKING:
    from anonspark.engine.local.running import Source
    from anonspark.engine.local.table import LocalTable


# Without compression: values are large and compressed already.
_OPEN = {
    ".arrow": pa.ipc.new_file,
    ".parquet": partial(
        parquet.ParquetWriter, compression="none", use_dictionary=False, write_statistics=False
    ),
}


class _Writer:
    """Writes the batches of one file, some megabytes at once.

    Creates the file with the first batch that has rows.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._writer: parquet.ParquetWriter | pa.RecordBatchFileWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, or hold it until there are more."""
        if len(batch):
            self._waiting.append(batch)
            self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        """Write the batches that are held."""
        if self._writer is None:
            self._writer = _OPEN[self._path.suffix](str(self._path), self._schema)
        self._writer.write_table(
            pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
        )
        self._waiting, self._bytes = [], 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._waiting:
                self._write()
        finally:
            if self._writer is not None:
                self._writer.close()


def write(table: LocalTable, path: str) -> None:
    """Write a table to a new directory, with a file for each task."""
    folder = _make_folder(table, path)

    def written(number: int, batches: Batches) -> None:
        with _Writer(folder / f"{_name(number)}.parquet", table.schema) as writer:
            for batch in batches:
                writer.write(batch)

    table.resources.runner.run(table.sources(), written)


def write_parts(
    table: LocalTable, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Write each part of a table to a directory, and return its sums.

    See :meth:`anonspark.engine.protocol.Table.stage_parts`.
    """
    folder = _make_folder(table, path)
    schema = pa.schema(field for field in table.schema if field.name != part)
    folders = {name: folder / f"{part}={name}" for name in parts}
    for target in folders.values():
        target.mkdir()
    figures = aggregates_of(
        table.schema, count=None, sums=sums, least=(), most=(), hashes=None, lists=()
    )

    def written(number: int, batches: Batches) -> list[pa.Table]:
        sums_of_batches = []
        with ExitStack() as open_files:
            writers = {
                name: open_files.enter_context(_Writer(target / f"{_name(number)}.arrow", schema))
                for name, target in folders.items()
            }
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                sums_of_batches.append(aggregate(rows.select([part, *sums]), [part], figures))
                names = pc.unique(batch.column(part)).to_pylist()
                for name in names:
                    is_in_part = pc.equal(batch.column(part), name)
                    rows_of_part = batch if len(names) == 1 else batch.filter(is_in_part)
                    writers[name].write(rows_of_part.select(schema.names))
        return sums_of_batches

    tasks = table.resources.runner.run(table.sources(), written)
    tables = [sums_of_batch for task in tasks for sums_of_batch in task]
    total = merge(pa.concat_tables(tables), [part], figures).to_pylist() if tables else []
    by_part = {row[part]: {name: row[name] for name in sums} for row in total}
    return {name: by_part.get(name, dict.fromkeys(sums)) for name in parts}


def _make_folder(table: LocalTable, path: str) -> Path:
    """Create a directory, and return its path on the local disk."""
    table.resources.files.make_directory(path)
    return Path(str(table.resources.files.local_path(path)))


def _name(number: int) -> str:
    """Return the name of a task's file without its suffix."""
    return f"part-{number:05d}"


def sources(folders: Iterable[Path], schema: pa.Schema) -> list[Source]:
    """Return a task for each batch (Arrow) or row group (Parquet) in some directories."""
    reads: list[Source] = []
    for folder in folders:
        # Path.glob would return nothing for a directory that may not be read.
        for path in sorted(folder.iterdir()):
            if path.suffix == ".arrow":
                batches = _mapped(path).num_record_batches
                reads += [partial(_batch, path, index) for index in range(batches)]
            # A table for later runs may come from an earlier version of this program.
            elif path.suffix == ".parquet":
                groups = parquet.read_metadata(path).num_row_groups
                reads += [partial(_row_group, str(path), group, schema) for group in range(groups)]
    return reads


def _mapped(path: Path) -> pa.RecordBatchFileReader:
    """Map a file into memory. Batches stay valid even if the file is removed."""
    return pa.ipc.open_file(pa.memory_map(str(path)))


def _batch(path: Path, index: int) -> Batches:
    """Yield a batch of a file."""
    yield _mapped(path).get_batch(index)


def _row_group(path: str, group: int, schema: pa.Schema) -> Batches:
    """Yield a row group of a file with the columns of a schema, null if the file lacks them."""
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        table = file.read_row_group(group, columns=schema.names, use_threads=False)
    for field in (column for column in schema if column.name not in table.schema.names):
        table = table.append_column(field, pa.nulls(len(table), field.type))
    yield from table.select(schema.names).cast(schema).to_batches()
