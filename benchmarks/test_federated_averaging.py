"""The network and the averaging behind benchmarks/quality/silos.py."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from quality.averaging import train_alone, train_together, weighted_mean
from quality.network import Descent, Examples, Parameters, gradient, probabilities, start

HOLDERS = (
    Examples(np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 0, 1])),
    Examples(np.array([[2.0, 0]]), np.array([1.0])),
)
POOLED = Examples(
    np.concatenate([one.features for one in HOLDERS]),
    np.concatenate([one.labels for one in HOLDERS]),
)
FULL_BATCH = Descent(rate=0.1, batch=None)


def from_zero() -> Parameters:
    return [np.zeros((2, 1)), np.zeros(1)]


def drawn(seed: int, records: int, features: int = 5) -> Examples:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(records, features))
    return Examples(values, (values[:, 0] + rng.normal(size=records) > 0).astype(float))


def generators(holders: int) -> list[np.random.Generator]:
    return [np.random.default_rng([7, number]) for number in range(holders)]


@cases(__file__, "rounds", "steps", "weights", "offset")
def test_logistic_regression_of_two_holders(
    rounds: int, steps: int, weights: tuple[float, float], offset: float
) -> None:
    descent = Descent(rate=0.1, batch=None, steps=steps)
    found, found_offset = train_together(from_zero(), HOLDERS, rounds, descent, generators(2))
    assert found[:, 0] == pytest.approx(weights, abs=5e-9)
    assert found_offset[0] == pytest.approx(offset, abs=5e-9)


@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_one_step_of_full_batches_is_central_descent(rounds: int) -> None:
    central = train_alone(from_zero(), POOLED, rounds, FULL_BATCH, generators(1)[0])
    together = train_together(from_zero(), HOLDERS, rounds, FULL_BATCH, generators(2))
    for own, other in zip(central, together, strict=True):
        assert own == pytest.approx(other, abs=1e-14)


def test_one_holder_is_plain_training_to_the_last_bit() -> None:
    examples, begun = drawn(1, 101), start(5, (8, 4), np.random.default_rng(2))
    alone = train_alone(begun, examples, 5, Descent(), generators(1)[0])
    together = train_together(begun, [examples], 5, Descent(), generators(1))
    assert [one.tobytes() for one in alone] == [one.tobytes() for one in together]
    assert any((own != other).any() for own, other in zip(alone, begun, strict=True))


def test_equal_holders_are_a_plain_mean() -> None:
    models = [start(5, (8,), np.random.default_rng(seed)) for seed in range(3)]
    for own, parts in zip(weighted_mean(models, [40] * 3), zip(*models, strict=True), strict=True):
        assert own == pytest.approx(np.mean(parts, axis=0), abs=1e-15)
    one, other, _ = models
    by_records = weighted_mean([one, other], [3, 1])
    assert by_records[0] == pytest.approx(0.75 * one[0] + 0.25 * other[0])


def test_gradient_is_the_slope_of_the_cross_entropy() -> None:
    examples, parameters = drawn(3, 20), start(5, (6, 3), np.random.default_rng(4))

    def entropy() -> float:
        chance = probabilities(parameters, examples.features)
        return -float(np.mean(np.log(np.where(examples.labels == 1, chance, 1 - chance))))

    step = 1e-6
    for own, slopes in zip(parameters, gradient(parameters, examples), strict=True):
        for place in np.ndindex(own.shape):
            given = own[place]
            own[place] = given + step
            above = entropy()
            own[place] = given - step
            below = entropy()
            own[place] = given
            assert slopes[place] == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_training_leaves_its_start_as_it_is() -> None:
    begun = start(5, (8,), np.random.default_rng(5))
    before = [one.copy() for one in begun]
    train_alone(begun, drawn(6, 64), 1, Descent(), generators(1)[0])
    for own, other in zip(begun, before, strict=True):
        assert (own == other).all()
