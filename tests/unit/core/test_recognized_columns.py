"""Columns are recognized by their values and by their names, and others are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cases import cases

from anonspark.core.recognition.names import is_key_name, may_number_people, meaning_of, words_of
from anonspark.core.recognition.values import (
    has_luhn_digit,
    is_iban,
    is_payment_card,
    recognize_values,
)


@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        (is_iban, "GB82WEST12345698765432", "GB82WEST12345698765433"),
        (is_iban, "DE89370400440532013000", "DE88370400440532013000"),
        (is_payment_card, "4111111111111111", "4111111111111112"),
        (is_payment_card, "378282246310005", "1782822463100"),
        (has_luhn_digit, "79927398713", "79927398710"),
    ],
)
def test_accounts_and_cards(test: Callable[[str], bool], right: str, wrong: str) -> None:
    assert test(right)
    assert not test(wrong)


@cases(__file__, "kind", "values")
def test_values_are_recognized(kind: str, values: list[str]) -> None:
    found = recognize_values(values)
    assert found is not None
    assert found.kind == kind
    assert found.share == 1
    # Some are allowed to be odd, but not many.
    few, many = ["-"] * (len(values) // 5), ["-"] * len(values)
    odd = recognize_values([*values, *few])
    assert odd is not None
    assert odd.kind == kind
    assert recognize_values([*values, *many]) is None


@pytest.mark.parametrize(
    "values",
    [
        [str(n) for n in range(1000)],
        [f"{n / 7:.3f}" for n in range(500)],
        [f"2024-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(100)],
        [f"2024-11-{1 + n:02} 13:47:0{n % 10}" for n in range(28)],
        ["married", "divorced", "widowed", "never married", "separated", "other"],
        ["<=50K", ">50K", "a", "b", "c", "d"],
        ["[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)", "[50-60)"],
        ["10.5.2", "1.2.3", "4.5.6", "7.8.9", "2.3.4"],
        # Numbers of people, of which ICD has one letter, too.
        [f"P{n:02}" for n in range(100)],
        # Too few to tell.
        ["ada@example.org", "grace@example.org"],
    ],
)
def test_other_values_are_not(values: list[str]) -> None:
    assert recognize_values(values) is None


def test_random_numbers_are_no_identity_numbers() -> None:
    draw = np.random.default_rng(1)
    for length in range(8, 17):
        values = [str(number) for number in draw.integers(10 ** (length - 1), 10**length, 200)]
        assert recognize_values(values) is None, length


@cases(__file__, "name", "kind", "role")
def test_names_are_recognized(name: str, kind: str, role: str) -> None:
    found = meaning_of(name)
    assert found is not None
    assert (found.kind, found.role) == (kind, role)


@cases(__file__, "name")
def test_other_names_are_not(name: str) -> None:
    assert meaning_of(name) is None


def test_words_and_keys() -> None:
    assert words_of("patientBirthDate_2") == ["patient", "birth", "date"]
    assert is_key_name("patient_nbr")
    assert is_key_name("customerId")
    assert is_key_name("payer_code")
    assert is_key_name("treatment_id")
    assert not is_key_name("idle")
    assert not is_key_name("ICD-Code")


@cases(__file__, "name", "looks")
def test_names_of_what_may_number_people(name: str, looks: bool) -> None:
    assert may_number_people(name) == looks
