"""Machine learning on a release: models trained on it, tested on originals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.ml import Transformer
from pyspark.ml.classification import (
    GBTClassifier,
    LogisticRegression,
    RandomForestClassifier,
)
from pyspark.ml.evaluation import (
    BinaryClassificationEvaluator,
    MulticlassClassificationEvaluator,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.engine.spark.hidden import small_table
from anonspark.errors import ConfigurationError, DataError
from anonspark.utility.values import value_of

_MOST_CLASSES = 100

# As Spark has them by default.
LOGISTIC_ITERATIONS = 100
FOREST_TREES = 20
BOOSTED_TREES = 20
DEPTH = 5

SEED = 0

LABEL = "anonspark_label"
"""The column with what is to be learned, in tables whose other columns have any names."""

_CLASS = "anonspark_class"

# Of the training data; more for more records, so that the result depends on the records alone.
_PARTITIONS = 4
_RECORDS_OF_A_PARTITION = 100_000


@dataclass(frozen=True)
class Target:
    """What is to be learned.

    Parameters
    ----------
    name : str
        A column that is published as it is.
    classes : tuple of str
        Its different values as texts, the most frequent in the original first.
    missing_markers : tuple of str
        Texts that mean missing.
    """

    name: str
    classes: tuple[str, ...]
    missing_markers: tuple[str, ...]

    def labelled(self, table: DataFrame) -> DataFrame:
        """Return a table with the number of each record's class, from 0, in column `LABEL`.

        Returns
        -------
        DataFrame
            Lazy; no shuffle. The number is a double, null for what is missing or none of them.
        """
        value = _text_of(table, self.name, self.missing_markers)
        numbers = small_table(
            table.sparkSession,
            {_CLASS: self.classes, LABEL: [float(number) for number in range(len(self.classes))]},
            f"{_CLASS} string, {LABEL} double",
        )
        return table.join(numbers, value == sf.col(_CLASS), "left").drop(_CLASS)


@dataclass(frozen=True)
class Score:
    """How well one model predicts.

    Parameters
    ----------
    trained_on : str
        ``release``, ``original`` or ``original_with_test``.
    learner : str
    accuracy : float
    f1 : float
        Of two classes that of the rarer one; of more the mean, weighted by their records.
    roc_auc : float or None
        Area under the curve; None for more than two classes.
    """

    trained_on: str
    learner: str
    accuracy: float
    f1: float
    roc_auc: float | None


def describe_target(original: DataFrame, name: str, missing_markers: Sequence[str]) -> Target:
    """Find the classes of a target in the original.

    Parameters
    ----------
    original : DataFrame
    name : str
        One of its columns.
    missing_markers : sequence of str

    Raises
    ------
    ConfigurationError
        If it is no category of 2 to 100 values.

    Notes
    -----
    One job; the different values are collected.
    """
    value = _text_of(original, name, missing_markers).alias("value")
    found = (
        original.select(value)
        .where("value IS NOT NULL")
        .groupBy("value")
        .agg(sf.count(sf.lit(1)).alias("records"))
        .orderBy(sf.desc("records"), "value")
        .limit(_MOST_CLASSES + 1)
        .collect()
    )
    if not 2 <= len(found) <= _MOST_CLASSES:
        many = f"more than {_MOST_CLASSES}" if len(found) > _MOST_CLASSES else str(len(found))
        raise ConfigurationError(
            f"--target: column {name!r} has {many} different values; expected a category of 2 to "
            f"{_MOST_CLASSES}"
        )
    return Target(name, tuple(row["value"] for row in found), tuple(missing_markers))


def _text_of(table: DataFrame, name: str, missing_markers: Sequence[str]) -> Column:
    found = {field.name: field.dataType for field in table.schema}
    if name not in found:
        raise DataError(
            f"--target: column {name!r} is not among those of the table: "
            f"{', '.join(map(repr, table.columns))}"
        )
    value = value_of(name, found[name], "text", None, missing_markers)
    if value is None:
        raise ConfigurationError(
            f"--target: column {name!r} has type {found[name].simpleString()}; expected a category"
        )
    return value


def in_order(examples: DataFrame, records: int) -> DataFrame:
    """Return examples in parts and an order that depend on their content alone.

    Parameters
    ----------
    examples : DataFrame
        ``features`` and ``label``.
    records : int
        About how many; decides on the number of parts.

    Notes
    -----
    One shuffle. Spark's trees draw records by partition and place.
    """
    parts = max(_PARTITIONS, math.ceil(records / _RECORDS_OF_A_PARTITION))
    key = sf.xxhash64("features", "label")
    return examples.repartition(parts, key).sortWithinPartitions(key)


@contextmanager
def kept(table: DataFrame) -> Iterator[DataFrame]:
    """Keep a table in memory, or on the workers' disks, for a while: learners read it often."""
    table.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield table
    finally:
        table.unpersist()


def train_and_test(
    training: DataFrame, test: DataFrame, classes: int, trained_on: str
) -> list[Score]:
    """Train each learner and score it.

    Parameters
    ----------
    training, test : DataFrame
        ``features`` and ``label``; the test should be kept in memory.
    classes : int
    trained_on : str
        For the scores.

    Returns
    -------
    list of Score
        Logistic regression, random forest and, for two classes, gradient-boosted trees: Spark's
        know two classes only.

    Raises
    ------
    DataError
        If there is nothing to train with.

    Notes
    -----
    Spark ML with fixed seeds: about 100 passes over the training data for the regression, one for
    each level of the forest and one for each level of each boosted tree, all in memory if it fits;
    three passes over the test for each learner. What Spark adds up in parallel may differ in the
    last digits from run to run.
    """
    # Both classes, even if the training data has one only.
    metadata = {
        "ml_attr": {"type": "nominal", "name": "label", "vals": list(map(str, range(classes)))}
    }
    label = sf.col("label").alias("label", metadata=metadata)
    scores = []
    with kept(training.select("features", label)) as examples:
        if examples.isEmpty():
            raise DataError(
                f"--target: no record of the {trained_on.partition('_')[0]} has a value to learn "
                "from; choose another column"
            )
        for name, learner in _learners(classes):
            predictions = _fit(learner, examples).transform(test)
            columns = ["label", "prediction", "probability", "rawPrediction"]
            with kept(predictions.select(*columns)) as predicted:
                scores.append(_score(predicted, classes, trained_on, name))
    return scores


_Learner = LogisticRegression | RandomForestClassifier | GBTClassifier


def _learners(classes: int) -> Iterator[tuple[str, _Learner]]:
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
    """Train, and drop the summary of the training: the model could not travel to the workers.

    It holds the session, which cannot travel from the first Observation in it on. Spark's Python
    interface has no way to drop it.
    """
    model: Any = learner.fit(examples)
    if getattr(model, "hasSummary", False):
        java: Any = examples.sparkSession._jvm
        model._java_obj.setSummary(java.scala.Option.empty())
    fitted: Transformer = model
    return fitted


def _score(predicted: DataFrame, classes: int, trained_on: str, learner: str) -> Score:
    several = MulticlassClassificationEvaluator(metricName="accuracy")
    accuracy = several.evaluate(predicted)
    if classes > 2:
        f1 = MulticlassClassificationEvaluator(metricName="f1").evaluate(predicted)
        return Score(trained_on, learner, accuracy, f1, None)
    f1 = MulticlassClassificationEvaluator(metricName="fMeasureByLabel", metricLabel=1.0).evaluate(
        predicted
    )
    area = BinaryClassificationEvaluator(metricName="areaUnderROC").evaluate(predicted)
    return Score(trained_on, learner, accuracy, f1, area)
