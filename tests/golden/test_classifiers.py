"""Classifiers on originals, and the splits of holders, as a master's thesis has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import require_data
from quality import holders
from quality.csv_tables import ADULT_FILES, MAMMOGRAPHIC, Texts, read_adult
from quality.ml_utility import (
    ADULT_LEARNERS,
    ADULT_NUMBERS,
    as_numbers,
    compare,
    on_mammographic,
)
from quality.silos import blocks, requirements


@pytest.fixture(scope="module")
def adult(data_directory: Path) -> Texts:
    for name in ADULT_FILES:
        require_data(data_directory / name)
    return read_adult(data_directory)


def test_mammographic_masses(data_directory: Path) -> None:
    require_data(data_directory / MAMMOGRAPHIC)
    found = on_mammographic(data_directory)
    printed = {"random forest": 0.779, "logistic regression": 0.819, "nearest neighbours": 0.823}
    ours = {
        "random forest": (0.792, 0.016),
        "logistic regression": (0.821, 0.017),
        "nearest neighbours": (0.799, 0.019),
    }
    for learner, (mean, deviation) in ours.items():
        accuracy = found[learner].accuracy
        assert accuracy.mean() == pytest.approx(mean, abs=0.005)
        assert accuracy.std(ddof=1) == pytest.approx(deviation, abs=0.003)
        assert accuracy.mean() == pytest.approx(printed[learner], abs=2 * deviation)
        assert accuracy.mean() > found["majority class"].accuracy.mean() + 0.2


def test_adult(adult: Texts) -> None:
    learners = {name: ADULT_LEARNERS[name] for name in ("Gaussian naive Bayes", "majority class")}
    found = compare(*as_numbers(adult, "income", ADULT_NUMBERS), learners, 1)
    printed = {
        "Gaussian naive Bayes": (0.794, 0.645),
        # Printed as a support vector machine.
        "majority class": (0.760, 0.432),
    }
    for learner, figures in printed.items():
        ours = (found[learner].accuracy[0], found[learner].f1_macro[0])
        assert ours == pytest.approx(figures, abs=0.012)


def test_splits_of_holders(adult: Texts) -> None:
    table = adult.complete()
    alike = holders.random_parts(table, 0)
    assert [len(one) for one in (alike.test, *alike.holders)] == [13_567, 10_552, 10_552, 10_551]
    differing = holders.parts_by_relationship(table, 0)
    for parts in (alike, differing):
        together = np.concatenate([parts.test, *parts.holders])
        assert sorted(together.tolist()) == list(range(45_222))
    assert (alike.test == differing.test).all()
    income = np.array(table.column("income")) == ">50K"
    shares = [float(income[one].mean()) for one in differing.holders]
    assert shares == pytest.approx([0.46, 0.10, 0.04], abs=0.01)


# The code of a benchmark, which no run calls.
@pytest.mark.night
def test_five_trainings_of_a_few_records(
    data_directory: Path, adult: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(table: Texts, seed: int) -> holders.Parts:
        own = np.random.default_rng(seed).permutation(len(table.rows))[:600]
        return holders.Parts(own[:200], np.array_split(own[200:], 3))

    table = adult.complete()
    releases = holders.Releases(table, few(table, 0), tmp_path)
    raw, published = releases.raw("pool"), releases.anonymized("pool", 5)
    numbers = releases.numbers()
    assert len(numbers) == 5
    others = [place for place in range(raw.features.shape[1]) if place not in numbers]
    assert set(np.unique(raw.features[:, others])) == {0, 1}
    assert (raw.features[:, numbers].max(axis=0) > 1).all()
    assert raw.features.shape == published.features.shape == (400, raw.features.shape[1])
    # Sets of categories are shares that add up to 1, as single ones do.
    sums = [one.features[:, others].sum(axis=1) for one in (raw, published)]
    assert sums[1] == pytest.approx(sums[0], abs=1e-9)
    assert raw.labels.sum() == published.labels.sum()

    monkeypatch.setattr(holders, "ROUNDS", 2)
    first = holders.measure(data_directory, few, (holders.K,), (0,))
    again = holders.measure(data_directory, few, (holders.K,), (0,))
    assert first == again
    assert {training for training, _ in first.scores} == set(holders.TRAININGS)
    assert all(0 <= score.area <= 1 for (score,) in first.scores.values())
    assert len(list(requirements(first, first))) == 5
    assert "always the most frequent class" in next(
        block for block in blocks(first, first) if block.startswith("| training")
    )
