"""Raw records and the regions of published classes, brought together.

What presence, linkage and truthfulness share: a table whose values compare as the attributes do,
the classes of a release by published tuple, their regions as boxes of codes, and the search for
the regions that hold a record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.arrow import collect_arrow
from anonspark.engine.spark.fingerprints import content_hash
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.errors import DataError
from anonspark.kernels.region_search import (
    build_region_tree,
    count_points,
    match_groups,
    sum_shares,
)
from anonspark.release.published import value_of
from anonspark.release.regions import (
    CategoryRegion,
    Interval,
    Leaves,
    Number,
    OrderedRegion,
    PublishedAttribute,
    read_regions,
)

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Figures = npt.NDArray[np.float64]

# What the values of an ordered attribute are compared as, see PreparedTable.
_Places = int | Literal["integer", "float", "code"]

_MOST_CLASSES = 1_000_000

_DECIMAL_DIGITS = 38
_TEXT_PLACES = 18
_DECIMAL_TYPE = re.compile(r"decimal\d*\((\d+), (-?\d+)\)")

# Those that the labels of a hierarchy are free of at their ends, too.
_BLANKS = " \t\n\r\v\f"

_INT64 = np.iinfo(np.int64)


# A table of raw records: its values as numbers or texts.


@dataclass(frozen=True)
class PreparedTable:
    """The quasi-identifiers of raw records.

    Parameters
    ----------
    records : DataFrame
        ``value_<i>`` and ``missing_<i>`` of each attribute; neither where a value is unreadable.
        Behind them the columns that were to be carried along.
    places : tuple of (int, "integer", "float", "code" or None)
        What ``value_<i>`` is: a decimal of so many places (0 and all others alike: 128 bits), an
        integer or a time (64 bits), a float64, a code that may be masked, or (None) any other text.
    """

    records: DataFrame
    places: tuple[_Places | None, ...]


def prepare_table(
    table: DataFrame,
    attributes: Sequence[PublishedAttribute],
    hierarchies: Mapping[str, Leaves],
    *,
    missing_markers: Iterable[str],
    subject: str,
    carried: Mapping[str, Column] | None = None,
) -> PreparedTable:
    """Bring raw records into types that compare as the attributes do.

    Parameters
    ----------
    table : DataFrame
        Raw records, with a column of each attribute's name.
    attributes : sequence of PublishedAttribute
    hierarchies : mapping of str to (mapping of str to collection of str)
        Those that the release was generalized by, see
        :func:`~anonspark.release.regions.read_label`.
    missing_markers : iterable of str
        Texts that mean missing.
    subject : str
        What messages call the table.
    carried : mapping of str to Column, or None
        Further columns, by the names that they get.

    Raises
    ------
    DataError
        If the table lacks columns, or has types that cannot be compared.
    """
    markers = [marker.strip() for marker in missing_markers]
    types = {field.name: field.dataType for field in table.schema}
    lacking = [attribute.name for attribute in attributes if attribute.name not in types]
    if lacking:
        raise DataError(
            f"{subject}: lacks the columns {', '.join(map(repr, lacking))}; it needs every "
            "quasi-identifier of the release, under its name"
        )
    renamed = table.select(
        *(
            sf.col(quoted(attribute.name)).alias(f"raw_{index}")
            for index, attribute in enumerate(attributes)
        ),
        *(column.alias(name) for name, column in (carried or {}).items()),
    )
    columns: list[Column] = []
    places = []
    problems = []
    for index, attribute in enumerate(attributes):
        found = types[attribute.name]
        by_hierarchy = attribute.rule is not None or attribute.name in hierarchies
        planned = _value_of(f"raw_{index}", attribute, found, by_hierarchy=by_hierarchy)
        if planned is None:
            problems.append(
                f"{subject}: column {attribute.name!r} has type {found.simpleString()}, which "
                f"cannot be compared with values of kind {attribute.kind}; cast it first"
            )
            continue
        value, place = planned
        raw = sf.col(f"raw_{index}")
        missing = raw.isNull()
        if isinstance(found, TEXT_TYPES):
            missing |= sf.trim(raw.cast("string")).isin(markers)
        if isinstance(found, st.FloatType | st.DoubleType):
            missing |= sf.isnan(raw)
        elif place == "float":
            missing |= sf.coalesce(sf.isnan(value), sf.lit(False))
        columns += [
            sf.when(~missing, value).alias(f"value_{index}"),
            missing.alias(f"missing_{index}"),
        ]
        places.append(place)
    if problems:
        raise DataError(*problems)
    return PreparedTable(renamed.select(*columns, *(carried or {})), tuple(places))


def _value_of(
    name: str, attribute: PublishedAttribute, found: st.DataType, *, by_hierarchy: bool
) -> tuple[Column, _Places | None] | None:
    """Return a column's values in a type that compares as the attribute does, and which it is.

    None where the column's type has no such values. Values that cannot be read are null.
    """
    is_text = isinstance(found, TEXT_TYPES)
    is_number = isinstance(found, st.NumericType)
    text = f"trim({name})" if is_text else name
    readable: tuple[type[st.DataType], ...]
    match attribute.kind:
        case "category":
            if isinstance(found, st.ArrayType | st.MapType | st.StructType | st.BinaryType):
                return None
            places: _Places | None = "code" if attribute.rule == "prefix" else None
            value = sf.col(name).cast("string")
            if by_hierarchy and isinstance(found, st.FloatType | st.DoubleType):
                # A hierarchy knows whole numbers without a point: 17, not 17.0.
                number = sf.col(name)
                whole = (sf.rint(number) == number) & (sf.abs(number) < sf.lit(1e15))
                value = sf.coalesce(sf.when(whole, number).cast("bigint").cast("string"), value)
            return sf.btrim(value, sf.lit(_BLANKS)), places
        case "boolean":
            if not (is_text or isinstance(found, st.BooleanType)):
                return None
            return sf.expr(f"try_cast({text} AS boolean)").cast("string"), None
        case "date" | "timestamp":
            readable = (st.DateType, st.TimestampType, st.TimestampNTZType)
            if not (is_text or isinstance(found, readable)):
                return None
            if attribute.kind == "date":
                return sf.expr(f"try_cast({text} AS date)"), "integer"
            target = "timestamp_ntz" if isinstance(found, st.TimestampNTZType) else "timestamp"
            return sf.expr(f"try_cast({text} AS {target})"), "integer"
        case "float":
            if not (is_text or is_number):
                return None
            # As the released values were rounded when they were read.
            own = "float" if attribute.type == "float" else "double"
            return sf.expr(f"try_cast({text} AS {own})").cast("double"), "float"
    if isinstance(found, st.IntegralType):
        return sf.col(name).cast("bigint"), "integer"
    if isinstance(found, st.DecimalType):
        # Spark can be told to allow negative scales: hundreds are whole numbers, too.
        scale = max(found.scale, 0)
        target = f"decimal({_DECIMAL_DIGITS},{scale})"
        return sf.expr(f"try_cast({text} AS {target})"), scale
    if is_number and attribute.rule is not None:
        # Its labels were made from the text.
        return sf.col(name).cast("string").cast("double"), "float"
    if is_number and attribute.kind == "integer":
        return sf.col(name).cast("double"), "float"
    if is_number:
        # By way of the text: 0.1 is one tenth.
        text = f"CAST({name} AS string)"
    elif not is_text:
        return None
    scale = _text_places(attribute.type)
    target = f"decimal({_DECIMAL_DIGITS},{scale})"
    return sf.expr(f"try_cast({text} AS {target})"), scale


def _text_places(arrow_type: str | None) -> int:
    """Return the decimal places that numbers in texts are read with.

    18, unless the released values were decimals that need more of the 38 digits on one side of the
    point.
    """
    declared = _DECIMAL_TYPE.fullmatch(arrow_type or "")
    if declared is None:
        return _TEXT_PLACES
    digits, scale = int(declared[1]), int(declared[2])
    return max(min(max(_TEXT_PLACES, scale), _DECIMAL_DIGITS - (digits - scale)), 0)


# The release: its classes, their regions and where they lie.


def collect_classes(release: DataFrame, attributes: Sequence[PublishedAttribute]) -> pa.Table:
    """Collect the classes of a release by published tuple.

    Parameters
    ----------
    release : DataFrame
        Published records.
    attributes : sequence of PublishedAttribute

    Returns
    -------
    pyarrow.Table
        ``published_<i>_<j>``: j-th column of the i-th attribute; ``records``: the class's;
        ``key``: :func:`class_key` of the tuple.

    Raises
    ------
    DataError
        If the release lacks columns or has more than 1,000,000 classes.

    Notes
    -----
    One job: a pass over the release, with a shuffle of a row a class and task.
    """
    names, columns = [], []
    for index, attribute in enumerate(attributes):
        for place, name in enumerate(attribute.columns):
            if name not in release.columns:
                raise DataError(f"release: lacks the published column {name!r}")
            names.append(f"published_{index}_{place}")
            columns.append(value_of(name, release.schema[name].dataType).alias(names[-1]))
    key = class_key(release, attributes).alias("key")
    grouped = (
        release.select(*columns, key)
        .groupBy(*names)
        .agg(sf.count(sf.lit(1)).alias("records"), sf.first("key").alias("key"))
    )
    classes = collect_arrow(grouped.limit(_MOST_CLASSES + 1))
    if classes.num_rows > _MOST_CLASSES:
        raise DataError(
            f"release: more than {_MOST_CLASSES:,} classes; regions are matched with records for "
            "at most that many, because they travel to every task"
        )
    return classes


def class_key(release: DataFrame, attributes: Sequence[PublishedAttribute]) -> Column:
    """Return a 64-bit hash of the published tuple of a record."""
    types = {field.name: field.dataType for field in release.schema}
    names = [name for attribute in attributes for name in attribute.columns]
    return content_hash(
        [hashable(value_of(name, types[name]), types[name]) for name in names], sf.lit(0)
    )


def hashable(column: Column, data_type: st.DataType) -> Column:
    """Return what a column is hashed by: nested values as text, for hashes skip nulls in them."""
    if isinstance(data_type, st.ArrayType | st.MapType | st.StructType):
        return sf.to_json(sf.struct(column.alias("value")))
    return column


@dataclass(frozen=True)
class _OrderedAxis:
    """Codes of an ordered attribute: its place among the ends of all regions.

    Parameters
    ----------
    ends : ndarray of shape (n,)
        The ends in order, each once: int64, float64, text, or 16 bytes for decimals.
    places : int, "integer", "float" or "code"
        See :class:`PreparedTable`.
    """

    ends: npt.NDArray[Any]
    places: _Places

    @property
    def missing(self) -> int:
        """Code of missing values: after 0 to 2n, where odd codes are ends and even ones between."""
        return 2 * len(self.ends) + 1

    def encode(self, column: pa.Array) -> Integers:
        """Return the code of each value, anything for nulls."""
        if self.places == "float":
            values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        elif self.places == "code":
            lengths = pc.utf8_lpad(pc.cast(pc.utf8_length(column), pa.string()), 6, "0")
            keys = pc.binary_join_element_wise(lengths, column, "").fill_null("")
            values = keys.to_numpy(zero_copy_only=False).astype(np.str_)
        elif isinstance(self.places, int):
            values = _sortable_decimals(column)
        else:
            if pa.types.is_date(column.type):
                column = column.cast(pa.int32())
            values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        codes: Integers = np.searchsorted(self.ends, values, "left")
        codes += np.searchsorted(self.ends, values, "right")
        return codes


@dataclass(frozen=True)
class _CategoryAxis:
    """Codes of a category: 1 for the first of the published values, 0 for values of no region.

    Parameters
    ----------
    values : tuple of str
        All values that a region names.
    """

    values: tuple[str, ...]

    @property
    def missing(self) -> int:
        """Code of missing values."""
        return len(self.values) + 1

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.values, pa.string())

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values}

    def encode(self, column: pa.Array) -> Integers:
        """Return the code of each value, anything for nulls."""
        places = pc.index_in(column.cast(pa.string()), value_set=self._value_set)
        return pc.add(places, 1).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class RegionSearch:
    """Finds the regions of records; travels to the workers.

    Parameters
    ----------
    axes : tuple
        One an attribute: what makes its values codes.
    regions : tuple of ndarray
        What the kernels of :mod:`~anonspark.kernels.region_search` take after the points.
    """

    axes: tuple[_OrderedAxis | _CategoryAxis, ...]
    regions: tuple[npt.NDArray[Any], ...]

    @property
    def classes(self) -> int:
        """Number of regions, in the order of the classes."""
        return len(self.regions[0])

    def points(self, batch: pa.RecordBatch | pa.Table) -> tuple[Codes, npt.NDArray[np.bool_]]:
        """Return codes and whether a value is unreadable, both of shape (rows, d)."""
        codes = np.empty((batch.num_rows, len(self.axes)), np.int32)
        unreadable = np.empty(codes.shape, bool)
        for index, axis in enumerate(self.axes):
            column = batch.column(f"value_{index}")
            missing = np.asarray(batch.column(f"missing_{index}"))
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

        Parameters
        ----------
        points : int32 ndarray of shape (points, d)
        first_points : int64 ndarray of shape (groups + 1,)
        places : tuple of ndarray
            First place of each group, regions of the places, and their room.
        most_pairs : int
        """
        arguments = (points, first_points, *places, most_pairs, *self.regions)
        held, holding, matched = match_groups(*arguments)
        return held, holding, matched


def build_search(
    classes: pa.Table,
    attributes: Sequence[PublishedAttribute],
    prepared: PreparedTable,
    hierarchies: Mapping[str, Leaves],
) -> RegionSearch:
    """Read the regions of all classes and build their tree.

    Parameters
    ----------
    classes : pyarrow.Table
        See :func:`collect_classes`.
    attributes : sequence of PublishedAttribute
    prepared : PreparedTable
        Tells what values are compared as.
    hierarchies : mapping of str to (mapping of str to collection of str)

    Raises
    ------
    DataError
        If labels cannot be read.
    ConfigurationError
        If the release publishes means.
    """
    rows, d = classes.num_rows, len(attributes)
    low = np.empty((rows, d), np.int32)
    high = np.empty((rows, d), np.int32)
    gaps = np.empty((rows, d), np.int32)
    offsets, runs = [0], []
    axes = []
    for index, attribute in enumerate(attributes):
        columns = [
            classes.column(f"published_{index}_{place}") for place in range(len(attribute.columns))
        ]
        # A rule tells of all values, its leaves of those that were released.
        leaves = None if attribute.rule else hierarchies.get(attribute.name)
        places = prepared.places[index]
        rounded = places == "float" and attribute.rule is not None
        # Ends are rounded as the values are.
        read_as = replace(attribute, kind="float") if rounded else attribute
        regions, numbers = read_regions(columns, read_as, leaves)
        axis, sets = _sets_of_codes(regions, places, leaves)
        axes.append(axis)
        own_low, own_high, own_gaps = (np.empty(len(sets), np.int32) for _ in range(3))
        for number, own in enumerate(sets):
            own_low[number], own_high[number], own_gaps[number] = 1, 0, -1
            if own:
                own_low[number], own_high[number] = own[0][0], own[-1][1]
            if len(own) > 1:
                own_gaps[number] = len(offsets) - 1
                runs += own
                offsets.append(len(runs))
        low[:, index], high[:, index] = own_low[numbers], own_high[numbers]
        gaps[:, index] = own_gaps[numbers]
    tree = build_region_tree(low, high)
    return RegionSearch(
        tuple(axes),
        (
            low,
            high,
            gaps,
            np.array(offsets, np.int64),
            np.array(runs, np.int32).reshape(-1, 2),
            *tree,
        ),
    )


_Runs = list[tuple[int, int]]


def _sets_of_codes(
    regions: Sequence[OrderedRegion] | Sequence[CategoryRegion],
    places: _Places | None,
    leaves: Leaves | None,
) -> tuple[_OrderedAxis | _CategoryAxis, list[_Runs]]:
    """Return the axis of an attribute, and each region as runs of its codes."""
    if places is None:
        named = [region for region in regions if isinstance(region, CategoryRegion)]
        return _category_sets(named, leaves)
    ordered = [region for region in regions if isinstance(region, OrderedRegion)]
    return _ordered_sets(ordered, places)


def _category_sets(
    regions: Sequence[CategoryRegion], leaves: Leaves | None
) -> tuple[_CategoryAxis, list[_Runs]]:
    trimmed = [
        None if region.values is None else {value.strip(_BLANKS) for value in region.values}
        for region in regions
    ]
    named = set().union(*(values for values in trimmed if values is not None))
    # In the order of the hierarchy, so that its labels are single runs.
    order: dict[str, None] = {}
    for own in sorted((leaves or {}).values(), key=len, reverse=True)[:1]:
        order.update(dict.fromkeys(value.strip(_BLANKS) for value in own))
    values = [value for value in order if value in named]
    values += sorted(named.difference(order))
    axis = _CategoryAxis(tuple(values))
    codes = {value: code for code, value in enumerate(values, start=1)}
    sets = []
    for region, own_values in zip(regions, trimmed, strict=True):
        if own_values is None:
            own_runs = [(0, axis.missing - 1)]
        else:
            own_runs = [(codes[value], codes[value]) for value in own_values]
        if region.missing:
            own_runs.append((axis.missing, axis.missing))
        sets.append(_joined(own_runs))
    return axis, sets


def _ordered_sets(
    regions: Sequence[OrderedRegion], places: _Places
) -> tuple[_OrderedAxis, list[_Runs]]:
    # Of each region, first and last value that a column of this type can hold in each interval.
    closed: list[list[tuple[Any, Any]] | None] = []
    for region in regions:
        if region.intervals is None:
            closed.append(None)
            continue
        ends_of_intervals = (_closed(interval, places) for interval in region.intervals)
        closed.append([(low, high) for low, high in ends_of_intervals if low <= high])
    ends = sorted({end for own in closed for interval in own or () for end in interval})
    codes = {end: 2 * place + 1 for place, end in enumerate(ends)}
    axis = _OrderedAxis(_sortable(ends, places), places)
    sets = []
    for region, own in zip(regions, closed, strict=True):
        if own is None:
            own_runs = [(0, axis.missing - 1)]
        else:
            own_runs = [(codes[low], codes[high]) for low, high in own]
        if region.missing:
            own_runs.append((axis.missing, axis.missing))
        sets.append(_joined(own_runs))
    return axis, sets


def _joined(runs: _Runs) -> _Runs:
    """Return runs in order, those that touch or overlap as one."""
    joined: _Runs = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _closed(interval: Interval, places: _Places) -> tuple[Any, Any]:
    """Return the first and last value of an interval among the values of a type."""
    if isinstance(interval.low, str) or isinstance(interval.high, str) or places == "code":
        return interval.low, interval.high
    if places == "float":
        return (
            _next_float(interval.low, interval.low_included, math.inf),
            _next_float(interval.high, interval.high_included, -math.inf),
        )
    exponent = 0 if places == "integer" else places
    low, high = _scaled(interval.low, exponent), _scaled(interval.high, exponent)
    first, last = math.ceil(low), math.floor(high)
    first += int(not interval.low_included and first == low)
    last -= int(not interval.high_included and last == high)
    # Ends beyond what the column's type holds bound nothing.
    smallest, largest = (-(2**127), 2**127 - 1)
    if places == "integer":
        smallest, largest = _INT64.min, _INT64.max
    return max(first, smallest), min(last, largest)


def _scaled(value: Number, places: int) -> Any:
    """Return an exact number times a power of ten, exact."""
    if isinstance(value, int):
        return value * 10**places
    return Fraction(value) * 10**places


def _next_float(value: Number, included: bool, direction: float) -> float:
    """Return the float64 nearest to a number that is not before it, seen in a direction."""
    nearest = float(value)
    before = nearest < value if direction > 0 else nearest > value
    if before or (not included and nearest == value):
        nearest = math.nextafter(nearest, direction)
    return nearest + 0.0


def _sortable(ends: Sequence[Any], places: _Places) -> npt.NDArray[Any]:
    if places == "float":
        return np.array(ends, np.float64)
    if places == "code":
        return np.array(ends, np.str_)
    if places == "integer":
        return np.array(ends, np.int64)
    words = [(end + 2**127).to_bytes(16, "big") for end in ends]
    return np.frombuffer(b"".join(words), "S16")


def _sortable_decimals(column: pa.Array) -> npt.NDArray[Any]:
    """Return 128-bit integers as 16 bytes whose order is theirs."""
    zero = pa.scalar(0, pa.decimal128(_DECIMAL_DIGITS, 0)).cast(column.type)
    column = column.fill_null(zero)
    words = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    swapped = np.empty((len(column), 2), ">u8")
    swapped[:, 0] = words[:, 1] ^ np.uint64(2**63)
    swapped[:, 1] = words[:, 0]
    return swapped.reshape(-1).view("S16")


def require_all_read(
    subject: str, attributes: Sequence[PublishedAttribute], unreadable: Sequence[int]
) -> None:
    """Check that all values of a table were read.

    Parameters
    ----------
    subject : str
        What the message calls the table.
    attributes : sequence of PublishedAttribute
    unreadable : sequence of int
        Values of each attribute that could not be read.

    Raises
    ------
    DataError
        If there are any: how many of which attribute.
    """
    problems = [
        f"{subject}: {count:,} values of column {attribute.name!r} cannot be read as "
        f"{attribute.kind}; correct them, or name those that mean missing"
        for attribute, count in zip(attributes, unreadable, strict=True)
        if count
    ]
    if problems:
        raise DataError(*problems)
