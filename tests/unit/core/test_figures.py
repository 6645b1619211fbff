"""The tables of figures and of criteria: names, words, what may be bounded, who judges."""

from __future__ import annotations

import pyarrow as pa
import pytest

from anonspark.core.criterion import CRITERIA, Criterion
from anonspark.core.figures import SUMMARY, TABLES, Figure, arrow_schema, results, shown
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
        (
            Criterion("s", "recursive", 2, 1.5),
            "recursive (c, l)-diversity with c = 1.5 and l = 2",
        ),
        (Criterion("s", "alpha", 0.5), "(alpha, k)-anonymity with alpha = 0.5"),
        (Criterion("s", "equal distance", 0.2), "t-closeness with t = 0.2 (equal distance)"),
    ],
)
def test_criteria_in_words(criterion: Criterion, words: str) -> None:
    assert criterion.describe() == words


def test_only_recursive_diversity_has_a_c() -> None:
    assert Criterion("s", "recursive", 2, 1.5).told_c == 1.5
    assert Criterion("s", "recursive", 2, 1.5).limit == 1.5
    assert Criterion("s", "entropy", 2).told_c is None
    assert Criterion("s", "entropy", 2).limit == 2
