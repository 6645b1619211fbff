"""A profile as one page of HTML."""

from __future__ import annotations

from anonspark._version import __version__
from anonspark.core.figure_text import percent
from anonspark.engine.files import Files, require_ours
from anonspark.errors import PublishingError
from anonspark.presentation.bars import Bars, Series, bar_chart
from anonspark.presentation.blocks import Block, Role, Section, Table, Text
from anonspark.presentation.document import render
from anonspark.profiling.card import (
    ROLES,
    SHOWN,
    dependency_texts,
    markers_text,
    measured_text,
    no_sets_text,
    set_cells,
    set_columns,
    unique_text,
    unit_text,
    weights_text,
)
from anonspark.profiling.profile import Profile


def write_page(files: Files, path: str, profile: Profile) -> None:
    """Write the page to a file. One that is there is replaced.

    Raises
    ------
    PublishingError
        If it cannot be written.
    """
    require_ours(files, "--html", path)
    try:
        files.replace(path, profile_page(profile).encode(), f".{path.rpartition('/')[2]}.writing")
    except OSError as error:
        raise PublishingError(
            f"--html: nothing can be written to {path}. Check the path, permissions and free space"
        ) from error


def profile_page(profile: Profile) -> str:
    """Return the page.

    Returns
    -------
    str
        HTML that loads nothing and runs no script. With values only if the profile has them.
    """
    sections = [
        Section(
            "columns",
            "Columns",
            [_columns(profile), *_markers(profile), _chart(profile), *_examples(profile)],
        ),
        Section("roles", "Proposed roles", [_roles(profile), *_weights_and_unit(profile)]),
        Section("sets", "Columns together", _sets(profile)),
        Section("dependencies", "Columns that give others away", _dependencies(profile)),
    ]
    return render(
        title="Profile",
        subtitle=(
            f"{profile.source.path}: {profile.rows:,} rows, {len(profile.columns):,} columns"
        ),
        opening=Section("meaning", "What this means", _meaning(profile)),
        sections=sections,
        footer=f"Made by anonspark {__version__}, before anything was anonymized.",
    )


def _columns(profile: Profile) -> Table:
    rows, k = profile.rows, profile.k
    return Table(
        "Values of each column, counted over all rows",
        ["column", "kind", "different values", "missing", "unique", f"shared by fewer than {k}",
         "looks like"],
        [
            [
                column.name,
                column.kind,
                f"{column.counts.distinct:,}",
                percent(column.counts.missing, rows, short=True),
                percent(column.counts.unique, rows, short=True),
                percent(column.counts.few, rows, short=True),
                f"{column.looks_like} (by {column.told_by})" if column.looks_like else "",
            ]
            for column in profile.columns
        ],
    )  # fmt: skip


def _markers(profile: Profile) -> list[Block]:
    return [Text(text)] if (text := markers_text(profile)) else []


def _chart(profile: Profile) -> Block:
    names = [column.name for column in profile.columns]
    shares = [100 * column.counts.few / profile.rows for column in profile.columns]
    title = f"Records whose value fewer than {profile.k} share"
    figures = Table(
        title,
        ["column", "share of records"],
        [
            [column.name, percent(column.counts.few, profile.rows, short=True)]
            for column in profile.columns
        ],
    )
    chart = Bars(
        title,
        names,
        [Series("records", shares)],
        "share of the records (%)",
        "columns",
        limit=100,
        words=[[f"{name}: {share} of the records"] for name, share in figures.rows],
    )
    return bar_chart("few", chart, "A bar for each column: " + title.lower(), figures)


def _examples(profile: Profile) -> list[Block]:
    some = [
        [column.name, " · ".join(column.examples)] for column in profile.columns if column.examples
    ]
    return [Table("Most frequent values", ["column", "examples"], some)] if some else []


def _roles(profile: Profile) -> Table:
    return Table(
        "Roles that anonspark init would write. Correct them",
        ["column", "role", "because"],
        [[column.name, Role(ROLES[column.role]), column.reason] for column in profile.columns],
    )


def _weights_and_unit(profile: Profile) -> list[Block]:
    return [Text(text) for text in (weights_text(profile), unit_text(profile)) if text]


def _meaning(profile: Profile) -> list[Block]:
    *fewer, most = unique_text(profile) or [no_sets_text(profile)]
    texts = [*fewer, measured_text(profile)]
    return [Text(most, "strong"), *(Text(text) for text in texts if text)]


def _sets(profile: Profile) -> list[Block]:
    sets = profile.uniqueness
    blocks: list[Block] = []
    for size, name in ((1, "Single columns"), (2, "Pairs"), (3, "Triples")):
        some = [set_cells(group, profile) for group in sets.of_size(size)[:SHOWN]]
        if some:
            blocks.append(Table(f"{name} that identify most", set_columns(profile), some))
    causing = [
        [" + ".join(group.columns), percent(group.minimal_unique, profile.sample_rows, short=True)]
        for group in sets.causing(SHOWN)
    ]
    if causing:
        caption = "Smallest identifying combinations"
        blocks.append(Table(caption, ["columns", "records"], causing))
    return blocks


def _dependencies(profile: Profile) -> list[Block]:
    texts = dependency_texts(profile)
    return [Text(text) for text in texts] or [
        Text("No proposed quasi-identifier gives another column away, and none gives it away.")
    ]
