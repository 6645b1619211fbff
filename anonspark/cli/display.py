"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from anonspark.core.utility_score import describe_utility

if TYPE_CHECKING:
    from anonspark.pipeline.plan import Plan
    from anonspark.pipeline.run import Release

__all__ = ["show_plan", "show_records", "show_release", "titled_table"]


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


def show_records(console: Console, title: str, records: Sequence[Any]) -> None:
    """Show a few records; for generated data only, never for a user's."""
    columns = list(records[0].__fields__)
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for record in records:
        table.add_row(*(str(record[name]) for name in columns))
    console.print(table)


def show_release(console: Console, release: Release) -> None:
    """Show the figures of a run: the release, its rounds, its attributes."""
    summary = release.summary
    few = f"fewer than {summary['k']:,}"

    def told(count: object) -> object:
        return few if count is None else count

    lines = [
        ("records published", summary["rows_published"]),
        ("records dropped, a quasi-identifier missing", told(summary["rows_dropped_missing"])),
        *(
            []
            if summary["rows_suppressed"] == 0
            else [
                ("records without a class, suppressed", told(summary["rows_suppressed"])),
                ("of them not published", told(summary["rows_left_out"])),
            ]
        ),
        (f"smallest class (k = {summary['k']})", summary["published_min_class_size"]),
        ("classes", summary["classes"]),
        ("classes by published tuple", summary["published_classes"]),
        ("mean class size", summary["mean_class_size"]),
        ("discernibility metric (dm)", int(summary["dm"])),
        ("certainty penalty (gcp_total)", summary["gcp_total"]),
        ("certainty penalty per value (gcp, 0 to 1)", summary["gcp"]),
    ]
    if "baseline_dm" in summary:
        lines += [
            ("gcp_total without outlier handling", summary["baseline_gcp_total"]),
            ("rules A, B, C: outlier handling paid",
             " ".join("yes" if summary[f"rule_{rule}"] else "no" for rule in "abc")),
        ]  # fmt: skip
    console.print(titled_table(f"Release {summary['run_id']}", ("figure", "value"), lines))
    console.print(f"Utility: {describe_utility(summary)}", markup=False, highlight=False)
    columns = ["round", "rows", "normal_rows", "outlier_rows", "classes", "gcp_total"]
    if release.rounds[0]["levels"] is not None:
        columns.append("levels")
    rows = [[row[name] for name in columns] for row in release.rounds]
    console.print(titled_table("Rounds", columns, rows))
    columns = ["attribute", "kind", "missing_rows", "generalized_share", "ncp", "iloss"]
    rows = [
        ["withheld" if row[name] is None else row[name] for name in columns]
        for row in release.attributes
    ]
    console.print(titled_table("Attributes", columns, rows))
    columns = ["attacker", "highest", "average", "at_risk", "unique"]
    rows = [
        ["" if row[name] is None else row[name] for name in columns]
        for row in release.risk
        if row.get("round") is None
    ]
    console.print(titled_table("Risk of re-identification, as probabilities", columns, rows))
    if len(release.privacy) > 1:
        names = ("attribute", "criterion", "required", "measured")
        rows = [
            ["" if row.get(name) is None else row[name] for name in names]
            for row in map(_as_compared, release.privacy)
        ]
        console.print(
            titled_table("Privacy: required, and measured in the worst class", names, rows)
        )


def _as_compared(row: Mapping[str, object]) -> Mapping[str, object]:
    """Show of recursive diversity the figure that is measured, c, as what is required."""
    if row["criterion"] != "recursive":
        return row
    return {**row, "criterion": f"recursive, l = {row['required']:g}: c", "required": row["c"]}


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
    # Below the tables, where a terminal does not break it: to be copied.
    console.print(f"Output: {plan.output}", markup=False, highlight=False)
