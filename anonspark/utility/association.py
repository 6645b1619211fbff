"""What a release still tells of a target: association, attribute by attribute.

Values of the original are put into bins. A release answers how many records of each class a bin
has, with every published tuple spread evenly over the values that it covers
(:mod:`anonspark.core.association`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.association import (
    QUANTILES,
    association_loss,
    removed_uncertainty,
)
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.utility.axes import Axis
from anonspark.utility.learning import LABEL, Target
from anonspark.utility.records import (
    published_columns,
    read_published,
    read_values,
    readings_of,
    unreadable_labels,
    value_column,
)

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Sums are whole multiples of this, so that their order does not matter.
_UNIT = 2.0**-30

_COUNTED = pa.schema([("place", pa.int32()), ("at", pa.float64()), ("records", pa.int64())])
_SUMS = pa.schema([("cell", pa.int64()), ("records", pa.decimal128(38, 0))])


@dataclass(frozen=True)
class AttributeAssociation:
    """What one attribute tells of a target.

    Parameters
    ----------
    name : str
    before, after : float or None
        Share of the target's uncertainty that the original's values remove, and that is removed by
        who believes the release; below 0 where that misleads. None where the target is constant.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Association:
    """What the quasi-identifiers of a release tell of a target.

    Parameters
    ----------
    target : str
    attributes : list of AttributeAssociation
        In the order of the names.
    loss : float or None
        0 of a release that is its original, about 1 of one that tells nothing; None where the
        original tells nothing.
    """

    target: str
    attributes: list[AttributeAssociation]
    loss: float | None


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of one attribute.

    Parameters
    ----------
    axis : Axis
    edges : float64 ndarray of shape (e,)
        Of numbers and times: last value of each bin but the last one, ascending.
    """

    axis: Axis
    edges: Figures

    @property
    def number(self) -> int:
        """Of the bins, those for the rest and for missing among them."""
        values = self.axis.frequent if self.axis.scale == "text" else self.edges
        return len(values) + 2

    def of_positions(self, positions: Figures) -> Integers:
        """Return the bin of each position; missing ones are in the last."""
        if self.axis.scale == "text":
            values = self.axis.frequent
            found = np.searchsorted(values, positions).clip(0, max(0, len(values) - 1))
            known = np.zeros(len(positions), bool)
            if len(values):
                known = values[found] == positions
            bins = np.where(known, found, len(values))
        else:
            bins = np.searchsorted(self.edges, positions)
        return np.where(np.isnan(positions), self.number - 1, bins).astype(np.int64)

    def shares(self, columns: Sequence[pa.Array]) -> tuple[Figures, Integers]:
        """Return the share of each different region in each bin, and the region of each row.

        Raises
        ------
        DataError
            If labels cannot be read.
        """
        spread, numbers = self.axis.spread(columns)
        regions = len(spread.missing)
        missing = spread.missing[:, None]
        if self.axis.scale == "text":
            own = spread.shares(self.axis.frequent, self.axis.frequent)
            rest = np.maximum(1 - own.sum(axis=1, keepdims=True) - missing, 0.0)
            return np.concatenate([own, rest, missing], axis=1), numbers
        below = spread.shares(np.full(len(self.edges), -np.inf), self.edges)
        ends = np.concatenate([np.zeros((regions, 1)), below, 1 - missing], axis=1)
        own = np.maximum(np.diff(ends, axis=1), 0.0)
        return np.concatenate([own, missing], axis=1), numbers


def measure_association(
    release: Table,
    original: Table,
    quasi_identifiers: Sequence[Axis],
    target: Target,
    missing_markers: Sequence[str],
) -> Association:
    """Measure what a release still tells of a target.

    Parameters
    ----------
    release : Table
        Published records.
    original : Table
    quasi_identifiers : sequence of Axis
    target : Target
        Published as it is. Records without it are left out.
    missing_markers : sequence of str

    Raises
    ------
    DataError
        If columns are missing, or labels cannot be read.

    Notes
    -----
    Three passes over the original, of which bins, their classes and the values around the quantiles
    are collected, and one over the release with a shuffle of a row a class and value of the target.
    """
    axes = tuple(quasi_identifiers)
    readings = readings_of(original, axes, missing_markers, "--original")
    values = read_values(original, [*readings, target.reading(original)])
    bins = _find_bins(values, axes, target)
    classes = len(target.classes)
    counted = _sums(values.map_batches(_CountBins(bins, target), _SUMS), bins, classes)
    published = read_published(release, [axis.columns for axis in axes], [target.reading(release)])
    grouped = published.add_up(published.schema.names, count="records")
    told = _sums(grouped.map_batches(_SpreadClasses(bins, target), _SUMS), bins, classes)
    released = (told[-1][0] * _UNIT).astype(np.int64)
    attributes = []
    for axis, spread, every in zip(axes, told, counted, strict=False):
        own = every.astype(np.int64)
        before = removed_uncertainty(own, every, own.sum(axis=0))
        after = removed_uncertainty(own, spread * _UNIT, released)
        attributes.append(AttributeAssociation(axis.name, before, after))
    loss = association_loss([one.before for one in attributes], [one.after for one in attributes])
    return Association(target.name, attributes, loss)


def _sums(table: Table, bins: Sequence[_Bins], classes: int) -> list[Figures]:
    """Return the sums of each attribute, by bin and class; last those of all records."""
    found = table.add_up(["cell"], sums=["records"]).gather().to_pylist()
    starts = _starts(bins, classes)
    flat = np.zeros(starts[-1] + classes, np.float64)
    unreadable = []
    for row in found:
        if row["cell"] < 0:
            unreadable.append(-1 - row["cell"])
        else:
            flat[row["cell"]] = float(row["records"])
    if unreadable:
        raise unreadable_labels(bins[place].axis.name for place in sorted(unreadable))
    numbers = [*(one.number for one in bins), 1]
    return [
        flat[start : start + number * classes].reshape(number, classes)
        for start, number in zip(starts.tolist(), numbers, strict=True)
    ]


def _starts(bins: Sequence[_Bins], classes: int) -> Integers:
    return np.cumsum([0, *(one.number * classes for one in bins)])


def _find_bins(values: Table, axes: Sequence[Axis], target: Target) -> tuple[_Bins, ...]:
    """Return the bins of all attributes, from records that have a target."""
    numbers = [place for place, axis in enumerate(axes) if axis.scale != "text"]
    edges: dict[int, Figures] = {}
    if numbers:
        steps = {place: axes[place].domain.values for place in numbers}
        counts = values.map_batches(_CountSteps(tuple(axes), steps, target), _COUNTED)
        found = counts.add_up(["place", "at"], sums=["records"]).gather()
        wanted = {place: _Wanted.of(steps[place], found, place) for place in numbers}
        near = values.map_batches(_CountNear(tuple(axes), wanted, target), _COUNTED)
        found = near.add_up(["place", "at"], sums=["records"]).gather()
        edges = {place: wanted[place].edges(found, place) for place in numbers}
    return tuple(_Bins(axis, edges.get(place, np.zeros(0))) for place, axis in enumerate(axes))


def _rows_of(found: pa.Table, place: int) -> tuple[Figures, Integers]:
    """Return the values of one attribute, ascending, and their records."""
    own = found.filter(pa.compute.equal(found["place"], place)).sort_by("at")
    return own["at"].to_numpy(), own["records"].to_numpy().astype(np.int64)


@dataclass(frozen=True)
class _Wanted:
    """Where the quantiles of one attribute are to be looked for.

    Parameters
    ----------
    ranks : int64 ndarray
        Ascending: the first value with so many records up to it is a quantile.
    low, high : float64 ndarray of the same shape
        Each quantile is above the first and at most the second.
    below : int64 ndarray of the same shape
        Records up to the first.
    """

    ranks: Integers
    low: Figures
    high: Figures
    below: Integers

    @classmethod
    def of(cls, steps: Figures, found: pa.Table, place: int) -> _Wanted:
        """Return where to look, given the records up to each of some steps."""
        at, records = _rows_of(found, place)
        counts = np.zeros(len(steps), np.int64)
        counts[at.astype(np.int64)] = records
        up_to = np.cumsum(counts)
        total = int(up_to[-1]) if len(up_to) else 0
        if not total:
            nothing = np.zeros(0, np.int64)
            return cls(nothing, np.zeros(0), np.zeros(0), nothing)
        ranks = -(-np.arange(1, QUANTILES) * total // QUANTILES)
        at_step = np.searchsorted(up_to, ranks)
        before = np.concatenate([[-np.inf], steps])[at_step]
        below = np.concatenate([[0], up_to])[at_step]
        return cls(ranks, before, steps[at_step], below)

    def holds(self, positions: Figures) -> npt.NDArray[np.bool_]:
        """Return which positions may be a quantile."""
        chosen = np.zeros(len(positions), bool)
        for low, high in sorted(set(zip(self.low.tolist(), self.high.tolist(), strict=True))):
            chosen |= (low < positions) & (positions <= high)
        return chosen

    def edges(self, found: pa.Table, place: int) -> Figures:
        """Return the different quantiles, given the records of each value that may be one."""
        values, records = _rows_of(found, place)
        edges = set()
        for rank, low, high, below in zip(
            self.ranks.tolist(),
            self.low.tolist(),
            self.high.tolist(),
            self.below.tolist(),
            strict=True,
        ):
            inside = (low < values) & (values <= high)
            up_to = below + np.cumsum(records[inside])
            edges.add(float(values[inside][np.searchsorted(up_to, rank)]))
        return np.array(sorted(edges), np.float64)


@dataclass(frozen=True)
class _CountSteps:
    """Counts a task's records between steps of each attribute of numbers; told is the step."""

    axes: tuple[Axis, ...]
    steps: dict[int, Figures]
    target: Target

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            has_target = np.asarray(self.target.numbers(batch.column(LABEL)).is_valid())
            for place, steps in self.steps.items():
                positions = self.axes[place].positions(batch.column(value_column(place)))
                positions = positions[has_target & ~np.isnan(positions)]
                # The last step is the largest value.
                found = np.bincount(np.searchsorted(steps, positions), minlength=1)
                some = np.flatnonzero(found)
                yield _counted(place, some.astype(np.float64), found[some])


@dataclass(frozen=True)
class _CountNear:
    """Counts a task's records of each value that may be a quantile."""

    axes: tuple[Axis, ...]
    wanted: dict[int, _Wanted]
    target: Target

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            has_target = np.asarray(self.target.numbers(batch.column(LABEL)).is_valid())
            for place, wanted in self.wanted.items():
                positions = self.axes[place].positions(batch.column(value_column(place)))
                chosen = positions[has_target & wanted.holds(positions)]
                yield _counted(place, *np.unique(chosen, return_counts=True))


def _counted(place: int, at: Figures, records: Integers) -> pa.RecordBatch:
    places = pa.array(np.full(len(at), place, np.int32))
    return pa.record_batch([places, pa.array(at), pa.array(records)], schema=_COUNTED)


def _cells(sums: Integers, unreadable: Sequence[int] = ()) -> pa.RecordBatch:
    some = np.flatnonzero(sums)
    cells = np.concatenate([some, -1 - np.array(unreadable, np.int64)])
    records = np.concatenate([sums[some], np.ones(len(unreadable), np.int64)])
    columns = [pa.array(cells.astype(np.int64)), pa.array(records).cast(_SUMS.field(1).type)]
    return pa.record_batch(columns, schema=_SUMS)


@dataclass(frozen=True)
class _CountBins:
    """Counts a task's records by bin and class."""

    bins: tuple[_Bins, ...]
    target: Target

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.target.classes)
        starts = _starts(self.bins, classes)
        sums = np.zeros(starts[-1] + classes, np.int64)
        for batch in batches:
            labels = self.target.numbers(batch.column(LABEL))
            kept = np.asarray(labels.is_valid())
            own = labels.drop_null().to_numpy().astype(np.int64)
            for place, (bins, start) in enumerate(zip(self.bins, starts.tolist(), strict=False)):
                positions = bins.axis.positions(batch.column(value_column(place)))[kept]
                cells = start + bins.of_positions(positions) * classes + own
                sums += np.bincount(cells, minlength=len(sums))
            sums[starts[-1] :] += np.bincount(own, minlength=classes)
        yield _cells(sums)


@dataclass(frozen=True)
class _SpreadClasses:
    """Spreads a task's classes over the bins, in units of 2**-30.

    An exception of a task would reach the user as a bug: labels of attribute i that cannot be read
    are told of by cell -1 - i.
    """

    bins: tuple[_Bins, ...]
    target: Target

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.target.classes)
        starts = _starts(self.bins, classes)
        sums = np.zeros(starts[-1] + classes, np.int64)
        unreadable: set[int] = set()
        for batch in batches:
            labels = self.target.numbers(batch.column(LABEL))
            kept = batch.filter(labels.is_valid())
            own = labels.drop_null().to_numpy().astype(np.int64)
            records = kept.column("records").to_numpy()
            for place, bins in enumerate(self.bins):
                names = published_columns(place, len(bins.axis.columns))
                try:
                    shares, regions = bins.shares([kept.column(name) for name in names])
                except DataError:
                    unreadable.add(place)
                    continue
                each = np.rint(shares[regions] * (records / _UNIT)[:, None]).astype(np.int64)
                block = np.zeros((bins.number, classes), np.int64)
                np.add.at(block.T, own, each)
                sums[starts[place] : starts[place + 1]] += block.reshape(-1)
            whole = np.zeros(classes, np.int64)
            np.add.at(whole, own, records)
            sums[starts[-1] :] += (whole / _UNIT).astype(np.int64)
        yield _cells(sums, sorted(unreadable))
