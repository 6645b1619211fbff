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
from anonspark.errors import DataError
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
        own = [folders.pop(one.name.lower(), one) for one in fields]
        return pa.schema([*own, *folders.values()])

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
        raise DataError(*(nothing_there(path, key) for path, own in roots.items() if not own))
    every = []
    for root in (root for path in paths for root in roots[path]):
        for inside, size in files_at(files, root):
            address = f"{root}/{inside}".rstrip("/")
            folders = _folders(inside.split("/")[:-1])
            if folders is not None and not _is_hidden(address.rpartition("/")[2]):
                every.append(DataFile(address, size, folders))
    return sorted(every, key=lambda one: one.address)


def find_files(
    files: Files, paths: Sequence[str], key: str, wanted: WantedColumns | None = None
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
    wanted : WantedColumns or None
        Knows what means missing.

    Raises
    ------
    DataError
        If nothing is at a path, or the folders do not name the same columns everywhere, or name
        no value.
    """
    every = listed_files(files, paths, key)
    named = [one for one in every if one.folders and one.bytes]
    if not named:
        return DataFiles(tuple(one for one in every if not one.folders), pa.schema([]))
    names = list(named[0].folders)
    for one in every:
        if list(one.folders) != names and one.bytes:
            raise DataError(
                f"{key}: {one.address} and {named[0].address} lie in folders that name other "
                "columns. Expected the same columns (folders like column=value) in one order "
                "everywhere. Move one of them"
            )
    # With folders that are columns each file counts once, however often it is named.
    distinct = {one.address: one for one in every if list(one.folders) == names}
    markers = wanted.markers if wanted is not None else ()
    schema, missing = [], {}
    for name in names:
        own, missing[name] = typed_folders({one.folders[name] for one in named}, markers)
        schema.append(pa.field(name, own))
    found = [
        replace(
            one,
            folders={
                name: None if text in missing[name] else text for name, text in one.folders.items()
            },
        )
        for one in distinct.values()
    ]
    return DataFiles(tuple(found), pa.schema(schema))


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
    own, _ = type_of(forms_of(values.filter(pc.invert(mean_missing(values, markers)))))
    if pa.types.is_string(own):
        return own, frozenset()
    marked = mean_missing(values, markers, numbers=True)
    return own, frozenset(values.filter(marked).drop_null().to_pylist())


def require_known_compressions(files: Sequence[DataFile], key: str) -> None:
    """Check that text files are compressed in ways that can be read, if at all.

    Raises
    ------
    DataError
    """
    for file in files:
        if file.address.endswith(UNKNOWN_COMPRESSIONS):
            known = f"{', '.join(COMPRESSED[:-1])} or {COMPRESSED[-1]}"
            raise DataError(
                f"{key}: {file.address} is compressed in a way that cannot be read. Expected "
                f"a file as it is, {known}. Decompress it"
            )


def folder_text(value: str) -> str | None:
    """Return what stands behind the sign in a folder's name. None for no value.

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


def _folders(names: Sequence[str]) -> dict[str, str | None] | None:
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
    found: FileSchemas, wanted: WantedColumns, *, columns: Sequence[str], path_key: str
) -> list[pa.Field]:
    """Check that every file has every column that is wanted, in one type.

    Parameters
    ----------
    found : FileSchemas
    wanted : WantedColumns
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
    known = {name.lower() for name in (*columns, *found.folders)}
    folders = {name.lower() for name in found.folders}
    fields = [_by_name(schema) for schema in found.schemas]
    inner = [
        {one.name.lower(): [one.field] for one in struct_fields(schema).values()}
        for schema in found.schemas
    ]
    problems: list[str] = []
    unknown: list[pa.Field] = []
    for name, is_read in wanted.names.items():
        if name.lower() in folders:
            continue
        own = [one.get(name.lower(), []) for one in fields]
        of_structs = [one.get(name.lower(), []) for one in inner]
        if any(own) and any(of_structs):
            problems.append(
                f"{path_key}: {name!r} is a column in {_a_file(found, _filled(own))}, and a field "
                f"of a struct in {_a_file(found, _filled(of_structs))}. Expected one of them in "
                "all files. Rename one, or write the files anew"
            )
            continue
        own = own if any(own) else of_structs
        # Files that have no column at all have no records; Hive's old ones number their columns.
        exempt = [all(_NUMBERED.fullmatch(column) for column in one) for one in fields]
        there = _filled(own)
        lacking = [index for index, one in enumerate(own) if not one and not exempt[index]]
        if not there:
            continue
        problems += [
            f"{path_key}: {_a_file(found, [place])} has {len(own[place])} columns that Spark "
            f"cannot distinguish, {', '.join(repr(field.name) for field in own[place])}. Rename one"
            for place in there
            if len(own[place]) > 1
        ]
        if lacking and wanted.missing == "error":
            problems.append(_lacks(found, name, lacking, path_key, wanted.key))
        if is_read:
            typed = {place: own[place][0] for place in there}
            problems += _unlike(found, name, typed, path_key, is_field=own is of_structs)
        if name.lower() not in known:
            unknown.append(own[there[0]][0].with_name(name))
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


def _filled(own: Sequence[Sequence[pa.Field]]) -> list[int]:
    return [index for index, fields in enumerate(own) if fields]


def _files_of(found: FileSchemas, places: Sequence[int]) -> list[str]:
    return sorted(
        redact(file)
        for file, place in zip(found.files, found.places, strict=True)
        if place in places
    )


def _a_file(found: FileSchemas, places: Sequence[int]) -> str:
    return _files_of(found, places)[0]


def _lacks(
    found: FileSchemas, name: str, places: Sequence[int], path_key: str, key: str | None
) -> str:
    files = _files_of(found, places)
    more = f" (and {len(files) - 1:,} more of {len(found.files):,} files)" if files[1:] else ""
    remedy = "" if key is None else f", or set {key} to null to read missing values there"
    return (
        f"{path_key}: {files[0]}{more} lacks the column {name!r}, which other files have. Expected "
        f"it in all of them. Complete the files{remedy}"
    )
