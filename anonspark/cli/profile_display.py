"""What ``anonspark profile`` found, on the terminal."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from anonspark.profiling.wording import (
    SHOWN,
    dependency_texts,
    markers_text,
    measured_text,
    roles_texts,
    set_cells,
    set_columns,
    share_text,
    unique_text,
    unit_text,
)

if TYPE_CHECKING:
    from anonspark.profiling.profile import Profile


def show_profile(console: Console, profile: Profile) -> None:
    """Show a profile; values only if it has examples."""

    def say(text: str) -> None:
        console.print(text, soft_wrap=True)

    say(f"{profile.source.path}: {profile.rows:,} rows, {len(profile.columns):,} columns")
    for note in profile.source.notes:
        say(f"{profile.source.format}: {note}")
    console.print(_columns(profile))
    markers = markers_text(profile)
    if markers is not None:
        say(markers)
    say(measured_text(profile))
    for text in unique_text(profile):
        say(text)
    for size, title in ((2, "Pairs that tell most"), (3, "Triples that tell most")):
        some = [set_cells(one, profile) for one in profile.uniqueness.of_size(size)[:SHOWN]]
        if some:
            console.print(_table(title, set_columns(profile), some))
    causing = profile.uniqueness.causing(SHOWN)
    if causing:
        rows = [
            [" + ".join(one.columns), share_text(one.minimal_unique, profile.sample_rows)]
            for one in causing
        ]
        title = "Smallest identifying combinations"
        console.print(_table(title, ["columns", "records"], rows))
    for text in dependency_texts(profile):
        say(text)
    for text in roles_texts(profile):
        say(text)
    unit = unit_text(profile)
    if unit is not None:
        say(unit)
    say(f"Next: anonspark init {shlex.quote(profile.source.path)}")


def _columns(profile: Profile) -> Table:
    names = ["column", "kind", "values", "missing", "unique", f"<{profile.k}", "looks like"]
    with_examples = any(one.examples for one in profile.columns)
    rows = []
    for one in profile.columns:
        row = [
            one.name,
            one.kind,
            f"{one.counts.distinct:,}",
            share_text(one.counts.missing, profile.rows),
            share_text(one.counts.unique, profile.rows),
            share_text(one.counts.few, profile.rows),
            one.looks_like or "",
        ]
        rows.append([*row, " · ".join(one.examples)] if with_examples else row)
    title = f"Columns: values, and records whose value nobody or fewer than {profile.k} share"
    return _table(title, [*names, *(["examples"] if with_examples else [])], rows)


def _table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    # Without lines between columns, so that 80 letters are enough.
    table = Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    left = {"column", "columns", "kind", "looks like", "examples"}
    for name in columns:
        table.add_column(
            name,
            justify="left" if name in left else "right",
            overflow="fold",
            no_wrap=name == "column" or name not in left,
        )
    for row in rows:
        table.add_row(*row)
    return table
