"""The query workload: how far counts taken from a release are from those of its original.

After LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity" (ICDE 2006), and
Xiao and Tao, "Anatomy" (VLDB 2006): a release answers ``count(*)`` with every class spread evenly
over the values that its published tuple covers, each attribute by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Figures, Integers
from anonspark.core.queries import Queries, draw_queries
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.labels.axes import Axis
from anonspark.utility.models import Learning, Measure
from anonspark.utility.records import (
    cells_of,
    published_columns,
    read_published,
    read_values,
    readings_of,
    sum_cells,
    value_column,
)

QUERIES = 1000

SELECTIVITY = 0.05
"""Expected share of the records that a query selects: the default of Xiao and Tao."""

SANITY_BOUND = 0.001
"""Smallest count that an error is related to, as a share of the records."""

_ROWS = 2048
"""Rows that are compared with all queries at once: bounds the memory."""

# Estimates are added up as whole multiples of this, exactly, so that their order does not matter.
_UNIT = 2.0**-30


@dataclass(frozen=True)
class WorkloadError:
    """Relative errors of the queries.

    Parameters
    ----------
    queries : int
    attributes : list of str
        Quasi-identifiers that were asked for.
    filters : list of str
        Sensitive attributes that were asked for.
    selectivity : float
        Mean share of the original's records that a query selects.
    sanity_bound : float
        Number of records: errors are related to no smaller count.
    median, mean, first_quartile, third_quartile : float
        Statistics of ``|estimate - true| / max(true, sanity_bound)``.
    """

    queries: int
    attributes: list[str]
    filters: list[str]
    selectivity: float
    sanity_bound: float
    median: float
    mean: float
    first_quartile: float
    third_quartile: float


def measure_workload(
    release: Table,
    original: Table,
    quasi_identifiers: Sequence[Axis],
    filters: Sequence[Axis],
    rows: int,
    missing_markers: Sequence[str],
) -> WorkloadError:
    """Ask release and original the same queries, and compare the counts.

    Each query uses one of the ``filters``, which are sensitive attributes. ``rows`` counts the
    records of the original. An error is divided by at least 0.1% of the records, as in Xiao, Wang
    and Gehrke (ICDE 2010), because queries that select next to nothing would dominate. Raises
    DataError if the original has no value of any quasi-identifier, or the release cannot be read.

    Two jobs: one pass over the original, and one over the release with a shuffle of a row for each
    class, sensitive value and task. One count for each query and task is collected. Time grows with
    queries times (records of the original + classes and their sensitive values).
    """
    asked_axes = [axis for axis in quasi_identifiers if len(axis.domain.values)]
    filter_axes = [axis for axis in filters if len(axis.domain.values)]
    if not asked_axes:
        raise DataError("--original: the quasi-identifiers of the release have no values there")
    queries = draw_queries(
        [axis.domain for axis in asked_axes],
        [axis.domain for axis in filter_axes],
        count=QUERIES,
        selectivity=SELECTIVITY,
    )
    true_counts = count_queries(original, asked_axes, filter_axes, queries, missing_markers)
    estimates = estimate_queries(release, asked_axes, filter_axes, queries, missing_markers)
    bound = SANITY_BOUND * rows
    errors = np.abs(estimates - true_counts) / np.maximum(true_counts, bound)
    first, median, third = (float(quartile) for quartile in np.quantile(errors, (0.25, 0.5, 0.75)))
    return WorkloadError(
        queries=QUERIES,
        attributes=[axis.name for axis in asked_axes],
        filters=[axis.name for axis in filter_axes],
        selectivity=float(true_counts.mean() / rows),
        sanity_bound=bound,
        median=median,
        mean=float(errors.mean()),
        first_quartile=first,
        third_quartile=third,
    )


def count_queries(
    original: Table,
    quasi_identifiers: Sequence[Axis],
    filters: Sequence[Axis],
    queries: Queries,
    missing_markers: Sequence[str],
) -> Integers:
    """Count the records that each query selects, int64. One pass for all queries.

    The axes are those of the queries, in their order. No range holds a missing value.
    """
    axes = [*quasi_identifiers, *filters]
    values = read_values(original, readings_of(original, axes, missing_markers, "--original"))
    return sum_cells(values, _CountSelected(tuple(axes), queries), len(queries)).astype(np.int64)


def estimate_queries(
    release: Table,
    quasi_identifiers: Sequence[Axis],
    filters: Sequence[Axis],
    queries: Queries,
    missing_markers: Sequence[str],
) -> Figures:
    """Estimate how many records each query selects from the published records alone, float64.

    A shuffle groups classes and their sensitive values. Else like :func:`count_queries`. Raises
    DataError if the release lacks columns, or its labels cannot be read.
    """
    readings = readings_of(release, filters, missing_markers, "release", len(quasi_identifiers))
    table = read_published(release, [axis.columns for axis in quasi_identifiers], readings)
    classes = table.aggregate(table.schema.names, count="records")
    estimate = _EstimateSelected(tuple(quasi_identifiers), tuple(filters), queries)
    names = [axis.name for axis in quasi_identifiers]
    return sum_cells(classes, estimate, len(queries), names) * _UNIT


def _selected(position: Figures, queries: Queries, index: int) -> npt.NDArray[np.bool_]:
    """Return which raw values are in the ranges of an attribute: (asking queries, rows)."""
    asked = queries.asked[index]
    return (queries.low[index, asked, None] <= position) & (
        position <= queries.high[index, asked, None]
    )


@dataclass(frozen=True)
class _CountSelected:
    """Counts a task's records for every query."""

    axes: tuple[Axis, ...]
    queries: Queries

    def __call__(self, batches: Batches) -> Batches:
        counts = np.zeros(len(self.queries), np.int64)
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                counts += self._count(batch.slice(start, _ROWS))
        yield cells_of(counts)

    def _count(self, batch: pa.RecordBatch) -> Integers:
        chosen = np.ones((len(self.queries), batch.num_rows), bool)
        for index, axis in enumerate(self.axes):
            position = axis.positions(batch.column(value_column(index)))
            chosen[self.queries.asked[index]] &= _selected(position, self.queries, index)
        counts: Integers = chosen.sum(axis=1, dtype=np.int64)
        return counts


@dataclass(frozen=True)
class _EstimateSelected:
    """Estimates how many records of a task's classes each query selects, in units of 2**-30."""

    axes: tuple[Axis, ...]
    filters: tuple[Axis, ...]
    queries: Queries

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            sums = np.zeros(len(self.queries), np.int64)
            unreadable: set[int] = set()
            for start in range(0, batch.num_rows, _ROWS):
                self._estimate(batch.slice(start, _ROWS), sums, unreadable)
            yield cells_of(sums, unreadable)

    def _estimate(self, batch: pa.RecordBatch, estimates: Integers, unreadable: set[int]) -> None:
        """Add the expected records of each query in a batch of classes, in :data:`_UNIT`."""
        queries, d = self.queries, len(self.axes)
        shares = np.ones((len(queries), batch.num_rows))
        for index, axis in enumerate(self.axes):
            asked = queries.asked[index]
            columns = [batch.column(name) for name in published_columns(index, len(axis.columns))]
            try:
                spread, numbers = axis.spread(columns)
            except DataError:
                unreadable.add(index)
                continue
            by_region = spread.shares(queries.low[index, asked], queries.high[index, asked])
            shares[asked] *= np.ascontiguousarray(by_region.T)[:, numbers]
        for index, axis in enumerate(self.filters, start=d):
            position = axis.positions(batch.column(value_column(index)))
            shares[queries.asked[index]] *= _selected(position, queries, index)
        records = batch.column("records").to_numpy()
        estimates += np.rint(shares * records / _UNIT).astype(np.int64).sum(axis=1)


_Z = 1.96

LEAST_TEST_RECORDS = 100
"""Fewest test records for a share."""

LEAST_OF_A_CLASS = 10
"""Fewest test records of each of two classes for a share."""

LARGEST_MARGIN = 0.25
"""Nor where 1.96 standard errors are a larger part of what the original's model gains."""

MEASURES: dict[Measure, str] = {"accuracy": "accuracy", "roc_auc": "ROC AUC"}
"""The names of the measures."""


@dataclass(frozen=True)
class KeptScore:
    """The share of the score of the original's best model that a release's best one keeps.

    Parameters
    ----------
    target : str
        The column that was predicted.
    measure : str
        ``roc_auc`` for two classes, ``accuracy`` for more.
    original, release, guessing : float
        Scores of the best models, and of always guessing the most frequent class.
    share : float or None
        What the release's model gains over guessing, as a share of what the original's gains: 1 is
        as good, 0 is worth nothing. None if the original's models gain nothing.
    low, high : float or None
        1.96 standard errors of the difference of the scores around the share, or None without any.
    held_out : bool
        Whether the test records were no part of the original. If they were, the share flatters.
    test_records : int
    margin : float or None
        1.96 standard errors of the difference of the scores, or None without any.
    enough : bool
        Whether there are enough test records for a share: :data:`LEAST_TEST_RECORDS`, of each of
        two classes :data:`LEAST_OF_A_CLASS`, and so many that the interval reaches no farther than
        :data:`LARGEST_MARGIN` to each side.
    """

    target: str
    measure: Measure
    original: float
    release: float
    guessing: float
    share: float | None
    low: float | None
    high: float | None
    held_out: bool
    test_records: int
    margin: float | None
    enough: bool


def kept_of(learning: Learning | None) -> KeptScore | None:
    """Compute how much of the original's gain over guessing a release's best model keeps, or None.

    None is returned if no models were trained.
    """
    if learning is None or learning.loss is None:
        return None
    loss = learning.loss
    guessing = 0.5 if loss.measure == "roc_auc" else learning.majority
    original = next(
        float(getattr(score, loss.measure))
        for score in learning.scores
        if (score.trained_on, score.learner) == ("original", loss.original)
    )
    gain = original - guessing
    share = low = high = None
    margin = None if loss.standard_error is None else _Z * loss.standard_error
    if gain > 0:
        share = 1.0 - loss.loss / gain
        if margin is not None:
            low, high = share - margin / gain, share + margin / gain
    return KeptScore(
        target=learning.target,
        measure=loss.measure,
        original=original,
        release=original - loss.loss,
        guessing=guessing,
        share=share,
        low=low,
        high=high,
        held_out=learning.held_out,
        test_records=learning.test_records,
        margin=margin,
        enough=_are_enough(learning, loss.measure)
        and margin is not None
        and (gain <= 0 or margin <= LARGEST_MARGIN * gain),
    )


def _are_enough(learning: Learning, measure: Measure) -> bool:
    """Return whether there are enough test records to rely on a standard error."""
    if learning.test_records < LEAST_TEST_RECORDS:
        return False
    rarer = min(learning.majority, 1.0 - learning.majority) * learning.test_records
    return measure == "accuracy" or round(rarer) >= LEAST_OF_A_CLASS


def describe_usefulness(workload: WorkloadError | None, learning: Learning | None) -> str:
    """Say how good models are, which counts can be trusted, and how far others are off.

    Sentences without the last full stop.

    >>> describe_usefulness(None, None)
    'nothing was measured'
    """
    score = kept_of(learning)
    sentences = [] if score is None else [_describe_models(score)]
    if workload is not None:
        if workload.filters:
            names = ", ".join(workload.filters)
            sentences.append(
                f"counts of published records by unchanged columns ({names}) are exact"
            )
        sentences.append(
            f"counts by ranges of quasi-identifiers are off by {workload.mean:.1%} on average, "
            f"half of them by {workload.median:.1%} at most"
        )
    first, *others = sentences or ["nothing was measured"]
    return ". ".join([first, *(sentence[0].upper() + sentence[1:] for sentence in others)])


def _describe_models(score: KeptScore) -> str:
    """Say how much better than guessing a release's model predicts, compared with the original's.

    The figures that the verdict rests on follow in brackets.
    """
    name = MEASURES[score.measure]
    figures = [f"{name} {score.release:.4f} compared with {score.original:.4f}"]
    seen = "" if score.held_out else ", flattering because the release has seen the test records"
    if not score.enough:
        verdict = "there are too few test records to measure how good a model trained on the "
        verdict += "release is"
        margin = "" if score.margin is None else f" ±{score.margin:.4f}"
        figures.append(f"difference {score.release - score.original:+z.4f}{margin}")
    elif score.share is None:
        verdict = f"models cannot be compared, because those of the original predict {score.target}"
        verdict, seen = f"{verdict} no better than guessing", ""
    elif score.share <= 0:
        verdict = f"a model trained on the release predicts {score.target} no better than guessing"
    else:
        verdict = f"a model trained on the release is {score.share:z.1%} as good as on the original"
        if score.low is not None and score.high is not None:
            figures.insert(0, f"95% interval {max(score.low, 0.0):.1%} to {score.high:z.1%}")
    return f"{verdict} ({', '.join(figures)}, guessing {score.guessing:.4f}{seen})"
