"""What each recipient of a plan gets, and what they know together: expected, and as blocks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonspark.engine.protocol import Engine
from anonspark.layers.publish.staging import open_staging
from anonspark.presentation.blocks import Cell, Chart, Table, Text
from anonspark.presentation.card import Card
from anonspark.progress import Progress
from anonspark.sharing.ledger.card import coalition_tables
from anonspark.sharing.ledger.chain import Key, read_key
from anonspark.sharing.ledger.check import require_files
from anonspark.sharing.ledger.ledger import open_ledger
from anonspark.sharing.recipients.distribute import Distribution
from anonspark.sharing.recipients.joint_check import coalitions_of
from anonspark.sharing.recipients.plan import Plan
from anonspark.sharing.recipients.source import read_source, require_places, require_rows, rows_of


@dataclass(frozen=True)
class PlanPreview:
    """The expected result of a plan.

    ``rows`` are those of the source, ``strata`` counts groups of records that the same recipients
    may have. ``requests`` have ``recipient``, ``requested``, ``withheld`` and ``k``. ``coalitions``
    would be checked.
    """

    rows: int
    strata: int
    requests: list[dict[str, Any]]
    coalitions: list[tuple[str, ...]]

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return vars(self) | {"coalitions": [list(coalition) for coalition in self.coalitions]}


def preview_plan(engine: Engine, plan: Plan, *, progress: Progress | None = None) -> PlanPreview:
    """Check a plan, its source and its ledger. Nothing is anonymized.

    Costs as :func:`anonspark.sharing.recipients.source.read_source`, and one job that counts.
    """
    files, progress = engine.files, progress or Progress()
    require_places(files, plan)
    run_id = f"check-{uuid.uuid4().hex[:12]}"
    ledger = None
    key = Key.random()
    if plan.file.ledger is not None:
        key = read_key(plan.file.ledger.key_file)
        ledger = open_ledger(files, plan.file.ledger.path, key)
        require_files(ledger)
    coalitions = coalitions_of(plan, ledger.counted if ledger else [])
    staging_path = plan.base.execution.staging_path
    with (
        open_staging(files, plan.output, run_id, staging_path=staging_path) as staging,
        engine.running(run_id, progress),
        progress.stage("freeze the source"),
    ):
        frozen = read_source(engine, plan, key, f"{staging.records}/frozen")
        strata = frozen.strata()
    rows = [rows_of(strata, bit) for bit in range(len(plan.recipients))]
    require_rows(plan, rows)
    requests = [
        {
            "recipient": recipient.name,
            "requested": number,
            "withheld": 0,
            "k": recipient.configuration.privacy.k,
        }
        for recipient, number in zip(plan.recipients, rows, strict=True)
    ]
    groups = sum(pattern != 0 for pattern in strata)
    return PlanPreview(sum(strata.values()), groups, requests, coalitions)


_LOSS = "certainty penalty (gcp)"
_COLUMNS = ("rows", "withheld", "classes", _LOSS, f"{_LOSS} the other way")


def distribution_blocks(result: Distribution | PlanPreview) -> Iterator[Card | Table | Text]:
    """Return what each recipient gets, or would get, and what they know together."""
    if isinstance(result, PlanPreview):
        yield from _look_blocks(result)
        return
    summaries = {name: release.summary for name, release in result.releases.items()}
    others: dict[str, Mapping[str, Any]] = {
        "withheld": result.withheld,
        f"{_LOSS} the other way": result.other_strategy,
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
    """Show what each recipient gets, and the coalitions that come nearest to the bound.

    ``summaries`` are the rows of the table ``summary`` of the releases by recipient, ``coalitions``
    rows of the joint check, and ``others`` further columns, by recipient.
    """
    names = {"rows": "rows_published", "classes": "published_classes", _LOSS: "gcp"}
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


def _look_blocks(preview: PlanPreview) -> Iterator[Table | Text]:
    """Return what a plan would give, as far as it is known before anything is anonymized."""
    columns = ("recipient", "requested", "withheld", "k")
    rows: list[list[Cell]] = [
        ["-" if request[name] is None else request[name] for name in columns]
        for request in preview.requests
    ]
    yield Table(f"{preview.rows:,} records of the source", columns, rows)
    yield Text(f"{preview.strata:,} strata: records that the same recipients may have")
    for coalition in preview.coalitions:
        yield Text(f"coalition: {', '.join(coalition)}")
