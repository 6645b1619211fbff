"""Read files of statistics packages and workbooks into memory, as both engines do."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from importlib import import_module
from typing import Any

import pyarrow as pa

from anonspark.engine.compression import UNPACKING_FAILURES, unpacked
from anonspark.engine.csv_beginning import has_header
from anonspark.engine.data_files import DataFile, find_files
from anonspark.engine.files import Files, FilesError, open_parts
from anonspark.engine.raw_columns import WantedColumns, require_distinct
from anonspark.engine.reading_errors import (
    TableAddress,
    log_once,
    nothing_there,
    option_of,
    unreadable,
)
from anonspark.errors import ConfigurationError, DataError

_OPTIONS = {
    "stata": ("encoding",),
    "spss": ("encoding",),
    "sas": ("encoding", "catalog"),
    "excel": ("sheet", "headerRow"),
}

# A file is read as a whole.
_LARGEST, _BUFFER = 1 << 30, 1 << 20
_ROWS_LOOKED_AT, _NAMES_SHOWN = 1000, 10

_TIME = pa.timestamp("us")

Columns = Mapping[str, pa.Array]


def read_converted(
    files: Files, address: TableAddress, options: Mapping[str, str], wanted: WantedColumns | None
) -> pa.Table:
    """Read a table of files of a statistics package, or of workbooks.

    Parameters
    ----------
    files : Files
    address : TableAddress
    options : mapping of str to str
        Their names in any case of letters.
    wanted : WantedColumns or None
        Knows what means missing.

    Returns
    -------
    pyarrow.Table
        A column whose values all have labels holds the labels, as a dictionary that is ordered by
        the codes. User-defined missing values are missing.

    Raises
    ------
    ConfigurationError
        If the extra is not installed, or an option is not known.
    DataError
        If a file cannot be read, or files have different columns.
    """
    said = _known_options(address, options)
    if "catalog" in said and not files.exists(said["catalog"]):
        raise DataError(nothing_there(said["catalog"], f"{address.key}: catalog"))
    found = find_files(files, address.paths, address.key, wanted)
    if not found.files:
        raise address.not_of_the_format("no file")
    tables = []
    for file in found.files:
        columns = _read_file(files, file, address, said, wanted)
        require_distinct(list(columns), columns, f"{address.key}: {file.address}")
        constants = found.constants(file.folders)
        length = max(map(len, columns.values()), default=0)
        more = {name: pa.repeat(value, length) for name, value in constants.items()}
        tables.append(pa.table({**columns, **more}))
    return _united(tables, address)


def _known_options(address: TableAddress, options: Mapping[str, str]) -> dict[str, str]:
    known = {name.lower(): name for name in _OPTIONS[address.data_format]}
    for option in options:
        if option.lower() not in known:
            raise ConfigurationError(
                f"{option_of(address.where, option, options[option])}: {address.data_format} has "
                f"no such option. Expected {' or '.join(known.values())}. Leave it out"
            )
    return {known[name.lower()]: value for name, value in options.items()}


def _united(tables: Sequence[pa.Table], address: TableAddress) -> pa.Table:
    names = [set(table.column_names) for table in tables]
    if any(own != names[0] for own in names):
        raise DataError(
            f"{address.where}: found files with different columns. Expected the same columns in "
            "all of them. Write those that differ anew"
        )
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"{address.where}: a column is text in one file and has another type in another one. "
            "Expected one type in all files. Write the column anew in one of them"
        ) from error


def _extra(module: str, address: TableAddress) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"{address.where}: {address.data_format} is read by {module.replace('_', '-')}, which "
            "is not installed. Run: pip install 'anonspark[files]'"
        ) from error


def _read_file(
    files: Files,
    file: DataFile,
    address: TableAddress,
    options: Mapping[str, str],
    wanted: WantedColumns | None,
) -> Columns:
    where = f"{address.key}: {file.address}"
    if file.bytes > _LARGEST:
        raise DataError(
            f"{where}: the file has more than {_LARGEST >> 20:,} MiB. Expected a smaller one, "
            "because it is read as a whole. Write it as Parquet"
        )
    part = open_parts(files, file.address, file.bytes, _BUFFER)
    is_sheet = address.data_format == "excel"
    package = _extra("python_calamine" if is_sheet else "pyreadstat", address)
    names = ("CalamineError",) if is_sheet else ("ReadstatError", "PyreadstatError")
    own = [getattr(package, name) for name in names]
    try:
        content = io.BytesIO(unpacked(part, file.address).read(_LARGEST))
        if is_sheet:
            book = package.CalamineWorkbook.from_filelike(content)
            return _of_sheet(_sheet(book, options, where), options, wanted, where)
        return _of_statistics(_statistics(package, content, files, options), where)
    except FilesError:
        raise
    except (*own, ValueError, OverflowError, *UNPACKING_FAILURES) as error:
        raise unreadable(where) from error


def _statistics(
    package: Any, content: io.BytesIO, files: Files, options: Mapping[str, str]
) -> tuple[dict[str, list[Any]], Any]:
    """Return the columns of a file, and what it says of them."""
    beginning = content.getbuffer()[:256].tobytes()
    said: dict[str, Any] = {"output_format": "dict"}
    if "encoding" in options:
        said["encoding"] = options["encoding"]
    if beginning.startswith(b"$FL"):
        read = package.read_sav
    elif b"SPSS PORT FILE" in beginning:
        read = package.read_por
        said.pop("encoding", None)
    elif beginning.startswith(b"HEADER RECORD"):
        read = package.read_xport
    elif beginning[12:16] == b"\xc2\xea\x81\x60":
        read = package.read_sas7bdat
    else:
        read = package.read_dta
    columns, about = read(content, **said)
    if "catalog" in options:
        path = options["catalog"]
        _, formats = package.read_sas7bcat(io.BytesIO(files.read_part(path, 0, files.size(path))))
        about.variable_value_labels = {
            name: formats.value_labels.get(own, {}) for name, own in about.variable_to_label.items()
        }
    return columns, about


def _of_statistics(read: tuple[dict[str, list[Any]], Any], where: str) -> Columns:
    columns, about = read
    columns_read: dict[str, pa.Array] = {}
    for name in list(columns):
        values = columns.pop(name)
        labels = about.variable_value_labels.get(name, {})
        kind = about.readstat_variable_types.get(name)
        if kind == "string":
            values = [value or None for value in values]
        labelled = _labelled(values, labels)
        if labelled is None and labels:
            log_once(
                logging.INFO,
                f"{where}: the column {name!r} keeps its codes because some of them have no label, "
                "or a label that another one has",
            )
        typed = _typed(values, pa.float32() if kind == "float" else pa.float64())
        if kind == "string":
            typed = typed.cast(pa.string())
        columns_read[name] = typed if labelled is None else labelled
    return columns_read


def _labelled(values: Sequence[Any], labels: Mapping[Any, str]) -> pa.Array | None:
    """Return the labels of values, ordered by codes. None where they do not say all of them."""
    present = set(values) - {None}
    is_text = any(isinstance(value, str) for value in present)
    # Stata has letters for missing values among its codes.
    codes = sorted(code for code in labels if isinstance(code, str) == is_text)
    texts = [labels[code].strip() for code in codes]
    if not present <= set(codes) or not all(texts) or len(set(texts)) < len(texts) or not codes:
        return None
    places = {code: place for place, code in enumerate(codes)}
    indices = pa.array([None if one is None else places[one] for one in values], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts), ordered=True)


def _typed(values: Sequence[Any], numbers: pa.DataType) -> pa.Array:
    """Return values in the type that they have in common, as texts where they have none.

    Whole numbers become integers, and points in time at midnight days.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float}:
        floats = pa.array(values, numbers)
        try:
            return floats.cast(pa.int64()) if kinds else floats
        except pa.ArrowInvalid:
            return floats
    if kinds <= {date, datetime}:
        times = pa.array([one and datetime.fromisoformat(str(one)) for one in values], _TIME)
        days = times.cast(pa.date32(), safe=False)
        return days if days.cast(_TIME).equals(times) else times
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sheet(book: Any, options: Mapping[str, str], where: str) -> Sequence[list[Any]]:
    """Return the rows of a workbook's sheet, from its first one on."""
    names = list(book.sheet_names)
    asked = options.get("sheet")
    sheets = {name: book.get_sheet_by_name(name) for name in names if asked in (None, name)}
    chosen = [name for name, sheet in sheets.items() if asked == name or sheet.total_height]
    if len(chosen) != 1:
        if not asked and not chosen:
            raise DataError(f"{where}: no sheet of the workbook has a cell with a value")
        listed = ", ".join(map(repr, (chosen or names)[:_NAMES_SHOWN]))
        raise ConfigurationError(
            f"{where}: found {'no such sheet. It has' if asked else 'several sheets:'} {listed}. "
            f"Say which one is the table: {option_of(where, 'sheet', 'NAME')}"
        )
    rows: Sequence[list[Any]] = sheets[chosen[0]].to_python(skip_empty_area=False)
    return rows


def _of_sheet(
    rows: Sequence[list[Any]], options: Mapping[str, str], wanted: WantedColumns | None, where: str
) -> Columns:
    texts = [["" if cell == "" else _text(cell).strip() for cell in row] for row in rows]
    said = options.get("headerRow") or _header_row(texts, wanted, where)
    if not said.isdecimal() or int(said) > len(rows):
        raise ConfigurationError(
            f"{option_of(where, 'headerRow', said)}: the sheet has no such row. Expected the "
            "number of the row that names the columns, or 0 if none does"
        )
    header = texts[int(said) - 1] if int(said) else [""] * len(texts[0] if texts else ())
    records = [rows[place] for place in range(int(said), len(rows)) if any(texts[place])]
    names = [name or f"_c{place}" for place, name in enumerate(header)]
    require_distinct(names, names, where)
    columns = {}
    for place, name in enumerate(header):
        values = [None if row[place] == "" else row[place] for row in records]
        if name or any(value is not None for value in values):
            cells = _without_markers(values, wanted.markers if wanted is not None else ())
            typed = _typed(cells, pa.float64())
            has_values = typed.null_count < len(typed)
            columns[names[place]] = typed if has_values else typed.cast(pa.string())
    return columns


def _header_row(texts: Sequence[Sequence[str]], wanted: WantedColumns | None, where: str) -> str:
    """Return the number of the row that names the columns: the first one that is mostly filled."""
    width = max((sum(map(bool, row)) for row in texts), default=0)
    first = next((at for at, row in enumerate(texts) if 2 * sum(map(bool, row)) > width), 0)
    names = list(wanted.names) if wanted is not None else []
    if not has_header(texts[first : first + _ROWS_LOOKED_AT], names):
        raise ConfigurationError(
            f"{where}: nothing shows which row of the sheet names the columns. Say "
            f"{option_of(where, 'headerRow', str(first + 1))} if that one does, or "
            f"{option_of(where, 'headerRow', '0')} if none does, which calls them _c0, _c1 and so "
            "on"
        )
    return str(first + 1)


def _without_markers(values: Sequence[Any], markers: Sequence[str]) -> Sequence[Any]:
    """Return the cells of a column, without texts that mean missing where the others are none."""
    texts = {value.strip() for value in values if isinstance(value, str)}
    if not texts <= set(markers) or not any(not isinstance(v, str | None) for v in values):
        return values
    return [None if isinstance(value, str) else value for value in values]
