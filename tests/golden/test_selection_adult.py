"""Attributes of Adult, scored for the income: exact tables, and what is chosen under noise."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from quality.adult_counts import adult_counts

from anonspark.core.attribute_scores import chi_square, gini_score, information_gain
from anonspark.engine.local.engine import LocalEngine
from anonspark.selection.counting import count_tables
from anonspark.selection.domains import Domain
from anonspark.selection.mechanisms import (
    Score,
    choose,
    loss_of_a_record,
    rank,
    scale_of,
    with_noise,
)

# Rows, chi-square, information gain, sum of squares by records, score of the choice.
EXACT = {
    "relationship": (6, 6233.8405, 0.16617832, 21214.7787, 5_430_980),
    "marital-status": (7, 6061.7480, 0.15747082, 21150.4298, 5_414_507),
    "education": (16, 4070.3816, 0.09339399, 20405.8178, 5_223_884),
    "education-num": (16, 4070.3816, 0.09339399, 20405.8178, 5_223_884),
    "occupation": (14, 3687.6207, 0.09319446, 20262.6958, 5_187_242),
    "age": (16, 3066.1524, 0.09294828, 20030.3162, 5_127_754),
    "sex": (2, 1416.3568, 0.03740641, 19413.4244, 4_969_835),
    "capital-loss": (10, 686.9037, 0.01409122, 19140.6672, 4_900_007),
    "native-country": (41, 317.7367, 0.00932901, 19002.6282, 4_864_657),
    "fnlwgt": (17, 51.4160, 0.00124848, 18903.0455, 4_839_171),
}
IN_ORDER = [
    *("relationship", "marital-status", "education", "education-num", "capital-gain"),
    *("occupation", "age", "hours-per-week", "sex", "workclass", "capital-loss"),
    *("native-country", "race", "fnlwgt"),
]


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> tuple[list[str], list[np.ndarray]]:
    """Return the names of the candidates and their exact tables."""
    return adult_counts(adult_path)


def test_exact_tables(adult: tuple[list[str], list[np.ndarray]]) -> None:
    tables = dict(zip(*adult, strict=True))
    for name, (rows, chi, gain, squares, score) in EXACT.items():
        counts = tables[name]
        # Those for other and missing values are empty.
        assert counts.shape == (rows + 2, 2)
        assert counts[-2:].sum() == 0
        assert counts.sum(axis=0).tolist() == [22_654, 7_508]
        assert chi_square(counts) == pytest.approx(chi, abs=5e-5)
        assert information_gain(counts) == pytest.approx(gain, abs=5e-9)
        own = sum((row**2).sum() / row.sum() for row in counts if row.sum())
        assert own == pytest.approx(squares, abs=5e-5)
        assert gini_score(counts) == score
    for measure in (chi_square, gini_score):
        scores = {name: float(measure(counts)) for name, counts in tables.items()}
        found = sorted(tables, key=lambda name: (-scores[name], list(tables).index(name)))
        assert found == IN_ORDER
    gains = {name: information_gain(counts) for name, counts in tables.items()}
    by_gain = sorted(tables, key=lambda name: (-gains[name], list(tables).index(name)))
    assert by_gain.index("capital-gain") == by_gain.index("age") + 1


# Mechanism, score and epsilon: mean share of the true best seven, share of runs with exactly these.
WITH_NOISE: dict[tuple[str, Score, str], tuple[float, float]] = {
    ("top", "gini", "0.1"): (0.988, 0.92),
    ("top", "gini", "0.25"): (1.000, 1.00),
    ("top", "information_gain", "0.25"): (0.966, 0.78),
    ("top", "information_gain", "0.5"): (0.998, 0.98),
    ("tables", "chi_square", "0.1"): (0.890, 0.30),
    ("tables", "chi_square", "0.25"): (0.990, 0.93),
    ("tables", "information_gain", "0.1"): (0.887, 0.27),
    ("tables", "information_gain", "0.25"): (0.978, 0.84),
}


@pytest.mark.parametrize(("case", "expected"), WITH_NOISE.items(), ids=str)
def test_choices_with_noise(
    adult: tuple[list[str], list[np.ndarray]],
    case: tuple[str, Score, str],
    expected: tuple[float, float],
) -> None:
    names, tables = adult
    mechanism, score, epsilon = case
    best = set(IN_ORDER[:7])
    below = random.Random(f"{case}").randrange  # noqa: S311 - a test that can be repeated
    loss = loss_of_a_record(Fraction(epsilon), "add_remove")
    shares, runs = [], 300
    for _ in range(runs):
        if mechanism == "top":
            chosen = choose(tables, 7, loss, score, below, records_at_most=100_000)
        else:
            scale = scale_of(len(tables), loss)
            chosen = [one.place for one in rank(with_noise(tables, scale, below), scale, score)[:7]]
        shares.append(len(best & {names[place] for place in chosen}) / 7)
    overlap, exact = expected
    assert np.mean(shares) == pytest.approx(overlap, abs=0.02)
    assert np.mean([one == 1 for one in shares]) == pytest.approx(exact, abs=0.08)


def test_texts_in_bins() -> None:
    domain = Domain.of_edges("age", [20, 30.5])
    texts = pa.array(["10", " 20 ", "30.5", "1e9", "NaN", "", "old", None, "-inf"])
    assert domain.rows_of(texts, ["?"]).tolist() == [0, 1, 2, 2, 4, 4, 3, 4, 0]
    assert domain.labels == ("below 20", "[20, 30.5)", "from 30.5")


def test_a_record_more_changes_one_cell_of_each_table() -> None:
    columns: dict[str, list[Any]] = {
        "age": [20.0, 31, None, float("nan"), 1e9, -5, 20, 99.5],
        "job": ["a", " b ", None, "?", "zzz", "", "a", "b"],
        "ill": ["yes", "no", "yes", "yes", "no", "no", "perhaps", None],
    }
    domains = [
        Domain.of_edges("age", [20, 30]),
        Domain.of_values("job", ["a", "b"]),
        Domain.of_groups("job", {"a": "both", "b": "both"}),
    ]
    target = Domain.of_values("ill", ["no", "yes"])

    def counted(rows: int, *, drop: bool = False) -> list[np.ndarray]:
        table = pa.table({name: values[:rows] for name, values in columns.items()})
        engine = LocalEngine()
        return count_tables(engine.wrap(table), domains, target, ["?"], drop_missing=drop)

    before = counted(0)
    assert [one.shape for one in before] == [(5, 2), (4, 2), (3, 2)]
    for rows in range(1, 9):
        after = counted(rows)
        # The last two have no target of the domain.
        changed = 1 if rows <= 6 else 0
        assert [int(np.abs(b - a).sum()) for a, b in zip(before, after, strict=True)] == [
            changed
        ] * 3
        before = after
    assert before[0].tolist() == [[1, 0], [0, 1], [2, 0], [0, 0], [0, 2]]
    assert before[1].tolist() == [[0, 1], [1, 0], [1, 0], [1, 2]]
    assert counted(8, drop=True)[0].sum() == 3
