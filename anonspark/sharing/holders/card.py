"""A union that was published, as a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from anonspark.presentation.blocks import Cell, Chart, Table, Text
from anonspark.presentation.card import Card
from anonspark.presentation.release import privacy_blocks
from anonspark.sharing.holders.union import Union


def union_card(union: Union, charts: Callable[[], Sequence[Chart]] = tuple) -> Card:
    """Show the parts of a union, its measures, and what it does not protect."""
    columns = ("part", "records", "holder") if union.holder_column else ("part", "records")
    rows: list[Sequence[Cell]] = [
        (part["run_id"], part["rows"], part["holder"])[: len(columns)] for part in union.parts
    ]
    summary = union.summary
    figures: list[tuple[str, Cell]] = [
        ("at", union.path),
        ("records published", summary["rows_published"]),
        ("classes by published tuple", summary["published_classes"]),
        (f"smallest class (k = {summary['k']})", summary["published_min_class_size"]),
        ("prove it", f"anonspark verify {union.path}"),
    ]
    return Card(
        f"Union {union.run_id} is published",
        f"{len(union.parts):,} releases are one, and what it promises was proved anew",
        True,
        figures,
        [Table("Parts", columns, rows), *privacy_blocks(union.privacy)],
        union.warnings,
        charts,
    )


def union_blocks(union: Union) -> Iterator[Card | Text]:
    """Return a union, and what it does not protect."""
    yield union_card(union)
    for text in union.warnings:
        yield Text(f"Note: {text}")
