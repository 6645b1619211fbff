"""Federated averaging: McMahan, Moore, Ramage, Hampson and Aguera y Arcas (AISTATS 2017).

All holders take part in every round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quality.network import Descent, Examples, Parameters, train_epoch


def weighted_mean(models: Sequence[Parameters], records: Sequence[int]) -> Parameters:
    """Return the mean of models, weighted by the records that each was trained on."""
    # Shares before products: a single holder's model then stays as it is, to the last bit.
    shares = [one / sum(records) for one in records]
    return [
        sum(share * part for share, part in zip(shares, parts, strict=True))
        for parts in zip(*models, strict=True)
    ]


def train_together(
    parameters: Parameters,
    holders: Sequence[Examples],
    rounds: int,
    descent: Descent,
    rngs: Sequence[np.random.Generator],
) -> Parameters:
    """Return the common model after so many rounds, each of one epoch at every holder."""
    for _ in range(rounds):
        models = [
            train_epoch(parameters, own, descent, rng)
            for own, rng in zip(holders, rngs, strict=True)
        ]
        parameters = weighted_mean(models, [len(own) for own in holders])
    return parameters


def train_alone(
    parameters: Parameters,
    examples: Examples,
    epochs: int,
    descent: Descent,
    rng: np.random.Generator,
) -> Parameters:
    """Return a model after so many epochs on one table."""
    for _ in range(epochs):
        parameters = train_epoch(parameters, examples, descent, rng)
    return parameters
