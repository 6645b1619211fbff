"""The tables of figures: names, words of the terminal and of charts, what may be bounded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from anonspark.core.figures import SUMMARY, TABLES, Figure, arrow_schema, results, shown


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
