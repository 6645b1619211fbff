"""Naive Bayes with normal numbers and multinomial categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.naive_bayes import CategoricalNB, GaussianNB


class MixedNaiveBayes:
    """A normal distribution of each number, and the counts of each category, in each class.

    Parameters
    ----------
    is_number : bool ndarray of shape (attributes,)
    categories : int64 ndarray of shape (attributes,)
        Values of each category. Each value is counted once more than it occurs.
    """

    def __init__(self, is_number: npt.NDArray[np.bool_], categories: npt.NDArray[np.int64]) -> None:
        # The default adds a billionth of the largest variance to all: by fnlwgt's, more than
        # education-num has.
        normal, counted = (
            GaussianNB(var_smoothing=0),
            CategoricalNB(min_categories=categories[~is_number]),
        )
        pairs = ((normal, is_number), (counted, ~is_number))
        self._parts = [(model, columns) for model, columns in pairs if columns.any()]

    def fit(self, values: Any, labels: Any) -> MixedNaiveBayes:
        """Learn from records."""
        for model, columns in self._parts:
            model.fit(values[:, columns], labels)
        self._classes, counts = np.unique(labels, return_counts=True)
        self._prior = np.log(counts / len(labels))
        return self

    def predict(self, values: Any) -> Any:
        """Return the most probable class of each record."""
        chances = [
            model.predict_joint_log_proba(values[:, columns]) for model, columns in self._parts
        ]
        # Each part has the prior of the classes in it.
        return self._classes[(sum(chances) - (len(chances) - 1) * self._prior).argmax(axis=1)]
