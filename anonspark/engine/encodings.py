"""Encodings of text files: their names, and guesses by the bytes."""

from __future__ import annotations

import codecs
import re
import unicodedata

UTF_8 = "UTF-8"
"""The default encoding."""

# Byte order marks of UTF-16.
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# In UTF-16 at least one in so many units of two bytes has a byte that is 0.
_UNITS_WITH_ZERO = 16
_EXAMINED, _MOST_LIKELY = 1 << 16, 3

# Encodings of tables by Python's names, with the names that others use. The most common one first.
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
    """Return Python's name of an encoding of texts, or None if it knows no such encoding.

    >>> codec_of("windows-1252"), codec_of("base64")
    ('cp1252', None)
    """
    codecs_by_name = {shown.lower(): codec for codec, shown in _COMMON.items()}
    try:
        codec = codecs.lookup(codecs_by_name.get(name.lower(), name))
        "".encode(codec.name)
    except (LookupError, ValueError):
        return None
    return codec.name


def encoding_of_mark(content: bytes) -> str:
    """Return the encoding of a file's byte order mark, or UTF-8 if it has none.

    >>> encoding_of_mark("age".encode("utf-16"))
    'UTF-16'
    """
    return "UTF-16" if content.startswith(_WIDE_MARKS) else UTF_8


def likely_encodings(content: bytes) -> list[str]:
    """Return the encodings in which bytes are most likely written, at most three, the best first.

    In the right encoding the letters of a word that is not ASCII belong to one script.

    >>> likely_encodings("Köln, Düsseldorf".encode("cp1252"))[0]
    'windows-1252'
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
    """Return how unlikely it is that a person wrote a word, from 0 to 1.

    >>> _strangeness("Köln") < _strangeness("KÃ¶ln")
    True
    """
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

    Digits, commas and line ends of a table have a 0 as their high byte, always on the same side.

    >>> encoding_without_mark("age,sex,39,41".encode("utf-16-le"))
    'UTF-16LE'
    """
    units = len(content) // 2
    zeros_first, zeros_second = content[0::2].count(0), content[1::2].count(0)
    more, fewer = max(zeros_first, zeros_second), min(zeros_first, zeros_second)
    if _UNITS_WITH_ZERO * more < units or _UNITS_WITH_ZERO * fewer >= more:
        return None
    return "UTF-16LE" if more == zeros_second else "UTF-16BE"
