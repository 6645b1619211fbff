"""Count predictions of test records on the workers: scores and differences of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.core.model_scores import (
    STEPS,
    Difference,
    accuracy_difference,
    area_difference,
    joined_products,
    placements,
    split_products,
    steps_of,
)
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.utility.learning import LABEL
from anonspark.utility.records import cells_of, sum_cells

_SUMS = ("only_first", "only_second", "high", "low")
_COMPARED = pa.schema([(name, pa.int64()) for name in ("pair", LABEL, *_SUMS)])


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a model for the test, in counts.

    Parameters
    ----------
    confusion : int64 ndarray of shape (c, c)
        Records by class and by what is predicted.
    steps : int64 ndarray of shape (2, STEPS + 1), or None
        Of two classes: records by class and step of the probability of class 1.
    """

    confusion: Integers
    steps: Integers | None


def count_predictions(
    predicted: Table, models: Sequence[str], classes: int
) -> dict[str, Predictions]:
    """Count what models predict.

    Parameters
    ----------
    predicted : Table
        Of :meth:`anonspark.engine.protocol.Engine.predict`.
    models : sequence of str
        Names of the models' columns there.
    classes : int

    Returns
    -------
    dict of str to Predictions

    Notes
    -----
    One job with a small shuffle. At most 4 times 10,001 counts of a model are collected, or the
    square of the classes.
    """
    shape = _shape(len(models), classes)
    count = _CountPredictions(tuple(models), classes)
    cells = sum_cells(predicted, count, int(np.prod(shape))).astype(np.int64)
    return {
        name: Predictions(own.sum(axis=2), own.sum(axis=1) if classes == 2 else None)
        for name, own in zip(models, cells.reshape(shape), strict=True)
    }


def compare_predictions(
    predicted: Table,
    pairs: Sequence[tuple[str, str]],
    counted: Mapping[str, Predictions],
) -> list[tuple[Difference, Difference | None]]:
    """Return how far, of some pairs of models, the second scores better than the first.

    Parameters
    ----------
    predicted : Table
        Of which the predictions were counted.
    pairs : sequence of (str, str)
    counted : mapping of str to Predictions

    Returns
    -------
    list of (Difference, Difference or None)
        Of the accuracy and of the area under the curve. The latter is None for more than two
        classes, and where the test has records of one class only.

    Notes
    -----
    One job with a small shuffle: both placement values of each record are looked up, and sums are
    collected.
    """
    places = {
        name: placements(own.steps)
        for name, own in counted.items()
        if own.steps is not None and name in {one for pair in pairs for one in pair}
    }
    compare = _ComparePredictions(tuple(pairs), places)
    rows = (
        predicted.map_batches(compare, _COMPARED).aggregate(["pair", LABEL], sums=_SUMS).collect()
    )
    sums = {(row["pair"], row[LABEL]): row for row in rows.to_pylist()}
    found = []
    for number, (first, second) in enumerate(pairs):
        own = [sums.get((number, label), dict.fromkeys(_SUMS, 0)) for label in (0, 1)]
        records = int(counted[first].confusion.sum())
        alone = [sum(int(row[name]) for row in own) for name in _SUMS[:2]]
        area = None
        before, after = counted[first].steps, counted[second].steps
        if before is not None and after is not None:
            products = [joined_products(int(row["high"]), int(row["low"])) for row in own]
            area = area_difference(before, after, products)
        found.append((accuracy_difference(records, *alone), area))
    return found


def _shape(models: int, classes: int) -> tuple[int, int, int, int]:
    """Return how cells are numbered: by model, class, class predicted and step."""
    return models, classes, classes, STEPS + 1 if classes == 2 else 1


def _probability(batch: pa.RecordBatch, model: str) -> npt.NDArray[np.float64]:
    column: npt.NDArray[np.float64] = batch.column(f"{model} probability").to_numpy()
    return column


@dataclass(frozen=True)
class _CountPredictions:
    """Counts a task's records by model, class, class predicted and step."""

    models: tuple[str, ...]
    classes: int

    def __call__(self, batches: Batches) -> Batches:
        shape = _shape(len(self.models), self.classes)
        cells = np.zeros(shape, np.int64)
        for batch in batches:
            labels = batch.column(LABEL).to_numpy().astype(np.int64)
            for own, name in zip(cells, self.models, strict=True):
                predicted = batch.column(name).to_numpy().astype(np.int64)
                steps = np.zeros(len(labels), np.int64)
                if self.classes == 2:
                    steps = steps_of(_probability(batch, name))
                np.add.at(own, (labels, predicted, steps), 1)
        yield cells_of(cells.reshape(-1))


@dataclass(frozen=True)
class _ComparePredictions:
    """Adds up, for pairs of models, who is right alone and the products of placements.

    With more than two classes all records count as one class.
    """

    pairs: tuple[tuple[str, str], ...]
    places: Mapping[str, Integers]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            labels = batch.column(LABEL).to_numpy()
            for number, pair in enumerate(self.pairs):
                right = [batch.column(name).to_numpy() == labels for name in pair]
                alone = (right[0] & ~right[1], right[1] & ~right[0])
                for label in (0, 1) if self.places else (0,):
                    own = labels == label if self.places else np.ones(len(labels), bool)
                    sums = [int(one[own].sum()) for one in alone]
                    sums += self._products(batch, pair, label, own) if self.places else (0, 0)
                    columns = [pa.array([one], pa.int64()) for one in (number, label, *sums)]
                    yield pa.record_batch(columns, schema=_COMPARED)

    def _products(
        self, batch: pa.RecordBatch, pair: tuple[str, str], label: int, own: npt.NDArray[np.bool_]
    ) -> tuple[int, int]:
        first, second = (
            self.places[name][label][steps_of(_probability(batch, name)[own])] for name in pair
        )
        return split_products(first, second)
