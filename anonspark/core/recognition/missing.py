"""Words that stand for a missing value in tables of many programs and languages."""

from __future__ import annotations

# As programs and people write them; in other letters they may be values, as Na in a laboratory.
_SIGNS = (
    *("-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "??", "???"),
    *("NA", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "null"),
    *("Null", "(null)", "\\N", "k.A.", "k. A.", "K.A.", "k.a.", "o.A.", "N.D.", "n.d."),
)

# Of English, German, French, Spanish, Italian and Turkish; none is no such word, for it may be a
# value that says that there is nothing.
_WORDS = (
    *("unknown", "missing", "not available", "not known", "not specified", "unspecified"),
    *("unbekannt", "nicht bekannt", "keine Angabe", "keine Angaben", "fehlend", "fehlt"),
    *("inconnu", "inconnue", "non renseigné", "non précisé"),
    *("desconocido", "desconocida", "sin datos", "no consta"),
    *("sconosciuto", "sconosciuta", "ignoto", "non disponibile"),
    *("bilinmiyor", "belirtilmemiş"),
)


def _spellings(word: str) -> tuple[str, ...]:
    return word, word.lower(), word.capitalize(), word.upper()


MISSING_WORDS = tuple(
    dict.fromkeys([*_SIGNS, *(spelling for word in _WORDS for spelling in _spellings(word))])
)
"""Texts that mean missing as a rule. They say nothing about people, so they may be shown."""
