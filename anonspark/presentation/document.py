"""Sections to one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined

from anonspark.foreign_text import blanked
from anonspark.presentation.blocks import Section
from anonspark.presentation.glossary import Glossary
from anonspark.redaction import redact


def render(  # noqa: PLR0913 - each parameter is a part of the page
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    footer: str,
    *,
    kind: str = "",
    lead: Sequence[str] = (),
    opening: Section | None = None,
    appendix: Sequence[Section] = (),
    glossary: Glossary | None = None,
    printed_footer: str = "",
) -> str:
    """Return the page.

    Parameters
    ----------
    title, subtitle, footer : str
        Whatever is in them, and in the sections, is shown as text.
    sections : sequence of Section
        In order.
    kind : str
        What the title in the window begins with, by which the page is known again.
    lead : sequence of str
        Paragraphs below the title.
    opening : Section or None
        What stands before the links to the sections.
    appendix : sequence of Section
        What few want to see: closed, and not printed.
    glossary : Glossary or None
        Words that are explained where they stand, and at the end.
    printed_footer : str
        What each printed page has at its bottom, with its number: letters, digits and spaces.

    Returns
    -------
    str
        HTML that loads nothing, runs no script and holds no credentials. It is readable in
        light, in dark and printed.
    """
    environment = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    source = files("anonspark.presentation").joinpath("page.html.j2").read_text(encoding="utf-8")
    words = glossary or Glossary()
    environment.filters["explained"] = words.explained
    page = environment.from_string(source)
    written = page.render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        footer=footer,
        kind=kind,
        lead=lead,
        opening=opening,
        appendix=appendix,
        terms=words.terms,
        # It is part of a style sheet, which quotes nothing as HTML does.
        printed_footer=re.sub(r"[^\w .:-]", "", printed_footer),
    )
    return blanked(redact(written))
