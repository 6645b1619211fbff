"""Find the files of a table in directories and patterns, and check their columns."""

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

# Only libraries that need not be installed read these.
UNKNOWN_COMPRESSIONS = (".deflate", ".lz4", ".snappy")

Folders = Mapping[str, str | None]
"""The text of each column that a file's folders name as ``column=value``, None for no value."""


@dataclass(frozen=True)
class DataFile:
    """A file of a table, with the values that its folders name."""

    address: str
    bytes: int
    folders: Folders = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the path on the local disk."""
        return self.address.removeprefix("file:")


@dataclass(frozen=True)
class DataFiles:
    """The files of a table, sorted by their addresses, and the columns that folders name."""

    files: tuple[DataFile, ...]
    folders: pa.Schema

    def constants(self, folders: Folders) -> dict[str, pa.Scalar]:
        """Return the values that a file's folders name, in the types of their columns."""
        return {
            folder.name: convert(pa.array([folders[folder.name]], pa.string()), folder.type)[0]
            for folder in self.folders
        }

    def schema(self, fields: Sequence[pa.Field]) -> pa.Schema:
        """Return the columns of files, in which those of folders replace ones of the same name."""
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
        """Yield columns of a text file, with those of its folders and fields of structs.

        ``blocks`` are whole lines of the file, and ``schema`` is that of all files.
        """
        inner, constants = struct_fields(schema), self.constants(folders)
        outer = [inner[name].column if name in inner else name for name in columns.names]
        # At least one column is read, for the number of records.
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


# Small files that one task reads have so many bytes, so that threads can still share a table.
_BYTES_OF_A_BUNDLE = 1 << 18

_Piece = TypeVar("_Piece")


def bundled(pieces: Iterable[tuple[DataFile, _Piece]]) -> list[list[_Piece]]:
    """Group pieces of small files that are adjacent and in the same folders: a group is a task.

    >>> files = [DataFile(name, 1 << 17) for name in "abc"]
    >>> bundled([(file, file.address) for file in files])
    [['a', 'b'], ['c']]
    """
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
    """List the files of the paths of :func:`find_files`, sorted by their addresses.

    With a ``key``, which names the paths in messages, raises DataError if a path has no file. Also
    raises DataError if a folder names no value.
    """
    roots = {path: files.matches(path) for path in paths}
    if key is not None and not all(roots.values()):
        raise DataError(*(nothing_there(path, key) for path, hits in roots.items() if not hits))
    listed = []
    for root in (root for path in paths for root in roots[path]):
        for inside, size in files_at(files, root):
            address = f"{root}/{inside}".rstrip("/")
            folders = folders_of(inside.split("/")[:-1])
            if folders is not None and not _is_hidden(address.rpartition("/")[2]):
                listed.append(DataFile(address, size, folders))
    return sorted(listed, key=lambda file: file.address)


def find_files(
    files: Files, paths: Sequence[str], key: str, selection: WantedColumns | None = None
) -> DataFiles:
    """Find the files of a table in files, directories and patterns.

    Includes files of a directory, and of folders named like ``column=value`` at any depth, but no
    hidden ones. ``key`` names the paths in messages, and ``selection`` has the texts that mean
    missing. Raises DataError if nothing is at a path, or folders do not name the same columns
    everywhere, or name no value, and ConfigurationError if ``input.where`` restricts them.
    """
    if selection is not None and selection.where is not None:
        raise ConfigurationError(
            "input.where: found a condition on text files, or without Spark. Expected a table or "
            "Parquet, ORC or Avro files, and execution.engine: spark. Name the files by input.path"
        )
    listed = listed_files(files, paths, key)
    nested = [file for file in listed if file.folders and file.bytes]
    if not nested:
        return DataFiles(tuple(file for file in listed if not file.folders), pa.schema([]))
    names = list(nested[0].folders)
    for file in listed:
        if list(file.folders) != names and file.bytes:
            raise DataError(
                f"{key}: {file.address} and {nested[0].address} lie in folders that name other "
                "columns. Expected the same columns (folders like column=value) in one order "
                "everywhere. Move one of them"
            )
    # Spark reads a file of such folders once, even if several paths name it.
    distinct = {file.address: file for file in listed if list(file.folders) == names}
    markers = selection.markers if selection is not None else ()
    schema, missing = [], {}
    for name in names:
        data_type, missing[name] = typed_folders({file.folders[name] for file in nested}, markers)
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
    """Infer the type of a column of folders, and which of its texts mean missing.

    ``texts`` are those of :func:`folder_text`. In a column of texts markers stay values.

    >>> typed_folders(["2024", "?"], ["?"])
    (DataType(int32), frozenset({'?'}))
    """
    values = pa.array(set(texts), pa.string())
    data_type, _ = type_of(forms_of(values.filter(pc.invert(mean_missing(values, markers)))))
    if pa.types.is_string(data_type):
        return data_type, frozenset()
    marked = mean_missing(values, markers, numbers=True)
    return data_type, frozenset(values.filter(marked).drop_null().to_pylist())


def require_known_compressions(files: Sequence[DataFile], key: str) -> None:
    """Raise DataError if a text file is compressed in a way that cannot be read."""
    for file in files:
        if file.address.endswith(UNKNOWN_COMPRESSIONS):
            readable = f"{', '.join(COMPRESSED[:-1])} or {COMPRESSED[-1]}"
            raise DataError(
                f"{key}: {file.address} is compressed in a way that cannot be read. Expected "
                f"a file as it is, {readable}. Decompress it"
            )


def folder_text(value: str) -> str | None:
    """Return the value in a folder's name, or None if it stands for no value.

    Raises DataError if it is not in UTF-8.

    >>> folder_text("New%20York"), folder_text("__HIVE_DEFAULT_PARTITION__")
    ('New York', None)
    """
    return None if value == _NO_VALUE else _decoded(value)


def _decoded(text: str) -> str:
    """Decode the escapes in the name of a folder."""
    try:
        return unquote(text, errors="strict").encode().decode()
    except UnicodeError:
        raise DataError(
            "input: a folder like column=value has a name that is not written in UTF-8. Rename it"
        ) from None


def folders_of(names: Sequence[str]) -> dict[str, str | None] | None:
    """Return the values that folders name by column, or None if one names no column or is hidden.

    >>> folders_of(["year=2024", "month=1"]), folders_of(["backup"])
    ({'year': '2024', 'month': '1'}, None)
    """
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
    """Return whether a file or folder is one that readers of tables pass over.

    >>> [name for name in ("_SUCCESS", "_x=1", "~$p.xlsx", "p.csv") if not _is_hidden(name)]
    ['_x=1', 'p.csv']
    """
    return (
        (name.startswith("_") and "=" not in name)
        or name.startswith((".", "~$"))
        # Unfinished copies of Hadoop, backups of editors, and metadata of Windows.
        or name.endswith(("._COPYING_", "~"))
        or name.lower() in ("thumbs.db", "desktop.ini")
    )


_NUMBERED = re.compile(r"_col\d+")


@dataclass(frozen=True)
class FileSchemas:
    """The columns of each file of a table: the different schemas, and the index of each file's.

    ``folders`` are columns that folders name.
    """

    files: Sequence[str]
    schemas: Sequence[pa.Schema]
    schema_of_file: Sequence[int]
    folders: Sequence[str] = ()


def require_columns(
    listed: FileSchemas, selection: WantedColumns, *, columns: Sequence[str], path_key: str
) -> list[pa.Field]:
    """Check that every file has every wanted column, in one type, unless no file has it.

    ``columns`` are those that the engine sees in the table, with fields of structs, and
    ``path_key`` names its paths in messages. Returns the wanted columns that some files have but
    the engine does not see. Raises DataError with each column that a file lacks or has in another
    type, and one such file.
    """
    # Engines find columns of files whatever the case of their letters.
    known_names = {name.lower() for name in (*columns, *listed.folders)}
    folders = {name.lower() for name in listed.folders}
    fields = [_by_name(schema) for schema in listed.schemas]
    inner = [
        {part.name.lower(): [part.field] for part in struct_fields(schema).values()}
        for schema in listed.schemas
    ]
    # A file without columns has no records, and Hive's old files number their columns.
    is_exempt = [all(map(_NUMBERED.fullmatch, names)) for names in fields]
    problems: list[str] = []
    unknown: list[pa.Field] = []
    for name, is_read in selection.names.items():
        hits = [by_name.get(name.lower(), []) for by_name in fields]
        of_structs = [by_name.get(name.lower(), []) for by_name in inner]
        if name.lower() in folders or not (any(hits) or any(of_structs)):
            continue
        if any(hits) and any(of_structs):
            problems.append(
                f"{path_key}: {name!r} is a column in {_a_file(listed, _filled(hits))}, and a "
                f"field of a struct in {_a_file(listed, _filled(of_structs))}. Expected one of "
                "them in all files. Rename one, or write the files anew"
            )
            continue
        hits = hits if any(hits) else of_structs
        present = _filled(hits)
        problems += _indistinct(listed, hits, path_key)
        lacking = [index for index, hit in enumerate(hits) if not hit and not is_exempt[index]]
        if lacking and selection.missing == "error":
            problems.append(_lacks(listed, name, lacking, path_key, selection.key))
        if is_read:
            typed = {schema: hits[schema][0] for schema in present}
            problems += _type_conflict(listed, name, typed, path_key, is_field=hits is of_structs)
        if name.lower() not in known_names:
            unknown.append(hits[present[0]][0].with_name(name))
    if problems:
        raise DataError(*problems)
    return unknown


def _indistinct(
    listed: FileSchemas, fields_of_schemas: Sequence[Sequence[pa.Field]], path_key: str
) -> list[str]:
    """Return an error for each schema with columns whose names differ in their case alone."""
    return [
        f"{path_key}: {_a_file(listed, [schema])} has {len(fields)} columns of one name, "
        f"{', '.join(repr(field.name) for field in fields)}. Rename one"
        for schema, fields in enumerate(fields_of_schemas)
        if len(fields) > 1
    ]


def _type_conflict(
    listed: FileSchemas, name: str, fields: Mapping[int, pa.Field], path_key: str, *, is_field: bool
) -> list[str]:
    """Return an error if no type holds the values of a column in all files, else nothing.

    ``fields`` has the column of each schema, by the schema's index.
    """
    schemas = list(fields)
    if len({field.type for field in fields.values()}) > 1:
        # In the order of the files, so that the message does not depend on that of the schemas.
        schemas.sort(key=lambda schema: _a_file(listed, [schema]))
    types: dict[pa.DataType, int] = {}
    for schema in schemas:
        field = fields[schema]
        # Metadata mark a type of Spark alone. A column without values fits every type.
        if field.metadata or not pa.types.is_null(field.type):
            types.setdefault(UnreadType("void") if field.metadata else field.type, schema)
    for first, second in combinations(types, 2):
        # Numbers of several types are united in columns, but not in fields of structs.
        if is_field or wider(first, second) is None:
            return [
                f"{path_key}: the column {name!r} has type {type_name(first)} in "
                f"{_a_file(listed, [types[first]])} and {type_name(second)} in "
                f"{_a_file(listed, [types[second]])}. Expected one type in all files, or numbers "
                "of which one type holds all values. Write the column anew in one of them"
            ]
    return []


def _by_name(schema: pa.Schema) -> dict[str, list[pa.Field]]:
    """Return the columns of a schema by their names in small letters."""
    fields: dict[str, list[pa.Field]] = {}
    for column in schema:
        fields.setdefault(column.name.lower(), []).append(column)
    return fields


def _filled(fields_of_schemas: Sequence[Sequence[pa.Field]]) -> list[int]:
    """Return the indices of the schemas that have fields."""
    return [index for index, fields in enumerate(fields_of_schemas) if fields]


def _files_of(listed: FileSchemas, schemas: Sequence[int]) -> list[str]:
    """Return the files that have one of some schemas, sorted, as messages may show them."""
    return sorted(
        redact(file)
        for file, schema in zip(listed.files, listed.schema_of_file, strict=True)
        if schema in schemas
    )


def _a_file(listed: FileSchemas, schemas: Sequence[int]) -> str:
    """Return the first file that has one of some schemas."""
    return _files_of(listed, schemas)[0]


def _lacks(
    listed: FileSchemas, name: str, schemas: Sequence[int], path_key: str, key: str | None
) -> str:
    """Return the error that files of some schemas lack a column."""
    files = _files_of(listed, schemas)
    more = f" (and {len(files) - 1:,} more of {len(listed.files):,} files)" if files[1:] else ""
    remedy = "" if key is None else f", or set {key} to null to read missing values there"
    return (
        f"{path_key}: {files[0]}{more} lacks the column {name!r}, which other files have. Expected "
        f"it in all of them. Complete the files{remedy}"
    )
