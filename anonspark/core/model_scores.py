"""Score how well models predict, and how much better one is than another, from counts.

A test record has a class, and each model predicts a class and the probability of class 1.
Probabilities are rounded down to multiples of 0.0001, their *steps*. All sums are of whole numbers,
so that neither the order of records nor how they are divided among tasks changes a digit.

Sources
-------
Q. McNemar: Note on the sampling error of the difference between correlated proportions or
percentages. Psychometrika 1947.
E. DeLong, D. DeLong, D. Clarke-Pearson: Comparing the areas under two or more correlated receiver
operating characteristic curves. Biometrics 1988.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from anonspark.core.arrays import Figures, Integers

# Smallest score of each word.
_WORDS = ((99.0, "excellent"), (95.0, "very good"), (85.0, "good"), (70.0, "fair"), (0.0, "poor"))

# Columns that a message names.
_MOST_NAMES = 8


def utility_score(loss: float) -> float:
    """Return a score from 0 (nothing is left) to 100 (every value is exact).

    ``loss`` is the share of its attribute's range, or of the other values of its hierarchy, that a
    published value covers: the mean over all values and records, weighted as configured. Values of
    suppressed records lose 1.

    >>> utility_score(0.25)
    75.0
    """
    # A mean of losses of 1 may be 1 and its last digit.
    return max(0.0, 100.0 * (1.0 - loss))


def utility_word(score: float) -> str:
    """Return the word for a score from 0 to 100.

    >>> [utility_word(score) for score in (99.2, 84.9)]
    ['excellent', 'fair']
    """
    return next(word for least, word in _WORDS if score >= least)


def columns_text(summary: Mapping[str, Any]) -> str:
    """Return how many columns of the input are published, or an empty text if that is unknown.

    >>> columns_text({"columns_published": 3, "columns_in": 8})
    '3 of 8 columns published'
    """
    published, columns = (summary.get(name) for name in ("columns_published", "columns_in"))
    if published is None:
        return ""
    of = "" if columns is None else f" of {columns:,}"
    return f"{published:,}{of} column{'s' * ((columns or published) != 1)} published"


def unpublished_text(columns: Sequence[str]) -> str:
    """Return how many columns are not published, and the names of the first eight.

    >>> unpublished_text(["name", "street"])
    '2 not published: name, street'
    """
    named = ", ".join(columns[:_MOST_NAMES])
    more = f" and {len(columns) - _MOST_NAMES:,} more" if len(columns) > _MOST_NAMES else ""
    return f"{len(columns):,} not published: {named}{more}"


def describe_utility(summary: Mapping[str, Any]) -> str:
    """Describe the utility score of a release in words.

    Uses of the row ``summary``: ``utility_score``, ``rows_suppressed``, ``rows_published``,
    ``rows_left_out``, ``columns_in``, ``columns_published`` and ``k``.
    """
    if summary["utility_score"] is None:
        return "not shown, because the bounds of means would follow from it"
    score = float(summary["utility_score"])
    # A release that protects no one gets no praise.
    word = "not judged" if summary["k"] == 1 else utility_word(score)
    lost = ""
    if summary["rows_suppressed"] is None:
        lost = f", and fewer than {summary['k']:,} records were left out"
    elif summary["rows_suppressed"]:
        lost = f", and {_suppressed_share(summary):.2%} of the records are lost altogether"
    columns = columns_text(summary)
    return (
        f"{word} ({score:.1f} of 100 for the detail kept in the published columns"
        f"{f', {columns}' if columns else ''}): published values span "
        f"{mean_span(summary):.2%} of their column's range on average{lost}"
    )


def mean_span(summary: Mapping[str, Any]) -> float:
    """Return the share of its column's range that a published value spans on average.

    Values of suppressed records count as the whole range in the score, but not here.

    >>> mean_span({"utility_score": 75.0, "rows_published": 90, "rows_suppressed": 0})
    0.25
    """
    loss, suppressed = (100.0 - float(summary["utility_score"])) / 100.0, _suppressed_share(summary)
    return max(0.0, (loss - suppressed) / (1.0 - suppressed)) if suppressed < 1 else 1.0


def _suppressed_share(summary: Mapping[str, Any]) -> float:
    """Return the share of the records that are suppressed."""
    published, left_out, suppressed = (
        int(summary.get(f"rows_{name}") or 0) for name in ("published", "left_out", "suppressed")
    )
    return suppressed / max(published + left_out, 1)


Verdict = Literal["loses", "gains", "no difference shown"]

STEPS = 10_000
"""Steps of the probability between 0 and 1."""

_Z = 1.96

# Products of placements have up to 62 bits; their halves can be summed over 2**31 records.
_HALF = 31


@dataclass(frozen=True)
class Difference:
    """The difference of two models' scores on the same records, positive if the second is better.

    ``standard_error`` and all that follows from it are None if a class has one record only. ``low``
    and ``high`` lie 1.96 standard errors around the difference, and ``verdict`` says what the
    interval shows of the second model.
    """

    difference: float
    standard_error: float | None
    low: float | None
    high: float | None
    verdict: Verdict | None


def steps_of(probabilities: Figures) -> Integers:
    """Return the steps of probabilities, which are in [0, 1].

    >>> steps_of(np.array([0.0, 0.12345, 1.0])).tolist()
    [0, 1234, 10000]
    """
    return np.floor(probabilities * STEPS).astype(np.int64).clip(0, STEPS)


def accuracy(confusion: Integers) -> float:
    """Return the share of records whose class is predicted.

    ``confusion`` (int64, shape (c, c)) counts at least one record, by class and by predicted class.

    >>> accuracy(np.array([[8, 2], [1, 9]]))
    0.85
    """
    return int(np.trace(confusion)) / int(confusion.sum())


def precisions(confusion: Integers) -> Figures:
    """Return the share of each predicted class that is predicted rightly. See :func:`accuracy`.

    >>> precisions(np.array([[8, 2], [2, 8]])).tolist()
    [0.8, 0.8]
    """
    shares: Figures = np.diag(confusion) / np.maximum(confusion.sum(axis=0), 1)
    return shares


def recalls(confusion: Integers) -> Figures:
    """Return the share of each class that is predicted as it. See :func:`accuracy`.

    >>> recalls(np.array([[9, 1], [2, 8]])).tolist()
    [0.9, 0.8]
    """
    return precisions(confusion.T)


def f1_scores(confusion: Integers) -> Figures:
    """Return the F1 of each class, 0 if it neither occurs nor is predicted. See :func:`accuracy`.

    >>> f1_scores(np.array([[8, 2], [2, 8]])).tolist()
    [0.8, 0.8]
    """
    both = confusion.sum(axis=0) + confusion.sum(axis=1)
    scores: Figures = 2 * np.diag(confusion) / np.maximum(both, 1)
    return scores


def macro_f1(confusion: Integers) -> float:
    """Return the mean F1 of the classes that occur or are predicted. See :func:`accuracy`.

    >>> macro_f1(np.array([[8, 2, 0], [2, 8, 0], [0, 0, 0]]))
    0.8
    """
    occurs = confusion.sum(axis=0) + confusion.sum(axis=1) > 0
    return math.fsum(f1_scores(confusion)[occurs].tolist()) / int(occurs.sum())


def weighted_mean(scores: Figures, confusion: Integers) -> float:
    """Return the mean of the scores of classes, weighted by their records.

    >>> weighted_mean(np.array([1.0, 0.5]), np.array([[30, 0], [5, 5]]))
    0.875
    """
    weighted = scores * confusion.sum(axis=1)
    return math.fsum(weighted.tolist()) / int(confusion.sum())


def placements(steps: Integers) -> Integers:
    """Return for each class and step twice the records of the other class that are placed rightly.

    Rightly means: records of class 1 at a higher step than a record of class 0, and records of
    class 0 at a lower step than one of class 1. Records at the same step count half. ``steps``
    (int64, shape (2, STEPS + 1)) counts records by class and step; fewer steps work, too.

    >>> placements(np.array([[2, 1, 0], [0, 1, 3]])).tolist()
    [[8, 7, 3], [2, 5, 6]]
    """
    up_to = np.cumsum(steps, axis=1)
    above = 2 * (up_to[1, -1] - up_to[1]) + steps[1]
    below = 2 * up_to[0] - steps[0]
    return np.stack([above, below])


def area_under_curve(steps: Integers) -> float | None:
    """Return the area under the ROC curve, or None if one of the classes has no record.

    It is the share of pairs of records of both classes in the right order; ties count half.

    >>> area_under_curve(np.array([[2, 1, 0], [0, 1, 3]]))
    0.9583333333333334
    """
    area = _area(steps)
    return None if area is None else float(area)


def split_products(first: Integers, second: Integers) -> tuple[int, int]:
    """Return the sum of products of placements as two sums that fit 64 bits for 2**31 records.

    The arrays hold the placements of the same records by two models, below 2**31.

    >>> joined_products(*split_products(np.array([2**30, 3]), np.array([2**30, 5]))) == 2**60 + 15
    True
    """
    products = first * second
    return int((products >> _HALF).sum()), int((products & ((1 << _HALF) - 1)).sum())


def joined_products(high: int, low: int) -> int:
    """Join the two sums of :func:`split_products`, after each part was added up."""
    return (high << _HALF) + low


def area_covariance(first: Integers, second: Integers, products: Sequence[int]) -> Fraction | None:
    """Return the covariance of the areas under the curves of two models by DeLong's formula.

    ``first`` and ``second`` count the same records by class and step. ``products`` holds for each
    class the sum over its records of the product of their :func:`placements`. Returns None if a
    class has fewer than two records.
    """
    negatives, positives = (int(number) for number in first.sum(axis=1))
    if min(negatives, positives) < 2:
        return None
    # The mean placement of either class is the area.
    total = _doubled_pairs(first) * _doubled_pairs(second)
    of_records = [
        (Fraction(product) - Fraction(total, size)) / ((size - 1) * size * (2 * others) ** 2)
        for product, size, others in zip(
            products, (negatives, positives), (positives, negatives), strict=True
        )
    ]
    return sum(of_records, Fraction(0))


def area_variance(steps: Integers) -> Fraction | None:
    """Return the variance of the area under a curve. See :func:`area_covariance`."""
    squares = []
    for counts, doubled in zip(steps, placements(steps), strict=True):
        present = np.flatnonzero(counts)
        pairs = zip(counts[present].tolist(), doubled[present].tolist(), strict=True)
        squares.append(sum(count * placement**2 for count, placement in pairs))
    return area_covariance(steps, steps, squares)


def area_difference(
    first: Integers, second: Integers, products: Sequence[int]
) -> Difference | None:
    """Return how much larger the second area is, or None if one of the classes has no record.

    See :func:`area_covariance`.
    """
    before, after = _area(first), _area(second)
    if before is None or after is None:
        return None
    covariance = area_covariance(first, second, products)
    variances = (area_variance(first), area_variance(second))
    error = None
    if covariance is not None and variances[0] is not None and variances[1] is not None:
        error = math.sqrt(variances[0] + variances[1] - 2 * covariance)
    return _difference(float(after - before), error)


def accuracy_difference(records: int, only_first: int, only_second: int) -> Difference:
    """Return how much more often the second model is right (McNemar's test).

    ``only_first`` and ``only_second`` count the test records whose class one model alone predicts.

    >>> accuracy_difference(1000, only_first=20, only_second=60).verdict
    'gains'
    """
    change = only_second - only_first
    spread = Fraction(only_first + only_second) - Fraction(change**2, records)
    return _difference(change / records, math.sqrt(spread) / records)


def _difference(difference: float, error: float | None) -> Difference:
    """Put the interval around a difference, and read the verdict from it."""
    if error is None:
        return Difference(difference, None, None, None, None)
    low, high = difference - _Z * error, difference + _Z * error
    verdict: Verdict = "no difference shown"
    if high < 0:
        verdict = "loses"
    elif low > 0:
        verdict = "gains"
    return Difference(difference, error, low, high, verdict)


def _doubled_pairs(steps: Integers) -> int:
    """Return twice the number of pairs of both classes that are in the right order."""
    present = np.flatnonzero(steps[1])
    # In Python's integers: pairs outgrow 64 bits.
    pairs = zip(steps[1, present].tolist(), placements(steps)[1, present].tolist(), strict=True)
    return sum(count * placement for count, placement in pairs)


def _area(steps: Integers) -> Fraction | None:
    """Return the area under the ROC curve as a fraction, or None if a class has no record."""
    negatives, positives = (int(number) for number in steps.sum(axis=1))
    if not negatives or not positives:
        return None
    return Fraction(_doubled_pairs(steps), 2 * negatives * positives)
