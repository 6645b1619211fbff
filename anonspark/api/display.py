"""Show results: as plain text in a program, as HTML with pictures in a notebook."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from anonspark.api.progress import in_notebook, ipython_display
from anonspark.core.figure_text import percent
from anonspark.errors import ConfigurationError
from anonspark.ownership import fault_at
from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.card import Card, card_html, card_text, chart_html, table_text
from anonspark.presentation.charts import Bars, Series, bar_chart
from anonspark.presentation.svg import words_of
from anonspark.reporting.risk_sections import size_bins

Row = Mapping[str, Any]

_ROOM = 0.85


def loss_chart(attributes: Sequence[Row]) -> Chart | None:
    """Draw the loss of each quasi-identifier, or return None if it was not measured."""
    rows = [row for row in attributes if row.get("ncp") is not None]
    return _bars(
        "Loss of each attribute",
        [(str(row["attribute"]), 100 * float(row["ncp"])) for row in rows],
        axis="part of the range left open (%)",
        rows="quasi-identifier",
        columns=("attribute", "part of the range left open"),
        texts=[percent(float(row["ncp"])) for row in rows],
    )


def sizes_chart(sizes: Mapping[int, int], k: int) -> Chart | None:
    """Draw how many classes have each size, or return None without classes."""
    bins = size_bins(sizes, k) if sizes else []
    return _bars(
        "Classes by size",
        [(label, float(classes)) for label, classes, _ in bins],
        axis="classes",
        rows="records in a class",
        columns=("records in a class", "classes"),
        texts=[f"{classes:,}" for _, classes, _ in bins],
    )


def risk_chart(risk: Sequence[Row]) -> Chart | None:
    """Draw the risk of re-identification, or return None if it was not measured.

    The rows are those of the table ``risk`` about the whole release.
    """
    shown = {
        f"{row['attacker']}, {name}": float(row[name])
        for row in risk
        for name in ("highest", "average")
        if row.get(name) is not None
    }
    threshold = next((row["threshold"] for row in risk if row.get("threshold") is not None), None)
    marks = () if threshold is None else ((100 * float(threshold), "accepted at most"),)
    return _bars(
        "Risk of re-identification",
        [(name, 100 * value) for name, value in shown.items()],
        axis="probability (%)",
        rows="attacker",
        columns=("attacker", "probability"),
        texts=[percent(value) for value in shown.values()],
        # A number beside the longest bar needs room, too.
        limit=100.0 if max(shown.values(), default=0.0) <= _ROOM else None,
        marks=marks,
    )


def figures_chart(
    title: str, figures: Mapping[str, float], *, axis: str, rows: str
) -> Chart | None:
    """Draw a bar for each figure, none for NaN, or return None without figures.

    ``axis`` and ``rows`` name the figure and the rows.

    >>> chart = figures_chart("Loss", {"north": 0.25}, axis="loss", rows="recipient")
    >>> Picture(chart)
    Loss
    recipient  loss
    north      0.25
    """
    return _bars(
        title,
        list(figures.items()),
        axis=axis,
        rows=rows,
        columns=(rows, axis),
        texts=["" if math.isnan(value) else f"{value:,.4g}" for value in figures.values()],
    )


def _bars(
    title: str,
    bars: Sequence[tuple[str, float]],
    *,
    axis: str,
    rows: str,
    columns: tuple[str, str],
    texts: Sequence[str],
    limit: float | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Chart | None:
    """Draw labelled bars with a table of their ``texts``, or return None without bars."""
    if not bars:
        return None
    labels = [label for label, _ in bars]
    values = [value for _, value in bars]
    table = Table(title, columns, list(zip(labels, texts, strict=True)))
    description = "; ".join(f"{label}: {text}" for label, text in zip(labels, texts, strict=True))
    # Several charts of a notebook are in one page: each has names of its own.
    name = f"c{sha256(repr((title, bars)).encode()).hexdigest()[:10]}"
    drawn = Bars(
        title,
        labels,
        [Series(axis, values)],
        axis,
        rows,
        limit=limit,
        marks=marks,
        words=[
            words_of(label, {columns[1]: text} if text else {})
            for label, text in zip(labels, texts, strict=True)
        ],
    )
    return bar_chart(name, drawn, f"Bar chart: {title}. {description}", table)


class Showing:
    """Base of results that a cell of a notebook or a program shows."""

    def show(self) -> None:
        """Show the result below the cell of a notebook, else as text on standard output."""
        if in_notebook():
            ipython_display().display(self)
        else:
            print(self)  # noqa: T201 - that is what it is for


class Shown(Showing, ABC):
    """Base of results with a card."""

    @abstractmethod
    def _card(self) -> Card:
        """Return the card of the result."""

    def __repr__(self) -> str:
        """Return verdict and figures in at most 25 lines, without credentials."""
        return card_text(self._card())

    def _repr_html_(self) -> str:
        """Return verdict, figures and charts for a notebook."""
        return card_html(self._card())


class Closing(ABC):
    """Base of results that remove their files at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Remove the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, repr=False)
class Picture(Showing):
    """A chart: a drawing in a notebook, its figures as text elsewhere."""

    chart: Chart

    def __repr__(self) -> str:
        """Return the figures."""
        return table_text(self.chart.table)

    def _repr_html_(self) -> str:
        return chart_html(self.chart)


def picture(chart: Chart | None) -> Picture | None:
    """Return a chart for a program, or None if there is nothing to draw."""
    return None if chart is None else Picture(chart)


@dataclass(frozen=True, repr=False)
class Page(Showing):
    """A page of HTML that needs no other file.

    Parameters
    ----------
    html : str
    path : str or None
        Path of the written file, or None if the page was not written.

    Examples
    --------
    >>> Page("<p>Ages</p>" * 1000)
    Page: 11 kB of HTML, not written yet: .save(path) writes it
    """

    html: str
    path: str | None = None

    def __repr__(self) -> str:
        """Return size and path."""
        size = f"{len(self.html.encode()) / 1000:,.0f} kB of HTML"
        where = "not written yet: .save(path) writes it" if self.path is None else f"at {self.path}"
        return f"Page: {size}, {where}"

    def _repr_html_(self) -> str:
        style = "width:100%;height:70vh;min-height:30rem;border:1px solid #8888;border-radius:6px"
        inside = escape(self.html, quote=True)
        return f'<iframe sandbox srcdoc="{inside}" title="report" style="{style}"></iframe>'

    def save(self, path: str) -> Page:
        """Write the page to a local file, which is replaced."""
        fault = fault_at(path)
        if fault is not None:
            raise ConfigurationError(f"path: {path} {fault}")
        Path(path).write_text(self.html, encoding="utf-8")
        return Page(self.html, str(path))
