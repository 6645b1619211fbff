"""What Var and Inan (2018) print about noisy tables of counts, beside ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import require_data
from printed_figures import Figure, printed_figures
from quality.csv_tables import ADULT_FILES, read_adult
from quality.private_choice import CAR, EXPERIMENTS, FOLDS, Folds, mean_errors
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
    folds = Folds(complete, EXPERIMENTS["Adult"])
    errors = [folds.error("naive Bayes", fold, 3, frozenset(range(14))) for fold in range(FOLDS)]
    assert 100 * np.mean(errors) == pytest.approx(17.5, abs=0.7)


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
    assert sum(map(len, printed_figures("saleh").values())) == 348


def test_noise_costs_accuracy(data_directory: Path) -> None:
    require_data(data_directory / CAR)
    experiment = EXPERIMENTS["Car"]
    folds = Folds(experiment.read(data_directory), experiment)
    every = mean_errors(folds, "chi_square", 6, None)
    exact = mean_errors(folds, "chi_square", experiment.chosen, None)
    little, much = (mean_errors(folds, "chi_square", experiment.chosen, e) for e in ("1", "0.1"))
    for learner in every:
        assert every[learner] < exact[learner] < little[learner] < much[learner]
    # All six are chosen, whatever the noise.
    assert mean_errors(folds, "information_gain", 6, "0.1") == pytest.approx(every)
