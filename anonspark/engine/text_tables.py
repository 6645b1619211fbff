"""Opening tables of text files: what both engines do, around how they get at bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.engine.data_files import DataFile, DataFiles, require_known_compressions
from anonspark.engine.raw_columns import WantedColumns, require_distinct, require_distinct_header
from anonspark.engine.reading_errors import no_record, not_of_the_format
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.json_reader import JsonReader
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import text_reader

Reader = CsvReader | JsonReader


@dataclass(frozen=True)
class TableAddress:
    """What is opened, and what messages call it.

    Parameters
    ----------
    paths : tuple of str
    data_format : str
        In small letters.
    key : str
        What named the paths.
    section : str or None
        The configuration's section with format and options, if there is one.
    """

    paths: tuple[str, ...]
    data_format: str
    key: str
    section: str | None

    @property
    def where(self) -> str:
        """The paths behind what named them."""
        return f"{self.key}: {', '.join(self.paths)}"

    def not_of_the_format(self, reason: str) -> Exception:
        """Return the error of files that are not of the format, for a reason."""
        return not_of_the_format(self.paths, self.data_format, self.key, self.section, reason)


def open_reader(
    address: TableAddress,
    found: DataFiles,
    options: Mapping[str, str],
    texts: Sequence[str],
    wanted: WantedColumns | None,
    first_line: Callable[[Reader, DataFile], str],
) -> Reader:
    """Return the reader of a table's text files, which knows their header.

    Parameters
    ----------
    address : TableAddress
    found : DataFiles
    options : mapping of str to str
    texts : sequence of str
    wanted : WantedColumns or None
        These as of :func:`~anonspark.engine.values.text_reader.text_reader`.
    first_line : callable
        Returns the first line of a file, nothing if there is none.

    Raises
    ------
    ConfigurationError
        If an option is not known, or has a value that is none of it.
    DataError
        If there is no file, or the header names a wanted column twice.
    """
    reader = text_reader(
        address.data_format,
        options,
        paths=address.paths,
        key=address.key,
        section=address.section,
        texts=texts,
        wanted=wanted,
    )
    if not found.files:
        raise address.not_of_the_format("no file")
    require_known_compressions(found.files, address.key)
    if isinstance(reader, JsonReader):
        return reader
    line = next(filter(None, (first_line(reader, file) for file in found.files)), "")
    if reader.header:
        require_distinct_header(reader.values(line), wanted, reader.where)
    return reader.with_header(line)


def read_schema(address: TableAddress, reader: Reader, infer: Callable[[], Forms]) -> pa.Schema:
    """Return the columns of a table's text files.

    Parameters
    ----------
    address : TableAddress
    reader : CsvReader or JsonReader
        Of :func:`open_reader`.
    infer : callable
        Returns the forms of all values; asked where they tell types.

    Raises
    ------
    DataError
        If there is no record, an attribute's values have no type, or a name is there twice.
    """
    infers = isinstance(reader, JsonReader) or reader.infers
    schema = reader.schema(infer() if infers else Forms())
    if isinstance(reader, JsonReader) and not schema.names:
        raise no_record(address.paths, address.data_format, address.key, address.section)
    require_distinct(schema.names, schema.names, reader.where)
    return schema
