"""Encodings of text files: their names, and which ones bytes may be written in."""

from __future__ import annotations

import codecs

UTF_8 = "UTF-8"
"""The encoding that nobody has to name."""

# A byte order mark says which of two bytes comes first.
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Of UTF-16, one unit in so many at least has a byte that is 0.
_UNITS_WITH_ZERO = 16
_EXAMINED, _MOST_LIKELY = 1 << 16, 3

# What tables are written in, as Python calls it, and as others do.
_COMMON = {
    **{f"cp125{digit}": f"windows-125{digit}" for digit in range(9)},
    **{"cp874": "windows-874", "cp932": "Shift_JIS", "euc_jp": "EUC-JP", "gb18030": "GB18030"},
    **{"big5": "Big5", "cp949": "EUC-KR", "koi8_r": "KOI8-R", "cp866": "IBM866", "cp850": "IBM850"},
    **{"iso8859_2": "ISO-8859-2", "iso8859_7": "ISO-8859-7", "mac_roman": "macintosh"},
}


def codec_of(name: str) -> str | None:
    """Return how Python calls an encoding of texts; None where it knows none of that name."""
    named = {shown.lower(): codec for codec, shown in _COMMON.items()}
    try:
        codec = codecs.lookup(named.get(name.lower(), name))
        "".encode(codec.name)
    except (LookupError, ValueError):
        return None
    return codec.name


def encoding_of_mark(content: bytes) -> str:
    """Return the encoding that the first bytes of a file mark; UTF-8 where none does."""
    return "UTF-16" if content.startswith(_WIDE_MARKS) else UTF_8


def likely_encodings(content: bytes) -> list[str]:
    """Return the encodings that bytes are most likely written in, at most three, the best first."""
    # Only what cannot be read asks for it.
    from charset_normalizer import from_bytes

    wide = encoding_without_mark(content)
    if wide is not None:
        return [wide]
    found = from_bytes(content[:_EXAMINED], cp_isolation=list(_COMMON))
    return [_COMMON[one.encoding] for one in found if one.encoding in _COMMON][:_MOST_LIKELY]


def encoding_without_mark(content: bytes) -> str | None:
    """Return the form of UTF-16 that bytes without a mark are in, None for others.

    The digits, commas and line ends of a table tell it: of their two bytes one is 0, always the
    same one.
    """
    units = len(content) // 2
    first, second = content[0::2].count(0), content[1::2].count(0)
    most, least = max(first, second), min(first, second)
    if _UNITS_WITH_ZERO * most < units or _UNITS_WITH_ZERO * least >= most:
        return None
    return "UTF-16LE" if most == second else "UTF-16BE"
