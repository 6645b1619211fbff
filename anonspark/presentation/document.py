"""Sections, and explained terms, to one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from anonspark.foreign_text import blanked
from anonspark.presentation.blocks import Section
from anonspark.presentation.svg import clean
from anonspark.redaction import redact


@dataclass(frozen=True)
class Term:
    """A word that a page explains.

    Parameters
    ----------
    name : str
        As the glossary lists it.
    meaning : str
        A sentence or two.
    forms : tuple of str
        How it may stand in a text, lower case, besides its name.
    """

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Its id in the page."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


class Glossary:
    """The words that a page explains, and where they stand in a text.

    Parameters
    ----------
    *terms : Term
    """

    def __init__(self, *terms: Term) -> None:
        self.terms = terms
        self._by_form: Mapping[str, Term] = {
            form: term for term in terms for form in (term.name.lower(), *term.forms)
        }
        # Of two forms that begin at a place, the longer one.
        forms = sorted(map(re.escape, self._by_form), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(forms)})(?![\w-])", re.IGNORECASE)

    def explained(self, text: str) -> Markup:
        """Return a text in which the first place of each term has its meaning.

        The meaning is shown if a pointer rests on the word, or it has the focus. A reader who has
        neither finds it in the glossary of the page.
        """
        if not self.terms:
            return escape(clean(text))
        parts: list[Markup] = []
        explained_terms: set[str] = set()
        end = 0
        for match in self._pattern.finditer(text):
            term = self._by_form[match[0].lower()]
            if term.name in explained_terms:
                continue
            explained_terms.add(term.name)
            parts += [
                escape(clean(text[end : match.start()])),
                Markup(
                    '<span class="term" tabindex="0" aria-describedby="{0}">{1}'
                    '<span class="tip" aria-hidden="true">{2}</span></span>'
                ).format(term.anchor, match[0], term.meaning),
            ]
            end = match.end()
        return Markup("").join([*parts, escape(clean(text[end:]))])


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
