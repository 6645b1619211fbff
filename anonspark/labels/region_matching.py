"""The regions of published classes, and the search for those that hold a record.

What presence, linkage and truthfulness share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.engine.protocol import TASK, OnBatches, Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import plain
from anonspark.errors import DataError
from anonspark.kernels.region_search import build_region_tree, count_points, sum_shares
from anonspark.labels.raw_records import ComparedAs, PreparedTable, prepare_table
from anonspark.labels.region_axes import CategoryAxis, Codes, OrderedAxis, Runs, sets_of_codes
from anonspark.labels.regions import Leaves, PublishedAttribute, read_regions, require_readable

MOST_CLASSES = 1_000_000
"""Classes of a release that travel to every task."""

# More are shared out over tasks, about so many classes and published records each, by a tree over
# about so many of them.
_LEAF_CLASSES, _LEAF_RECORDS, _SAMPLED = 200_000, 2_000_000, 100_000

# The tree cuts regions that overlap, up to so many copies of each class.
_MOST_COPIES = 10

_MOST_IN_LEAF = 1_000_000
_BATCH_ROWS = 65_536

_KEY, _RECORDS = "key", "records"


class TooManyClassesError(DataError):
    """A release has more classes than travel to every task, or than a tree can share out."""


def collect_classes(release: Table, attributes: Sequence[PublishedAttribute]) -> pa.Table:
    """Collect the classes of a release by published tuple.

    Columns: ``published_<i>_<j>`` is the j-th column of the i-th attribute, ``records`` counts
    those of the class, ``key`` is :func:`class_keys` of the tuple. One job: a pass over the
    release, with a shuffle of a row a class and task. Raises DataError if the release lacks
    columns, and TooManyClassesError if it has more than 1,000,000 classes.
    """
    labels = LabelledTable(release, attributes)
    if labels.has_sample:
        raise TooManyClassesError(
            f"release: more than {MOST_CLASSES:,} classes. Regions are matched with records for "
            "at most that many, because they travel to every task"
        )
    return labels.classes


def _published_columns(attributes: Sequence[PublishedAttribute]) -> dict[str, str]:
    """Return the published columns by their names in what :func:`collect_classes` returns."""
    return {
        f"published_{index}_{position}": name
        for index, attribute in enumerate(attributes)
        for position, name in enumerate(attribute.columns)
    }


def class_keys(published: Table, columns: Sequence[str]) -> Table:
    """Add a column ``key``: a 64-bit hash of the published tuple of a record."""
    return published.with_hashes({_KEY: columns}, like=published.schema)


def count_payloads(
    hashed: Table,
    attributes: Sequence[PublishedAttribute],
    payload: str,
    *,
    labelled: bool = False,
) -> Table:
    """Count the ``records`` of each class (``key``) and payload, a column of the release."""
    columns = _published_columns(attributes)
    names = {_KEY: _KEY, payload: payload, **(columns if labelled else {})}
    keyed = class_keys(hashed, list(columns.values())).select(names)
    return keyed.aggregate(list(names), count=_RECORDS)


@dataclass(frozen=True)
class RegionSearch:
    """Finds the regions of records. Travels to the workers.

    ``axes`` make the values of each attribute codes, ``regions`` is what the kernels of
    :mod:`~anonspark.kernels.region_search` take after the points.
    """

    axes: tuple[OrderedAxis | CategoryAxis, ...]
    regions: tuple[npt.NDArray[Any], ...]

    @property
    def classes(self) -> int:
        """Number of regions, in the order of the classes."""
        return len(self.regions[0])

    def points(self, batch: pa.RecordBatch | pa.Table, first: int = 0) -> tuple[Codes, Flags]:
        """Return codes and whether a value is unreadable, both of shape (rows, d).

        The first axis is that of ``value_<first>``.
        """
        codes = np.empty((batch.num_rows, len(self.axes)), np.int32)
        unreadable = np.empty(codes.shape, bool)
        for index, axis in enumerate(self.axes):
            column = plain(batch.column(f"value_{first + index}"))
            missing = np.asarray(batch.column(f"missing_value_{first + index}"))
            codes[:, index] = np.where(missing, axis.missing, axis.encode(column))
            unreadable[:, index] = np.asarray(column.is_null()) & ~missing
        return codes, unreadable

    def count(self, points: Codes, counts: Integers) -> None:
        """Add the points in each region to ``counts``."""
        count_points(points, *self.regions, counts)

    def sum_figures(self, points: Codes, figures: Figures) -> Figures:
        """Return the sum of a figure of all regions of each point."""
        sums: Figures = sum_shares(points, *self.regions, figures)
        return sums


def class_columns(
    classes: pa.Table | pa.RecordBatch, attributes: Sequence[PublishedAttribute], index: int
) -> list[pa.Array | pa.ChunkedArray]:
    """Return the columns of an attribute in what :func:`collect_classes` returns."""
    positions = range(len(attributes[index].columns))
    return [classes.column(f"published_{index}_{position}") for position in positions]


def code_regions(
    coded: Sequence[tuple[Sequence[Runs], Integers]], rows: int
) -> tuple[Codes, Codes, Codes, Integers, Codes]:
    """Return regions as the kernels of :mod:`~anonspark.kernels.region_search` take them.

    ``coded`` has for each dimension the different sets of codes, and which of them each region has,
    int64 of shape (rows,). Returns low, high and gaps (int32 of shape (rows, d)), offsets (int64,
    (lists + 1,)) and runs (int32, (runs, 2)), see
    :func:`~anonspark.kernels.region_search.count_points`.

    >>> sets = [((1, 3),), ((1, 1), (5, 5))]
    >>> low, high, gaps, offsets, runs = code_regions([(sets, np.array([0, 1]))], 2)
    >>> low.T.tolist(), high.T.tolist(), gaps.T.tolist(), runs.tolist()
    ([[1, 1]], [[3, 5]], [[-1, 0]], [[1, 1], [5, 5]])
    """
    low, high, gaps = (np.empty((rows, len(coded)), np.int32) for _ in range(3))
    offsets: list[int] = [0]
    runs: list[tuple[int, int]] = []
    for index, (sets, numbers) in enumerate(coded):
        set_low, set_high, set_gaps = (np.empty(len(sets), np.int32) for _ in range(3))
        for number, runs_of_set in enumerate(sets):
            set_low[number], set_high[number], set_gaps[number] = 1, 0, -1
            if runs_of_set:
                set_low[number], set_high[number] = runs_of_set[0][0], runs_of_set[-1][1]
            if len(runs_of_set) > 1:
                set_gaps[number] = len(offsets) - 1
                runs += runs_of_set
                offsets.append(len(runs))
        low[:, index], high[:, index] = set_low[numbers], set_high[numbers]
        gaps[:, index] = set_gaps[numbers]
    return low, high, gaps, np.array(offsets, np.int64), np.array(runs, np.int32).reshape(-1, 2)


def cut_leaves(
    low: Codes, high: Codes, ends: Sequence[int], most: float
) -> list[tuple[Codes, Codes, int]]:
    """Cut the space of codes into leaves, each of which only few of the boxes (n, d) touch.

    A cut is at the median of the boxes' middles, in the dimension in which the larger side is
    touched by the fewest. A box that it cuts goes to both sides, so cutting ends at 10 copies of
    each box, or if every cut leaves all boxes on one side. O(n d) a level of the tree. Returns the
    first and last codes of each leaf, int32 of shape (d,), and the number of boxes that touch it.

    >>> low, high = np.array([[0], [2], [4]], np.int32), np.array([[1], [4], [9]], np.int32)
    >>> [(int(a[0]), int(b[0]), boxes) for a, b, boxes in cut_leaves(low, high, [9], 2)]
    [(0, 2, 2), (3, 9, 2)]
    """
    axes = np.arange(len(ends))
    pending = [(np.arange(len(low)), np.zeros(len(ends), np.int32), np.array(ends, np.int32))]
    leaves = []
    copies = len(low)
    # Level by level: the leaves are about equal when the copies are used up.
    for rows, first, last in pending:
        cuts = []
        if len(rows) > most and copies < _MOST_COPIES * len(low):
            for axis in range(len(ends)):
                starts = np.maximum(low[rows, axis], first[axis])
                stops = np.minimum(high[rows, axis], last[axis])
                middle = int(np.median((starts.astype(np.int64) + stops) // 2))
                for code in (middle - 1, middle):
                    sides = rows[starts <= code], rows[stops > code]
                    cuts.append((max(map(len, sides)), axis, code, sides))
        cuts = [cut for cut in cuts if cut[0] < len(rows)]
        if not cuts:
            leaves.append((first, last, len(rows)))
            continue
        _, axis, code, sides = min(cuts, key=itemgetter(0))
        copies += sum(map(len, sides)) - len(rows)
        pending.append((sides[0], first, np.where(axes == axis, code, last)))
        pending.append((sides[1], np.where(axes == axis, code + 1, first), last))
    return leaves


Change = Callable[..., tuple[Any, Integers]]
"""Takes the index of an attribute, its different regions, and which of them each class has.

Returns the regions to be searched."""


def _as_read(_: int, *read: Any) -> Any:
    return read


@dataclass(frozen=True)
class RegionReader:
    """Reads the regions of classes, and shares classes and raw records out. Travels to the workers.

    ``compared_as`` is that of :class:`~anonspark.labels.raw_records.PreparedTable`. ``leaves`` are
    the leaves of a tree, as regions, or None for a single one. Every point is in one leaf, and a
    class goes to each leaf that its region touches, so that a leaf has all classes whose regions
    hold a point of it.
    """

    attributes: Sequence[PublishedAttribute]
    compared_as: Sequence[ComparedAs | None]
    hierarchies: Mapping[str, Leaves]
    leaves: RegionSearch | None = None

    def search(self, classes: pa.Table, changed: Change = _as_read) -> RegionSearch:
        """Read the regions of all classes and build their tree.

        Raises DataError if labels cannot be read, and ConfigurationError for a release of means.
        """
        axes, regions = self._coded(classes, changed)
        return RegionSearch(axes, (*regions, *build_region_tree(*regions[:2])))

    def _coded(
        self, classes: pa.Table | pa.RecordBatch, changed: Change, axes: Sequence[Any] = ()
    ) -> tuple[tuple[OrderedAxis | CategoryAxis, ...], tuple[npt.NDArray[Any], ...]]:
        """Return the axes, those of these classes unless given, and :func:`code_regions`."""
        coded, coding_axes = [], []
        columns = zip(
            self.attributes, self.compared_as, axes or [None] * len(self.compared_as), strict=True
        )
        for index, (attribute, compared_as, axis) in enumerate(columns):
            # A rule tells of all values, its leaves of those that were released.
            leaves = None if attribute.rule else self.hierarchies.get(attribute.name)
            is_rounded = compared_as == "float" and attribute.rule is not None
            # Ends are rounded as the values are.
            read_as = replace(attribute, kind="float") if is_rounded else attribute
            labels = class_columns(classes, self.attributes, index)
            regions, numbers = changed(index, *read_regions(labels, read_as, leaves))
            coding_axis, sets = sets_of_codes(regions, compared_as, leaves, axis)
            coding_axes.append(coding_axis)
            coded.append((sets, numbers))
        return tuple(coding_axes), code_regions(coded, classes.num_rows)

    def leaves_of(self, batch: pa.RecordBatch) -> tuple[Integers, Integers]:
        """Return the leaves of raw records, or those that classes touch, for a batch of either.

        Classes have a column of keys. Both results are int64 of shape (more,): rows of the batch,
        and the number of a leaf for each.
        """
        rows = np.arange(batch.num_rows)
        if self.leaves is None:
            return rows, np.zeros_like(rows)
        if _KEY not in batch.schema.names:
            points, _ = self.leaves.points(batch)
            leaves = np.arange(self.leaves.classes, dtype=np.float64)
            return rows, self.leaves.sum_figures(points, leaves).astype(np.int64)
        low, high = self._coded(batch, _as_read, self.leaves.axes)[1][:2]
        # A region without codes, from 1 to 0, is in the leaf of 0.
        low = np.minimum(low, high)
        touching = [
            np.flatnonzero(((low <= last) & (high >= first)).all(axis=1))
            for first, last in zip(*self.leaves.regions[:2], strict=True)
        ]
        owners = np.repeat(np.arange(len(touching)), [len(rows) for rows in touching])
        return np.concatenate(touching), owners


def _send_to_leaves(reader: RegionReader, schema: pa.Schema, batches: Batches) -> Batches:
    """Yield classes or raw records with their leaves, a row for each."""
    for batch in batches:
        rows, leaves = reader.leaves_of(batch)
        yield taken(batch, rows, schema, TASK, leaves)


def joint_schema(first: Table, second: Table, *more: pa.Field) -> pa.Schema:
    """Return the columns of two tables and some more, which rows of either table leave null."""
    fields = {field.name: field.with_nullable(True) for field in (*first.schema, *second.schema)}
    return pa.schema([*fields.values(), *more])


def taken(
    batch: pa.RecordBatch, rows: Integers, schema: pa.Schema, name: str, numbers: Integers
) -> pa.RecordBatch:
    """Return rows of a batch with one column more, and nulls in others that a schema has."""
    columns = dict(zip(batch.schema.names, batch.take(pa.array(rows)).columns, strict=True))
    columns[name] = pa.array(numbers, schema.field(name).type)
    nothing = {field.name: pa.nulls(len(rows), field.type) for field in schema}
    return pa.RecordBatch.from_pydict({**nothing, **columns}, schema)


def _as_sent(batches: Batches) -> Batches:
    yield from batches


TaskMaker = Callable[[RegionSearch, Integers, Integers], OnBatches]
"""Makes what counts records of the search for classes, their names and their sizes."""


def _apply_at_leaf(reader: RegionReader, make: TaskMaker, batches: Batches) -> Batches:
    """Apply to the records of a leaf what a function makes of its classes."""
    received = [batch for batch in batches if batch.num_rows]
    if not received:
        return
    rows = pa.Table.from_batches(received)
    is_class = rows[_KEY].is_valid()
    classes, records = rows.filter(is_class), rows.filter(pc.invert(is_class))
    names, sizes = (classes[name].to_numpy() for name in (_KEY, _RECORDS))
    task = make(reader.search(classes), names, sizes)
    yield from task(iter(records.combine_chunks().to_batches(_BATCH_ROWS)))


def _sample_classes(step: int, batches: Batches) -> Batches:
    """Yield about one of so many classes, by their keys."""
    for batch in batches:
        yield batch.filter(pa.array(batch.column(_KEY).to_numpy() % step == 0))


@dataclass(frozen=True)
class LabelledTable:
    """Published records, and how their labels are read.

    ``attributes`` are the quasi-identifiers. ``leaves`` are, of an attribute that was generalized
    by the hierarchy of a file, the values as text that each label stands for. Labels of rules speak
    for themselves. ``missing_markers`` are texts of raw records that mean missing.
    """

    data: Table
    attributes: Sequence[PublishedAttribute]
    leaves: Mapping[str, Leaves] = field(default_factory=dict)
    missing_markers: Sequence[str] = ()

    @cached_property
    def grouped(self) -> Table:
        """All classes, see :func:`collect_classes`. Lazy, one shuffle each time."""
        names = chain.from_iterable(attribute.columns for attribute in self.attributes)
        lacking = [name for name in names if name not in self.data.schema.names]
        if lacking:
            raise DataError(f"release: lacks the published column {lacking[0]!r}")
        columns = _published_columns(self.attributes)
        keyed = class_keys(self.data.select(columns), list(columns))
        return keyed.aggregate(list(columns), count=_RECORDS, least=[_KEY])

    def classes_alike(self, index: int) -> pa.Table:
        """Count ``classes`` by the labels of an attribute and ``records``, above 1,000,000."""
        if not self.has_sample:
            times = pa.array(np.ones(len(self.classes), np.int64))
            return self.classes.append_column("classes", times)
        columns = [name for name in self.grouped.schema.names if f"published_{index}_" in name]
        return self.grouped.aggregate([*columns, _RECORDS], count="classes").collect()

    @cached_property
    def _collected(self) -> tuple[pa.Table, int]:
        classes = self.grouped.collect(MOST_CLASSES + 1)
        if classes.num_rows <= MOST_CLASSES:
            return classes, classes.num_rows
        number = self.grouped.count()
        sample = partial(_sample_classes, -(-number // _SAMPLED))
        return self.grouped.map_batches(sample, self.grouped.schema).collect(), number

    @property
    def classes(self) -> pa.Table:
        """The classes by published tuple, about 100,000 of them if they are over 1,000,000.

        One job, once, else three. See :func:`collect_classes`.
        """
        return self._collected[0]

    @property
    def number(self) -> int:
        """Number of all classes."""
        return self._collected[1]

    @property
    def has_sample(self) -> bool:
        """Return whether :attr:`classes` are a sample."""
        return self.number > MOST_CLASSES

    @property
    def records(self) -> int:
        """Published records, about so many of a sample of classes."""
        records = int(self.classes[_RECORDS].to_numpy().sum())
        return records * self.number // max(len(self.classes), 1)

    def prepare(self, table: Table, subject: str, **options: Any) -> PreparedTable:
        """Bring raw records into types that compare with the labels.

        Options and errors: :func:`~anonspark.labels.raw_records.prepare_table`. Raises
        ConfigurationError if the release publishes means.
        """
        require_readable(self.attributes)
        options = {"missing_markers": self.missing_markers, "subject": subject, **options}
        return prepare_table(table, self.attributes, self.leaves, **options)

    def reader(self, compared_as: Sequence[ComparedAs | None]) -> RegionReader:
        """Return the reader of the classes which, above 1,000,000, divides them among leaves.

        Raises TooManyClassesError if they overlap so much that more than 1,000,000 touch one leaf.
        """
        reader = RegionReader(self.attributes, compared_as, self.leaves)
        if not self.has_sample:
            return reader
        search = reader.search(self.classes)
        low, high = search.regions[:2]
        number = max(self.number / _LEAF_CLASSES, self.records / _LEAF_RECORDS)
        ends = [axis.missing for axis in search.axes]
        first, last, touching = zip(*cut_leaves(low, high, ends, len(low) / number), strict=True)
        if max(touching) * self.number > _MOST_IN_LEAF * len(low):
            raise TooManyClassesError(
                f"release: {self.number:,} classes, whose regions overlap too much to be cut"
            )
        boxes = np.stack(first), np.stack(last)
        nothing = np.full_like(boxes[0], -1), np.zeros(1, np.int64), np.zeros((0, 2), np.int32)
        leaves = RegionSearch(search.axes, (*boxes, *nothing, *build_region_tree(*boxes)))
        return replace(reader, leaves=leaves)

    def map_records(self, prepared: PreparedTable, make: TaskMaker, schema: pa.Schema) -> Table:
        """Map raw records by a function that ``make`` builds from the classes that may hold them.

        All classes go to every task, and a class is named by its number. If there are more than
        1,000,000, they are named by their keys and divided, with one shuffle of the records and of
        the classes: a task gets the records of a leaf and all classes that touch it.
        """
        reader = self.reader(prepared.compared_as)
        if reader.leaves is None:
            sizes = self.classes[_RECORDS].to_numpy()
            task = make(reader.search(self.classes), np.arange(len(sizes)), sizes)
            return prepared.records.map_batches(task, schema)
        sent = joint_schema(self.grouped, prepared.records, pa.field(TASK, pa.int32()))
        send = partial(_send_to_leaves, reader, sent)
        classes, records = (t.map_batches(send, sent) for t in (self.grouped, prepared.records))
        together = classes.union(records).repartition(_as_sent, sent, reader.leaves.classes)
        return together.map_batches(partial(_apply_at_leaf, reader, make), schema)
