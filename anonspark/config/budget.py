"""The section ``ledger``: where is written down what was published of a data set, at what price."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from anonspark.config.problems import Finding, in_words
from anonspark.config.section import NonEmptyText, Section

DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""The form of a data set's name."""

_NAMES = f"^{DATASET.pattern}$"

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMALS = 6
_MOST = Decimal(10) ** 9


def _as_decimal(value: object) -> object:
    """Keep a number as its text in the file: 0.1 is a tenth, not the nearest double."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    return str(value)


Number = Annotated[
    str,
    BeforeValidator(_as_decimal),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
"""A decimal number, kept as its text."""


def as_fraction(text: str) -> Fraction | None:
    """Return a decimal text as a fraction, or None if it is no number of at most 6 decimals.

    >>> as_fraction("0.25"), as_fraction("1_0")
    (Fraction(1, 4), None)
    """
    # Python would take 1_0 for ten, and the digits of any script.
    if _DECIMAL.fullmatch(text) is None:
        return None
    try:
        number = Decimal(text)
        if abs(number) > _MOST:
            return None
    except DecimalException:
        # Beyond what a decimal number can be.
        return None
    if number != number.quantize(Decimal(1).scaleb(-_DECIMALS)):
        return None
    return Fraction(number)


def in_decimals(number: Fraction) -> str:
    """Write a fraction in decimals, or as a fraction if they have no end.

    >>> in_decimals(Fraction(5, 4)), in_decimals(Fraction(1, 3))
    ('1.25', '1/3')
    """
    rest, decimals = number.denominator, 0
    for factor in (2, 5):
        count = 0
        while rest % factor == 0:
            rest, count = rest // factor, count + 1
        decimals = max(decimals, count)
    if rest > 1:
        return str(number)
    digits = Decimal(number.numerator * 10**decimals // number.denominator)
    return f"{digits.scaleb(-decimals):f}"


class BudgetOptions(Section):
    """The directory that records the releases of a data set, and their price."""

    path: NonEmptyText
    """Directory of the ledger. Any Hadoop URI."""

    dataset: Annotated[str, WithJsonSchema({"type": "string", "pattern": _NAMES})]
    """One name for all data about the same people."""

    limit: Number | None = None
    """Largest total privacy loss (epsilon), a decimal number. It is fixed when the ledger is
    created. null means the limit of the ledger."""

    def _problems(self) -> Iterator[Finding]:
        if DATASET.fullmatch(self.dataset) is None:
            text = (
                f"found {in_words(self.dataset)}. Expected at most 100 letters, digits, dots, "
                "hyphens and underscores, the first of them a letter or digit. Correct it"
            )
            yield Finding(("dataset",), text)
        number = None if self.limit is None else as_fraction(self.limit)
        if self.limit is not None and (number is None or number <= 0):
            text = (
                f"found {in_words(self.limit)}. Expected a decimal number above 0 with at most "
                f"{_DECIMALS} decimals. Correct it"
            )
            yield Finding(("limit",), text)

    @property
    def directory(self) -> str:
        """Directory of the data set."""
        return f"{self.path.rstrip('/')}/{self.dataset}"

    @property
    def most(self) -> Fraction | None:
        """Return the privacy loss that may be spent, or None for the limit of the ledger."""
        return None if self.limit is None else as_fraction(self.limit)
