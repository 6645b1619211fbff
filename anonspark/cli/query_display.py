"""Answers to questions, as the terminal shows them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from anonspark.reading.counting import Count
from anonspark.reading.published import Answer


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
