"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from anonspark.core.figures import ATTRIBUTES, PRIVACY, RISK, ROUNDS, SUMMARY, Figure, shown
from anonspark.core.utility_score import describe_utility

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.pipeline.plan import Plan
    from anonspark.pipeline.released import Release

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
