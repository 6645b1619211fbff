"""Risk of re-identification, by the definitions of the three attackers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.config.gates import RiskOptions
from anonspark.pipeline.figures import decide_gain
from anonspark.release.risk import (
    attack_with_weights,
    attacks,
    attacks_with_population,
    individual_risk,
    risk_row,
)

CLASSES = st.lists(
    st.integers(1, 9).flatmap(lambda f: st.tuples(st.just(f), st.integers(f, 20))),
    min_size=1,
    max_size=20,
)


@given(classes=CLASSES, threshold=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_with_a_population(classes: list[tuple[int, int]], threshold: float) -> None:
    released, population = zip(*classes, strict=True)
    found = attacks_with_population(
        np.array(released, np.int64), np.array(population, np.int64), threshold
    )
    n = sum(released)
    # Record by record.
    prosecutor = [1 / f for f, _ in classes for _ in range(f)]
    journalist = [1 / among for f, among in classes for _ in range(f)]
    for attack, risks in zip(found, (prosecutor, journalist), strict=False):
        assert attack.highest == max(risks)
        assert attack.lowest == min(risks)
        assert attack.at_risk == pytest.approx(sum(risk > threshold for risk in risks) / n)
        assert attack.at_highest == pytest.approx(risks.count(max(risks)) / n)
        assert attack.at_lowest == pytest.approx(risks.count(min(risks)) / n)
    assert found[0].average == pytest.approx(len(classes) / n)
    marketer = sum(f / among for f, among in classes) / n
    assert found[1].average == pytest.approx(max(len(classes) / sum(population), marketer))
    assert found[2].average == pytest.approx(marketer)
    alone = [(f, among) for f, among in classes if f == 1]
    assert found[0].unique == pytest.approx(len(alone) / n)
    both = sum(among == 1 for _, among in alone)
    assert found[1].unique == pytest.approx(both / len(alone) if alone else 0.0)
    assert [attack.attacker for attack in found] == ["prosecutor", "journalist", "marketer"]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_without_a_population_everybody_is_in_the_release(sizes: list[int]) -> None:
    own = np.array(sizes, np.int64)
    with_population = attacks_with_population(own, own, 0.3)
    for one, other in zip(attacks(Counter(sizes), 0.3), with_population, strict=True):
        assert vars(one) == pytest.approx(vars(other))


def test_rules_compare_with_what_is_acceptable() -> None:
    (prosecutor, _, marketer) = attacks({4: 1, 16: 1}, 0.2)
    row = risk_row(prosecutor, RiskOptions(threshold=0.2, at_risk=0.1, average=0.1, unique=0.0))
    assert row["high_highest"] is True
    assert row["high_at_risk"] is True
    assert row["high_average"] is False
    assert row["high_unique"] is False
    assert row["at_risk"] == 0.2
    assert risk_row(marketer, RiskOptions())["high_highest"] is None
    assert risk_row(marketer, RiskOptions(average=0.05))["high_average"] is True
    lenient = RiskOptions(threshold=0.25, at_risk=0.0, average=0.1)
    (prosecutor, *_) = attacks({4: 1, 16: 1}, lenient.threshold)
    assert risk_row(prosecutor, lenient)["high_highest"] is False
    assert risk_row(prosecutor, lenient)["high_at_risk"] is False


@cases(__file__, "after", "utility", "risk")
def test_rho_gain_succeeds_where_both_rules_hold(
    after: tuple[int, int, int], utility: int, risk: int
) -> None:
    rules = decide_gain((1817, 7549, 5), after)
    assert tuple(rules.values()) == (utility, risk, utility * risk)


@cases(__file__, "records")
def test_individual_risk_is_that_of_sdcmicro(records: list[list[float]]) -> None:
    """The figures are those that sdcMicro and its guide publish: f, F and risk of each record."""
    sizes, population, printed = zip(*records, strict=True)
    found = individual_risk(np.array(sizes, np.int64), np.array(population, np.float64))
    assert found == pytest.approx(printed, rel=5e-7)


def mean_inverse(size: int, population: float) -> float:
    """Add up 1 / F by its negative binomial distribution, given f records of a sample."""
    share = size / population
    probability, total, rest, people = share**size, 0.0, 1.0, size
    while rest > 1e-13:
        total += probability / people
        rest -= probability
        probability *= (1 - share) * people / (people - size + 1)
        people += 1
    return total


@given(size=st.integers(1, 12), times=st.floats(1.01, 60.0))
def test_individual_risk_is_the_mean_of_the_inverse_of_the_population(
    size: int, times: float
) -> None:
    (found,) = individual_risk(np.array([size]), np.array([size * times]))
    expected = mean_inverse(size, size * times)
    if size <= 2:
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        # The approximation overstates the risk a little.
        assert expected <= found * (1 + 1e-9)
        assert found < expected * (1.04 if size == 3 else 1.02)


@given(size=st.integers(1, 9), times=st.sampled_from([1e-9, 0.5, 1.0, 1.0 + 1e-12, 1.0 + 1e-5]))
def test_a_population_is_at_least_its_sample(size: int, times: float) -> None:
    (found,) = individual_risk(np.array([size]), np.array([size * times]))
    assert found == pytest.approx(1 / size, rel=1e-5)
    assert found <= 1 / size


@given(
    classes=st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([1.0, 1.5, 7.25, 300.0])), min_size=1
    )
)
def test_the_outsider_record_by_record(classes: list[tuple[int, float]]) -> None:
    sizes = np.array([size for size, _ in classes], np.int64)
    population = np.array([size * times for size, times in classes])
    found = attack_with_weights(sizes, population, 0.2)
    risk = [float(one) for one in np.repeat(individual_risk(sizes, population), sizes)]
    assert found.attacker == "outsider"
    assert found.expected == pytest.approx(sum(risk))
    assert found.average == pytest.approx(sum(risk) / len(risk))
    assert (found.highest, found.lowest) == pytest.approx((max(risk), min(risk)))
    assert found.at_risk == pytest.approx(sum(one > 0.2 for one in risk) / len(risk), abs=1e-9)
    alone = [1 / times for size, times in classes if size == 1]
    assert found.unique == pytest.approx(sum(alone) / max(len(alone), 1))
