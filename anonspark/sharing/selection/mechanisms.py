"""The two mechanisms: choosing the best attributes, and publishing noisy tables.

Each is private for one record more or less. :func:`loss_of_a_record` turns what is asked for into
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Literal

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.core.association import (
    WIDTH_OF_GINI,
    chi_square,
    cleaned,
    gini_score,
    information_gain,
    information_score,
    width_of_information,
)
from anonspark.core.exact_noise import Below, discrete_laplace, permute_and_flip

Score = Literal["gini", "information_gain", "chi_square"]
Neighbors = Literal["add_remove", "replace"]


def loss_of_a_record(epsilon: Fraction, neighbors: Neighbors, records: int = 1) -> Fraction:
    """Return what one record may lose, so that all of a person's lose epsilon (group privacy).

    >>> loss_of_a_record(Fraction(1), "replace", records=5)
    Fraction(1, 10)
    """
    steps = 2 if neighbors == "replace" else 1
    return epsilon / (steps * records)


def width_of(score: Score, records_at_most: int | None) -> int:
    """Return the width of the interval in which one record changes all scores.

    ``chi_square`` of two classes has the order of ``gini``. ``records_at_most`` are those of the
    table, as far as ``information_gain`` counts them in full: only that score needs it.

    >>> width_of("gini", None) == WIDTH_OF_GINI
    True
    """
    if score != "information_gain":
        return WIDTH_OF_GINI
    if records_at_most is None:
        raise ValueError("information gain without a bound on the records")
    return width_of_information(records_at_most)


def choose(
    tables: Sequence[Integers],
    count: int,
    epsilon: Fraction,
    score: Score,
    below: Below,
    records_at_most: int | None = None,
) -> list[int]:
    """Choose ``count`` attributes by permute-and-flip, and return their indices as chosen.

    The best ones are the likeliest. ``tables`` are exact counts, so no score is published.
    ``epsilon`` is the loss of a record over all choices, and ``below(n)`` draws from 0 to n - 1.

    >>> import random
    >>> tables = [np.array([[900, 0], [0, 900]]), np.array([[5, 4], [4, 5]])]
    >>> choose(tables, 1, Fraction(1), "gini", below=random.Random(1).randrange)
    [0]
    """
    by_information = score == "information_gain"
    scores = [
        information_score(table, records_at_most) if by_information else gini_score(table)
        for table in tables
    ]
    rate = epsilon / count / width_of(score, records_at_most)
    remaining, chosen = list(range(len(tables))), []
    for _ in range(count):
        pick = permute_and_flip(
            [scores[index] for index in remaining], rate.numerator, rate.denominator, below
        )
        chosen.append(remaining.pop(pick))
    return chosen


def draw_cuts(counts: Integers, quantiles: int, epsilon: Fraction, below: Below) -> list[int]:
    """Draw the rows at which bins of about equally many records begin, ascending.

    ``counts`` are exact numbers of records in the rows of a public grid, int64 of shape (rows,).
    ``quantiles`` is the largest number of bins: there are fewer if a part of the grid has no row
    left to cut at. ``epsilon`` is the loss of a record over all cuts, and ``below(n)`` draws from 0
    to n - 1. The middle quantile is drawn first, then those of both sides (Kaplan, Schnapp and
    Stemmer 2022). A record is on one side of each cut, so it loses once per level, not once per
    cut.

    >>> import random
    >>> counts = np.array([500, 500, 500, 500])
    >>> draw_cuts(counts, 2, Fraction(1), below=random.Random(1).randrange)
    [2]
    """
    levels = (quantiles - 1).bit_length()

    def cut(start: int, stop: int, bins: int) -> list[int]:
        if bins == 1 or stop - start == 1:
            return []
        left = bins // 2
        right = bins - left
        *records_before, records = accumulate(counts[start:stop].tolist())
        scores = [-abs(right * before - left * (records - before)) for before in records_before]
        # One record more changes a score by at most `right`, up or down.
        rate = epsilon / levels / (2 * right)
        middle = start + 1 + permute_and_flip(scores, rate.numerator, rate.denominator, below)
        return [*cut(start, middle, left), middle, *cut(middle, stop, right)]

    return cut(0, len(counts), quantiles)


def scale_of(tables: int, epsilon: Fraction) -> Fraction:
    """Return the scale of the noise of so many tables: each record is in a cell of every one.

    >>> scale_of(3, Fraction(1, 2))
    Fraction(6, 1)
    """
    return tables / epsilon


def with_noise(tables: Sequence[Integers], scale: Fraction, below: Below) -> list[Integers]:
    """Add independent noise to every cell of some tables, also to empty ones."""
    return [
        np.array(
            [
                [cell + discrete_laplace(scale.numerator, scale.denominator, below) for cell in row]
                for row in table.tolist()
            ],
            np.int64,
        )
        for table in tables
    ]


@dataclass(frozen=True)
class Ranked:
    """The index of an attribute, and its score by a noisy table."""

    index: int
    score: float


def rank(noisy: Sequence[Integers], scale: Fraction, score: Score) -> list[Ranked]:
    """Return the attributes by the scores of their noisy tables, the best first.

    >>> tables = [np.array([[5, 4], [4, 5]]), np.array([[90, 0], [0, 90]])]
    >>> [ranked.index for ranked in rank(tables, Fraction(1), "gini")]
    [1, 0]
    """
    measures = {"chi_square": chi_square, "gini": gini_score}
    measure = measures.get(score, information_gain)
    scores = [float(measure(cleaned(table, float(scale)))) for table in noisy]
    order = sorted(range(len(noisy)), key=lambda index: (-scores[index], index))
    return [Ranked(index, scores[index]) for index in order]
