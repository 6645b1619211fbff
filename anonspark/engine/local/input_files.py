"""The files of a table: directories, patterns, folders that are columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from anonspark.engine.files import Files
from anonspark.engine.reading_errors import nothing_there
from anonspark.engine.values.text_forms import convert, type_of_folders
from anonspark.errors import DataError

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """A file of a table.

    Parameters
    ----------
    path : str
        On the local disk.
    bytes : int
    folders : mapping of str to str or None
        What the names of its folders say: the text of each column, None for no value.
    """

    path: str
    bytes: int
    folders: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """How messages name it."""
        return f"file:{self.path}"


@dataclass(frozen=True)
class DataFiles:
    """The files of a table.

    Parameters
    ----------
    files : tuple of DataFile
        Sorted by their paths.
    folders : pyarrow.Schema
        Columns whose values are names of folders.
    """

    files: tuple[DataFile, ...]
    folders: pa.Schema

    def constants(self, file: DataFile) -> dict[str, pa.Scalar]:
        """Return what the folders of a file say, in the columns' types."""
        return {
            one.name: convert(pa.array([file.folders[one.name]], pa.string()), one.type)[0]
            for one in self.folders
        }


def find_files(files: Files, paths: Sequence[str], key: str) -> DataFiles:
    """Find the files of a table.

    Parameters
    ----------
    files : Files
        Of the local disk.
    paths : sequence of str
        Files, directories and patterns. Of a directory count the files in it, and those in
        folders named like ``column=value`` at any depth; hidden ones do not.
    key : str
        What named the paths, for messages.

    Raises
    ------
    DataError
        If nothing is at a path, or the folders do not name the same columns everywhere.
    """
    matches = {path: files.matches(path) for path in paths}
    problems = [nothing_there(path, key) for path, found in matches.items() if not found]
    if problems:
        raise DataError(*problems)
    roots = [Path(str(files.local_path(address))) for path in paths for address in matches[path]]
    every: list[DataFile] = []
    for root in roots:
        inside = [root] if root.is_file() else _files_in(root)
        for path in inside:
            if not _is_hidden(path.name):
                columns = _columns_of(path.parent, root if root.is_dir() else root.parent)
                one = DataFile(str(path), path.stat().st_size, columns or {})
                # Of folders of other names Spark reads nothing.
                if columns is not None:
                    every.append(one)
    every.sort(key=lambda one: one.path)
    named = [one for one in every if one.folders and one.bytes]
    if not named:
        return DataFiles(tuple(one for one in every if not one.folders), pa.schema([]))
    names = list(named[0].folders)
    for one in every:
        if list(one.folders) != names and one.bytes:
            raise DataError(
                f"{key}: {one.address} and {named[0].address} lie in folders that name other "
                "columns; expected the same columns (folders like column=value) in one order "
                "everywhere; move one of them"
            )
    # With folders that are columns each file counts once, however often it is named.
    distinct = {one.path: one for one in every if list(one.folders) == names}
    types = {name: type_of_folders({one.folders[name] for one in named}) for name in names}
    return DataFiles(tuple(distinct.values()), pa.schema(list(types.items())))


def _is_hidden(name: str) -> bool:
    return (
        (name.startswith("_") and "=" not in name)
        or name.startswith(".")
        or (name.endswith("._COPYING_"))
    )


def _files_in(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if _is_hidden(path.name):
            continue
        if path.is_dir():
            yield from _files_in(path)
        elif path.exists():
            yield path


def _columns_of(directory: Path, root: Path) -> dict[str, str | None] | None:
    """Return what folders below a root say; None if one of them says nothing."""
    columns: dict[str, str | None] = {}
    for folder in directory.relative_to(root).parts:
        name, equals, value = folder.partition("=")
        if not (name and equals and value):
            return None
        columns[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return columns
