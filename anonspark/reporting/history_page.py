"""The trend of all runs as a page: what each night published."""

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
    sections = [
        Section("trend", "Trend", _charts(nights)),
        Section("nights", "All runs", [_table(nights)]),
    ]
    first, last = nights[0].started, nights[-1].started
    return render(
        title="History of runs",
        kind=_KIND,
        subtitle=(
            f"{redact(directory)} · {len(nights):,} runs from {first:%Y-%m-%d} to {last:%Y-%m-%d} "
            "(UTC)"
        ),
        opening=Section("glance", "At a glance", [Tiles(_tiles(nights))]),
        sections=[section for section in sections if section.blocks],
        footer=f"Made by anonspark {__version__}. Figures of whole releases only.",
    )


def _tiles(nights: Sequence[Night]) -> list[Tile]:
    last = nights[-1]
    text = f"{last.run_id}, the last of {len(nights):,} releases."
    tiles = [Tile("Last release", f"{last.started:%Y-%m-%d %H:%M} UTC", text)]
    columns = columns_text(last.figures)
    columns = f", {columns}" if columns else ""
    for name, title in (("rows_published", "Records"), ("utility_score", "Usefulness")):
        series = [night.figures[name] for night in nights if night.figures.get(name) is not None]
        if series:
            low, high = figure_text(min(series)), figure_text(max(series))
            text = f"All runs: {low} to {high}."
            if name == "utility_score":
                text += f" Detail kept in the published columns{columns}."
            tiles.append(Tile(title, figure_text(series[-1]), text))
    return tiles


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
                (float(number), float(night.figures[name]))
                for number, night in numbered
                if night.job == job and night.figures.get(name) is not None
            ]
            if points:
                lines.append(Line(job or "no job", points))
        # One run has no trend.
        if not any(len(line.points) > 1 for line in lines):
            continue
        title = _TITLES[name]
        rows = [
            [f"{number}", f"{night.started:%Y-%m-%d %H:%M}", night.job, _figure(night, name)]
            for number, night in numbered
        ]
        blocks.append(
            Chart(
                draw_lines(
                    Lines(
                        title,
                        lines,
                        "day of the run",
                        "",
                        logarithmic=False,
                        names={float(number): f"{night.started:%F}" for number, night in numbered},
                        words={
                            float(number): [
                                f"run {number}, {night.started:%Y-%m-%d %H:%M} UTC",
                                f"{night.job or 'no job'}: {_figure(night, name)}",
                            ]
                            for number, night in numbered
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
    return figure_text(night.figures.get(name))


def _table(nights: Sequence[Night]) -> Table:
    names = ("rows_in", "columns_in", "columns_published", *_CHARTS)
    figures = figure_rows([night.figures for night in nights], names)
    rows: list[list[Cell]] = [
        [
            f"{night.started:%Y-%m-%d %H:%M}",
            night.job,
            night.run_id,
            *figure,
        ]
        for night, figure in zip(nights, figures, strict=True)
    ]
    columns = ("began (UTC)", "job", "run")
    return Table("All runs", (*columns, *(_TITLES[name] for name in names)), rows)
