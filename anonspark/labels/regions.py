"""Published quasi-identifiers read back as regions: the values that a label leaves possible.

Labels of this package are read exactly: :mod:`anonspark.core.labels` and
:mod:`anonspark.core.hierarchies.hierarchy` backwards. Of other tools' labels those are read whose
meaning is plain: half-open intervals (``[20-25[``, ``[20, 25)``), intervals without brackets, and
``*``.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.grids import Grid, bound_numbers, gap, read_grid
from anonspark.core.labels import Kind, open_marks, unmarked_ends
from anonspark.engine.values.value_texts import coded_values, plain
from anonspark.errors import ConfigurationError, DataError
from anonspark.labels.grammar import DATE, DIGITS, EXPONENT, MINUTE, NUMBER, SECOND, SIGN, YEAR
from anonspark.release.derived_manifest import columns_of_attribute
from anonspark.release.manifest import Manifest

Number = int | float | Decimal
"""Value of an ordered attribute: dates are days, timestamps microseconds since 1970-01-01 UTC."""

Rule = Literal["intervals", "prefix", "keep", "calendar"]
"""The rule of a hierarchy. Its labels also describe values that the release does not hold."""

Leaves = Mapping[str, Collection[str]]
"""A hierarchy: the values that each of its labels stands for, as text."""

_MISSING = "missing"
_OR_MISSING = " or missing"
_EVERYTHING = "*"

_DAYS_OF_400_YEARS = 146_097

_INTEGER = re.compile(f"{SIGN}{DIGITS}")
_NUMBER = f"{SIGN}(?:{NUMBER}|[.]{DIGITS}{EXPONENT})"
_DATE = SIGN + DATE
_TIMESTAMP = rf"{_DATE}(?:[ T](?:{MINUTE}|{SECOND}(?:[.][0-9]{{1,6}})?))?"
_PERIOD = re.compile(
    rf"(?P<year>{SIGN}{YEAR})(?:-Q(?P<quarter>[1-4])|-(?P<month>[0-9]{{2}})|(?P<decade>(?<=0)s))?"
)
_FROM = re.compile(rf"(?P<low>{_NUMBER})\+")
_MASKED = re.compile(r"(?P<prefix>[^*]*)(?P<mask>\**)")
_MEMBER = re.compile(r'[^{}\[\]",]+')


def _interval_pattern(value: str, dividers: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<left>[\[(\]]?)\s*(?P<low>{value})\s*(?:{dividers})\s*(?P<high>{value})\s*"
        rf"(?P<right>[\])\[]?)"
    )


_NUMBERS = (re.compile(_NUMBER), _interval_pattern(_NUMBER, r"-|/|,|;|\.\."))
_DATES = (re.compile(_DATE), _interval_pattern(_DATE, r"/|,|;|\.\."))
_TIMESTAMPS = (re.compile(_TIMESTAMP), _interval_pattern(_TIMESTAMP, r"/|,|;|\.\."))

# Whether an end belongs to the interval: `]20-30[` and `(20-30)` hold neither.
_LEFT_INCLUDED = {"[": True, "": True, "(": False, "]": False}
_RIGHT_INCLUDED = {"]": True, "": True, ")": False, "[": False}


class UnreadableLabelError(ValueError):
    """A label that is not one of its kind. Holds no value of the data."""


class NoSuchMomentError(UnreadableLabelError):
    """A label that is written as a day or time, of which there is none."""


@dataclass(frozen=True)
class Interval:
    """All values from one to another, not empty.

    The ends of masked codes are the keys that :func:`code_key` makes.
    """

    low: Number | str
    high: Number | str
    low_included: bool = True
    high_included: bool = True


@dataclass(frozen=True)
class OrderedRegion:
    """The possible values of a number, date, timestamp or masked code in a class.

    Intervals hold the present values, in any order, overlapping or not. None is all values.
    """

    intervals: tuple[Interval, ...] | None
    missing: bool

    @property
    def is_everything(self) -> bool:
        """Whether any present value is possible."""
        return self.intervals is None


@dataclass(frozen=True)
class CategoryRegion:
    """The possible values of a category or boolean in a class.

    Values are the present ones, sorted, each once. None is all values.
    """

    values: tuple[str, ...] | None
    missing: bool

    @property
    def is_everything(self) -> bool:
        """Whether any present value is possible."""
        return self.values is None


Region = OrderedRegion | CategoryRegion


@dataclass(frozen=True)
class PublishedAttribute:
    """A quasi-identifier and the columns that describe it.

    Parameters
    ----------
    name : str
        Of the attribute.
    kind : Kind
        What its values are.
    style : str
        ``output.style`` of the release.
    columns : tuple of str
        Published columns: ``(name,)``, or lowest and highest value and, perhaps, whether values
        are missing.
    type : str or None
        Arrow type of the raw column, as the manifest writes it. ``float`` numbers have 32 bits.
    rule : Rule or None
        What made its hierarchy: ``intervals`` goes with a number as kind, ``calendar`` with
        ``date``, ``prefix`` and ``keep`` with ``category``.
    weight : float
        What its loss counts.
    ends : tuple of Fraction, or None
        Ends of the declared range: numbers, days, microseconds. None for the original's range.
    grid : Grid or None
        Where ranges end.
    bottom, top : Fraction or None
        Values from here on, downwards and upwards, are one.

    Examples
    --------
    >>> PublishedAttribute("zip", "category", "interval", ("zip",), rule="prefix").is_code
    True
    """

    name: str
    kind: Kind
    style: str
    columns: tuple[str, ...]
    type: str | None = None
    rule: Rule | None = None
    weight: float = 1.0
    ends: tuple[Fraction, Fraction] | None = None
    grid: Grid | None = None
    bottom: Fraction | None = None
    top: Fraction | None = None

    @property
    def is_category(self) -> bool:
        """Whether its regions are sets of texts."""
        return self.kind in ("category", "boolean") and self.rule is None

    def encoding(self, kind: Kind, arrow_type: pa.DataType) -> QuasiIdentifier:
        """Return how values, as some kind, become lines of its grid."""
        grid = None if self.grid is None else replace(self.grid, kind=kind)
        scale = arrow_type.scale if kind == "decimal" else 0
        attribute = QuasiIdentifier(self.name, kind, arrow_type, 0, -1, scale=scale, grid=grid)
        return replace(attribute, bottom=self.bottom, top=self.top)

    def strip(self, value: Fraction, *, before: bool = False) -> tuple[Number, Number]:
        """Return the first and last value of the strip of a grid with a value, or of the one below.

        Without a grid a strip is a single value.

        >>> PublishedAttribute("age", "integer", "interval", ("age",)).strip(Fraction(17))
        (17, 17)
        """
        is_decimal = self.kind == "decimal"
        scaled = self.encoding(self.kind, pa.decimal128(38, 38) if is_decimal else pa.int64())
        # The codes of decimals may have more than 64 bits.
        code_type = object if is_decimal else np.int64
        # A range from 0, if no end has a gap, may be one of the strip behind 0.
        is_next_strip = value == 0 and scaled.zero_is_strip and gap(self.kind) == 0
        step = -1 if before else int(is_next_strip)
        strip = scaled.coarsened(np.array([scaled.code_of(value) + step], code_type))
        ends = [scaled.value_of(int(end[0])) for end in (scaled.first(strip), scaled.last(strip))]
        first, last = (
            float(end)
            if self.kind == "float"
            else int(end)
            if end.denominator == 1
            # With 18 decimals, as many as codes have.
            else Decimal(end.numerator) / Decimal(end.denominator)
            for end in ends
        )
        return first, last

    @property
    def is_code(self) -> bool:
        """Whether its values are codes of which a rule hides the last characters."""
        return self.rule in ("prefix", "keep")

    @property
    def is_mean(self) -> bool:
        """Whether means are published, which say nothing of a single value."""
        return self.style == "mean" and not self.is_category and self.rule is None


def published_attributes(manifest: Manifest) -> tuple[PublishedAttribute, ...]:
    """Return the quasi-identifiers of a release, as its manifest describes them.

    Reads ``configuration.output.style``, the rules of hierarchies in ``configuration.attributes``,
    ``published.quasi_identifiers`` and ``published.quasi_identifier_columns``. Raises DataError if
    the columns are not those of the quasi-identifiers, or a range is unreadable.
    """
    style, attributes, listed = manifest.style, [], manifest.quasi_identifier_columns
    for described in manifest.quasi_identifiers:
        name = str(described["name"])
        columns = columns_of_attribute(name, described["kind"], style, manifest.missing)
        if columns != listed[: len(columns)]:
            raise DataError(f"manifest.json: lacks the published columns of {name!r}")
        del listed[: len(columns)]
        configured = manifest.attributes.get(name) or {}
        rule = _rule_of(configured.get("hierarchy"))
        kind = KIND_OF_RULE[rule] if rule else described["kind"]
        data_type = None if rule else described.get("type")
        attributes.append(
            PublishedAttribute(
                name,
                kind,
                style,
                tuple(columns),
                data_type,
                rule,
                float(configured.get("weight", 1.0)),
                _declared_ends(name, configured.get("range"), kind, data_type),
                *_coarsening(described, configured, kind, data_type),
            )
        )
    return tuple(attributes)


def _declared_ends(
    name: str, bounds: Any, kind: Kind, data_type: str | None
) -> tuple[Fraction, Fraction] | None:
    """Return the ends of a declared range, or None without a range and for texts.

    >>> _declared_ends("age", [0, 120], "integer", "int64")
    (Fraction(0, 1), Fraction(120, 1))
    """
    if bounds is None or kind in ("category", "boolean"):
        return None
    try:
        low, high = bound_numbers(kind, bounds, single=data_type == "float")
    except ValueError as error:
        raise DataError(
            f"manifest.json: configuration.attributes.{name}.range is none of a {kind}"
        ) from error
    return low, high


def _coarsening(
    described: Mapping[str, Any], configured: Mapping[str, Any], kind: Kind, data_type: str | None
) -> tuple[Grid | None, Fraction | None, Fraction | None]:
    """Return the grid, and the ends below and above which all values are one."""
    name, step = described["name"], described.get("grid")
    keys = ("bottom", "top")
    try:
        bottom, top = (
            None
            if configured.get(key) is None
            else bound_numbers(kind, [configured[key]], single=data_type == "float")[0]
            for key in keys
        )
        grid = None if step is None else read_grid(step, kind)
        if grid is not None and data_type == "float":
            grid = replace(grid, single=True)
        return grid, bottom, top
    except ValueError as error:
        raise DataError(
            f"manifest.json: the grid, bottom or top of {name!r} is none of a {kind}"
        ) from error


KIND_OF_RULE: dict[Rule, Kind] = {
    "intervals": "decimal",
    "prefix": "category",
    "keep": "category",
    "calendar": "date",
}
"""The type of the values of a hierarchy by rule."""


def _rule_of(hierarchy: object) -> Rule | None:
    """Return the rule that a configured hierarchy names, or None for a file or no hierarchy.

    >>> _rule_of({"prefix": [3]}), _rule_of("regions.csv")
    ('prefix', None)
    """
    if not isinstance(hierarchy, Mapping):
        return None
    return next((rule for rule in KIND_OF_RULE if hierarchy.get(rule) is not None), None)


class _Level(Protocol):
    @property
    def starts(self) -> Sequence[int]: ...

    @property
    def labels(self) -> Sequence[str]: ...


class _Hierarchy(Protocol):
    @property
    def leaves(self) -> Sequence[str]: ...

    @property
    def levels(self) -> Sequence[_Level]: ...


def leaves_by_label(hierarchy: _Hierarchy) -> dict[str, Sequence[str]]:
    """Return the leaves, in tree order, that each label of a hierarchy stands for.

    ``hierarchy`` may be anything with ``leaves`` and ``levels``. Leaves stand for themselves.

    >>> from types import SimpleNamespace as Tree
    >>> levels = [Tree(starts=[0, 2], labels=["few", "many"])]
    >>> leaves_by_label(Tree(leaves=["a", "b", "c"], levels=levels))["few"]
    ['a', 'b']
    """
    labels: dict[str, Sequence[str]] = {leaf: (leaf,) for leaf in hierarchy.leaves}
    for level in hierarchy.levels:
        bounds = pairwise([*level.starts, len(hierarchy.leaves)])
        for label, (start, stop) in zip(level.labels, bounds, strict=True):
            labels[label] = hierarchy.leaves[start:stop]
    return labels


def require_readable(attributes: Iterable[PublishedAttribute]) -> None:
    """Check that the style of a release shows the region of each class.

    Raises ConfigurationError for means, which do not show the other values of a class.

    >>> require_readable([PublishedAttribute("age", "integer", "interval", ("age",))])
    """
    names = [attribute.name for attribute in attributes if attribute.is_mean]
    if names:
        raise ConfigurationError(
            f"output.style: 'mean' hides the regions of {', '.join(map(repr, names))}, so that "
            "nothing can be matched with them. Use 'interval' or 'bounds'"
        )


def read_label(
    label: str, attribute: PublishedAttribute, leaves: Leaves | None = None
) -> OrderedRegion | CategoryRegion:
    """Read one label as the region of values that it stands for.

    ``leaves`` are the values of each label of the attribute's hierarchy, which win over other
    readings. ``*`` is every present value, and without a hierarchy missing ones as well, because a
    suppressed value looks like a category ``*``. Raises UnreadableLabelError for any other text.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> region = read_label("[17-25[ or missing", age)
    >>> region.intervals, region.missing
    ((Interval(low=17, high=25, low_included=True, high_included=False),), True)
    """
    present, missing = label, False
    if not attribute.is_category or leaves is not None:
        present, missing = label.removesuffix(_OR_MISSING), label.endswith(_OR_MISSING)
    if attribute.rule is None and leaves is None and present == _EVERYTHING:
        missing = True
    if present == _MISSING:
        return CategoryRegion((), True) if attribute.is_category else OrderedRegion((), True)
    if not attribute.is_category:
        is_all = present == _EVERYTHING
        intervals = None if is_all else _intervals(present.strip(), attribute, leaves)
        return OrderedRegion(intervals, missing)
    values, in_set = _category_values(present, leaves)
    return CategoryRegion(values, missing or in_set)


def read_regions(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    attribute: PublishedAttribute,
    leaves: Leaves | None = None,
    *,
    means: bool = False,
) -> tuple[list[OrderedRegion] | list[CategoryRegion], Integers]:
    """Read the published columns of a quasi-identifier: its regions, and which of them a row has.

    ``columns`` are those of ``attribute.columns``: labels, sets (lists of texts, null for missing),
    values of their own type, or bounds. The regions are different ones, and that of a row is an
    index, int64 (rows,). ``leaves`` are as in :func:`read_label`. With ``means`` a mean is read as
    a single value. Each different label is read once, in Python. Raises DataError with the number
    of labels that cannot be read, and ConfigurationError as :func:`require_readable` does.

    >>> sex = PublishedAttribute("sex", "category", "interval", ("sex",))
    >>> regions, numbers = read_regions([pa.array(["f", "{f, m}", "f"])], sex)
    >>> [region.values for region in regions], numbers.tolist()
    ([('f',), ('f', 'm')], [0, 1, 0])
    """
    if not means:
        require_readable([attribute])
    rows, numbers = distinct_rows(columns)
    cells = list(zip(*(_plain_values(row_values, attribute) for row_values in rows), strict=True))
    read = _cell_reader(rows, attribute, leaves)
    regions: list[Any] = []
    unreadable = 0
    for cell in cells:
        try:
            regions.append(read(cell))
        except UnreadableLabelError:
            unreadable += 1
    if unreadable:
        raise DataError(
            f"release: {unreadable:,} of {len(cells):,} different entries of the published "
            f"column{'s' if len(columns) > 1 else ''} {', '.join(map(repr, attribute.columns))} "
            f"cannot be read as values of kind {attribute.kind}. If they are labels of a "
            "hierarchy, name it"
        )
    return regions, numbers


def distinct_rows(
    columns: Sequence[pa.Array | pa.ChunkedArray],
) -> tuple[list[pa.Array], Integers]:
    """Return the different rows of some columns, and which of them each row is, int64 (rows,).

    Columns may be dictionaries, those returned are not.

    >>> rows, numbers = distinct_rows([pa.array([3, 1, 3]), pa.array(["a", "b", "a"])])
    >>> [column.to_pylist() for column in rows], numbers.tolist()
    ([[3, 1], ['a', 'b']], [0, 1, 0])
    """
    if len(columns) == 1 and not pa.types.is_nested(columns[0].type):
        encoded = encoded_column(columns[0])
        return [encoded.dictionary], encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    arrays = [plain(column) for column in columns]
    numbers = np.zeros(len(arrays[0]), np.int64)
    for array in arrays:
        values = encoded_column(_set_names(array) if pa.types.is_nested(array.type) else array)
        codes = values.indices.to_numpy(zero_copy_only=False)
        # Numbered anew with each column: a product of their sizes may be beyond 64 bits.
        numbers = numbers * max(1, len(values.dictionary)) + codes
        _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
    return [array.take(pa.array(first)) for array in arrays], numbers


def encoded_column(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Encode a column as a dictionary, with null as one of its values.

    >>> encoded_column(pa.array(["a", None, "a"])).indices.to_pylist()
    [0, 1, 0]
    """
    if pa.types.is_dictionary(column.type) and not column.null_count:
        return coded_values(column)
    return plain(column).dictionary_encode(null_encoding="encode")


def _set_names(sets: pa.ListArray) -> pa.Array:
    """Return a text for each set of texts, the same for equal ones, and null for null."""
    members = sets.flatten().dictionary_encode(null_encoding="encode").indices
    lengths = pc.fill_null(pc.list_value_length(sets), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), members.cast(pa.string()))
    return pc.if_else(sets.is_valid(), pc.binary_join(lists, ","), pa.scalar(None, pa.string()))


def _plain_values(values: pa.Array, attribute: PublishedAttribute) -> list[Any]:
    """Return dates as days and timestamps as microseconds, all others unchanged."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    elif attribute.is_category and not pa.types.is_nested(values.type):
        values = values.cast(pa.string())
    return list(values.to_pylist())


def _cell_reader(
    arrays: Sequence[pa.Array], attribute: PublishedAttribute, leaves: Leaves | None
) -> Callable[[tuple[Any, ...]], OrderedRegion | CategoryRegion]:
    """Return the function that reads one row of the published columns."""
    if len(arrays) > 1 and attribute.columns[0] != attribute.name:
        return lambda cell: _opened(_read_bounds(*cell), attribute)
    if pa.types.is_nested(arrays[0].type):
        if attribute.is_category:
            return lambda cell: _set_region(cell[0], leaves)
        return lambda cell: _ordered_set_region(cell[0], attribute, leaves)
    if pa.types.is_string(arrays[0].type) or pa.types.is_large_string(arrays[0].type):
        missing = CategoryRegion((), True) if attribute.is_category else OrderedRegion((), True)
        return lambda cell: missing if cell[0] is None else read_label(cell[0], attribute, leaves)
    if attribute.is_category:
        return lambda cell: (
            CategoryRegion((), True) if cell[0] is None else CategoryRegion((cell[0],), False)
        )
    return lambda cell: _opened(_read_bounds(cell[0], cell[0], cell[0] is None), attribute)


def _read_bounds(
    low: Number | None, high: Number | None, missing: bool | None = False
) -> OrderedRegion:
    """Return the region between two ends, both included. Without ends the value is missing."""
    if low is None and high is None:
        return OrderedRegion((), True)
    if low is None or high is None or not low <= high:
        raise UnreadableLabelError("bounds are not in order")
    return OrderedRegion((Interval(low, high),), bool(missing))


def _opened(region: OrderedRegion, attribute: PublishedAttribute) -> OrderedRegion:
    """Extend a region at ``bottom`` and ``top``, which stand for all values beyond."""
    if attribute.is_mean or not region.intervals:
        return region
    (interval,) = region.intervals
    low, high = interval.low, interval.high
    if isinstance(low, str) or isinstance(high, str):
        return region
    is_bottom = attribute.bottom is not None and low <= attribute.bottom
    is_top = attribute.top is not None and high >= attribute.top
    return OrderedRegion((_beyond(interval, is_bottom, is_top),), region.missing)


def _beyond(interval: Interval, is_bottom: bool, is_top: bool) -> Interval:
    """Remove the ends of an interval below or above.

    >>> _beyond(Interval(5, 90), is_bottom=False, is_top=True)
    Interval(low=5, high=inf, low_included=True, high_included=False)
    """
    low = (-math.inf, False) if is_bottom else (interval.low, interval.low_included)
    high = (math.inf, False) if is_top else (interval.high, interval.high_included)
    return Interval(low[0], high[0], low[1], high[1])


def _intervals(
    label: str, attribute: PublishedAttribute, leaves: Leaves | None
) -> tuple[Interval, ...]:
    """Read the intervals of present values that a label of an ordered attribute stands for."""
    if leaves is not None and label in leaves:
        points = sorted({_read_value(leaf.strip(), attribute) for leaf in leaves[label]})
        return tuple(Interval(point, point) for point in points)
    if attribute.is_code:
        return (_masked_code(label, by_length=attribute.rule == "prefix"),)
    if attribute.rule == "calendar" and (period := _PERIOD.fullmatch(label)):
        return (_days_of(period),)
    if attribute.rule == "intervals" and (open_interval := _FROM.fullmatch(label)):
        low = _read_value(open_interval["low"], attribute)
        return (Interval(low, math.inf, high_included=False),)
    if attribute.bottom is not None or attribute.top is not None:
        is_bottom, is_top = (mark in label for mark in open_marks(attribute.kind))
        if is_bottom or is_top:
            label = unmarked_ends(pa.array([label]), attribute.kind)[0].as_py()
            (interval,) = _intervals(label, replace(attribute, bottom=None, top=None), None)
            return (_beyond(interval, is_bottom, is_top),)
    single, pair = _patterns(attribute)
    if single.fullmatch(label):
        value = _read_value(label, attribute)
        return (Interval(value, value),)
    match = pair.fullmatch(label)
    if match is None or bool(match["left"]) != bool(match["right"]):
        raise UnreadableLabelError("not a value, not an interval")
    low, high = _read_value(match["low"], attribute), _read_value(match["high"], attribute)
    low_included, high_included = _LEFT_INCLUDED[match["left"]], _RIGHT_INCLUDED[match["right"]]
    if not (low < high or (low == high and low_included and high_included)):
        raise UnreadableLabelError("an empty interval")
    return (Interval(low, high, low_included, high_included),)


def code_key(code: str, *, by_length: bool) -> str:
    """Return the key that sorts codes, so that those with the same mask are adjacent.

    A mask that shows the length of a code covers only codes of that length.

    >>> code_key("06100", by_length=True), code_key("E11", by_length=False)
    ('00000506100', '000000E11')
    """
    return f"{len(code) if by_length else 0:06d}{code}"


class CodeOrder:
    """Different codes, sorted by :func:`code_key` so that those with the same mask are adjacent.

    >>> CodeOrder(["10", "061", "06"], by_length=True).texts
    ['06', '10', '061']
    """

    def __init__(self, texts: Iterable[str], *, by_length: bool) -> None:
        pairs = sorted((code_key(text, by_length=by_length), text) for text in texts)
        self.texts = [text for _, text in pairs]
        self._keys = [key for key, _ in pairs]

    def run(self, interval: Interval) -> tuple[int, int]:
        """Return where the codes of an interval of :func:`code_key` begin and end."""
        return bisect_left(self._keys, str(interval.low)), bisect_right(
            self._keys, str(interval.high)
        )


def _masked_code(label: str, *, by_length: bool) -> Interval:
    """Read a code whose last characters may be masked, as in ``061**``.

    Unless ``by_length``, one mask stands for any number of characters, as in ``E11*``.

    >>> _masked_code("E11*", by_length=False).low
    '000000E11'
    """
    if label.startswith('"'):
        label = _json_text(label, 0)[0].strip(" ")
    match = _MASKED.fullmatch(label)
    if match is None:
        raise UnreadableLabelError("a mask inside a code")
    prefix, masked = match["prefix"], len(match["mask"])
    if masked > 1 and not by_length:
        raise UnreadableLabelError("more than one mask")
    first = code_key(label, by_length=by_length)[: 6 + len(prefix)]
    return Interval(first, first + "\U0010ffff" * masked)


def _days_of(period: re.Match[str]) -> Interval:
    """Return the first and last day of a month, quarter, year or decade.

    >>> interval = _days_of(_PERIOD.fullmatch("1970-Q1"))
    >>> interval.low, interval.high
    (0, 89)
    """
    year = int(period["year"])
    if period["decade"]:
        return Interval(_day_number(year, 1, 1), _day_number(year + 10, 1, 1) - 1)
    first, last = 1, 12
    if period["quarter"]:
        last = 3 * int(period["quarter"])
        first = last - 2
    elif period["month"]:
        first = last = int(period["month"])
    following = (year, last + 1) if last < 12 else (year + 1, 1)
    return Interval(_day_number(year, first, 1), _day_number(*following, 1) - 1)


def _day_number(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a day in any year. Python knows those from 1 to 9999.

    >>> _day_number(1971, 1, 1), _day_number(-1, 12, 31)
    (365, -719529)
    """
    cycles, year = divmod(year - 2000, 400)
    try:
        in_cycle = date(2000 + year, month, day)
    except ValueError:
        raise NoSuchMomentError("not a day") from None
    return (in_cycle - date(1970, 1, 1)).days + cycles * _DAYS_OF_400_YEARS


def _patterns(attribute: PublishedAttribute) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a value and of an interval of an attribute."""
    match attribute.kind:
        case "date":
            return _DATES
        case "timestamp":
            return _TIMESTAMPS
        case _:
            return _NUMBERS


def _read_value(text: str, attribute: PublishedAttribute) -> Number:
    """Read one present value of an ordered attribute.

    >>> _read_value("1.50", PublishedAttribute("pay", "decimal", "interval", ("pay",)))
    Decimal('1.50')
    """
    if not _patterns(attribute)[0].fullmatch(text):
        raise UnreadableLabelError("not a value of its kind")
    match attribute.kind:
        case "date":
            return read_day(text)
        case "timestamp":
            return read_moment(text)
        case "float":
            # Floats of 32 bits are written with fewer digits than the same value in 64 bits.
            return float(np.float32(text)) if attribute.type == "float" else float(text)
        case _:
            return int(text) if _INTEGER.fullmatch(text) else Decimal(text)


def read_values(region: CategoryRegion, kind: Kind) -> OrderedRegion:
    """Read the texts of a region as numbers, days or times, for hierarchies over such values.

    A text that is none of them is left out, because no value of another table is equal to it.

    >>> region = read_values(CategoryRegion(("old", "90"), missing=False), "integer")
    >>> [interval.low for interval in region.intervals]
    [90]
    """
    if region.values is None:
        return OrderedRegion(None, region.missing)
    attribute = PublishedAttribute("", kind, "interval", ("",))
    values = []
    for text in region.values:
        with suppress(UnreadableLabelError):
            values.append(_read_value(text.strip(), attribute))
    return OrderedRegion(tuple(Interval(value, value) for value in values), region.missing)


def read_day(text: str) -> int:
    """Return a day, written as in ISO 8601, as days since 1970-01-01.

    Raises UnreadableLabelError for any other text.

    >>> read_day("1970-02-01")
    31
    """
    if not _DATES[0].fullmatch(text):
        raise UnreadableLabelError("not a day")
    year, month, day = text.rsplit("-", 2)
    return _day_number(int(year), int(month), int(day))


def read_moment(text: str) -> int:
    """Return a time, written as in ISO 8601, as microseconds since 1970-01-01.

    Raises UnreadableLabelError for any other text.

    >>> read_moment("1970-01-01 00:00:01.5")
    1500000
    """
    if not _TIMESTAMPS[0].fullmatch(text):
        raise UnreadableLabelError("not a time")
    day, _, clock = text.replace("T", " ").partition(" ")
    try:
        clock_time = time.fromisoformat(clock or "00:00")
    except ValueError:
        raise NoSuchMomentError("not a time") from None
    since_midnight = datetime.combine(date(1970, 1, 1), clock_time) - datetime(1970, 1, 1)
    return read_day(day) * 86_400_000_000 + since_midnight // timedelta(microseconds=1)


def _category_values(label: str, leaves: Leaves | None) -> tuple[tuple[str, ...] | None, bool]:
    """Return the values of a label, or None for all, and whether missing is one of them.

    >>> _category_values("{a, missing}", None)
    (('a',), True)
    """
    if label == _EVERYTHING:
        return None, False
    quoted = quoted_value(label)
    # Unquote first: a label that looks like a quoted one is itself published in quotes.
    for group in (quoted, label):
        if leaves is not None and group is not None and group in leaves:
            return tuple(sorted(set(leaves[group]))), False
    if quoted is not None:
        return (quoted,), False
    if label.startswith('"'):
        raise UnreadableLabelError("not a quoted value")
    if leaves is None and label.startswith("{"):
        region = _set_region(set_members(label), None)
        return region.values, region.missing
    return (label,), False


def quoted_value(label: str) -> str | None:
    """Return the value that a label quotes as a whole, or None if it does not.

    >>> quoted_value('"missing"'), quoted_value("a")
    ('missing', None)
    """
    if not label.startswith('"'):
        return None
    try:
        value, end = _json_text(label, 0)
    except UnreadableLabelError:
        return None
    return value if end == len(label) else None


def _set_region(members: Sequence[str | None] | None, leaves: Leaves | None) -> CategoryRegion:
    """Return the region of a set. Each member may be a label of the hierarchy."""
    if members is None:
        return CategoryRegion((), True)
    if not members:
        raise UnreadableLabelError("a set without members")
    values: set[str] = set()
    for member in members:
        if member is not None:
            values.update(leaves[member] if leaves is not None and member in leaves else (member,))
    return CategoryRegion(tuple(sorted(values)), None in members)


def _ordered_set_region(
    members: Sequence[str | None] | None, attribute: PublishedAttribute, leaves: Leaves | None
) -> OrderedRegion:
    """Return the region of a set of values of an ordered attribute."""
    if members is None:
        return OrderedRegion((), True)
    if not members:
        raise UnreadableLabelError("a set without members")
    intervals = [
        interval
        for member in members
        if member is not None
        for interval in _intervals(member.strip(), attribute, leaves)
    ]
    return OrderedRegion(tuple(intervals), None in members)


def set_members(label: str) -> list[str | None]:
    """Return the members of ``{a, b}``, with None for missing.

    >>> set_members('{a, "b, c", missing}')
    ['a', 'b, c', None]
    """
    if not label.endswith("}"):
        raise UnreadableLabelError("a set without end")
    members: list[str | None] = []
    position, end = 1, len(label) - 1
    while True:
        while position < end and label[position] == " ":
            position += 1
        if label.startswith('"', position):
            value, position = _json_text(label, position)
            members.append(value)
        else:
            match = _MEMBER.match(label, position, end)
            if match is None:
                raise UnreadableLabelError("a set with an empty member")
            position = match.end()
            value = match[0].rstrip(" ")
            members.append(None if value == _MISSING else value)
        while position < end and label[position] == " ":
            position += 1
        if position == end:
            return members
        if label[position] != ",":
            raise UnreadableLabelError("a set without a comma")
        position += 1


def _json_text(label: str, position: int) -> tuple[str, int]:
    """Return the JSON string that begins at a position, and where it ends.

    >>> _json_text('{"a"}', 1)
    ('a', 4)
    """
    try:
        value, end = json.JSONDecoder().raw_decode(label, position)
    except ValueError:
        raise UnreadableLabelError("a quoted value without end") from None
    return str(value), end
