"""The regions of published classes, and the search for those that hold a record.

What presence, linkage and truthfulness share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.engine.protocol import Table
from anonspark.errors import DataError
from anonspark.kernels.region_search import (
    build_region_tree,
    count_points,
    match_groups,
    sum_shares,
)
from anonspark.labels.raw_records import PreparedTable, prepare_table
from anonspark.labels.region_axes import CategoryAxis, OrderedAxis, Runs, sets_of_codes
from anonspark.labels.regions import Leaves, PublishedAttribute, read_regions, require_readable

Codes = npt.NDArray[np.int32]

_MOST_CLASSES = 1_000_000


class TooManyClassesError(DataError):
    """A release has more classes than travel to every task."""


def collect_classes(release: Table, attributes: Sequence[PublishedAttribute]) -> pa.Table:
    """Collect the classes of a release by published tuple.

    Columns: ``published_<i>_<j>`` is the j-th column of the i-th attribute, ``records`` counts
    those of the class, ``key`` is :func:`class_keys` of the tuple. One job: a pass over the
    release, with a shuffle of a row a class and task. Raises DataError if the release lacks
    columns, and TooManyClassesError if it has more than 1,000,000 classes.
    """
    names = chain.from_iterable(attribute.columns for attribute in attributes)
    lacking = [name for name in names if name not in release.schema.names]
    if lacking:
        raise DataError(f"release: lacks the published column {lacking[0]!r}")
    columns = {
        f"published_{index}_{position}": name
        for index, attribute in enumerate(attributes)
        for position, name in enumerate(attribute.columns)
    }
    keyed = class_keys(release.select(columns), list(columns))
    grouped = keyed.aggregate(list(columns), count="records", least=["key"])
    classes = grouped.collect(_MOST_CLASSES + 1)
    if classes.num_rows > _MOST_CLASSES:
        raise TooManyClassesError(
            f"release: more than {_MOST_CLASSES:,} classes. Regions are matched with records for "
            "at most that many, because they travel to every task"
        )
    return classes


def class_keys(published: Table, columns: Sequence[str]) -> Table:
    """Add a column ``key``: a 64-bit hash of the published tuple of a record."""
    return published.with_hashes({"key": columns}, like=published.schema)


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

    def points(self, batch: pa.RecordBatch | pa.Table) -> tuple[Codes, Flags]:
        """Return codes and whether a value is unreadable, both of shape (rows, d)."""
        codes = np.empty((batch.num_rows, len(self.axes)), np.int32)
        unreadable = np.empty(codes.shape, bool)
        for index, axis in enumerate(self.axes):
            column = batch.column(f"value_{index}")
            missing = np.asarray(batch.column(f"missing_value_{index}"))
            codes[:, index] = np.where(missing, axis.missing, axis.encode(column))
            unreadable[:, index] = np.asarray(column.is_null()) & ~missing
        return codes, unreadable

    def count(self, points: Codes, counts: Integers) -> None:
        """Add the points in each region to ``counts``."""
        arguments = (points, *self.regions, counts)
        count_points(*arguments)

    def sum_figures(self, points: Codes, figures: Figures) -> Figures:
        """Return the sum of a figure of all regions of each point."""
        arguments = (points, *self.regions, figures)
        sums: Figures = sum_shares(*arguments)
        return sums

    def match(
        self,
        points: Codes,
        first_points: Integers,
        places: tuple[Integers, Integers, Integers],
        most_pairs: int,
    ) -> tuple[Integers, Integers, Integers]:
        """Match points with places, see :func:`~anonspark.kernels.region_search.match_groups`.

        ``points`` is int32 of shape (points, d), ``first_points`` int64 of shape (groups + 1,).
        ``places`` are the first place of each group, the regions of the places, and their room.
        """
        arguments = (points, first_points, *places, most_pairs, *self.regions)
        held, holding, matched = match_groups(*arguments)
        return held, holding, matched


def build_search(
    classes: pa.Table,
    attributes: Sequence[PublishedAttribute],
    prepared: PreparedTable,
    hierarchies: Mapping[str, Leaves],
    changed: Callable[..., tuple[Any, Integers]] = lambda _, *read: read,
) -> RegionSearch:
    """Read the regions of all classes and build their tree.

    ``prepared`` decides how values are compared. ``changed`` may replace the regions of an
    attribute: it takes its index, the different regions, and the number of each class's region.
    Raises DataError if labels cannot be read, and ConfigurationError if the release publishes
    means.
    """
    coded = []
    axes = []
    for index, attribute in enumerate(attributes):
        # A rule describes all values, leaves only those that were released.
        leaves = None if attribute.rule else hierarchies.get(attribute.name)
        compared_as = prepared.compared_as[index]
        is_rounded = compared_as == "float" and attribute.rule is not None
        # Ends are rounded as the values are.
        read_as = replace(attribute, kind="float") if is_rounded else attribute
        read = read_regions(class_columns(classes, attributes, index), read_as, leaves)
        regions, region_of_class = changed(index, *read)
        axis, sets = sets_of_codes(regions, compared_as, leaves)
        axes.append(axis)
        coded.append((sets, region_of_class))
    regions_of_classes = code_regions(coded, classes.num_rows)
    low, high = regions_of_classes[:2]
    return RegionSearch(tuple(axes), (*regions_of_classes, *build_region_tree(low, high)))


def class_columns(
    classes: pa.Table, attributes: Sequence[PublishedAttribute], index: int
) -> list[pa.ChunkedArray]:
    """Return the columns of an attribute in what :func:`collect_classes` returns."""
    positions = range(len(attributes[index].columns))
    return [classes.column(f"published_{index}_{position}") for position in positions]


def code_regions(
    coded: Sequence[tuple[Sequence[Runs], Integers]], rows: int
) -> tuple[Codes, Codes, Codes, Integers, Codes]:
    """Return regions as the kernels of :mod:`~anonspark.kernels.region_search` take them.

    ``coded`` has, of each dimension, the different sets of codes and which of them each region has,
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


@dataclass(frozen=True)
class LabelledTable:
    """Published records, and how their labels are read.

    ``attributes`` are the quasi-identifiers. ``leaves`` are, of an attribute that was generalized
    by the hierarchy of a file, the values as text that each label stands for. Labels of rules speak
    for themselves. ``missing_markers`` are texts of raw records that mean missing, as null and NaN
    do.
    """

    data: Table
    attributes: Sequence[PublishedAttribute]
    leaves: Mapping[str, Leaves] = field(default_factory=dict)
    missing_markers: Sequence[str] = ()

    @cached_property
    def classes(self) -> pa.Table:
        """The classes by published tuple, see :func:`collect_classes`. One job, once."""
        return collect_classes(self.data, self.attributes)

    def prepare(
        self,
        table: Table,
        subject: str,
        *,
        drops_missing: bool = False,
        carried: Sequence[str] = (),
    ) -> PreparedTable:
        """Bring raw records into types that compare with the labels.

        Parameters and errors are those of :func:`~anonspark.labels.raw_records.prepare_table`.
        Raises ConfigurationError if the release publishes means.
        """
        require_readable(self.attributes)
        return prepare_table(
            table,
            self.attributes,
            self.leaves,
            missing_markers=self.missing_markers,
            subject=subject,
            drops_missing=drops_missing,
            carried=carried,
        )

    def search(self, prepared: PreparedTable) -> RegionSearch:
        """Return what finds the classes whose regions hold raw records."""
        return build_search(self.classes, self.attributes, prepared, self.leaves)
