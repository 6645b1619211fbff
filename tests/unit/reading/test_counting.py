"""Questions to a release, and shares of records beside a database that looks everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from helpers import attribute, local_table
from hypothesis import given
from hypothesis import strategies as st

from anonspark.errors import ConfigurationError
from anonspark.reading import counting
from anonspark.reading.attributes import ReadAttribute
from anonspark.reading.counting import CountedRegions, count_regions, formula_of
from anonspark.reading.questions import (
    All,
    Comparison,
    UnquotedNameError,
    parse_assignments,
    parse_question,
)

ATTRIBUTES = {
    "age": ReadAttribute("age", "integer", ("age",), attribute("age", "integer")),
    "size": ReadAttribute(
        "size",
        "integer",
        ("size_min", "size_max", "size_missing"),
        attribute("size", "integer", "size_min", "size_max", "size_missing"),
    ),
    "sex": ReadAttribute("sex", "category", ("sex",), attribute("sex", "category")),
    "visits": ReadAttribute("visits", "integer", ("visits",)),
}
CLASSES = pa.table(
    {
        "age": ["3", "[2-5]", "[2-5] or missing", "missing", "*", "[7-8]"],
        "size_min": [1, 2, None, 3, 1, 4],
        "size_max": [1, 4, None, 3, 2, 6],
        "size_missing": [False, False, True, True, True, False],
        "sex": ["f", "{f, m}", "{f, m, missing}", "missing", "{a, f}", "m"],
        "visits": [0, 1, None, 2, 1, 0],
    }
)

# `*` is every value between the smallest and largest label that there is, or missing.
AGES = [[3], [2, 3, 4, 5], [2, 3, 4, 5, None], [None], [2, 3, 4, 5, 6, 7, 8, None], [7, 8]]
SIZES = [[1], [2, 3, 4], [None], [3, None], [1, 2, None], [4, 5, 6]]
SEXES = [["f"], ["f", "m"], ["f", "m", None], [None], ["a", "f"], ["m"]]
TESTS = st.one_of(
    *(
        st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(0, 9)).map(
            lambda pair, name=name: f"{name} {pair[0]} {pair[1]}"
        )
        for name in ("age", "size", "visits")
    ),
    st.tuples(st.sampled_from(["=", "!="]), st.sampled_from("afm")).map(
        lambda pair: f"sex {pair[0]} '{pair[1]}'"
    ),
    st.sampled_from(["age is null", "sex is null", "size is not null", "age not between 3 and 4"]),
)
QUESTIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' and '.join(parts)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' or '.join(parts)})"),
        inner.map(lambda part: f"not ({part})"),
    ),
    max_leaves=8,
)
CLASSES_READ = count_regions(local_table(CLASSES), list(ATTRIBUTES.values()))


def combinations() -> pa.Table:
    """Return a table with a row for every combination of values that a class may hold."""
    rows = [
        (number, age, size, sex, CLASSES["visits"][number].as_py())
        for number in range(len(CLASSES))
        for age in AGES[number]
        for size in SIZES[number]
        for sex in SEXES[number]
    ]
    return pa.table(
        [list(column) for column in zip(*rows, strict=True)],
        names=["class", "age", "size", "sex", "visits"],
    )


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """Give a database of all combinations."""
    connection = duckdb.connect()
    connection.register("combinations", combinations())
    return connection


@given(question=QUESTIONS)
def test_shares_are_those_of_all_combinations(
    question: str, database: duckdb.DuckDBPyConnection
) -> None:
    """An overlap of conditions, and a missing value, count as they do in SQL."""
    formula = formula_of(parse_question(question).condition, ATTRIBUTES)
    evaluated = CLASSES_READ.evaluate(formula)
    met = f"select class, coalesce({question}, false) as met from combinations"  # noqa: S608
    database.execute(f"create or replace temp table evaluated as {met}")
    answer = database.execute(
        "select class, avg(met::int), bool_or(met), bool_and(met) from evaluated "
        "group by class order by class"
    )
    _, shares, possible, certain = zip(*answer.fetchall(), strict=True)
    order = _order(CLASSES_READ)
    np.testing.assert_allclose(evaluated.share[order], shares, atol=1e-12)
    # Of `*` it is not told where it ends: more is possible, and less is certain.
    told = [place for place, age in enumerate(CLASSES["age"].to_pylist()) if age != "*"]
    own = np.array(order)[told]
    assert evaluated.possible[own].tolist() == [possible[place] for place in told]
    assert evaluated.certain[own].tolist() == [certain[place] for place in told]
    assert (evaluated.possible[order] >= possible).all()
    assert (evaluated.certain[order] <= certain).all()


@cache
def _order(found: CountedRegions) -> list[int]:
    """Return where each class stands among the rows, which come in the order of counting."""
    keys = [
        (found.regions["age"].regions[age], found.regions["sex"].regions[sex])
        for age, sex in zip(found.regions["age"].numbers, found.regions["sex"].numbers, strict=True)
    ]
    alone = [
        count_regions(local_table(CLASSES.slice(number, 1)), list(ATTRIBUTES.values()))
        for number in range(len(CLASSES))
    ]
    return [
        keys.index((one.regions["age"].regions[0], one.regions["sex"].regions[0])) for one in alone
    ]


def counter_of(
    found: CountedRegions, attributes: dict[str, ReadAttribute]
) -> Callable[[str], tuple[float, int, int]]:
    """Return what answers a question by its estimate and its bounds."""

    def count(question: str) -> tuple[float, int, int]:
        formula = formula_of(parse_question(question).condition, attributes)
        counted = found.evaluate(formula).count(found.records)
        return counted.estimate, counted.lower, counted.upper

    return count


def test_half_open_intervals_and_numbers_that_are_not_whole() -> None:
    """The end of a half-open interval is not one of its values; lengths count."""
    own = attribute("age", "decimal", rule="intervals")
    attributes = {"age": ReadAttribute("age", "decimal", ("age",), own)}
    table = local_table(pa.table({"age": ["[20-25[", "[20-22.5[", "25", "*"]}))
    found = count_regions(table, list(attributes.values()))

    count = counter_of(found, attributes)
    assert count("age < 25") == (pytest.approx(3), 2, 3)
    assert count("age >= 25") == (pytest.approx(1), 1, 2)
    assert count("age >= 21.25") == (pytest.approx(0.75 + 0.5 + 1 + 0.75), 1, 4)


def test_masked_codes_are_counted_by_their_digits() -> None:
    """Each masked place is one of ten digits; a mask in the question stands for its codes."""
    own = attribute("zip", "category", rule="prefix")
    attributes = {"zip": ReadAttribute("zip", "category", ("zip",), own)}
    table = local_table(pa.table({"zip": ["12***", "123**", "12345", "13***"]}))
    found = count_regions(table, list(attributes.values()))

    count = counter_of(found, attributes)
    assert count("zip = '12345'") == (pytest.approx(1 + 0.01 + 0.001), 1, 3)
    assert count("zip = '123**'") == (pytest.approx(1 + 1 + 0.1), 2, 3)
    assert count("zip = '12***'") == (3.0, 3, 3)
    assert count("zip != '12***'") == (1.0, 1, 1)
    assert count("zip in ('12345', '13***')") == (pytest.approx(2 + 0.01 + 0.001), 2, 4)


def test_a_hierarchy_that_is_not_at_hand_bounds_nothing_but_its_own_labels() -> None:
    """A label that is asked for is met; any other may be a group that holds the value."""
    own = attribute("country", "category")
    attributes = {
        "country": ReadAttribute("country", "category", ("country",), own, is_opaque=True)
    }
    labels = ["France", "Europe", "Asia or missing", "missing"]
    found = count_regions(local_table(pa.table({"country": labels})), list(attributes.values()))

    count = counter_of(found, attributes)
    assert count("country = 'France'") == (1.0, 1, 3)
    assert count("country != 'France'") == (2.0, 0, 2)
    assert count("country is null") == (1.0, 1, 2)
    with pytest.raises(ConfigurationError, match="Give the file of the hierarchy"):
        count("country = 'France' or country = 'Spain'")


def test_too_many_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition whose columns depend on one another in too many ways takes too long."""
    monkeypatch.setattr(counting, "_MOST_CASES", 5)
    question = "age = 3 and size = 1 or age = 4 and size = 2 or age = 5 and visits = 3"
    formula = formula_of(parse_question(question).condition, ATTRIBUTES)
    with pytest.raises(ConfigurationError, match="more than 5 cases"):
        CLASSES_READ.evaluate(formula)


def test_many_conditions_are_refused_or_quick() -> None:
    """Each case looks at all conditions once more: 200 of them took minutes."""
    start = time.process_time()
    question = " and ".join(
        f"(sex = 'v{one}' or age in ({one}, {one + 70}) or visits between {one} and {one + 20})"
        for one in range(66)
    )
    formula = formula_of(parse_question(question).condition, ATTRIBUTES)
    with pytest.raises(ConfigurationError, match="ask with fewer conditions"):
        CLASSES_READ.evaluate(formula)
    assert time.process_time() - start < 10


def test_infinite_numbers_are_beyond_all_that_can_be_written() -> None:
    """Of a column of 64 or 32 bits that is published as it is."""
    for own, beyond in ((pa.float64(), "1e400"), (pa.float32(), "1e39")):
        attributes = {"x": ReadAttribute("x", "float", ("x",), raw_type=own)}
        data = pa.table({"x": pa.array([1.5, float("inf"), float("-inf"), None], own)})
        read = count_regions(local_table(data), list(attributes.values()))

        def count(question: str) -> int:
            evaluated = read.evaluate(formula_of(parse_question(question).condition, attributes))  # noqa: B023
            return evaluated.count(read.records).lower  # noqa: B023

        tests = [f"x > {beyond}", f"x = {beyond}", f"x < {beyond}", f"x > -{beyond}"]
        assert [count(one) for one in tests] == [1, 0, 2, 2]


ASKED_ATTRIBUTES = {
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
        formula_of(parse_question(text).condition, ASKED_ATTRIBUTES) for text in (question, same)
    )
    assert one == other


@cases(__file__, "question", "message")
def test_the_message_names_the_character(question: str, message: str) -> None:
    """What was found where, and what was expected."""
    with pytest.raises(ConfigurationError, match=message):
        formula_of(parse_question(question).condition, ASKED_ATTRIBUTES)


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
        formula_of(parse_question(text, NAMES).condition, ASKED_ATTRIBUTES)


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
