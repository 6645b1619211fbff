"""The metrics of all cells: each in a file of its own, and all as one table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from anonspark._version import __version__
from anonspark.comparison.evaluation import evaluation_columns, evaluation_row
from anonspark.comparison.grid import (
    METRICS,
    Cell,
    Contestant,
    Grid,
    dominated,
    places,
    public_setting,
)
from anonspark.core.figures import SUMMARY, Figure, arrow_schema
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.layers.evaluate.small_counts import least_count
from anonspark.layers.publish.tables import write_rows
from anonspark.redaction import redact_values

Rows = list[dict[str, Any]]

CELL_FILES = (
    r"cells/(?:[0-9a-f]{16}\.json|_[0-9a-f]{16}\.draft|\._?[0-9a-f]{16}\.(?:json|draft)\.crc)"
)
"""What the files of cells are called, with checksums that outlive them, as a regular expression."""


@dataclass(frozen=True)
class CellResult:
    """The figures of one cell, of which nothing is a record.

    ``settings`` maps key paths of the axes to values. ``input`` is equal for prepared inputs that
    are the same and were evaluated with the same data. ``reason`` says why nothing was published,
    or is None. ``summary`` to ``risk`` are rows of the release's metrics tables, empty without a
    release, and ``evaluation`` is of
    :meth:`anonspark.comparison.evaluation.CellEvaluation.measure`, or empty.
    """

    cell: str
    settings: dict[str, Any]
    input: str
    reason: str | None
    configuration: dict[str, Any]
    summary: dict[str, Any]
    rounds: Rows
    attributes: Rows
    privacy: Rows
    risk: Rows
    seconds: dict[str, float]
    version: str = __version__
    evaluation: dict[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Return whether a guarantee could not be met, so that nothing was published."""
        return self.reason is not None


def cells_directory(output: str) -> str:
    """Return the directory of the cells' figures.

    >>> cells_directory("out/")
    'out/cells'
    """
    return f"{output.rstrip('/')}/cells"


def write_result(files: Files, output: str, result: CellResult) -> None:
    """Write a cell's figures. The file appears as a whole or not at all."""
    directory = cells_directory(output)
    path, draft = f"{directory}/{result.cell}.json", f"{directory}/_{result.cell}.draft"
    document = redact_values(json.loads(json.dumps(asdict(result), default=_plain)))
    document["settings"] = {
        key: public_setting(key, setting) for key, setting in result.settings.items()
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    files.write_text(draft, text + "\n")
    files.delete(path)
    files.rename(draft, path)


def read_result(files: Files, output: str, cell: Cell, fingerprint: str) -> CellResult | None:
    """Read a cell's figures, or return None if this version of anonspark has written none.

    Raises ConfigurationError if they are damaged, or of another input or evaluation data.
    """
    path = f"{cells_directory(output)}/{cell.id}.json"
    if not files.exists(path):
        return None
    try:
        document = json.loads(files.read_text(path))
        result = CellResult(**document)
    except (ValueError, TypeError, OSError) as error:
        raise ConfigurationError(
            f"output: {path} is not what a comparison wrote. Remove it, and the cell is run again"
        ) from error
    if result.version != __version__:
        return None
    if result.input != fingerprint:
        raise ConfigurationError(
            f"output: {path} has figures of another input than the one that is at input.path now "
            "(or of other hierarchies, held-out records or another evaluation). Give the "
            "comparison another output, or remove the directory"
        )
    if "started" in result.summary:
        result.summary["started"] = datetime.fromisoformat(result.summary["started"])
    # The grid file may have changed how the same setting is written.
    return CellResult(**(vars(result) | {"settings": dict(cell.settings)}))


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no figure")


# Names of a release that is deleted, and what the name of the cell says.
_LEFT_OUT = ("run_id", "output_fingerprint")


def axis_column(key: str) -> str:
    """Return the column of an axis: its key path in words that need no quotes.

    >>> axis_column("privacy.k")
    'privacy_k'
    """
    return re.sub(r"\W+", "_", key).strip("_")


def comparison_rows(grid: Grid, results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """Return a row for each cell: its settings, its rank, and the summary of its release.

    They are sorted by privacy settings, then by rank, with refused cells last among their settings.
    """
    metric = METRICS[grid.rank_by]
    contestants = []
    for result in results:
        evaluated = evaluation_row(result.evaluation)
        measured = least_count(result.summary, grid.rank_by)
        value = None if result.refused else evaluated.get(grid.rank_by, measured)
        if value is not None:
            value = -float(value) if metric.better == "larger" else float(value)
        privacy = {
            key: setting for key, setting in result.configuration["privacy"].items() if key != "k"
        }
        contestants.append(
            Contestant(
                (json.dumps(privacy, sort_keys=True),),
                result.configuration["privacy"]["k"],
                0 if result.refused else least_count(result.summary, "rows_suppressed"),
                value,
            )
        )
    rows = []
    ranked = zip(results, contestants, places(contestants), dominated(contestants), strict=True)
    for result, contestant, rank, worse in ranked:
        row: dict[str, Any] = {
            "cell": result.cell,
            "status": "refused" if result.refused else "done",
            "reason": result.reason,
            **{
                axis_column(key): _scalar(public_setting(key, result.settings.get(key)))
                for key in grid.axes
            },
            "place": rank,
            "dominated": worse,
            "model": result.configuration["model"]["name"],
            "k": contestant.k,
        }
        row |= {name: value for name, value in result.summary.items() if name not in _LEFT_OUT}
        row |= evaluation_row(result.evaluation)
        rows.append((contestant.protection, contestant.k, rank is None, rank or 0, row))
    ordered = [row for *_, row in sorted(rows, key=lambda entry: entry[:4])]
    return _with_types_of_axes(grid, ordered)


def write_tables(files: Files, grid: Grid, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows as ``metrics`` (Parquet) and ``metrics.csv``. No Spark job."""
    schema = _schema(grid, rows)
    output = grid.output.rstrip("/")
    write_rows(files, rows, schema, output, "metrics")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, schema.names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write_text(f"{output}/metrics.csv", text.getvalue())


def _scalar(value: Any) -> Any:
    """Return a setting in a form that a table can hold: lists and mappings as JSON.

    >>> _scalar([1, 2]), _scalar(5)
    ('[1, 2]', 5)
    """
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {"string": _text, "double": float}


def _with_types_of_axes(grid: Grid, rows: Rows) -> Rows:
    """Convert all settings of an axis to one type, because one column of the table holds them."""
    for column in map(axis_column, grid.axes):
        convert = _CONVERTERS.get(_kind([row[column] for row in rows]))
        if convert is not None:
            rows = [
                row if row[column] is None else row | {column: convert(row[column])} for row in rows
            ]
    return rows


def _schema(grid: Grid, rows: Sequence[dict[str, Any]]) -> pa.Schema:
    axes = [
        Figure(column, _kind([row[column] for row in rows]))
        for column in map(axis_column, grid.axes)
    ]
    first = [Figure(name, "string") for name in ("cell", "status", "reason")]
    ranks = [Figure("place", "int"), Figure("dominated", "boolean")]
    summary = [figure for figure in SUMMARY if figure.name not in _LEFT_OUT]
    figures = [*first, *axes, *ranks, *summary]
    return arrow_schema([*figures, *evaluation_columns(rows, figures)])


def _kind(values: Sequence[Any]) -> str:
    """Return the type of a column that holds all values of an axis, or null.

    >>> _kind([5, None]), _kind([5, 0.5]), _kind([True, "auto"])
    ('long', 'double', 'string')
    """
    values = [value for value in values if value is not None]
    for kind, types in (("boolean", (bool,)), ("long", (int,)), ("double", (int, float))):
        booleans = sum(isinstance(value, bool) for value in values)
        if all(isinstance(value, types) for value in values) and (
            (bool not in types and not booleans) or booleans == len(values)
        ):
            return kind
    return "string"
