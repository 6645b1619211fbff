"""Read the bounds of classes from published columns.

Labels are those of this package (:mod:`anonspark.core.labels`), to the letter: a text that it would
write otherwise is no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags
from anonspark.core.labels import (
    MISSING,
    Kind,
    category_label,
    hierarchy_label,
    open_marks,
    unmarked_ends,
    value_labels,
)
from anonspark.engine.raw_columns import flags
from anonspark.labels.regions import (
    PublishedAttribute,
    UnreadableLabelError,
    encoded_column,
    quoted_value,
    read_day,
    read_label,
    read_moment,
    set_members,
)

Content = Literal["label", "set", "bounds", "mean"]

_OR_MISSING = f" or {MISSING}"

_DATE = r"-?\d{4,7}-\d{2}-\d{2}"
_PATTERNS: Mapping[Kind, str] = {
    "integer": r"0|-?[1-9]\d{0,19}",
    "float": r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?",
    "date": _DATE,
    "timestamp": _DATE + r"(?: \d{2}:\d{2}:\d{2}(?:\.\d{6})?)?",
}

# Of differences that divided by a range may be nothing, and of whole numbers that are exact.
_SMALLEST_GAP, _EXACT = 1e-10, 2.0**53

_NUMBERS: tuple[Kind, ...] = ("integer", "float", "decimal")


class Bounds(NamedTuple):
    """The bounds of classes by their columns, an entry for each class.

    Parameters
    ----------
    lowest, highest : pyarrow.Array
        As :func:`comparable_bounds` returns them.
    sound : bool ndarray
        Whether a run could have written it.
    wider : bool ndarray
        Whether it stands for several values. Of labels of hierarchies and of means false.
    """

    lowest: pa.Array
    highest: pa.Array
    sound: Flags
    wider: Flags

    @property
    def fine(self) -> Flags:
        """Return whether the ends may be equal as floating-point numbers, as runs measure them."""
        low, high = self.lowest, self.highest
        if pa.types.is_string(low.type):
            return np.zeros(len(low), bool)
        scale = 10.0**low.type.scale if pa.types.is_decimal(low.type) else 1.0
        ends = [
            pc.fill_null(one.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
            * scale
            for one in (low, high)
        ]
        if pa.types.is_floating(low.type):
            with np.errstate(over="ignore"):
                tiny: Flags = self.wider & ~(ends[1] - ends[0] > _SMALLEST_GAP)
                return tiny
        found: Flags = (np.abs(ends[0]) > _EXACT) | (np.abs(ends[1]) > _EXACT)
        return found

    def take(self, rows: pa.Array) -> Bounds:
        """Return the same of some rows."""
        flags = (one[rows.to_numpy(zero_copy_only=False)] for one in self[2:])
        return Bounds(self.lowest.take(rows), self.highest.take(rows), *flags)


def type_of_name(name: str) -> pa.DataType:
    """Return the Arrow type that a manifest names.

    Raises
    ------
    ValueError
        If it is none.
    """
    if match := re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)", name):
        return getattr(pa, match[1])(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=([\w/+:-]+)\]", name):
        return pa.timestamp(match[1], match[2])
    return pa.type_for_alias(name)


def comparable_bounds(values: pa.Array, kind: Kind) -> pa.Array:
    """Return values of any width of a kind as one type, whose equal values are equal."""
    match kind:
        case "date":
            return values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        case "timestamp":
            return values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
        case "float":
            return values.cast(pa.float64())
        case "decimal" | "integer" if pa.types.is_decimal(values.type):
            return values.cast(pa.decimal128(38, values.type.scale))
        case "integer" if values.type == pa.uint64():
            return values.cast(pa.decimal128(38, 0))
        case "integer":
            return values.cast(pa.int64())
        case _:
            return values.cast(pa.string())


def is_alike(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether two types hold the same values, however wide and on whichever engine."""
    return _name_of(found) == _name_of(expected)


def _name_of(one: pa.DataType) -> object:
    if pa.types.is_dictionary(one):
        return _name_of(one.value_type)
    if pa.types.is_list(one) or pa.types.is_large_list(one):
        return "list", _name_of(one.value_type)
    if pa.types.is_string(one) or pa.types.is_large_string(one) or pa.types.is_string_view(one):
        return "text"
    if pa.types.is_integer(one) or (pa.types.is_decimal(one) and one.scale == 0):
        # Spark has no type without a sign.
        return "integer"
    if pa.types.is_decimal(one):
        return "decimal", one.scale
    if pa.types.is_timestamp(one):
        return "timestamp", one.tz is None
    if pa.types.is_date(one):
        return "date"
    return str(one)


@dataclass(frozen=True)
class BoundsReader:
    """The reading of the published columns of one quasi-identifier as bounds of its classes.

    Parameters
    ----------
    attribute : PublishedAttribute
    kind : Kind
        Of the values as they were compared: of a hierarchy ``category``.
    type : pyarrow.DataType
        Of the raw column.
    has_hierarchy : bool
    tells_missing : bool
        Whether missing values are a category of their own.
    labels : frozenset of str or None
        Of a hierarchy, where they are known.
    """

    attribute: PublishedAttribute
    kind: Kind
    type: pa.DataType
    has_hierarchy: bool
    tells_missing: bool
    labels: frozenset[str] | None = None

    @property
    def is_category(self) -> bool:
        """Return whether classes are published as labels or sets of texts."""
        return self.kind in ("category", "boolean")

    @property
    def is_of_unknown_hierarchy(self) -> bool:
        """Return whether its labels are those of a file that was not read."""
        return self.has_hierarchy and self.labels is None and self.attribute.rule is None

    @property
    def content(self) -> Content:
        """Return the content of its columns."""
        match self.attribute.style:
            case "bounds":
                return "set" if self.is_category else "bounds"
            case "mean" if not self.is_category:
                return "mean"
            case _:
                return "label"

    @property
    def published_types(self) -> dict[str, pa.DataType]:
        """The published columns and their types."""
        mean = pa.float64() if self.kind in _NUMBERS else self.type
        first = {
            "label": [pa.string()],
            "set": [pa.list_(pa.string())],
            "bounds": [self.type, self.type],
            "mean": [mean],
        }[self.content]
        names = self.attribute.columns
        return dict(zip(names, [*first, *[pa.bool_()] * (len(names) - len(first))], strict=True))

    @property
    def bound_types(self) -> dict[str, pa.DataType]:
        """The columns of ``metrics/classes`` and their types."""
        return dict.fromkeys((f"{self.attribute.name}_{end}" for end in ("min", "max")), self.type)

    def read(self, columns: Sequence[pa.Array]) -> Bounds:
        """Read published columns, of the types of :attr:`published_types`."""
        match self.content:
            case "label":
                encoded = encoded_column(columns[0])
                texts = encoded.dictionary.cast(pa.string())
                return self._read_labels(texts).take(encoded.indices)
            case "set":
                return self._read_sets(columns[0])
            case "bounds":
                return self._read_ends(*self.bounds_of(columns[0], columns[1]), columns[2:])
            case "mean":
                means = columns[0].cast(pa.string())
                found = self._read_ends(means, means, columns[1:])
                # Of one value there is a mean, too.
                nothing = comparable_bounds(pa.nulls(len(means), self.type), self.kind)
                return found._replace(lowest=nothing, highest=nothing)

    def bounds_of(self, lowest: pa.Array, highest: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the columns of ``metrics/classes`` as :meth:`read` returns them."""
        return comparable_bounds(lowest, self.kind), comparable_bounds(highest, self.kind)

    def _read_ends(self, low: pa.Array, high: pa.Array, marks: Sequence[pa.Array]) -> Bounds:
        nothing, none = flags(low.is_null()), np.zeros(len(low), bool)
        missing = flags(pc.fill_null(marks[0], fill_value=False)) if marks else none
        in_order = flags(pc.fill_null(pc.less_equal(low, high), fill_value=False))
        sound = in_order | (nothing & flags(high.is_null()) & missing)
        if self.content == "bounds":
            sound &= nothing | self._end_well(low, high)
        if marks:
            sound &= flags(marks[0].is_valid())
        wider = flags(pc.fill_null(pc.less(low, high), fill_value=False)) | (missing & ~nothing)
        return Bounds(low, high, sound, wider)

    def _read_sets(self, sets: pa.Array) -> Bounds:
        lengths = pc.fill_null(pc.list_value_length(sets), 0).to_numpy().astype(np.int64)
        members = sets.flatten().cast(pa.string())
        ends = np.cumsum(lengths)
        empty = lengths == 0
        whole = pa.concat_arrays([members, pa.nulls(1, members.type)])
        is_null = flags(whole.is_null())
        first, last = np.where(empty, len(members), ends - lengths), np.where(empty, 0, ends - 1)
        missing = is_null[np.where(empty, len(members), last)] & ~empty
        only = missing & (lengths == 1)
        # Missing is the last value of a domain.
        nulls = np.zeros(len(lengths), np.int64)
        np.add.at(nulls, np.repeat(np.arange(len(lengths)), lengths), is_null[:-1].astype(np.int64))
        end = np.where(empty | only, len(members), last - missing)
        sound = ~empty & (nulls == missing) & (~missing | self.tells_missing)
        low = whole.take(pa.array(np.where(only, len(members), first)))
        return Bounds(low, whole.take(pa.array(end)), sound, lengths > 1)

    def _read_labels(self, texts: pa.Array) -> Bounds:
        """Read different labels."""
        if self.has_hierarchy:
            return self._read_groups(texts)
        if self.is_category:
            return self._read_categories(texts)
        return self._read_intervals(texts)

    def _read_groups(self, texts: pa.Array) -> Bounds:
        """Read labels of a hierarchy, whose bounds are the labels themselves."""
        sound = np.array([self._is_group(text) for text in texts.to_pylist()], bool)
        return Bounds(texts, texts, sound, np.zeros(len(texts), bool))

    def _is_group(self, label: str | None) -> bool:
        if label is None or (self.tells_missing and label == MISSING):
            return label is not None
        if self.tells_missing:
            label = label.removesuffix(_OR_MISSING)
        if self.labels is not None:
            return label in self.labels
        if self.is_of_unknown_hierarchy:
            value = quoted_value(label)
            return hierarchy_label(label if value is None else value, with_missing=False) == label
        try:
            read_label(label, self.attribute)
        except UnreadableLabelError:
            return False
        return True

    def _read_categories(self, texts: pa.Array) -> Bounds:
        """Read values and sets of them."""
        found = [_categories_of(text) for text in texts.to_pylist()]
        present = [[one for one in members if one is not None] for members in found]
        missing = np.array([None in members for members in found], bool)
        sound = np.array([bool(members) for members in found], bool)
        low, high = (
            pa.array([members[end] if members else None for members in present], pa.string())
            for end in (0, -1)
        )
        if self.kind == "boolean":
            truth = pa.array(["true", "false"])
            sound &= np.array([set(one) <= {"true", "false"} for one in present], bool)
            low, high = (pc.if_else(pc.is_in(one, truth), one, None) for one in (low, high))
        wider = np.array([len(members) > 1 for members in found], bool)
        return Bounds(low, high, sound & (~missing | self.tells_missing), wider)

    def _read_intervals(self, texts: pa.Array) -> Bounds:
        """Read values and intervals of numbers, dates and timestamps."""
        none = np.zeros(len(texts), bool)
        missing, only = none, none
        if self.tells_missing:
            only = flags(pc.fill_null(pc.equal(texts, MISSING), fill_value=False))
            missing = only | flags(pc.fill_null(pc.ends_with(texts, _OR_MISSING), fill_value=False))
            texts = pc.replace_substring_regex(texts, f"{_OR_MISSING}$", "")
        marked = []
        if self.attribute.bottom is not None or self.attribute.top is not None:
            # Behind the first value of a label, or the last one.
            below, above = map(re.escape, open_marks(self.kind))
            patterns = (rf"{below}([-/]|$)", rf"{above}\]?$")
            marked = [flags(pc.match_substring_regex(texts, pattern)) for pattern in patterns]
            texts = unmarked_ends(texts, self.kind)
        low, high = (self._values(one) for one in self._ends_of(texts))
        whole = flags(pc.and_(low.is_valid(), high.is_valid()))
        is_wide = flags(pc.fill_null(pc.less(low, high), fill_value=False))
        is_single = flags(pc.fill_null(pc.invert(pc.starts_with(texts, "[")), fill_value=False))
        sound = whole & (is_wide | is_single)
        if self.kind == "float":
            sound &= self._is_written_so(texts, low, high, whole)
        if self.kind not in ("date", "timestamp"):
            low, high = self.bounds_of(low, high)
        sound &= self._end_well(low, high, *marked)
        return Bounds(low, high, sound | only, is_wide | (missing & ~only))

    def _end_well(self, low: pa.Array, high: pa.Array, *marked: Flags) -> Flags:
        """Return whether ends lie on the grid. Of missing ones anything."""
        own = self.attribute.encoding(self.kind, self.type)
        if own.grid is None and own.bottom is None and own.top is None:
            return np.ones(len(low), bool)
        is_bottom, is_top = marked or (None, None)
        ends = low.fill_null(0), high.fill_null(0)
        return own.may_end(ends[0], is_bottom, upper=False) & own.may_end(
            ends[1], is_top, upper=True
        )

    def _ends_of(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        value = _PATTERNS.get(self.kind) or _decimal_pattern(self.type.scale)
        divider = "/" if self.kind in ("date", "timestamp") else "-"
        pattern = rf"^(?:\[(?P<low>{value}){divider}(?P<high>{value})\]|(?P<both>{value}))$"
        found = pc.extract_regex(texts, pattern)
        both = pc.struct_field(found, "both")
        low, high = (
            pc.if_else(pc.equal(both, ""), pc.struct_field(found, end), both)
            for end in ("low", "high")
        )
        return low, high

    def _values(self, texts: pa.Array) -> pa.Array:
        """Read values, null where a text is none. Days and microseconds of dates and times."""
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        try:
            match self.kind:
                case "date":
                    return comparable_bounds(texts.cast(pa.date32()), "date")
                case "timestamp":
                    return texts.cast(pa.timestamp("us")).cast(pa.int64())
                case _:
                    return texts.cast(self.type)
        except pa.ArrowInvalid:
            read = [self._value(text) for text in texts.to_pylist()]
            is_time = self.kind in ("date", "timestamp")
            return pa.array(read, pa.int64() if is_time else self.type)

    def _value(self, text: str | None) -> Any:
        """Read one value, None where it is none. Arrow does not read years of five digits."""
        try:
            match self.kind:
                case _ if text is None:
                    return None
                case "date":
                    return read_day(text)
                case "timestamp":
                    return read_moment(text)
                case _:
                    return pa.scalar(text).cast(self.type).as_py()
        except (ValueError, OverflowError):
            return None

    def _is_written_so(self, texts: pa.Array, low: pa.Array, high: pa.Array, whole: Flags) -> Flags:
        """Return whether floats are written with the digits that they have."""
        own = pa.array(whole)
        ends = [value_labels(one.filter(own), self.kind) for one in (low, high)]
        wide = pc.binary_join_element_wise("[", ends[0], "-", ends[1], "]", "")
        written = pc.if_else(pc.equal(*ends), ends[0], wide)
        found = np.zeros(len(texts), bool)
        found[whole] = flags(pc.equal(written, texts.filter(own)))
        return found


def _decimal_pattern(scale: int) -> str:
    whole = r"-?(?:0|[1-9]\d{0,75})"
    return whole + (rf"\.\d{{{scale}}}" if scale > 0 else r"0*")


def _categories_of(label: str | None) -> tuple[str | None, ...]:
    """Return the members of a label, None for missing. None where it is no label."""
    if label is None:
        return ()
    if label == MISSING:
        return (None,)
    members: tuple[str | None, ...] = (label,)
    if label.startswith("{"):
        try:
            members = tuple(set_members(label))
        except UnreadableLabelError:
            return ()
    elif (value := quoted_value(label)) is not None:
        members = (value,)
    # Missing is the last value of a domain.
    is_sound = len(set(members)) == len(members) and None not in members[:-1]
    return members if is_sound and category_label(members) == label else ()


def hierarchy_labels(labels: Iterable[str]) -> frozenset[str]:
    """Return labels of a hierarchy as they are published."""
    return frozenset(hierarchy_label(one, with_missing=False) for one in labels)
