"""The report of a comparison: one page with the ranking, and charts of the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from anonspark._version import __version__
from anonspark.comparison.evaluation import FIGURES, MODEL_LOSS
from anonspark.comparison.grid import METRICS, Grid, setting_name, setting_text
from anonspark.comparison.table import axis_column
from anonspark.core.figure_text import figure_rows, figure_text, figure_texts
from anonspark.engine.files import Files
from anonspark.presentation.blocks import Block, Chart, Section, Table, Text
from anonspark.presentation.charts import Line, Lines, draw_lines
from anonspark.presentation.document import render
from anonspark.presentation.release import SPELLED_OUT

Row = Mapping[str, Any]

# More lines would not be legible.
_MOST_LINES = 12


def write_report(files: Files, grid: Grid, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    """Write ``report.html`` into the output of a comparison. See :func:`comparison_report`."""
    page = comparison_report(grid, rows, notes)
    files.write_text(f"{grid.output.rstrip('/')}/report.html", page)


def comparison_report(grid: Grid, rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """Make the HTML page of a comparison.

    It loads nothing, and only has figures of whole releases. The rows are of
    :func:`anonspark.comparison.table.comparison_rows`, and the notes of
    :func:`anonspark.comparison.evaluation.evaluation_notes`.
    """
    done = [row for row in rows if row["status"] == "done"]
    refused = [row for row in rows if row["status"] == "refused"]
    sections = [Section("ranking", "Ranking", [*_ranking(grid, rows), *map(Text, notes)])]
    drawn = charts(grid, done)
    if drawn:
        sections.append(Section("charts", "Figures", drawn))
    if refused:
        sections.append(Section("refused", "Refused", _refused(grid, refused)))
    return render(
        title=grid.title or "Comparison",
        subtitle=(
            f"{len(rows):,} settings on one input{_rows_of_input(done)}"
            if done
            else f"{len(rows):,} settings, none of which could be published"
        ),
        sections=sections,
        footer=(
            f"Made by anonspark {__version__}. Figures of whole releases only: no record is in "
            "this file."
        ),
    )


def _rows_of_input(done: Sequence[Row]) -> str:
    """Write how many rows the input has, unless a release withholds it."""
    rows = {row["rows_in"] for row in done}
    return "" if None in rows else f" of {max(rows):,} rows"


def _ranking_columns(grid: Grid) -> list[str]:
    """List the columns of the ranking besides the settings."""
    evaluated = [] if grid.evaluation is None else [figure.name for figure in FIGURES]
    names = ["place", "dominated", grid.rank_by, *evaluated, "loss", "gcp", "dm", "classes"]
    return list(dict.fromkeys([*names, "rows_suppressed", "seconds"]))


def _ranking(grid: Grid, rows: Sequence[Row]) -> list[Block]:
    """Rank the settings by the figure of the grid, and say which are dominated."""
    better = METRICS[grid.rank_by].better
    names = _ranking_columns(grid)
    settings = [axis_column(key) for key in grid.axes]
    table = Table(
        f"All settings: of those with the same privacy the best by {grid.rank_by} first",
        [
            *map(setting_name, grid.axes),
            *(SPELLED_OUT.get(name, name.replace("_", " ")) for name in names),
        ],
        figure_rows(rows, [*settings, *names]),
    )
    best = "; ".join(
        f"{_settings(grid.axes, row)} ({figure_text(row.get(grid.rank_by))})"
        for row in [row for row in rows if row["place"] == 1][:_MOST_LINES]
    )
    return [
        *([Text(f"Best by {grid.rank_by}: {best}.", "strong")] if best else []),
        Text(
            f"Place 1 has the best {grid.rank_by} ({better} is better) among those with the same "
            "privacy. A setting is dominated if another one protects at least as much, suppresses "
            f"no more records and has no worse {grid.rank_by}, and is better in one of the three."
        ),
        table,
    ]


def _refused(grid: Grid, rows: Sequence[Row]) -> list[Block]:
    settings = [axis_column(key) for key in grid.axes]
    return [
        Text("A guarantee could not be met. Nothing was published."),
        Table(
            "Refused settings, and why",
            [*map(setting_name, grid.axes), "reason"],
            figure_rows(rows, [*settings, "reason"]),
        ),
    ]


def charts(grid: Grid, rows: Sequence[Row]) -> list[Block]:
    """Draw the main figures against k if it is varied, or else the first axis of numbers."""
    across = _axis_across(grid, rows)
    if across is None:
        return []
    others = [key for key in grid.axes if key != across]
    varied = [key for key in others if len({row[axis_column(key)] for row in rows}) > 1]
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: float(row[axis_column(across)])):
        name = _settings(varied, row)
        groups.setdefault(name or grid.rank_by, []).append(row)
    shown = sorted(groups, key=_mean_place(groups))[:_MOST_LINES]
    blocks: list[Block] = []
    if len(shown) < len(groups):
        blocks.append(
            Text(f"The {_MOST_LINES} lines with the best places of {len(groups)} are drawn.")
        )
    short = across.rpartition(".")[2]
    evaluated = [] if grid.evaluation is None else [MODEL_LOSS.name]
    metrics = dict.fromkeys([grid.rank_by, *evaluated, "loss", "gcp", "dm", "classes", "seconds"])
    for metric in metrics:
        lines = [_line(name, groups[name], axis_column(across), metric) for name in shown]
        lines = [line for line in lines if line.points]
        if not lines:
            continue
        words = METRICS[metric].axis
        values = [x for line in lines for x, _ in line.points]
        chart = Lines(
            f"{words[0].upper()}{words[1:]}",
            lines,
            short,
            "",
            logarithmic=min(values) > 0 and max(values) / min(values) >= 5,
            words={
                value: [
                    f"{short} = {figure_text(value)}",
                    *(f"{line.name}: {text}" for line in lines if (text := _at(line, value))),
                ]
                for value in sorted(set(values))
            },
        )
        table = Table(
            f"{words[0].upper()}{words[1:]}, for each {across}",
            ["line", *(figure_text(number) for number in _numbers(values))],
            [[line.name, *(_at(line, value) for value in sorted(set(values)))] for line in lines],
        )
        names = ", ".join(line.name for line in lines)
        description = f"{metric} against {short}: one line for each of {names}"
        if metric == MODEL_LOSS.name:
            blocks.append(Text(_ABOUT_MODEL_LOSS))
        blocks.append(Chart(draw_lines(chart, description), table))
    return blocks


_ABOUT_MODEL_LOSS = (
    "model_loss is the best score of the original's models less the best of the release's, on the "
    "same held-out records. Bars are 1.96 standard errors to each side. A bar that reaches to 0 "
    "shows no difference."
)


def _line(name: str, rows: Sequence[Row], across: str, metric: str) -> Line:
    """Make the line of some cells, without those that lack the figure."""
    measured = [row for row in rows if row.get(metric) is not None]
    points = [(float(row[across]), float(row[metric])) for row in measured]
    if metric != MODEL_LOSS.name:
        return Line(name, points)
    errors = [row["model_loss_error"] for row in measured]
    return Line(
        name,
        points,
        [
            None if error is None else (y - 1.96 * error, y + 1.96 * error)
            for (_, y), error in zip(points, errors, strict=True)
        ],
    )


def _axis_across(grid: Grid, rows: Sequence[Row]) -> str | None:
    """Choose the axis that charts have across: at least two different numbers, k first."""
    for key in sorted(grid.axes, key=lambda key: key != "privacy.k"):
        values = [row[axis_column(key)] for row in rows]
        are_numbers = all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
        )
        if are_numbers and len(set(values)) > 1:
            return key
    return None


def _settings(axes: Iterable[str], row: Row) -> str:
    """Write the settings of a cell along some axes."""
    values = {key: row[axis_column(key)] for key in axes}
    return ", ".join(setting_text(key, value) for key, value in values.items() if value is not None)


def _mean_place(groups: Mapping[str, Sequence[Row]]) -> Callable[[str], float]:
    return lambda name: sum(row["place"] for row in groups[name]) / len(groups[name])


def _numbers(values: Sequence[float]) -> list[float | int]:
    return [int(value) if value.is_integer() else value for value in sorted(set(values))]


def _at(line: Line, value: float) -> str:
    intervals = line.intervals or [None] * len(line.points)
    texts = []
    for (x, y), interval in zip(line.points, intervals, strict=True):
        if x == value:
            text, *ends = figure_texts([y, *(interval or ())])
            texts.append(f"{text} ({' to '.join(ends)})" if ends else text)
    return ", ".join(texts)
