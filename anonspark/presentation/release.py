"""What a release promises, holds and lost, as a card and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from anonspark.core.figures import ATTRIBUTES, PRIVACY, RISK, ROUNDS, SUMMARY, Figure, shown
from anonspark.core.model_scores import describe_utility, unpublished_text
from anonspark.pipeline.context import Release
from anonspark.presentation.blocks import Cell, Chart, Table, Text
from anonspark.presentation.card import Card

Row = Mapping[str, Any]

_FIGURES = {figure.name: figure for figure in SUMMARY}

SPELLED_OUT = {
    **{name: f"certainty penalty ({name})" for name in ("ncp", "gcp", "gcp_total")},
    "dm": "discernibility (dm)",
}
"""Headings of figures whose names are abbreviations."""

# Figures that say nothing if no record is suppressed.
_OF_SUPPRESSED = ("rows_suppressed", "rows_left_out")

# Most lines of each kind, so that the card stays on one screen.
_CRITERIA = 5
_ATTRIBUTES = 3


class Figures(Protocol):
    """Rows of a release's tables of metrics."""

    @property
    def summary(self) -> Row:
        """The row of the table ``summary``."""

    @property
    def attributes(self) -> Sequence[Row]:
        """The rows of the table ``attributes``."""

    @property
    def privacy(self) -> Sequence[Row]:
        """The rows of the table ``privacy``."""

    @property
    def risk(self) -> Sequence[Row]:
        """The rows of the table ``risk``."""

    @property
    def unpublished(self) -> Sequence[str]:
        """Columns of the input that are not published."""


def release_card(
    title: str,
    release: Figures,
    more: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    charts: Callable[[], Sequence[Chart]] = tuple,
) -> Card:
    """Summarize on one screen what was published, how safe and how useful it is.

    ``more`` are further lines, ``notes`` warnings.
    """
    summary = release.summary
    lines = [
        ("records", _records(summary)),
        ("classes", _classes(summary)),
        ("risk", risk_text(release.risk)),
        *_criteria(release.privacy),
        ("utility", describe_utility(summary)),
        ("lost most", _lost_most(release.attributes)),
        ("columns", unpublished_text(release.unpublished) if release.unpublished else ""),
        *more,
    ]
    figures = [line for line in lines if line[1]]
    return Card(title, _alike(summary), summary["k"] > 1, figures, notes=notes, charts=charts)


def published_card(release: Release, commands: Sequence[tuple[str, str]] = ()) -> Card:
    """Make the card of a run. ``commands`` are the next steps."""
    summary = release.summary
    title = f"Release {summary['run_id']} is published"
    more = [("better", "" if release.rival is None else release.rival.describe())]
    if release.earlier:
        began = f"{summary['started']:%Y-%m-%d %H:%M} UTC"
        title = f"Nothing left to do: release {summary['run_id']} of {began} is complete"
        more.append(("input", "not read, so not compared with the release's"))
    if release.warnings:
        number = len(release.warnings)
        count = "1 warning" if number == 1 else f"{number} warnings"
        more.append(("see", f"{count} in the log and in the manifest"))
    notes = [warning.line for warning in release.warnings]
    card = release_card(title, release, [*more, *commands], notes)
    return card.with_first(("at", release.path))


def _alike(summary: Row) -> str:
    """Say what was promised and holds."""
    k = f"k = {summary['k']:,}"
    units = summary.get("smallest_units")
    if summary["k"] == 1:
        return f"no protection, because {k} lets every record be a class by itself"
    if units is not None:
        return f"every class covers at least {units:,} people ({k})"
    others = summary["published_min_class_size"] - 1
    return f"every record matches at least {others:,} other{'s' * (others != 1)} ({k})"


def _figure(figure: Figure, summary: Row) -> Cell:
    """Return a figure for a table. A withheld count is one of few records."""
    value = summary[figure.name]
    if value is None:
        return f"fewer than {summary['k']:,}"
    return int(value) if figure.type != "double" else float(value)


def _records(summary: Row) -> str:
    parts = [f"{summary['rows_published']:,} published"]
    for name, words in (
        ("rows_dropped_missing", "dropped (missing quasi-identifier)"),
        ("rows_left_out", "left out (no class)"),
    ):
        number = _figure(_FIGURES[name], summary)
        if number:
            parts.append(f"{number:,} {words}" if isinstance(number, int) else f"{number} {words}")
    return ", ".join(parts)


def _classes(summary: Row) -> str:
    classes = summary["published_classes"]
    mean = summary["rows_published"] / classes
    smallest = summary["published_min_class_size"]
    return f"{classes:,}, of {mean:,.1f} records on average, the smallest of {smallest:,}"


def risk_text(rows: Sequence[Row]) -> str:
    """Write the risk from an attacker who knows that a person is in the release, or "".

    >>> risk_text([{"attacker": "prosecutor", "highest": 0.2, "average": 0.05}])
    're-identification risk 20.0% at most, 5.0% on average'
    """
    for row in rows:
        if row.get("round") is None and row["attacker"] == "prosecutor":
            return (
                f"re-identification risk {row['highest']:.1%} at most, {row['average']:.1%} on "
                "average"
            )
    return ""


def _criteria(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """List what was required beyond k, and what the worst class has."""
    texts = []
    for row in map(_as_compared, rows[1:]):
        of = f" of {row['attribute']}" if row.get("attribute") else ""
        measured = row.get("measured")
        worst = "not told" if measured is None else f"{measured:.4g} in the worst class"
        texts.append(f"{row['criterion']}{of}: {worst}, {row['required']:.4g} required")
    return criteria_lines(texts)


def criteria_lines(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return lines of a card for the criteria, at most five of them.

    >>> criteria_lines(["2-diversity of income", "0.3-closeness of income"])
    [('criteria', '2-diversity of income'), ('', '0.3-closeness of income')]
    """
    if len(texts) > _CRITERIA:
        more = len(texts) - _CRITERIA + 1
        texts = [*texts[: _CRITERIA - 1], f"{more} more criteria: --details"]
    return [("criteria" if index == 0 else "", text) for index, text in enumerate(texts)]


def _lost_most(rows: Sequence[Row]) -> str:
    """Name the attributes that became widest, as shares of their ranges."""
    widths = [(row["loss"], row["attribute"]) for row in rows if row["loss"]]
    widest = sorted(widths, key=lambda pair: -pair[0])[:_ATTRIBUTES]
    return ", ".join(f"{name} ({width:.2%} of its range)" for width, name in widest)


def detail_blocks(release: Release) -> Iterator[Table | Text]:
    """Show all figures of a run: the release, its rounds, its attributes."""
    summary = release.summary
    hidden = _OF_SUPPRESSED if summary["rows_suppressed"] == 0 else ()
    lines: list[tuple[str, Cell]] = [
        (figure.title.format(**summary), _figure(figure, summary))
        for figure in shown(SUMMARY)
        if figure.name not in hidden
        and (not (figure.needs or figure.is_loss) or summary.get(figure.name) is not None)
    ]
    if summary.get("baseline_dm") is not None:
        words = {None: "withheld", 0: "no", 1: "yes"}
        paid = " ".join(words[summary[f"rule_{rule}"]] for rule in "abc")
        lines.append(("rules A, B, C: outlier handling paid", paid))
    yield Table(f"Release {summary['run_id']}", (), lines)
    rounds = [
        item for item in shown(ROUNDS) if item.name != "levels" or release.rounds[0]["levels"]
    ]
    yield figures_table("Rounds", rounds, release.rounds, "withheld")
    yield figures_table("Attributes", shown(ATTRIBUTES), release.attributes, "withheld")
    yield risk_table([row for row in release.risk if row.get("round") is None])
    yield from privacy_blocks(release.privacy)


def figures_table(
    title: str, figures: Sequence[Figure], rows: Sequence[Row], withheld: str = ""
) -> Table:
    """Make a table of some figures of rows, with a word for those that are withheld."""
    names = [figure.name for figure in figures]
    cells = [[withheld if row.get(name) is None else row[name] for name in names] for row in rows]
    return Table(title, [SPELLED_OUT.get(name, name) for name in names], cells)


def risk_table(rows: Sequence[Row]) -> Table:
    """Show the risk from each attacker, by rows of the table ``risk``."""
    has_weights = any(row.get("expected") is not None for row in rows)
    figures = [figure for figure in shown(RISK) if figure.needs != "weights" or has_weights]
    # An estimate, unlike the others, and best known by the name that it has elsewhere.
    named = {"outsider": "individual risk (outsider)"}
    rows = [{**row, "attacker": named.get(row["attacker"], row["attacker"])} for row in rows]
    return figures_table("Risk of re-identification, as probabilities", figures, rows)


def privacy_blocks(criteria: Sequence[Row]) -> Iterator[Table]:
    """Show rows of ``privacy``: what was required beyond k, and what the worst class has."""
    if len(criteria) > 1:
        rows = list(map(_as_compared, criteria))
        title = "Privacy: required, and measured in the worst class"
        yield figures_table(title, shown(PRIVACY), rows)


def _as_compared(row: Row) -> Row:
    """Replace l by c in a row of recursive diversity, because c is what is measured."""
    if row.get("c") is None:
        return row
    criterion = f"{row['criterion']}, l = {row['required']:g}: c"
    return {**row, "criterion": criterion, "required": row["c"]}
