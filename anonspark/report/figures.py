"""What a report shows of the records, counted by Spark: marginals, associations, class sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.spark.arrow import collect_arrow
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.errors import DataError
from anonspark.release.manifest import Manifest
from anonspark.release.regions import (
    Leaves,
    PublishedAttribute,
    leaves_by_label,
    published_attributes,
)
from anonspark.report.association import SCALE, Part, associations, weighted_products
from anonspark.report.axes import (
    CodeRuns,
    Codes,
    GroupAxis,
    Intervals,
    OrderedAxis,
    ValueSets,
    read_codes,
    read_intervals,
    read_sets,
)
from anonspark.report.bins import Bins, Scale, merge_bins, plan_bins
from anonspark.report.groups import Naming, beginnings, levels_of, plan_groups

Numbers = npt.NDArray[np.float64]
Axis = OrderedAxis | GroupAxis

MISSING = "missing"
UNTOLD = "any value (*)"

# They are collected.
_MOST_TEXTS = 1_000_000

# More would not be readable.
_MOST_ATTRIBUTES = 20

# Free texts and keys: the groups would tell of few records.
_LEAST_COVERED = 0.5


_SCALES: dict[str, Scale] = {
    "integer": "whole",
    "float": "real",
    "decimal": "real",
    "date": "date",
    "timestamp": "timestamp",
}


@dataclass(frozen=True)
class Marginal:
    """How the values of one quasi-identifier are distributed.

    Parameters
    ----------
    attribute : str
    kind : str
        As in the manifest.
    labels : tuple of str
        Of bins or groups, in order.
    before : tuple of int or None
        Records of the original; each k or more, or 0. None without an original.
    after : tuple of float
        Records of the release, each spread evenly over what its published value covers.
    """

    attribute: str
    kind: str
    labels: tuple[str, ...]
    before: tuple[int, ...] | None
    after: tuple[float, ...]


@dataclass(frozen=True)
class Associations:
    """How strongly pairs of attributes go together; see :mod:`anonspark.report.association`.

    Parameters
    ----------
    names : tuple of str
        Of the attributes.
    ordered : tuple of bool
        Whether each is ordered.
    before : float64 ndarray of shape (attributes, attributes) or None
    after : float64 ndarray of shape (attributes, attributes)
    """

    names: tuple[str, ...]
    ordered: tuple[bool, ...]
    before: Numbers | None
    after: Numbers


@dataclass(frozen=True)
class OriginalFigures:
    """What is shown of the original beside the marginals.

    Parameters
    ----------
    rows : int
        Records, without those that the release's policy for missing values drops.
    sizes : mapping of int to int
        Groups of records with the same quasi-identifiers, of each size.
    """

    rows: int
    sizes: Mapping[int, int]


@dataclass(frozen=True)
class Figures:
    """Everything that was counted for a report.

    Parameters
    ----------
    marginals : tuple of Marginal
    associations : Associations
    original : OriginalFigures or None
    """

    marginals: tuple[Marginal, ...]
    associations: Associations
    original: OriginalFigures | None


@dataclass
class _Attribute:
    """One attribute of the report, and how it is read on both sides.

    Parameters
    ----------
    name : str
    published : PublishedAttribute or None
        None for attributes that are published as they are.
    scale : Scale or None
        None for categories.
    hierarchy : Hierarchy or None
        That of a file.
    axis : OrderedAxis, GroupAxis or None
        Once it is known.
    """

    name: str
    published: PublishedAttribute | None
    scale: Scale | None
    hierarchy: Hierarchy | None = None
    axis: Axis | None = None

    @property
    def kind(self) -> str:
        return "" if self.published is None else self.published.rule or self.published.kind

    @property
    def by_hierarchy(self) -> bool:
        rule = None if self.published is None else self.published.rule
        return self.hierarchy is not None or rule is not None

    @property
    def leaves(self) -> Leaves | None:
        return None if self.hierarchy is None else leaves_by_label(self.hierarchy)


def measure(
    data: DataFrame,
    manifest: Manifest,
    hierarchies: Mapping[str, Hierarchy],
    original: DataFrame | None = None,
) -> Figures:
    """Count what a report shows.

    Parameters
    ----------
    data : DataFrame
        Published records.
    manifest : Manifest
        Of the release.
    hierarchies : mapping of str to Hierarchy
        Those of quasi-identifiers that come from files.
    original : DataFrame or None
        The table that the release was made of.

    Raises
    ------
    DataError
        If the original lacks columns, a category of it has more than 1,000,000 different texts, or
        labels of the release cannot be read.

    Notes
    -----
    Over the release one job with a shuffle for each attribute, and one pass for the associations.
    The different labels of each quasi-identifier are collected. Over the original one job for each
    category, one for the ordered attributes, one for the associations, and one with a shuffle of
    all different tuples of quasi-identifiers. The different values of each category are collected,
    no record is.
    """
    k = manifest.k
    attributes = _quasi_identifiers(manifest, hierarchies)
    others = _as_they_are(data, manifest)
    table = None if original is None else _Original(original, manifest, attributes, others)
    labels = {
        place: _ordered_labels(data, attribute, k)
        for place, attribute in enumerate(attributes)
        if attribute.scale is not None
    }
    counts: dict[int, _BinCounts] = {}
    if table is not None:
        edges: dict[int, Sequence[float]] = {place: one.bins.edges for place, one in labels.items()}
        for place, other in enumerate(others, start=len(attributes)):
            if other.scale is not None and other.name in table.places:
                edges[place] = ()
        counts = table.bin_counts(edges)
    marginals = [
        _ordered_marginal(attribute, labels[place], counts.get(place), k)
        if place in labels
        else _category_marginal(data, attribute, k, table)
        for place, attribute in enumerate(attributes)
    ]
    others = _with_axes(data, others, k, counts, len(attributes))
    shown = [*attributes, *others][:_MOST_ATTRIBUTES]
    after = associations(*_products(data, _readers_of_release(shown)))
    before = None
    if table is not None:
        before = associations(*_products(table.records, table.readers(shown)))
    return Figures(
        tuple(marginals),
        Associations(
            tuple(attribute.name for attribute in shown),
            tuple(attribute.scale is not None for attribute in shown),
            before,
            after,
        ),
        None if table is None else table.figures(len(attributes)),
    )


def _quasi_identifiers(
    manifest: Manifest, hierarchies: Mapping[str, Hierarchy]
) -> list[_Attribute]:
    return [
        _Attribute(
            one.name,
            one,
            None if one.is_category or one.rule == "prefix" else _SCALES[one.kind],
            None if one.rule else hierarchies.get(one.name),
        )
        for one in published_attributes(manifest)
    ]


def _as_they_are(data: DataFrame, manifest: Manifest) -> list[_Attribute]:
    """Return the sensitive and insensitive attributes that have an association to show."""
    found = []
    types = {field.name: field.dataType for field in data.schema}
    for name in manifest.with_role("sensitive", "insensitive"):
        if name not in types:
            continue
        data_type = types[name]
        if isinstance(data_type, (*TEXT_TYPES, st.BooleanType)):
            found.append(_Attribute(name, None, None))
        elif (scale := _scale_of(data_type)) is not None:
            found.append(_Attribute(name, None, scale))
    return found


def _scale_of(data_type: st.DataType) -> Scale | None:
    if isinstance(data_type, st.DateType):
        return "date"
    if isinstance(data_type, st.TimestampType | st.TimestampNTZType):
        return "timestamp"
    if isinstance(data_type, st.NumericType):
        return "real"
    return None


def _value(name: str, attribute: _Attribute, data_type: st.DataType, markers: list[str]) -> Column:
    """Return a raw column as double or text, null where it is missing or cannot be read."""
    raw = sf.col(quoted(name))
    value = _text(raw, attribute, data_type)
    if not isinstance(data_type, TEXT_TYPES):
        return value if attribute.scale is None else _number(raw, attribute.scale)
    marked = sf.trim(raw).isin([marker.strip() for marker in markers])
    if attribute.scale is not None:
        target = attribute.scale if attribute.scale in ("date", "timestamp") else "double"
        read = sf.expr(f"try_cast(trim({quoted(name)}) AS {target})")
        value = _number(read, attribute.scale)
    return sf.when(~marked, value)


def _number(value: Column, scale: Scale) -> Column:
    if scale == "date":
        return sf.unix_date(value.cast("date")).cast("double")
    if scale == "timestamp":
        return sf.unix_micros(value.cast("timestamp")).cast("double")
    number = value.cast("double")
    # What is infinite has no place between the others.
    return sf.when(~sf.isnan(number) & (sf.abs(number) != float("inf")), number)


def _text(raw: Column, attribute: _Attribute, data_type: st.DataType) -> Column:
    """Return the text by which labels know a value; those of hierarchies know 17.0 as 17."""
    text = raw.cast("string")
    is_float = isinstance(data_type, st.FloatType | st.DoubleType)
    if attribute.by_hierarchy and is_float:
        whole = sf.when((sf.rint(raw) == raw) & (sf.abs(raw) < sf.lit(1e15)), raw)
        text = sf.coalesce(whole.cast("long").cast("string"), text)
    elif attribute.by_hierarchy:
        text = sf.btrim(text, sf.lit(BLANKS))
    return sf.when(~sf.isnan(raw), text) if is_float else text


class _BinCounts(NamedTuple):
    """Records of each bin, how many are missing, and the extreme values, which are not shown."""

    counts: Numbers
    missing: float
    low: float
    high: float


class _Original:
    """The original: ``value_<i>`` of each attribute, in the order of the report."""

    def __init__(
        self,
        original: DataFrame,
        manifest: Manifest,
        attributes: Sequence[_Attribute],
        others: Sequence[_Attribute],
    ) -> None:
        types = {field.name: field.dataType for field in original.schema}
        lacking = [attribute.name for attribute in attributes if attribute.name not in types]
        if lacking:
            raise DataError(
                f"--original: lacks the columns {', '.join(map(repr, lacking))}; give the table "
                "that the release was made of"
            )
        markers = list(manifest.missing_markers)
        self.places = {
            attribute.name: place
            for place, attribute in enumerate([*attributes, *others])
            if attribute.name in types
        }
        self.records = original.select(
            *(
                _value(attribute.name, attribute, types[attribute.name], markers).alias(
                    f"value_{self.places[attribute.name]}"
                )
                for attribute in [*attributes, *others]
                if attribute.name in types
            )
        )
        if manifest.drops_missing:
            # They are not in the release: a difference must not tell how many they are.
            self.records = self.records.dropna(
                subset=[f"value_{place}" for place in range(len(attributes))]
            )

    def values(self, attribute: str) -> tuple[list[str], Numbers, float]:
        """Return the different texts of a category, their counts, and how many are missing.

        Raises
        ------
        DataError
            If there are more than 1,000,000 different ones.
        """
        name = f"value_{self.places[attribute]}"
        counted = self.records.groupBy(name).agg(sf.count(sf.lit(1)).alias("records"))
        # One more than are allowed, and missing.
        rows = counted.limit(_MOST_TEXTS + 2).collect()
        counts = {row[name]: float(row["records"]) for row in rows}
        missing = counts.pop(None, 0.0)
        if len(counts) > _MOST_TEXTS:
            raise DataError(
                f"--original: more than {_MOST_TEXTS:,} different texts in the column {attribute!r}"
            )
        names = sorted(counts)
        return names, np.array([counts[name] for name in names]), missing

    def bin_counts(self, edges: Mapping[int, Sequence[float]]) -> dict[int, _BinCounts]:
        """Count the bins of ordered attributes, by their places; one job for all of them."""
        columns = [sf.count(sf.lit(1))]
        for place, own in edges.items():
            value = sf.col(f"value_{place}")
            columns += [sf.min(value), sf.max(value), sf.count(value)]
            columns += [sf.count(sf.when(value >= edge, 1)) for edge in own]
        rows, *found = self.records.agg(*columns).collect()[0]
        counts = {}
        for place, own in edges.items():
            low, high, *reached = found[: 3 + len(own)]
            del found[: 3 + len(own)]
            inside = -np.diff(np.array([*reached, 0], np.float64))
            counts[place] = _BinCounts(inside, float(rows - reached[0]), low or 0.0, high or 0.0)
        return counts

    def readers(self, attributes: Sequence[_Attribute]) -> list[_Reader]:
        return [
            _Reader(
                attribute.name,
                attribute.axis,
                (f"value_{self.places[attribute.name]}",) if attribute.name in self.places else (),
            )
            for attribute in attributes
            if attribute.axis is not None
        ]

    def figures(self, quasi_identifiers: int) -> OriginalFigures:
        names = [f"value_{place}" for place in range(quasi_identifiers)]
        rows = (
            self.records.groupBy(*names)
            .agg(sf.count(sf.lit(1)).alias("size"))
            .groupBy("size")
            .agg(sf.count(sf.lit(1)).alias("groups"))
            .collect()
        )
        sizes = {row["size"]: row["groups"] for row in rows}
        return OriginalFigures(sum(size * groups for size, groups in sizes.items()), sizes)


def _labels(
    data: DataFrame, published: PublishedAttribute
) -> tuple[list[pa.ChunkedArray], Numbers]:
    """Collect the different published values of an attribute, and how many records have each."""
    names = [f"label_{place}" for place in range(len(published.columns))]
    columns = [
        sf.col(quoted(column)).alias(name)
        for column, name in zip(published.columns, names, strict=True)
    ]
    grouped = data.select(*columns).groupBy(*names).agg(sf.count(sf.lit(1)).alias("records"))
    table = collect_arrow(grouped)
    counts = table.column("records").to_numpy().astype(np.float64)
    return [table.column(name) for name in names], counts


class _OrderedLabels(NamedTuple):
    """The different published regions of an ordered attribute."""

    regions: Intervals
    records: Numbers
    bins: Bins


def _ordered_labels(data: DataFrame, attribute: _Attribute, k: int) -> _OrderedLabels:
    published, scale = attribute.published, attribute.scale
    if published is None or scale is None:
        raise TypeError(f"{attribute.name}: not an ordered quasi-identifier")
    columns, counts = _labels(data, published)
    regions, numbers = read_intervals(columns, published)
    records = np.bincount(numbers, counts, len(regions.middle)).astype(np.float64)
    known = ~np.isnan(regions.middle)
    bins = plan_bins(scale, regions.middle[known], records[known], k)
    return _OrderedLabels(regions, records, bins)


def _ordered_marginal(
    attribute: _Attribute, labels: _OrderedLabels, found: _BinCounts | None, k: int
) -> Marginal:
    regions = labels.regions
    low, high = (
        (float(regions.low.min()), float(regions.high.max())) if len(regions.low) else (0.0, 0.0)
    )
    missing = 0.0
    after = OrderedAxis(labels.bins, low, high).totals(regions, labels.records)
    tables = [after[:-2]]
    if found is not None:
        low, high, missing = min(low, found.low), max(high, found.high), found.missing
        tables.append(found.counts)
    bins, members = merge_bins(labels.bins, tables, k)
    attribute.axis = OrderedAxis(bins, low, high)
    names = bins.labels
    in_bins = np.array([after[group].sum() for group in members])
    own = None
    if found is not None:
        own = np.array([found.counts[group].sum() for group in members])
    if 0 < missing < k:
        # Too few to be told of by themselves.
        names[-1] += " or missing"
        in_bins[-1] += after[-2]
        after[-2] = 0.0
        if own is not None:
            own[-1] += missing
            missing = 0.0
    return _marginal(attribute, names, own, missing, in_bins, after[-2:], k)


def _category_marginal(
    data: DataFrame, attribute: _Attribute, k: int, table: _Original | None
) -> Marginal:
    published = attribute.published
    if published is None:
        raise TypeError(f"{attribute.name}: not a quasi-identifier")
    columns, counts = _labels(data, published)
    names, own, missing = ([], None, 0.0) if table is None else table.values(attribute.name)
    codes: Codes | None = None
    regions: ValueSets | CodeRuns
    if published.rule == "prefix":
        if table is None:
            masks, _ = read_sets(columns, published)
            names = _finest([code for region in masks.values for code in region])
        codes = Codes(names)
        regions, numbers = read_codes(columns, published, codes)
    else:
        regions, numbers = read_sets(columns, published, attribute.leaves)
    by_region = np.bincount(numbers, counts, len(regions.missing)).astype(np.float64)
    if own is not None:
        namings = _namings(attribute, names)
        groups = plan_groups([(name,) for name in names], own, k, namings, missing)
    else:
        values = regions.values
        sure = [place for place, one in enumerate(values) if one and not regions.missing[place]]
        namings = _namings(attribute, sorted(set().union(*values)))
        groups = plan_groups([values[place] for place in sure], by_region[sure], k, namings)
    attribute.axis = GroupAxis(groups, codes)
    after = by_region @ attribute.axis.parts(regions)
    before = None
    if own is not None:
        before = own @ groups.spread([(name,) for name in names])
        if groups.with_missing:
            before[-1] += missing
            missing = 0.0
    return _marginal(attribute, groups.names, before, missing, after[:-2], after[-2:], k)


def _marginal(
    attribute: _Attribute,
    labels: Sequence[str],
    before: Numbers | None,
    missing: float,
    after: Numbers,
    special: Numbers,
    k: int,
) -> Marginal:
    """Put a marginal together; rows of nobody, and those of too few, are left out."""
    names = [*labels, MISSING, UNTOLD]
    ours = np.array([*after, *special])
    if 0 < special[1] < k:
        # Too few to be told of: as the others.
        others = ours[:-1].sum()
        ours[:-1] *= (others + special[1]) / others if others else 1.0
        ours[-1] = 0.0
    theirs = None if before is None else np.array([*before, missing, 0.0])
    kept = [
        place
        for place in range(len(names))
        if round(ours[place], 9) > 0 or (theirs is not None and theirs[place] > 0)
    ]
    return Marginal(
        attribute.name,
        attribute.kind,
        tuple(names[place] for place in kept),
        None if theirs is None else tuple(int(theirs[place]) for place in kept),
        tuple(float(ours[place]) for place in kept),
    )


def _finest(codes: Sequence[str]) -> list[str]:
    """Return the codes that are not the beginning of another one."""
    different = sorted(set(codes))
    # Of the last one nothing is the beginning; where everything is published as * there is none.
    finest = [code for code, follower in pairwise(different) if not follower.startswith(code)]
    return finest + different[-1:]


def _namings(attribute: _Attribute, values: Sequence[str]) -> list[Naming]:
    namings: list[Naming] = [str]
    if attribute.hierarchy is not None:
        namings += levels_of(attribute.hierarchy)
    return namings + beginnings(values)


def _with_axes(
    data: DataFrame,
    others: Sequence[_Attribute],
    k: int,
    originals: Mapping[int, _BinCounts],
    first: int,
) -> list[_Attribute]:
    """Return the attributes that are published as they are and can be compared, with their axes."""
    values = {
        attribute.name: _value(attribute.name, attribute, data.schema[attribute.name].dataType, [])
        for attribute in others
        if attribute.scale is not None
    }
    ends = [extreme(value) for value in values.values() for extreme in (sf.min, sf.max)]
    rows, *found = data.agg(sf.count(sf.lit(1)), *ends).collect()[0]
    extremes = dict(zip(values, zip(found[::2], found[1::2], strict=True), strict=True))
    kept = []
    for place, attribute in enumerate(others, start=first):
        if attribute.scale is not None:
            low, high = (end or 0.0 for end in extremes[attribute.name])
            if place in originals:
                low, high = min(low, originals[place].low), max(high, originals[place].high)
            attribute.axis = OrderedAxis(Bins(attribute.scale, ()), low, high)
            kept.append(attribute)
            continue
        text = sf.col(quoted(attribute.name)).cast("string")
        counted = data.groupBy(text.alias("value")).agg(sf.count(sf.lit(1)).alias("records"))
        most = counted.where("value IS NOT NULL").orderBy(sf.desc("records"), "value").limit(100)
        frequent = most.collect()
        sizes = np.array([float(row["records"]) for row in frequent])
        groups = plan_groups([(row["value"],) for row in frequent], sizes, k, [str])
        if groups.places and sizes.sum() >= _LEAST_COVERED * rows:
            attribute.axis = GroupAxis(groups)
            kept.append(attribute)
    return kept


@dataclass(frozen=True)
class _Reader:
    """Reads the columns of one attribute in a worker.

    Parameters
    ----------
    name : str
        Of the attribute.
    axis : OrderedAxis or GroupAxis
    columns : tuple of str
        Of the table; none where it lacks the attribute.
    published : PublishedAttribute or None
        None where the columns hold values, as double or text.
    leaves : mapping of str to collection of str, or None
        See :func:`~anonspark.report.axes.read_sets`.
    """

    name: str
    axis: Axis
    columns: tuple[str, ...]
    published: PublishedAttribute | None = None
    leaves: Leaves | None = None

    def read(self, batch: pa.RecordBatch) -> Numbers:
        """Return the columns of :mod:`~anonspark.report.association`, of shape (rows, width)."""
        if not self.columns:
            return np.zeros((batch.num_rows, self.axis.width))
        arrays = [batch.column(name) for name in self.columns]
        if isinstance(self.axis, OrderedAxis):
            if self.published is None:
                values = arrays[0].fill_null(np.nan).to_numpy(zero_copy_only=False)
                return self.axis.columns(values)
            intervals, numbers = read_intervals(arrays, self.published)
            return self.axis.columns(intervals.middle)[numbers]
        if self.published is None:
            return self.axis.columns(arrays[0])
        if self.axis.codes is not None:
            runs, numbers = read_codes(arrays, self.published, self.axis.codes)
            return self.axis.parts(runs)[:, :-2][numbers]
        sets, numbers = read_sets(arrays, self.published, self.leaves)
        return self.axis.parts(sets)[:, :-2][numbers]


def _readers_of_release(attributes: Sequence[_Attribute]) -> list[_Reader]:
    return [
        _Reader(
            attribute.name,
            attribute.axis,
            attribute.published.columns if attribute.published else (attribute.name,),
            attribute.published,
            attribute.leaves,
        )
        for attribute in attributes
        if attribute.axis is not None
    ]


@dataclass(frozen=True)
class _Products:
    """Sums up the products of all columns in a worker."""

    readers: tuple[_Reader, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        width = sum(reader.axis.width for reader in self.readers)
        total = np.zeros((width, width), np.int64)
        for batch in batches:
            if batch.num_rows:
                total += weighted_products(
                    np.hstack([reader.read(batch) for reader in self.readers])
                )
        first, second = np.nonzero(total)
        yield pa.RecordBatch.from_pydict(
            {"first": first, "second": second, "total": total[first, second]}
        )


def _products(table: DataFrame, readers: Sequence[_Reader]) -> tuple[Numbers, list[Part]]:
    """Sum up the products of all pairs of columns; one pass, a shuffle of some thousand sums."""
    parts: list[Part] = []
    columns: list[Column] = []
    numbered: list[_Reader] = []
    place = 0
    for reader in readers:
        stop = place + reader.axis.width
        parts.append(Part(reader.name, isinstance(reader.axis, OrderedAxis), slice(place, stop)))
        place = stop
        names = tuple(f"column_{len(columns) + index}" for index in range(len(reader.columns)))
        for column, name in zip(reader.columns, names, strict=True):
            columns.append(_raw_or_text(table, column, reader).alias(name))
        numbered.append(_Reader(reader.name, reader.axis, names, reader.published, reader.leaves))
    products = np.zeros((place, place))
    if not numbered:
        return products, parts
    sums = (
        map_batches(
            table.select(*columns),
            _Products(tuple(numbered)),
            "first bigint, second bigint, total bigint",
        )
        .groupBy("first", "second")
        .agg(sf.sum(sf.col("total").cast("decimal(38,0)")).alias("total"))
        .collect()
    )
    for row in sums:
        products[row["first"], row["second"]] = float(row["total"]) / SCALE**2
    return products, parts


def _raw_or_text(table: DataFrame, column: str, reader: _Reader) -> Column:
    """Return a column as it is published, or as a value that its reader knows."""
    data_type = table.schema[column].dataType
    if reader.published is not None or isinstance(data_type, (*TEXT_TYPES, st.DoubleType)):
        return sf.col(quoted(column))
    scale = None if isinstance(reader.axis, GroupAxis) else _scale_of(data_type)
    return _value(column, _Attribute(column, None, scale), data_type, [])
