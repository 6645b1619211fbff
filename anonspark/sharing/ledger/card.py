"""What recipients got, what coalitions of them know, and what is left of a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from anonspark.config.budget import in_decimals
from anonspark.presentation.blocks import Cell, Table, Text
from anonspark.sharing.ledger.budget import Budget, in_words
from anonspark.sharing.ledger.check import LedgerCheck
from anonspark.sharing.ledger.events import LedgerRelease

_WORST = 10


def check_blocks(check: LedgerCheck) -> Iterator[Table | Text]:
    """Return what a check of a ledger covered, and the worst coalitions."""
    yield Text(f"{check.releases:,} releases count. Events and files were checked")
    yield from coalition_tables(check.coalitions)
    if not check.coalitions:
        yield Text("Joint check: no coalition has two releases, or collusion.k is 1")


def coalition_tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Return the coalitions that come nearest to the bound, or break it."""
    worst = sorted(rows, key=lambda row: (-row["persons_below"], _slack(row)))[:_WORST]
    columns = ("coalition", "persons", "smallest", "needs", "below")
    if worst:
        yield Table("Joint check, the worst coalitions", columns, list(map(_cells, worst)))


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a coalition, whose bound is on people or on values of an attribute."""
    attribute, kind = row["attribute"], "" if row["attribute"] is None else "_l"
    names = ("persons", f"smallest{kind}", f"required{kind}", "persons_below")
    return [
        ", ".join(row["recipients"]) + ("" if attribute is None else f" ({attribute})"),
        *("-" if row[name] is None else row[name] for name in names),
    ]


def _slack(row: Mapping[str, Any]) -> int:
    """Return by how much a coalition is above its bound.

    >>> _slack({"attribute": None, "smallest": 7, "required": 5})
    2
    """
    if row["attribute"] is not None:
        return int(row["smallest_l"]) - int(row["required_l"])
    return int(row["smallest"]) - int(row["required"])


def release_blocks(releases: Sequence[LedgerRelease], today: date) -> Iterator[Table | Text]:
    """Show the releases of a ledger, in the order in which they were given."""
    for release in releases:
        content = release.content
        lines = [("columns", ", ".join(content["columns"])), ("approved", content["approved"])]
        if content.get("purpose"):
            lines.append(("purpose", content["purpose"]))
        if content.get("until"):
            past = ", which is past" if release.counts and release.is_past(today) else ""
            lines.append(("until", f"{content['until']}{past}"))
        if release.withdrawn:
            lines.append(
                ("withdrawn", f"by {release.withdrawn['by']}: {release.withdrawn['reason']}")
            )
        k = content["privacy"]["k"]
        title = (
            f"{release.name}: {release.state}, {release.time}, {content['rows']:,} rows, k = {k}"
        )
        yield Table(title, (), lines)
    if not releases:
        yield Text("Nothing was given so far")


def budget_blocks(budget: Budget) -> Iterator[Table | Text]:
    """Show the publications of a data set, and what each has spent."""
    spent, limit, left = map(in_decimals, (budget.spent, budget.limit, budget.left))
    rows: list[list[Cell]] = []
    for entry in budget.entries:
        content = entry.content
        epsilon = content.get("epsilon")
        # Releases have no epsilon.
        loss = f"k = {content.get('k')}" if epsilon is None else in_decimals(Fraction(epsilon))
        texts = (str(content.get(name, "")) for name in ("kind", "run_id", "mechanism"))
        day = str(content["time"])[:10]
        rows.append([entry.number, day, *texts, loss, in_decimals(entry.spent_after)])
    columns = ("entry", "day", "kind", "run", "mechanism", "epsilon", "spent")
    yield Table(f"{budget.name}: {spent} of {limit} spent, {left} left", columns, rows)
    neighbors = "added or removed" if budget.neighbors == "add_remove" else "replaced by another"
    yield Text(f"For {in_words(budget.unit)}, {neighbors}")
