"""Measure the association with a target: the share of its uncertainty that a release removes.

For each attribute, by itself: the share of the target's entropy that its values remove, taken from
the original, and from a release. By Gibbs' inequality the second is not above the first, but for
the smoothing. Below 0 it is where the release misleads. The formulas are in docs/algorithms.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anonspark.core.arrays import Figures, Integers

QUANTILES = 20
"""Into so many parts the present values of numbers and times are divided."""

LEAST_ASSOCIATION = 0.001
"""Below this sum over all attributes nothing can be said to be lost."""


def removed_uncertainty(original: Integers, released: Figures, classes: Integers) -> float | None:
    """Return the share of a target's uncertainty that is removed by who believes a table.

    Parameters
    ----------
    original : int64 ndarray of shape (bins, c)
        Records of the original, by value and class.
    released : float64 ndarray of shape (bins, c)
        The same by the table.
    classes : int64 ndarray of shape (c,)
        Records of the table, by class.

    Returns
    -------
    float or None
        At most 1. 0 where the table holds no information. None where the target is constant.
    """
    of_target = original.sum(axis=0)
    uncertainty = entropy(of_target)
    if uncertainty <= 0:
        return None
    records = int(of_target.sum())
    share = (classes + 1) / (classes.sum() + len(classes))
    predicted = (released + share) / (released.sum(axis=1, keepdims=True) + 1)
    some = original > 0
    # Exactly rounded sums: the order of bins decides no digit.
    terms = (original[some] / records) * np.log2(predicted[some])
    return 1 + math.fsum(terms.tolist()) / uncertainty


def entropy(counts: Integers | Figures) -> float:
    """Return the entropy of counts, in bits."""
    shares = counts[counts > 0] / counts.sum()
    return -math.fsum((shares * np.log2(shares)).tolist())


def association_loss(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    """Return what a release loses of the association of all attributes.

    Parameters
    ----------
    before, after : sequence of float or None
        Of each attribute, by the original and by the release.

    Returns
    -------
    float or None
        0 for a release that is its original, about 1 where it holds no information. More where it
        misleads. None where the original holds no information, or the target is constant.
    """
    total = math.fsum(value for value in before if value is not None)
    if total <= LEAST_ASSOCIATION:
        return None
    return 1 - math.fsum(value for value in after if value is not None) / total
