"""Questions: what is understood, and what is told of those that are not."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from cases import cases
from helpers import attribute
from hypothesis import given
from hypothesis import strategies as st

from anonspark.errors import ConfigurationError
from anonspark.reading.attributes import ReadAttribute
from anonspark.reading.counting import formula_of
from anonspark.reading.questions import (
    All,
    Comparison,
    UnquotedNameError,
    parse_assignments,
    parse_question,
)

ATTRIBUTES = {
    "age": ReadAttribute("age", "integer", ("age",), attribute("age", "integer")),
    "born": ReadAttribute("born", "date", ("born",), attribute("born", "date")),
    "seen": ReadAttribute("seen", "timestamp", ("seen",), attribute("seen", "timestamp")),
    "sex": ReadAttribute("sex", "category", ("sex",), attribute("sex", "category")),
    "is new": ReadAttribute("is new", "boolean", ("is new",), attribute("is new", "boolean")),
    "zip": ReadAttribute("zip", "category", ("zip",), attribute("zip", "category", rule="prefix")),
    "weight": ReadAttribute("weight", "float", ("weight",), raw_type=pa.float32()),
}


@cases(__file__, "question", "same")
def test_questions_that_mean_the_same(question: str, same: str) -> None:
    """Conditions on one attribute are one set of its values."""
    one, other = (
        formula_of(parse_question(text).condition, ATTRIBUTES) for text in (question, same)
    )
    assert one == other


@cases(__file__, "question", "message")
def test_the_message_names_the_character(question: str, message: str) -> None:
    """What was found where, and what was expected."""
    with pytest.raises(ConfigurationError, match=message):
        formula_of(parse_question(question).condition, ATTRIBUTES)


NAMES = ("hours-per-week", "hours-per-day", "hours", 'a"b-c', "1st visit", "col-1")


@cases(__file__, "question", "message")
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
