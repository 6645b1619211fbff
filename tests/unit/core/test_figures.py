"""The tables of figures and of criteria: names, words, what may be bounded, who judges."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.criterion import CRITERIA, Criterion
from anonspark.core.extensions import owner_of, register_owner
from anonspark.core.figure_text import figure_text, figure_texts, percent
from anonspark.core.figures import SUMMARY, TABLES, Figure, arrow_schema, results, shown
from anonspark.core.labels import value_labels
from anonspark.errors import ConfigurationError
from anonspark.kernels import criteria as kernel
from anonspark.verification.proof.measures import MEASURES


@pytest.mark.parametrize("table", TABLES)
def test_each_column_and_each_line_is_there_once(table: str) -> None:
    figures = TABLES[table]
    assert len({figure.name for figure in figures}) == len(figures)
    numbers = [figure.line for figure in shown(figures)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_schema_names_columns_and_types() -> None:
    schema = arrow_schema((Figure("rows", "long"), Figure("gcp", "double")))
    assert schema == pa.schema([("rows", pa.int64()), ("gcp", pa.float64())])


def test_words_of_the_terminal_and_of_charts() -> None:
    figures = {figure.name: figure for figure in SUMMARY}
    titles = {name: figure.title for name, figure in figures.items()}
    assert titles["dm"] == "discernibility metric (dm)"
    assert titles["gcp"] == "certainty penalty per value (gcp, 0 to 1)"
    assert titles["mean_class_size"] == "mean class size"
    assert titles["published_min_class_size"].format(k=5) == "smallest class (k = 5)"
    assert figures["gcp"].axis == "certainty penalty per value, 0 to 1 (gcp)"
    assert figures["gcp_total"].axis == "certainty penalty (gcp_total)"
    assert figures["seconds"].axis == "time of a run, seconds"


def test_every_figure_that_is_shown_or_ranked_by_has_words() -> None:
    assert [one.name for one in SUMMARY if (one.line or one.better) and not one.words] == []


def test_what_is_configured_or_known_late_is_no_result() -> None:
    names = [figure.name for figure in results(SUMMARY)]
    assert not {"run_id", "k", "rho", "seconds", "version"} & set(names)
    assert {"rows_in", "dm", "gcp", "rule_gain", "entropy"} <= set(names)


every_kind = pytest.mark.parametrize("kind", list(CRITERIA))


def test_kinds_are_the_same_everywhere() -> None:
    kinds = list(CRITERIA)
    assert list(MEASURES) == kinds
    constants = [getattr(kernel, one.kernel) for one in CRITERIA.values()]
    assert sorted(constants) == list(range(len(kinds)))
    assert len({one.column for one in CRITERIA.values()}) == len(kinds)


@every_kind
def test_words_have_the_bound_and_no_brace(kind: str) -> None:
    words = Criterion("s", kind, 2.5, 0.75).describe()
    assert "2.5" in words
    assert "{" not in words + CRITERIA[kind].measured.format(bound="3")


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (Criterion("s", "distinct", 3), "distinct l-diversity with l = 3"),
        (Criterion("s", "recursive", 2, 1.5), "recursive (c, l)-diversity with c = 1.5 and l = 2"),
        (Criterion("s", "alpha", 0.5), "(alpha, k)-anonymity with alpha = 0.5"),
        (Criterion("s", "equal distance", 0.2), "t-closeness with t = 0.2 (equal distance)"),
    ],
)
def test_criteria_in_words(criterion: Criterion, words: str) -> None:
    assert criterion.describe() == words


def test_only_recursive_diversity_has_a_c() -> None:
    assert Criterion("s", "recursive", 2, 1.5).recursive_c == 1.5
    assert Criterion("s", "recursive", 2, 1.5).limit == 1.5
    assert Criterion("s", "entropy", 2).recursive_c is None
    assert Criterion("s", "entropy", 2).limit == 2


def test_an_owner_is_loaded_when_its_section_is_met() -> None:
    loads: list[str] = []
    register_owner("weather", lambda: loads.append("now") or "forecast")
    assert loads == []
    assert owner_of("weather") == "forecast"
    assert loads == ["now"]


def test_a_section_that_nobody_owns_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match="climate: found a section that no loaded module reads"
    ):
        owner_of("climate")


@pytest.mark.parametrize("section", ["coding", "parts", "ledger"])
def test_the_core_alone_passes_over_nothing_that_it_cannot_check(section: str) -> None:
    code = f"""
from anonspark.core.extensions import owner_of
try:
    owner_of({section!r})
except Exception as error:
    print(type(error).__name__)
import anonspark.sharing
print(owner_of({section!r}).__name__.startswith("anonspark.sharing."))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["ConfigurationError", "True"]


@cases(__file__, "value", "text")
def test_a_figure(value: object, text: str) -> None:
    assert figure_text(value) == text


@cases(__file__, "part", "whole", "text", "short")
def test_a_share(part: float, whole: float, text: str, short: str) -> None:
    assert percent(part, whole) == text
    assert percent(part, whole, short=True) == short


def test_figures_of_other_types() -> None:
    others = (Decimal(1234567), Decimal("0.5"), np.int64(1234), np.float32(0.5))
    assert list(map(figure_text, others)) == ["1,234,567", "0.5", "1,234", "0.5"]


def test_three_digits_of_thousands_are_no_powers_of_ten() -> None:
    assert figure_text(1234.5, 3) == "1,234"


def test_the_largest_of_a_column_says_how_many_decimals_all_have() -> None:
    assert figure_texts([0.2, 0.12346, None, 0.0004]) == ["0.2000", "0.1235", "", "0.0004"]
    assert figure_texts([0.5, 12.25]) == ["0.50", "12.25"]
    assert figure_texts([0.5, 0.25, 3]) == ["0.50", "0.25", "3"]
    assert figure_texts([2.0, 4.0, math.inf]) == ["2", "4", "inf"]
    assert figure_texts([0.5, 12345.6]) == ["0", "12,346"]
    assert figure_texts([0.0, 1e-9]) == ["0", "0"]
    assert figure_texts([]) == []


@given(st.floats(1e-6, 1e12), st.integers(1, 6))
def test_a_text_is_as_near_as_its_digits(value: float, digits: int) -> None:
    found = float(figure_text(value, digits).replace(",", ""))
    assert found == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits), abs=0)


@given(st.lists(st.floats(-1e6, 1e6), max_size=6))
def test_decimals_of_a_column_stand_below_each_other(values: list[float]) -> None:
    texts = figure_texts(values)
    places = {len(re.sub(r"^[^.]*", "", one)) for one in texts}
    assert len(places) <= 1


def expected(values: np.ndarray) -> list[str]:
    return [str(value).removesuffix(".0") for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_64_bits(numbers: list[float]) -> None:
    values = np.array(numbers)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_32_bits(numbers: list[float]) -> None:
    values = np.array(numbers, np.float32)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_numbers_around_the_ends_of_what_arrow_writes_alike(width: type[np.floating]) -> None:
    random = np.random.default_rng(0)
    ends = np.array([1e-4, 1e-3, 0.1, 1.0, 1e5, 1e6, 1e7, 1e15, 1e16, 0.0], width)
    near = [np.nextafter(ends, width(sign * np.inf)) for sign in (-1, 1)]
    sizes = np.exp(random.uniform(np.log(1e-5), np.log(1e7), 20_000))
    rounded = np.round(sizes, 2)
    values = np.concatenate([ends, *near, sizes, rounded]).astype(width)
    values[::2] *= -1
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)
