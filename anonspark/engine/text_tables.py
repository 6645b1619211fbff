"""Open tables of text files, by functions that read bytes as the engine does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from anonspark.engine.data_files import DataFile, DataFiles, require_known_compressions
from anonspark.engine.raw_columns import WantedColumns, require_distinct, require_distinct_header
from anonspark.engine.reading_errors import TableAddress
from anonspark.engine.values.json_reader import JsonReader
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import Reader, text_reader
from anonspark.errors import DataError

# The buffers of more columns may exceed the memory, which Arrow answers by ending the process.
_MOST_COLUMNS = 20_000


def open_reader(
    address: TableAddress,
    data_files: DataFiles,
    options: Mapping[str, str],
    texts: Sequence[str],
    selection: WantedColumns | None,
    first_line: Callable[[Reader, DataFile], str],
) -> Reader:
    """Create the reader of a table's text files, with the header of the first file.

    Options, texts and selection are those of
    :func:`~anonspark.engine.values.text_reader.text_reader`. ``first_line`` returns the first line
    of a file, or an empty text if it has none. Raises ConfigurationError if an option is unknown or
    has a wrong value, and DataError if there is no file, or the header has too many columns or
    names a wanted column twice.
    """
    reader = text_reader(address, options, texts, selection)
    if not data_files.files:
        raise address.not_of_the_format("no file")
    require_known_compressions(data_files.files, address.key)
    if isinstance(reader, JsonReader):
        return reader
    line = next(filter(None, (first_line(reader, file) for file in data_files.files)), "")
    columns = line.count(reader.separator) + 1
    if columns > _MOST_COLUMNS:
        raise DataError(
            f"{reader.where}: found {columns:,} columns in the first line. Expected at most "
            f"{_MOST_COLUMNS:,} in a CSV file. Remove columns that you do not need, or check the "
            "option sep"
        )
    if reader.header:
        require_distinct_header(reader.values(line), selection, reader.where)
    return reader.with_header(line)


def read_schema(address: TableAddress, reader: Reader, infer: Callable[[], Forms]) -> pa.Schema:
    """Return the columns of a table's text files, by the reader of :func:`open_reader`.

    Calls ``infer``, which returns the forms of all values, only if they decide the types. Raises
    DataError without a record, if values of an attribute have no type, or two columns one name.
    """
    infers = isinstance(reader, JsonReader) or reader.infers
    schema = reader.schema(infer() if infers else Forms())
    if isinstance(reader, JsonReader) and not schema.names:
        raise address.not_of_the_format("no record")
    require_distinct(schema.names, schema.names, reader.where)
    return schema
