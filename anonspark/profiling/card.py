"""What a table has that identifies people, as a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anonspark.core.figure_text import percent
from anonspark.presentation.blocks import Cell, Chart, Table
from anonspark.presentation.card import Card
from anonspark.profiling.profile import Profile
from anonspark.profiling.wording import (
    SHOWN,
    dependency_texts,
    markers_text,
    measured_text,
    no_sets_text,
    roles_texts,
    set_cells,
    set_columns,
    unique_text,
    unit_text,
)


def profile_card(
    title: str, profile: Profile, charts: Callable[[], Sequence[Chart]] = tuple
) -> Card:
    """Return the card of a profile. It shows values only if the profile has examples."""
    unique = unique_text(profile)
    source = profile.source
    figures: list[tuple[str, Cell]] = [("records", profile.rows), ("columns", len(profile.columns))]
    figures += [(source.format, note) for note in source.notes]
    remarks = [
        markers_text(profile),
        measured_text(profile),
        *unique[:-1],
        *dependency_texts(profile),
        *roles_texts(profile),
        unit_text(profile),
    ]
    return Card(
        title,
        unique[-1] if unique else no_sets_text(profile),
        None,
        figures,
        [_columns(profile), *_sets(profile)],
        remarks=[text for text in remarks if text],
        charts=charts,
    )


def _columns(profile: Profile) -> Table:
    names = ["column", "kind", "values", "missing", "unique", f"<{profile.k}", "looks like"]
    with_examples = any(one.examples for one in profile.columns)
    rows: list[list[Cell]] = [
        [
            one.name,
            one.kind,
            one.counts.distinct,
            percent(one.counts.missing, profile.rows, short=True),
            percent(one.counts.unique, profile.rows, short=True),
            percent(one.counts.few, profile.rows, short=True),
            one.looks_like or "",
            *([" · ".join(one.examples)] if with_examples else []),
        ]
        for one in profile.columns
    ]
    title = f"Columns: values, and records whose value no one else or fewer than {profile.k} share"
    return Table(title, [*names, *(["examples"] if with_examples else [])], rows)


def _sets(profile: Profile) -> list[Table]:
    """Return the columns that together identify most records."""
    tables = []
    for size, title in ((2, "Pairs that identify most"), (3, "Triples that identify most")):
        rows = [set_cells(one, profile) for one in profile.uniqueness.of_size(size)[:SHOWN]]
        tables.append(Table(title, set_columns(profile), rows))
    causing = [
        [" + ".join(one.columns), percent(one.minimal_unique, profile.sample_rows, short=True)]
        for one in profile.uniqueness.causing(SHOWN)
    ]
    tables.append(Table("Smallest identifying combinations", ["columns", "records"], causing))
    return [table for table in tables if table.rows]
