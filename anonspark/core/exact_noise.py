"""Random draws of exact laws, in whole numbers (Canonne, Kamath and Steinke, NeurIPS 2020).

Laplace noise in floating point leaks through its last bits (Mironov 2012). Here every coin is a
comparison of whole numbers, and the caller passes the only source of randomness: ``below(m)``, a
uniform whole number from 0 up to below m. That of the operating system is the only one for real
data.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

Below = Callable[[int], int]
"""Draws a uniform whole number from 0 up to below the one that it is given."""


def bernoulli(a: int, b: int, below: Below = secrets.randbelow) -> bool:
    """Return True with probability a / b."""
    return below(b) < a


def _bernoulli_of_at_most_one(a: int, b: int, below: Below) -> bool:
    """Return True with probability exp(-a / b), for a from 0 to b."""
    j = 1
    while bernoulli(a, b * j, below):
        j += 1
    return j % 2 == 1


def bernoulli_exp(a: int, b: int, below: Below = secrets.randbelow) -> bool:
    """Return True with probability exp(-a / b), for a of at least 0 and b of at least 1.

    >>> bernoulli_exp(0, 1)
    True
    """
    while a > b:
        if not _bernoulli_of_at_most_one(1, 1, below):
            return False
        a -= b
    return _bernoulli_of_at_most_one(a, b, below)


def discrete_laplace(t: int, s: int, below: Below = secrets.randbelow) -> int:
    """Draw a whole number y with probability proportional to exp(-|y| s / t), exactly.

    t / s is the scale of the noise. Both are at least 1.

    >>> from random import Random
    >>> below = Random(7).randrange
    >>> [discrete_laplace(3, 1, below) for _ in range(5)]
    [2, 6, 0, 0, -5]
    """
    while True:
        u = below(t)
        if not _bernoulli_of_at_most_one(u, t, below):
            continue
        v = 0
        while _bernoulli_of_at_most_one(1, 1, below):
            v += 1
        y = (u + t * v) // s
        negative = below(2) == 1
        if negative and y == 0:
            continue
        return -y if negative else y


def permute_and_flip(
    scores: Sequence[int], a: int, b: int, below: Below = secrets.randbelow
) -> int:
    """Draw the position of one of the largest scores (McKenna and Sheldon, NeurIPS 2020).

    Scores are tried in random order. One that is smaller than the best by s is accepted with
    probability exp(-s a / b). There is at least one score, and a and b are at least 1.

    >>> permute_and_flip([0, 90, 3], 1, 1)
    1
    """
    best = max(scores)
    indices = list(range(len(scores)))
    while True:
        # The next of a uniformly random permutation (Fisher and Yates).
        chosen = below(len(indices))
        indices[chosen], indices[-1] = indices[-1], indices[chosen]
        index = indices.pop()
        # The best one is accepted for certain, so that no loop is without end.
        if bernoulli_exp((best - scores[index]) * a, b, below):
            return index
