"""Group rows that are equal in some columns, and aggregate each group to one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import is_plain, is_text
from anonspark.engine.values.hashing import content_hash
from anonspark.engine.values.value_texts import plain

Kind = Literal["count", "sum", "min", "max", "xor", "list"]

# The type of sums of any number of 64-bit integers.
_LARGE_SUM = pa.decimal128(38, 0)


@dataclass(frozen=True)
class Aggregate:
    """A figure of each group: its name, its kind, the column that it is of, and its type.

    A count has no column.
    """

    name: str
    kind: Kind
    column: str
    type: pa.DataType

    @property
    def merged(self) -> Aggregate:
        """Return the aggregate that merges figures of parts of the groups."""
        return Aggregate(
            self.name, "sum" if self.kind == "count" else self.kind, self.name, self.type
        )


def aggregates_of(
    schema: pa.Schema,
    *,
    count: str | None,
    sums: Sequence[str],
    least: Sequence[str],
    most: Sequence[str],
    hashes: str | None,
    lists: Sequence[str],
) -> list[Aggregate]:
    """List the aggregates of :meth:`anonspark.engine.protocol.Table.aggregate`, in order."""
    types = {field.name: field.type for field in schema}
    figures = [] if count is None else [Aggregate(count, "count", "", pa.int64())]
    figures += [Aggregate(name, "sum", name, _sum_type(types[name])) for name in sums]
    figures += [Aggregate(name, "min", name, types[name]) for name in least]
    figures += [Aggregate(name, "max", name, types[name]) for name in most]
    if hashes is not None:
        figures.append(Aggregate(f"{hashes}_sum", "sum", hashes, _LARGE_SUM))
        figures.append(Aggregate(f"{hashes}_xor", "xor", hashes, pa.int64()))
    return figures + [Aggregate(name, "list", name, pa.list_(types[name])) for name in lists]


def _sum_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of a sum in SQL.

    >>> _sum_type(pa.decimal128(9, 2))
    Decimal128Type(decimal128(19, 2))
    """
    if pa.types.is_integer(data_type) or pa.types.is_boolean(data_type):
        return pa.int64()
    if pa.types.is_decimal(data_type):
        return pa.decimal128(min(data_type.precision + 10, 38), data_type.scale)
    return pa.float64()


def aggregate(rows: pa.Table, by: Sequence[str], figures: Sequence[Aggregate]) -> pa.Table:
    """Compute the figures of each group, in the order of the groups' first rows.

    Texts may be dictionaries, but not in the result. Without columns in ``by`` the whole table is
    one group, even if it has no rows. Raises ArrowInvalid if a sum needs more than 64 bits.

    >>> rows = pa.table({"sex": ["m", "f", "m"], "visits": [1, 2, 3]})
    >>> aggregate(rows, ["sex"], [Aggregate("visits", "sum", "visits", pa.int64())]).to_pylist()
    [{'sex': 'm', 'visits': 4}, {'sex': 'f', 'visits': 2}]
    """
    if not by:
        values = {figure.name: [_of_all(rows, figure)] for figure in figures}
        return pa.table(values, schema_of(rows.schema, by, figures))
    rows = rows.unify_dictionaries().combine_chunks()
    groups = find_groups([rows.column(name) for name in by])
    columns = {name: _representatives(rows.column(name), groups) for name in by}
    arrow = [figure for figure in figures if _is_left_to_arrow(rows, figure, groups)]
    table = _aggregated(rows, groups, arrow)
    for figure in figures:
        if figure in arrow:
            columns[figure.name] = table[f"{arrow.index(figure)}_{figure.kind}"].cast(figure.type)
        else:
            columns[figure.name] = _figure(rows, groups, figure)
    return pa.table(columns)


def _aggregated(rows: pa.Table, groups: Groups, figures: Sequence[Aggregate]) -> pa.Table:
    """Return the figures that Arrow has functions for, in the order of the groups."""
    if not figures:
        return pa.table({})
    values = {f"{index}": _value(rows, figure) for index, figure in enumerate(figures)}
    table = pa.table({"group": pa.array(groups.numbers), **values})
    by_group = table.group_by("group", use_threads=False)
    # The order of Arrow's groups is arbitrary.
    kinds = [figure.kind for figure in figures]
    return _in_order(by_group.aggregate(list(zip(values, kinds, strict=True))), "group")


@dataclass(frozen=True)
class Groups:
    """The groups of equal rows, numbered from 0 in the order of their first rows.

    ``numbers`` (int64, (rows,)) has each row's group, ``first`` (groups,) each group's first row.
    """

    numbers: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]

    @cached_property
    def are_adjacent(self) -> bool:
        """Return whether there are rows, and those of each group follow each other."""
        return len(self.first) > 0 and bool((self.numbers[1:] >= self.numbers[:-1]).all())

    def reduce(self, ufunc: np.ufunc, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Reduce the values of each group by a ufunc whose identity is 0, int64 (groups,).

        >>> groups = Groups(np.array([0, 1, 0]), np.array([0, 1]))
        >>> groups.reduce(np.add, np.array([1, 2, 3])).tolist()
        [4, 2]
        """
        if self.are_adjacent:
            reduced: npt.NDArray[np.int64] = ufunc.reduceat(values, self.first)
            return reduced
        results = np.zeros(len(self.first), np.int64)
        ufunc.at(results, self.numbers, values)
        return results

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each group, int64 (groups,)."""
        return np.bincount(self.numbers, minlength=len(self.first))

    def members(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows group by group, int64 (rows,), and where groups begin, with the end.

        >>> rows, ends = Groups(np.array([0, 1, 0]), np.array([0, 1])).members()
        >>> rows.tolist(), ends.tolist()
        ([0, 2, 1], [0, 2, 3])
        """
        ends = np.concatenate([[0], np.cumsum(self.sizes())])
        return np.argsort(self.numbers, kind="stable"), ends


def find_groups(columns: Sequence[pa.ChunkedArray]) -> Groups:
    """Find the rows that are equal in all columns, at least one. Texts may be dictionaries.

    Adjacent equal rows, as those of a class in a release, become one row first. The others are
    sorted by a hash, and values with equal hashes are compared, so the result is exact.

    >>> find_groups([pa.chunked_array([["m", "f", "m"]])]).numbers.tolist()
    [0, 1, 0]
    """
    whole = [
        column.combine_chunks() if len(column) else pa.array([], column.type)
        for column in map(_unified, columns)
    ]
    rows = len(whole[0])
    if not all(map(_is_comparable, whole)):
        return _groups_of_arrow(whole)
    if len(whole) == 1 and _is_coded(whole[0]):
        return _groups_of_codes(whole[0])
    starts = _starts_of_runs(whole)
    if len(starts) < rows:
        whole = [column.take(pa.array(starts)) for column in whole]
    hashes = content_hash(whole)
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    has_hash_before = sorted_hashes[1:] == sorted_hashes[:-1]
    if not _are_equal(whole, order[1:][has_hash_before], order[:-1][has_hash_before]):
        return _groups_of_arrow(columns)
    is_new = np.ones(len(order), bool)
    is_new[1:] = ~has_hash_before
    first = order[is_new]
    # Number groups in the order of their first rows.
    ranks = np.empty(len(first), np.int64)
    by_first = np.argsort(first)
    ranks[by_first] = np.arange(len(first))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = ranks[np.cumsum(is_new) - 1]
    first = starts[first[by_first]]
    lengths = np.diff(starts, append=rows)
    return Groups(np.repeat(numbers, lengths), first)


def _is_coded(column: pa.Array) -> bool:
    """Return whether equal values have equal codes, of which there are fewer than rows."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) > len(column):
        return False
    return bool(pc.count_distinct(column.dictionary).as_py() == len(column.dictionary))


def _groups_of_codes(column: pa.DictionaryArray) -> Groups:
    """Group rows by the codes of a dictionary of different values."""
    missing = len(column.dictionary)
    codes = column.indices.fill_null(missing).to_numpy()
    rows = len(codes)
    first = np.full(missing + 1, rows)
    first[codes[::-1]] = np.arange(rows)[::-1]
    by_first = np.argsort(first)[: np.count_nonzero(first < rows)]
    ranks = np.empty(missing + 1, np.int64)
    ranks[by_first] = np.arange(len(by_first))
    return Groups(ranks[codes], first[by_first])


def _in_order(table: pa.Table, name: str) -> pa.Table:
    """Sort rows by a column of numbers, unless they are sorted already, as they often are."""
    numbers = table[name].to_numpy()
    return table if (numbers[1:] > numbers[:-1]).all() else table.sort_by(name)


def _unified(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give all chunks of a column one dictionary."""
    is_coded = pa.types.is_dictionary(column.type) and column.num_chunks > 1
    return column.unify_dictionaries() if is_coded else column


def _is_comparable(column: pa.Array) -> bool:
    """Return whether values can be hashed and compared without a detour over Python."""
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        # A null in a dictionary would be another one than a null code.
        return is_text(data_type.value_type) and column.dictionary.null_count == 0
    return is_plain(data_type)


def _starts_of_runs(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """Return the first row, and each row that differs from the one before.

    May take equal rows for different ones, but not the other way around.
    """
    rows = len(columns[0])
    changes = np.zeros(rows, bool)
    changes[:1] = True
    for column in columns:
        values = column.indices if pa.types.is_dictionary(column.type) else column
        changed = pc.fill_null(pc.not_equal(values[1:], values[:-1]), True)
        changes[1:] |= changed.to_numpy(zero_copy_only=False)
    return np.flatnonzero(changes)


def _are_equal(
    columns: Sequence[pa.Array], rows: npt.NDArray[np.int64], others: npt.NDArray[np.int64]
) -> bool:
    """Return whether some rows are equal to others, pair by pair."""
    if not len(rows):
        return True
    for column in columns:
        left, right = (_bits(plain(column.take(pa.array(indices)))) for indices in (rows, others))
        equal = pc.fill_null(pc.equal(left, right), False)
        if not pc.all(pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))).as_py():
            return False
    return True


def _bits(column: pa.Array) -> pa.Array:
    """Return floats as their bits, since NaN is not equal to itself, and other values unchanged."""
    if not pa.types.is_floating(column.type):
        return column
    plain_zeros: pa.Array = comparable(pa.chunked_array([column])).combine_chunks()
    return plain_zeros.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _groups_of_arrow(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Groups:
    """Group rows by Arrow: of types without a hash, or if different rows have equal hashes."""
    chunked = [
        column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        for column in columns
    ]
    keys = {f"key_{index}": comparable(column) for index, column in enumerate(chunked)}
    table = pa.table({**keys, "row": pa.array(np.arange(len(chunked[0])))})
    grouped = table.group_by(list(keys), use_threads=False).aggregate(
        [("row", "min"), ("row", "list")]
    )
    grouped = _in_order(grouped, "row_min")
    members = grouped["row_list"].combine_chunks()
    numbers = np.empty(len(table), np.int64)
    sizes = members.value_lengths().to_numpy()
    numbers[members.flatten().to_numpy()] = np.repeat(np.arange(len(grouped)), sizes)
    return Groups(numbers, grouped["row_min"].to_numpy().astype(np.int64))


def _representatives(column: pa.ChunkedArray, groups: Groups) -> pa.ChunkedArray:
    """Return the value of each group's first row."""
    values = _unified(column).take(pa.array(groups.first))
    if pa.types.is_dictionary(values.type):
        return values.cast(values.type.value_type)
    return comparable(values) if pa.types.is_floating(values.type) else values


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert values so that equal values have equal bytes.

    -0.0 becomes 0.0, and a nested value becomes a number.

    >>> comparable(pa.chunked_array([[-0.0, 0.0]])).to_pylist()
    [0.0, 0.0]
    """
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return comparable(column.cast(data_type.value_type))
    if pa.types.is_floating(data_type):
        positive = pc.add(column, pa.scalar(0, data_type))
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), data_type), positive)
    if pa.types.is_nested(data_type):
        seen: dict[str, int] = {}
        codes = [seen.setdefault(repr(value), len(seen)) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(codes, pa.int64())])
    if pa.types.is_null(data_type):
        return pa.chunked_array([pa.nulls(len(column), pa.int8())])
    return column


def _is_left_to_arrow(rows: pa.Table, figure: Aggregate, groups: Groups | None = None) -> bool:
    """Return whether Arrow aggregates a figure, because NumPy is not faster or cannot."""
    if figure.kind == "sum":
        # NumPy adds up 64-bit hashes exactly.
        is_hash = pa.types.is_int64(rows.column(figure.column).type)
        return not (is_hash and bool(figure.type == _LARGE_SUM))
    if figure.kind not in ("min", "max") or pa.types.is_nested(figure.type):
        return False
    plain_numbers = pa.types.is_int64(figure.type) and not rows.column(figure.column).null_count
    return not (plain_numbers and groups is not None and groups.are_adjacent)


def _value(rows: pa.Table, figure: Aggregate) -> pa.ChunkedArray:
    """Return the column that Arrow aggregates for a figure, in a type that holds the result."""
    column = rows.column(figure.column)
    if figure.kind != "sum":
        return column
    # Cast first: Arrow adds up in the type of the values.
    if pa.types.is_decimal(figure.type):
        return column.cast(pa.decimal128(38, figure.type.scale))
    wide = column.cast(figure.type)
    # Arrow's sum of integers overflows without a word. A decimal's cast to 64 bits raises.
    return wide.cast(_LARGE_SUM) if pa.types.is_integer(figure.type) and _is_large(wide) else wide


def _is_large(numbers: pa.ChunkedArray) -> bool:
    """Return whether the sum of some whole numbers may need more than 64 bits."""
    ends = pc.min_max(numbers).as_py()
    widest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return bool(widest * len(numbers) >= 2**63)


def _figure(rows: pa.Table, groups: Groups, figure: Aggregate) -> pa.Array:
    """Compute a figure of each group for which Arrow has no function."""
    if figure.kind == "count":
        return pa.array(groups.sizes())
    column = rows.column(figure.column)
    if figure.kind == "sum":
        return _sums_of_hashes(_hashes(column), groups)
    if figure.kind == "xor":
        return pa.array(groups.reduce(np.bitwise_xor, _hashes(column)))
    if figure.kind != "list" and not pa.types.is_nested(figure.type):
        extreme = np.minimum if figure.kind == "min" else np.maximum
        return pa.array(extreme.reduceat(column.to_numpy(), groups.first))
    order, ends = groups.members()
    members = column.take(pa.array(order))
    if figure.kind == "list":
        values = members.combine_chunks() if len(members) else pa.array([], members.type)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), plain(values))
    best = min if figure.kind == "min" else max
    items = members.to_pylist()
    return pa.array(
        [
            best((value for value in items[start:end] if value is not None), default=None)
            for start, end in pairwise(ends.tolist())
        ],
        figure.type,
    )


def _hashes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return hashes as int64, with 0 for null."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


_HALF = 32


def _sums_of_hashes(hashes: npt.NDArray[np.int64], groups: Groups) -> pa.Array:
    """Return exact sums as decimals, from sums of both halves of the numbers, which fit 64 bits."""
    low = groups.reduce(np.add, hashes & (2**_HALF - 1))
    high = groups.reduce(np.add, hashes >> _HALF)
    # The sum is high * 2^32 + low, in two words of 64 bits.
    words = np.empty((len(low), 2), np.int64)
    middle = high + (low >> _HALF)
    words[:, 0] = (middle << _HALF) | (low & (2**_HALF - 1))
    words[:, 1] = middle >> _HALF
    return pa.Array.from_buffers(_LARGE_SUM, len(low), [None, pa.py_buffer(words.tobytes())])


def _of_all(rows: pa.Table, figure: Aggregate) -> Any:
    """Return a figure of all rows as one group."""
    if figure.kind == "sum" or _is_left_to_arrow(rows, figure):
        function = {"sum": pc.sum, "min": pc.min, "max": pc.max}[figure.kind]
        return function(_value(rows, figure)).cast(figure.type).as_py()
    if figure.kind == "xor":
        return int(np.bitwise_xor.reduce(_hashes(rows.column(figure.column))))
    # A table without rows is one group, too.
    whole = Groups(np.zeros(len(rows), np.int64), np.zeros(1, np.int64))
    return _figure(rows, whole, figure)[0].as_py()


def merge(parts: pa.Table, by: Sequence[str], figures: Sequence[Aggregate]) -> pa.Table:
    """Merge the figures of parts of groups to those of whole groups."""
    return aggregate(parts, by, [figure.merged for figure in figures])


def schema_of(schema: pa.Schema, by: Sequence[str], figures: Sequence[Aggregate]) -> pa.Schema:
    """Return the schema of the figures."""
    types: Mapping[str, pa.DataType] = {field.name: field.type for field in schema}
    return pa.schema([*((name, types[name]) for name in by), *((a.name, a.type) for a in figures)])
