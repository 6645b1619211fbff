"""What a union of releases has, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from anonspark.cli.display import privacy_table, titled_table

if TYPE_CHECKING:
    from anonspark.holders.union import Union


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
