"""The trend of all runs as a page: what each night published, and which ones failed."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark._version import __version__
from anonspark.core.figure_text import figure_rows, figure_text
from anonspark.core.figures import SUMMARY
from anonspark.core.utility_score import columns_text
from anonspark.engine.files import Files, require_ours
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.presentation.blocks import (
    Block,
    Cell,
    Chart,
    Item,
    Items,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
)
from anonspark.presentation.document import render
from anonspark.presentation.lines import Line, Lines, draw_lines
from anonspark.redaction import redact
from anonspark.release.layout import looks_like_page
from anonspark.reporting.nights import Night, jobs_of

_KIND = "Anonymization history"

_CHARTS = ("rows_published", "loss", "utility_score", "published_classes", "seconds")

# More could not be told apart on a telephone.
_MOST_NIGHTS = 60
_MOST_FAILURES = 20

_TITLES = {figure.name: figure.axis for figure in SUMMARY}


def write_history(files: Files, nights: Sequence[Night], directory: str, path: str) -> None:
    """Write the page of a history.

    Raises
    ------
    ConfigurationError
        If something that is no such page is there.
    PublishingError
        If it cannot be written.
    """
    require_ours(files, "--html", path)
    if files.exists(path) and not looks_like_page(files, path, _KIND):
        raise ConfigurationError(
            f"--html: what is at {path} is no page of anonspark, so it is not replaced. Choose "
            "another file, or remove it yourself"
        )
    page = history_page(nights, directory)
    try:
        files.replace(path, page.encode(), f".{path.rpartition('/')[2]}.writing")
    except OSError as error:
        raise PublishingError(
            f"--html: {path} cannot be written. Check that its folder can be written to, and the "
            "space on the disk"
        ) from error


def history_page(nights: Sequence[Night], directory: str) -> str:
    """Return the page of a history.

    Parameters
    ----------
    nights : sequence of Night
        In their order, at least one.
    directory : str
        Where they were found.

    Returns
    -------
    str
        HTML that loads nothing. It holds figures of whole releases alone.
    """
    failed = [one for one in nights if one.failed]
    sections = [Section("trend", "Trend", _charts(nights))]
    if failed:
        sections.insert(0, Section("failed", "Failed runs", [Items(_failures(failed))]))
    sections.append(Section("nights", "All runs", [_table(nights)]))
    first, last = nights[0].started, nights[-1].started
    return render(
        title="History of runs",
        kind=_KIND,
        subtitle=(
            f"{redact(directory)} · {len(nights):,} runs from {first:%Y-%m-%d} to {last:%Y-%m-%d} "
            "(UTC)"
        ),
        opening=Section("glance", "At a glance", [Tiles(_tiles(nights))]),
        sections=[one for one in sections if one.blocks],
        footer=f"Made by anonspark {__version__}. Figures of whole releases only.",
    )


def _tiles(nights: Sequence[Night]) -> list[Tile]:
    published = [one for one in nights if not one.failed]
    failed, last = len(nights) - len(published), nights[-1]
    tiles = [
        Tile(
            "Last run",
            "failed" if last.failed else "published",
            f"{last.run_id}, {last.started:%Y-%m-%d %H:%M} UTC",
            "bad" if last.failed else "good",
        ),
        Tile(
            "Failed runs",
            f"{failed:,} of {len(nights):,}",
            "A run that failed does not change the release before it.",
            "mixed" if failed else "good",
        ),
    ]
    columns = columns_text(published[-1].figures) if published else ""
    columns = f", {columns}" if columns else ""
    for name, title in (("rows_published", "Records"), ("utility_score", "Usefulness")):
        series = [one.figures[name] for one in published if one.figures.get(name) is not None]
        if series:
            low, high = figure_text(min(series)), figure_text(max(series))
            text = f"All runs: {low} to {high}."
            if name == "utility_score":
                text += f" Detail kept in the published columns{columns}."
            tiles.append(Tile(title, figure_text(series[-1]), text))
    return tiles


def _failures(failed: Sequence[Night]) -> list[Item]:
    shown = [
        Item(
            f"{one.started:%Y-%m-%d %H:%M} · {one.run_id}",
            f"Exit code {one.exit_code}{f' in {one.stage}' if one.stage else ''}"
            f"{f': {one.message}' if one.message else ''}",
            "bad",
        )
        for one in reversed(failed[-_MOST_FAILURES:])
    ]
    if len(failed) > _MOST_FAILURES:
        more = len(failed) - _MOST_FAILURES
        shown.append(Item(f"{more:,} more", "They are in the table of all runs."))
    return shown


def _charts(nights: Sequence[Night]) -> list[Block]:
    recent = list(nights[-_MOST_NIGHTS:])
    first = len(nights) - len(recent) + 1
    numbered = list(enumerate(recent, start=first))
    blocks: list[Block] = []
    jobs = jobs_of(recent)
    for name in _CHARTS:
        lines = []
        for job in jobs:
            points = [
                (float(number), float(one.figures[name]))
                for number, one in numbered
                if one.job == job and not one.failed and one.figures.get(name) is not None
            ]
            if points:
                lines.append(Line(job or "no job", points))
        # One run has no trend.
        if not any(len(line.points) > 1 for line in lines):
            continue
        title = _TITLES[name]
        rows = [
            [f"{number}", f"{one.started:%Y-%m-%d %H:%M}", one.job, _figure(one, name)]
            for number, one in numbered
        ]
        blocks.append(
            Chart(
                draw_lines(
                    Lines(
                        title,
                        lines,
                        "number of the run",
                        title,
                        logarithmic=False,
                        words={
                            float(number): [
                                f"run {number}, {one.started:%Y-%m-%d %H:%M} UTC",
                                f"{one.job or 'no job'}: {_figure(one, name)}",
                            ]
                            for number, one in numbered
                        },
                    ),
                    f"Line chart: {title} of {len(recent)} runs.",
                ),
                Table(title, ("run", "began (UTC)", "job", title), rows),
            )
        )
    if blocks and len(recent) < len(nights):
        blocks.insert(0, Text(f"The last {len(recent)} of {len(nights):,} runs."))
    return blocks


def _figure(night: Night, name: str) -> str:
    return "failed" if night.failed else figure_text(night.figures.get(name))


def _table(nights: Sequence[Night]) -> Table:
    names = ("rows_in", "columns_in", "columns_published", *_CHARTS)
    figures = figure_rows([{} if one.failed else one.figures for one in nights], names)
    rows: list[list[Cell]] = [
        [
            f"{one.started:%Y-%m-%d %H:%M}",
            one.job,
            one.run_id,
            f"failed ({one.exit_code})" if one.failed else "published",
            *own,
        ]
        for one, own in zip(nights, figures, strict=True)
    ]
    columns = ("began (UTC)", "job", "run", "outcome")
    return Table("All runs", (*columns, *(_TITLES[name] for name in names)), rows)
