"""Encodings of text files: their names, and which ones bytes may be written in."""

from __future__ import annotations

import codecs
import re
import unicodedata

UTF_8 = "UTF-8"
"""The default encoding."""

# A byte order mark says which of two bytes comes first.
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Of UTF-16, one unit in so many at least has a byte that is 0.
_UNITS_WITH_ZERO = 16
_EXAMINED, _MOST_LIKELY = 1 << 16, 3

# What tables are written in, as Python calls it, and as others do: the most common one first.
_COMMON = {
    **{f"cp125{digit}": f"windows-125{digit}" for digit in (2, 0, 1)},
    **{"cp932": "Shift_JIS", "gb18030": "GB18030", "cp949": "EUC-KR", "big5": "Big5"},
    **{"euc_jp": "EUC-JP", **{f"cp125{digit}": f"windows-125{digit}" for digit in range(3, 9)}},
    **{"cp874": "windows-874", "koi8_r": "KOI8-R", "cp866": "IBM866", "iso8859_2": "ISO-8859-2"},
    **{"iso8859_7": "ISO-8859-7", "cp850": "IBM850", "mac_roman": "macintosh"},
}
_WORD = re.compile(rb"[^\x00-\x40\x5b-\x60\x7b-\x7f]*[\x80-\xff][^\x00-\x20,;|\"]*")
_READ_WORD = re.compile(r"[^\W\d_]+|[^\x00-\x7f]")
_FREQUENT = frozenset("äöüßéèêëàâçîïôûùñáíóúãõåøæąćęłńśźżčďěňřšťůýžőűğış")
_SCRIPTS = {"HANGUL": 0.2, **dict.fromkeys(("CYRILLIC", "GREEK", "HEBREW", "ARABIC", "THAI"), 0.0)}


def codec_of(name: str) -> str | None:
    """Return Python's name of an encoding of texts, or None if it knows none of that name."""
    named = {shown.lower(): codec for codec, shown in _COMMON.items()}
    try:
        codec = codecs.lookup(named.get(name.lower(), name))
        "".encode(codec.name)
    except (LookupError, ValueError):
        return None
    return codec.name


def encoding_of_mark(content: bytes) -> str:
    """Return the encoding that the first bytes of a file mark. UTF-8 where none does."""
    return "UTF-16" if content.startswith(_WIDE_MARKS) else UTF_8


def likely_encodings(content: bytes) -> list[str]:
    """Return the encodings that bytes are most likely written in, at most three, the best first.

    The words that are not ASCII show it: in the right encoding their letters are of one script.
    """
    wide = encoding_without_mark(content)
    if wide is not None:
        return [wide]
    words = list(dict.fromkeys(_WORD.findall(content[:_EXAMINED])))
    strangeness = {}
    for codec, name in _COMMON.items():
        try:
            text = b" ".join(words).decode(codec)
        except UnicodeDecodeError:
            continue
        read = [word for word in _READ_WORD.findall(text) if not word.isascii()]
        strangeness[name] = round(sum(map(_strangeness, read)) / max(len(read), 1), 2)
    return sorted(strangeness, key=strangeness.__getitem__)[:_MOST_LIKELY]


def _strangeness(word: str) -> float:
    """Return how unlikely it is that a person wrote a word, from 0 to 1."""
    letters = [letter for letter in word.lower() if not letter.isascii()]
    scripts = {re.split("[ -]", unicodedata.name(letter, ""))[0] for letter in word}
    if scripts == {"LATIN"}:
        rare = sum(letter not in _FREQUENT for letter in letters) / len(letters)
        value = 0.3 * rare + (0.8 if 2 * len(letters) > len(word) else 0)
    elif scripts <= {"CJK", "HIRAGANA", "KATAKANA"}:
        rare = sum(not "\u3040" <= letter < "\u8000" for letter in letters) / len(letters)
        value = 0.2 + 0.1 * (scripts == {"CJK"}) + 0.5 * rare
    else:
        value = _SCRIPTS.get(scripts.pop(), 1.0) if len(scripts) == 1 else 1.0
    is_mixed = word not in (word.lower(), word.upper(), word.capitalize())
    return min(value + 0.5 * is_mixed, 1.0)


def encoding_without_mark(content: bytes) -> str | None:
    """Return the form of UTF-16 of bytes without a byte order mark, or None if they are none.

    The digits, commas and line ends of a table show it: one of their two bytes is 0, always the
    same one.
    """
    units = len(content) // 2
    first, second = content[0::2].count(0), content[1::2].count(0)
    most, least = max(first, second), min(first, second)
    if _UNITS_WITH_ZERO * most < units or _UNITS_WITH_ZERO * least >= most:
        return None
    return "UTF-16LE" if most == second else "UTF-16BE"
