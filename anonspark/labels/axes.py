"""Attributes as axes: values are positions on it, published regions are runs of it.

This is how much of a region lies where. Whether a value lies in one is exact, see
:mod:`anonspark.labels.region_axes`. Both read labels by :mod:`anonspark.labels.regions`.

Numbers, days and microseconds are their own positions. A text is its place among some texts, in
their order (codes that a rule masks: in the order in which a mask covers neighbours). A label reads
as a region. A region covers runs of positions, and perhaps missing, which is one more value where
values are counted. Its mass is spread evenly over them
(:class:`~anonspark.core.uniform_mass.Spread`), which answers for shares of ranges, shares of sets
of texts, and centers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.queries import Domain
from anonspark.core.uniform_mass import Runs, Spread, joined_runs, spread_intervals, spread_out
from anonspark.engine.raw_columns import is_text
from anonspark.kernels.label_reading import read_plain_labels
from anonspark.labels.grammar import split_ends
from anonspark.labels.raw_values import Scale, comparable, scale_of
from anonspark.labels.regions import (
    CategoryRegion,
    CodeOrder,
    Interval,
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    Region,
    distinct_rows,
    read_day,
    read_moment,
    read_regions,
)

_ELSEWHERE = -1.0
"""Position of a text that the original lacks. No range begins there."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute, as an original has it, or as all regions of a release show it.

    ``scale`` says what values are compared as, ``published`` how they are generalized (None if they
    are published unchanged), ``leaves`` is the hierarchy of a file. ``whole`` is True if all values
    are whole numbers, as days, microseconds and positions of texts are. ``texts`` are the different
    texts in the order of their positions, ``domain`` the positions of the original's records: all
    of texts, quantiles from the smallest to the largest of numbers and times, and of regions the
    outermost ends. ``frequent`` are the positions of the most frequent texts, ``missing`` counts
    records without value.
    """

    name: str
    scale: Scale
    published: PublishedAttribute | None
    leaves: Leaves | None
    whole: bool
    texts: tuple[str, ...]
    domain: Domain
    frequent: Figures = field(default_factory=lambda: np.empty(0))
    missing: int = 0

    @classmethod
    def of_regions(
        cls,
        published: PublishedAttribute,
        regions: Iterable[Region],
        leaves: Leaves | None = None,
        *,
        whole: bool,
    ) -> Axis:
        """Return an axis that holds the values of some regions, and the leaves of a hierarchy.

        Not for codes that a rule masks. ``whole`` says whether numbers are certainly whole. A rule
        hides the type, so its numbers are taken for whole ones if all ends are.
        """
        if published.is_category:
            texts = {leaf for group in (leaves or {}).values() for leaf in group}
            for region in regions:
                texts.update((isinstance(region, CategoryRegion) and region.values) or ())
            return cls.of_texts(published, texts, leaves)
        ends = [
            float(end)
            for region in regions
            if isinstance(region, OrderedRegion)
            for interval in region.intervals or ()
            for end in (interval.low, interval.high)
            if math.isfinite(float(end))
        ]
        if published.rule == "intervals" and ends:
            whole = whole or all(map(float.is_integer, ends))
        scale = scale_of(pa.null(), published) or "number"
        outermost = np.array([min(ends), max(ends)] if ends else [])
        domain = Domain(outermost, np.ones(len(outermost)), evenly=True)
        return cls(published.name, scale, published, leaves, whole, (), domain)

    @classmethod
    def of_texts(
        cls, published: PublishedAttribute, texts: Iterable[str], leaves: Leaves | None = None
    ) -> Axis:
        """Return an axis of some texts, or of the codes of a rule."""
        texts_once = {text.strip(" ") for text in texts}
        in_order = tuple(
            _code_order(published, texts_once).texts if published.is_code else sorted(texts_once)
        )
        ends = np.array([0.0, len(in_order) - 1.0] if in_order else [])
        domain = Domain(ends, np.ones(len(ends)), evenly=True)
        return cls(published.name, "text", published, leaves, True, in_order, domain)

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns that describe the attribute."""
        return (self.name,) if self.published is None else self.published.columns

    @property
    def middle(self) -> float:
        """The middle of the original's range, or 0 if it has no value."""
        values = self.domain.values
        return float(values[0] / 2 + values[-1] / 2) if len(values) else 0.0

    def positions(self, values: pa.Array) -> Figures:
        """Return the position of each raw value: NaN if missing, -1 for a text off the axis.

        Values are as :func:`~anonspark.labels.raw_values.reading_of` has them read.
        """
        values = comparable(values)
        if self.scale != "text":
            numbers: Figures = pc.fill_null(values, math.nan).to_numpy(zero_copy_only=False)
            return numbers
        indices = pc.index_in(values, value_set=self._value_set, skip_nulls=True)
        positions = indices.cast(pa.float64()).fill_null(_ELSEWHERE)
        indices_or_elsewhere: Figures = positions.to_numpy(zero_copy_only=False)
        return np.where(np.asarray(values.is_null()), math.nan, indices_or_elsewhere)

    def spread(self, columns: Sequence[pa.Array]) -> tuple[Spread, Integers]:
        """Read published columns as a spread of the different regions, and the region of each row.

        ``columns`` are those of :attr:`columns`, with a row for each class or record. The region
        numbers are int64 of shape (rows,). A mean counts as the value of all records of its class,
        because the release shows nothing else, and no missing ones. Raises DataError if labels
        cannot be read.
        """
        published = self.published
        if published is None:
            raise TypeError(f"{self.name} is published as it is")
        rows, numbers = distinct_rows(columns)
        if len(rows) > 1 or published.rule or self.leaves or not is_text(rows[0].type):
            leaves = None if published.rule else self.leaves
            regions, region_of_row = read_regions(rows, published, leaves, means=True)
            spread = spread_out([self.runs(region) for region in regions], whole=self.whole)
        else:
            spread, region_of_row = self._spread_labels(rows[0], published)
        return spread, region_of_row[numbers]

    def _spread_labels(
        self, labels: pa.Array, published: PublishedAttribute
    ) -> tuple[Spread, Integers]:
        """Read labels without a hierarchy: plain ones all at once, the others one by one."""
        low, high = plain_intervals(labels, published)
        if self.whole:
            is_wide = low < high
            low, high = (
                np.where(is_wide, np.ceil(low), low),
                np.where(is_wide, np.floor(high), high),
            )
        # A label between two whole numbers holds none: `runs` decides about it.
        is_plain = low <= high
        others = labels.filter(pa.array(~is_plain))
        regions, number_of_other = read_regions([others], published)
        spread = spread_intervals(low[is_plain], high[is_plain], whole=self.whole)
        number_of = np.empty(len(is_plain), np.int64)
        number_of[is_plain] = np.arange(len(spread.low))
        number_of[~is_plain] = len(spread.low) + number_of_other
        if regions:
            runs = [self.runs(region) for region in regions]
            spread = spread.followed_by(spread_out(runs, whole=self.whole))
        return spread, number_of

    def runs(self, region: Region) -> Runs:
        """Return the first and last positions of the values that a region covers."""
        if isinstance(region, CategoryRegion):
            texts = region.values
            if texts is None and self.leaves is not None:
                texts = tuple({leaf for outermost in self.leaves.values() for leaf in outermost})
            if texts is not None:
                return self._runs_of_texts(texts, region.missing)
            intervals = None
        else:
            intervals = region.intervals
        if intervals is None:
            values = self.domain.values
            outermost = (float(values[0]), float(values[-1])) if len(values) else None
            whole_range = [ends for ends in (self._declared or outermost,) if ends is not None]
            missing = region.missing or not whole_range
            return Runs(joined_runs(whole_range, whole=self.whole), missing)
        ends = joined_runs((self._ends(interval) for interval in intervals), whole=self.whole)
        elsewhere = int(not ends and bool(intervals))
        return Runs(ends, region.missing, elsewhere)

    def texts_of(self, region: Region) -> tuple[str, ...]:
        """Return the texts that a region covers, or nothing for one that may be anything."""
        ends = () if region.is_everything else self.runs(region).ends
        return tuple(text for low, high in ends for text in self.texts[int(low) : int(high) + 1])

    def _runs_of_texts(self, values: Iterable[str], missing: bool) -> Runs:
        """Return the runs of a set of values that were published as texts."""
        texts = {value.strip(" ") for value in values}
        positions = [self._position_of_text(value) for value in texts]
        on_axis = [position for position in positions if position is not None]
        ends = joined_runs(((position, position) for position in on_axis), whole=self.whole)
        return Runs(ends, missing, len(positions) - len(on_axis))

    def _position_of_text(self, value: str) -> float | None:
        """Return the position of a leaf, or None if the original can have no such value."""
        try:
            match self.scale:
                case "text":
                    return self._places.get(value)
                case "date":
                    return float(read_day(value))
                case "timestamp":
                    return float(read_moment(value))
                case "number":
                    number = float(value)
                    return number if math.isfinite(number) else None
        except (ValueError, TypeError):
            return None

    def _ends(self, interval: Interval) -> tuple[float, float]:
        """Return the first and last position of an interval, crossed if no value lies in it."""
        if isinstance(interval.low, str) or isinstance(interval.high, str):
            first, stop = self._codes.run(interval)
            return float(first), float(stop - 1)
        low, high = float(interval.low), float(interval.high)
        if math.isinf(low) or math.isinf(high):
            # An open end is the declared one, or the outermost of the original.
            finite = [end for end in (low, high) if math.isfinite(end)]
            ends = self._declared or self.domain.values[[0, -1] if len(self.domain.values) else []]
            bounds = [*(float(end) for end in ends), *finite] or [0.0]
            low, high = max(low, min(bounds)), min(high, max(bounds))
        if not self.whole or low == high:
            return low, high
        first, last = math.ceil(low), math.floor(high)
        first += int(not interval.low_included and first == low)
        last -= int(not interval.high_included and last == high)
        return float(first), float(last)

    @property
    def _declared(self) -> tuple[float, float] | None:
        """The ends of the declared range, or None."""
        declared = None if self.published is None else self.published.ends
        return None if declared is None else (float(declared[0]), float(declared[1]))

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.texts, pa.string())

    @cached_property
    def _places(self) -> dict[str, float]:
        """Return the position of each text."""
        return {text: float(index) for index, text in enumerate(self.texts)}

    @cached_property
    def _codes(self) -> CodeOrder:
        if self.published is None:
            raise TypeError(f"{self.name} is published as it is")
        return _code_order(self.published, self.texts)


def _code_order(published: PublishedAttribute, texts: Iterable[str]) -> CodeOrder:
    """Sort texts so that the codes of one mask are neighbours."""
    return CodeOrder(texts, by_length=published.rule == "prefix")


_PLAIN_KINDS = ("integer", "decimal", "float", "date")


def plain_intervals(labels: pa.Array, published: PublishedAttribute) -> tuple[Figures, Figures]:
    """Read the ends of plain labels, both included, of an attribute without a hierarchy.

    Ends are float64 of shape (labels,): numbers, or days since 1970. They are NaN for other labels,
    which :func:`anonspark.labels.regions.read_regions` reads.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> [ends.tolist() for ends in plain_intervals(pa.array(["17", "[18-25]", "[18-25["]), age)]
    [[17.0, 18.0, nan], [17.0, 25.0, nan]]
    """
    low, high = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    # Labels of 32-bit floats must be rounded first.
    if published.kind not in _PLAIN_KINDS or published.type == "float" or not len(labels):
        return low, high
    texts = labels.cast(pa.string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(content or b"", np.uint8)
    read_plain_labels(text, ends, published.kind == "date", low, high)
    others = np.isnan(low)
    if published.kind != "date" and others.any():
        low[others], high[others] = _long_numbers(texts.filter(pa.array(others)))
    return low, high


def _long_numbers(labels: pa.Array) -> tuple[Figures, Figures]:
    """Read plain labels whose numbers have more digits than the kernel reads. NaN for others.

    >>> [ends.tolist() for ends in _long_numbers(pa.array(["[0.5-12345678901234567]", "*"]))]
    [[0.5, nan], [1.2345678901234568e+16, nan]]
    """
    texts = split_ends(labels, "float")
    low, high = (end.cast(pa.float64()).fill_null(np.nan).to_numpy() for end in texts)
    is_plain = (low <= high) & np.isfinite(low) & np.isfinite(high)
    return np.where(is_plain, low, np.nan), np.where(is_plain, high, np.nan)
