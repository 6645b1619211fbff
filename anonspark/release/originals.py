"""Opening tables beside a release: its original, a population, releases of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonspark.config.input import format_of_name
from anonspark.engine.files import literal
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.recognition import recognize
from anonspark.engine.values.batches import records_of
from anonspark.release.conditions import select_records
from anonspark.release.manifest import Manifest

_CSV_OPTIONS = {"header": "true", "inferSchema": "true"}


def open_original(engine: Engine, path: str, manifest: Manifest, key: str = "--original") -> Table:
    """Open the table that a release was made of. Lazy, except for a job to infer types of CSV.

    Format and options are those of the manifest, unless the path ends like a file of another
    format. JSON also takes the job. ``key`` names the path in messages. Errors are those of
    :meth:`anonspark.engine.protocol.Engine.open_table`.
    """
    described = manifest.input
    suffix_format = format_of_name(path)
    version = dict(manifest.input_version)
    data_format = version.pop("format", described.get("format"))
    # The manifest of a union describes no original.
    if data_format is None or (suffix_format is not None and suffix_format != data_format):
        return open_by_suffix(engine, path, key)
    attributes = manifest.attributes.items()
    names = {name: options.get("role") != "identifier" for name, options in attributes}
    columns = WantedColumns(
        names | dict.fromkeys(manifest.recipient.get("where", ()), True),
        described.get("missing_columns", "error"),
        markers=manifest.missing_markers,
        required=manifest.required,
        numbers=tuple(name for name, options in attributes if options.get("type") == "number"),
        where=described.get("where"),
    )
    options = {**described.get("options", {}), **version}
    return engine.open_table([path], data_format, options, key=key, selection=columns)


def original_records(table: Table, manifest: Manifest) -> Table:
    """Return the records of an original that a release is of. See :func:`records_to_match`."""
    attributes = manifest.attributes.items()
    listed = [name for name, attribute in attributes if attribute.get("role") != "identifier"]
    unit = manifest.configuration.get("privacy", {}).get("unit", ())
    return records_to_match(table, [*listed, *unit], manifest.missing_markers, manifest.recipient)


def records_to_match(
    table: Table, listed: Sequence[str], markers: Sequence[str], recipient: Mapping[str, Any]
) -> Table:
    """Return the records of an original that a release can be of. Lazy.

    Rows without a value in all of the listed columns are blank and left out. ``recipient`` is that
    of the manifest, or empty: then records that its conditions exclude go, too, and a row is blank
    if no column has a value, because other recipients have other columns. Errors as of
    :func:`~anonspark.release.conditions.select_records`.
    """
    records = records_of(table, table.schema.names if recipient else listed, markers)
    return select_records(records, recipient.get("where", {}), markers)


def open_named(
    engine: Engine,
    path: str,
    data_format: str,
    options: Mapping[str, str],
    *,
    key: str,
    section: str,
    columns: WantedColumns,
) -> Table:
    """Open a table that a configuration names in addition to its input, as :func:`open_original`.

    ``key`` names the path in messages, and ``section`` the configuration's section with format and
    options. Other options are detected from the beginning of a CSV file. Errors are those of
    :meth:`anonspark.engine.protocol.Engine.open_table`, and if a CSV file is in UTF-16.
    """
    recognized = recognize(engine.files, [path], data_format, options, list(columns.names), key)
    options = {**recognized.options, **options}
    return engine.open_table(
        [path], data_format, options, key=key, section=section, selection=columns
    )


def open_by_suffix(engine: Engine, path: str, key: str, texts: Sequence[str] = ()) -> Table:
    """Open a table by the suffix of its path, as Parquet by default.

    CSV files have a header, and their types are inferred, but ``texts`` that are no bounds stay as
    written. Errors are those of :meth:`anonspark.engine.protocol.Engine.open_table`.
    """
    data_format = format_of_name(path)
    if data_format is None:
        inside = engine.files.matches(f"{literal(path.rstrip('/'))}/*")
        data_format = next(filter(None, map(format_of_name, inside)), "parquet")
    if data_format != "csv":
        return engine.open_table([path], data_format, {}, key=key)
    options = {**_CSV_OPTIONS, **recognize(engine.files, [path], data_format, _CSV_OPTIONS).options}
    table = engine.open_table([path], data_format, options, key=key)
    if not texts:
        return table
    labels = [name for name in table.schema.names if _is_label(name, texts)]
    return engine.open_table([path], data_format, options, key=key, texts=labels)


def _is_label(column: str, texts: Sequence[str]) -> bool:
    """Return whether a column is read as text. Bounds are compared as numbers or times.

    >>> _is_label("age", ["age"]), _is_label("age_min", ["age_min"])
    (True, False)
    """
    return column in texts and not (
        column.endswith(("_min", "_max", "_missing")) and column.rpartition("_")[0] not in texts
    )
