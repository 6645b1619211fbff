"""Read the bounds of classes from published columns.

Labels are those of this package (:mod:`anonspark.core.labels`), to the letter: a text that it would
write otherwise is no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from anonspark.labels.grammar import split_ends
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

# Smaller differences may become 0 when divided by a range. Up to 2**53 whole numbers are exact.
_SMALLEST_GAP, _EXACT = 1e-10, 2.0**53

_NUMBERS: tuple[Kind, ...] = ("integer", "float", "decimal")


class Bounds(NamedTuple):
    """The bounds of classes by their columns, an entry for each class.

    ``lowest`` and ``highest`` are as :func:`comparable_bounds` returns them, ``sound`` says whether
    a run could have written the entry, ``wider`` whether it stands for several values: False for
    labels of hierarchies and for means.
    """

    lowest: pa.Array
    highest: pa.Array
    sound: Flags
    wider: Flags

    @property
    def fine(self) -> Flags:
        """Return which ends may become equal as floats, although they differ."""
        low, high = self.lowest, self.highest
        if pa.types.is_string(low.type):
            return np.zeros(len(low), bool)
        scale = 10.0**low.type.scale if pa.types.is_decimal(low.type) else 1.0
        ends = [
            pc.fill_null(end.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
            * scale
            for end in (low, high)
        ]
        if pa.types.is_floating(low.type):
            with np.errstate(over="ignore"):
                is_tiny: Flags = self.wider & ~(ends[1] - ends[0] > _SMALLEST_GAP)
                return is_tiny
        is_large: Flags = (np.abs(ends[0]) > _EXACT) | (np.abs(ends[1]) > _EXACT)
        return is_large

    def take(self, rows: pa.Array) -> Bounds:
        """Return the bounds of some rows."""
        flags = (entries[rows.to_numpy(zero_copy_only=False)] for entries in self[2:])
        return Bounds(self.lowest.take(rows), self.highest.take(rows), *flags)


def type_of_name(name: str) -> pa.DataType:
    """Return the Arrow type that a manifest names. Raises ValueError if it names none.

    >>> type_of_name("timestamp[us, tz=Europe/Istanbul]")
    TimestampType(timestamp[us, tz=Europe/Istanbul])
    """
    if match := re.fullmatch(r"(decimal\d+)\((\d+), (-?\d+)\)", name):
        return getattr(pa, match[1])(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=([\w/+:-]+)\]", name):
        return pa.timestamp(match[1], match[2])
    return pa.type_for_alias(name)


def comparable_bounds(values: pa.Array, kind: Kind) -> pa.Array:
    """Cast values of a kind, whatever their width, to one type in which equal values are equal.

    >>> comparable_bounds(pa.array([3], pa.uint8()), "integer").type
    DataType(int64)
    """
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


def is_alike(first: pa.DataType, second: pa.DataType) -> bool:
    """Return whether two types hold the same values, however wide and on whichever engine.

    >>> is_alike(pa.int16(), pa.int64()), is_alike(pa.int64(), pa.float64())
    (True, False)
    """
    return _type_key(first) == _type_key(second)


def _type_key(arrow_type: pa.DataType) -> object:
    """Return a text or tuple that is equal for all Arrow types with the same values.

    >>> _type_key(pa.int32()) == _type_key(pa.decimal128(9, 0))
    True
    """
    if pa.types.is_dictionary(arrow_type):
        return _type_key(arrow_type.value_type)
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return "list", _type_key(arrow_type.value_type)
    if (
        pa.types.is_string(arrow_type)
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_string_view(arrow_type)
    ):
        return "text"
    if pa.types.is_integer(arrow_type) or (
        pa.types.is_decimal(arrow_type) and arrow_type.scale == 0
    ):
        # Spark has no type without a sign.
        return "integer"
    if pa.types.is_decimal(arrow_type):
        return "decimal", arrow_type.scale
    if pa.types.is_timestamp(arrow_type):
        return "timestamp", arrow_type.tz is None
    if pa.types.is_date(arrow_type):
        return "date"
    return str(arrow_type)


@dataclass(frozen=True)
class BoundsReader:
    """The reading of the published columns of one quasi-identifier as bounds of its classes.

    ``kind`` is that of the values as they were compared, which is ``category`` for a hierarchy,
    ``type`` that of the raw column. ``has_missing_label`` says whether missing values are a
    category of their own. ``labels`` are those of a hierarchy, or None if they are unknown.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> reader = BoundsReader(age, "integer", pa.int64(), False, has_missing_label=False)
    >>> bounds = reader.read([pa.array(["[17-25]"])])
    >>> bounds.lowest.to_pylist(), bounds.highest.to_pylist(), bounds.wider.tolist()
    ([17], [25], [True])
    """

    attribute: PublishedAttribute
    kind: Kind
    type: pa.DataType
    has_hierarchy: bool
    has_missing_label: bool
    labels: frozenset[str] | None = None

    @property
    def is_category(self) -> bool:
        """Whether classes are published as labels or sets of texts."""
        return self.kind in ("category", "boolean")

    @property
    def is_of_unknown_hierarchy(self) -> bool:
        """Whether its labels are those of a file that was not read."""
        return self.has_hierarchy and self.labels is None and self.attribute.rule is None

    @property
    def content(self) -> Content:
        """What its columns contain."""
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
        types = {
            "label": [pa.string()],
            "set": [pa.list_(pa.string())],
            "bounds": [self.type, self.type],
            "mean": [mean],
        }[self.content]
        names = self.attribute.columns
        return dict(zip(names, [*types, *[pa.bool_()] * (len(names) - len(types))], strict=True))

    @property
    def bound_types(self) -> dict[str, pa.DataType]:
        """The columns of ``metrics/classes`` and their types."""
        return dict.fromkeys((f"{self.attribute.name}_{end}" for end in ("min", "max")), self.type)

    def read(self, columns: Sequence[pa.Array]) -> Bounds:
        """Read published columns, of the types of :attr:`published_types`, as bounds."""
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
                bounds = self._read_ends(means, means, columns[1:])
                # A mean does not show whether its class has one value or several.
                nulls = comparable_bounds(pa.nulls(len(means), self.type), self.kind)
                return bounds._replace(lowest=nulls, highest=nulls)

    def bounds_of(self, lowest: pa.Array, highest: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the columns of ``metrics/classes`` as :meth:`read` returns them."""
        return comparable_bounds(lowest, self.kind), comparable_bounds(highest, self.kind)

    def _read_ends(self, low: pa.Array, high: pa.Array, marks: Sequence[pa.Array]) -> Bounds:
        """Read ends in columns of their own. ``marks`` is the column of missing values, if any."""
        is_null, nowhere = flags(low.is_null()), np.zeros(len(low), bool)
        missing = flags(pc.fill_null(marks[0], fill_value=False)) if marks else nowhere
        in_order = flags(pc.fill_null(pc.less_equal(low, high), fill_value=False))
        sound = in_order | (is_null & flags(high.is_null()) & missing)
        if self.content == "bounds":
            sound &= is_null | self._end_well(low, high)
        if marks:
            sound &= flags(marks[0].is_valid())
        wider = flags(pc.fill_null(pc.less(low, high), fill_value=False)) | (missing & ~is_null)
        return Bounds(low, high, sound, wider)

    def _read_sets(self, sets: pa.Array) -> Bounds:
        """Read the bounds of sorted lists of texts, in which a last null stands for missing."""
        lengths = pc.fill_null(pc.list_value_length(sets), 0).to_numpy().astype(np.int64)
        members = sets.flatten().cast(pa.string())
        ends = np.cumsum(lengths)
        empty = lengths == 0
        members_and_null = pa.concat_arrays([members, pa.nulls(1, members.type)])
        is_null = flags(members_and_null.is_null())
        first, last = np.where(empty, len(members), ends - lengths), np.where(empty, 0, ends - 1)
        missing = is_null[np.where(empty, len(members), last)] & ~empty
        only_missing = missing & (lengths == 1)
        # Missing is the last value of a domain.
        nulls_in_set = np.zeros(len(lengths), np.int64)
        np.add.at(
            nulls_in_set, np.repeat(np.arange(len(lengths)), lengths), is_null[:-1].astype(np.int64)
        )
        end = np.where(empty | only_missing, len(members), last - missing)
        sound = ~empty & (nulls_in_set == missing) & (~missing | self.has_missing_label)
        low = members_and_null.take(pa.array(np.where(only_missing, len(members), first)))
        return Bounds(low, members_and_null.take(pa.array(end)), sound, lengths > 1)

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
        """Return whether a text is a label of the hierarchy, or could be if it is unknown."""
        if label is None or (self.has_missing_label and label == MISSING):
            return label is not None
        if self.has_missing_label:
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
        """Read the bounds of labels that are values or sets of values."""
        members_of_labels = [_categories_of(text) for text in texts.to_pylist()]
        present_values = [
            [end for end in members if end is not None] for members in members_of_labels
        ]
        missing = np.array([None in members for members in members_of_labels], bool)
        sound = np.array([bool(members) for members in members_of_labels], bool)
        low, high = (
            pa.array([members[end] if members else None for members in present_values], pa.string())
            for end in (0, -1)
        )
        if self.kind == "boolean":
            truth = pa.array(["true", "false"])
            sound &= np.array([set(end) <= {"true", "false"} for end in present_values], bool)
            low, high = (pc.if_else(pc.is_in(end, truth), end, None) for end in (low, high))
        wider = np.array([len(members) > 1 for members in members_of_labels], bool)
        return Bounds(low, high, sound & (~missing | self.has_missing_label), wider)

    def _read_intervals(self, texts: pa.Array) -> Bounds:
        """Read the bounds of labels that are values or intervals of numbers, dates or times."""
        nowhere = np.zeros(len(texts), bool)
        missing, only_missing = nowhere, nowhere
        if self.has_missing_label:
            only_missing = flags(pc.fill_null(pc.equal(texts, MISSING), fill_value=False))
            missing = only_missing | flags(
                pc.fill_null(pc.ends_with(texts, _OR_MISSING), fill_value=False)
            )
            texts = pc.replace_substring_regex(texts, f"{_OR_MISSING}$", "")
        marked = []
        if self.attribute.bottom is not None or self.attribute.top is not None:
            # A mark stands behind the first or the last value of a label.
            below, above = map(re.escape, open_marks(self.kind))
            patterns = (rf"{below}([-/]|$)", rf"{above}\]?$")
            marked = [flags(pc.match_substring_regex(texts, pattern)) for pattern in patterns]
            texts = unmarked_ends(texts, self.kind)
        scale = self.type.scale if self.kind == "decimal" else 0
        low, high = (self._values(end) for end in split_ends(texts, self.kind, scale))
        has_ends = flags(pc.and_(low.is_valid(), high.is_valid()))
        is_wide = flags(pc.fill_null(pc.less(low, high), fill_value=False))
        is_single = flags(pc.fill_null(pc.invert(pc.starts_with(texts, "[")), fill_value=False))
        sound = has_ends & (is_wide | is_single)
        if self.kind == "float":
            sound &= self._is_written_so(texts, low, high, has_ends)
        if self.kind not in ("date", "timestamp"):
            low, high = self.bounds_of(low, high)
        sound &= self._end_well(low, high, *marked)
        return Bounds(low, high, sound | only_missing, is_wide | (missing & ~only_missing))

    def _end_well(self, low: pa.Array, high: pa.Array, *marked: Flags) -> Flags:
        """Return whether ends lie on the grid, between bottom and top. Missing ends pass."""
        encoding = self.attribute.encoding(self.kind, self.type)
        if encoding.grid is None and encoding.bottom is None and encoding.top is None:
            return np.ones(len(low), bool)
        is_bottom, is_top = marked or (None, None)
        ends = low.fill_null(0), high.fill_null(0)
        return encoding.may_end(ends[0], is_bottom, upper=False) & encoding.may_end(
            ends[1], is_top, upper=True
        )

    def _values(self, texts: pa.Array) -> pa.Array:
        """Read values, null for a text that is none. Dates and times are days and microseconds."""
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
            values = [self._value(text) for text in texts.to_pylist()]
            is_time = self.kind in ("date", "timestamp")
            return pa.array(values, pa.int64() if is_time else self.type)

    def _value(self, text: str | None) -> Any:
        """Read a value, or return None if it is none. Arrow does not read years of five digits."""
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

    def _is_written_so(
        self, texts: pa.Array, low: pa.Array, high: pa.Array, has_ends: Flags
    ) -> Flags:
        """Return whether floats are written with the digits that they have."""
        rows = pa.array(has_ends)
        ends = [value_labels(bound.filter(rows), self.kind) for bound in (low, high)]
        wide = pc.binary_join_element_wise("[", ends[0], "-", ends[1], "]", "")
        written = pc.if_else(pc.equal(*ends), ends[0], wide)
        is_exact = np.zeros(len(texts), bool)
        is_exact[has_ends] = flags(pc.equal(written, texts.filter(rows)))
        return is_exact


def _categories_of(label: str | None) -> tuple[str | None, ...]:
    """Return the members of a label, with None for missing, or () if it is no label.

    >>> _categories_of("{a, b, missing}"), _categories_of("{b, b}")
    (('a', 'b', None), ())
    """
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
    """Return labels of a hierarchy as they are published.

    >>> sorted(hierarchy_labels(["north", "missing"]))
    ['"missing"', 'north']
    """
    return frozenset(hierarchy_label(label, with_missing=False) for label in labels)
