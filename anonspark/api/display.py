"""Show results: as plain text in a program, as HTML in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self

from anonspark.api.progress import in_notebook, ipython_display
from anonspark.errors import ConfigurationError
from anonspark.ownership import fault_at
from anonspark.presentation.blocks import Chart
from anonspark.presentation.card import Card, card_html, card_text, chart_html, table_text


class Showing:
    """Base of results that a cell of a notebook or a program shows."""

    def show(self) -> None:
        """Show it: below the cell of a notebook, else as text on standard output."""
        if in_notebook():
            ipython_display().display(self)
        else:
            print(self)  # noqa: T201 - that is what it is for


class Shown(Showing, ABC):
    """Base of results with a card."""

    @abstractmethod
    def _card(self) -> Card:
        """Return what is shown."""

    def __repr__(self) -> str:
        """Return verdict and figures in at most 25 lines, without credentials."""
        return card_text(self._card())

    def _repr_html_(self) -> str:
        """Return verdict, figures and charts for a notebook."""
        return card_html(self._card())


class Closing(ABC):
    """Base of what removes its files at the end of a block."""

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
    """A chart: a drawing in a notebook, its figures as text elsewhere.

    Parameters
    ----------
    chart : Chart
        The drawing, and the same figures as a table.
    """

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
    """A page of HTML that needs nothing else.

    Parameters
    ----------
    html : str
    path : str or None
        Where it was written to. None if it was not.
    """

    html: str
    path: str | None = None

    def __repr__(self) -> str:
        """Return where it is."""
        size = f"{len(self.html.encode()) / 1000:,.0f} kB of HTML"
        where = "not written yet: .save(path) writes it" if self.path is None else f"at {self.path}"
        return f"Page: {size}, {where}"

    def _repr_html_(self) -> str:
        style = "width:100%;height:70vh;min-height:30rem;border:1px solid #8888;border-radius:6px"
        inside = escape(self.html, quote=True)
        return f'<iframe sandbox srcdoc="{inside}" title="report" style="{style}"></iframe>'

    def save(self, path: str) -> Page:
        """Write it to a local file, which is replaced.

        Parameters
        ----------
        path : str
        """
        fault = fault_at(path)
        if fault is not None:
            raise ConfigurationError(f"path: {path} {fault}")
        Path(path).write_text(self.html, encoding="utf-8")
        return Page(self.html, str(path))
