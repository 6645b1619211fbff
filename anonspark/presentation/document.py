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
    """A word that a page explains in a sentence or two.

    ``forms`` are other spellings in a text, in lower case.

    >>> Term("k-anonymity", "Every class has k records or more.").anchor
    'term-k-anonymity'
    """

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Its id in the page."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


class Glossary:
    """The words that a page explains where they stand in a text."""

    def __init__(self, *terms: Term) -> None:
        self.terms = terms
        self._by_form: Mapping[str, Term] = {
            form: term for term in terms for form in (term.name.lower(), *term.forms)
        }
        # Longer forms first, so that the longer of two at the same position matches.
        forms = sorted(map(re.escape, self._by_form), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(forms)})(?![\w-])", re.IGNORECASE)

    def explained(self, text: str) -> Markup:
        """Put the meaning of each term behind its first use in a text.

        The meaning is shown if a pointer rests on the word, or it has the focus. Readers without
        either find it in the glossary of the page.
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
    """Make a page: HTML that loads nothing, runs no script and holds no credentials.

    It is readable in light, in dark and printed. All texts are escaped. The title of the window
    begins with ``kind``, by which the page is recognized. ``lead`` are paragraphs below the title,
    ``opening`` stands before the links to the sections, ``appendix`` is closed and not printed.
    Each printed page has ``printed_footer`` at its bottom: letters, digits and spaces.
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
