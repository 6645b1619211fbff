"""Texts that are days or numbers in another form, and groups whose order letters get wrong.

The patterns are read by Python and by RE2 alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

# As programs and people write them; in other letters they may be values, as Na in a laboratory.
_SIGNS = (
    *("-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "??", "???"),
    *("NA", "N/A", "n/a", "N.A.", "n.a.", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "null"),
    *("Null", "(null)", "\\N", "k.A.", "k. A.", "K.A.", "k.a.", "o.A.", "N.D.", "n.d."),
)

# English, German, French, Spanish, Italian and Turkish words. "none" is no such word: it may be a
# value that means that there is nothing.
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


ENOUGH = 0.95
"""Share of a column's different values that have to have a form."""

_FEWEST_GROUPS, _MOST_GROUPS = 3, 1_000
_OTHER_GROUPS = 0.2
# Of more values a sample is tested.
_MOST_VALUES = 20_000

NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"

# Between groups of three digits, and before or behind a number. No raw texts: RE2 knows no \\u.
_GAP = "['\u2019 \u00a0\u202f]"
_GROUPED = f"[0-9]{{1,3}}(?:(?:[.,]|{_GAP})[0-9]{{3}})+"
_CURRENCY = (
    "(?:[$\u20ac\u00a3\u00a5\u20b9\u20ba\u20bd\u20a9]|USD|EUR|GBP|CHF|JPY|CNY|INR|TRY|SEK|NOK|DKK"
    "|PLN|kr|z\u0142|Fr\\.|TL)"
)
_PLAIN = f"(?:[0-9]+|{_GROUPED})(?:[.,][0-9]+)?"

OTHER_NUMBER = (
    rf"^\s*(?:[+-]?(?:(?:[0-9]+|{_GROUPED}),[0-9]+|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?"
    rf"|[0-9]{{1,3}}(?:\.[0-9]{{3}}){{2,}}|[0-9]{{1,3}}{_GAP}[0-9]{{3}}(?:[.,][0-9]+)?"
    rf"|{_PLAIN}\s*(?:%|{_CURRENCY}))|[+-]?{_CURRENCY}\s*[+-]?{_PLAIN})\s*$"
)

_UNIT = re.compile(
    rf"\s*[+\u2212-]?{_PLAIN}\s*(?P<unit>[^\W\d_]{{1,8}}[\u00b2\u00b3]?|\u00b0[CF]?)\s*"
)

_MONTHS = (
    r"(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|m[^a-z]rz?|apr(?:il)?|may|mai|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
DAY = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*$"
_MOMENT = (
    r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{2}[0-9:.]*\s*(?:Z|[+-][0-9:]+)?\s*$"
)
OTHER_DAY = (
    r"(?i)^\s*(?:(?:[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}"
    rf"|[0-9]{{1,2}}\.?[ -]?{_MONTHS}[ ,-]*[0-9]{{2,4}}|{_MONTHS} [0-9]{{1,2}},? [0-9]{{4}})\b"
    r"|(?:[0-9]{4}-?w[0-9]{2}|[12][0-9]{3}-(?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])/[12][0-9]{3}"
    rf"|{_MONTHS}[ -][0-9]{{2,4}})\s*$)"
)

# Words around the lowest number of a group.
_LESS = (
    r"<|\u2264|under|below|less than|fewer than|younger than|at most|up to|unter|bis|weniger als"
)
_BEFORE = (
    rf"(?:{_LESS}|over|above|more than|older than|at least|from|aged?|ages|\u00fcber|ab|mehr als)"
)
_GROUP = re.compile(
    rf"(?i)\s*(?P<less>{_LESS})?(?:[>\u2265]?=?|{_BEFORE})\s*[\[(]?\s*{_CURRENCY}?"
    r"(?P<number>-?[0-9]+(?:[.,][0-9]{3})*(?:[.,][0-9]+)?)"
    r"(?:(?:(?P<times>[km])|st|nd|rd|th)\b|(?![a-z0-9])).*"
)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBERED = re.compile(
    r"(?i)(?P<word>q|quarter|grade|stage|level|tier|class|phase|week|month|day|year|band|group"
    r"|decile|percentile)\s*[-_]?(?P<number>[0-9]+)"
)
_ORDERS = (
    "january february march april may june july august september october november december|"
    "januar februar m\u00e4rz april mai juni juli august september oktober november dezember|"
    "jan feb mar apr may jun jul aug sep oct nov dec|mon tue wed thu fri sat sun|"
    "monday tuesday wednesday thursday friday saturday sunday|low moderate high|"
    "montag dienstag mittwoch donnerstag freitag samstag sonntag|none mild moderate severe|"
    "strongly_disagree disagree neutral agree strongly_agree|niedrig mittel hoch|"
    "i ii iii iv v vi vii viii ix x xi xii|klein mittel gro\u00df|"
    "very_low low medium high very_high|never rarely sometimes often always|"
    "poor fair good very_good excellent|xs s m l xl xxl"
)
_SEQUENCES = [
    {word: float(index) for index, word in enumerate(order.split())} for order in _ORDERS.split("|")
]


def disguise_of(values: Sequence[str]) -> str | None:
    """Return which type texts disguise, if nearly all are days or numbers, or None.

    ``date``, ``timestamp`` and ``number`` can be read if the type is declared, ``other date`` and
    ``other number`` cannot.

    >>> disguise_of(["1", "2.5"]), disguise_of(["31.12.2020", "1.2.2021"]), disguise_of(["flu"])
    ('number', 'other date', None)
    """
    some = values[:: len(values) // _MOST_VALUES + 1]
    for pattern, other_pattern, name in (
        (NUMBER, OTHER_NUMBER, "number"),
        (DAY, OTHER_DAY, "date"),
        (_MOMENT, DAY, "timestamp"),
    ):
        read = [re.match(pattern, text) is not None for text in some]
        others = sum(
            re.match(other_pattern, text) is not None
            for text, is_read in zip(some, read, strict=True)
            if not is_read
        )
        if some and all(read):
            return name
        if others and sum(read) + others >= ENOUGH * len(some):
            return f"other {name}"
    # The letters behind a number are a unit where they are the same everywhere, as 12 kg.
    units = Counter(match["unit"].lower() for match in map(_UNIT.fullmatch, some) if match)
    if units and units.most_common(1)[0][1] >= max(2, ENOUGH * len(some)):
        return "other number"
    return None


def letters_misorder(values: Sequence[str]) -> bool:
    """Return whether texts are surely ordered groups that the alphabet sorts in another order.

    Groups are surely ordered if they begin with numbers, or are grades, months, weekdays or the
    like. A fifth of them, or one, may be something else, such as "unknown".

    >>> letters_misorder(["5-9", "10-14", "15-19"]), letters_misorder(["red", "green", "blue"])
    (True, False)
    """
    if not _FEWEST_GROUPS <= len(values) <= _MOST_GROUPS:
        return False
    least = max(_FEWEST_GROUPS, len(values) - max(1, _OTHER_GROUPS * len(values)))
    for positions in _positions(sorted(values)):
        ranks = [rank for rank in positions if rank is not None]
        if len(ranks) >= least and ranks not in (sorted(ranks), sorted(ranks, reverse=True)):
            return True
    return False


def natural_order(values: Sequence[str]) -> list[str]:
    """Return groups in their order, or nothing if a group has no position in it.

    >>> natural_order(["85+", "10-14", "<5", "5-9"])
    ['<5', '5-9', '10-14', '85+']
    """
    ordered = sorted(values)
    for positions in _positions(ordered):
        ranks = [rank for rank in positions if rank is not None]
        if len(ranks) == len(ordered) >= _FEWEST_GROUPS:
            return [value for _, value in sorted(zip(ranks, ordered, strict=True))]
    return []


def _positions(values: Sequence[str]) -> Iterator[list[float | None]]:
    """Yield the position of each value in every order that the values may have."""
    groups = [_GROUP.fullmatch(value) for value in values]
    yield [
        None
        if group is None
        else float(re.sub("[.,](?=[0-9]{3})", "", group["number"]).replace(",", "."))
        * _TIMES[(group["times"] or "").lower()]
        - (0.5 if group["less"] else 0.0)
        for group in groups
    ]
    numbered = [_NUMBERED.fullmatch(value.strip()) for value in values]
    if len({match["word"].lower() for match in numbered if match}) == 1:
        yield [None if match is None else float(match["number"]) for match in numbered]
    for sequence in _SEQUENCES:
        yield [sequence.get("_".join(value.lower().split())) for value in values]
