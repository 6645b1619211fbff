"""Read foreign files in a process of its own, so that no file ends a process that holds keys.

It gets a request as JSON on its standard input. It prints the number of each file before it reads
the file, and in the last line what the columns became, or why nothing was written.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark.conversion.columns import (
    NUMBER,
    Column,
    Meaning,
    converted,
    labels_that_apply,
    meaning_of,
    text_of,
    unite,
)
from anonspark.conversion.workbooks import read_sheet
from anonspark.engine.compression import unpacked
from anonspark.errors import ConfigurationError, DataError

# Parquet gives up a larger dictionary, and the order of labels with it.
_LARGEST_DICTIONARY = 1 << 28
_STORED: dict[str | None, Meaning] = {
    "string": ("text", str),
    "float": ("float", float),
    "double": NUMBER,
}


def _columns_of(path: str, request: Mapping[str, Any], notes: list[str]) -> list[Column]:
    """Read the columns of a file, whose first bytes show the format."""
    with Path(path).open("rb") as file:
        content = io.BytesIO(unpacked(file, path).read())
    beginning = bytes(content.getbuffer()[:256])
    if beginning.startswith(b"PK\x03\x04"):
        columns = read_sheet(content, request, notes, path)
    else:
        columns = list(_statistics(content, beginning, request, path))
    names = {column.name.lower() for column in columns}
    if len(names) < len(columns) or "" in names:
        raise DataError(
            f"{path}: a column has no name, or one that differs from another one only in the case "
            "of letters. Rename it"
        )
    unknown = request["types"].keys() - {column.name for column in columns}
    if unknown:
        raise ConfigurationError(f"--type: {path} has no column {min(unknown)!r}. Correct the name")
    return columns


def _statistics(
    content: io.BytesIO, beginning: bytes, request: Mapping[str, Any], path: str
) -> Iterator[Column]:
    """Yield the columns of a file of Stata, SPSS or SAS."""
    import pyreadstat

    options: dict[str, Any] = {"output_format": "dict", "disable_datetime_conversion": True}
    if request["encoding"]:
        options["encoding"] = request["encoding"]
    program, read = "stata", "read_dta"
    if beginning.startswith(b"$FL"):
        # Else labels of codes that are declared as missing would be those of values.
        program, read, options["user_missing"] = "spss", "read_sav", True
    elif b"SPSS PORT FILE" in beginning:
        program, read = "spss", "read_por"
        options.pop("encoding", None)
    elif beginning.startswith(b"HEADER RECORD"):
        program, read = "sas", "read_xport"
    elif beginning[12:16] == b"\xc2\xea\x81\x60":
        program, read = "sas", "read_sas7bdat"
    columns, about = getattr(pyreadstat, read)(content, **options)
    labels = about.variable_value_labels
    if request["catalog"]:
        _, catalog = pyreadstat.read_sas7bcat(request["catalog"])
        labels = {
            name: catalog.value_labels.get(display, {})
            for name, display in about.variable_to_label.items()
        }
    for name in list(columns):
        spans = about.missing_ranges.get(name, [])
        values = [None if _is_missing(value, spans) else value for value in columns.pop(name)]
        codes = {
            code: label
            for code, label in labels.get(name, {}).items()
            if not _is_missing(code, spans)
        }
        meaning = _STORED.get(about.readstat_variable_types.get(name), ("integer", int))
        display = (about.original_variable_types.get(name) or "").strip()
        asked = request["types"].get(name)
        if asked == "text":
            meaning = ("text", text_of)
        elif meaning[0] != "text" and not asked:
            shown = meaning_of(program, display)
            if shown is None:
                raise DataError(
                    f"{path}: the column {name!r} has the display format {display}, and it is not "
                    "certain what its numbers count. Give it a format of days, moments, durations "
                    f"or numbers, or read the bare numbers with --type {name}=number"
                )
            meaning = meaning if shown is NUMBER else shown
        values = converted(values, meaning, range(1, len(values) + 1), name, path)
        has_labels = not asked and meaning[0] in ("integer", "float", "number", "text")
        yield Column(
            name,
            display or meaning[0],
            meaning[0],
            values,
            labels_that_apply(codes, of_text=meaning[0] == "text") if has_labels else {},
            about.column_names_to_labels.get(name) or "",
        )


def _is_missing(value: Any, spans: list[dict[str, Any]]) -> bool:
    """Whether a value is none, an empty text, or one that its file declares as missing."""
    return value in (None, "") or any(
        isinstance(value, str) == isinstance(span["lo"], str) and span["lo"] <= value <= span["hi"]
        for span in spans
    )


def _convert(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write the columns of all files as one table, and return what they became."""
    notes: list[str] = []
    parts = []
    for number, path in enumerate(request["files"]):
        print(number, flush=True)  # noqa: T201 - the parent reads it
        parts.append((path, _columns_of(path, request, notes)))
    fields, arrays, rows = [], [], []
    for column in unite(parts):
        array = column.array()
        unit = "seconds" if column.kind == "seconds" else ""
        about = {"label": column.about, "format": column.source, "unit": unit}
        about = {key: text for key, text in about.items() if text}
        fields.append(pa.field(column.name, array.type, metadata=about))
        arrays.append(array)
        shown = f"{len(array.dictionary):,} ordered labels" if column.labels else str(array.type)
        rows.append(
            [column.name, column.source, shown, "; ".join(filter(None, [unit, column.note]))]
        )
    table = pa.table(arrays, schema=pa.schema(fields))
    with Path(request["target"]).open("wb") as file:
        parquet.write_table(table, file, dictionary_pagesize_limit=_LARGEST_DICTIONARY)
        os.fsync(file.fileno())
    return {"columns": rows, "rows": len(table), "notes": notes}


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Convert files and return what they became, or the kind and the texts of the error."""
    limits = {resource.RLIMIT_AS: request["memory"] << 20, resource.RLIMIT_CORE: 0}
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most) if hard < 0 else (min(most, hard), hard))
    warnings.simplefilter("ignore")
    try:
        return _convert(request)
    except (ConfigurationError, DataError) as error:
        return {"error": type(error).__name__, "problems": error.problems}
    except ModuleNotFoundError as error:
        problem = f"{error.name} is not installed. Run: pip install 'anonspark[files]'"
        return {"error": "ConfigurationError", "problems": [problem]}
    except Exception as error:  # noqa: BLE001 - a damaged file leads readers anywhere
        return {"error": type(error).__name__, "details": repr(error)}


if __name__ == "__main__":
    print(json.dumps(_answer(json.load(sys.stdin))))  # noqa: T201 - the parent reads it
