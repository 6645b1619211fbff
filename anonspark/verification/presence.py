"""How sure an attacker can be that somebody of a population is in a release (delta-presence).

Nergiz, Atzori and Clifton (2007): the attacker knows the quasi-identifiers of a population, of
which the released people are a part. A published class C has a region: the values that its
published tuple leaves possible. Of the population's records in the region, |C| are in the class:
its share is |C| / records in the region. The presence of a record of the population is the sum of
the shares of all classes whose region holds it, at most 1: the probability that it is in the
release, for an attacker who looks at every class by itself. Where regions do not overlap this is
exact; where they do, it is an estimate, for nobody is in two classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

from anonspark.columns import quoted
from anonspark.errors import DataError
from anonspark.kernels.region_search import build_region_tree, count_points, sum_shares
from anonspark.verification.regions import (
    CategoryRegion,
    Interval,
    Leaves,
    Number,
    OrderedRegion,
    PublishedAttribute,
    read_regions,
    require_readable,
)

__all__ = ["Presence", "RegionCounts", "count_regions", "measure_presence"]

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Figures = npt.NDArray[np.float64]

# What the values of an ordered attribute are compared as, see _Population.
_Places = int | Literal["float", "code"]

_MOST_CLASSES = 1_000_000

# Sums of shares are rounded: a record exactly at a bound is within it.
_TOLERANCE = 1e-12

_DECIMAL_DIGITS = 38
_TEXT_PLACES = 18

_TEXT_TYPES = (st.StringType, st.VarcharType, st.CharType)

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class RegionCounts:
    """How many records share each published class's region.

    Parameters
    ----------
    released : int64 ndarray of shape (classes,)
        Records of the class.
    population : int64 ndarray of shape (classes,)
        Records of the population in its region.
    """

    released: Integers
    population: Integers


@dataclass(frozen=True)
class Presence:
    """What an attacker learns of who is in a release.

    Parameters
    ----------
    smallest, largest : float
        Of the population's records, the smallest and the largest probability to be in
        the release, in [0, 1]; 0 where the population is empty.
    population : int
        Records of the population.
    out_of_bounds : int
        Of them, those whose probability is below the lower or above the upper bound asked for.
    classes : int
        Published classes.
    classes_not_covered : int
        Of them, those that hold more records than the population has in their region. Where there
        is one, the population is not a superset of the released people, and the other figures say
        nothing of who is in the release.
    counts : RegionCounts
        What the figures were made of.
    """

    smallest: float
    largest: float
    population: int
    out_of_bounds: int
    classes: int
    classes_not_covered: int
    counts: RegionCounts = field(compare=False, repr=False)

    @property
    def holds(self) -> bool:
        """Whether the release is delta-present in a population that covers it."""
        return not self.out_of_bounds and not self.classes_not_covered


def measure_presence(
    release: DataFrame,
    attributes: Sequence[PublishedAttribute],
    population: DataFrame,
    hierarchies: Mapping[str, Leaves] | None = None,
    *,
    lower: float = 0.0,
    upper: float = 1.0,
    missing_markers: Iterable[str] = (),
) -> Presence:
    """Bound the probability that each record of a population is in a release.

    Parameters
    ----------
    release : DataFrame
        Published records.
    attributes : sequence of PublishedAttribute
        Its quasi-identifiers, see :func:`~anonspark.verification.regions.published_attributes`.
    population : DataFrame
        Raw records, with a column of each attribute's name. Numbers and times are compared by
        value, whatever types the two tables have; texts exactly, without blanks at their ends.
    hierarchies : mapping of str to (mapping of str to collection of str), or None
        Of an attribute that was generalized by the hierarchy of a file: the values, as text, that
        each label stands for. Labels of rules speak for themselves.
    lower, upper : float
        delta_min and delta_max, both in [0, 1]; a probability equal to one of them is within.
    missing_markers : iterable of str
        Texts of the population that mean missing, as ``input.missing_markers``; null and NaN do,
        always.

    Returns
    -------
    Presence

    Raises
    ------
    ConfigurationError
        If the release publishes means.
    DataError
        If the release has more than 1,000,000 classes, its labels cannot be read, or the
        population lacks columns or has values that cannot be read.

    Notes
    -----
    Three jobs: one pass over the release, with one shuffle of a row a class and task, and two
    passes over the population's quasi-identifiers, with one shuffle of a count a class and task.
    The published classes and their counts are collected; they and their tree go to every task. No
    record of the population reaches the driver. A record takes time in proportion to the logarithm
    of the classes and to the regions that hold it.
    """
    prepared, search, found = _count(
        release, attributes, population, hierarchies or {}, list(missing_markers)
    )
    sizes, counts = found.released, found.population
    shares = np.divide(sizes, counts, out=np.zeros(len(sizes)), where=counts > 0)
    row = (
        prepared.records.mapInArrow(_BoundPresence(search, shares, lower, upper), _BOUNDS)  # type: ignore[arg-type]
        .agg(
            sf.sum("rows").alias("rows"),
            sf.min("smallest").alias("smallest"),
            sf.max("largest").alias("largest"),
            sf.sum("outside").alias("outside"),
        )
        .collect()[0]
    )
    return Presence(
        smallest=row["smallest"] or 0.0,
        largest=row["largest"] or 0.0,
        population=row["rows"] or 0,
        out_of_bounds=row["outside"] or 0,
        classes=len(sizes),
        classes_not_covered=int((counts < sizes).sum()),
        counts=found,
    )


def count_regions(
    release: DataFrame,
    attributes: Sequence[PublishedAttribute],
    population: DataFrame,
    hierarchies: Mapping[str, Leaves] | None = None,
    *,
    missing_markers: Iterable[str] = (),
) -> RegionCounts:
    """Count the records of a population in the region of every published class.

    Parameters and errors: :func:`measure_presence`.

    Notes
    -----
    Two jobs: one pass over the release, and one over the population's quasi-identifiers.
    """
    markers = list(missing_markers)
    return _count(release, attributes, population, hierarchies or {}, markers)[2]


def _count(
    release: DataFrame,
    attributes: Sequence[PublishedAttribute],
    population: DataFrame,
    hierarchies: Mapping[str, Leaves],
    missing_markers: Sequence[str],
) -> tuple[_Population, _Search, RegionCounts]:
    require_readable(attributes)
    prepared = _prepared_population(population, attributes, list(missing_markers))
    classes = _published_classes(release, attributes)
    search = _search(classes, attributes, prepared, hierarchies)
    counts = _population_counts(prepared, search, attributes)
    return prepared, search, RegionCounts(classes.column("records").to_numpy(), counts)


# The population: its values as numbers or texts.


@dataclass(frozen=True)
class _Population:
    """The population's quasi-identifiers.

    Parameters
    ----------
    records : DataFrame
        ``value_<i>`` and ``missing_<i>`` of each attribute; neither where a value is unreadable.
    places : tuple of (int, "float", "code" or None)
        What ``value_<i>`` is: a decimal of so many places, where 0 is any integer, a float64, a
        code that may be masked, or (None) any other text.
    """

    records: DataFrame
    places: tuple[_Places | None, ...]


def _prepared_population(
    population: DataFrame, attributes: Sequence[PublishedAttribute], markers: list[str]
) -> _Population:
    types = {field.name: field.dataType for field in population.schema}
    lacking = [attribute.name for attribute in attributes if attribute.name not in types]
    if lacking:
        raise DataError(
            f"population: lacks the columns {', '.join(map(repr, lacking))}; it needs every "
            "quasi-identifier of the release, under its name"
        )
    renamed = population.select(
        *(
            sf.col(quoted(attribute.name)).alias(f"raw_{index}")
            for index, attribute in enumerate(attributes)
        )
    )
    columns: list[Column] = []
    places = []
    problems = []
    for index, attribute in enumerate(attributes):
        found = types[attribute.name]
        planned = _value_of(f"raw_{index}", attribute, found)
        if planned is None:
            problems.append(
                f"population: column {attribute.name!r} has type {found.simpleString()}, which "
                f"cannot be compared with values of kind {attribute.kind}; cast it first"
            )
            continue
        value, place = planned
        raw = sf.col(f"raw_{index}")
        missing = raw.isNull()
        if isinstance(found, _TEXT_TYPES):
            missing |= sf.trim(raw.cast("string")).isin([marker.strip() for marker in markers])
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
    return _Population(renamed.select(*columns), tuple(places))


def _value_of(
    name: str, attribute: PublishedAttribute, found: st.DataType
) -> tuple[Column, _Places | None] | None:
    """Return a column's values in a type that compares as the attribute does, and which it is.

    None where the column's type has no such values. Values that cannot be read are null.
    """
    is_text = isinstance(found, _TEXT_TYPES)
    is_number = isinstance(found, st.NumericType)
    text = f"trim({name})" if is_text else name
    readable: tuple[type[st.DataType], ...]
    match attribute.kind:
        case "category":
            if isinstance(found, st.ArrayType | st.MapType | st.StructType | st.BinaryType):
                return None
            places: _Places | None = "code" if attribute.rule == "prefix" else None
            return sf.trim(sf.col(name).cast("string")), places
        case "boolean":
            if not (is_text or isinstance(found, st.BooleanType)):
                return None
            return sf.expr(f"try_cast({text} AS boolean)").cast("string"), None
        case "date" | "timestamp":
            readable = (st.DateType, st.TimestampType, st.TimestampNTZType)
            if not (is_text or isinstance(found, readable)):
                return None
            if attribute.kind == "date":
                return sf.expr(f"try_cast({text} AS date)"), 0
            target = "timestamp_ntz" if isinstance(found, st.TimestampNTZType) else "timestamp"
            return sf.expr(f"try_cast({text} AS {target})"), 0
        case "float":
            if not (is_text or is_number):
                return None
            # As the released values were rounded when they were read.
            own = "float" if attribute.type == "float" else "double"
            return sf.expr(f"try_cast({text} AS {own})").cast("double"), "float"
    if isinstance(found, st.IntegralType):
        return sf.col(name).cast("bigint"), 0
    if isinstance(found, st.DecimalType):
        return sf.col(name).cast(f"decimal({_DECIMAL_DIGITS},{found.scale})"), found.scale
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
    return sf.expr(f"try_cast({text} AS decimal({_DECIMAL_DIGITS},{_TEXT_PLACES}))"), _TEXT_PLACES


# The release: its classes, their regions and where they lie.


def _published_classes(release: DataFrame, attributes: Sequence[PublishedAttribute]) -> pa.Table:
    """Collect the classes by published tuple: ``published_<i>_<j>`` and ``records``."""
    names, columns = [], []
    for index, attribute in enumerate(attributes):
        for place, name in enumerate(attribute.columns):
            if name not in release.columns:
                raise DataError(f"release: lacks the published column {name!r}")
            names.append(f"published_{index}_{place}")
            columns.append(sf.col(quoted(name)).alias(names[-1]))
    grouped = release.select(*columns).groupBy(*names).agg(sf.count(sf.lit(1)).alias("records"))
    classes = _collect(grouped.limit(_MOST_CLASSES + 1))
    if classes.num_rows > _MOST_CLASSES:
        raise DataError(
            f"release: more than {_MOST_CLASSES:,} classes; delta-presence is measured for at most "
            "that many, because their regions travel to every task"
        )
    return classes


def _collect(table: DataFrame) -> pa.Table:
    if hasattr(table, "toArrow"):
        return table.toArrow()
    # Before Spark 4.
    return pa.Table.from_batches(table._collect_as_arrow())  # type: ignore[operator]


@dataclass(frozen=True)
class _OrderedAxis:
    """Codes of an ordered attribute: its place among the ends of all regions.

    Parameters
    ----------
    ends : ndarray of shape (n,)
        The ends in order, each once: int64, float64, text, or 16 bytes for decimals.
    places : int, "float" or "code"
        See :class:`_Population`.
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
        elif pa.types.is_decimal(column.type):
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
class _Search:
    """Finds the regions of records; travels to the workers.

    Parameters
    ----------
    axes : tuple of _OrderedAxis or _CategoryAxis
        One an attribute.
    regions : tuple of ndarray
        What the kernels of :mod:`~anonspark.kernels.region_search` take after the points.
    """

    axes: tuple[_OrderedAxis | _CategoryAxis, ...]
    regions: tuple[npt.NDArray[Any], ...]

    def points(self, batch: pa.RecordBatch) -> tuple[Codes, npt.NDArray[np.bool_]]:
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

    def sum_shares(self, points: Codes, shares: Figures) -> Figures:
        """Return the sum of the shares of all regions of each point."""
        arguments = (points, *self.regions, shares)
        sums: Figures = sum_shares(*arguments)
        return sums


def _search(
    classes: pa.Table,
    attributes: Sequence[PublishedAttribute],
    population: _Population,
    hierarchies: Mapping[str, Leaves],
) -> _Search:
    """Read the regions of all classes and build their tree."""
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
        places = population.places[index]
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
    return _Search(
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
        None if region.values is None else {value.strip(" ") for value in region.values}
        for region in regions
    ]
    named = set().union(*(values for values in trimmed if values is not None))
    # In the order of the hierarchy, so that its labels are single runs.
    order: dict[str, None] = {}
    for own in sorted((leaves or {}).values(), key=len, reverse=True)[:1]:
        order.update(dict.fromkeys(value.strip(" ") for value in own))
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
    low, high = _scaled(interval.low, places), _scaled(interval.high, places)
    first, last = math.ceil(low), math.floor(high)
    first += int(not interval.low_included and first == low)
    last -= int(not interval.high_included and last == high)
    # Ends beyond what the column's type holds bound nothing.
    smallest, largest = (_INT64.min, _INT64.max) if not places else (-(2**127), 2**127 - 1)
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
    if not places:
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


# The two passes over the population.


_COUNTS = "class bigint, records bigint"
_BOUNDS = "rows bigint, smallest double, largest double, outside bigint"


def _population_counts(
    population: _Population, search: _Search, attributes: Sequence[PublishedAttribute]
) -> Integers:
    """Count the population's records in each region; refuse values that cannot be read."""
    counted = _collect(
        population.records.mapInArrow(_CountRecords(search), _COUNTS)  # type: ignore[arg-type]
        .groupBy("class")
        .agg(sf.sum("records").alias("records"))
    )
    numbers: Integers = counted.column("class").to_numpy()
    records: Integers = counted.column("records").to_numpy()
    problems = [
        f"population: {count:,} values of column {attributes[-1 - number].name!r} cannot be read "
        f"as {attributes[-1 - number].kind}; correct them, or name those that mean missing"
        for number, count in sorted(zip(numbers.tolist(), records.tolist(), strict=True))
        if number < 0
    ]
    if problems:
        raise DataError(*reversed(problems))
    counts = np.zeros(len(search.regions[0]), np.int64)
    counts[numbers] = records
    return counts


@dataclass(frozen=True)
class _CountRecords:
    """Counts a task's records in each region; unreadable values of attribute i as -1 - i."""

    search: _Search

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(len(self.search.regions[0]), np.int64)
        unreadable = np.zeros(len(self.search.axes), np.int64)
        for batch in batches:
            codes, bad = self.search.points(batch)
            self.search.count(codes, counts)
            unreadable += bad.sum(axis=0)
        numbers = np.concatenate([-1 - np.arange(len(unreadable)), np.arange(len(counts))])
        records = np.concatenate([unreadable, counts])
        some = records > 0
        yield pa.RecordBatch.from_arrays(
            [pa.array(numbers[some]), pa.array(records[some])], names=["class", "records"]
        )


@dataclass(frozen=True)
class _BoundPresence:
    """Bounds the probability of a task's records; one row a task."""

    search: _Search
    shares: Figures
    lower: float
    upper: float

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, smallest, largest, outside = 0, math.inf, -math.inf, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            codes, _ = self.search.points(batch)
            presence = np.minimum(self.search.sum_shares(codes, self.shares), 1.0)
            rows += len(presence)
            smallest = min(smallest, float(presence.min()))
            largest = max(largest, float(presence.max()))
            below, above = presence < self.lower - _TOLERANCE, presence > self.upper + _TOLERANCE
            outside += int((below | above).sum())
        if rows:
            yield pa.RecordBatch.from_pylist(
                [{"rows": rows, "smallest": smallest, "largest": largest, "outside": outside}]
            )
