"""All runs below a directory: what they published and when, and a page of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from anonspark._version import __version__
from anonspark.core.figure_text import figure_rows, figure_text
from anonspark.core.figures import HISTORY, SUMMARY, arrow_schema
from anonspark.core.model_scores import columns_text
from anonspark.engine.files import Files, literal, require_ours
from anonspark.engine.protocol import Engine
from anonspark.errors import (
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    GuaranteeError,
    PublishingError,
)
from anonspark.presentation.blocks import Block, Cell, Chart, Section, Table, Text, Tile, Tiles
from anonspark.presentation.charts import Line, Lines, draw_lines
from anonspark.presentation.document import render
from anonspark.redaction import redact
from anonspark.release.layout import looks_like_page
from anonspark.release.manifest import MANIFEST, read_manifest

_LOGGER = logging.getLogger("anonspark")

FIGURES = (
    "k",
    "columns_in",
    "columns_published",
    "rows_in",
    "rows_published",
    "rows_suppressed",
    "rows_dropped_missing",
    "published_classes",
    "published_min_class_size",
    "loss",
    "utility_score",
    "association_loss",
    "seconds",
)
"""Columns of the table ``summary`` that describe a night."""

_DEPTHS = ("", "/*", "/*/*", "/*/*/*")


@dataclass(frozen=True)
class Night:
    """A run: its name, job, start (UTC) and figures, and the path of its release if that exists.

    ``figures`` has :data:`FIGURES`, None if a figure is withheld or unknown.
    """

    run_id: str
    job: str
    started: datetime
    release: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self) | {"started": self.started.isoformat(timespec="seconds")}


def read_nights(engine: Engine, directory: str) -> list[Night]:
    """Find all runs below a directory, each once, by the time at which they began.

    The directory is that of ``metrics.append_to``, or holds releases and such tables, three folders
    deep at most. Lists each of these folders, and reads the small files of the tables of all runs
    in one job. A release with an unreadable manifest is left out with a warning. Raises DataError
    if there is no run, or a table cannot be read.
    """
    root = directory.rstrip("/") or "/"
    nights: dict[tuple[str, str], Night] = {}
    for night in (*_in_tables(engine, root), *_in_manifests(engine.files, root)):
        earlier = nights.get((night.job, night.run_id))
        # A repeated run has a later row in the table, and a manifest knows the path of its release.
        if earlier is None or earlier.started <= night.started:
            nights[night.job, night.run_id] = night
    if not nights:
        raise DataError(
            f"{redact(root)}: found no release and no tables of all runs. Expected "
            "the directory of metrics.append_to, or one with releases in it"
        )
    return sorted(nights.values(), key=lambda night: (night.started, night.job, night.run_id))


def _below(files: Files, root: str, name: str) -> Iterator[str]:
    """Yield the paths of a name in the root or up to three folders deep, without hidden folders."""
    for depth in _DEPTHS:
        for address in files.matches(f"{literal(root)}{depth}/{name}"):
            inside = address.removeprefix(files.qualified(root))
            if not any(part.startswith(".") for part in inside.split("/")):
                yield address


def _in_tables(engine: Engine, root: str) -> Iterator[Night]:
    files = _below(engine.files, root, "summary/date=*/*.parquet")
    paths = sorted({address.rpartition("/")[0] for address in files})
    if not paths:
        return
    schema = arrow_schema(HISTORY)
    with engine.reading((root,), ""):
        rows = engine.staged(paths, schema).collect().to_pylist()
    for row in rows:
        yield Night(
            run_id=row["run_id"],
            job=row["job"] or "",
            started=_utc(row["started"]),
            figures={name: _number(row.get(name)) for name in FIGURES},
        )


def _in_manifests(files: Files, root: str) -> Iterator[Night]:
    """Yield the runs of the releases below a directory whose manifests are readable."""
    for address in _below(files, root, MANIFEST):
        release = address.removesuffix(f"/{MANIFEST}")
        try:
            manifest = read_manifest(files, release)
            started = _moment(manifest.document.get("started"))
        except (DataError, GuaranteeError, EnvironmentProblem) as error:
            _LOGGER.warning("left out, because its manifest cannot be read: %s", error)
            continue
        if started is None or not manifest.run_id:
            continue
        metrics = manifest.configuration.get("metrics") or {}
        yield Night(
            run_id=manifest.run_id,
            job=str(metrics.get("job") or ""),
            started=started,
            release=redact(release),
            figures={name: _number(manifest.summary.get(name)) for name in FIGURES},
        )


def jobs_of(nights: Iterable[Night]) -> list[str]:
    """Return the names of the jobs, in order."""
    return sorted({night.job for night in nights})


def _moment(text: object) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(str(text)))
    except ValueError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_KIND = "Anonymization history"

_CHARTS = ("rows_published", "loss", "utility_score", "published_classes", "seconds")

# More points would run into each other on a telephone.
_MOST_NIGHTS = 60

_TITLES = {figure.name: figure.axis for figure in SUMMARY}


def write_history(files: Files, nights: Sequence[Night], directory: str, path: str) -> None:
    """Write the page of a history.

    Raises ConfigurationError if another file is at its path, and PublishingError if writing fails.
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
    """Make the HTML page of one or more runs, in their order.

    It loads nothing, and only has figures of whole releases.
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
    """Draw each figure over the last runs, with a line for each job, if it has a trend."""
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
