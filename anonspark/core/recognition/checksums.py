"""Numbers that carry check digits: bank accounts and payment cards.

A test takes a text without blanks and separators, and says whether its check digits are right.
"""

from __future__ import annotations

import re

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_CARD = re.compile(r"[2-6][0-9]{12,18}")


def is_iban(text: str) -> bool:
    """Test an international bank account number (ISO 13616, ISO 7064 MOD 97-10)."""
    if not _IBAN.fullmatch(text):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def has_luhn_digit(digits: str) -> bool:
    """Test the last digit by Luhn's rule (ISO/IEC 7812-1, annex B)."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + index % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_payment_card(text: str) -> bool:
    """Test the number of a payment card: 13 to 19 digits, the last by Luhn's rule."""
    return bool(_CARD.fullmatch(text)) and has_luhn_digit(text)
