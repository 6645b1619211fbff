"""Domains: the rows of an attribute's table of counts, which are declared and never looked up.

A value that occurs once would show by its mere presence, and so would an empty cell that is not
there. So every table has the rows of its domain, one for all other values, and one for missing
ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.raw_columns import Reading, flags, is_number, is_plain, is_text
from anonspark.engine.values.value_texts import parse, read_values, write

Rows = npt.NDArray[np.int32]

MOST_ROWS = 100_000
"""Rows of a table at most."""


@dataclass(frozen=True)
class Domain:
    """The rows of one attribute's table.

    ``values`` has the text of each declared value, without blanks around it, and its row.
    ``labels`` are those of the rows, without those for other and missing values. ``edges`` ascend:
    the first value of each bin but the first one, or nothing if values are declared.

    >>> domain = Domain.of_edges("age", [18, 65])
    >>> domain.labels, domain.rows, domain.missing
    (('below 18', '[18, 65)', 'from 65'), 5, 4)
    >>> domain.rows_of(pa.array([17, 70, None]), []).tolist()
    [0, 2, 4]
    """

    name: str
    values: Mapping[str, int] = field(default_factory=dict, repr=False)
    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    @classmethod
    def of_values(cls, name: str, values: Sequence[str]) -> Domain:
        """Return the domain of declared values.

        >>> Domain.of_values("sex", ["f", "m"]).rows_of(pa.array(["m", "x"]), []).tolist()
        [1, 2]
        """
        return cls(name, {value.strip(" "): row for row, value in enumerate(values)}, tuple(values))

    @classmethod
    def of_groups(cls, name: str, groups: Mapping[str, str]) -> Domain:
        """Return the domain of groups, by that of each value.

        >>> Domain.of_groups("job", {"nurse": "care", "cook": "food", "doctor": "care"}).labels
        ('care', 'food')
        """
        labels = tuple(dict.fromkeys(groups.values()))
        rows = {label: row for row, label in enumerate(labels)}
        return cls(name, {value.strip(" "): rows[label] for value, label in groups.items()}, labels)

    @classmethod
    def of_edges(cls, name: str, edges: Sequence[float]) -> Domain:
        """Return the domain of bins: below the first edge, between edges, from the last one on."""
        ends = [str(int(edge)) if float(edge).is_integer() else repr(float(edge)) for edge in edges]
        between = [f"[{low}, {high})" for low, high in pairwise(ends)]
        labels = (f"below {ends[0]}", *between, f"from {ends[-1]}")
        return cls(name, {}, labels, tuple(edges))

    def merged(self, cuts: Sequence[int], table: Integers) -> tuple[Domain, Integers]:
        """Join bins between cuts, which are rows, and add up their counts.

        >>> domain, table = Domain.of_edges("age", [18, 65]).merged([1], np.ones((5, 2), np.int64))
        >>> domain.labels, table[:, 0].tolist()
        (('below 18', 'from 18'), [1, 2, 1, 1])
        """
        bins = np.add.reduceat(table[: self.other], [0, *cuts], axis=0)
        domain = Domain.of_edges(self.name, [self.edges[cut - 1] for cut in cuts])
        return domain, np.concatenate([bins, table[self.other :]])

    def fingerprint(self) -> str:
        """Return the SHA-256 that identifies this domain."""
        text = json.dumps([dict(self.values), list(self.labels), list(self.edges)], sort_keys=True)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def has_values(self) -> bool:
        """Whether its rows are values, and no groups or bins."""
        return not self.edges and tuple(self.values) == self.labels

    @property
    def rows(self) -> int:
        """Rows of the table, those for other and missing values among them."""
        return len(self.labels) + 2

    @property
    def other(self) -> int:
        """The row of values that are not declared, or cannot be read."""
        return len(self.labels)

    @property
    def missing(self) -> int:
        """The row of missing values."""
        return len(self.labels) + 1

    @cached_property
    def _texts(self) -> pa.Array:
        return pa.array(list(self.values), pa.string())

    @cached_property
    def _rows(self) -> Integers:
        return np.array(list(self.values.values()), np.int64)

    def rows_of(self, column: pa.Array, markers: Sequence[str]) -> Rows:
        """Return the row of each value of any type, int32 of shape (n,). No value is an error.

        Each different value is read once, but numbers that go to bins are read all at once.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if self.edges and is_number(column.type):
            return self._rows_of_values(column, markers)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = column.dictionary
        rows = np.append(self._rows_of_values(values, markers), np.int32(self.missing))
        indices = pc.fill_null(column.indices, pa.scalar(len(values), column.indices.type))
        result: Rows = rows[indices.to_numpy(zero_copy_only=False)]
        return result

    def _rows_of_values(self, column: pa.Array, markers: Sequence[str]) -> Rows:
        """Return the row of each value, without a dictionary."""
        reading = Reading(self.name, self.name, None, ("", *markers))
        values, is_missing = read_values(reading, _readable(column))
        rows = self._binned(values) if self.edges else self._declared(values)
        return np.where(flags(is_missing), self.missing, rows).astype(np.int32)

    def _declared(self, values: pa.Array) -> Integers:
        """Return the row of each declared value, :attr:`other` for others."""
        matches = pc.index_in(_texts_of(values, whole=True), value_set=self._texts)
        if pa.types.is_floating(values.type):
            # 17 and 17.0 are texts of the same number.
            matches = pc.coalesce(matches, pc.index_in(_texts_of(values), value_set=self._texts))
        is_declared = np.asarray(matches.is_valid())
        positions = pc.fill_null(matches, 0).to_numpy(zero_copy_only=False)
        return np.where(is_declared, self._rows[positions], self.other)

    def _binned(self, values: pa.Array) -> Integers:
        """Return the bin of each number, :attr:`other` for values that are none."""
        if is_text(values.type):
            numbers = parse(values.cast(pa.string()), pa.float64())
        else:
            numbers = values.cast(pa.float64(), safe=False)
        read = np.asarray(numbers.is_valid())
        positions = pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)
        bins = np.searchsorted(np.array(self.edges), positions, side="right")
        # The text `nan` is missing, too.
        bins = np.where(np.isnan(positions), self.missing, bins)
        return np.where(read, bins, self.other).astype(np.int64)

    def takes(self, kind: pa.DataType) -> bool:
        """Return whether values of a type can be read as the domain has them.

        >>> Domain.of_edges("age", [18]).takes(pa.date32())
        False
        """
        return is_number(kind) or is_text(kind) if self.edges else is_plain(kind)


def _readable(values: pa.Array) -> pa.Array:
    """Replace the bytes of texts that are no UTF-8, which files may hold."""
    if not is_text(values.type):
        return values
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        contents = values.cast(pa.large_binary()).to_pylist()
        texts = [None if raw is None else raw.decode(errors="replace") for raw in contents]
        return pa.array(texts, values.type)
    return values


def _texts_of(values: pa.Array, *, whole: bool = False) -> pa.Array:
    """Return values as texts without blanks around them."""
    texts = values if is_text(values.type) else write(values, whole=whole)
    return pc.ascii_trim(texts, " ").cast(pa.string())
