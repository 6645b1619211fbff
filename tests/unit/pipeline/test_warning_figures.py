"""Warnings: what counts as the same value, and figures that tell of nobody alone."""

from __future__ import annotations

import re

import pytest
from cases import cases

from anonspark.config import parse_configuration
from anonspark.core.figure_text import share_of_records
from anonspark.core.recognition.names import may_be_unit_name, unit_of_name, weight_of_name
from anonspark.pipeline.repeats import Counts, looks_like_key, units_first
from anonspark.pipeline.warnings.published_values import (
    identifier_warnings,
    published_value_warnings,
    withheld_warnings,
)
from anonspark.pipeline.warnings.release_warning import seed_warnings
from anonspark.pipeline.warnings.sensitive_values import plain_spelling
from anonspark.pipeline.warnings.value_sizes import ValueSizes


@pytest.mark.parametrize(
    ("alike", "spellings"),
    [
        (
            "flu",
            [
                *("flu", "FLU", "flu ", "\tflu", " f l u", "flu\u00a0", "fl\u2009u", "\u3000flu"),
                *("\ufb02u", "\uff26\uff2c\uff35", "f\u00adlu", "flu\u200b", "\ufeffflu"),
                *("\U0001d41flu", "f\u200elu\u200f", "flu\r\n", "flu.", "(flu)", "-flu", "“flu”"),
            ],
        ),
        ("grün", ["Gru\u0308n"]),
        ("strasse", ["STRASSE", "straße"]),
        ("å", ["Å", "\u212b"]),
        ("1.5", ["1.5", "\uff11.5"]),
        ("hiv-", ["HIV-", "hiv -"]),
        ("?", ["?", " ? "]),
    ],
)
def test_values_that_are_spelled_alike(alike: str, spellings: list[str]) -> None:
    assert set(map(plain_spelling, spellings)) == {alike}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("é", "e"), ("flu", "flue"), ("a", "b"), ("1.5", "15"), ("A1.5", "A15")),
        *(("HIV+", "HIV-"), ("+", "-"), ("B-", "B"), ("A*", "A"), ("?", "!"), ("10-20", "1020")),
    ],
)
def test_values_that_say_something_else(one: str, other: str) -> None:
    assert plain_spelling(one) != plain_spelling(other)


def test_identifiers_are_told_roundly() -> None:
    # 3 people with 900, 60 and 7 rows; 30 with two, 10 with one, and 13 rows of nobody.
    own = ValueSizes(1050, {900: 1, 60: 1, 7: 1, 2: 30, 1: 10})
    (warning,) = identifier_warnings({"patient": own}, 5)
    assert warning.figures == {
        "repeated_share": round(1025 / 1050, 3),
        "records_of_k_identifiers": 2,
        "missing_share": round(15 / 1050, 3),
        "exact": True,
    }
    # A record less of the one with the most is not seen by readers of the release.
    other = ValueSizes(1050, {899: 1, 60: 1, 7: 1, 2: 30, 1: 10})
    assert next(identifier_warnings({"patient": other}, 5)).figures == warning.figures
    (few,) = identifier_warnings({"patient": ValueSizes(100, {2: 1, 1: 98})}, 5)
    assert few.figures["repeated_share"] is None
    assert few.figures["records_of_k_identifiers"] is None
    assert "fewer than k = 5" in few.line
    assert not list(identifier_warnings({"patient": ValueSizes(100, {1: 90})}, 5))
    # What stands for them where records were left out does not depend on what was found.
    assert withheld_warnings({"patient": own}) == withheld_warnings({"patient": other})


DOCUMENT = {
    "input": {"path": "people.parquet"},
    "attributes": {"age": "quasi_identifier", "name": "insensitive", "disease": "sensitive"},
    "privacy": {"k": 5},
    "output": {"path": "out"},
}


def test_columns_that_single_out() -> None:
    configuration = parse_configuration(DOCUMENT)
    sizes = {
        "name": ValueSizes(100, {1: 50, 10: 5}),
        "disease": ValueSizes(100, {4: 1, 96: 1}),
    }
    name, disease = published_value_warnings(sizes, configuration)
    assert (name.code, name.attribute, name.figures["unique_share"]) == (
        *("column_identifies", "name"),
        0.5,
    )
    assert "(insensitive): 50% of the records" in name.text
    assert (disease.code, disease.figures["records_below_k"]) == ("rare_values", 4)
    assert "(sensitive): fewer than 5 records" in disease.text
    assert not list(published_value_warnings({"name": ValueSizes(100, {5: 20})}, configuration))
    one = parse_configuration(DOCUMENT, ["privacy.k=1", "privacy.allow_k_1=true"])
    assert not list(published_value_warnings({"name": ValueSizes(100, {2: 50})}, one))
    (unique,) = published_value_warnings({"name": ValueSizes(100, {1: 1, 99: 1})}, one)
    assert "that no other record has" in unique.text


@cases(__file__, "some", "words")
def test_words_for_shares(some: int, words: str) -> None:
    assert share_of_records(some, 100_000, 5) == words


@pytest.mark.parametrize(("seed", "warned"), [(0, 1), (42, 1), (-(2**31), 1), (2**32, 0)])
def test_seeds_that_can_be_guessed(seed: int, warned: int) -> None:
    found = list(seed_warnings(parse_configuration(DOCUMENT, [f"execution.seed={seed}"])))
    assert [one.code for one in found] == ["guessable_seed"] * warned
    for one in found:
        assert str(seed) not in one.text.replace("is 0, the default", "") or not seed
        # What stands in a log is no secret: a command is named, and no number.
        assert "secrets.randbits(64)" in one.advice
        assert not re.search(r"\d{5}", one.advice)


@cases(__file__, "name", "records", "values", "most", "expected")
def test_counts_of_keys(name: str, records: int, values: int, most: int, expected: bool) -> None:
    assert looks_like_key(name, Counts(records, values, most), 4360) is expected


def test_a_household_goes_before_its_people() -> None:
    counts = {
        "nr": Counts(100, 9, 12),
        "id": Counts(100, 10, 12),
        "pid": Counts(100, 50, 4),
        "hid": Counts(100, 20, 8),
    }
    assert units_first(counts) == ["hid", "pid", "id"]


@cases(__file__, "name", "unit")
def test_names_of_units(name: str, unit: str | None) -> None:
    assert unit_of_name(name) == unit


@cases(__file__, "name", "expected")
def test_names_that_are_enough_for_a_unit(name: str, expected: bool) -> None:
    assert may_be_unit_name(name) is expected


@cases(__file__, "name", "expected")
def test_names_of_sampling_weights(name: str, expected: bool | None) -> None:
    assert weight_of_name(name) is expected
