"""Learners of scikit-learn (:meth:`anonspark.engine.protocol.Engine.learn`).

They are of the kinds that Spark ML has, with its sizes; their results are their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anonspark.engine.protocol import Skill

LOGISTIC_ITERATIONS = 100
FOREST_TREES = 20
BOOSTED_TREES = 20
DEPTH = 5

SEED = 0

_Features = npt.NDArray[np.float64]


def train_and_test(examples: pa.Table, test: pa.Table, classes: int) -> dict[str, Skill]:
    """Train each learner and score it.

    Parameters
    ----------
    examples, test : pyarrow.Table
        ``features`` and ``label``; see :meth:`anonspark.engine.protocol.Engine.learn`.
    classes : int

    Returns
    -------
    dict of str to Skill
        Empty without examples.
    """
    if not len(examples):
        return {}
    features, labels = _in_order(*_arrays(examples))
    wanted, truth = _arrays(test)
    skills = {}
    for name, learner in _learners(classes):
        if len(np.unique(labels)) < 2:
            predicted = np.full(len(truth), labels[0])
            shares = np.full(len(truth), labels[0])
        else:
            with warnings.catch_warnings():
                # A regression counts as it is after its iterations, as Spark's does.
                warnings.simplefilter("ignore", ConvergenceWarning)
                learner.fit(features, labels)
            predicted = learner.predict(wanted)
            shares = learner.predict_proba(wanted)[:, -1]
        skills[name] = _skill(truth, predicted, shares, classes)
    return skills


def _arrays(examples: pa.Table) -> tuple[_Features, _Features]:
    labels = examples.column("label").to_numpy()
    lists = examples.column("features").combine_chunks()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(labels), -1).astype(np.float64), labels


def _in_order(features: _Features, labels: _Features) -> tuple[_Features, _Features]:
    """Return examples in an order that depends on their content alone: forests draw by place."""
    order = np.lexsort([labels, *features.T[::-1]])
    return features[order], labels[order]


def _learners(classes: int) -> Iterator[tuple[str, Any]]:
    regression = LogisticRegression(max_iter=LOGISTIC_ITERATIONS, C=np.inf)
    yield "logistic regression", make_pipeline(StandardScaler(), regression)
    forest = RandomForestClassifier(FOREST_TREES, max_depth=DEPTH, random_state=SEED)
    yield "random forest", forest
    if classes == 2:
        yield (
            "gradient-boosted trees",
            GradientBoostingClassifier(
                n_estimators=BOOSTED_TREES, max_depth=DEPTH, random_state=SEED
            ),
        )


def _skill(truth: _Features, predicted: _Features, shares: _Features, classes: int) -> Skill:
    accuracy = float(accuracy_score(truth, predicted))
    if classes > 2:
        return Skill(
            accuracy, float(f1_score(truth, predicted, average="weighted", zero_division=0)), None
        )
    f1 = float(f1_score(truth, predicted, pos_label=1.0, zero_division=0))
    # Without both classes there is no curve: Spark says 0.
    area = float(roc_auc_score(truth, shares)) if len(np.unique(truth)) == 2 else 0.0
    return Skill(accuracy, f1, area)
