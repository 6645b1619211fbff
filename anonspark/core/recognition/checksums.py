"""Numbers that carry check digits: bank accounts, payment cards, national identity numbers.

A test takes a text without blanks and separators, and says whether its check digits are right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_CARD = re.compile(r"[2-6][0-9]{12,18}")
_SPANISH = re.compile(r"([0-9XYZ][0-9]{7})([A-Z])")
_SPANISH_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_ITALIAN = re.compile(r"[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]")
_ITALIAN_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22,
                25, 24, 23)  # fmt: skip


def is_iban(text: str) -> bool:
    """Test an international bank account number (ISO 13616, ISO 7064 MOD 97-10)."""
    if not _IBAN.fullmatch(text):
        return False
    return int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1


def has_luhn_digit(digits: str) -> bool:
    """Test the last digit by Luhn's rule (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, one in enumerate(reversed(digits)):
        doubled = int(one) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_payment_card(text: str) -> bool:
    """Test the number of a payment card: 13 to 19 digits, the last by Luhn's rule."""
    return bool(_CARD.fullmatch(text)) and has_luhn_digit(text)


def _digits(text: str, length: int) -> list[int] | None:
    """Return the digits of a number of some length. None of others, and of one digit repeated."""
    if len(text) != length or not (text.isascii() and text.isdigit()) or len(set(text)) == 1:
        return None
    return [int(one) for one in text]


def _weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def _turkish(text: str) -> bool:
    found = _digits(text, 11)
    if found is None or found[0] == 0:
        return False
    tenth = (7 * sum(found[0:9:2]) - sum(found[1:8:2])) % 10
    return found[9] == tenth and found[10] == sum(found[:10]) % 10


def _german(text: str) -> bool:
    """Test a tax number, by ISO 7064 MOD 11,10."""
    found = _digits(text, 11)
    if found is None or found[0] == 0:
        return False
    product = 10
    for one in found[:10]:
        product = ((one + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == found[10]


def _spanish(text: str) -> bool:
    found = _SPANISH.fullmatch(text)
    if found is None:
        return False
    number = int(found[1].translate(str.maketrans("XYZ", "012")))
    return _SPANISH_LETTERS[number % 23] == found[2]


def _italian(text: str) -> bool:
    if not _ITALIAN.fullmatch(text):
        return False
    total = 0
    for place, one in enumerate(text[:15]):
        value = int(one) if one.isdigit() else ord(one) - ord("A")
        total += value if place % 2 else _ITALIAN_ODD[value]
    return ord(text[15]) - ord("A") == total % 26


def _french(text: str) -> bool:
    found = _digits(text, 15)
    return found is not None and found[0] in (1, 2) and 97 - int(text[:13]) % 97 == int(text[13:])


def _belgian(text: str) -> bool:
    if _digits(text, 11) is None or not 1 <= int(text[2:4]) <= 12:
        return False
    return any(97 - int(born + text[:9]) % 97 == int(text[9:]) for born in ("", "2"))


def _dutch(text: str) -> bool:
    found = _digits(text, 9)
    return found is not None and _weighted(found, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _polish(text: str) -> bool:
    found = _digits(text, 11)
    if found is None or not 1 <= int(text[2:4]) % 20 <= 12:
        return False
    return _weighted(found, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _brazilian(text: str) -> bool:
    found = _digits(text, 11)
    if found is None:
        return False
    return all(
        _weighted(found[:size], range(size + 1, 1, -1)) * 10 % 11 % 10 == found[size]
        for size in (9, 10)
    )


def _swedish(text: str) -> bool:
    if _digits(text, 10) is None or not 1 <= int(text[2:4]) <= 12:
        return False
    return has_luhn_digit(text)


def _swiss(text: str) -> bool:
    found = _digits(text, 13)
    if found is None or not text.startswith("756"):
        return False
    return _weighted(found, (1, 3) * 7) % 10 == 0


def _british(text: str) -> bool:
    """Test a number of the National Health Service."""
    found = _digits(text, 10)
    return found is not None and (11 - _weighted(found[:9], range(10, 1, -1)) % 11) % 11 == found[9]


NATIONAL_NUMBERS: dict[str, Callable[[str], bool]] = {
    "Belgium": _belgian,
    "Brazil": _brazilian,
    "France": _french,
    "Germany": _german,
    "Italy": _italian,
    "Netherlands": _dutch,
    "Poland": _polish,
    "Spain": _spanish,
    "Sweden": _swedish,
    "Switzerland": _swiss,
    "Turkey": _turkish,
    "United Kingdom": _british,
}
"""Tests of identity numbers, of health and taxes among them, by the country that gives them."""
