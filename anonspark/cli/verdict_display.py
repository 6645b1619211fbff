"""What a run has come to, on one screen: the verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from anonspark.cli.display import as_compared, told
from anonspark.core.figures import SUMMARY
from anonspark.core.utility_score import describe_utility, unpublished_text

if TYPE_CHECKING:
    from anonspark.pipeline.released import Release

_FIGURES = {figure.name: figure for figure in SUMMARY}

# So many lines of each kind, so that all of it stays on one screen.
_CRITERIA = 5
_ATTRIBUTES = 3

_WIDTH = 11


def show_verdict(console: Console, release: Release) -> None:
    """Show on one screen what was published, how safe and how useful it is.

    Parameters
    ----------
    console : Console
    release : Release
    """
    summary = release.summary
    told_of = f"Release {summary['run_id']} is published"
    if release.earlier:
        began = f"{summary['started']:%Y-%m-%d %H:%M} UTC"
        told_of = f"Nothing was left to do, for release {summary['run_id']} of {began} is complete"
    console.print(f"{told_of}: {_alike(summary)}", style=f"bold {_colour(release)}")
    lines = [
        ("at", release.path),
        ("records", _records(summary)),
        ("classes", _classes(summary)),
        ("risk", _risk(release.risk)),
        *_criteria(release.privacy),
        ("utility", describe_utility(summary)),
        ("lost most", _lost_most(release.attributes)),
        ("columns", unpublished_text(release.unpublished) if release.unpublished else ""),
    ]
    for name, text in lines:
        if text:
            say(console, name, text)
    if release.rival is not None:
        say(console, "better", release.rival.describe(), style="yellow")
    if release.warnings:
        number = len(release.warnings)
        count = "1 warning" if number == 1 else f"{number} warnings"
        say(console, "see", f"{count} in the log and in the manifest", style="yellow")


def _colour(release: Release) -> str:
    """Return the colour of the verdict: what is warned of weakens it."""
    if release.summary["k"] == 1:
        return "red"
    return "yellow" if release.warnings else "green"


def say(console: Console, name: str, text: str, *, style: str | None = None) -> None:
    """Print a line with a name before it.

    Parameters
    ----------
    console : Console
    name : str
        At most 10 letters; equal names of lines stand below one another.
    text : str
    style : str or None
        As rich has it.
    """
    console.print(f"  {name:<{_WIDTH}}", style="dim", end="")
    console.print(text, style=style)


def _alike(summary: Mapping[str, Any]) -> str:
    """Say what was promised and holds."""
    k = f"k = {summary['k']:,}"
    units = summary.get("smallest_units")
    if summary["k"] == 1:
        return f"no protection, because {k} lets every record be a class of its own"
    if units is not None:
        return f"every class covers at least {units:,} people ({k})"
    others = summary["published_min_class_size"] - 1
    return f"every record matches at least {others:,} other{'s' * (others != 1)} ({k})"


def _records(summary: Mapping[str, Any]) -> str:
    parts = [f"{summary['rows_published']:,} published"]
    for name, words in (
        ("rows_dropped_missing", "dropped (missing quasi-identifier)"),
        ("rows_left_out", "left out (no class)"),
    ):
        number = told(_FIGURES[name], summary)
        if number:
            parts.append(f"{number:,} {words}" if isinstance(number, int) else f"{number} {words}")
    return ", ".join(parts)


def _classes(summary: Mapping[str, Any]) -> str:
    classes = summary["published_classes"]
    mean = summary["rows_published"] / classes
    smallest = summary["published_min_class_size"]
    return f"{classes:,}, of {mean:,.1f} records on average, the smallest of {smallest:,}"


def _risk(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the risk from an attacker who knows that a person is in the release."""
    for row in rows:
        if row.get("round") is None and row["attacker"] == "prosecutor":
            return (
                f"re-identification risk {row['highest']:.1%} at most, {row['average']:.1%} on "
                "average"
            )
    return ""


def _criteria(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Say what was required beyond k, and what the worst class has."""
    found = []
    for row in map(as_compared, rows[1:]):
        of = f" of {row['attribute']}" if row.get("attribute") else ""
        measured = row.get("measured")
        worst = "not told" if measured is None else f"{measured:.4g} in the worst class"
        found.append(f"{row['criterion']}{of}: {worst}, {row['required']:.4g} required")
    if len(found) > _CRITERIA:
        more = len(found) - _CRITERIA + 1
        found = [*found[: _CRITERIA - 1], f"{more} more criteria: --details"]
    return [("criteria" if place == 0 else "", text) for place, text in enumerate(found)]


def _lost_most(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say which attributes became widest, as shares of their ranges."""
    widths = [(row["ncp"], row["attribute"]) for row in rows if row["ncp"]]
    widest = sorted(widths, key=lambda one: -one[0])[:_ATTRIBUTES]
    return ", ".join(f"{name} ({width:.2%} of its range)" for width, name in widest)
