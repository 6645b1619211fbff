"""Columns are recognized by their values and by their names, and others are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from anonspark.core.recognition.checksums import (
    NATIONAL_NUMBERS,
    has_luhn_digit,
    is_iban,
    is_payment_card,
)
from anonspark.core.recognition.names import (
    is_key_name,
    may_tell_people_apart,
    meaning_of,
    words_of,
)
from anonspark.core.recognition.values import recognize_values

# Published as examples by those who give these numbers, or of the pages that explain them.
NUMBERS = {
    "Belgium": ["85073003328", "17073003384"],
    "Brazil": ["52998224725", "11144477735"],
    "France": ["255081416802538", "269054958815780"],
    "Germany": ["86095742719", "47036892816"],
    "Italy": ["RSSMRA85T10A562S", "MRTMTT91D08F205J"],
    "Netherlands": ["111222333", "123456782"],
    "Poland": ["44051401359", "02070803628"],
    "Spain": ["12345678Z", "X1234567L"],
    "Sweden": ["8112189876", "6408233234"],
    "Switzerland": ["7569217076985"],
    "Turkey": ["10000000146", "12345678950"],
    "United Kingdom": ["9434765919", "4505577104"],
}


@pytest.mark.parametrize(
    ("country", "number"), [(name, one) for name, own in NUMBERS.items() for one in own]
)
def test_national_numbers(country: str, number: str) -> None:
    test = NATIONAL_NUMBERS[country]
    assert test(number)
    # A wrong digit is found, wherever it stands.
    for place, digit in enumerate(number):
        if digit.isdigit() and country != "France":
            wrong = number[:place] + str((int(digit) + 1) % 10) + number[place + 1 :]
            assert not test(wrong), (country, wrong)
    assert not test("")
    assert not test("0" * len(number))


def test_all_national_numbers_are_tested() -> None:
    assert set(NUMBERS) == set(NATIONAL_NUMBERS)


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


VALUES = {
    "e-mail address": [f"person{n}@example.org" for n in range(9)],
    "IBAN": [
        "GB82 WEST 1234 5698 7654 32",
        "DE89 3704 0044 0532 0130 00",
        "FR1420041010050500013M02606",
        "NL91ABNA0417164300",
        "ES9121000418450200051332",
    ],
    "payment card": [
        "4111 1111 1111 1111",
        "5555555555554444",
        "378282246310005",
        "6011111111111117",
        "30569309025904",
    ],
    "UUID": [f"123e4567-e89b-12d3-a456-42661417400{n}" for n in range(9)],
    "network address": [f"192.168.0.{n}" for n in range(9)],
    "identity number (United States)": [f"078-05-112{n}" for n in range(9)],
    "phone number": [f"+49 30 90182{n}0" for n in range(5)]
    + [f"(555) 123-456{n}" for n in range(5)],
    "street address": [f"{n} High Street" for n in range(5)] + [f"Lindenstraße {n}" for n in "123"],
    "postal code": [f"SW1A {n}AA" for n in range(9)],
    "coordinates": [f"48.858{n}, 2.2945" for n in range(9)],
    "free text": [f"the patient came back on day {'x' * n} with fever" for n in range(9)],
    "ICD code": ["J45.0", "E11.9", "I10", "C50.911", "F32.1"],
    "name of a person": ["Ada Lovelace", "Grace Hopper", "Dr. Alan Turing", "Emmy Noether",
                         "Curie, Marie", "Ludwig van Beethoven"],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_recognized(kind: str) -> None:
    found = recognize_values(VALUES[kind])
    assert found is not None
    assert found.kind == kind
    assert found.share == 1
    # Some are allowed to be odd, but not many.
    few, many = ["-"] * (len(VALUES[kind]) // 5), ["-"] * len(VALUES[kind])
    odd = recognize_values([*VALUES[kind], *few])
    assert odd is not None
    assert odd.kind == kind
    assert recognize_values([*VALUES[kind], *many]) is None


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


@pytest.mark.parametrize(
    ("name", "kind", "role"),
    [
        ("age", "age", "quasi_identifier"),
        ("iage", "age", "quasi_identifier"),
        ("isex", "sex", "quasi_identifier"),
        ("birthDate", "date of birth", "quasi_identifier"),
        ("DATE_OF_BIRTH", "date of birth", "quasi_identifier"),
        ("Geburtsdatum", "date of birth", "quasi_identifier"),
        ("zip_code", "postal code", "quasi_identifier"),
        ("PLZ", "postal code", "quasi_identifier"),
        ("marital-status", "marital status", "quasi_identifier"),
        ("native-country", "country", "quasi_identifier"),
        ("istatenum", "region", "quasi_identifier"),
        ("workclass", "employer", "quasi_identifier"),
        ("diag_1", "diagnosis", "sensitive"),
        ("iinjury", "diagnosis", "sensitive"),
        ("income", "income", "sensitive"),
        ("readmitted", "target", "sensitive"),
        ("full_name", "name of a person", "identifier"),
        ("lastName", "name of a person", "identifier"),
        ("customer name", "name of a person", "identifier"),
        ("E-Mail", "e-mail address", "identifier"),
        ("work_phone", "phone number", "identifier"),
        ("ssn", "identity number", "identifier"),
    ],
)
def test_names_are_recognized(name: str, kind: str, role: str) -> None:
    found = meaning_of(name)
    assert found is not None
    assert (found.kind, found.role) == (kind, role)


@pytest.mark.parametrize(
    "name",
    ["page", "x", "num_procedures", "number_diagnoses", "time_in_hospital",
     "fnlwgt", "hours-per-week", "file_name", "host_name", "visits", "flag", "dst_bytes"],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("name", "looks"),
    [("patient_nbr", True), ("customerId", True), ("SSN", True), ("ID", True), ("id", True),
     ("postal_code", False), ("Kunden-Nummer", True),
     ("encounter-id", True), ("idle", False), ("note", False), ("age", False), ("width", False)],
)  # fmt: skip
def test_names_of_what_may_number_people(name: str, looks: bool) -> None:
    assert may_tell_people_apart(name) == looks
