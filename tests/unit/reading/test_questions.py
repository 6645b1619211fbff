"""Questions: what is understood, and what is told of those that are not."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from helpers import attribute
from hypothesis import given
from hypothesis import strategies as st

from anonspark.errors import ConfigurationError
from anonspark.reading.attributes import ReadAttribute
from anonspark.reading.questions import (
    All,
    Comparison,
    UnquotedNameError,
    parse_assignments,
    parse_question,
)
from anonspark.reading.understanding import formula_of

ATTRIBUTES = {
    "age": ReadAttribute("age", "integer", ("age",), attribute("age", "integer")),
    "born": ReadAttribute("born", "date", ("born",), attribute("born", "date")),
    "seen": ReadAttribute("seen", "timestamp", ("seen",), attribute("seen", "timestamp")),
    "sex": ReadAttribute("sex", "category", ("sex",), attribute("sex", "category")),
    "is new": ReadAttribute("is new", "boolean", ("is new",), attribute("is new", "boolean")),
    "zip": ReadAttribute("zip", "category", ("zip",), attribute("zip", "category", rule="prefix")),
    "weight": ReadAttribute("weight", "float", ("weight",), raw_type=pa.float32()),
}


@pytest.mark.parametrize(
    ("question", "same"),
    [
        ("age >= 3 and age <= 5", "age between 3 and 5"),
        ("not (age < 3 or age > 5)", "age between 3 and 5"),
        ("age > 2 and age < 5.5", "age between 3 and 5"),
        ("age = 3 or age = 4 or age = 5", "age in (3, 4.0, 5)"),
        ("not not age <> 3", "age != 3"),
        ("age IS NULL", "age is missing"),
        ("sex = 'f' or sex = 'm'", "sex IN ('m', 'f', 'f')"),
        ("not sex in ('f')", "sex != 'f'"),
        ("born < 2020-01-02", "born <= '2020-01-01'"),
        ("seen >= 2020-01-01", "seen >= '2020-01-01 00:00:00'"),
        ('"is new" in (true)', "`is new` = 'true'"),
        ("age < 3 and age > 5", "age in (1) and age in (2)"),
        ("weight = 0.1", "weight = 0.100000001"),
    ],
)
def test_questions_that_mean_the_same(question: str, same: str) -> None:
    """Conditions on one attribute are one set of its values."""
    one, other = (
        formula_of(parse_question(text).condition, ATTRIBUTES) for text in (question, same)
    )
    assert one == other


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("age betwen 3 and 5", "character 5: found 'betwen'; expected =, !=, <"),
        ("age between 3 or 5", "character 15: found 'or'; expected and, with the upper end"),
        ("age = ", "character 6: found the end; expected a number, a date, true"),
        ("(age = 3", "character 9: found the end; expected '\\)'"),
        ("age = 3)", "character 8: found '\\)'; expected and, or, by, or the end"),
        ("age = 3 by", "character 11: found the end; expected the name of a column"),
        ("age = 3 by sex and age = 4", "character 16: found 'and'; expected the end, for by tak"),
        ("sex = 'f", "character 7: found a quote; expected another one that closes it"),
        ("age = 3; drop", "character 8: found ';'; expected a column, a value or a sign$"),
        ("and = 3", "character 1: found 'and'; expected the name of a column"),
        ("age not = 3", "character 9: found '='; expected between or in"),
        ("agee = 3", "character 1: found 'agee'; expected a column of the release: 'age', 'born'"),
        ("age = 'f'", "character 7: found a text; expected a number, for such are the values"),
        ("sex = 3", "character 7: found a number; expected a text in single quotes"),
        ("sex < 'f'", "character 7: found < after 'sex', which is a category"),
        ("sex between 'a' and 'f'", "found >= or between after 'sex', which is a category"),
        ("zip < '12'", "character 7: found < after 'zip', which is codes"),
        ("born = '31.12.2020'", "character 8: found a text; expected a date as 2026-01-31"),
        ("born = 2020-13-01", "character 8: found a date, but there is no such day or time; exp"),
        ("born = '1960-02-30'", "character 8: found a text, but there is no such day or time"),
        ("born = 2020-01-01 12:00", "character 8: found a time; expected a date as 2026-01-31"),
        ("seen = '2020-01-01 25:00'", "character 8: found a text, but there is no such day or"),
        ("age > 1_000", "character 7: found a number with something behind it; expected a numbe"),
        ("age in (1, 1e1000)", "character 12: found a number with something behind it; expected"),
        ("age between 1 and 5y", "character 19: found a number with something .* double quotes"),
        ("age = true", "character 7: found true; expected a number, for such are the values"),
        ("sex = false", "character 7: found false; expected a text in single quotes"),
        ("by sex, age", "character 7: found ','; expected the end, for by takes one column"),
        ('"is new" = 1', "character 12: found a number; expected true or false"),
        ("(" * 200 + "age = 3", "at most 100 conditions inside one another"),
        ("age = 3 or " * 1000, "at most 10,000"),
    ],
)
def test_the_message_names_the_character(question: str, message: str) -> None:
    """What was found where, and what was expected."""
    with pytest.raises(ConfigurationError, match=message):
        formula_of(parse_question(question).condition, ATTRIBUTES)


NAMES = ("hours-per-week", "hours-per-day", "hours", 'a"b-c', "1st visit", "col-1")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            "hours-per-week > 40",
            "6: found '-'; expected .* double quotes: did you mean \"hours-per-week\"",
        ),
        ("age = 3 and hours-per-day = 4", "18: found '-'; .* did you mean \"hours-per-day\"\\?$"),
        ("hours-per-month = 4", "6: found '-'; .* did you mean \"hours-per-"),
        ("hours+week = 4", "6: found '\\+'; .* underscores is written in double quotes$"),
        ('a"b-c" = 4', "2: found .*double quotes"),
        ("1st visit = 4", "1: found '1'; .* did you mean \"1st visit\"\\?$"),
        ("col-1 = 4", '4: found a number; expected =, .* did you mean "col-1"\\?$'),
        ("by col-x", "7: found '-'; .* did you mean \"col-1\"\\?$"),
    ],
)
def test_names_without_quotes(question: str, message: str) -> None:
    """The column that was meant is named where names are at hand."""
    with pytest.raises(ConfigurationError, match=message) as told:
        parse_question(question, NAMES)
    assert not isinstance(told.value, UnquotedNameError)
    with pytest.raises(UnquotedNameError, match=r"double quotes$"):
        parse_question(question)


@given(st.text(alphabet="age sx='\"()<>!,0123.-and or not between in is null by", max_size=60))
def test_no_text_does_worse_than_to_be_refused(text: str) -> None:
    """A question is understood, or it is told what is wrong."""
    with suppress(ConfigurationError):
        formula_of(parse_question(text, NAMES).condition, ATTRIBUTES)


def test_by_and_literals() -> None:
    """The group stands at the end, and quotes in texts are doubled."""
    question = parse_question("sex = 'it''s' and age = -1.5e3 by \"is new\"")
    assert question.by is not None
    assert question.by.text == "is new"
    assert isinstance(question.condition, All)
    first, second = question.condition.parts
    assert isinstance(first, Comparison)
    assert isinstance(second, Comparison)
    assert (first.value.text, second.value.text) == ("it's", "-1.5e3")
    assert parse_question("") == parse_question("  ")


def test_files_of_hierarchies() -> None:
    """A path may hold the sign, a column must not be empty."""
    assert parse_assignments(["sex=a=b.csv"]) == {"sex": "a=b.csv"}
    with pytest.raises(ConfigurationError, match="COLUMN=PATH"):
        parse_assignments(["=b.csv"])
