"""Check the columns of each file of a table: a column that a file lacks is no missing value.

A table has the columns of one of its files, and nulls for those that another file lacks. Files that
name their columns (Parquet, ORC, Avro) are therefore asked one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.engine.raw_columns import WantedColumns, type_name
from anonspark.engine.struct_fields import struct_fields
from anonspark.errors import DataError
from anonspark.redaction import redact

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
        lacking = [place for place, one in enumerate(own) if not one and not exempt[place]]
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
        types: dict[str, int] = {}
        for place in there:
            field = own[place][0]
            # A column without values fits every type; of Spark's own types the metadata tells.
            if field.metadata or not pa.types.is_null(field.type):
                types.setdefault(type_name(field.type), place)
        if is_read and len(types) > 1:
            # In the order of the files, whichever was looked at first.
            one, other = sorted(types.items(), key=lambda own: _a_file(found, [own[1]]))[:2]
            problems.append(
                f"{path_key}: the column {name!r} has type {one[0]} in {_a_file(found, [one[1]])} "
                f"and {other[0]} in {_a_file(found, [other[1]])}. Expected one type in all files. "
                "Write the column anew in one of them"
            )
        if name.lower() not in known:
            unknown.append(own[there[0]][0].with_name(name))
    if problems:
        raise DataError(*problems)
    return unknown


def _by_name(schema: pa.Schema) -> dict[str, list[pa.Field]]:
    fields: dict[str, list[pa.Field]] = {}
    for field in schema:
        fields.setdefault(field.name.lower(), []).append(field)
    return fields


def _filled(own: Sequence[Sequence[pa.Field]]) -> list[int]:
    return [place for place, fields in enumerate(own) if fields]


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
