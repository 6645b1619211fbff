"""What commands show that only a terminal shows: plans, answers, runs of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anonspark.core.figure_text import figure_texts
from anonspark.core.labels import levels_text
from anonspark.presentation.blocks import Cell, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.layers.partition.lattice.search import NodePreview
    from anonspark.pipeline.plan import Checked, Plan
    from anonspark.reading.counting import Count
    from anonspark.reading.published import Answer
    from anonspark.reporting.nights import Night

Blocks = Iterator[Table | Text]


def record_blocks(title: str, records: pa.Table) -> Blocks:
    """Show a few records. Only for generated data, never for a user's."""
    rows = [list(map(str, record.values())) for record in records.to_pylist()]
    yield Table(title, records.column_names, rows)


def checked_blocks(config: str, checked: Checked) -> Blocks:
    """Show whether configuration and data can be used, and what is missing."""
    number = len(checked.warnings)
    count = f"{number} warnings" if number > 1 else "1 warning"
    verdict = f"usable, with {count} (see the log)" if number else "configuration and data are fine"
    yield Text(f"{config}: {verdict}", "mixed" if number else "")
    yield Text(f"{checked.rows:,} rows, {checked.rows_dropped:,} to be dropped")
    if checked.coding is not None:
        yield Text(f"Coding: {checked.coding.name}, fingerprint {checked.coding.fingerprint}")
    for name, missing in checked.missing.items():
        if missing:
            yield Text(f"attributes.{name}: {missing:,} values are missing")


def _size(number: int) -> str:
    """Write a number of bytes in a unit that leaves few digits.

    >>> _size(999), _size(2_340_000)
    ('999 bytes', '2.34 MB')
    """
    size, units = float(number), iter(("bytes", "kB", "MB", "GB"))
    unit = next(units)
    while size >= 1000 and unit != "GB":
        size, unit = size / 1000, next(units)
    return f"{size:,.3g} {unit}" if size < 1000 else f"{size:,.0f} {unit}"


def plan_blocks(plan: Plan, nodes: Sequence[NodePreview] | None, engine: str) -> Blocks:
    """Show what a run would do."""
    lines: list[tuple[str, Cell]] = [
        ("rows of the input", plan.rows),
        ("rows dropped for missing values", plan.rows_dropped),
        ("rounds at most", plan.rounds),
    ]
    if plan.nodes is None:
        lines += [
            ("tree levels cut on the cluster, round 1", plan.levels),
            ("tasks of round 1 at least", plan.tasks),
        ]
    else:
        lines.append(("nodes of the lattice, each round", plan.nodes))
    lines.append(("columns published", ", ".join(plan.columns)))
    yield Table("Plan", (), lines)
    rows = [(number, item.name, item.kind) for number, item in enumerate(plan.quasi_identifiers, 1)]
    yield Table("Quasi-identifiers", ("position", "name", "kind"), rows)
    estimate = plan.estimate
    took = "" if estimate.seconds is None else f"{estimate.seconds:,.0f} seconds and "
    about = "At least" if estimate.lower_bound else "About"
    yield Text(f"{about} {took}{_size(estimate.bytes)} of data: {estimate.basis}")
    if (serial := estimate.serial_seconds) is not None:
        yield Text(f"The driver's own part: {serial:,.0f} seconds at least, however many the cores")
    # Not in the table, so that it is not folded and can be copied.
    if (sizes := plan.cluster) is not None:
        yield Text(
            f"On a cluster, reckoned: spark.executor.instances={sizes.executors} "
            f"spark.executor.cores=4 spark.executor.memory={sizes.executor_memory}m "
            f"spark.executor.memoryOverhead={sizes.executor_overhead}m "
            f"spark.driver.memory={sizes.driver_memory}m "
            f"spark.driver.memoryOverhead={sizes.driver_overhead}m"
        )
    yield Text(f"Output: {plan.output}")
    if nodes is not None:
        yield from _node_blocks(nodes)
    if engine:
        yield Text(f"Engine: {engine}")


def _node_blocks(nodes: Sequence[NodePreview]) -> Blocks:
    """Show the best nodes of a lattice, with the chosen one marked."""
    losses = figure_texts([row.loss for row in nodes])
    rows = [
        (_mark(row), levels_text(row.levels), row.classes, row.suppressed, loss, row.binds or "")
        for row, loss in zip(nodes, losses, strict=True)
    ]
    names = ("", "levels", "classes", "suppressed", "loss", "binds")
    yield Table("Levels, the best first", names, rows)
    yield Text("Counts are exact and describe few people: keep them internal.")


def _mark(node: NodePreview) -> str:
    if node.is_chosen:
        return "chosen"
    return "" if node.is_allowed else "suppresses too much"


def answer_blocks(answer: Answer) -> Blocks:
    """Show a count, or one for each group."""
    if answer.groups is None:
        yield Text(_sentence(answer.count))
    else:
        rows: list[list[Cell]] = [
            ["missing" if value is None else str(value), f"{count.estimate:,.1f}",
             count.lower, count.upper, count.records]
            for value, count in answer.groups.items()
        ]  # fmt: skip
        yield Table("", (str(answer.by), "estimate", "at least", "at most", "records"), rows)
    if answer.left_out != 0:
        number = "how many is withheld" if answer.left_out is None else f"{answer.left_out:,}"
        yield Text(f"records that were left out of the release are not counted: {number}")


def _sentence(count: Count) -> str:
    if count.lower == count.upper:
        return f"{count.lower:,} of {count.records:,} records, exactly"
    return (
        f"about {count.estimate:,.1f} of {count.records:,} records. For certain at least "
        f"{count.lower:,} and at most {count.upper:,}"
    )


# Figures with their digits: few enough for 80 columns. The page has the others.
_FIGURES = {
    "rows_published": ("records", 4),
    "published_classes": ("classes", 4),
    "rows_suppressed": ("without a class", 4),
    "loss": ("loss", 4),
    "seconds": ("seconds", 3),
}


def history_blocks(nights: Sequence[Night]) -> Blocks:
    """Show every run, the last one at the end."""
    from anonspark.reporting.nights import jobs_of

    several = len(jobs_of(nights)) > 1
    figures = [
        figure_texts([run.figures.get(name) for run in nights], digits)
        for name, (_, digits) in _FIGURES.items()
    ]
    rows = [
        [f"{run.started:%Y-%m-%d %H:%M}", *[run.job] * several, run.run_id, *cells]
        for run, *cells in zip(nights, *figures, strict=True)
    ]
    columns = ["began (UTC)", *["job"] * several, "run", *(name for name, _ in _FIGURES.values())]
    yield Table("", columns, rows)
    yield Text("1 run" if len(nights) == 1 else f"{len(nights):,} runs")
