"""Recognizers of Microsoft Presidio, where it is installed, for forms that we know nothing of."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from anonspark.core.recognition.values import ENOUGH, FEWEST, Form

_MOST = 100
_SURE = 0.4
# Ours do it, or they tell nobody; and two of them would ask a server for the domains there are.
_KNOWN = {"DATE_TIME", "EMAIL_ADDRESS", "URL"}


@cache
def _recognizers() -> list[Any]:
    """Return those recognizers that go by patterns: no model of a language is loaded for them."""
    try:
        presidio = importlib.import_module("presidio_analyzer")
    except ImportError:
        return []
    registry = presidio.RecognizerRegistry()
    registry.load_predefined_recognizers()
    return [
        one
        for one in registry.recognizers
        if isinstance(one, presidio.PatternRecognizer)
        and not _KNOWN.intersection(one.supported_entities)
    ]


def recognize_with_presidio(texts: Sequence[str]) -> Form | None:
    """Tell what most of the values of a column look like, as Presidio sees it.

    Parameters
    ----------
    texts : sequence of str
        Different values, of which the first 100 are looked at.

    Returns
    -------
    Form or None
        None where Presidio is not installed.
    """
    values = texts[:_MOST]
    if len(values) < FEWEST:
        return None
    for recognizer in _recognizers():
        wanted = recognizer.supported_entities
        hits = sum(_is_whole(recognizer.analyze(text, wanted, None), text) for text in values)
        if hits >= ENOUGH * len(values):
            kind = str(wanted[0]).lower().replace("_", " ")
            return Form(f"identity number ({kind}, Presidio)", hits / len(values))
    return None


def _is_whole(results: Any, text: str) -> bool:
    """Return whether one of the results is sure enough, and about the text as a whole."""
    return any(
        one.score >= _SURE and one.end - one.start >= len(text.strip()) for one in results or ()
    )
