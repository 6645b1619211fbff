"""What Var and Inan (2018) print about noisy tables of counts, beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import require_data
from printed_figures import Figure, printed_figures
from quality.csv_tables import ADULT_FILES, read_adult
from quality.ml_utility import ADULT_NUMBERS
from quality.naive_bayes import error_of_folds
from quality.var_inan import EXAMPLE, curves, expected, scale_of_noise, sensitivities

from anonspark.core.association import entropy


def test_sensitivities_and_scales() -> None:
    assert sensitivities() == {"two counting queries": 2, "one table": 2, "14 tables": 28}
    assert (scale_of_noise(14, "0.5"), scale_of_noise(6, "0.5")) == (56, 24)


def test_expected_counts_and_entropy() -> None:
    assert expected(EXAMPLE).round().tolist() == [[687, 813], [458, 542]]
    assert entropy(EXAMPLE.sum(axis=0)) == pytest.approx(0.994904, abs=5e-7)


def test_listwise_deletion_and_naive_bayes(data_directory: Path) -> None:
    for name in ADULT_FILES:
        require_data(data_directory / name)
    both = read_adult(data_directory)
    complete = both.complete()
    # One record more than is printed.
    assert len(both.rows) == 48_842
    assert len(both.rows) - len(complete.rows) == 3_620
    error = 100 * error_of_folds(complete, "income", ADULT_NUMBERS)
    assert error == pytest.approx(17.5, abs=0.7)


def test_curves_are_monotone(adult_path: Path) -> None:
    by_epsilon, by_records, everything = curves(adult_path, runs=25)
    for overlaps in (list(by_epsilon.values()), list(by_records.values())):
        assert overlaps == sorted(overlaps)
        assert overlaps[0] < overlaps[-1] - 0.05
    assert everything == 1


@pytest.mark.parametrize(
    ("figure", "verdict", "text"),
    [
        (Figure("accuracy", "0.857", 0.8601, spread=0.012), "spread", "0.857 ~ 0.860"),
        (Figure("error %", "17.28", 18.1, spread=0.7), "differs", "17.28 → 18.10 (+0.82)"),
        (Figure("accuracy", "0.857", 0.8601), "differs", "0.857 → 0.860 (+0.003, +0.4%)"),
        (Figure("accuracy", "0.857", 0.8572, spread=0.012), "equal", "0.857"),
    ],
)
def test_verdicts_within_the_spread(figure: Figure, verdict: str, text: str) -> None:
    assert (figure.verdict, figure.text()) == (verdict, text)


def test_printed_figures_can_be_read() -> None:
    assert len(printed_figures("var-inan-2018")) == 6
    assert sum(map(len, printed_figures("saleh").values())) == 54
