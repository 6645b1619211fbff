"""What each recipient of a plan gets, and what they know together, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from anonspark.presentation.blocks import Cell, Chart, Table, Text
from anonspark.presentation.card import Card
from anonspark.sharing.ledger.card import coalition_tables
from anonspark.sharing.recipients.distribute import Distribution
from anonspark.sharing.recipients.dry_run import PlanLook

_COLUMNS = ("rows", "withheld", "classes", "gcp", "gcp the other way")


def distribution_blocks(result: Distribution | PlanLook) -> Iterator[Card | Table | Text]:
    """Return what each recipient gets, or would get, and what they know together."""
    if isinstance(result, PlanLook):
        yield from _look_blocks(result)
        return
    summaries = {name: release.summary for name, release in result.releases.items()}
    others: dict[str, Mapping[str, Any]] = {
        "withheld": result.withheld,
        "gcp the other way": result.other_strategy,
    }
    yield distribution_card(summaries, result.coalitions, others)
    for name, release in result.releases.items():
        yield Text(f"{name}: {release.path}")


def distribution_card(
    summaries: Mapping[str, Mapping[str, Any]],
    coalitions: Sequence[Mapping[str, Any]],
    others: Mapping[str, Mapping[str, Any]],
    notes: Sequence[str] = (),
    charts: Callable[[], Sequence[Chart]] = tuple,
) -> Card:
    """Return what each recipient gets, and the coalitions that come nearest to the bound.

    Parameters
    ----------
    summaries : mapping of str to mapping
        The row of the table ``summary`` of each recipient's release.
    coalitions : sequence of mapping
        Rows of the joint check.
    others : mapping of str to mapping
        Further columns, by recipient.
    notes : sequence of str
    charts : callable
    """
    names = {"rows": "rows_published", "classes": "published_classes", "gcp": "gcp"}
    columns: dict[str, Mapping[str, Any]] = {
        title: {recipient: row.get(name) for recipient, row in summaries.items()}
        for title, name in names.items()
    }
    columns |= {title: values for title, values in others.items() if values}
    columns = {title: columns[title] for title in _COLUMNS if title in columns}
    rows = [
        [name, *("-" if values[name] is None else values[name] for values in columns.values())]
        for name in summaries
    ]
    number = len(summaries)
    verdict = f"{number:,} recipient{'s have a release each' if number > 1 else ' has a release'}"
    smallest = [row["smallest"] for row in coalitions if row["smallest"] is not None]
    if smallest:
        verdict += f". No coalition can narrow a person down to fewer than {min(smallest):,} people"
    return Card(
        "Distribution",
        verdict,
        all(row["holds"] for row in coalitions),
        tables=[Table("Releases", ("recipient", *columns), rows), *coalition_tables(coalitions)],
        notes=notes,
        charts=charts,
    )


def _look_blocks(look: PlanLook) -> Iterator[Table | Text]:
    """Return what a plan would give, as far as it is known before anything is anonymized."""
    columns = ("recipient", "requested", "withheld", "k")
    rows: list[list[Cell]] = [
        ["-" if request[name] is None else request[name] for name in columns]
        for request in look.requests
    ]
    yield Table(f"{look.rows:,} records of the source", columns, rows)
    yield Text(f"{look.strata:,} strata: records that the same recipients may have")
    for coalition in look.coalitions:
        yield Text(f"coalition: {', '.join(coalition)}")
