"""Models that learn from a release and from its original, tested on the same records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.core.model_scores import (
    STEPS,
    Difference,
    accuracy,
    accuracy_difference,
    area_difference,
    area_under_curve,
    f1_scores,
    joined_products,
    macro_f1,
    placements,
    precisions,
    recalls,
    split_products,
    steps_of,
    weighted_mean,
)
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.utility.learning import LABEL, Target
from anonspark.utility.records import cells_of, sum_cells

_SUMS = ("only_first", "only_second", "high", "low")
_COMPARED = pa.schema([(name, pa.int64()) for name in ("pair", LABEL, *_SUMS)])


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a model for the test, in counts.

    ``confusion`` (int64, shape (c, c)) holds records by class and predicted class. ``steps``
    (int64, shape (2, STEPS + 1)) holds those of two classes by class and step of the probability of
    class 1, or is None for more classes.
    """

    confusion: Integers
    steps: Integers | None


def count_predictions(
    predicted: Table, models: Sequence[str], classes: int
) -> dict[str, Predictions]:
    """Count what models predict, in the table of :meth:`anonspark.engine.protocol.Engine.predict`.

    ``models`` names their columns. One job with a small shuffle. For each model at most 4 times
    10,001 counts are collected, or the square of the classes.
    """
    shape = _shape(len(models), classes)
    count = _CountPredictions(tuple(models), classes)
    cells = sum_cells(predicted, count, int(np.prod(shape))).astype(np.int64)
    return {
        name: Predictions(counts.sum(axis=2), counts.sum(axis=1) if classes == 2 else None)
        for name, counts in zip(models, cells.reshape(shape), strict=True)
    }


def compare_predictions(
    predicted: Table,
    pairs: Sequence[tuple[str, str]],
    counted: Mapping[str, Predictions],
) -> list[tuple[Difference, Difference | None]]:
    """Measure how much better the second model of each pair scores than the first.

    ``counted`` holds the predictions of the same table. The differences are of the accuracy and of
    the area under the curve. The latter is None for more than two classes, and if all test records
    are of one class. One job with a small shuffle: both placement values of each record are looked
    up, and sums are collected.
    """
    by_model = {
        name: placements(counts.steps)
        for name, counts in counted.items()
        if counts.steps is not None and name in {model for pair in pairs for model in pair}
    }
    compare = _ComparePredictions(tuple(pairs), by_model)
    rows = (
        predicted.map_batches(compare, _COMPARED).aggregate(["pair", LABEL], sums=_SUMS).collect()
    )
    sums = {(row["pair"], row[LABEL]): row for row in rows.to_pylist()}
    differences = []
    for number, (first, second) in enumerate(pairs):
        by_label = [sums.get((number, label), dict.fromkeys(_SUMS, 0)) for label in (0, 1)]
        records = int(counted[first].confusion.sum())
        alone = [sum(int(row[name]) for row in by_label) for name in _SUMS[:2]]
        area = None
        before, after = counted[first].steps, counted[second].steps
        if before is not None and after is not None:
            products = [joined_products(int(row["high"]), int(row["low"])) for row in by_label]
            area = area_difference(before, after, products)
        differences.append((accuracy_difference(records, *alone), area))
    return differences


def _shape(models: int, classes: int) -> tuple[int, int, int, int]:
    """Return the shape of the cells: by model, class, predicted class and step."""
    return models, classes, classes, STEPS + 1 if classes == 2 else 1


def _probability(batch: pa.RecordBatch, model: str) -> npt.NDArray[np.float64]:
    column: npt.NDArray[np.float64] = batch.column(f"{model} probability").to_numpy()
    return column


@dataclass(frozen=True)
class _CountPredictions:
    """Counts a task's records by model, class, predicted class and step."""

    models: tuple[str, ...]
    classes: int

    def __call__(self, batches: Batches) -> Batches:
        shape = _shape(len(self.models), self.classes)
        cells = np.zeros(shape, np.int64)
        for batch in batches:
            labels = batch.column(LABEL).to_numpy().astype(np.int64)
            for cell, name in zip(cells, self.models, strict=True):
                predicted = batch.column(name).to_numpy().astype(np.int64)
                steps = np.zeros(len(labels), np.int64)
                if self.classes == 2:
                    steps = steps_of(_probability(batch, name))
                np.add.at(cell, (labels, predicted, steps), 1)
        yield cells_of(cells.reshape(-1))


@dataclass(frozen=True)
class _ComparePredictions:
    """Sums, for pairs of models, who is right alone and the products of placements.

    With more than two classes all records count as one class.
    """

    pairs: tuple[tuple[str, str], ...]
    by_model: Mapping[str, Integers]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            labels = batch.column(LABEL).to_numpy()
            for number, pair in enumerate(self.pairs):
                is_right = [batch.column(name).to_numpy() == labels for name in pair]
                alone = (is_right[0] & ~is_right[1], is_right[1] & ~is_right[0])
                for label in (0, 1) if self.by_model else (0,):
                    mask = labels == label if self.by_model else np.ones(len(labels), bool)
                    sums = [int(part[mask].sum()) for part in alone]
                    sums += self._products(batch, pair, label, mask) if self.by_model else (0, 0)
                    columns = [pa.array([value], pa.int64()) for value in (number, label, *sums)]
                    yield pa.record_batch(columns, schema=_COMPARED)

    def _products(
        self, batch: pa.RecordBatch, pair: tuple[str, str], label: int, mask: npt.NDArray[np.bool_]
    ) -> tuple[int, int]:
        first, second = (
            self.by_model[name][label][steps_of(_probability(batch, name)[mask])] for name in pair
        )
        return split_products(first, second)


Measure = Literal["roc_auc", "accuracy"]


@dataclass(frozen=True)
class Score:
    """The scores of one model.

    Parameters
    ----------
    trained_on : str
        ``release``, ``original`` or ``original_with_test``.
    learner : str
    accuracy : float
    precision, recall, f1 : float
        Scores of the rarer of two classes, or, for more, means weighted by the classes' records.
    f1_macro : float
        Mean of all classes.
    roc_auc : float or None
        Area under the curve, or None for more than two classes, and if the test has one only.
    """

    trained_on: str
    learner: str
    accuracy: float
    precision: float
    recall: float
    f1: float
    f1_macro: float
    roc_auc: float | None


@dataclass(frozen=True)
class ModelDifference:
    """The difference between the scores of a release's model and the original's.

    ``roc_auc`` is None if there is no area under the curve.
    """

    learner: str
    accuracy: Difference
    roc_auc: Difference | None


@dataclass(frozen=True)
class ModelLoss:
    """The loss by training on the release: best model compared with best model.

    Parameters
    ----------
    measure : str
        ``roc_auc`` for two classes, ``accuracy`` for more.
    original, release : str
        The learners that are best by the measure, the first on a tie.
    loss : float
        Positive if the original's best model is better.
    standard_error : float or None
        None if a class of the test has one record only.
    """

    measure: Measure
    original: str
    release: str
    loss: float
    standard_error: float | None


@dataclass(frozen=True)
class Learning:
    """The models of a release and of its original.

    Parameters
    ----------
    target : str
        The column that was predicted.
    classes : int
        Number of its different values.
    held_out : bool
        Whether the test records were no part of the original. If they were, differences are not
        comparable: the release has seen the test.
    test_records : int
    test_left_out : int
        Held-out records of a class that the original lacks. They are no test records.
    majority : float
        Accuracy of always predicting the original's most frequent class.
    scores : list of Score
        ``release``: trained on all published records. ``original``: on the original's records,
        without those of the test. ``original_with_test``, if nothing was held out: on all of them.
        The release, too, has published forms of the test records.
    differences : list of ModelDifference
        ``release`` compared with ``original`` for each learner. Empty if one was not trained.
    loss : ModelLoss or None
        None if there are no differences, or no area.
    without_area : str or None
        Why there is no area under the curve, or None if there is one.
    """

    target: str
    classes: int
    held_out: bool
    test_records: int
    test_left_out: int
    majority: float
    scores: list[Score]
    differences: list[ModelDifference]
    loss: ModelLoss | None
    without_area: str | None


@dataclass(frozen=True, eq=False)
class Tested:
    """Test records, and what models predict of them.

    ``table`` holds ``features`` and ``label``, and the columns of
    :meth:`anonspark.engine.protocol.Engine.predict`. ``of_class`` counts the records of each class.
    ``models`` holds, for each column of predictions, what the model was trained on, and its
    learner. ``held_out`` and ``left_out`` are those of :class:`Learning`.
    """

    table: Table
    target: Target
    held_out: bool
    left_out: int
    of_class: Mapping[int, int]
    models: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, test: Table, target: Target, *, held_out: bool, left_out: int) -> Tested:
        """Count the records of a test, which the caller keeps and releases. One job.

        Raises DataError if there are none.
        """
        counted = test.aggregate([LABEL], count="records").collect().to_pylist()
        records = {int(row[LABEL]): int(row["records"]) for row in counted}
        if not records:
            where = "--holdout: it" if held_out else "--original: its test part"
            raise DataError(
                f"{where} has no records with a value of {target.name!r} that the original has. "
                "Expected some. Choose other records, or another target"
            )
        return cls(test, target, held_out, left_out, records, {})

    def with_models(self, examples: Table, trained_on: str, records: int) -> Tested:
        """Train each learner, and add a column of its predictions. These are lazy.

        ``examples`` are those of :meth:`anonspark.engine.protocol.Engine.learn`, about ``records``
        of them. Raises DataError if there is nothing to train with.
        """
        engine = self.table.engine
        trained = engine.learn(examples, len(self.target.classes), records)
        if not trained:
            raise DataError(
                f"--target: no record of the {trained_on.partition('_')[0]} has a value to learn "
                "from. Choose another column"
            )
        named = {f"{trained_on} {learner}": model for learner, model in trained.items()}
        models = {f"{trained_on} {learner}": (trained_on, learner) for learner in trained}
        predicted = engine.predict(self.table, named)
        return replace(self, table=predicted, models={**self.models, **models})

    def figures(self) -> Learning:
        """Score the models, and compare those of the release with those of the original.

        Two jobs over the predictions, which are persisted meanwhile. Counts and sums are collected.
        """
        columns = [column for name in self.models for column in (name, f"{name} probability")]
        predicted = self.table.select([LABEL, *columns]).persist()
        try:
            counted = count_predictions(predicted, list(self.models), len(self.target.classes))
            scores = [_score(*self.models[name], counts) for name, counts in counted.items()]
            differences, loss = self._differences(predicted, counted, scores)
        finally:
            predicted.unpersist()
        records, classes = sum(self.of_class.values()), len(self.target.classes)
        without_area = None
        if classes > 2:
            without_area = "the target has more than two classes"
        elif len(self.of_class) < 2:
            without_area = "the test records are of one class"
        return Learning(
            target=self.target.name,
            classes=classes,
            held_out=self.held_out,
            test_records=records,
            test_left_out=self.left_out,
            majority=self.of_class.get(0, 0) / records,
            scores=scores,
            differences=differences,
            loss=loss,
            without_area=without_area,
        )

    def _differences(
        self, predicted: Table, counted: Mapping[str, Predictions], scores: Sequence[Score]
    ) -> tuple[list[ModelDifference], ModelLoss | None]:
        """Compare the learners in pairs, and the best of the original with that of the release."""
        originals, releases = (
            {score.learner: score for score in scores if score.trained_on == name}
            for name in ("original", "release")
        )
        pairs = [(learner, learner) for learner in originals if learner in releases]
        if not pairs:
            return [], None
        measure: Measure = "roc_auc" if len(self.target.classes) == 2 else "accuracy"
        # The best ones may be of different learners.
        top = (_best(list(originals.values()), measure), _best(list(releases.values()), measure))
        all_pairs = list(dict.fromkeys([*pairs, top]))
        columns = [(f"original {first}", f"release {second}") for first, second in all_pairs]
        compared = compare_predictions(predicted, columns, counted)
        by_pair = dict(zip(all_pairs, compared, strict=True))
        differences = [ModelDifference(learner, *by_pair[learner, learner]) for learner, _ in pairs]
        accuracies, areas = by_pair[top]
        measured = areas if measure == "roc_auc" else accuracies
        if measured is None:
            return differences, None
        # No loss is 0, not -0.
        loss = ModelLoss(measure, *top, 0.0 - measured.difference, measured.standard_error)
        return differences, loss


def _best(scores: Sequence[Score], measure: Measure) -> str:
    """Return the learner with the best score, or the first if there is no such score."""
    return max(scores, key=lambda score: getattr(score, measure) or 0.0).learner


def _score(trained_on: str, learner: str, predictions: Predictions) -> Score:
    """Score predictions by the mean of all classes or, of two classes, by the positive one."""
    confusion = predictions.confusion
    steps = predictions.steps
    precision, recall, f1 = (
        weighted_mean(scores, confusion) if steps is None else float(scores[1])
        for scores in (precisions(confusion), recalls(confusion), f1_scores(confusion))
    )
    return Score(
        trained_on,
        learner,
        accuracy(confusion),
        precision,
        recall,
        f1,
        macro_f1(confusion),
        None if steps is None else area_under_curve(steps),
    )
