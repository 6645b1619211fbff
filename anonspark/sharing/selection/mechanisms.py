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
    """Return what one record may lose, so that all of a person's lose epsilon (group privacy)."""
    steps = 2 if neighbors == "replace" else 1
    return epsilon / (steps * records)


def width_of(score: Score, records_at_most: int | None) -> int:
    """Return the width of the interval in which one record changes all scores.

    Parameters
    ----------
    score : {"gini", "information_gain", "chi_square"}
        ``chi_square`` of two classes has the order of ``gini``.
    records_at_most : int or None
        Of the table, as far as ``information_gain`` counts them in full. For that score only.
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
    """Choose attributes, the best ones most likely.

    Parameters
    ----------
    tables : sequence of int64 ndarray
        Exact counts. Scores of them are never published.
    count : int
        How many.
    epsilon : Fraction
        Loss of a record over all choices.
    score : {"gini", "information_gain", "chi_square"}
    below : callable
        Source of chance.
    records_at_most : int or None

    Returns
    -------
    list of int
        Places, in the order of choice.
    """
    of_information = score == "information_gain"
    scores = [
        information_score(table, records_at_most) if of_information else gini_score(table)
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

    Parameters
    ----------
    counts : int64 ndarray of shape (rows,)
        Exact numbers of records in the rows of a public grid.
    quantiles : int
        Bins at most. There are fewer if a part of the grid has no row left to cut at.
    epsilon : Fraction
        Loss of a record over all cuts.
    below : callable
        Source of chance.

    Notes
    -----
    The middle quantile is drawn first, then those of both sides (Kaplan, Schnapp and Stemmer 2022).
    A record is on one side of each cut, so it loses only once per level, not once per cut.
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
    """Return the scale of the noise of so many tables: each record is in a cell of every one."""
    return tables / epsilon


def with_noise(tables: Sequence[Integers], scale: Fraction, below: Below) -> list[Integers]:
    """Return tables with independent noise in every cell, empty ones, too."""
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
    """An attribute, ranked by a noisy table.

    Parameters
    ----------
    place : int
    score : float
    """

    index: int
    score: float


def rank(noisy: Sequence[Integers], scale: Fraction, score: Score) -> list[Ranked]:
    """Return the attributes by the scores of their noisy tables, the best first."""
    measure = (
        chi_square if score == "chi_square" else _gini if score == "gini" else information_gain
    )
    scores = [float(measure(cleaned(table, float(scale)))) for table in noisy]
    order = sorted(range(len(noisy)), key=lambda index: (-scores[index], index))
    return [Ranked(index, scores[index]) for index in order]


def _gini(counts: Integers) -> float:
    return float(gini_score(counts))
