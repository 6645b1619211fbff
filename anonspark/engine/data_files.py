"""The files of a table: directories, patterns, folders that are columns, and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.input import COMPRESSED
from anonspark.engine.files import Files, files_at
from anonspark.engine.raw_columns import UnreadType, WantedColumns, type_name
from anonspark.engine.reading_errors import nothing_there
from anonspark.engine.struct_fields import struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import wider
from anonspark.engine.values.text_forms import convert, forms_of, mean_missing, type_of
from anonspark.engine.values.text_lines import TextLines
from anonspark.errors import ConfigurationError, DataError
from anonspark.redaction import redact

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

# What is read by libraries that need not be here.
UNKNOWN_COMPRESSIONS = (".deflate", ".lz4", ".snappy")

Folders = Mapping[str, str | None]
"""The text of each column in the names of a file's folders, None for no value."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table.

    Parameters
    ----------
    address : str
    bytes : int
    folders : mapping of str to str or None
    """

    address: str
    bytes: int
    folders: Folders = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return its path on the local disk."""
        return self.address.removeprefix("file:")


@dataclass(frozen=True)
class DataFiles:
    """The files of a table.

    Parameters
    ----------
    files : tuple of DataFile
        Sorted by their addresses.
    folders : pyarrow.Schema
        Columns whose values are names of folders.
    """

    files: tuple[DataFile, ...]
    folders: pa.Schema

    def constants(self, folders: Folders) -> dict[str, pa.Scalar]:
        """Return what the folders of a file say, in the columns' types."""
        return {
            folder.name: convert(pa.array([folders[folder.name]], pa.string()), folder.type)[0]
            for folder in self.folders
        }

    def schema(self, fields: Sequence[pa.Field]) -> pa.Schema:
        """Return the columns of files, in the place of which or behind which stand the folders'."""
        folders = {folder.name.lower(): folder for folder in self.folders}
        columns = [folders.pop(column.name.lower(), column) for column in fields]
        return pa.schema([*columns, *folders.values()])

    def read(
        self,
        reader: TextLines,
        folders: Folders,
        blocks: Iterable[bytes],
        schema: pa.Schema,
        columns: pa.Schema,
    ) -> Batches:
        """Yield columns of a text file, among them those of its folders and fields of structs.

        Parameters
        ----------
        reader : TextLines
        folders : mapping of str to str or None
            Of the file.
        blocks : iterable of bytes
            Whole lines of it.
        schema : pyarrow.Schema
            Of the files.
        columns : pyarrow.Schema
        """
        inner, constants = struct_fields(schema), self.constants(folders)
        outer = [inner[name].column if name in inner else name for name in columns.names]
        # One column at least tells how many records there are.
        names = [name for name in dict.fromkeys(outer) if name not in constants]
        read = pa.schema(map(schema.field, names or schema.names[:1]))
        for batch in reader.in_folders(folders).read(blocks, read):
            arrays = [
                pa.repeat(constants[name], len(batch))
                if name in constants
                else inner[name].values(batch.column(inner[name].column))
                if name in inner
                else batch.column(name)
                for name in columns.names
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)


# Of small files that a task reads, so that several threads still share them.
_BYTES_OF_A_BUNDLE = 1 << 18

_Piece = TypeVar("_Piece")


def bundled(pieces: Iterable[tuple[DataFile, _Piece]]) -> list[list[_Piece]]:
    """Bundle pieces of small files in a row in the same folders: tasks cost more than they."""
    bundles: list[list[_Piece]] = []
    size, folders = 0, None
    for file, piece in pieces:
        size += file.bytes
        if size > _BYTES_OF_A_BUNDLE or file.folders != folders:
            bundles.append([])
            size, folders = file.bytes, file.folders
        bundles[-1].append(piece)
    return bundles


def listed_files(files: Files, paths: Sequence[str], key: str | None = None) -> list[DataFile]:
    """Return the files that a table is made of, sorted by their addresses.

    Parameters
    ----------
    files : Files
    paths : sequence of str
        As of :func:`find_files`.
    key : str or None
        What named the paths, for messages. None where nothing need be there.

    Raises
    ------
    DataError
        If nothing is at a path, or a folder names no value.
    """
    roots = {path: files.matches(path) for path in paths}
    if key is not None and not all(roots.values()):
        raise DataError(*(nothing_there(path, key) for path, hits in roots.items() if not hits))
    every = []
    for root in (root for path in paths for root in roots[path]):
        for inside, size in files_at(files, root):
            address = f"{root}/{inside}".rstrip("/")
            folders = folders_of(inside.split("/")[:-1])
            if folders is not None and not _is_hidden(address.rpartition("/")[2]):
                every.append(DataFile(address, size, folders))
    return sorted(every, key=lambda file: file.address)


def find_files(
    files: Files, paths: Sequence[str], key: str, selection: WantedColumns | None = None
) -> DataFiles:
    """Find the files of a table.

    Parameters
    ----------
    files : Files
    paths : sequence of str
        Files, directories and patterns. Of a directory count the files in it, and those in
        folders named like ``column=value`` at any depth. Hidden ones do not.
    key : str
        What named the paths, for messages.
    selection : WantedColumns or None
        Knows what means missing.

    Raises
    ------
    ConfigurationError
        If ``input.where`` restricts the records: all of these files would be read.
    DataError
        If nothing is at a path, or the folders do not name the same columns everywhere, or name
        no value.
    """
    if selection is not None and selection.where is not None:
        raise ConfigurationError(
            "input.where: found a condition on text files, or without Spark. Expected a table or "
            "Parquet, ORC or Avro files, and execution.engine: spark. Name the files by input.path"
        )
    every = listed_files(files, paths, key)
    named = [file for file in every if file.folders and file.bytes]
    if not named:
        return DataFiles(tuple(file for file in every if not file.folders), pa.schema([]))
    names = list(named[0].folders)
    for file in every:
        if list(file.folders) != names and file.bytes:
            raise DataError(
                f"{key}: {file.address} and {named[0].address} lie in folders that name other "
                "columns. Expected the same columns (folders like column=value) in one order "
                "everywhere. Move one of them"
            )
    # With folders that are columns each file counts once, however often it is named.
    distinct = {file.address: file for file in every if list(file.folders) == names}
    markers = selection.markers if selection is not None else ()
    schema, missing = [], {}
    for name in names:
        data_type, missing[name] = typed_folders({file.folders[name] for file in named}, markers)
        schema.append(pa.field(name, data_type))
    data_files = [
        replace(
            file,
            folders={
                name: None if text in missing[name] else text for name, text in file.folders.items()
            },
        )
        for file in distinct.values()
    ]
    return DataFiles(tuple(data_files), pa.schema(schema))


def typed_folders(
    texts: Iterable[str | None], markers: Sequence[str]
) -> tuple[pa.DataType, frozenset[str]]:
    """Return the type of a column of folders, and the texts that mean missing in it.

    Parameters
    ----------
    texts : iterable of str or None
        Of :func:`folder_text`.
    markers : sequence of str
        Texts that mean missing. In a column of texts they stay what they are.
    """
    values = pa.array(set(texts), pa.string())
    data_type, _ = type_of(forms_of(values.filter(pc.invert(mean_missing(values, markers)))))
    if pa.types.is_string(data_type):
        return data_type, frozenset()
    marked = mean_missing(values, markers, numbers=True)
    return data_type, frozenset(values.filter(marked).drop_null().to_pylist())


def require_known_compressions(files: Sequence[DataFile], key: str) -> None:
    """Check that text files are compressed in ways that can be read, if at all.

    Raises
    ------
    DataError
    """
    for file in files:
        if file.address.endswith(UNKNOWN_COMPRESSIONS):
            readable = f"{', '.join(COMPRESSED[:-1])} or {COMPRESSED[-1]}"
            raise DataError(
                f"{key}: {file.address} is compressed in a way that cannot be read. Expected "
                f"a file as it is, {readable}. Decompress it"
            )


def folder_text(value: str) -> str | None:
    """Return the value in a folder's name, or None if the name stands for no value.

    Raises
    ------
    DataError
        If it is not in UTF-8.
    """
    return None if value == _NO_VALUE else _decoded(value)


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict").encode().decode()
    except UnicodeError:
        raise DataError(
            "input: a folder like column=value has a name that is not written in UTF-8. Rename it"
        ) from None


def folders_of(names: Sequence[str]) -> dict[str, str | None] | None:
    """Return what the names of folders say. None if one of them says nothing, or is hidden."""
    columns: dict[str, str | None] = {}
    for folder in names:
        name, equals, value = folder.partition("=")
        if not (name and equals) or _is_hidden(folder):
            return None
        if not value:
            raise DataError(
                f"input: the folder {folder} names no value. Where its records have none, rename "
                f"it to {folder}{_NO_VALUE}"
            )
        columns[_decoded(name)] = folder_text(value)
    return columns


def _is_hidden(name: str) -> bool:
    return (
        (name.startswith("_") and "=" not in name)
        or name.startswith((".", "~$"))
        # Copies of editors, and what Windows leaves in folders.
        or name.endswith(("._COPYING_", "~"))
        or name.lower() in ("thumbs.db", "desktop.ini")
    )


_NUMBERED = re.compile(r"_col\d+")


@dataclass(frozen=True)
class FileSchemas:
    """The columns of each file of a table.

    Parameters
    ----------
    files : sequence of str
    schemas : sequence of pyarrow.Schema
        The different ones.
    places : sequence of int
        Of each file, the place of its columns among `schemas`.
    folders : sequence of str
        Columns whose values are names of folders.
    """

    files: Sequence[str]
    schemas: Sequence[pa.Schema]
    places: Sequence[int]
    folders: Sequence[str] = ()


def lacking_columns(
    listed: FileSchemas, selection: WantedColumns, *, columns: Sequence[str], path_key: str
) -> list[pa.Field]:
    """Check that every file has every column that is wanted, in one type.

    Parameters
    ----------
    listed : FileSchemas
    selection : WantedColumns
        A column that no file has is not looked for here.
    columns : sequence of str
        Those that the engine knows of the table, fields of structs among them.
    path_key : str
        What named the table's paths, for messages.

    Returns
    -------
    list of pyarrow.Field
        Columns that some files have and the engine knows nothing of, where nulls are allowed.

    Raises
    ------
    DataError
        Naming each column that a file lacks or has in another type, and one such file.
    """
    # Engines find columns of files whatever the case of their letters.
    known_names = {name.lower() for name in (*columns, *listed.folders)}
    folders = {name.lower() for name in listed.folders}
    fields = [_by_name(schema) for schema in listed.schemas]
    inner = [
        {part.name.lower(): [part.field] for part in struct_fields(schema).values()}
        for schema in listed.schemas
    ]
    problems: list[str] = []
    unknown: list[pa.Field] = []
    for name, is_read in selection.names.items():
        if name.lower() in folders:
            continue
        hits = [by_name.get(name.lower(), []) for by_name in fields]
        of_structs = [by_name.get(name.lower(), []) for by_name in inner]
        if any(hits) and any(of_structs):
            problems.append(
                f"{path_key}: {name!r} is a column in {_a_file(listed, _filled(hits))}, and a "
                f"field of a struct in {_a_file(listed, _filled(of_structs))}. Expected one of "
                "them in all files. Rename one, or write the files anew"
            )
            continue
        hits = hits if any(hits) else of_structs
        # Files that have no column at all have no records; Hive's old ones number their columns.
        exempt = [all(_NUMBERED.fullmatch(column) for column in names) for names in fields]
        present = _filled(hits)
        lacking = [index for index, hit in enumerate(hits) if not hit and not exempt[index]]
        if not present:
            continue
        problems += [
            f"{path_key}: {_a_file(listed, [schema])} has {len(hits[schema])} columns that Spark "
            f"cannot distinguish, {', '.join(repr(hit.name) for hit in hits[schema])}. Rename one"
            for schema in present
            if len(hits[schema]) > 1
        ]
        if lacking and selection.missing == "error":
            problems.append(_lacks(listed, name, lacking, path_key, selection.key))
        if is_read:
            typed = {schema: hits[schema][0] for schema in present}
            problems += _unlike(listed, name, typed, path_key, is_field=hits is of_structs)
        if name.lower() not in known_names:
            unknown.append(hits[present[0]][0].with_name(name))
    if problems:
        raise DataError(*problems)
    return unknown


def _unlike(
    listed: FileSchemas, name: str, fields: Mapping[int, pa.Field], path_key: str, *, is_field: bool
) -> list[str]:
    """Return the error of a column that no type holds as it is in all files, or nothing."""
    schemas = list(fields)
    if len({field.type for field in fields.values()}) > 1:
        # In the order of the files, whichever was looked at first.
        schemas.sort(key=lambda schema: _a_file(listed, [schema]))
    types: dict[pa.DataType, int] = {}
    for schema in schemas:
        field = fields[schema]
        # Of Spark's own types the metadata tells. A column without values fits every type.
        if field.metadata or not pa.types.is_null(field.type):
            types.setdefault(UnreadType("void") if field.metadata else field.type, schema)
    for first, second in combinations(types, 2):
        # Fields of structs are read in one type.
        if is_field or wider(first, second) is None:
            return [
                f"{path_key}: the column {name!r} has type {type_name(first)} in "
                f"{_a_file(listed, [types[first]])} and {type_name(second)} in "
                f"{_a_file(listed, [types[second]])}. Expected one type in all files, or numbers "
                "of which one type holds all values. Write the column anew in one of them"
            ]
    return []


def _by_name(schema: pa.Schema) -> dict[str, list[pa.Field]]:
    fields: dict[str, list[pa.Field]] = {}
    for column in schema:
        fields.setdefault(column.name.lower(), []).append(column)
    return fields


def _filled(fields_of_schemas: Sequence[Sequence[pa.Field]]) -> list[int]:
    return [index for index, fields in enumerate(fields_of_schemas) if fields]


def _files_of(listed: FileSchemas, schemas: Sequence[int]) -> list[str]:
    return sorted(
        redact(file)
        for file, schema in zip(listed.files, listed.places, strict=True)
        if schema in schemas
    )


def _a_file(listed: FileSchemas, schemas: Sequence[int]) -> str:
    return _files_of(listed, schemas)[0]


def _lacks(
    listed: FileSchemas, name: str, schemas: Sequence[int], path_key: str, key: str | None
) -> str:
    files = _files_of(listed, schemas)
    more = f" (and {len(files) - 1:,} more of {len(listed.files):,} files)" if files[1:] else ""
    remedy = "" if key is None else f", or set {key} to null to read missing values there"
    return (
        f"{path_key}: {files[0]}{more} lacks the column {name!r}, which other files have. Expected "
        f"it in all of them. Complete the files{remedy}"
    )
