"""Naive Bayes with normal numbers and multinomial categories, tested by folds."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from quality.csv_tables import Texts

FOLDS = 3


def error_of_folds(table: Texts, target: str, numbers: tuple[str, ...], seed: int = 0) -> float:
    """Return the mean share of records that naive Bayes predicts wrongly, over three folds.

    Parameters
    ----------
    table : Texts
        Complete records.
    target : str
    numbers : tuple of str
        Columns with a normal distribution in each class; all others are categories, each value
        counted once more than it occurs.
    seed : int
        Of the order in which records are dealt to the folds.
    """
    labels = np.asarray(table.column(target))
    measured = np.column_stack([np.asarray(table.column(name), np.float64) for name in numbers])
    coded = np.column_stack(
        [
            np.unique(table.column(name), return_inverse=True)[1]
            for name in table.names
            if name not in numbers and name != target
        ]
    )
    errors = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for known, test in folds.split(coded, labels):
        # The default adds a billionth of the largest variance to all: by fnlwgt's, more than
        # education-num has.
        normal = GaussianNB(var_smoothing=0).fit(measured[known], labels[known])
        counted = CategoricalNB(min_categories=coded.max(axis=0) + 1)
        counted.fit(coded[known], labels[known])
        # Both have the prior of the classes in them.
        chances = (
            normal.predict_joint_log_proba(measured[test])
            + counted.predict_joint_log_proba(coded[test])
            - np.log(normal.class_prior_)
        )
        told = normal.classes_[chances.argmax(axis=1)]
        errors.append(float((told != labels[test]).mean()))
    return float(np.mean(errors))
