"""Results on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from anonspark.core.figure_text import figure_rows, figure_texts
from anonspark.core.figures import ATTRIBUTES, PRIVACY, RISK, ROUNDS, SUMMARY, Figure, shown
from anonspark.core.levels import levels_text
from anonspark.core.utility_score import describe_utility

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison
    from anonspark.layers.partition.lattice.watching import LookedAt
    from anonspark.pipeline.plan import Plan
    from anonspark.pipeline.released import Release
    from anonspark.reading.counting import Count
    from anonspark.reading.published import Answer
    from anonspark.reporting.nights import Night

# They say nothing where no record is suppressed.
_OF_SUPPRESSED = ("rows_suppressed", "rows_left_out")


def titled_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return a table whose columns of numbers are set to the right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        numeric = bool(rows) and all(
            isinstance(row[columns.index(name)], (int, float)) for row in rows
        )
        justify: JustifyMethod = "right" if numeric else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    return table


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.1f}"
    return str(value)


def show_records(console: Console, title: str, records: pa.Table) -> None:
    """Show a few records; for generated data only, never for a user's."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in records.column_names:
        table.add_column(name, overflow="fold")
    for record in records.to_pylist():
        table.add_row(*map(str, record.values()))
    console.print(table)


def told(figure: Figure, summary: Mapping[str, Any]) -> object:
    """Return a figure as it is shown; a count that is withheld is one of few records."""
    value = summary[figure.name]
    if value is None:
        return f"fewer than {summary['k']:,}"
    return int(value) if figure.type != "double" else value


def show_release(console: Console, release: Release) -> None:
    """Show the figures of a run: the release, its rounds, its attributes."""
    summary = release.summary
    hidden = _OF_SUPPRESSED if summary["rows_suppressed"] == 0 else ()
    lines: list[tuple[str, object]] = [
        (figure.title.format(**summary), told(figure, summary))
        for figure in shown(SUMMARY)
        if figure.name not in hidden
        and (not (figure.needs or figure.is_loss) or summary.get(figure.name) is not None)
    ]
    if summary.get("baseline_dm") is not None:
        words = {None: "withheld", 0: "no", 1: "yes"}
        paid = " ".join(words[summary[f"rule_{rule}"]] for rule in "abc")
        lines.append(("rules A, B, C: outlier handling paid", paid))
    console.print(titled_table(f"Release {summary['run_id']}", ("figure", "value"), lines))
    console.print(f"Utility: {describe_utility(summary)}")
    columns = [figure.name for figure in shown(ROUNDS)]
    if release.rounds[0]["levels"] is None:
        columns.remove("levels")
    rows = _cells(release.rounds, columns)
    console.print(titled_table("Rounds", columns, rows))
    columns = [figure.name for figure in shown(ATTRIBUTES)]
    rows = _cells(release.attributes, columns)
    console.print(titled_table("Attributes", columns, rows))
    columns = [figure.name for figure in shown(RISK)]
    rows = _cells([row for row in release.risk if row.get("round") is None], columns, "")
    console.print(titled_table("Risk of re-identification, as probabilities", columns, rows))
    if len(release.privacy) > 1:
        console.print(privacy_table(release.privacy))


def _cells(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], null: str = "withheld"
) -> list[list[object]]:
    return [[null if row.get(name) is None else row[name] for name in columns] for row in rows]


def privacy_table(criteria: Sequence[Mapping[str, object]]) -> Table:
    """Return what was required of a release, and what its worst class has.

    Parameters
    ----------
    criteria : sequence of mapping
        Rows of the table ``privacy``.
    """
    names = [figure.name for figure in shown(PRIVACY)]
    rows = _cells([as_compared(row) for row in criteria], names, "")
    return titled_table("Privacy: required, and measured in the worst class", names, rows)


def as_compared(row: Mapping[str, object]) -> Mapping[str, object]:
    """Show of recursive diversity the figure that is measured, c, as what is required."""
    if row.get("c") is None:
        return row
    criterion = f"{row['criterion']}, l = {row['required']:g}: c"
    return {**row, "criterion": criterion, "required": row["c"]}


def _size(number: int) -> str:
    """Return bytes in a unit of few digits."""
    size, units = float(number), iter(("bytes", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 1000 and unit != "GB":
        size, unit = size / 1000, next(units)
    return f"{size:,.3g} {unit}" if size < 1000 else f"{size:,.0f} {unit}"


def show_plan(console: Console, plan: Plan) -> None:
    """Show what a run would do."""
    lines: list[tuple[str, object]] = [
        ("rows of the input", plan.rows),
        ("rows dropped for missing values", plan.rows_dropped),
        ("rounds at most", plan.rounds),
        *(
            [
                ("tree levels cut on the cluster, round 1", plan.levels),
                ("tasks of round 1 at least", plan.tasks),
            ]
            if plan.nodes is None
            else [("nodes of the lattice, each round", plan.nodes)]
        ),
        ("columns published", ", ".join(plan.columns)),
    ]
    console.print(titled_table("Plan", ("what", "value"), lines))
    rows = [
        (place + 1, quasi_identifier.name, quasi_identifier.kind)
        for place, quasi_identifier in enumerate(plan.quasi_identifiers)
    ]
    console.print(titled_table("Quasi-identifiers", ("position", "name", "kind"), rows))
    estimate = plan.estimate
    took = "" if estimate.seconds is None else f"{estimate.seconds:,.0f} seconds and "
    text = f"About {took}{_size(estimate.bytes)} of data: {estimate.basis}"
    console.print(text)
    # Below the tables, where a terminal does not break it: to be copied.
    console.print(f"Output: {plan.output}")


def show_nodes(console: Console, nodes: Sequence[LookedAt]) -> None:
    """Print the best nodes, the chosen one marked."""
    losses = figure_texts([one.loss for one in nodes])
    rows = [
        (
            _verdict(one),
            levels_text(one.levels),
            one.classes,
            one.suppressed,
            loss,
            one.binds or "",
        )
        for one, loss in zip(nodes, losses, strict=True)
    ]
    names = ("", "levels", "classes", "suppressed", "loss", "binds")
    console.print(titled_table("Levels, the best first", names, rows))
    console.print("Counts are exact, and tell of few people: keep them inside.")


def _verdict(node: LookedAt) -> str:
    if node.is_chosen:
        return "chosen"
    return "" if node.is_allowed else "suppresses too much"


def show_answer(console: Console, answer: Answer) -> None:
    """Print a count, or one for each group.

    Without highlighting, which takes the parts of a number for numbers of their own.
    """
    if answer.groups is None:
        console.print(_sentence(answer.count))
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column(str(answer.by))
        for name in ("estimate", "at least", "at most", "records"):
            table.add_column(name, justify="right")
        for value, count in answer.groups.items():
            table.add_row("missing" if value is None else str(value), *_figures(count))
        console.print(table)
    if answer.left_out != 0:
        told = "how many is not told" if answer.left_out is None else f"{answer.left_out:,}"
        console.print(f"records that were left out of the release are not counted: {told}")


def _sentence(count: Count) -> str:
    if count.lower == count.upper:
        return f"{count.lower:,} of {count.records:,} records, exactly"
    return (
        f"about {count.estimate:,.1f} of {count.records:,} records; for certain at least "
        f"{count.lower:,} and at most {count.upper:,}"
    )


def _figures(count: Count) -> list[str]:
    return [
        f"{count.estimate:,.1f}", f"{count.lower:,}", f"{count.upper:,}", f"{count.records:,}",
    ]  # fmt: skip


# Few enough for a terminal of 80 columns; the others are in the page. How many digits each has.
_FIGURES = {
    "rows_published": ("records", 4),
    "published_classes": ("classes", 4),
    "rows_suppressed": ("without\na class", 4),
    "loss": ("loss", 4),
    "seconds": ("seconds", 3),
}


def show_history(console: Console, nights: Sequence[Night]) -> None:
    """Show every run, the last one at the end, and how many failed."""
    from anonspark.reporting.nights import jobs_of

    several = len(jobs_of(nights)) > 1
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("began (UTC)", no_wrap=True)
    # Where there is no room, names are folded; a figure that is cut would be another one.
    for name in (*["job"] * several, "run"):
        table.add_column(name, overflow="fold", min_width=4)
    for name, _ in _FIGURES.values():
        table.add_column(Text(name), justify="right", no_wrap=True)
    columns = [_column(nights, name, digits) for name, (_, digits) in _FIGURES.items()]
    for one, *figures in zip(nights, *columns, strict=True):
        cells = [f"{one.started:%Y-%m-%d %H:%M}", *[one.job] * several, one.run_id]
        table.add_row(*cells, *figures, style="bold red" if one.failed else None)
    console.print(table)
    failed = [one for one in nights if one.failed]
    for one in failed:
        where = f" in {one.stage}" if one.stage else ""
        console.print(
            f"failed: {one.run_id}: exit code {one.exit_code}{where}: {one.message}", style="red"
        )
    runs = "1 run" if len(nights) == 1 else f"{len(nights):,} runs"
    console.print(f"{runs}, {len(failed):,} failed")


def _column(nights: Sequence[Night], name: str, digits: int) -> list[str]:
    found = [None if one.failed else one.figures.get(name) for one in nights]
    texts = figure_texts(found, digits)
    if name != "rows_published":
        return texts
    return ["failed" if one.failed else text for one, text in zip(nights, texts, strict=True)]


def show_comparison(console: Console, grid: Grid, comparison: Comparison) -> None:
    """Show every cell, the best of each privacy setting first, and where the figures are."""
    # Few enough for a terminal of 80 columns; the others are in the report.
    suppressed = any(row.get("rows_suppressed") for row in comparison.rows)
    shown = ["place", grid.rank_by, "classes", *["rows_suppressed"] * suppressed, "seconds"]
    shown = list(dict.fromkeys(shown))
    table = Table(
        title=f"Settings by {grid.rank_by}, * not dominated",
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("")
    table.add_column("setting", min_width=24, overflow="fold")
    for name in shown:
        table.add_column(name.replace("_", " "), justify="right", min_width=7)
    for row, figures in zip(comparison.rows, figure_rows(comparison.rows, shown), strict=True):
        mark = "*" if row["dominated"] is False else ""
        label = _label(comparison, row)
        table.add_row(mark, label, *figures)
    console.print(table)
    for row in comparison.rows:
        if row["status"] == "refused":
            text = f"refused: {_label(comparison, row)}: {row['reason']}"
            console.print(text)
    if grid.trial is not None:
        for name, reason in grid.trial.refused.items():
            console.print(f"refused: {name}: {reason}")
    for note in comparison.notes:
        console.print(note)
    console.print(
        f"{_number(comparison.ran, 'run')}, {comparison.reused or 'none'} reused. Figures and "
        f"report: {comparison.path}"
    )
    if comparison.advice is not None:
        sentence = comparison.advice.sentence
        text = f"{sentence[0].upper()}{sentence[1:]}"
        console.print(text, style="bold")
        options = comparison.advice.command_line or "nothing to set"
        console.print(f"To use it: {options}")


def _number(some: int, name: str) -> str:
    return f"{some:,} {name}{'s' * (some != 1)}"


def _label(comparison: Comparison, row: Mapping[str, Any]) -> str:
    from anonspark.comparison.grid import settings_label

    return settings_label(comparison.results[row["cell"]].settings)
