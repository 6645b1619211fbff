"""The metrics of all cells as one table, in Parquet and as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from anonspark.comparison.cells import CellResult
from anonspark.comparison.evaluation import evaluation_columns, evaluation_row
from anonspark.comparison.grid import Grid, public_setting
from anonspark.comparison.ranking import METRICS, Contestant, dominated, places
from anonspark.core.figures import SUMMARY, Figure, arrow_schema
from anonspark.engine.files import Files
from anonspark.layers.evaluate.small_counts import least_count
from anonspark.layers.publish.tables import write_rows

# Those of a run that is not there any more, and what the cell's own name says.
_LEFT_OUT = ("run_id", "output_fingerprint")


def axis_column(key: str) -> str:
    """Return the column of an axis: its key path in words that need no quotes."""
    return re.sub(r"\W+", "_", key).strip("_")


def comparison_rows(grid: Grid, results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """Return a row for each cell: its settings, its place, and the summary of its release.

    Parameters
    ----------
    grid : Grid
    results : sequence of CellResult
        Of all cells.

    Returns
    -------
    list of dict
        By privacy settings, then by place. Refused cells last among those of their settings.
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
    return [row for *_, row in sorted(rows, key=lambda entry: entry[:4])]


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
    """Return a setting as a table can hold it: lists and mappings as JSON."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return value


def _schema(grid: Grid, rows: Sequence[dict[str, Any]]) -> pa.Schema:
    axes = []
    for column in map(axis_column, grid.axes):
        values = [row[column] for row in rows if row[column] is not None]
        kind = _kind(values)
        axes.append(Figure(column, kind))
        if kind == "string":
            for row in rows:
                row[column] = row[column] if row[column] is None else _text(row[column])
        elif kind == "double":
            for row in rows:
                row[column] = row[column] if row[column] is None else float(row[column])
    first = [Figure(name, "string") for name in ("cell", "status", "reason")]
    ranks = [Figure("place", "int"), Figure("dominated", "boolean")]
    summary = [figure for figure in SUMMARY if figure.name not in _LEFT_OUT]
    figures = [*first, *axes, *ranks, *summary]
    return arrow_schema([*figures, *evaluation_columns(rows, figures)])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _kind(values: Sequence[Any]) -> str:
    """Return the type of a column that holds all values of an axis."""
    for kind, types in (("boolean", (bool,)), ("long", (int,)), ("double", (int, float))):
        booleans = sum(isinstance(value, bool) for value in values)
        if all(isinstance(value, types) for value in values) and (
            (bool not in types and not booleans) or booleans == len(values)
        ):
            return kind
    return "string"
