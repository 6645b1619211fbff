"""What a plan gave, what a ledger holds and what a union is made of, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from anonspark.cli.display import privacy_table, titled_table

if TYPE_CHECKING:
    from anonspark.sharing.holders.union import Union
    from anonspark.sharing.ledger.releases import LedgerRelease
    from anonspark.sharing.recipients.distribute import Distribution
    from anonspark.sharing.recipients.dry_run import PlanLook

_WORST = 10


def _table(title: str, columns: Mapping[str, bool]) -> Table:
    """Return an empty table; of each column, whether it is of numbers."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for name, numeric in columns.items():
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    return table


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,}"


def show_distribution(console: Console, given: Distribution) -> None:
    """Show what each recipient gets, and the coalitions that come nearest to the bound."""
    columns = {"recipient": False, "rows": True, "withheld": True, "classes": True, "gcp": True}
    other = given.other_strategy
    table = _table("Releases", columns | ({"the other way": True} if other else {}))
    for name, release in given.releases.items():
        summary = release.summary
        table.add_row(
            name,
            _number(summary["rows_published"]),
            _number(given.withheld[name]),
            _number(summary["published_classes"]),
            "-" if summary["gcp"] is None else f"{summary['gcp']:.4f}",
            *(["-" if other[name] is None else f"{other[name]:.4f}"] if other else []),
        )
    console.print(table)
    show_coalitions(console, given.coalitions)
    for name, release in given.releases.items():
        console.print(f"{name}: {release.path}")


def show_coalitions(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Show the coalitions that come nearest to the bound, or break it."""
    if not rows:
        console.print("Joint check: no coalition has two releases, or collusion.k is 1")
        return
    columns = {"coalition": False, "persons": True, "smallest": True, "needs": True, "below": True}
    table = _table("Joint check, the worst coalitions", columns)
    worst = sorted(rows, key=lambda row: (-row["persons_below"], _slack(row)))[:_WORST]
    for row in worst:
        of_values = row["attribute"] is not None
        what = f" ({row['attribute']})" if of_values else ""
        table.add_row(
            ", ".join(row["recipients"]) + what,
            _number(row["persons"]),
            _number(row["smallest_l" if of_values else "smallest"]),
            _number(row["required_l" if of_values else "required"]),
            _number(row["persons_below"]),
        )
    console.print(table)


def _slack(row: Mapping[str, Any]) -> int:
    if row["attribute"] is not None:
        return int(row["smallest_l"]) - int(row["required_l"])
    return int(row["smallest"]) - int(row["required"])


def show_look(console: Console, look: PlanLook) -> None:
    """Show what a plan would give, as far as it is known before anything is anonymized."""
    table = _table(
        f"{look.rows:,} records of the source",
        {"recipient": False, "requested": True, "withheld": True, "k": True},
    )
    for one in look.requests:
        table.add_row(
            one["recipient"], _number(one["requested"]), _number(one["withheld"]), str(one["k"])
        )
    console.print(table)
    console.print(f"{look.strata:,} strata: records that the same recipients may have")
    for coalition in look.coalitions:
        console.print(f"coalition: {', '.join(coalition)}")


def show_ledger(console: Console, releases: Sequence[LedgerRelease], today: date) -> None:
    """Show the releases of a ledger, in the order in which they were given."""
    for one in releases:
        told = one.told
        lines = [
            f"{one.name}: {one.state}, {one.time}, {told['rows']:,} rows, k = "
            f"{told['privacy']['k']}",
            f"columns: {', '.join(told['columns'])}",
            f"approved: {told['approved']}",
        ]
        if told.get("purpose"):
            lines.append(f"purpose: {told['purpose']}")
        if told.get("until"):
            past = ", which is past" if one.counts and one.is_past(today) else ""
            lines.append(f"until: {told['until']}{past}")
        if one.withdrawn:
            lines.append(f"withdrawn by {one.withdrawn['by']}: {one.withdrawn['reason']}")
        console.print(*lines, sep="\n  ")
    if not releases:
        console.print("Nothing was given so far")


def show_union(console: Console, union: Union) -> None:
    """Show the parts of a union, what was measured of it, and what it does not protect."""
    columns = ("part", "records", "holder") if union.holder_column else ("part", "records")
    rows = [(part["run_id"], part["rows"], part["holder"])[: len(columns)] for part in union.parts]
    console.print(titled_table("Parts", columns, rows))
    summary = union.summary
    lines: list[tuple[str, object]] = [
        ("records published", summary["rows_published"]),
        ("classes by published tuple", summary["published_classes"]),
        (f"smallest class (k = {summary['k']})", summary["published_min_class_size"]),
    ]
    console.print(titled_table(f"Union {union.run_id}", ("figure", "value"), lines))
    if len(union.privacy) > 1:
        console.print(privacy_table(union.privacy))
    for text in union.warnings:
        console.print(f"Note: {text}")
    console.print(f"Published at {union.path}; prove it with: anonspark verify {union.path}")
