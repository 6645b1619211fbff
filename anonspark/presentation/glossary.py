"""Words of a page that are explained where they stand, and once more at its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from anonspark.presentation.svg import clean


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
        for found in self._pattern.finditer(text):
            term = self._by_form[found[0].lower()]
            if term.name in explained_terms:
                continue
            explained_terms.add(term.name)
            parts += [
                escape(clean(text[end : found.start()])),
                Markup(
                    '<span class="term" tabindex="0" aria-describedby="{0}">{1}'
                    '<span class="tip" aria-hidden="true">{2}</span></span>'
                ).format(term.anchor, found[0], term.meaning),
            ]
            end = found.end()
        return Markup("").join([*parts, escape(clean(text[end:]))])
