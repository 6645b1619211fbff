"""Warnings: what counts as the same value, and figures that tell of nobody alone."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config import parse_configuration
from anonspark.core.criterion import Criterion
from anonspark.core.figure_text import share_of_records
from anonspark.pipeline.warnings.identifiers import identifier_warnings, withheld_warnings
from anonspark.pipeline.warnings.published_values import published_value_warnings
from anonspark.pipeline.warnings.settings import seed_warnings
from anonspark.pipeline.warnings.value_sizes import ValueSizes
from anonspark.verification.criteria import MeasureClasses, read_values
from anonspark.verification.merged import (
    MergedFigures,
    MergedValues,
    describe_merged,
    group_spellings,
    merge_values,
    plain_spelling,
)
from anonspark.verification.sensitive_values import SensitiveValues


@pytest.mark.parametrize(
    "text",
    [
        *("flu", "Flu", "FLU", "flu ", "\tflu", " f l u", "flu\u00a0", "fl\u2009u", "\u3000flu"),
        *("\ufb02u", "\uff26\uff2c\uff35", "f\u00adlu", "flu\u200b", "\ufeffflu", "\U0001d41flu"),
        *("flu\ufe0f", "f\u200elu\u200f", "flu\r\n"),
    ],
)
def test_one_thing_in_many_ways(text: str) -> None:
    assert plain_spelling(text) == "flu"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Gru\u0308n", "grün"), ("STRASSE", "straße"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Å", "\u212b")],
)
def test_folding_of_other_languages(one: str, other: str) -> None:
    assert plain_spelling(one) == plain_spelling(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("é", "e"), ("flu", "flue"), ("a", "b"), ("1", "-1"), ("1.5", "15"), ("A1.5", "A15")),
        *(("HIV+", "HIV-"), ("+", "-"), ("B-", "B"), ("A*", "A"), ("5\u03bcg", "5mg"), ("?", "!")),
        *(("10-20", "1020"), ("9007199254740992", "9007199254740993"), ("мама", "рама")),
    ],
)
def test_what_says_something_else(one: str, other: str) -> None:
    assert plain_spelling(one) != plain_spelling(other)


@given(st.text())
def test_plain_texts_stay(text: str) -> None:
    plain = plain_spelling(text)
    assert plain_spelling(plain) == plain
    assert not any(sign.isspace() for sign in plain)


def test_groups_and_what_is_missing() -> None:
    groups, missing = group_spellings(["a", None, "A ", "", "N/A", "b", " "], ["?", "n/a"])
    assert groups.tolist() == [0, 1, 0, 1, 1, 2, 1]
    assert missing == 1
    groups, missing = group_spellings(["a", "b"], ["?"])
    assert (groups.tolist(), missing) == ([0, 1], None)


def sensitive(values: pa.Array, shares: list[float] | None = None) -> SensitiveValues:
    count = len(values)
    own = np.array(shares if shares is not None else [1 / count] * count)
    none = np.zeros(0, np.int64)
    return SensitiveValues("disease", values, own, none, none, as_text=False, is_ordered=False)


@pytest.mark.parametrize(
    "values",
    [
        *(["1", "1.0", "01", "+1", "1,0", "1e0", "\u0661", "1."], ["0", "-0", "0.00"]),
        *(["flu", "flu.", "(flu)", "-flu", "“flu”", "flu!", "f-lu", "_flu_", "—flu"],),
        *(
            ["HIV", "\u041d\u0406V", "H\u0399V", "\u0397\u0399V", "h\u0131v"],
            ["MRSA", "\u039cR\u0405A"],
        ),
        *(["-1", "\u22121", "\u20131"], ["0.3", "0.30000000000000004"], ["1.50", "1.5"]),
    ],
)
def test_values_that_look_alike(values: list[str]) -> None:
    assert len(set(map(plain_spelling, values))) == 1


def test_numbers_that_differ_in_their_last_bits() -> None:
    alike = [1.0, 1.0000000000000002, 0.9999999999999999, 0.0, -0.0]
    values = pa.array([*alike, 1.001, float("inf"), -float("inf")])
    assert merge_values(sensitive(values), []).merged == 5
    assert merge_values(sensitive(values.cast(pa.float32())), []).merged == 5


def test_numbers_have_no_spelling() -> None:
    merged = merge_values(sensitive(pa.array([1.0, 2.0, float("nan"), None])), [])
    assert (merged.values, merged.merged, merged.has_missing) == (4, 3, True)
    assert merge_values(sensitive(pa.array([1, 2])), []).is_plain


def test_values_that_do_not_occur_do_not_count() -> None:
    values = pa.array(["flu", "Flu", "cold", None])
    assert not merge_values(sensitive(values), []).is_plain
    listed = merge_values(sensitive(values, [0.5, 0.0, 0.5, 0.0]), [])
    assert listed.is_plain
    assert (listed.values, listed.merged, listed.has_missing) == (2, 2, False)


def measured(
    values: MergedValues, classes: list[list[tuple[str | None, int]]], *criteria: Criterion
) -> list[float]:
    batch = pa.RecordBatch.from_pydict(
        {
            "value": [[[value for value, _ in own]] for own in classes],
            "count": [[[count for _, count in own]] for own in classes],
        }
    )
    measure = MeasureClasses(tuple(values.asked(criteria)), read_values)
    (found,) = list(measure(iter([batch])))
    figures: list[float] = found.column("smallest").to_pylist()
    return figures


def test_the_worst_class_by_hand() -> None:
    values = merge_values(sensitive(pa.array(["flu", "Flu", "\ufb02u", "cold", "?", None])), ["?"])
    classes = [
        [("flu", 2), ("Flu", 1), ("\ufb02u", 1), ("?", 1), (None, 1)],  # 5, 2, 1
        [("flu", 1), ("cold", 3), ("?", 2), ("Flu", 1)],  # 4, 3, 2
    ]
    alpha = Criterion("disease", "alpha", 0.9)
    entropy = Criterion("disease", "entropy", 2.0)
    found = measured(values, classes, alpha, entropy)
    assert found[:4] == [4.0, 2.0, 1.0, 4 / 6]
    assert found[4] == pytest.approx(np.exp(-(4 * np.log(4 / 6) + 2 * np.log(2 / 6)) / 6))
    assert measured(values, [[("?", 1), (None, 2)]]) == [2.0, 1.0, 0.0]


def figures(values: int, merged: int, *distinct: int, required: float = 0.0) -> MergedFigures:
    criteria = {Criterion("disease", "distinct", required): float(distinct[1])} if required else {}
    return MergedFigures("disease", values, merged, *distinct, criteria)


def test_words_of_what_l_would_be() -> None:
    told = describe_merged(figures(5, 2, 5, 2, 1, required=5.0))
    assert told is not None
    assert told[0] == "equal_values"
    assert (
        "if those that say the same were one and missing did not count, distinct l would be 1 "
        "instead of 5, and 2 if missing counts. Write equal values alike" in told[1]
    )
    told = describe_merged(figures(5, 4, 5, 2, 2))
    assert told is not None
    assert "if those that say the same were one, distinct l would be 2 instead of 5." in told[1]
    told = describe_merged(figures(5, 4, 2, 2, 2))
    assert told is not None
    assert "were they one, distinct l would still be 2." in told[1]
    told = describe_merged(figures(3, 3, 3, 3, 2, required=3.0))
    assert told is not None
    assert told[0] == "missing_values"
    # What would be as it is goes without saying.
    assert told[1].endswith(
        ": if missing did not count, distinct l would be 2 instead of 3. Complete them, or ask for "
        "a larger l"
    )
    # Missing values that no criterion needs.
    assert describe_merged(figures(3, 3, 3, 3, 2, required=2.0)) is None
    assert describe_merged(figures(3, 3, 3, 3, 2)) is None


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
