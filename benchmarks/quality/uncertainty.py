"""The thesis' loss of a release: what its published texts no longer tell of a target.

It is not offered by the package. Many texts over few records look informative, and with local
recoding the width of a value tells of the target: releases of Adult "lose" less than nothing. See
:mod:`anonspark.core.association` for the measure that is offered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anonspark.core.association import entropy, information_gain


def places_of_texts(values: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the place of each text among the different ones, in the order of code points."""
    # NumPy would give each text the room of the longest, which lists thousands of values.
    places = {text: place for place, text in enumerate(sorted(set(values)))}
    return np.array([places[text] for text in values], np.int64)


def contingency(values: Sequence[str], target: Sequence[str]) -> npt.NDArray[np.int64]:
    """Count values (rows) and classes of the target (columns)."""
    rows, columns = places_of_texts(values), places_of_texts(target)
    counts = np.zeros((rows.max() + 1, columns.max() + 1), np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def uncertainty_coefficient(values: Sequence[str], target: Sequence[str]) -> float:
    """Return (H(X) - H(X|Y)) / H(X) of target X and values Y, from 0 to 1; 0 of a constant X."""
    counts = contingency(values, target)
    whole = entropy(counts.sum(axis=0))
    return information_gain(counts) / whole if whole else 0.0


def loss_of(before: Sequence[float], after: Sequence[float]) -> float:
    """Return 1 less the sum of coefficients after by the sum before; below 0 where more is told."""
    return 1 - sum(after) / sum(before)


def entropy_loss(
    original: Sequence[Sequence[str]],
    published: Sequence[Sequence[str]],
    target: Sequence[str],
    published_target: Sequence[str] | None = None,
) -> float:
    """Return the loss of a release, of the columns of its quasi-identifiers alone.

    Parameters
    ----------
    original, published : sequence of sequence of str
        Columns.
    target : sequence of str
        In the order of the original's records.
    published_target : sequence of str, optional
        In that of the release, if it is another.
    """
    own = target if published_target is None else published_target
    return loss_of(
        [uncertainty_coefficient(column, target) for column in original],
        [uncertainty_coefficient(column, own) for column in published],
    )
