"""A small network of one sigmoid over layers of ReLU, trained by plain gradient descent in NumPy.

Without hidden layers it is logistic regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Figures = npt.NDArray[np.float64]
Parameters = list[Figures]
"""Weights of shape (inputs, outputs) and offsets of shape (outputs,) of each layer, in turn."""


@dataclass(frozen=True, eq=False)
class Examples:
    """What is learned from.

    Parameters
    ----------
    features : float64 ndarray of shape (records, features)
    labels : float64 ndarray of shape (records,)
        0 or 1.
    """

    features: Figures
    labels: Figures

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, rows: npt.NDArray[np.intp]) -> Examples:
        """Return some of them."""
        return Examples(self.features[rows], self.labels[rows])


@dataclass(frozen=True)
class Descent:
    """How an epoch descends.

    Parameters
    ----------
    rate : float
        Step by the mean gradient of a batch.
    batch : int or None
        Records of a batch, drawn without replacement; None takes all at once, in their order.
    steps : int
        Epochs on end, each of one pass.
    """

    rate: float = 0.01
    batch: int | None = 32
    steps: int = 1


def start(features: int, hidden: Sequence[int], rng: np.random.Generator) -> Parameters:
    """Draw weights as He et al. (2015): normal with variance 2 / inputs; offsets are 0."""
    sizes = [features, *hidden, 1]
    parameters = []
    for inputs, outputs in pairwise(sizes):
        parameters.append(rng.normal(0, np.sqrt(2 / inputs), (inputs, outputs)))
        parameters.append(np.zeros(outputs))
    return parameters


def probabilities(parameters: Parameters, features: Figures) -> Figures:
    """Return the probability of class 1 of each record."""
    return _forward(parameters, features)[-1][:, 0]


def gradient(parameters: Parameters, examples: Examples) -> Parameters:
    """Return the gradient of the mean cross-entropy, in the form of the parameters."""
    values = _forward(parameters, examples.features)
    slopes: Parameters = []
    # Sigmoid and cross-entropy together have this slope.
    slope = (values[-1] - examples.labels[:, None]) / len(examples)
    for layer in range(len(parameters) // 2 - 1, -1, -1):
        slopes += [slope.sum(axis=0), values[layer].T @ slope]
        if layer:
            slope = (slope @ parameters[2 * layer].T) * (values[layer] > 0)
    return slopes[::-1]


def train_epoch(
    parameters: Parameters, examples: Examples, descent: Descent, rng: np.random.Generator
) -> Parameters:
    """Return the parameters after the passes of an epoch; those given stay as they are."""
    parameters = [one.copy() for one in parameters]
    for _ in range(descent.steps):
        if descent.batch is None:
            batches = [np.arange(len(examples))]
        else:
            order = rng.permutation(len(examples))
            batches = np.split(order, range(descent.batch, len(order), descent.batch))
        for batch in batches:
            slopes = gradient(parameters, examples.of(batch))
            for place, slope in enumerate(slopes):
                parameters[place] -= descent.rate * slope
    return parameters


def _forward(parameters: Parameters, features: Figures) -> list[Figures]:
    """Return the input of each layer, and at the end the probabilities."""
    values = [features]
    for layer in range(0, len(parameters), 2):
        sums = values[-1] @ parameters[layer] + parameters[layer + 1]
        if layer + 2 < len(parameters):
            values.append(np.maximum(sums, 0))
        else:
            values.append(1 / (1 + np.exp(-sums)))
    return values
