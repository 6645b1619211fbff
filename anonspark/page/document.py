"""Sections to one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined

from anonspark.page.blocks import Section
from anonspark.redaction import redact


def render(title: str, subtitle: str, sections: Sequence[Section], footer: str) -> str:
    """Return the page.

    Parameters
    ----------
    title, subtitle, footer : str
        Whatever is in them, and in the sections, is shown as text.
    sections : sequence of Section
        In order.

    Returns
    -------
    str
        HTML that loads nothing, runs no script and holds no credentials; readable in light and
        dark, and printed.
    """
    environment = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    source = files("anonspark.page").joinpath("page.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(source)
    return redact(page.render(title=title, subtitle=subtitle, sections=sections, footer=footer))
