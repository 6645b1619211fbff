"""Opening tables of files without Spark, with the columns, types and errors that Spark has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from anonspark.engine.file_schemas import FileSchemas, lacking_columns
from anonspark.engine.files import Files
from anonspark.engine.local.columnar_files import (
    ColumnarFile,
    Read,
    open_columnar,
    reads_of,
)
from anonspark.engine.local.csv_files import CsvDialect, CsvFiles
from anonspark.engine.local.day_patterns import ISO_DAY, DayPattern
from anonspark.engine.local.input_files import DataFiles, find_files
from anonspark.engine.local.json_files import JsonFiles
from anonspark.engine.local.text_files import UNKNOWN_COMPRESSIONS
from anonspark.engine.local.text_types import Found, UnknownTypeError
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.raw_columns import WantedColumns, require_distinct_header
from anonspark.engine.reading_errors import (
    different_headers,
    no_record,
    not_of_the_format,
    on_spark,
    options_not_taken,
    type_not_read,
)
from anonspark.engine.struct_fields import struct_fields, with_struct_fields
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, DataError

FORMATS = ("parquet", "csv", "orc", "json")


@dataclass(frozen=True)
class Opened:
    """A table of files.

    Parameters
    ----------
    schema : pyarrow.Schema
    reads : tuple of callable
        One a task.
    """

    schema: pa.Schema
    reads: tuple[Read, ...]

    @property
    def tasks(self) -> tuple[Callable[[], Batches], ...]:
        """What opens the batches of each task; may be asked again.

        A task is a row group, a stripe, or some megabytes of text. It raises DataError if files
        vanished, are damaged or hold malformed records.
        """
        return tuple(partial(read, self.schema) for read in self.reads)

    def with_fields(self) -> Opened:
        """Return the table with the fields of its structs as columns, which are read alone."""
        return Opened(with_struct_fields(self.schema), self.reads)

    def select(self, names: Sequence[str]) -> Opened:
        """Return the table with some of its columns, at least one; others are not read."""
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
    wanted: WantedColumns | None = None,
) -> Opened:
    """Open a table of files; :meth:`anonspark.engine.protocol.Engine.open_table` says more.

    Parameters
    ----------
    files : Files
        Of the local disk.
    paths : sequence of str
    data_format : str
    options : mapping of str to str
    key : str
        What named the paths, for messages.
    section : str or None
        The configuration's section with format and options, if there is one.
    texts : sequence of str
        Columns that are read as texts, where types are told by nothing but the values.
    wanted : WantedColumns or None
        What each file has to have; None asks no file.

    Raises
    ------
    DataError
        If a path does not exist or cannot be opened in this format, or a file lacks a column.
    ConfigurationError
        If the format or an option is not known here.

    Notes
    -----
    Footers are read, or of texts whose types are inferred all of them once.
    """
    if data_format.lower() not in FORMATS:
        raise ConfigurationError(
            f"{key if section is None else f'{section}.format'}: the local engine has no data "
            f"source {data_format!r}; expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, or set "
            "execution.engine to spark, which reads others"
        )
    asked = _Asked(tuple(paths), data_format.lower(), key, section)
    require_plain_files(files, paths, data_format, key)
    found = find_files(files, paths, key)
    if asked.data_format == "csv":
        return _open_csv(asked, found, options, texts, wanted)
    if asked.data_format == "json":
        return _open_json(asked, found, options, wanted)
    return _open_columnar(asked, found, options, wanted)


@dataclass(frozen=True)
class _Asked:
    """What is opened, for messages."""

    paths: tuple[str, ...]
    data_format: str
    key: str
    section: str | None

    @property
    def where(self) -> str:
        return f"{self.key}: {', '.join(self.paths)}"

    def not_of_the_format(self, reason: str) -> Exception:
        return not_of_the_format(self.paths, self.data_format, self.key, self.section, reason)

    def options_not_taken(self, kind: str) -> ConfigurationError:
        return options_not_taken(self.data_format, self.key, self.section, kind)

    def option(self, name: str) -> str:
        """How messages call an option."""
        return self.key if self.section is None else f"{self.section}.options.{name}"

    def unknown_option(self, name: str, known: Sequence[str]) -> ConfigurationError:
        what = self.option(name)
        expected = ", ".join(known) or "none"
        return ConfigurationError(
            f"{what}: the local engine knows no option {name!r} of {self.data_format}; expected "
            f"{expected}; leave it out, or say {on_spark(self.where)}, which reads it"
        )


def _open_columnar(
    asked: _Asked, found: DataFiles, options: Mapping[str, str], wanted: WantedColumns | None
) -> Opened:
    for name in options:
        raise asked.unknown_option(name, ())
    opened = open_columnar(found.files, asked.data_format, asked.where)
    for one in opened:
        for name, kind in one.unread.items():
            if wanted is None or _is_wanted(name, wanted):
                where = f"{asked.key}: {one.file.address}"
                raise type_not_read(where, kind, column=name)
    with_columns = (one.schema for one in opened if one.schema.names)
    first = next(with_columns, opened[0].schema if opened else None)
    if first is None or (asked.data_format == "orc" and not first.names):
        raise asked.not_of_the_format("UNABLE_TO_INFER_SCHEMA")
    fields = list(first)
    inner = {name.lower() for name in struct_fields(first)}
    if wanted is not None:
        known = with_struct_fields(first).names
        fields += lacking_columns(
            _schemas(opened, found), wanted, columns=known, path_key=asked.key
        )
        own = {name.lower() for one in opened for name in one.schema.names}
        inner |= {field.name.lower() for field in fields} - own
    schema = _with_folders(fields, found)
    columns = [field.name for field in fields]
    reads = [read for one in opened for read in reads_of(one, found, columns, inner, asked.where)]
    return Opened(schema, tuple(reads))


def _is_wanted(name: str, wanted: WantedColumns) -> bool:
    """Return whether a column, or a field of it, is looked for."""
    own = name.lower()
    return any(own == one.lower() or one.lower().startswith(f"{own}.") for one in wanted.names)


_CSV_OPTIONS = (
    *("header", "inferSchema", "sep", "delimiter", "quote", "escape", "encoding", "charset"),
    *("nullValue", "comment", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
    *("enforceSchema", "dateFormat"),
)
_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "iso-8859-1": "latin-1",
    "us-ascii": "ascii",
    "windows-1252": "cp1252",
}


def _dialect(asked: _Asked, given: Mapping[str, str]) -> tuple[CsvDialect, bool, bool]:
    """Return what options of CSV say, whether to infer types, and to look at all headers."""
    known = {name.lower(): name for name in _CSV_OPTIONS}
    for name in given:
        if name.lower() not in known:
            raise asked.unknown_option(name, _CSV_OPTIONS)
    options = {name.lower(): value for name, value in given.items()}

    def is_set(name: str, default: str = "false") -> bool:
        value = options.get(name.lower(), default).lower()
        if value not in ("true", "false"):
            raise asked.options_not_taken("IllegalArgumentException")
        return value == "true"

    def letter(name: str, default: str) -> str:
        value = {"\\t": "\t"}.get(options.get(name, default), options.get(name, default))
        if len(value) > 1:
            kind = "IllegalArgumentException" if name == "sep" else "SparkRuntimeException"
            raise asked.options_not_taken(kind)
        if not value.isascii():
            raise asked.options_not_taken("IllegalArgumentException")
        return value

    if "delimiter" in options:
        options["sep"] = options["delimiter"]
    encoding = _ENCODINGS.get(options.get("encoding", options.get("charset", "utf-8")).lower())
    dialect = CsvDialect(
        header=is_set("header"),
        separator=letter("sep", ","),
        quote=letter("quote", '"'),
        escape=letter("escape", "\\"),
        encoding=encoding or "",
        null=options.get("nullvalue", ""),
        comment=letter("comment", ""),
        trim_left=is_set("ignoreLeadingWhiteSpace"),
        trim_right=is_set("ignoreTrailingWhiteSpace"),
        days=_days(asked, options.get("dateformat")) if is_set("inferSchema") else None,
    )
    if encoding is None or not dialect.separator or not dialect.escape:
        raise asked.options_not_taken("IllegalArgumentException")
    # Said by nobody, it is what all files are held to.
    enforced = "enforceschema" in options and is_set("enforceSchema")
    return dialect, is_set("inferSchema"), dialect.header and not enforced


def _days(asked: _Asked, told: str | None) -> DayPattern | None:
    """Return how days are written; None for as nobody has to say."""
    if told in (None, ISO_DAY):
        return None
    days = DayPattern.read(str(told))
    if days is None:
        raise ConfigurationError(
            f"{asked.option('dateFormat')}: found {told!r}; expected dd or d, MM or M, and yyyy, "
            "with one of . / - between them, as dd.MM.yyyy or yyyy/MM/dd, for the local engine; "
            "correct it, or set execution.engine to spark, which reads others"
        )
    return days


def _open_csv(
    asked: _Asked,
    found: DataFiles,
    options: Mapping[str, str],
    texts: Sequence[str],
    wanted: WantedColumns | None,
) -> Opened:
    dialect, infers, looks = _dialect(asked, options)
    _require_readable(asked, found)
    skips_malformed = wanted is not None and wanted.skips_malformed
    table = CsvFiles(found, dialect, asked.where, skips_malformed)
    if dialect.header:
        require_distinct_header(table.first_line, wanted, asked.where)
    columns = table.columns()
    if looks and len(found.files) > 1:
        names = [name.lower() for name in columns]
        for header in filter(None, map(table.header, found.files)):
            if [(name or "").lower() for name in header] != names:
                raise different_headers(asked.where)
    types = dict.fromkeys(columns, pa.string())
    if infers:
        for name, known in table.types(columns).items():
            types[name] = _inferred(asked, name, known, texts, wanted)
    schema = _with_folders([pa.field(name, kind) for name, kind in types.items()], found)
    return Opened(schema, tuple(table.reads(columns, types)))


def _open_json(
    asked: _Asked, found: DataFiles, options: Mapping[str, str], wanted: WantedColumns | None
) -> Opened:
    for name in options:
        raise asked.unknown_option(name, ())
    _require_readable(asked, found)
    table = JsonFiles(found, asked.where)
    fields = table.fields()
    if not fields and table.has_records:
        raise no_record(asked.paths, asked.data_format, asked.key, asked.section)
    names = [name.lower() for name in fields]
    if len(set(names)) < len(names):
        raise asked.not_of_the_format("COLUMN_ALREADY_EXISTS")
    asks = None if wanted is None else {name.lower() for name in wanted.names}
    types = {name: kind.type() for name, kind in fields.items()}
    inner = struct_fields(pa.schema(list(types.items())))
    kinds = fields | {name: fields[one.column].at(one.path) for name, one in inner.items()}
    for name, kind in kinds.items():
        if kind.is_mixed and (asks is None or name.lower() in asks):
            raise DataError(
                f"{asked.key}: the column {name!r} has values of kinds that have no type in "
                "common; expected one kind (numbers, texts, truth values, lists or objects); "
                "write texts only, or set execution.engine to spark, which reads their JSON"
            )
    schema = _with_folders([pa.field(name, one) for name, one in types.items()], found)
    return Opened(schema, tuple(table.reads(types, inner)))


def _require_readable(asked: _Asked, found: DataFiles) -> None:
    if not found.files:
        raise asked.not_of_the_format("UNABLE_TO_INFER_SCHEMA")
    for file in found.files:
        if file.path.endswith(UNKNOWN_COMPRESSIONS):
            raise DataError(
                f"{asked.key}: the local engine cannot decompress {file.address}; expected a "
                "file as it is, .gz or .bz2; set execution.engine to spark, or decompress it"
            )


def _inferred(
    asked: _Asked,
    name: str,
    known: Found,
    texts: Sequence[str],
    wanted: WantedColumns | None,
) -> pa.DataType:
    if name in texts:
        return pa.string()
    try:
        return known.type()
    except UnknownTypeError as error:
        if wanted is not None and name.lower() not in map(str.lower, wanted.names):
            return pa.string()
        raise DataError(
            f"{asked.key}: the column {name!r} has {error}, whose type would depend on which "
            "record comes first; expected values of one kind; leave inferSchema out, so that all "
            f"columns are texts, and say attributes.{name}.type"
        ) from error


def _schemas(opened: Sequence[ColumnarFile], found: DataFiles) -> FileSchemas:
    places: dict[pa.Schema, int] = {}
    of_files = [places.setdefault(one.schema, len(places)) for one in opened]
    addresses = [one.file.address for one in opened]
    return FileSchemas(addresses, list(places), of_files, found.folders.names)


def _with_folders(fields: Sequence[pa.Field], found: DataFiles) -> pa.Schema:
    """Return a table's columns with those of its folders, which go before the files' own."""
    folders = {field.name.lower(): field for field in found.folders}
    own = [folders.pop(field.name.lower(), field) for field in fields]
    return pa.schema([*own, *folders.values()])
