"""Train learners of Spark ML, and predict (:meth:`anonspark.engine.protocol.Engine.learn`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.ml import Transformer
from pyspark.ml.classification import (
    GBTClassifier,
    LogisticRegression,
    RandomForestClassifier,
)
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.spark.java_objects import java_class
from anonspark.engine.spark.settings import is_of_connect

# Spark's defaults.
LOGISTIC_ITERATIONS = 100
FOREST_TREES = 20
BOOSTED_TREES = 20
DEPTH = 5

SEED = 0

_VECTOR = "features as a vector"

# Partitions of the training data: by their records alone, as results depend on the partitions.
_PARTITIONS = 4
_RECORDS_OF_A_PARTITION = 100_000


@dataclass(frozen=True)
class SparkModel:
    """A trained learner of Spark ML, as :class:`anonspark.engine.protocol.Model`.

    ``fitted`` is None if all examples are of one class, ``only``: Spark's regression, given the
    number of classes, would predict the other one.
    """

    fitted: Any
    only: float
    classes: int


def train(examples: DataFrame, classes: int, records: int) -> dict[str, SparkModel]:
    """Train each learner. See :meth:`anonspark.engine.protocol.Engine.learn`.

    Spark's boosted trees have two classes. Seeds are fixed, but parallel sums may differ in the
    last digits from run to run. About 100 passes over the training data for the regression, one for
    each level of the forest and of each boosted tree, all in memory if the data fit.
    """
    # The number of classes, even if the training data lack one.
    metadata = {
        "ml_attr": {"type": "nominal", "name": "label", "vals": list(map(str, range(classes)))}
    }
    session: Any = examples.sparkSession
    if is_of_connect(session):
        # Models of Spark Connect use the session of their thread.
        session._set_default_and_active_session(session)
    label = sf.col("label").alias("label", metadata=metadata)
    vectors = examples.select(array_to_vector(sf.col("features")).alias("features"), "label")
    training = _in_order(vectors, records).select("features", label)
    # In memory, or on the workers' disks: learners read the data often.
    training.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        (low, high) = training.agg(sf.min("label"), sf.max("label")).collect()[0]
        if low is None:
            return {}
        return {
            name: SparkModel(None if low == high else _fit(learner, training), low, classes)
            for name, learner in _learners(classes)
        }
    finally:
        training.unpersist()


def predict(test: DataFrame, models: Mapping[str, Any]) -> DataFrame:
    """Add the predictions of models. See :meth:`anonspark.engine.protocol.Engine.predict`."""
    frame = test.withColumn(_VECTOR, array_to_vector(sf.col("features")))
    columns = [sf.col(f"`{name}`") for name in test.columns]
    for name, model in models.items():
        probability = f"{name} probability"
        if model.fitted is None:
            predicted = sf.lit(model.only)
            likelihood = sf.lit(model.only if model.classes == 2 else 0.0)
        else:
            fitted = model.fitted.copy()
            fitted.setFeaturesCol(_VECTOR).setPredictionCol(name)
            fitted.setRawPredictionCol(f"{name} raw").setProbabilityCol(probability)
            frame = fitted.transform(frame)
            predicted = sf.col(f"`{name}`")
            likelihood = sf.lit(0.0)
            if model.classes == 2:
                likelihood = vector_to_array(sf.col(f"`{probability}`"))[1]
        columns += [predicted.alias(name), likelihood.alias(probability)]
    return frame.select(*columns)


def _in_order(examples: DataFrame, records: int) -> DataFrame:
    """Partition and sort examples by their content alone. One shuffle.

    Spark's trees draw records by partition and position.
    """
    parts = max(_PARTITIONS, math.ceil(records / _RECORDS_OF_A_PARTITION))
    key = sf.xxhash64("features", "label")
    return examples.repartition(parts, key).sortWithinPartitions(key)


_Learner = LogisticRegression | RandomForestClassifier | GBTClassifier


def _learners(classes: int) -> Iterator[tuple[str, _Learner]]:
    """Yield learners for a number of classes by their names."""
    yield "logistic regression", LogisticRegression(maxIter=LOGISTIC_ITERATIONS)
    yield (
        "random forest",
        RandomForestClassifier(numTrees=FOREST_TREES, maxDepth=DEPTH, seed=SEED),
    )
    if classes == 2:
        yield (
            "gradient-boosted trees",
            GBTClassifier(maxIter=BOOSTED_TREES, maxDepth=DEPTH, seed=SEED),
        )


def _fit(learner: _Learner, examples: DataFrame) -> Transformer:
    """Train a learner, and drop the summary of the training, with which models cannot travel.

    It holds the session, which cannot be serialized once it has had an Observation. Spark's Python
    interface has no way to drop it.
    """
    model: Any = learner.fit(examples)
    if not is_of_connect(examples.sparkSession) and getattr(model, "hasSummary", False):
        option = java_class(examples.sparkSession, "scala.Option")
        model._java_obj.setSummary(option.empty())
    fitted: Transformer = model
    return fitted
