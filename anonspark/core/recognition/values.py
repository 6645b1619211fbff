"""Recognize the values of a column by their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

# A test takes a text without blanks and separators, and says whether its check digits are right.

_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_CARD = re.compile(r"[2-6][0-9]{12,18}")


def is_iban(text: str) -> bool:
    """Return whether a text is an account number (ISO 13616) with right check digits (ISO 7064).

    >>> is_iban("GB82WEST12345698765432"), is_iban("GB83WEST12345698765432")
    (True, False)
    """
    if not _IBAN.fullmatch(text):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def has_luhn_digit(digits: str) -> bool:
    """Return whether the last digit is right by Luhn's rule (ISO/IEC 7812-1, annex B).

    >>> has_luhn_digit("79927398713"), has_luhn_digit("79927398714")
    (True, False)
    """
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + index % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_payment_card(text: str) -> bool:
    """Return whether a text has 13 to 19 digits as a payment card, the last by Luhn's rule.

    >>> is_payment_card("4111111111111111")
    True
    """
    return bool(_CARD.fullmatch(text)) and has_luhn_digit(text)


ENOUGH = 0.8
"""Share of a column's different values that have to have a form."""

FEWEST = 5
"""Fewest different values from which a column is recognized."""

DISEASE = "ICD code"
"""Kind of the codes of diseases."""

_SEPARATORS = str.maketrans("", "", " -./")
_E_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]{2,}")
_UUID = re.compile(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?", re.IGNORECASE)
_HASH = re.compile(r"(?=.*[a-f])(?=.*[0-9])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})", re.I)
_WEB = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_PART = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_NETWORK = re.compile(
    rf"(?:{_PART}\.){{3}}{_PART}|(?:[0-9a-f]{{2}}[:-]){{5}}[0-9a-f]{{2}}"
    r"|(?=.*::|(?:[^:]*:){7})[0-9a-f:]{3,39}",
    re.IGNORECASE,
)
_AMERICAN = re.compile(r"(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}")
_PHONE = re.compile(r"(?:\+|00|\(|0)?[0-9][0-9 ()./-]{5,20}[0-9]")
_DATE = re.compile(r"[0-9]{1,4}[-./ ][0-9]{1,2}[-./ ][0-9]{1,4}(?:[ T].*)?")
_STREETS = (
    r"street|st|road|rd|avenue|ave|av|lane|ln|drive|dr|boulevard|blvd|court|ct|square|"
    r"gasse|platz|allee|weg|ufer|damm|rue|quai|calle|carrer|plaza|paseo|avenida|via|viale|piazza|"
    r"corso|rua|sokak|sok|cadde|caddesi|cad|mahallesi|mah"
)
_STREET = re.compile(
    rf"\b(?:{_STREETS})\b|(?:stra(?:ß|ss)e|str\.|weg|platz|gasse|allee|straat|laan)\b", re.I
)
_POSTAL_CODE = re.compile(
    r"[A-Z]{1,2}[0-9][A-Z0-9]? [0-9][A-Z]{2}|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]|[0-9]{4} ?[A-Z]{2}"
    r"|[0-9]{5}-[0-9]{4}"
)
_PLACE = re.compile(r"\(?-?[0-9]{1,2}\.[0-9]{3,}[,; ]+-?[0-9]{1,3}\.[0-9]{3,}\)?")
_NAME = r"[^\W\d_][\w'\u2019.-]*"
_PERSON = re.compile(rf"(?:(?:Dr|Prof|Mr|Mrs|Ms|Herr|Frau)\.? )?{_NAME},?(?: {_NAME}){{1,3}}")
_DISEASE = re.compile(r"[A-TV-Z][0-9][0-9AB](?:\.[0-9A-Z]{1,4})?")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Form:
    """A form of values: its ``kind`` as users call it, and the share of values that have it."""

    kind: str
    share: float


def _is_address(text: str) -> bool:
    return any(sign.isdigit() for sign in text) and bool(_STREET.search(text))


def _is_person(text: str) -> bool:
    if not _PERSON.fullmatch(text):
        return False
    words = text.replace(",", " ").split()
    return all(word[0].isupper() or word in ("de", "van", "von", "der", "da") for word in words)


def _is_phone(text: str) -> bool:
    digits = sum(sign.isdigit() for sign in text)
    return (
        7 <= digits <= 15
        and bool(_PHONE.fullmatch(text.removeprefix("+")))
        # A number without any sign is any number.
        and not text.isdigit()
        and not _DATE.fullmatch(text)
        and (text[0] in "+(0" or sum(sign in " -/." for sign in text) >= 2)
        # A number with a point is no telephone number.
        and not re.fullmatch(r"[0-9]+\.[0-9]+", text)
    )


def is_free_text(text: str) -> bool:
    """Return whether a value is written language: at least five words.

    >>> is_free_text("seen again in two weeks"), is_free_text("flu")
    (True, False)
    """
    return len(_WORD.findall(text)) >= 5


def _bare(test: Callable[[str], bool], text: str) -> bool:
    return test(text.translate(_SEPARATORS).upper())


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.fullmatch(text) is not None


# Tests in their order: more certain forms come first.
_FORMS: dict[str, Callable[[str], bool]] = {
    "e-mail address": partial(_matches, _E_MAIL),
    "IBAN": partial(_bare, is_iban),
    "payment card": partial(_bare, is_payment_card),
    "UUID": partial(_matches, _UUID),
    "hash": partial(_matches, _HASH),
    "web address": partial(_matches, _WEB),
    "network address": partial(_matches, _NETWORK),
    "identity number (United States)": partial(_matches, _AMERICAN),
    "coordinates": partial(_matches, _PLACE),
    "postal code": partial(_matches, _POSTAL_CODE),
    "phone number": _is_phone,
    "street address": _is_address,
    "free text": is_free_text,
    DISEASE: partial(_matches, _DISEASE),
    "name of a person": _is_person,
}

KINDS = tuple(_FORMS)
"""All kinds that are recognized by values."""


def recognize_values(texts: Sequence[str]) -> Form | None:
    """Recognize the form that most of the different values of a column have, or return None.

    It is the first of :data:`KINDS` that a share of at least :data:`ENOUGH` of them has. Fewer than
    :data:`FEWEST` values have no form.

    >>> recognize_values([f"user{n}@example.org" for n in range(5)])
    Form(kind='e-mail address', share=1.0)
    """
    values = [text.strip() for text in texts]
    if len(values) < FEWEST:
        return None
    most = (1 - ENOUGH) * len(values)
    for kind, test in _FORMS.items():
        others = 0
        for text in values:
            others += not test(text)
            if others > most:
                break
        else:
            if kind == DISEASE and _are_numbered(values):
                continue
            return Form(kind, 1 - others / len(values))
    return None


def _are_numbered(values: Sequence[str]) -> bool:
    """Return whether all values are one letter and a whole number, as P01 and P02."""
    return len({text[:1] for text in values}) == 1 and not any("." in text for text in values)
