"""Train learners of scikit-learn (:meth:`anonspark.engine.protocol.Engine.learn`).

They have the kinds and sizes of those of Spark ML, but give other results.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anonspark.engine.protocol import Model, Table
from anonspark.engine.tasks import Batches

LOGISTIC_ITERATIONS = 100
FOREST_TREES = 20
BOOSTED_TREES = 20
DEPTH = 5

SEED = 0

_Features = npt.NDArray[np.float64]

# Scikit-learn replaces the process's filters of warnings, which is not safe in threads.
_FILTERS = Lock()


@dataclass(frozen=True)
class LocalModel:
    """A trained learner of scikit-learn, as :class:`anonspark.engine.protocol.Model`.

    It is None if all examples are of one class, ``only``, which is predicted then.
    """

    learner: Any
    only: float
    classes: int

    def predict(self, features: _Features) -> tuple[_Features, _Features]:
        """Return classes and probabilities, float64 (n,), for features (n, m).

        See :meth:`anonspark.engine.protocol.Engine.predict`.
        """
        if self.learner is None or not len(features):
            predicted = np.full(len(features), self.only)
            return predicted, predicted if self.classes == 2 else np.zeros(len(features))
        with _FILTERS:
            predicted = self.learner.predict(features)
            if self.classes > 2:
                return predicted, np.zeros(len(features))
            return predicted, self.learner.predict_proba(features)[:, 1]


def train(examples: pa.Table, classes: int) -> dict[str, LocalModel]:
    """Train each learner. Without examples the result is empty.

    ``examples`` are those of :meth:`anonspark.engine.protocol.Engine.learn`.
    """
    if not len(examples):
        return {}
    lists = examples.column("features").combine_chunks()
    labels = examples.column("label").to_numpy()
    features, labels = _in_order(_matrix(lists), labels)
    models = {}
    for name, learner in _learners(classes):
        trained = None
        if len(np.unique(labels)) > 1:
            with _FILTERS, warnings.catch_warnings():
                # Like Spark's, a regression ends after a number of iterations, without a warning.
                warnings.simplefilter("ignore", ConvergenceWarning)
                trained = learner.fit(features, labels)
        models[name] = LocalModel(trained, float(labels[0]), classes)
    return models


def predict(test: Table, models: Mapping[str, Model]) -> Table:
    """Add the predictions of models. See :meth:`anonspark.engine.protocol.Engine.predict`."""
    schema = test.schema
    for name in models:
        for column in (name, f"{name} probability"):
            schema = schema.append(pa.field(column, pa.float64()))
    # Models of this engine, as its protocol demands.
    trained: Any = dict(models)
    return test.map_batches(_Predict(trained, schema), schema)


@dataclass(frozen=True)
class _Predict:
    """Predicts the classes of a task's records."""

    models: Mapping[str, LocalModel]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            features = _matrix(batch.column("features"))
            columns = list(batch.columns)
            for model in self.models.values():
                columns += map(pa.array, model.predict(features))
            yield pa.record_batch(columns, schema=self.schema)


def _matrix(lists: pa.Array) -> _Features:
    """Return lists of one length as a matrix, float64 (n, m).

    >>> _matrix(pa.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    values: _Features = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
    return values.reshape(len(lists), len(values) // max(1, len(lists)))


def _in_order(features: _Features, labels: _Features) -> tuple[_Features, _Features]:
    """Sort examples by their content: forests draw by position."""
    order = np.lexsort([labels, *features.T[::-1]])
    return features[order], labels[order]


def _learners(classes: int) -> Iterator[tuple[str, Any]]:
    """Yield learners for a number of classes by their names."""
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
