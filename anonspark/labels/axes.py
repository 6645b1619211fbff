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

    Parameters
    ----------
    name : str
    scale : Scale
        What its values are compared as.
    published : PublishedAttribute or None
        How it is generalized. None where it is published as it is.
    leaves : mapping of str to collection of str, or None
        The hierarchy of a file.
    whole : bool
        Whether all values are whole numbers, as days, microseconds and places of texts are.
    texts : tuple of str
        The different texts, in the order of their positions.
    domain : Domain
        The positions of the original's records: all of texts, quantiles of numbers and times, from
        the smallest to the largest. Empty if it has no value. Of regions their outermost ends.
    frequent : float64 ndarray
        Positions of the most frequent texts of an original.
    missing : int
        Records of an original without a value.
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
        """Return an axis of all that some regions cover.

        Parameters
        ----------
        published : PublishedAttribute
            No code that a rule masks.
        regions : iterable of Region
        leaves : mapping of str to collection of str, or None
            The hierarchy of a file, whose leaves are on the axis, too.
        whole : bool
            Whether numbers are known to be whole ones. Where a rule made the labels, which hides
            the type, they are as all ends.
        """
        if published.is_category:
            texts = {leaf for own in (leaves or {}).values() for leaf in own}
            for region in regions:
                texts.update((isinstance(region, CategoryRegion) and region.values) or ())
            return cls.of_texts(published, texts, leaves)
        ends = [
            float(end)
            for region in regions
            if isinstance(region, OrderedRegion)
            for one in region.intervals or ()
            for end in (one.low, one.high)
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
        """Return an axis of some texts, or of the codes that there are."""
        different = {text.strip(" ") for text in texts}
        in_order = tuple(
            _code_order(published, different).texts if published.is_code else sorted(different)
        )
        ends = np.array([0.0, len(in_order) - 1.0] if in_order else [])
        domain = Domain(ends, np.ones(len(ends)), evenly=True)
        return cls(published.name, "text", published, leaves, True, in_order, domain)

    @property
    def columns(self) -> tuple[str, ...]:
        """Published columns that describe it."""
        return (self.name,) if self.published is None else self.published.columns

    @property
    def middle(self) -> float:
        """Middle of the original's range. 0 if it has no value."""
        values = self.domain.values
        return float(values[0] / 2 + values[-1] / 2) if len(values) else 0.0

    def positions(self, values: pa.Array) -> Figures:
        """Return the position of each raw value.

        Parameters
        ----------
        values : pyarrow.Array
            As they were read, see :func:`~anonspark.labels.raw_values.reading_of`.

        Returns
        -------
        float64 ndarray
            NaN where missing, -1 for texts that the original lacks.
        """
        values = comparable(values)
        if self.scale != "text":
            numbers: Figures = pc.fill_null(values, math.nan).to_numpy(zero_copy_only=False)
            return numbers
        places = pc.index_in(values, value_set=self._value_set, skip_nulls=True)
        positions = places.cast(pa.float64()).fill_null(_ELSEWHERE)
        present: Figures = positions.to_numpy(zero_copy_only=False)
        return np.where(np.asarray(values.is_null()), math.nan, present)

    def spread(self, columns: Sequence[pa.Array]) -> tuple[Spread, Integers]:
        """Read published columns of a generalized attribute.

        Parameters
        ----------
        columns : sequence of pyarrow.Array
            :attr:`columns`, one row a class or record.

        Returns
        -------
        spread : Spread
            The different regions.
        numbers : int64 ndarray of shape (rows,)
            The region of each row.

        Raises
        ------
        DataError
            If labels cannot be read.

        Notes
        -----
        A mean is taken for the value of all records of its class, as every user of the release
        must. It does not show how many of them are missing.
        """
        published = self.published
        if published is None:
            raise TypeError(f"{self.name} is published as it is")
        rows, numbers = distinct_rows(columns)
        if len(rows) > 1 or published.rule or self.leaves or not is_text(rows[0].type):
            leaves = None if published.rule else self.leaves
            regions, places = read_regions(rows, published, leaves, means=True)
            spread = spread_out([self.runs(region) for region in regions], whole=self.whole)
        else:
            spread, places = self._spread_labels(rows[0], published)
        return spread, places[numbers]

    def _spread_labels(
        self, labels: pa.Array, published: PublishedAttribute
    ) -> tuple[Spread, Integers]:
        """Read labels without a hierarchy: plain ones all at once, the others one by one."""
        low, high = plain_intervals(labels, published)
        if self.whole:
            wide = low < high
            low, high = np.where(wide, np.ceil(low), low), np.where(wide, np.floor(high), high)
        # Of those between two whole numbers there is more to be said.
        is_plain = low <= high
        others = labels.filter(pa.array(~is_plain))
        regions, of_others = read_regions([others], published)
        spread = spread_intervals(low[is_plain], high[is_plain], whole=self.whole)
        number_of = np.empty(len(is_plain), np.int64)
        number_of[is_plain] = np.arange(len(spread.low))
        number_of[~is_plain] = len(spread.low) + of_others
        if regions:
            runs = [self.runs(region) for region in regions]
            spread = spread.followed_by(spread_out(runs, whole=self.whole))
        return spread, number_of

    def runs(self, region: Region) -> Runs:
        """Return the positions that a region covers."""
        if isinstance(region, CategoryRegion):
            texts = region.values
            if texts is None and self.leaves is not None:
                texts = tuple({leaf for own in self.leaves.values() for leaf in own})
            if texts is not None:
                return self._runs_of_texts(texts, region.missing)
            intervals = None
        else:
            intervals = region.intervals
        if intervals is None:
            values = self.domain.values
            own = (float(values[0]), float(values[-1])) if len(values) else None
            everything = [ends for ends in (self._declared or own,) if ends is not None]
            missing = region.missing or not everything
            return Runs(joined_runs(everything, whole=self.whole), missing)
        ends = joined_runs((self._ends(interval) for interval in intervals), whole=self.whole)
        elsewhere = int(not ends and bool(intervals))
        return Runs(ends, region.missing, elsewhere)

    def texts_of(self, region: Region) -> tuple[str, ...]:
        """Return the texts that a region covers. None of one that may be anything."""
        ends = () if region.is_everything else self.runs(region).ends
        return tuple(text for low, high in ends for text in self.texts[int(low) : int(high) + 1])

    def _runs_of_texts(self, values: Iterable[str], missing: bool) -> Runs:
        """Return the runs of a set of values that were published as texts."""
        different = {value.strip(" ") for value in values}
        positions = [self._position_of_text(value) for value in different]
        known = [position for position in positions if position is not None]
        ends = joined_runs(((one, one) for one in known), whole=self.whole)
        return Runs(ends, missing, len(positions) - len(known))

    def _position_of_text(self, value: str) -> float | None:
        """Return the position of a leaf. None where the original can have no such value."""
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
        """Return first and last position of an interval, crossed if there is none between."""
        if isinstance(interval.low, str) or isinstance(interval.high, str):
            first, stop = self._codes.run(interval)
            return float(first), float(stop - 1)
        low, high = float(interval.low), float(interval.high)
        if math.isinf(low) or math.isinf(high):
            # As everything ends: at the declared ends, or at the outermost ones that are known.
            finite = [end for end in (low, high) if math.isfinite(end)]
            ends = self._declared or self.domain.values[[0, -1] if len(self.domain.values) else []]
            every = [*(float(end) for end in ends), *finite] or [0.0]
            low, high = max(low, min(every)), min(high, max(every))
        if not self.whole or low == high:
            return low, high
        first, last = math.ceil(low), math.floor(high)
        first += int(not interval.low_included and first == low)
        last -= int(not interval.high_included and last == high)
        return float(first), float(last)

    @property
    def _declared(self) -> tuple[float, float] | None:
        """Ends of the range that was declared, if there is one."""
        declared = None if self.published is None else self.published.ends
        return None if declared is None else (float(declared[0]), float(declared[1]))

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.texts, pa.string())

    @cached_property
    def _places(self) -> dict[str, float]:
        return {text: float(place) for place, text in enumerate(self.texts)}

    @cached_property
    def _codes(self) -> CodeOrder:
        if self.published is None:
            raise TypeError(f"{self.name} is published as it is")
        return _code_order(self.published, self.texts)


def _code_order(published: PublishedAttribute, texts: Iterable[str]) -> CodeOrder:
    return CodeOrder(texts, by_length=published.rule == "prefix")


# A part of what anonspark.labels.regions reads: of other labels it is to be asked.
_NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?"
_DAY = r"\d{4}-\d{2}-\d{2}"


def _pattern(value: str, divider: str) -> str:
    return rf"^(?:\[(?P<low>{value}){divider}(?P<high>{value})\]|(?P<both>{value}))$"


_OF_KIND = {
    "integer": (_pattern(_NUMBER, "-"), pa.float64()),
    "decimal": (_pattern(_NUMBER, "-"), pa.float64()),
    "float": (_pattern(_NUMBER, "-"), pa.float64()),
    "date": (_pattern(_DAY, "/"), pa.date32()),
}


def plain_intervals(labels: pa.Array, published: PublishedAttribute) -> tuple[Figures, Figures]:
    """Read the labels that are plain.

    Parameters
    ----------
    labels : pyarrow.Array
        Texts.
    published : PublishedAttribute
        Without a hierarchy.

    Returns
    -------
    low, high : float64 ndarray of shape (labels,)
        Ends, both included. Days since 1970 of dates. NaN where a label is another one, which is
        to be read by :func:`anonspark.labels.regions.read_regions`.
    """
    low, high = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    # Numbers of 32 bits are rounded to these.
    if published.kind not in _OF_KIND or published.type == "float" or not len(labels):
        return low, high
    texts = labels.cast(pa.string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(content or b"", np.uint8)
    read_plain_labels(text, ends, published.kind == "date", low, high)
    others = np.isnan(low)
    if others.any():
        low[others], high[others] = _by_pattern(texts.filter(pa.array(others)), published)
    return low, high


def _by_pattern(labels: pa.Array, published: PublishedAttribute) -> tuple[Figures, Figures]:
    """Read labels whose numbers have many digits."""
    pattern, wanted = _OF_KIND[published.kind]
    found = pc.extract_regex(labels, pattern)
    both = pc.struct_field(found, "both")
    ends = [
        pc.if_else(pc.equal(both, ""), pc.struct_field(found, end), both) for end in ("low", "high")
    ]
    try:
        values = [end.cast(wanted) for end in ends]
    except pa.ArrowInvalid:
        # No day of the calendar.
        others = np.full(len(labels), np.nan)
        return others, others
    if wanted == pa.date32():
        values = [end.cast(pa.int32()).cast(pa.float64()) for end in values]
    low, high = (pc.fill_null(end, np.nan).to_numpy(zero_copy_only=False) for end in values)
    is_interval = low <= high
    return np.where(is_interval, low, np.nan), np.where(is_interval, high, np.nan)
