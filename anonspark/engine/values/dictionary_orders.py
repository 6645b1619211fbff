"""Read the orders that Parquet files bring: ordered dictionaries, as pandas and polars write."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyarrow import parquet

from anonspark.config import Configuration
from anonspark.engine.data_files import listed_files
from anonspark.engine.files import Files, open_parts
from anonspark.engine.raw_columns import in_order, is_text

_LOGGER = logging.getLogger("anonspark")

_MOST_FILES = 200
# Bytes of a column to read at a time.
_BUFFER = 1 << 16

Orders = Mapping[str, set[tuple[str, ...]]]
"""The different dictionaries of each column. An empty one stands for a part without an order."""


def with_orders(schema: pa.Schema, files: Files | None, configuration: Configuration) -> pa.Schema:
    """Add the orders that the dictionaries of an input's Parquet files give to its columns.

    A quasi-identifier of texts without a declaration gets an order
    (:func:`anonspark.engine.raw_columns.order_of`) if all files with the column agree on it.
    Otherwise that is logged. ``files`` is None for an input without files. Reads the footer of the
    first file and, for columns with an order there, a dictionary of each row group, in at most 200
    files.
    """
    options = configuration.input
    if files is None or options.format.lower() != "parquet":
        return schema
    names = [
        name
        for name in configuration.quasi_identifiers
        if is_text(schema.field(name).type) and configuration.attributes[name].is_undeclared
    ]
    for name, orders in _orders_of_files(files, options.paths, names).items():
        if len(orders) == 1 and all(orders):
            index = schema.get_field_index(name)
            schema = schema.set(index, in_order(schema.field(index), orders.pop()))
        elif orders:
            _LOGGER.warning(
                "attributes.%s: its values have an order in the input's first file, but other "
                "parts of the input have another one or none, or there are more than %d files. "
                "Letters decide. Declare the order as attributes.%s.order",
                name,
                _MOST_FILES,
                name,
            )
    return schema


def _orders_of_files(files: Files, paths: Sequence[str], names: Sequence[str]) -> Orders:
    """Return the different dictionaries of each column that is ordered in the first file."""
    orders: dict[str, set[tuple[str, ...]]] | None = None
    try:
        for number, listed in enumerate(listed_files(files, paths) if names else []):
            part = open_parts(files, listed.address, listed.bytes, _BUFFER)
            opened = pa.PythonFile(part, mode="r")
            with parquet.ParquetFile(opened, buffer_size=_BUFFER, pre_buffer=False) as file:
                if orders is None:
                    orders = {name: set() for name in names if _is_ordered(file, name)}
                for name, seen in orders.items():
                    seen.update({()} if number >= _MOST_FILES else _orders_of_file(file, name))
            if not orders or number >= _MOST_FILES:
                break
    except (pa.ArrowException, OSError):
        # Reading the records raises the error of a damaged file.
        return {}
    return orders or {}


def _is_ordered(file: parquet.ParquetFile, name: str) -> bool:
    """Return whether a file has one column of a name, with an ordered dictionary of texts."""
    schema = file.schema_arrow
    if schema.names.count(name) != 1:
        return False
    dtype = schema.field(name).type
    return bool(pa.types.is_dictionary(dtype) and dtype.ordered and is_text(dtype.value_type))


def _orders_of_file(file: parquet.ParquetFile, name: str) -> set[tuple[str, ...]]:
    """Return the dictionaries of a column's row groups. Without the column the result is empty."""
    if name not in file.schema_arrow.names:
        return set()
    if not _is_ordered(file, name):
        return {()}
    index = next(
        number for number in range(len(file.schema)) if file.schema.column(number).path == name
    )
    orders = set()
    for number in range(file.num_row_groups):
        if not file.metadata.row_group(number).column(index).has_dictionary_page:
            # Without a stored dictionary Arrow numbers texts in the order of records.
            return {()}
        first = next(file.iter_batches(1, [number], columns=[name], use_threads=False), None)
        if first is not None:
            orders.add(tuple(first.column(0).dictionary.to_pylist()))
    return orders
