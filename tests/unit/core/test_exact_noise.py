"""Exact draws: their laws by counting, and the exact privacy of a choice by enumeration."""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from anonspark.core.association import (
    WIDTH_OF_GINI,
    chi_square,
    cleaned,
    entropy,
    gini_score,
    information_gain,
    information_score,
    width_of_information,
)
from anonspark.core.exact_noise import (
    Below,
    bernoulli,
    bernoulli_exp,
    discrete_laplace,
    permute_and_flip,
)
from anonspark.sharing.selection.selecting import select


def seeded(seed: int) -> Below:
    return random.Random(seed).randrange  # noqa: S311 - a test that can be repeated


def test_discrete_laplace_has_its_law() -> None:
    below = seeded(1)
    found = np.array([discrete_laplace(56, 1, below) for _ in range(100_000)])
    p = math.exp(-1 / 56)

    def up_to(y: int) -> float:
        """Return the probability of at most y, for y below 0, and by symmetry above."""
        return p ** (-y) / (1 + p) if y < 0 else 1 - p ** (y + 1) / (1 + p)

    edges = list(range(-251, 255, 5))
    shares = np.diff([0.0, *(up_to(edge) for edge in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, found), minlength=len(shares))
    assert stats.chisquare(counts, shares * len(found)).pvalue > 0.001
    assert np.abs(found).mean() == pytest.approx(55.997, rel=0.015)
    assert found.std() == pytest.approx(79.195, rel=0.015)


def within(found: float, expected: float, draws: int) -> bool:
    return abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / draws) + 1e-12


def test_a_scale_that_is_a_fraction() -> None:
    below = seeded(2)
    zero = sum(discrete_laplace(10, 3, below) == 0 for _ in range(50_000)) / 50_000
    assert within(zero, (1 - math.exp(-0.3)) / (1 + math.exp(-0.3)), 50_000)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 3), (1, 1), (7, 2)])
def test_bernoulli_exp(a: int, b: int) -> None:
    below = seeded(3)
    found = sum(bernoulli_exp(a, b, below) for _ in range(50_000)) / 50_000
    assert within(found, math.exp(-a / b), 50_000)
    assert a or found == 1


def law_of_choice(scores: tuple[int, ...], rate: float) -> list[float]:
    """Return the law of permute-and-flip, by enumeration of all orders."""
    best = max(scores)
    accept = [math.exp(-(best - one) * rate) for one in scores]
    chosen = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            chosen[place] += left * accept[place] / len(orders)
            left *= 1 - accept[place]
    return chosen


def test_permute_and_flip_has_its_law() -> None:
    below = seeded(4)
    draws = 100_000
    found = Counter(permute_and_flip([10, 8, 8, 3], 1, 4, below) for _ in range(draws))
    law = law_of_choice((10, 8, 8, 3), 1 / 4)
    assert law == pytest.approx([0.48349, 0.22971, 0.22971, 0.05708], abs=5e-6)
    assert all(within(found[place] / draws, share, draws) for place, share in enumerate(law))


Table = tuple[int, ...]
Score = Callable[[np.ndarray], int]


def largest_ratio(
    score: Score, width: int, candidates: int, most: int, chosen: int, epsilon: float = 1.0
) -> float:
    """Return the largest log ratio of the law of a choice on any two neighbouring tables.

    Records are cells of all candidates, binary ones, and a binary target; tables are all multisets
    of up to ``most`` records, to which any record is added.
    """
    kinds = list(product(range(2), repeat=candidates + 1))
    rate = epsilon / chosen / width

    def scores_of(records: Table) -> tuple[int, ...]:
        found = []
        for place in range(candidates):
            counts = np.zeros((2, 2), np.int64)
            for kind in records:
                counts[kinds[kind][place], kinds[kind][-1]] += 1
            found.append(score(counts))
        return tuple(found)

    laws: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {}

    def law_of(scores: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        if scores not in laws:
            laws[scores] = _law_of_choices(scores, rate, chosen)
        return laws[scores]

    known: dict[Table, tuple[int, ...]] = {}

    def scored(records: Table) -> tuple[int, ...]:
        if records not in known:
            known[records] = scores_of(records)
        return known[records]

    worst = 0.0
    tables: set[Table] = {()}
    for _ in range(most + 1):
        larger: set[Table] = set()
        for records in tables:
            own = law_of(scored(records))
            for kind in range(len(kinds)):
                other = tuple(sorted([*records, kind]))
                larger.add(other)
                law = law_of(scored(other))
                worst = max(worst, *(abs(math.log(own[one] / law[one])) for one in own))
        tables = larger
    return worst


def _law_of_choices(
    scores: tuple[int, ...], rate: float, chosen: int
) -> dict[tuple[int, ...], float]:
    found = {(): 1.0}
    for _ in range(chosen):
        longer: dict[tuple[int, ...], float] = {}
        for before, share in found.items():
            left = [one for one in range(len(scores)) if one not in before]
            for place, own in zip(
                left, law_of_choice(tuple(scores[one] for one in left), rate), strict=True
            ):
                longer[(*before, place)] = share * own
        found = longer
    return found


def test_a_choice_is_private() -> None:
    assert largest_ratio(gini_score, WIDTH_OF_GINI, 2, 5, 1) == pytest.approx(0.83398, abs=5e-6)
    width = width_of_information(6)
    assert largest_ratio(information_score, width, 2, 5, 1) == pytest.approx(0.99800, abs=5e-6)
    assert largest_ratio(gini_score, WIDTH_OF_GINI, 3, 2, 2) == pytest.approx(0.53522, abs=5e-6)
    width = width_of_information(3)
    assert largest_ratio(information_score, width, 3, 2, 2) == pytest.approx(0.81794, abs=5e-6)


@pytest.mark.parametrize("bound", [1, 2, 3, 4])
def test_a_choice_is_private_of_more_records_than_is_said(bound: int) -> None:
    width, capped = width_of_information(bound), partial(information_score, records_at_most=bound)
    assert largest_ratio(capped, width, 2, 5, 1) <= 1
    if bound in (2, 3):
        # Were all records scored in full, one of them would be seen.
        assert largest_ratio(information_score, width, 2, 5, 1) > 1


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_more_records_than_is_said(seed: int) -> None:
    """Each row takes the fewest bits over all sets of classes whose records take as many each."""
    draw = np.random.default_rng(seed)
    bound = int(draw.integers(1, 60))
    most = width_of_information(bound)
    each = (most - 2) / 256
    for counts in draw.integers(0, draw.choice([2, 9, 400]), (30, 1, 4)) * draw.integers(0, 2, 4):
        row, bits = counts[0].tolist(), math.inf
        for rare in product((False, True), repeat=4):
            often = [one for one, is_rare in zip(row, rare, strict=True) if one and not is_rare]
            own = sum(one * math.log2(sum(often) / one) for one in often)
            bits = min(bits, own + each * (sum(row) - sum(often)))
        found = information_score(counts, bound)
        # The width is rounded up.
        assert -256 * bits - 1 - sum(row) <= found <= -256 * bits + 1 + sum(row)
        if sum(row) <= bound:
            assert found == information_score(counts)
        for place in range(4):
            more = counts.copy()
            more[0, place] += 1
            assert -most <= information_score(more, bound) - found <= 1


def test_a_wide_bound_changes_no_choice_and_a_narrow_one_few() -> None:
    """Of ten times the records that are said the best attribute stays the best."""
    sharp, dull = np.array([[900, 100], [120, 880]]), np.array([[700, 300], [400, 600]])
    one_row = np.array([[1020, 980], [0, 0]])
    scores = [
        [information_score(one, bound) for one in (sharp, dull, one_row)]
        for bound in (2000, 200, None)
    ]
    assert scores[0] == scores[1] == scores[2]
    assert scores[0] == sorted(scores[0], reverse=True)


def test_chi_square_itself_would_not_be() -> None:
    def wrong(counts: np.ndarray) -> int:
        return math.floor(256 * chi_square(counts))

    assert largest_ratio(wrong, WIDTH_OF_GINI, 2, 5, 1) == pytest.approx(3.0, abs=0.05)


FIXTURE = np.array([[30, 10], [12, 28], [5, 15]])


def test_scores_of_the_fixture() -> None:
    assert chi_square(FIXTURE) == pytest.approx(21.116018, abs=1e-6)
    assert information_gain(FIXTURE) == pytest.approx(0.158118, abs=1e-6)
    assert gini_score(FIXTURE) == 15_539
    assert [gini_score(row[None]) for row in FIXTURE] == [6400, 5939, 3200]
    assert information_score(FIXTURE) == math.floor(256 * -83.928323)
    squares = sum(Fraction(int((row**2).sum()), int(row.sum())) for row in FIXTURE)
    assert float(squares) == 60.7
    widths = [width_of_information(one + 1) for one in (9, 99, 99_999)]
    assert widths == [math.ceil(256 * h) + 2 for h in (4.689956, 8.079314, 18.052328)]


@pytest.mark.parametrize("seed", range(20))
def test_one_record_changes_all_scores_by_one_interval(seed: int) -> None:
    draw = np.random.default_rng(seed)
    counts = draw.integers(0, draw.choice([1, 3, 50]), (4, 3))
    most = int(counts.sum()) + 1
    of_gini, of_information = [], []
    for row, t in product(range(4), range(3)):
        more = counts.copy()
        more[row, t] += 1
        of_gini.append(gini_score(more) - gini_score(counts))
        of_information.append(information_score(more) - information_score(counts))
    assert -256 <= min(of_gini) <= max(of_gini) <= 256
    assert max(of_information) - min(of_information) <= width_of_information(most)


def test_rows_of_noise_are_one_row() -> None:
    noisy = np.array([[500, 700], [3, -4], [-2, 9], [400, -5]])
    found = cleaned(noisy, 10.0)
    assert found.tolist() == [[500, 700], [400, 0], [1, 5]]


def test_what_is_expected_of_a_table() -> None:
    counts = np.array([[465, 1035], [680, 320]])
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    assert expected.round().astype(int).tolist() == [[687, 813], [458, 542]]
    assert entropy(counts.sum(axis=0)) == pytest.approx(0.994904, abs=5e-7)
    assert entropy(FIXTURE.sum(axis=0)) == pytest.approx(0.997402, abs=5e-7)
    # The worst for chi-square: one record makes all of it.
    assert chi_square(np.array([[99, 0], [0, 1]])) == pytest.approx(100)
    assert chi_square(np.array([[99, 1], [0, 0]])) == 0


def test_chance_comes_from_the_operating_system() -> None:
    for function in (bernoulli, bernoulli_exp, discrete_laplace, permute_and_flip, select):
        assert signature(function).parameters["below"].default is secrets.randbelow
    drawn = [[discrete_laplace(56, 1) for _ in range(50)] for _ in range(2)]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("seed", range(6))
def test_extremes_stay_in_their_interval(seed: int) -> None:
    draw = np.random.default_rng(seed)
    extremes = [
        np.zeros((3, 2), np.int64),
        np.array([[10**6, 0], [0, 0], [0, 5]]),
        np.array([[7, 0], [9, 0], [0, 0]]),
        draw.integers(0, 10**7, (3, 2)) * draw.integers(0, 2, (3, 2)),
    ]
    for counts in extremes:
        changes = []
        for row, t in product(range(3), range(2)):
            more = counts.copy()
            more[row, t] += 1
            assert -256 <= gini_score(more) - gini_score(counts) <= 256
            changes.append(information_score(more) - information_score(counts))
        width = width_of_information(int(counts.sum()) + 1)
        assert -width <= min(changes)
        assert max(changes) <= 1
